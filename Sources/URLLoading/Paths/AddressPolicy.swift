/// Which addresses the loads of a session may connect to: what keeps a server that loads URLs given by
/// others from being sent to its own network (server-side request forgery).
///
/// ```swift
/// configuration.addressPolicy = .publicOnly
/// configuration.addressPolicy = AddressPolicy { $0.isGlobal || $0.host == "images.internal" }
/// ```
/// It is asked for every address of every host a load connects to: after the name was looked up, at each
/// redirect anew, and for addresses that stand in the URL. What is connected to is what was asked about: a
/// name that changes its mind in between gains nothing. Addresses it refuses are left out; if none
/// is left the load ends with ``LoadError/Reason/addressRefused``. The error names the host and no
/// address, so that it can be shown to whoever gave the URL.
///
/// It is asked when a connection is made; a connection kept for later loads of the session was asked about then.
/// Before a stored response answers it is asked about the address that the response came from. A response whose address
/// is not known, because it came through a proxy or a program stored it, does not answer a session with a policy.
/// Requests that a ``ProtocolHandler`` answers by itself, `file` URLs among them, connect to nothing and are not asked
/// about: refuse their schemes yourself.
public struct AddressPolicy: Sendable {
    /// Every address; asks nobody. The default.
    public static let any = AddressPolicy(judge: nil)
    /// Only addresses that are reachable from anywhere: see ``ResolvedAddress/isGlobal``.
    public static let publicOnly = AddressPolicy { $0.isGlobal }

    private let judge: (@Sendable (ResolvedAddress) -> Bool)?

    /// - Parameter allows: returns at once, called in the load's task, for one address after the other.
    public init(_ allows: @escaping @Sendable (ResolvedAddress) -> Bool) { self.init(judge: allows) }

    private init(judge: (@Sendable (ResolvedAddress) -> Bool)?) { self.judge = judge }

    /// Whether the address may be connected to.
    public func allows(_ address: ResolvedAddress) -> Bool { judge?(address) ?? true }

    /// Whether everything is allowed without asking.
    var isOpen: Bool { judge == nil }
}

// SPDX-License-Identifier: Apache-2.0

/// Decides which addresses the loads of a session may connect to: protects a server that loads URLs from its clients
/// against requests to its internal network (server-side request forgery).
///
/// ```swift
/// configuration.networks.addressPolicy = .publicOnly
/// configuration.networks.addressPolicy = AddressPolicy { $0.isGlobal || $0.host == "images.internal" }
/// ```
/// The policy is asked for every address of every host that a load connects to: after name resolution, at each
/// redirect, and for addresses in URLs. The connection is made to the same addresses that the policy was asked about,
/// so a changed DNS answer (DNS rebinding) cannot evade it. Refused addresses are left out; if none is left, the load
/// ends with ``LoadError/Reason/addressRefused``. The error contains the host but no address, so it can be shown to the
/// client that supplied the URL.
///
/// The policy is asked when a connection is made, and not again when the session reuses it. Before a stored response is
/// used, the policy is asked about the address that the response came from. If that address is unknown, because the
/// response came through a proxy or was stored by the program, a session with a policy does not use it. Requests that a
/// ``ProtocolHandler`` answers itself, including `file` URLs, make no connection, so the policy is not asked: refuse
/// their schemes separately.
public struct AddressPolicy: Sendable {
    /// Allows every address. The default.
    public static let any = AddressPolicy(isAllowed: nil)
    /// Allows only globally reachable addresses: see ``ResolvedAddress/isGlobal``.
    public static let publicOnly = AddressPolicy(isAllowed: { $0.isGlobal }, isPublicOnly: true)

    private let isAllowed: (@Sendable (ResolvedAddress) -> Bool)?
    /// True for ``publicOnly``, which other processes know by its name; closures do not cross.
    let isPublicOnly: Bool

    /// Creates a policy from a closure.
    /// - Parameter allows: called for one address after the other, in the load's task; must not block.
    public init(_ allows: @escaping @Sendable (ResolvedAddress) -> Bool) { self.init(isAllowed: allows) }

    private init(isAllowed: (@Sendable (ResolvedAddress) -> Bool)?, isPublicOnly: Bool = false) {
        (self.isAllowed, self.isPublicOnly) = (isAllowed, isPublicOnly)
    }

    /// Returns whether the address may be connected to.
    public func allows(_ address: ResolvedAddress) -> Bool { isAllowed?(address) ?? true }

    /// Whether every address is allowed.
    var isOpen: Bool { isAllowed == nil }
}

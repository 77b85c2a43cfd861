// SPDX-License-Identifier: Apache-2.0

// The route to an origin, with everything that decides whether a connection may be shared.

import URLLoadingIO
import URLLoadingWire

/// Everything that two loads must have in common to use one connection. All loads of a session have its settings, so
/// what differs is the origin, and the proxy chain with its credentials: a connection opened with one user's proxy
/// credentials must not serve another user.
struct Route: Hashable, Sendable, CustomStringConvertible {
    private let sharedOrigin: SharedOrigin
    let proxyChain: ProxyChain
    /// The trust decision for its peers: the generation of the session's TLS settings, and the decision of the load.
    var trust = Trust()
    /// For ftp: the login and the security of its connections, which no other login may use.
    var ftp: FTPKey? {
        get { owner?.ftp }
        set { setOwner(ConnectionOwner(ftp: newValue, identity: identity)) }
    }
    /// The connection carries another protocol than HTTP in the end, so proxies open a tunnel (RFC 6455 §4.1).
    var isTunneled = false

    struct Trust: Hashable, Sendable {
        var generation = 0
        var group = 0
    }

    /// The login that connections are authenticated as, for schemes that authenticate a connection instead of a
    /// request; see `Login.opensConnections`.
    var identity: Identity? {
        get { owner?.identity }
        set { setOwner(ConnectionOwner(ftp: ftp, identity: newValue)) }
    }

    /// The login that owns the connection, for ftp or for a scheme that authenticates connections: one reference,
    /// because most routes have none, and a route is copied several times in each load.
    private final class ConnectionOwner: Hashable, Sendable {
        let ftp: FTPKey?
        let identity: Identity?

        init(ftp: FTPKey?, identity: Identity?) { (self.ftp, self.identity) = (ftp, identity) }

        static func == (first: ConnectionOwner, second: ConnectionOwner) -> Bool {
            first === second || (first.ftp == second.ftp && first.identity == second.identity)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ftp)
            hasher.combine(identity)
        }
    }
    private var owner: ConnectionOwner?

    private mutating func setOwner(_ owner: ConnectionOwner) {
        self.owner = owner.ftp == nil && owner.identity == nil ? nil : owner
    }

    struct Identity: Hashable, Sendable {
        let login: Login
        /// The scheme takes several messages on one connection, which HTTP/2 cannot carry.
        let speaksHTTP1: Bool
    }

    /// A connection authenticated with a one-load credential is not reused.
    var isForOneLoad: Bool {
        identity?.login.isForOneLoad == true
            || proxyChain.proxies.contains { $0.login?.opensConnections == true && $0.login?.isForOneLoad == true }
    }

    /// Whether the origin or a proxy is authenticated by TLS.
    var isProven: Bool { origin.isSecure || proxyChain.proxies.contains { $0.kind == .https } }

    /// The traffic class that marks its packets.
    var traffic = TrafficClass.default

    /// An address override replaces the origin's host: a proxy is asked for a tunnel to it, since it would connect by
    /// the URL otherwise.
    var isMoved = false

    init(origin: Origin, proxyChain: ProxyChain = .direct, isMoved: Bool = false) {
        self.init(origin: SharedOrigin(origin), proxyChain: proxyChain, isMoved: isMoved)
    }

    init(origin: SharedOrigin, proxyChain: ProxyChain = .direct, isMoved: Bool = false) {
        sharedOrigin = origin
        self.proxyChain = proxyChain
        self.isMoved = isMoved
    }

    var origin: Origin { sharedOrigin.value }

    /// Most routes of a session differ in the origin only, and the hash is computed twice in each load.
    func hash(into hasher: inout Hasher) {
        hasher.combine(sharedOrigin)
        hasher.combine(trust.group)
        if let owner { hasher.combine(owner) }
    }

    /// The proxy that forwards the requests; `nil` if the origin receives them, directly or through a tunnel.
    var forwarder: Proxy? {
        !origin.isSecure && !isMoved && !isTunneled && proxyChain.forwards ? proxyChain.proxies.last : nil
    }

    /// Whether both use the same forwarding proxy, with the same credentials and trust.
    func isForwarded(as other: Route) -> Bool {
        identity == nil && other.identity == nil && proxyChain == other.proxyChain && trust == other.trust
            && traffic == other.traffic
            && forwarder != nil && other.forwarder != nil
    }

    var description: String { proxyChain.isDirect ? "\(origin)" : "\(origin) through \(proxyChain)" }
}

extension Destination {
    /// The direct route of a plain request.
    var route: Route { Route(origin: origin) }
}

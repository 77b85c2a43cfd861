// SPDX-License-Identifier: Apache-2.0

// In this folder: addresses, names and networks: what a connection may go to, and by which route (15 files: one public
//     type each)

// The route to an origin, with everything that decides whether a connection may be shared.

import URLLoadingWire

/// Everything that two loads must have in common to use one connection. All loads of a session have its settings, so
/// what differs is the origin, and the proxy chain with its credentials: a connection opened with one user's proxy
/// credentials must not serve another user.
struct Route: Hashable, Sendable, CustomStringConvertible {
    private let sharedOrigin: SharedOrigin
    /// What most routes have nothing of: one reference, because a route is copied several times in each load.
    private var special: Special?
    var proxyChain: ProxyChain { special?.proxyChain ?? .direct }
    /// The trust decision for its peers: the generation of the session's TLS settings, and the decision of the load.
    var trust = Trust()
    /// For ftp: the login and the security of its connections, which no other login may use.
    var ftp: FTPKey? {
        get { special?.ftp }
        set { special = Special(proxyChain: proxyChain, ftp: newValue, identity: identity) }
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
        get { special?.identity }
        set { special = Special(proxyChain: proxyChain, ftp: ftp, identity: newValue) }
    }

    /// The proxies, and the login that owns the connection, for ftp or for a scheme that authenticates connections.
    private final class Special: Hashable, Sendable {
        let proxyChain: ProxyChain
        let ftp: FTPKey?
        let identity: Identity?

        /// - Returns: nil for a direct route without a login.
        init?(proxyChain: ProxyChain, ftp: FTPKey? = nil, identity: Identity? = nil) {
            (self.proxyChain, self.ftp, self.identity) = (proxyChain, ftp, identity)
            if proxyChain.isDirect && ftp == nil && identity == nil { return nil }
        }

        var isForOneLoad: Bool {
            identity?.login.isForOneLoad == true
                || proxyChain.proxies.contains { $0.login?.opensConnections == true && $0.login?.isForOneLoad == true }
        }

        static func == (first: Special, second: Special) -> Bool {
            first === second
                || (first.proxyChain == second.proxyChain && first.ftp == second.ftp
                    && first.identity == second.identity)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(proxyChain)
            hasher.combine(ftp)
            hasher.combine(identity)
        }
    }

    struct Identity: Hashable, Sendable {
        let login: Login
        /// The scheme takes several messages on one connection, which HTTP/2 cannot carry.
        let speaksHTTP1: Bool
    }

    /// A connection authenticated with a one-load credential is not reused.
    var isForOneLoad: Bool { special?.isForOneLoad == true }

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
        // Without proxies, the usual case, nothing is allocated.
        special = proxyChain.isDirect ? nil : Special(proxyChain: proxyChain)
        self.isMoved = isMoved
    }

    var origin: Origin { sharedOrigin.value }

    /// Most routes of a session differ in the origin only, and the hash is computed twice in each load.
    func hash(into hasher: inout Hasher) {
        hasher.combine(sharedOrigin)
        hasher.combine(trust.group)
        if let special { hasher.combine(special) }
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

// The way to an origin, with everything that tells apart whose connections may be used.

import URLLoadingIO
import URLLoadingWire

/// Everything two loads must have in common to use one connection: the session's settings are the
/// same for all its loads, so the origin remains, and the way there with what was said to open it: credentials for a
/// proxy must serve nobody who has others (security 17).
struct Route: Hashable, Sendable, CustomStringConvertible {
    let origin: Origin
    let way: ProxyChain
    /// By whose word its peers were trusted: which settings of TLS the session had then, and which decision of a load.
    var trust = Trust()
    /// Of ftp: as whom, and how it is secured. Nobody else's connection is used (security 62).
    var ftp: FTPKey?
    /// What is to be spoken is no HTTP in the end: proxies only carry it (RFC 6455 §4.1).
    var isTunneled = false

    struct Trust: Hashable, Sendable {
        var generation = 0
        var group = 0
    }

    /// Who was proved to be using its connections, where a proof opens a connection and not a request; see
    /// `Login.opensConnections`.
    var identity: Identity?

    struct Identity: Hashable, Sendable {
        let login: Login
        /// What is said in several messages on one connection, HTTP/2 cannot carry.
        let speaksHTTP1: Bool
    }

    /// What opened its connections was said for one load alone, and proves nothing to the next.
    var isForOneLoad: Bool {
        identity?.login.isForOneLoad == true
            || way.proxies.contains { $0.login?.opensConnections == true && $0.login?.isForOneLoad == true }
    }

    /// Whether anybody on the way proves who he is.
    var isProven: Bool { origin.isSecure || way.proxies.contains { $0.kind == .https } }

    /// How its connections are marked.
    var traffic = TrafficClass.default

    /// Another place than the URL's is connected to: a proxy, which would go by the URL, is asked for a tunnel there.
    var isMoved = false

    init(origin: Origin, way: ProxyChain = .direct, isMoved: Bool = false) {
        self.origin = origin
        self.way = way
        self.isMoved = isMoved
    }

    /// The proxy that gets the requests themselves; `nil` if the origin does, be it through a tunnel.
    var forwarder: Proxy? { !origin.isSecure && !isMoved && !isTunneled && way.forwards ? way.proxies.last : nil }

    /// Whether both go to the same proxy, which gets the requests themselves, with the same credentials and trust.
    func isForwarded(as other: Route) -> Bool {
        identity == nil && other.identity == nil && way == other.way && trust == other.trust && traffic == other.traffic
            && forwarder != nil && other.forwarder != nil
    }

    var description: String { way.isDirect ? "\(origin)" : "\(origin) through \(way)" }
}

extension Destination {
    /// The direct route of a plain request.
    var route: Route { Route(origin: target.origin) }
}

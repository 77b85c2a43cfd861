// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// The connections of a session: their number, how long idle ones are kept, their versions of HTTP.
    ///
    /// ```swift
    /// configuration.connections.maximumPerHost = 2
    /// configuration.connections.httpVersions = .http1Only
    /// ```
    public struct Connections: Sendable, Hashable {
        /// The maximum number of simultaneous connections to one origin, at least 1; 6 by default. Further loads wait,
        /// in the order of their task priorities, and in order of arrival within a priority.
        ///
        /// Over HTTP/1.1 a load holds its connection until its body was read or its closure has returned. A closure
        /// that loads from the same origin needs a second connection: as many such loads as connections wait for each
        /// other until their resource timeouts. Use a second session for the inner loads.
        public var maximumPerHost = 6
        /// The lifetime of an idle connection; 55 seconds by default. Servers commonly close theirs after 60 to 75
        /// seconds, and closing first avoids a retry. Zero disables the reuse of connections.
        public var idleLifetime: Duration = .seconds(55)
        /// The maximum number of idle connections, over all origins; 128 by default.
        public var maximumIdle = 128

        /// The silence after which an HTTP/2 connection is checked with a PING: when it is reused after being idle, and
        /// while responses are awaited on it. More than zero; `nil` for never; 15 seconds by default. A connection of
        /// HTTP/3 that awaits responses is kept alive in any case, after half of its idle timeout at the latest.
        public var http2PingInterval: Duration? = .seconds(15)
        /// The timeout of the answer to a PING, after which the connection is closed; 5 seconds by default. Its loads
        /// then end with ``LoadError/Reason/connectionLost`` or ``LoadError/Reason/truncated``, or are repeated if that
        /// is safe. The timeout is six times as long while a request's body is sent. The SETTINGS of a new connection
        /// must be acknowledged within twice the timeout. Over HTTP/3 it limits the silence of a server after the first
        /// request that follows a silence of the interval. Without an ``http2PingInterval`` it has no effect.
        public var http2PingTimeout: Duration = .seconds(5)

        /// The versions of HTTP in use; ``HTTPVersions/automatic`` by default.
        public var httpVersions = HTTPVersions.automatic

        /// Whether requests may be sent as early data over HTTP/3 (0-RTT, RFC 8470): with the first datagrams of a
        /// connection to a server that a connection of this session has verified before, which saves a round trip.
        /// False by default.
        ///
        /// - Important: An attacker who has recorded the datagrams can send them again, and the server may carry out
        ///   the request more than once. Allow this only where a GET changes nothing.
        ///
        /// Only the request for which a connection is made is sent this way, and only a GET or HEAD without a body,
        /// cookies, credentials of any kind, parameters that look like credentials, or a decision about signatures or
        /// challenges. A server that accepts no early data, or answers with 425 (Too Early), receives the request again
        /// after the handshake. The setting has no effect in a build without the trait `HTTP3`.
        public var sendsEarlyData = false

        /// Creates the default settings.
        public init() {}
    }

    /// The versions of HTTP in use, and how one is chosen.
    public enum HTTPVersions: Sendable, Hashable {
        /// The server chooses between HTTP/2 and HTTP/1.1 over TLS (ALPN, RFC 7301); without TLS it is HTTP/1.1. Loads
        /// to one server share its HTTP/2 connection: ``Connections/maximumPerHost`` counts connections.
        case automatic
        /// Only HTTP/1.1.
        case http1Only
        /// Only HTTP/2, also without TLS (h2c, RFC 9113 §3.3): for servers known to support it. With others the load
        /// ends with ``LoadError/Reason/notHTTP2``.
        case http2PriorKnowledge
        /// HTTP/3 at every `https` server that answers it within 300 ms, and otherwise as ``automatic``.
        ///
        /// A server that does not answer costs that time once; for a while it is not asked again. Needs a build with
        /// the trait `HTTP3`: without it, every load ends with ``LoadError/Reason/notHTTP3``.
        case http3Preferred
        /// Only HTTP/3 (RFC 9114): for servers known to support it. A load that cannot use it ends with
        /// ``LoadError/Reason/notHTTP3``; without the trait `HTTP3`, every load.
        case http3PriorKnowledge

        /// The ALPN names to offer, best first.
        var offered: [String] {
            switch self {
            case .automatic, .http3Preferred, .http3PriorKnowledge: ["h2", "http/1.1"]
            case .http1Only: ["http/1.1"]
            case .http2PriorKnowledge: ["h2"]
            }
        }

        /// Whether the server chooses between HTTP/2 and HTTP/1.1.
        var negotiates: Bool { self == .automatic || self == .http3Preferred }

        /// Throws if no connection over TCP may be made: because HTTP/3 alone is allowed, or because this build lacks
        /// what the setting demands.
        func checkTCP(to route: Route) throws(LoadError) {
            switch self {
            case .automatic, .http1Only, .http2PriorKnowledge: return
            case .http3Preferred where Self.hasHTTP3: return
            case .http3PriorKnowledge where Self.hasHTTP3:
                let detail = route.origin.isSecure ? "this request cannot use HTTP/3" : "HTTP/3 needs https"
                throw LoadError(.notHTTP3, phase: .preparing, party: .local, detail: detail)
            case .http3Preferred, .http3PriorKnowledge:
                throw LoadError(
                    .notHTTP3, phase: .preparing, party: .local,
                    detail: "this program was built without the trait HTTP3")
            }
        }

        /// Whether this build supports HTTP/3.
        package static var hasHTTP3: Bool {
            #if HTTP3
            true
            #else
            false
            #endif
        }
    }
}

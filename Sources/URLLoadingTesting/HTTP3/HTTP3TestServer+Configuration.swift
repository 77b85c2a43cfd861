// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingIO
import URLLoadingWire

extension HTTP3TestServer {
    /// The configuration of an HTTP/3 test server: TLS, SETTINGS, windows and records.
    ///
    /// ```swift
    /// var configuration = HTTP3TestServer.Configuration(try authority.issue())
    /// configuration.streamWindow = 1_000
    /// try await withHTTP3TestServer(configuration) { server in … }
    /// ```
    public struct Configuration: Sendable {
        /// The TLS identity. A client that offers no protocol of its `applicationProtocols` is refused; QUIC has TLS
        /// 1.3 only, whatever the versions here.
        public var tls: HTTPTestServer.TLS
        /// The UDP port of 127.0.0.1, such as that of a server of HTTP/2 which offers HTTP/3; 0, the default, for one
        /// that the system chooses.
        public var port: UInt16 = 0
        /// The host in the server's URLs; `nil` for `localhost`.
        public var name: String?
        /// The SETTINGS of connections without a script.
        public var settings: [HTTP3Frame.Setting] = []
        /// How many requests a client may have open at once, at least 0.
        public var maximumStreams = 100
        /// The receive window of a request's stream in bytes, at least 0: the first as many are received without a
        /// reader.
        public var streamWindow = 256 * 1024
        /// The receive window of the connection in bytes, at least 0.
        public var connectionWindow = 64 << 20
        /// Silence of this duration ends a connection, as its client may ask for sooner; zero is never.
        public var idleTimeout = Duration.seconds(30)
        /// The clock for pauses and delays; `nil` for the system's. QUIC itself keeps to the system's.
        public var clock: ManualClock?
        /// The maximum number of requests, of frames, and of ended streams that are recorded, at least 0; the oldest
        /// are dropped first.
        public var recordedRequests = 10_000
        /// The maximum number of bytes of a request's body that are kept for its handler and the record, at least 0.
        public var recordedBodySize = 64 * 1024

        /// Creates a configuration with an identity of a test authority and the ALPN protocol `h3`.
        public init(_ identity: TestIdentity) {
            var tls = HTTPTestServer.TLS(identity)
            tls.applicationProtocols = ["h3"]
            self.init(tls: tls)
        }

        /// Creates a configuration with the given TLS settings; set their `applicationProtocols`.
        public init(tls: HTTPTestServer.TLS) { self.tls = tls }

        var limits: QUICLimits {
            var limits = QUICLimits()
            limits.streamCount = max(0, maximumStreams)
            limits.streamWindow = max(0, streamWindow)
            limits.largestStreamWindow = max(limits.streamWindow, limits.largestStreamWindow)
            limits.connectionWindow = max(0, connectionWindow)
            limits.idleTimeout = max(0, idleTimeout.inNanoseconds)
            // A client that begins a handshake and leaves holds no connection for longer.
            limits.handshakeTimeout = 30_000_000_000
            return limits
        }
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0

extension HTTP2TestServer {
    /// The configuration of an HTTP/2 test server: address, TLS, SETTINGS and records.
    ///
    /// ```swift
    /// var tls = HTTPTestServer.TLS(try authority.issue())
    /// tls.applicationProtocols = ["h2"]
    /// try await withHTTP2TestServer(.init(tls: tls)) { server in … }
    /// ```
    public struct Configuration: Sendable {
        /// The address to listen on.
        public var address = HTTPTestServer.Configuration.Address.ipv4
        /// The host in the server's URLs; `nil` for its address, or for `localhost` with TLS or a Unix socket.
        public var name: String?
        /// The TLS identity; `nil` for cleartext. HTTP/2 is spoken whatever ALPN selects: a configuration with
        /// `http/1.1` simulates a faulty server.
        public var tls: HTTPTestServer.TLS?
        /// The SETTINGS of connections without a script. The server itself complies with them.
        public var settings: [HTTP2Frame.Setting] = [.maxConcurrentStreams(100)]
        /// The receive window of a connection without a script, at least 65,535 bytes.
        public var connectionWindow = 65_535
        /// The clock for pauses and delays; `nil` for the system's.
        public var clock: ManualClock?
        /// The maximum number of requests, and of frames, that are recorded, at least 0; the oldest are dropped first.
        public var recordedRequests = 10_000
        /// The maximum number of bytes of a request's body that are kept for its handler and the record, at least 0.
        public var recordedBodySize = 64 * 1024

        /// Creates a configuration for 127.0.0.1, in cleartext.
        public init() {}

        /// Creates a configuration for 127.0.0.1, with TLS and the ALPN protocol `h2`.
        public init(_ identity: TestIdentity) {
            var tls = HTTPTestServer.TLS(identity)
            tls.applicationProtocols = ["h2"]
            self.init(tls: tls)
        }

        /// Creates a configuration for 127.0.0.1, with the given TLS settings; set their `applicationProtocols`.
        public init(tls: HTTPTestServer.TLS) { self.tls = tls }
    }
}

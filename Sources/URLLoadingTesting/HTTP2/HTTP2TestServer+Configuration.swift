extension HTTP2TestServer {
    /// How a server listens, what it promises and what it remembers.
    ///
    /// ```swift
    /// var tls = TestOrigin.TLS(try authority.issue())
    /// tls.applicationProtocols = ["h2"]
    /// try await withHTTP2TestServer(.init(tls: tls)) { server in … }
    /// ```
    public struct Configuration: Sendable {
        /// Where it listens.
        public var address = TestOrigin.Configuration.Address.ipv4
        /// The host in its URLs; `nil` for its address, or for `localhost` if it has TLS or a path.
        public var name: String?
        /// Speaks TLS with this identity; `nil` speaks in the clear. Whatever ALPN chooses, HTTP/2 is spoken: with
        /// `http/1.1` there, the server is at fault.
        public var tls: TestOrigin.TLS?
        /// The SETTINGS of connections without a script. Kept by the server itself too.
        public var settings: [HTTP2Frame.Setting] = [.maxConcurrentStreams(100)]
        /// The window of a connection without a script for what it receives, 65,535 or more bytes.
        public var connectionWindow = 65_535
        /// Whose time pauses and delays take; `nil` for the system's.
        public var clock: ManualClock?
        /// The most requests, and the most frames, remembered, at least 0; the oldest are forgotten first.
        public var recordedRequests = 10_000
        /// The most bytes of a request's body that are kept for its handler and the record, at least 0.
        public var recordedBodySize = 64 * 1024

        /// On 127.0.0.1, in the clear.
        public init() {}

        /// On 127.0.0.1, with TLS and the ALPN protocol `h2`.
        public init(_ identity: TestIdentity) {
            var tls = TestOrigin.TLS(identity)
            tls.applicationProtocols = ["h2"]
            self.init(tls: tls)
        }

        /// On 127.0.0.1, with TLS as it is given: mind its `applicationProtocols`.
        public init(tls: TestOrigin.TLS) { self.tls = tls }
    }
}

extension TestOrigin.Configuration.Address {
    func authority(_ name: String?, isClear: Bool, port: UInt16) -> String {
        switch self {
        case .unix: name ?? "localhost"
        case .ipv4, .everyIPv4: "\(name ?? (isClear ? "127.0.0.1" : "localhost")):\(port)"
        case .ipv6: "\(name ?? (isClear ? "[::1]" : "localhost")):\(port)"
        }
    }
}

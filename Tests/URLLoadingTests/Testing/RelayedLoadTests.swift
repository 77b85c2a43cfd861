// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Loads of every protocol through a relay: they succeed, and need the round trips that they must.
///
/// The clock of the sessions stands still, so a load that goes on only because a timer of the library wakes it does not
/// go on: it fails after a minute, with what the relay has passed on.
@Suite(.timeLimit(.minutes(4)))
struct RelayedLoadTests {
    /// A network of a row.
    struct Network: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let conditions: NetworkConditions
        init(_ name: String, _ conditions: NetworkConditions) {
            (testDescription, self.conditions) = (name, conditions)
        }

        static let all = [
            Network("far", .init(delay: .milliseconds(25))),
            Network("single bytes", .init(segmentSize: 1...1)),
            Network("single bytes, one by one", .init(rate: 10_000, segmentSize: 1...1)),
            jitter(1), jitter(2), jitter(3),
        ]
        static func jitter(_ seed: UInt64) -> Network {
            Network(
                "jitter \(seed)",
                .init(delay: .milliseconds(3), jitter: .milliseconds(5), segmentSize: 1...700, seed: seed))
        }
    }

    /// A configuration whose timers never fire.
    static func timeless(_ configuration: Configuration = .ephemeral) -> Configuration {
        configuration.with { configuration in
            configuration.use(ManualClock())
            configuration.connections.http2PingInterval = nil
        }
    }

    /// Ends with the load, or at the limit with what the relay has passed on.
    static func limited<R: Sendable>(
        _ relay: NetworkRelay, limit: Duration = .seconds(60), sourceLocation: SourceLocation = #_sourceLocation,
        _ load: @escaping @Sendable () async throws -> R
    ) async throws -> R {
        let work = Task { try await load() }
        let alarm = Task {
            try await Task.sleep(for: limit)
            Issue.record("no end after \(limit): \(relay.connections)", sourceLocation: sourceLocation)
            work.cancel()
        }
        defer { alarm.cancel() }
        return try await work.value
    }

    static let body = bytes(3_000)

    @Test("http and https", arguments: Network.all, [nil, Configuration.TLS.Version.tls12, .tls13])
    func http1(network: Network, version: Configuration.TLS.Version?) async throws {
        func use(_ origin: HTTPTestServer, _ configuration: Configuration) async throws {
            origin.route("/") { _ in .ok(.bytes(Self.body)) }
            origin.route("/up") { request in .ok("\(request.bodyCount)") }
            try await withNetworkRelay(to: origin.url(), network.conditions) { relay in
                try await withSession(Self.timeless(configuration)) { session in
                    for _ in 1...2 {
                        let (data, _) = try await Self.limited(relay) { try await session.data(from: relay.url()) }
                        #expect(data == Data(Self.body))
                    }
                    let upload = Request(url: relay.url("/up"), method: .post, body: .data(Data(Self.body)))
                    let text = try await Self.limited(relay) { try await session.text(upload) }
                    #expect(text == "\(Self.body.count)")
                }
                #expect(relay.counts.accepted == 1)
            }
        }
        guard let version else {
            return try await withHTTPTestServer { try await use($0, .ephemeral) }
        }
        try await withSecureOrigin(server: { $0.maximumVersion = version }) { try await use($0, $1) }
    }

    @Test("HTTP/2", arguments: Network.all, [nil, Configuration.TLS.Version.tls12, .tls13])
    func http2(network: Network, version: Configuration.TLS.Version?) async throws {
        let limit = Duration.seconds(60)
        try await Self.withHTTP2(version) { server, configuration in
            server.route("/*") { _ in .ok(.bytes(Self.body)) }
            server.route("/up") { request in .ok("\(request.bodyCount)") }
            try await withNetworkRelay(to: server.url(), network.conditions) { relay in
                try await withSession(Self.timeless(configuration)) { session in
                    for _ in 1...2 {
                        let (data, _) = try await Self.limited(relay, limit: limit) {
                            try await session.data(from: relay.url())
                        }
                        #expect(data == Data(Self.body))
                    }
                    let upload = Request(url: relay.url("/up"), method: .post, body: .data(Data(Self.body)))
                    let text = try await Self.limited(relay, limit: limit) { try await session.text(upload) }
                    #expect(text == "\(Self.body.count)")
                    try await Self.limited(relay, limit: limit) {
                        try await withThrowingTaskGroup(of: Int.self) { group in
                            for number in 1...8 {
                                group.addTask { try await session.data(from: relay.url("/\(number)")).0.count }
                            }
                            for try await count in group { #expect(count == Self.body.count) }
                        }
                    }
                }
                #expect(relay.counts.accepted == 1)
            }
        }
    }

    /// A server of HTTP/2, in the clear or with a version of TLS, and the configuration of its clients.
    static func withHTTP2(
        _ version: Configuration.TLS.Version?, _ use: (HTTP2TestServer, Configuration) async throws -> Void
    ) async throws {
        guard let version else {
            return try await withHTTP2TestServer { try await use($0, .http2) }
        }
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var tls = HTTPTestServer.TLS(try authority.issue())
        tls.applicationProtocols = ["h2"]
        tls.maximumVersion = version
        let configuration = Configuration.ephemeral.with {
            $0.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        }
        try await withHTTP2TestServer(.init(tls: tls)) { try await use($0, configuration) }
    }

    /// A server of ftp, in the clear or with TLS by request, and the configuration of its clients.
    static func withFTP(
        _ isSecure: Bool, _ use: (FTPTestServer, Configuration) async throws -> Void
    ) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let options =
            isSecure
            ? FTPTestServer.Configuration(tls: .init(try authority.issue()), security: .requiresExplicit) : .init()
        let configuration = Configuration.ephemeral.with {
            $0.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
            if isSecure { $0.ftp.security = .explicit }
        }
        try await withFTPTestServer(options) { try await use($0, configuration) }
    }

    @Test(
        "WebSocket, in the clear and over TLS", arguments: Network.all, [nil, Configuration.TLS.Version.tls12, .tls13])
    func webSocket(network: Network, version: Configuration.TLS.Version?) async throws {
        func use(_ origin: HTTPTestServer, _ configuration: Configuration) async throws {
            origin.webSocket("/echo", .echo)
            origin.webSocket("/greeting") { socket in
                try await socket.send(.text("hello"))
                while let message = try await socket.receive() { try await socket.send(message) }
            }
            try await withNetworkRelay(to: origin.url(), network.conditions) { relay in
                try await withSession(Self.timeless(configuration)) { session in
                    for path in ["/echo", "/greeting"] {
                        let socket = session.webSocketTask(relay.url(path)).resumed()
                        try await Self.limited(relay) {
                            if path == "/greeting" { try await expect({ try await socket.receive() }, .text("hello")) }
                            try await socket.expectEcho(.text("one"))
                            try await socket.expectEcho(.data(Data(Self.body)))
                            #expect(await socket.close().error == nil)
                        }
                    }
                }
            }
        }
        guard let version else {
            return try await withHTTPTestServer { try await use($0, .ephemeral) }
        }
        try await withSecureOrigin(server: { $0.maximumVersion = version }) { try await use($0, $1) }
    }

    @Test("ftp: the control connection, in the clear and over TLS", arguments: Network.all, [false, true])
    func ftp(network: Network, isSecure: Bool) async throws {
        try await Self.withFTP(isSecure) { server, configuration in
            server.put("a.txt", Data(Self.body))
            try await withNetworkRelay(to: server.url(), network.conditions) { relay in
                try await withSession(Self.timeless(configuration)) { session in
                    for _ in 1...2 {
                        let (data, _) = try await Self.limited(relay) {
                            try await session.data(from: relay.url("/a.txt"))
                        }
                        #expect(data == Data(Self.body))
                    }
                }
                #expect(relay.counts.accepted == 1)
            }
        }
    }

    // MARK: Handshakes that are cut

    @Test(
        "a connection that ends in a TLS handshake fails the load", arguments: [0, 1, 100, 700],
        [NetworkConditions.Cut.finish, .reset])
    func cutInHandshake(count: Int64, cut: NetworkConditions.Cut) async throws {
        try await withSecureOrigin { origin, configuration in
            var conditions = NetworkConditions()
            conditions.toClient.cut = .init(cut, after: count)
            try await withNetworkRelay(to: origin.url(), conditions) { relay in
                try await withSession(configuration) { session in
                    let expected = cut == .reset ? LoadError.Reason.connectionLost : .secureConnectionFailed
                    let reason = await failure(expected) { try await session.data(from: relay.url()) }?.reason
                    #expect(reason != nil && origin.requests.isEmpty)
                }
                try await relay.wait { $0.open == 0 && $0.toClient.delivered == count * Int64($0.accepted) }
            }
        }
    }

    @Test("a silent handshake ends by the connect's timeout")
    func silentHandshake() async throws {
        try await withSecureOrigin { origin, configuration in
            let clock = ManualClock()
            var configuration = configuration
            configuration.use(clock)
            configuration.timeouts.connect = .seconds(30)
            var conditions = NetworkConditions()
            conditions.toClient.silence = .after(bytes: 100)
            try await withNetworkRelay(to: origin.url(), conditions) { relay in
                let session = Session(configuration)
                let load = RunningLoad(session, Request(url: relay.url()))
                try await relay.wait { $0.toClient.delivered == 100 && $0.toClient.queued > 0 }
                try await clock.advance(by: .seconds(10)) { relay.counts.open == 0 }
                #expect(await load.reason == .connectTimeout)
                await expectEmpty(session)
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// The round trips of each way to a server, counted by a relay: the table of docs/internals/round-trips.md.
///
/// Each number includes one for the connect.
@Suite(.timeLimit(.minutes(4)))
struct RoundTripRows {
    /// The round trips of a connection after each step. A busy machine may take longer to send a flight than a short
    /// delay lasts, and so needs more: longer delays are tried then.
    private func expectRoundTrips(
        to server: URL, _ expected: [Int], sourceLocation: SourceLocation = #_sourceLocation,
        _ load: (_ relay: NetworkRelay, _ note: () -> Void) async throws -> Void
    ) async throws {
        var seen: [[Int]] = []
        for delay in [25, 100, 400] {
            var counts: [Int] = []
            try await withNetworkRelay(to: server, .init(delay: .milliseconds(delay))) { relay in
                try await load(relay) { counts.append(relay.connections.reduce(0) { $0 + $1.roundTrips }) }
            }
            if counts == expected { return }
            seen.append(counts)
        }
        Issue.record("\(seen) instead of \(expected)", sourceLocation: sourceLocation)
    }

    /// The round trips of GETs one after the other, until each has ended.
    private func expectRoundTrips(
        to server: URL, _ expected: [Int], path: String = "/", _ configuration: Configuration,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await expectRoundTrips(to: server, expected, sourceLocation: sourceLocation) { relay, note in
            try await withSession(configuration) { session in
                for _ in expected {
                    try await session.expect(relay.url(path), "here")
                    note()
                }
            }
        }
    }

    // MARK: HTTP

    @Test(
        "a request takes a round trip after those of the connect and the handshake",
        arguments: [(nil, 2), (.tls12, 4), (.tls13, 3)] as [(Configuration.TLS.Version?, Int)])
    func http1(version: Configuration.TLS.Version?, first: Int) async throws {
        func use(_ origin: HTTPTestServer, _ configuration: Configuration) async throws {
            origin.route("/") { _ in .ok("here") }
            try await expectRoundTrips(to: origin.url(), [first, first + 1], configuration)
        }
        guard let version else { return try await withHTTPTestServer { try await use($0, .ephemeral) } }
        try await withSecureOrigin(server: { $0.maximumVersion = version }) { try await use($0, $1) }
    }

    @Test(
        "a resumed session of TLS 1.2 saves a round trip; one of TLS 1.3 saves none, because no early data is sent",
        arguments: [Configuration.TLS.Version.tls12, .tls13])
    func resumed(version: Configuration.TLS.Version) async throws {
        try await withSecureOrigin(server: { $0.maximumVersion = version }) { origin, configuration in
            origin.route("/") { _ in .ok("here", headers: [.connection: "close"]) }
            let first = version == .tls13 ? 3 : 4
            try await expectRoundTrips(to: origin.url(), [first, first + 3], configuration)
        }
    }

    @Test(
        "HTTP/2 takes no round trip for its SETTINGS",
        arguments: [(nil, 2), (.tls12, 4), (.tls13, 3)] as [(Configuration.TLS.Version?, Int)])
    func http2(version: Configuration.TLS.Version?, first: Int) async throws {
        try await RelayedLoadTests.withHTTP2(version) { server, configuration in
            server.route("/") { _ in .ok("here") }
            try await expectRoundTrips(to: server.url(), [first, first + 1], configuration)
        }
    }

    @Test("a redirect to another origin takes what a first request to each takes") func redirect() async throws {
        try await withSecureOrigin { second, configuration in
            second.route("/") { _ in .ok("here") }
            try await withHTTPTestServer { first in
                try await expectRoundTrips(to: second.url(), [3]) { relay, note in
                    let target = relay.url().absoluteString
                    first.route("/") { _ in .status(.found, headers: [.location: target]) }
                    try await expectRoundTrips(to: first.url(), [2]) { start, noteStart in
                        try await withSession(configuration) { session in
                            try await session.expect(start.url(), "here")
                            noteStart()
                        }
                    }
                    note()
                }
            }
        }
    }

    @Test("Expect: 100-continue takes a round trip, and a body without it none") func bodies() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok("\(request.bodyCount)") }
            for (expects, count) in [(false, 2), (true, 3)] {
                try await expectRoundTrips(to: origin.url(), [count]) { relay, note in
                    try await withSession(.ephemeral) { session in
                        var request = Request(url: relay.url(), method: .post, body: .data(Data(count: 100_000)))
                        if expects { request.headers[.expect] = "100-continue" }
                        try await session.expect(request, "100000")
                        note()
                    }
                }
            }
        }
    }

    @Test("a resumable upload takes one round trip, as any other") func resumableUpload() async throws {
        let server = ResumableUploadServer(.init())
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            try await expectRoundTrips(to: origin.url(), [2]) { relay, note in
                try await withSession(.ephemeral) { session in
                    _ = try await session.uploadResumably(
                        Request(url: relay.url("/files"), method: .post), from: .data(Data(count: 100_000)))
                    note()
                }
            }
        }
    }

    @Test("a body of the window's size takes one round trip")
    func roundTripsOfBody() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 1_000_000)) }
            try await expectRoundTrips(to: origin.url(), [2]) { relay, note in
                try await withSession(.ephemeral) { session in
                    let (data, _) = try await session.data(from: relay.url())
                    #expect(data.count == 1_000_000)
                    note()
                    let flights = relay.connections[0].flights
                    #expect(flights.count == 2 && flights[1].direction == .toClient && flights[1].round == 1)
                    #expect(flights[1].bytes > 1_000_000 && flights[1].delivered == flights[1].bytes)
                }
            }
        }
    }

    // MARK: Authentication

    private static let ada = Credential(user: "ada", password: "s3cret")

    @Test(
        "Basic and Digest take a round trip for the challenge, once for a session",
        arguments: [Gate.Kind.basic, .digest("SHA-256", qop: "auth")])
    func challenges(kind: Gate.Kind) async throws {
        try await withGate(Gate([kind])) { try await expectLogin(at: $0, [3, 4], "in") }
    }

    @Test("NTLM takes one for the challenge, a connect, and one for each of its two messages, once for a login")
    func ntlm() async throws {
        try await withGate(NTLMGate()) { try await expectLogin(at: $0, [5, 6], "ada 0") }
    }

    private func expectLogin(at origin: HTTPTestServer, _ expected: [Int], _ body: String) async throws {
        try await expectRoundTrips(to: origin.url(), expected) { relay, note in
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.ada) })
            for path in ["/a", "/b"] {
                try await session.expect(relay.url(path), body)
                note()
            }
            await expectEmpty(session)
        }
    }

    // MARK: Proxies

    @Test(
        "a proxy takes a round trip for CONNECT; SOCKS 5 takes two, and a third for a password",
        arguments: [
            (.http, false, false, 2), (.http, true, false, 4), (.https, false, false, 3), (.https, true, false, 5),
            (.socks5, false, false, 4), (.socks5, true, false, 5), (.socks5, true, true, 6), (.socks4a, true, false, 4),
            (.http, true, true, 4),
        ] as [(Proxy.Kind, Bool, Bool, Int)])
    func proxies(kind: Proxy.Kind, isSecure: Bool, hasPassword: Bool, count: Int) async throws {
        try await withSecureOrigin { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] { origin.route("/") { _ in .ok("here") } }
                let target = (isSecure ? secure : plain).url()
                let options = TestProxy.Configuration(
                    kind == .http || kind == .https ? .http : .socks,
                    tls: kind == .https ? secure.configuration.tls : nil,
                    user: hasPassword ? "u" : nil, password: "pw")
                try await withTestProxy(options) { proxy in
                    let address = try url("http://localhost:\(proxy.port)")
                    try await expectRoundTrips(to: address, [count, count + 1]) { relay, note in
                        var configuration = base
                        configuration.networks.proxyPolicy = .fixed([
                            try Proxy(
                                kind, host: kind == .https ? "localhost" : "127.0.0.1", port: relay.port,
                                user: hasPassword ? "u" : nil, password: hasPassword ? "pw" : nil)
                        ])
                        try await withSession(configuration) { session in
                            for _ in 1...2 {
                                try await session.expect(target, "here")
                                note()
                            }
                        }
                    }
                }
            }
        }
    }

    // MARK: WebSocket

    @Test("a WebSocket takes a round trip to open, and a message none until it is answered", arguments: [false, true])
    func webSocket(isSecure: Bool) async throws {
        func use(_ origin: HTTPTestServer, _ configuration: Configuration) async throws {
            origin.webSocket("/", .echo)
            let first = isSecure ? 3 : 2
            try await expectRoundTrips(to: origin.url(), [first, first + 1, first + 2]) { relay, note in
                try await withSession(configuration) { session in
                    let socket = session.webSocketTask(relay.url()).resumed()
                    _ = try await socket.opened
                    note()
                    for _ in 1...2 {
                        try await socket.expectEcho(.text("hello"))
                        note()
                    }
                    await socket.close()
                }
            }
        }
        if isSecure { return try await withSecureOrigin { try await use($0, $1) } }
        try await withHTTPTestServer { try await use($0, .ephemeral) }
    }

    // The server's SETTINGS say whether it takes WebSockets (RFC 8441 §3). A server whose SETTINGS follow the client's
    // preface, and not its own handshake, costs a round trip.
    @Test("a WebSocket over HTTP/2 waits for the server's SETTINGS, and takes no connect if there is a connection")
    func webSocketOverHTTP2() async throws {
        var options = HTTP2TestServer.Configuration()
        options.settings.append(.enableConnectProtocol(1))
        try await withHTTP2TestServer(options) { server in
            server.webSocket("/", .echo)
            server.route("/get") { _ in .ok("here") }
            try await expectRoundTrips(to: server.url(), [2, 3, 4]) { relay, note in
                try await withSession(.http2) { session in
                    try await session.expect(relay.url("/get"), "here")
                    note()
                    let socket = session.webSocketTask(relay.url()).resumed()
                    _ = try await socket.opened
                    note()
                    try await socket.expectEcho(.text("hello"))
                    note()
                    await socket.close()
                }
            }
        }
    }

    // MARK: ftp

    @Test("ftp: the greeting, the login, and what a file takes on the control connection", arguments: [false, true])
    func ftp(isSecure: Bool) async throws {
        try await RelayedLoadTests.withFTP(isSecure) { server, configuration in
            server.put("a.txt", Data("here".utf8))
            try await expectRoundTrips(
                to: server.url(), isSecure ? [15, 19] : [11, 15], path: "/a.txt", configuration)
        }
    }
}

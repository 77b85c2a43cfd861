// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Cookies from proxies and interim responses (RFC 6265bis §5.3), and on shared connections.
@Suite(.timeLimit(.minutes(4)))
struct CookieHopRows {
    @Test("a proxy's challenge and an interim response (1xx) set no cookies")
    func others() async throws {
        try await withHTTPTestServer { origin in
            origin.route("http://a.test/") { _ in
                .status(
                    .proxyAuthenticationRequired,
                    headers: [.proxyAuthenticate: "Basic realm=\"p\"", .setCookie: "proxy=1"])
            }
            origin.route("/hints") { request in
                .ok("x", headers: [.setCookie: "own=1"]).after(.init(.earlyHints, headers: [.setCookie: "early=1"]))
            }
            var configuration = Configuration.ephemeral
            try await withSession(configuration) { session in
                try await session.expect(origin.url("/hints"), "x")
                #expect(session.cookies?.all.map(\.name) == ["own"])
            }
            configuration.networks.proxyPolicy = .fixed([try Proxy("http://127.0.0.1:\(origin.port)")])
            try await withSession(configuration) { session in
                let url = try #require(URL(string: "http://a.test/"))
                let (_, response) = try await session.data(from: url)
                #expect(response.http?.status == .proxyAuthenticationRequired && session.cookies?.all.isEmpty == true)
            }
        }
    }

    @Test("a main document redirected to another site is first-party there (checklist 105)")
    func documents() async throws {
        try await withHTTPTestServer { origin in
            let port = origin.port
            origin.route("/login") { _ in .redirect("http://b.test:\(port)/set") }
            origin.route("/set") { _ in .status(.found, headers: [.location: "/see", .setCookie: "s=1; SameSite=Lax"]) }
            origin.route("/see") { .ok($0.headers[.cookie] ?? "none") }
            var configuration = Configuration.ephemeral
            configuration.networks.resolver = RecordingResolver()
            configuration.cookies.acceptPolicy = .onlyFromMainDocument
            try await withSession(configuration) { session in
                var request = Request(url: try #require(URL(string: "http://a.test:\(port)/login")))
                request.mainDocumentURL = request.url
                try await session.expect(request, "s=1")
            }
        }
    }

    @Test("over HTTP/2 each of many requests on one connection has its cookies (checklist 104)")
    func shared() async throws {
        try await withHTTP2TestServer { server in
            server.route("/set") { .ok("set", headers: [.setCookie: "n=\($0.headers["n"] ?? ""); Path=/"]) }
            server.route("/see") { .ok($0.headers[.cookie] ?? "none") }
            var configuration = Configuration.ephemeral
            configuration.connections.httpVersions = .http2PriorKnowledge
            configuration.connections.http2PingInterval = nil
            try await withSession(configuration) { session in
                try await session.expect(server.url("/see"), "none")
                for number in 0..<8 {
                    var request = Request(url: server.url("/set"))
                    request.headers["n"] = "\(number)"
                    try await session.expect(request, "set")
                    try await session.expect(server.url("/see"), "n=\(number)")
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<16 { group.addTask { try await session.expect(server.url("/see"), "n=7") } }
                    try await group.waitForAll()
                }
                #expect(session.cookies?.all.count == 1)
            }
        }
    }
}

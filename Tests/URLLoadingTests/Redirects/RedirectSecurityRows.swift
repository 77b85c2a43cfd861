// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Security 1 to 3, 9, 58, 59: data that must not follow a redirect.
@Suite(.timeLimit(.minutes(4)))
struct RedirectSecurityRows {
    /// Three credentials, of which an origin gets two: the last is for proxies only (security 5).
    static let secrets: Headers = [
        .authorization: "Bearer secret", .cookie: "a=secret", .proxyAuthorization: "Basic secret",
    ]

    private static func secrets(in request: HTTPTestServer.RecordedRequest) -> [String] {
        [FieldName.authorization, .cookie, .proxyAuthorization].compactMap { request.headers[$0] }
    }

    /// Serves a redirect to another origin, which answers requests.
    private static func withRedirect(
        _ status: Status = .found, _ use: (_ first: HTTPTestServer, _ second: HTTPTestServer) async throws -> Void
    ) async throws {
        try await withHTTPTestServer(answering: "") { second in
            let target = second.url("/").absoluteString
            try await withHTTPTestServer { first in
                first.route("/") { _ in .redirect(target, status: status) }
                try await use(first, second)
            }
        }
    }

    @Test(
        "credentials are not sent to another host (security 1)", arguments: [301, 302, 303, 307, 308],
        [Method.get, .post])
    func otherHost(_ code: Int, _ method: Method) async throws {
        let status = try #require(Status(code))
        try await Self.withRedirect(status) { first, second in
            try await withSession(.ephemeral) { session in
                _ = try await session.data(for: Request(url: first.url(), method: method, headers: Self.secrets))
            }
            #expect(first.requests.first.map(Self.secrets)?.count == 2)
            #expect(second.requests.first.map(Self.secrets) == [])
        }
    }

    @Test("a signature that the caller wrote is not sent to another host (security 1)")
    func signature() async throws {
        let signed: Headers = ["X-Amz-Security-Token": "t", .signature: "a=:AA==:", .signatureInput: "a=()"]
        try await Self.withRedirect { first, second in
            try await withSession(.ephemeral) { session in
                _ = try await session.data(for: Request(url: first.url(), headers: signed))
            }
            func fields(_ server: HTTPTestServer) -> Int? {
                server.requests.first.map { request in signed.count { request.headers.contains($0.name) } }
            }
            #expect(fields(first) == 3 && fields(second) == 0)
        }
    }

    @Test("credentials among the session's headers are not sent to another host (security 1)")
    func configuredCredentials() async throws {
        try await Self.withRedirect { first, second in
            var configuration = Configuration.ephemeral
            configuration.headers = Self.secrets
            configuration.headers["X-Harmless"] = "1"
            try await withSession(configuration) { session in
                _ = try await session.data(from: first.url())
                // A request of the caller to that host gets them as usual.
                _ = try await session.data(from: second.url())
            }
            #expect(first.requests.first.map(Self.secrets)?.count == 2)
            #expect(second.requests.map { Self.secrets(in: $0).count } == [0, 2])
            #expect(second.requests.first?.headers["X-Harmless"] == "1")
        }
    }

    @Test(
        "a field removed at one hop stays removed at later hops, also back at the first origin (security 2)",
        arguments: [false, true])
    func laterHops(_ areConfigured: Bool) async throws {
        try await withHTTPTestServer { second in
            try await withHTTPTestServer { first in
                first.route("/back") { _ in .ok("") }
                let (back, target) = (first.url("/back").absoluteString, second.url("/1").absoluteString)
                first.route("/") { _ in .redirect(target) }
                second.route("/1") { _ in .redirect("/2") }
                second.route("/2") { _ in .redirect(back) }
                var configuration = Configuration.ephemeral
                if areConfigured { configuration.headers = Self.secrets }
                try await withSession(configuration) { session in
                    _ = try await session.data(
                        for: Request(url: first.url(), headers: areConfigured ? [:] : Self.secrets))
                }
                #expect(second.requests.count == 2)
                #expect(second.requests.allSatisfy { Self.secrets(in: $0).isEmpty })
                #expect(first.requests.map { Self.secrets(in: $0).count } == [2, 0])
            }
        }
    }

    @Test("another port or scheme of the same host is another server (security 3)")
    func otherPortOrScheme() async throws {
        try await withSecureOrigin { secure, configuration in
            try await withHTTPTestServer { origin in
                let clear = try url("http://localhost:\(origin.port)/")
                origin.route("/") { _ in .ok("") }
                origin.route("/secure") { _ in .redirect(secure.url("/end").absoluteString) }
                secure.route("/end") { _ in .ok("") }
                secure.route("/clear") { _ in .redirect(clear.absoluteString) }
                try await withSession(configuration) { session in
                    _ = try await session.data(for: Request(url: secure.url("/clear"), headers: Self.secrets))
                    _ = try await session.data(
                        for: Request(url: url("http://localhost:\(origin.port)/secure"), headers: Self.secrets))
                }
                #expect(origin.requests.map { Self.secrets(in: $0).count } == [0, 2])
                #expect(secure.requests.map { Self.secrets(in: $0).count } == [2, 0])
            }
        }
    }

    @Test("the same origin in another spelling keeps the credentials (security 3)")
    func sameOrigin() async throws {
        try await withHTTPTestServer(.init(name: "a.example")) { origin in
            origin.route("/") { _ in .redirect("http://A.EXAMPLE:\(origin.port)/end") }
            origin.route("/end") { _ in .ok("") }
            try await withSession(.ephemeral.with { $0.networks.resolver = RecordingResolver() }) { session in
                _ = try await session.data(for: Request(url: origin.url(), headers: Self.secrets))
            }
            #expect(origin.requests.map { Self.secrets(in: $0).count } == [2, 2])
        }
    }

    @Test("a Host field of the caller is not sent to another server")
    func hostField() async throws {
        try await Self.withRedirect { first, second in
            try await withSession(.ephemeral) { session in
                _ = try await session.data(for: Request(url: first.url(), headers: [.host: "chosen.example"]))
            }
            #expect(first.requests.first?.headers[.host] == "chosen.example")
            #expect(second.requests.first?.headers[.host] == "127.0.0.1:\(second.port)")
        }
    }

    @Test("Referer has neither userinfo nor fragment, and is not sent from https to http (security 9)")
    func referer() async throws {
        let referer: Headers = [.referer: "https://user:secret@a.example/p?q#secret"]
        try await withSecureOrigin { secure, configuration in
            try await withHTTPTestServer(answering: "") { origin in
                origin.route("/hop") { _ in .redirect("/") }
                secure.route("/clear") { _ in .redirect(origin.url("/").absoluteString) }
                secure.route("/secure") { _ in .redirect("/end") }
                secure.route("/end") { _ in .ok("") }
                try await withSession(configuration) { session in
                    _ = try await session.data(for: Request(url: secure.url("/clear"), headers: referer))
                    _ = try await session.data(for: Request(url: secure.url("/secure"), headers: referer))
                    _ = try await session.data(for: Request(url: origin.url("/hop"), headers: referer))
                }
                #expect(origin.requests.first?.headers[.referer] == nil)
                #expect(secure.requests.last?.headers[.referer] == "https://a.example/p?q")
                #expect(origin.requests.last?.headers[.referer] == "https://a.example/p?q")
            }
        }
    }

    @Test(
        "a redirect leads to http and https only (security 58)",
        arguments: [
            "file:///etc/passwd", "FILE:///etc/passwd", "data:text/plain,x", "ftp://127.0.0.1/x", "javascript:alert(1)",
            "gopher://127.0.0.1:70/_x", "ws://127.0.0.1/", "about:blank", "mailto:a@b", "dict://127.0.0.1/x",
        ])
    func otherSchemes(_ location: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect(location) }
            try await withSession(.ephemeral) { session in
                let error = await failure(.redirectRefused, .remote, .redirecting, location) {
                    try await session.data(from: origin.url())
                }
                #expect(error?.url == origin.url())
            }
        }
    }

    @Test(
        "an invalid or ambiguous Location is refused (security 57)",
        arguments: [
            "http://a\\@127.0.0.1/", "http://[::1", "http://a b/", "http:///x", "http://127.0.0.1:99999/",
            "http://a%00b/", "http://a%/", "http://a%zz/", "http:\\\\127.0.0.1/", "//", "http://127.0.0.1:x/",
            "http://user:p@ss@127.0.0.1/", "http://a%2Fb/", "http://0x7f.1/", "http://2130706433/",
        ])
    func badLocations(_ location: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect(location) }
            let resolver = RecordingResolver()
            try await withSession(.ephemeral.with { $0.networks.resolver = resolver }) { session in
                await expectFailure(.badRedirect, .remote, .redirecting, location) {
                    try await session.data(from: origin.url())
                }
            }
            #expect(origin.counts.requests == 1)
            #expect(resolver.asked == [])
        }
    }

    @Test(
        "a body is sent to another host only with the method that requires it (security 59)",
        arguments: [301, 302, 303, 307, 308])
    func body(_ code: Int) async throws {
        let status = try #require(Status(code))
        try await Self.withRedirect(status) { first, second in
            try await withSession(.ephemeral) { session in
                for method in [Method.post, .put] {
                    _ = try await session.data(
                        for: Request(
                            url: first.url(), method: method,
                            headers: [
                                .contentType: "x/y", .contentLength: "4", .contentLanguage: "de",
                                .contentDigest: "sha-256=:AA==:", .reprDigest: "sha-256=:AA==:",
                            ],
                            body: .data(Data("body".utf8))))
                }
            }
            let becameGet = second.requests.map { $0.method == .get }
            #expect(becameGet == [code < 307, code == 303])
            for request in second.requests where request.method == .get {
                #expect(request.bodyCount == 0)
                for name in [
                    FieldName.contentType, .contentLength, .contentLanguage, .transferEncoding, .contentDigest,
                    .reprDigest,
                ] {
                    #expect(!request.headers.contains(name))
                }
            }
            for request in second.requests where request.method != .get {
                #expect(request.body == Array("body".utf8))
            }
        }
    }
}

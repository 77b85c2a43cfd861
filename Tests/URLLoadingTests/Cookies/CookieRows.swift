// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Checklist 2-4, 18, 25, 104-110 and the security requirements of cookies, through sessions.
@Suite(.timeLimit(.minutes(4)))
struct CookieRows {
    /// An origin for any host name, which sets the cookies of the query and returns those it received.
    nonisolated(nonsending) private func withCookieOrigin(
        _ use: nonisolated(nonsending) (HTTPTestServer, Configuration) async throws -> Void
    ) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok($0.headers[.cookie] ?? "none") }
            origin.route("/set") { _ in
                .ok("set", headers: ["Set-Cookie": "a=1; Path=/", "Set-Cookie": "b=2; Path=/; Domain=example.org"])
            }
            var configuration = Configuration.ephemeral
            configuration.networks.resolver = RecordingResolver()
            try await use(origin, configuration)
        }
    }

    private func url(_ host: String, _ path: String, _ origin: HTTPTestServer) throws -> URL {
        try #require(URL(string: "http://\(host):\(origin.port)\(path)"))
    }

    @Test("cookies are sent where they match, unless the request disables them (checklist 104)")
    func automatic() async throws {
        try await withCookieOrigin { origin, configuration in
            try await withSession(configuration) { session in
                try await session.expect(url("www.example.org", "/", origin), "none")
                try await session.expect(url("www.example.org", "/set", origin), "set")
                try await session.expect(url("www.example.org", "/", origin), "a=1; b=2")
                try await session.expect(url("example.org", "/", origin), "b=2")
                try await session.expect(url("other.org", "/", origin), "none")
                var request = Request(url: try url("www.example.org", "/", origin))
                request.handlesCookies = false
                try await session.expect(request, "none")
                request.url = try url("third.org", "/set", origin)
                try await session.expect(request, "set")
                #expect(session.cookies?.all.count == 2)
            }
        }
    }

    @Test("the accept policies of the store and of a session apply (checklist 105, 25)")
    func policy() async throws {
        try await withCookieOrigin { origin, configuration in
            let store = CookieStore()
            var configuration = configuration
            configuration.cookies.storage = .store(store)
            var strict = configuration
            strict.cookies.acceptPolicy = .never
            try await withSession(configuration) { session in
                try await withSession(strict) { other in
                    try await other.expect(url("www.example.org", "/set", origin), "set")
                    #expect(store.all.isEmpty)
                    // Checklist 108: at once, for all users of the store.
                    store.acceptPolicy = .never
                    try await session.expect(url("www.example.org", "/set", origin), "set")
                    #expect(store.all.isEmpty)
                    store.acceptPolicy = .onlyFromMainDocument
                    var request = Request(url: try url("www.example.org", "/set", origin))
                    request.mainDocumentURL = try url("news.test", "/", origin)
                    try await session.expect(request, "set")
                    #expect(store.all.isEmpty)
                    request.mainDocumentURL = try url("example.org", "/x", origin)
                    try await session.expect(request, "set")
                    #expect(store.all.count == 2)
                    // Stored cookies are sent under any policy.
                    try await other.expect(url("www.example.org", "/", origin), "a=1; b=2")
                    request = Request(url: try url("www.example.org", "/", origin))
                    request.mainDocumentURL = try url("news.test", "/", origin)
                    try await session.expect(request, "none")
                }
            }
        }
    }

    @Test("a session with cookies disabled sends none (checklist 25)")
    func silent() async throws {
        try await withCookieOrigin { origin, configuration in
            var configuration = configuration
            configuration.cookies.sendsCookies = false
            try await withSession(configuration) { session in
                try await session.expect(url("www.example.org", "/set", origin), "set")
                try await session.expect(url("www.example.org", "/", origin), "none")
                #expect(session.cookies?.all.count == 2)
            }
            configuration.cookies.storage = .none
            try await withSession(configuration) { session in
                try await session.expect(url("www.example.org", "/set", origin), "set")
                #expect(session.cookies == nil)
            }
        }
    }

    @Test(
        "a caller's Cookie field is sent unchanged without the store's cookies, and dropped for another origin"
    )
    func explicit() async throws {
        try await withCookieOrigin { origin, configuration in
            let there = try url("www.example.org", "/away", origin)
            let third = try url("third.org", "/", origin)
            origin.route("/away") { _ in .redirect(third.absoluteString) }
            try await withSession(configuration) { session in
                try await session.expect(url("www.example.org", "/set", origin), "set")
                session.cookies?.set(["Set-Cookie": "t=3"], from: third)
                var request = Request(url: try url("www.example.org", "/", origin))
                request.headers[.cookie] = "mine=1"
                try await session.expect(request, "mine=1")
                request.url = there
                try await session.expect(request, "t=3")
            }
        }
    }

    @Test("cookies are stored from every hop and response: redirects, 401, 404; security 27")
    func hops() async throws {
        try await withCookieOrigin { origin, configuration in
            let (two, three) = (try url("two.org", "/2", origin), try url("www.example.org", "/end", origin))
            origin.route("/1") { _ in
                .status(.found, headers: ["Location": two.absoluteString, "Set-Cookie": "one=1; Path=/"])
            }
            origin.route("/2") {
                .status(
                    .found,
                    headers: [
                        "Location": three.absoluteString, "Set-Cookie": "two=\($0.headers[.cookie] ?? "none"); Path=/",
                    ])
            }
            origin.route("/end") { .ok($0.headers[.cookie] ?? "none") }
            origin.route("/login") {
                $0.headers[.authorization] == nil
                    ? .status(
                        .unauthorized, headers: ["WWW-Authenticate": "Basic realm=\"x\"", "Set-Cookie": "talk=1"])
                    : .ok($0.headers[.cookie] ?? "none")
            }
            origin.route("/lost") { _ in .status(.notFound, headers: ["Set-Cookie": "lost=1; Path=/"]) }
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "u", password: "p")) }
            try await withSession(configuration, decisions: decisions) { session in
                try await session.expect(url("www.example.org", "/1", origin), "one=1")
                try await session.expect(url("two.org", "/end", origin), "two=none")
                try await session.expect(url("auth.org", "/login", origin), "talk=1")
                _ = try await session.data(from: url("lost.org", "/lost", origin))
                // Security 27: matched by the URL's host, regardless of a Host field.
                var request = Request(url: try url("lost.org", "/end", origin))
                request.headers[.host] = "two.org"
                try await session.expect(request, "lost=1")
            }
        }
    }

    @Test("the length of a Cookie field is limited (security 25)")
    func fieldSize() async throws {
        try await withCookieOrigin { origin, configuration in
            try await withSession(configuration) { session in
                let store = try #require(session.cookies)
                let there = try url("www.example.org", "/", origin)
                for index in 0..<20 {
                    store.set(["Set-Cookie": "n\(index)=\(String(repeating: "v", count: 1000))"], from: there)
                }
                let sent = try await session.text(there)
                #expect(sent.utf8.count <= 8192 && sent.split(separator: ";").count == 8 && sent.hasPrefix("n0="))
            }
        }
    }

    @Test("no cookie of a server breaks a request (security 24)")
    func controls() async throws {
        try await withCookieOrigin { origin, configuration in
            origin.route("/raw") { _ in
                .raw([
                    """
                    HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: ok=\u{9}tab\u{9}; Path=/\r\n\
                    Set-Cookie: ü=ä; Path=/\r\n\r\n
                    """
                ])
            }
            try await withSession(configuration) { session in
                _ = try await session.data(from: url("www.example.org", "/raw", origin))
                try await session.expect(url("www.example.org", "/", origin), "ok=tab; ü=ä")
            }
        }
    }

    @Test("a session with a folder keeps cookies across sessions (checklist 2)")
    func persistent() async throws {
        let folder = try TemporaryFolder()
        try await withCookieOrigin { origin, configuration in
            var configuration = configuration
            configuration.cookies.storage = .store(CookieStore(directory: folder.url("s")))
            let there = try url("www.example.org", "/keep", origin)
            origin.route("/keep") { _ in
                .ok("kept", headers: ["Set-Cookie": "k=1; Path=/; Max-Age=100", "Set-Cookie": "s=1; Path=/"])
            }
            try await withSession(configuration) { session in
                try await session.expect(there, "kept")
                await session.cookies?.flush()
            }
            configuration.cookies.storage = .store(CookieStore(directory: folder.url("s")))
            try await withSession(configuration) { try await $0.expect(url("www.example.org", "/", origin), "k=1") }
        }
    }

    @Test("ephemeral sessions have private stores without a file, which end with them (checklist 3, 4, 18)")
    func ephemeral() async throws {
        try await withCookieOrigin { origin, configuration in
            let (one, two) = (Session(configuration), Session(configuration))
            let store = try #require(one.cookies)
            #expect(
                store !== two.cookies && store !== CookieStore.shared && one.hsts !== two.hsts)
            try await one.expect(url("www.example.org", "/set", origin), "set")
            try await two.expect(url("www.example.org", "/", origin), "none")
            #expect(store.all.count == 2 && "\(store)" == "2 cookies")
            await expectEmpty(one)
            #expect(store.all.isEmpty)
            two.invalidateAndCancel()
            // Checklist 110: other sessions share one store, of this user and program only.
            #expect(Session().cookies === CookieStore.shared && Session().hsts === HSTSStore.shared)
            #expect("\(CookieStore.shared)".hasSuffix("with a file"))
        }
    }

    @Test("64 loads at once through one store")
    func crowd() async throws {
        try await withCookieOrigin { origin, configuration in
            origin.route("/n/*") {
                .ok("", headers: ["Set-Cookie": "n\($0.target.split(separator: "/").last ?? "")=1; Path=/"])
            }
            var configuration = configuration
            configuration.connections.maximumPerHost = 8
            try await withSession(configuration) { session in
                let urls = try (0..<64).map { try url("www.example.org", "/n/\($0)", origin) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for url in urls { group.addTask { _ = try await session.data(from: url) } }
                    try await group.waitForAll()
                }
                let sent = try await session.text(url("www.example.org", "/", origin))
                #expect(sent.split(separator: ";").count == 64)
            }
        }
    }

    @Test("over TLS as well")
    func secure() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/set") { _ in
                .ok("set", headers: ["Set-Cookie": "__Host-a=1; Path=/; Secure", "Set-Cookie": "b=2; Path=/"])
            }
            origin.route("/") { .ok($0.headers[.cookie] ?? "none") }
            try await withSession(configuration) { session in
                try await session.expect(origin.url("/set"), "set")
                try await session.expect(origin.url("/"), "__Host-a=1; b=2")
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Security 72, checklist 18, 19, with a cache that others share: nothing of one user reaches it, so nothing reaches
/// another.
@Suite(.timeLimit(.minutes(4)))
struct ExternalCacheOwnerRows {
    private static let minute: Headers = [.cacheControl: "max-age=60"]

    /// A request field that names a user, with values for two.
    @Test(
        "a response to a field that names a user is not given to the store",
        arguments: [
            (FieldName.authorization, "Bearer a", "Bearer b"), (.authorization, "Basic YTpi", "Basic YTpj"),
            (.cookie, "sid=1", "sid=2"), (.host, "a.test", "b.test"),
        ], [true, false])
    func fields(_ field: (name: FieldName, one: String, other: String), _ isShared: Bool) async throws {
        let store = TestStore()
        try await withExternalRig(store, { $0.caching.external?.isShared = isShared }) { rig in
            rig.origin.route("/") { .ok($0.headers[field.name] ?? "none", headers: Self.minute) }
            for value in [field.one, field.other, field.one] {
                #expect(try await rig.get { $0.headers[field.name] = value } == "200 \(value) -")
                try await rig.settled()
            }
            #expect(store.values.isEmpty && rig.requests == 3)
            // The same as a field of the session.
            try await rig.beside(
                store,
                {
                    $0.caching.external?.isShared = isShared
                    $0.headers[field.name] = field.one
                }
            ) { other in
                #expect(try await other.get() == "200 \(field.one) -")
                try await other.settled()
            }
            #expect(store.values.isEmpty)
            // What has no user is stored, and not served to one.
            let plain = try await rig.get()
            try await rig.settled()
            #expect(store.values.count == 1)
            #expect(try await rig.get { $0.headers[field.name] = field.one } == "200 \(field.one) -")
            #expect(try await rig.get() == plain.replacing(" -", with: " 0"))
        }
    }

    @Test("a response obtained by a login, of a challenge, of a URL or with a bearer token, is not given to the store")
    func logins() async throws {
        let store = TestStore()
        var decisions = Decisions()
        decisions.challenge = Decision { _ in .use(Credential(user: "u", password: "p")) }
        try await withExternalRig(store, decisions: decisions) { rig in
            rig.origin.route("/*") { request in
                guard let words = request.headers[.authorization] else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
                }
                return .ok(words, headers: [.cacheControl: "public, max-age=60"])
            }
            // With `public` too: a login of the session is not a field that the caller has written.
            for _ in 0..<2 {
                #expect(try await rig.get() == "200 Basic dTpw -")
                try await rig.settled()
            }
            #expect(store.values.isEmpty)
            let tokens = try BearerTokens(for: [rig.origin.url().absoluteString], token: "t")
            try await rig.beside(store, { $0.authentication.bearer = tokens }) {
                #expect(try await $0.get() == "200 Bearer t -")
                try await $0.settled()
            }
            #expect(store.values.isEmpty)
            try await rig.beside(store) { other in
                let answer = try await other.get()
                #expect(answer.hasPrefix("401"))
            }
        }
    }

    @Test("a response to the cookies of a store, and one that sets a cookie, are not given to the external cache")
    func cookies() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/*") { request in
                var headers = Self.minute
                if request.path == "/sets" { headers[.setCookie] = "sid=7; Path=/" }
                return .ok(request.headers[.cookie] ?? "none", headers: headers)
            }
            #expect(try await rig.get("/sets") == "200 none -")
            try await rig.settled()
            #expect(store.values.isEmpty)
            #expect(try await rig.get() == "200 sid=7 -")
            try await rig.settled()
            #expect(store.values.isEmpty)
            try await rig.beside(store) { other in
                #expect(try await other.get() == "200 none -")
                try await other.settled()
                #expect(store.values.count == 1)
            }
        }
    }

    @Test("a response obtained with a client certificate, or over TLS that is weakened, is not given to the store")
    func certificates() async throws {
        try await withTrust(server: { tls, authority, _ in
            tls.clientRootsPEM = authority.pem
            tls.requiresClientCertificate = false
        }) { rig in
            rig.origin.route("/who") {
                .ok($0.tls?.clientSubject ?? "anonymous", headers: [.cacheControl: "public, max-age=600"])
            }
            let store = TestStore()
            let ada = try rig.authority.issue(.init(names: [], commonName: "ada", isForServers: false))
            let identity = try ClientIdentity(certificatePEM: ada.certificatePEM, keyPEM: ada.keyPEM)
            var decisions = Decisions()
            decisions.challenge = Decision {
                $0.clientCertificate == nil ? .performDefaultHandling : .present(identity)
            }
            func with(_ base: Configuration, _ change: (inout Configuration) -> Void = { _ in }) -> Configuration {
                var configuration = base
                configuration.caching.external = patient(store)
                change(&configuration)
                return configuration
            }
            try await withSession(with(rig.trusting), decisions: decisions) { session in
                try await session.expect(rig.origin.url("/who"), "CN=ada")
            }
            #expect(store.values.isEmpty)
            let concessions = try Configuration.TLS.UnsafeConcessions("other.test")
            for weakened in [
                with(rig.trusting) { $0.tls.unsafelySkipsVerification = true },
                with(rig.trusting) { $0.tls.unsafeConcessions = [concessions] },
            ] {
                try await withSession(weakened) { try await $0.expect(rig.origin.url("/who"), "anonymous") }
                #expect(store.values.isEmpty && store.state.value.lookUps == 1)
            }
            try await withSession(with(rig.strict), decisions: rig.accepting) { session in
                try await session.expect(rig.origin.url("/who"), "anonymous")
            }
            #expect(store.values.isEmpty)
            // Verified: stored for sessions with the same checks, and unknown to those with others.
            let requests = rig.origin.counts.requests
            for _ in 0..<2 {
                try await withSession(with(rig.trusting)) { try await $0.expect(rig.origin.url("/who"), "anonymous") }
            }
            #expect(store.values.count == 1 && rig.origin.counts.requests == requests + 1)
            try await withSession(with(rig.strict)) { session in
                await expectFailure(.certificateUntrusted) { try await session.text(rig.origin.url("/who")) }
            }
            // A session that decides about servers takes nothing of a server that it has not accepted.
            let refusing = rig.decision { _ in .rejectProtectionSpace }
            try await withSession(with(rig.trusting), decisions: refusing) { session in
                await expectFailure(.certificateRefused) { try await session.text(rig.origin.url("/who")) }
            }
        }
    }

    @Test("settings that weaken TLS end the use of the store while the session runs")
    func reloaded() async throws {
        try await withTrust { rig in
            rig.origin.route("/*") { .ok($0.path, headers: Self.minute) }
            let store = TestStore()
            var configuration = rig.trusting
            configuration.caching.external = patient(store)
            try await withSession(configuration) { session in
                try await session.expect(rig.origin.url("/a"), "/a")
                try await store.state.wait { $0.stored == 1 }
                var unchecked = rig.trusting.tls
                unchecked.unsafelySkipsVerification = true
                session.reloadTLS(unchecked)
                for path in ["/a", "/b"] { try await session.expect(rig.origin.url(path), path) }
                #expect(store.values.count == 1 && rig.origin.counts.requests == 3)
            }
        }
    }

    // MARK: Handlers

    private struct Page: ProtocolHandler {
        let policy: Response.StoragePolicy?
        /// Asks the next handler for its own answer.
        var asksNext = false
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            if asksNext { _ = try await client.next.load(request) }
            var response = Response(
                url: request.url, expectedLength: 4,
                http: HTTPHead(status: .ok, headers: [.cacheControl: "max-age=60"]))
            response.storagePolicy = policy
            return .response(response, data: Data("page".utf8))
        }
    }

    @Test(
        "a handler's response is given to the store if it says so, and if all that the handler received has no owner",
        arguments: [
            (.allowed, false, nil, true), (nil, false, nil, false), (.notAllowed, false, nil, false),
            (.allowedInMemoryOnly, false, nil, false), (.allowed, true, nil, true), (.allowed, true, "Bearer a", false),
        ] as [(Response.StoragePolicy?, Bool, String?, Bool)])
    func handlers(_ policy: Response.StoragePolicy?, _ asksNext: Bool, _ user: String?, _ isKept: Bool) async throws {
        let store = TestStore()
        try await withExternalRig(store, { $0.handlers = [Page(policy: policy, asksNext: asksNext)] }) { rig in
            rig.origin.route("/") { _ in .ok("x") }
            #expect(try await rig.get { $0.headers[.authorization] = user } == "200 page -")
            try await rig.settled()
            #expect(store.values.isEmpty == !isKept)
        }
    }

    // MARK: Shared caches

    /// Fields of a response, whether the request has Authorization, and whether it is kept in a shared store and in one
    /// of a single user.
    @Test(
        "a shared cache keeps what RFC 9111 §3 and §3.5 permit, and with isShared false what a private one may",
        arguments: [
            ("max-age=60", false, true, true), ("private, max-age=60", false, false, true),
            ("private=\"x-a\", max-age=60", false, false, true), ("public, max-age=60", false, true, true),
            ("no-store", false, false, false), ("s-maxage=60", false, true, false), ("", false, false, false),
            ("max-age=60", true, false, false), ("public, max-age=60", true, true, false),
            ("s-maxage=60", true, true, false), ("must-revalidate, max-age=60", true, false, false),
            ("private, s-maxage=60", true, false, false), ("max-age=60, s-maxage=0", false, false, true),
        ] as [(String, Bool, Bool, Bool)])
    func shared(_ control: String, _ hasUser: Bool, _ inShared: Bool, _ inOwn: Bool) async throws {
        for (isShared, isKept) in [(true, inShared), (false, inOwn)] {
            let store = TestStore()
            try await withExternalRig(store, { $0.caching.external?.isShared = isShared }) { rig in
                rig.origin.route("/") { _ in .ok("a", headers: control.isEmpty ? [:] : [.cacheControl: control]) }
                _ = try await rig.get { if hasUser { $0.headers[.authorization] = "Bearer a" } }
                try await rig.settled()
                #expect(store.values.isEmpty == !isKept, "\(control), shared: \(isShared)")
                // A cache with other rules has nothing of it.
                try await rig.beside(store, { $0.caching.external?.isShared = !isShared }) { other in
                    let answer = try await other.get()
                    #expect(answer.hasSuffix(" -"))
                }
            }
        }
    }

    @Test("s-maxage replaces max-age in a shared cache, and implies that a stale response is validated")
    func lifetimes() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in
                .ok(
                    counter.next("a"),
                    headers: [.cacheControl: "max-age=10, s-maxage=60, stale-while-revalidate=600"])
            }
            try await rig.expect("/", "200 a1 -", requests: 1)
            try await rig.settled()
            rig.clock.advance(30)
            try await rig.expect("/", "200 a1 30", requests: 1)
            rig.clock.advance(31)
            try await rig.expect("/", "200 a2 -", requests: 2)
        }
    }

    @Test("what the server lets everyone have is served to requests with Authorization, unless it varies by it")
    func everyone() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/*") { request in
                var headers: Headers = [.cacheControl: "public, max-age=60", .etag: "\"1\""]
                if request.path == "/varies" { headers[.vary] = "Authorization" }
                if request.headers.contains(.ifNoneMatch) { return .status(.notModified, headers: headers) }
                return .ok("a", headers: headers)
            }
            func expect(_ path: String, _ user: String?, _ text: String, requests: Int) async throws {
                try await rig.expect(path, text, requests: requests) { $0.headers[.authorization] = user }
                try await rig.settled()
            }
            try await expect("/", "Bearer a", "200 a -", requests: 1)
            for user in ["Bearer b", "Bearer a", nil] { try await expect("/", user, "200 a 0", requests: 1) }
            rig.clock.advance(100)
            // One user's validation renews it for the others.
            try await expect("/", "Bearer b", "200 a 0", requests: 2)
            try await expect("/", nil, "200 a 0", requests: 2)
            try await expect("/varies", "Bearer a", "200 a -", requests: 3)
            try await expect("/varies", "Bearer b", "200 a -", requests: 4)
            #expect(store.values.count == 1)
        }
    }
}

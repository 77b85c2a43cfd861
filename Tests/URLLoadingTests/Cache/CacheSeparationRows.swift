// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The properties of a request, besides its URL and the fields named by Vary, that separate stored responses.
@Suite(.timeLimit(.minutes(4)))
struct CacheSeparationRows {
    private func with(_ cache: ResponseCache, _ headers: Headers = [:]) -> Configuration {
        var configuration = Configuration.ephemeral
        (configuration.caching.store, configuration.headers) = (cache, headers)
        return configuration
    }

    /// Another session with the same cache, at the same time.
    private func beside(_ rig: CacheRig, _ headers: Headers = [:]) -> Configuration {
        var configuration = with(rig.cache, headers)
        configuration.wallClock = { rig.clock.now }
        return configuration
    }

    // MARK: Host

    @Test("a Host field separates stored responses, in a request and in a configuration (security 73)")
    func hosts() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { .ok($0.headers[.host] ?? "-", headers: [.cacheControl: "max-age=60"]) }
            let own = "127.0.0.1:\(rig.origin.port)"
            for age in ["-", "0"] {
                let requests = age == "0" ? 3 : nil
                for host in ["one.test", "two.test", nil] {
                    let text = try await rig.get { $0.headers[.host] = host }
                    #expect(text == "200 \(host ?? own) \(age)")
                }
                if let requests { #expect(rig.requests == requests) }
            }
            // The host of the URL, repeated and in other letter case.
            try await rig.expect("/", "200 \(own) 0", requests: 3) { $0.headers[.host] = own }
            try await rig.expect("/", "200 one.test 0", requests: 3) { $0.headers[.host] = "ONE.test" }
            try await withSession(beside(rig, [.host: "three.test"])) {
                try await $0.expect(rig.origin.url(), "three.test")
            }
            try await withSession(beside(rig)) { try await $0.expect(rig.origin.url(), own) }
            let plain = rig.cache.cachedResponse(for: Request(url: rig.origin.url()))
            #expect(plain?.data == Data(own.utf8))
        }
    }

    @Test(
        "an unsafe request with a Host field invalidates its responses, and those its Location names (RFC 9111 4.4)"
    )
    func invalidation() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/*") { request in
                guard request.method == .get else { return .ok("done", headers: [.location: "http://one.test/other"]) }
                return .ok(counter.next(request.path), headers: [.cacheControl: "max-age=60"])
            }
            for path in ["/", "/other", "/else"] { _ = try await rig.get(path) { $0.headers[.host] = "one.test" } }
            _ = try await rig.get { ($0.method, $0.headers[.host]) = (.post, "one.test") }
            for (path, text) in [("/", "200 /4 -"), ("/other", "200 /other5 -"), ("/else", "200 /else3 0")] {
                let answer = try await rig.get(path) { $0.headers[.host] = "one.test" }
                #expect(answer == text)
            }
        }
    }

    // MARK: Users

    @Test("a Cookie field separates users, in a request and in a configuration (security 72)")
    func cookies() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { .ok($0.headers[.cookie] ?? "no cookie", headers: [.cacheControl: "max-age=60"]) }
            for age in ["-", "0"] {
                for cookie in ["sid=1", "sid=2", nil] {
                    let text = try await rig.get { $0.headers[.cookie] = cookie }
                    #expect(text == "200 \(cookie ?? "no cookie") \(age)")
                }
            }
            #expect(rig.requests == 3)
            for sid in ["sid=3", "sid=4"] {
                try await withSession(beside(rig, [.cookie: sid])) { session in
                    for _ in 0..<2 { try await session.expect(rig.origin.url(), sid) }
                }
            }
            #expect(rig.requests == 5)
            try await withSession(beside(rig)) { try await $0.expect(rig.origin.url(), "no cookie") }
            #expect(rig.requests == 5)
            let plain = rig.cache.cachedResponse(for: Request(url: rig.origin.url()))
            #expect(plain?.data == Data("no cookie".utf8))
        }
    }

    @Test("a Cookie field named by Vary is matched, although the session has a cookie store (security 72)")
    func varyingCookie() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") {
                .ok($0.headers[.cookie] ?? "no cookie", headers: [.cacheControl: "max-age=60", .vary: "Cookie"])
            }
            try await withSession(beside(rig, [.cookie: "sid=3"])) { session in
                for _ in 0..<2 { try await session.expect(rig.origin.url(), "sid=3") }
            }
            #expect(rig.requests == 1)
        }
    }

    @Test("a 304 obtained with cookies or a login does not update a response stored for every session")
    func confirmedForOneUser() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                let user = request.headers[.cookie] ?? "no cookie"
                guard request.headers[.ifNoneMatch] == nil else {
                    return .status(
                        .notModified, headers: [.etag: "\"1\"", "X-User": user, .cacheControl: "max-age=600"])
                }
                return .ok("page", headers: [.etag: "\"1\"", "X-User": user, .cacheControl: "max-age=1"])
            }
            _ = try await rig.get()
            rig.clock.advance(10)
            var own = beside(rig)
            let store = CookieStore()
            store.set(try #require(Cookie(name: "user", value: "ada", domain: "127.0.0.1")))
            own.cookies.storage = .store(store)
            try await withSession(own) { try await $0.expect(rig.origin.url(), "page") }
            #expect(rig.origin.requests.last?.headers[.ifNoneMatch] == "\"1\"")
            let stored = rig.cache.cachedResponse(for: Request(url: rig.origin.url()))
            #expect(stored?.response.http?.headers["X-User"] == "no cookie")
        }
    }

    @Test("a response to a credential other than the URL's is not served to other sessions")
    func otherCredential() async throws {
        let netrc = temporaryURL("separation-rows")
        defer { try? FileManager.default.removeItem(at: netrc) }
        try Data("machine 127.0.0.1 login ada password p\n".utf8).write(to: netrc)
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                guard request.headers[.authorization] == "Basic " + Data("ada:p".utf8).base64EncodedString() else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
                }
                return .ok("secret", headers: [.cacheControl: "max-age=60"])
            }
            let target = try url("http://ada@127.0.0.1:\(rig.origin.port)/")
            var own = beside(rig)
            own.authentication.netrc = .file(netrc)
            try await withSession(own) { try await $0.expect(target, "secret") }
            try await withSession(beside(rig)) { session in
                let (_, response) = try await session.data(from: target)
                #expect(response.http?.status == .unauthorized)
            }
        }
    }

    // MARK: Codings

    @Test(
        "a response with an unknown coding is stored and served",
        arguments: ["identity", "aws-chunked", "unknown", "", "gzip, unknown"])
    func codings(_ coding: String) async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in
                .ok("as sent", headers: [.contentEncoding: coding, .cacheControl: "max-age=60"])
            }
            try await rig.expect("/", "200 as sent -", requests: 1)
            try await rig.expect("/", "200 as sent 0", requests: 1)
            try await rig.expect("/", "200 as sent 0", requests: 1) { $0.headers[.acceptEncoding] = "identity" }
        }
    }

    // MARK: Cookies in memory, and a cache without

    /// Records events.
    private final class Events: LoadObserver {
        let all = Held<[String]>([])
        func observe(_ event: LoadEvent, of load: LoadIdentity) { all.withLock { $0.append("\(event)") } }
        var words: [String] { all.withLock { $0 } }
    }

    @Test(
        "a disk-only cache reports that it does not store responses to cookies in memory, and stores others"
    )
    func diskOnly() async throws {
        let folder = temporaryURL("separation-disk")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            origin.route("/*") {
                .ok($0.headers[.cookie] ?? "no cookie", headers: [.cacheControl: "max-age=60", .setCookie: "sid=1"])
            }
            let cache = ResponseCache(memoryCapacity: 0, directory: folder)
            let events = Events()
            var configuration = with(cache)
            configuration.observers = [events]
            try await withSession(configuration) { session in
                try await session.expect(origin.url("/first"), "no cookie")
                #expect(cache.problem == nil)
                try await session.expect(origin.url("/second"), "sid=1")
                #expect(cache.problem != nil && events.words.contains { $0.hasPrefix("notStored") })
                var request = Request(url: origin.url("/third"))
                request.handlesCookies = false
                try await session.expect(request, "no cookie")
            }
            cache.flush()
            let kept = ["/first", "/second", "/third"].map {
                cache.cachedResponse(for: Request(url: origin.url($0))) != nil
            }
            #expect(kept == [true, false, true])
        }
    }
}

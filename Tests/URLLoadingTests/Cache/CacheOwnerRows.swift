// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Security 72, checklist 18, 19: sessions, tasks and users that share a cache are not served each other's responses.
@Suite(.timeLimit(.minutes(4)))
struct CacheOwnerRows {
    private func with(_ cache: ResponseCache, _ configuration: Configuration) -> Configuration {
        var configuration = configuration
        configuration.caching.store = cache
        return configuration
    }

    @Test("a response of a server trusted by a decision only is not served to other sessions")
    func forced() async throws {
        try await withTrust { rig in
            rig.origin.route("/") { _ in .ok("secret", headers: [.cacheControl: "max-age=600"]) }
            let cache = ResponseCache()
            try await withSession(with(cache, rig.strict), decisions: rig.accepting) {
                try await $0.expect(rig.origin.url(), "secret")
            }
            #expect(cache.memoryUsage == 0)
            try await withSession(with(cache, rig.strict)) { session in
                await expectFailure(.certificateUntrusted) { try await session.text(rig.origin.url()) }
            }
        }
    }

    @Test(
        "an unverified response, or one with other roots or addresses, serves only sessions that accept it"
    )
    func checks() async throws {
        try await withTrust { rig in
            rig.origin.route("/") { _ in .ok("secret", headers: [.cacheControl: "max-age=600"]) }
            let cache = ResponseCache()
            var unchecked = with(cache, rig.strict)
            unchecked.tls.unsafelySkipsVerification = true
            try await withSession(unchecked) { try await $0.expect(rig.origin.url(), "secret") }
            try await withSession(with(cache, rig.trusting)) { session in
                try await session.expect(rig.origin.url(), "secret")
                try await session.expect(rig.origin.url(), "secret")
            }
            #expect(rig.origin.counts.requests == 2)
            try await withSession(with(cache, rig.strict)) { session in
                await expectFailure(.certificateUntrusted) { try await session.text(rig.origin.url()) }
            }
            // The same verification in another session.
            try await withSession(with(cache, rig.trusting)) { try await $0.expect(rig.origin.url(), "secret") }
            #expect(rig.origin.counts.requests == 2)
        }
    }

    @Test("what is stored after reloadTLS belongs to the new checks, and what was stored before is not used")
    func reloaded() async throws {
        try await withTrust { rig in
            rig.origin.route("/*") { .ok($0.path, headers: [.cacheControl: "max-age=600"]) }
            let cache = ResponseCache()
            try await withSession(with(cache, rig.trusting)) { session in
                try await session.expect(rig.origin.url("/a"), "/a")
                var unchecked = rig.trusting.tls
                unchecked.unsafelySkipsVerification = true
                session.reloadTLS(unchecked)
                for path in ["/a", "/b"] { try await session.expect(rig.origin.url(path), path) }
                #expect(rig.origin.counts.requests == 3)
            }
            try await withSession(with(cache, rig.trusting)) { try await $0.expect(rig.origin.url("/b"), "/b") }
            #expect(rig.origin.counts.requests == 4)
        }
    }

    @Test("an answer over a connection with other checks than those at the beginning of its load is not stored")
    func reloadedMeanwhile() async throws {
        try await withTrust { rig in
            rig.origin.route("/") { _ in .ok("secret", headers: [.cacheControl: "max-age=600"]) }
            let cache = ResponseCache()
            let own = Held<Session?>(nil)
            var unchecked = rig.trusting.tls
            unchecked.unsafelySkipsVerification = true
            let renewed = unchecked
            // Asked before the connection is made, and after the cache.
            let reloading = with(cache, rig.trusting).with {
                $0.networks.addressPolicy = AddressPolicy { _ in
                    own.withLock { $0 }?.reloadTLS(renewed)
                    return true
                }
            }
            try await withSession(reloading) { session in
                own.withLock { $0 = session }
                defer { own.withLock { $0 = nil } }
                try await session.expect(rig.origin.url(), "secret")
            }
            #expect(cache.memoryUsage == 0)
            try await withSession(with(cache, rig.trusting)) { try await $0.expect(rig.origin.url(), "secret") }
            #expect(rig.origin.counts.requests == 2)
        }
    }

    @Test(
        "a session with a trust decision is not served responses of a server that it would refuse (security 72)"
    )
    func judged() async throws {
        try await withTrust { rig in
            rig.origin.route("/*") { .ok($0.path, headers: [.cacheControl: "max-age=600"]) }
            let cache = ResponseCache()
            try await withSession(with(cache, rig.trusting)) { session in
                for path in ["/a", "/b"] { try await session.expect(rig.origin.url(path), path) }
            }
            #expect(rig.origin.counts.requests == 2)
            let refusing = rig.decision { _ in .rejectProtectionSpace }
            try await withSession(with(cache, rig.trusting), decisions: refusing) { session in
                for _ in 0..<2 {
                    await expectFailure(.certificateRefused) { try await session.text(rig.origin.url("/a")) }
                }
            }
            // A load with its own decision, beside loads without one.
            try await withSession(with(cache, rig.trusting)) { session in
                await expectFailure(.certificateRefused) {
                    try await session.data(for: Request(url: rig.origin.url("/a")), decisions: refusing)
                }
                try await session.expect(rig.origin.url("/a"), "/a")
            }
            #expect(rig.origin.counts.requests == 2)
            // Once accepted, the server's responses are served, including those others stored with the same
            // certificate.
            for (decision, count) in [(rig.accepting, 3), (rig.decision { _ in .performDefaultHandling }, 4)] {
                try await withSession(with(cache, rig.trusting), decisions: decision) { session in
                    for path in ["/a", "/a", "/b"] { try await session.expect(rig.origin.url(path), path) }
                }
                #expect(rig.origin.counts.requests == count)
            }
        }
    }

    @Test("a stored response answers without a network, although no decision about its server can be called")
    func judgedOffline() async throws {
        try await withTrust { rig in
            rig.origin.route("/") { _ in .ok("kept", headers: [.cacheControl: "max-age=600"]) }
            let cache = ResponseCache()
            try await withSession(with(cache, rig.trusting)) { try await $0.expect(rig.origin.url(), "kept") }
            try await withSession(with(cache, rig.trusting), decisions: rig.accepting) { session in
                var request = Request(url: rig.origin.url())
                request.cachePolicy = .onlyIfCached
                try await session.expect(request, "kept")
            }
            #expect(rig.origin.counts.requests == 1)
        }
    }

    /// As if the response had come from a server with another certificate.
    private func exchangeServer(_ cache: ResponseCache, _ url: URL) throws {
        let key = try #require(CacheKey(Request(url: url)))
        var stored = try #require(cache.storage.variants(key).first)
        #expect((stored.varying[CacheOwner.server] ?? nil)?.utf8.count == 64)
        let body = try #require(cache.storage.body(stored)?.whole)
        cache.storage.remove(stored)
        stored.varying[CacheOwner.server] = .some("another")
        let isStored = cache.storage.store(stored, body: [UInt8](body))
        #expect(isStored)
    }

    @Test(
        "a response accepted with another certificate does not serve a session with a trust decision (security 72)"
    )
    func exchanged() async throws {
        try await withTrust { rig in
            rig.origin.route("/") { _ in .ok("true", headers: [.cacheControl: "max-age=600"]) }
            rig.origin.route("/old") { request in
                guard request.headers[.ifNoneMatch] == nil else {
                    return .status(.notModified, headers: [.etag: "\"1\""])
                }
                return .ok("old", headers: [.cacheControl: "max-age=0", .etag: "\"1\""])
            }
            let cache = ResponseCache()
            let url = rig.origin.url()
            try await withSession(with(cache, rig.trusting), decisions: rig.accepting) { session in
                try await session.expect(url, "true")
                try exchangeServer(cache, url)
                try await session.expect(url, "true")
                try await session.expect(url, "true")
            }
            #expect(rig.origin.counts.requests == 2)
            // A session without decisions is not served it either, and the combined result is not stored.
            let old = rig.origin.url("/old")
            try await withSession(with(cache, rig.trusting)) { session in
                try await session.expect(old, "old")
                try exchangeServer(cache, old)
                try await session.expect(old, "old")
                try await session.expect(old, "old")
            }
            let conditional = rig.origin.requests.filter { $0.path == "/old" }.map { $0.headers.contains(.ifNoneMatch) }
            #expect(conditional == [false, true, false])
        }
    }

    @Test("a response to a client certificate is not served to other sessions or other decisions (security 15, 72)")
    func certificates() async throws {
        try await withTrust(server: { tls, authority, _ in
            tls.clientRootsPEM = authority.pem
            tls.requiresClientCertificate = false
        }) { rig in
            rig.origin.route("/") { .ok($0.tls?.clientSubject ?? "anonymous", headers: [.cacheControl: "max-age=600"]) }
            let ada = try rig.authority.issue(.init(names: [], commonName: "ada", isForServers: false))
            let identity = try ClientIdentity(certificatePEM: ada.certificatePEM, keyPEM: ada.keyPEM)
            var decisions = Decisions()
            decisions.challenge = Decision {
                $0.clientCertificate == nil ? .performDefaultHandling : .present(identity)
            }
            let cache = ResponseCache()
            try await withSession(with(cache, rig.trusting), decisions: decisions) { session in
                try await session.expect(rig.origin.url(), "CN=ada")
                try await session.expect(rig.origin.url(), "CN=ada")
                #expect(rig.origin.counts.requests == 1)
            }
            try await withSession(with(cache, rig.trusting)) { try await $0.expect(rig.origin.url(), "anonymous") }
            try await apart(rig, decisions, cache)
        }
    }

    private func apart(_ rig: TrustRig, _ decisions: Decisions, _ cache: ResponseCache) async throws {
        rig.origin.route("/mine") { .ok($0.tls?.clientSubject ?? "anonymous", headers: [.cacheControl: "max-age=600"]) }
        let url = rig.origin.url("/mine")
        // A load with its own decision: its response is not served to loads without it.
        try await withSession(with(cache, rig.trusting)) { session in
            for _ in 0..<2 {
                let (data, _) = try await session.data(for: Request(url: url), decisions: decisions)
                #expect(String(decoding: data, as: UTF8.self) == "CN=ada")
            }
            try await session.expect(url, "anonymous")
        }
        var configured = with(cache, rig.trusting)
        let eve = try rig.authority.issue(.init(names: [], commonName: "eve", isForServers: false))
        configured.tls.clientIdentities = [
            try .init("*", try ClientIdentity(certificatePEM: eve.certificatePEM, keyPEM: eve.keyPEM))
        ]
        cache.removeAll()
        try await withSession(configured) { try await $0.expect(url, "CN=eve") }
        try await withSession(with(cache, rig.trusting)) { try await $0.expect(url, "anonymous") }
    }

    @Test(
        "tasks logged in as two users get their own responses, and a task without a login gets neither (checklist 19)")
    func people() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                guard let words = request.headers[.authorization] else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
                }
                return .ok(words, headers: [.cacheControl: "max-age=60"])
            }
            func load(_ user: String) async throws -> String {
                var decisions = Decisions()
                decisions.challenge = Decision { _ in .use(Credential(user: user, password: "p", persistence: .none)) }
                return String(
                    decoding: try await rig.session.data(for: Request(url: rig.origin.url("/")), decisions: decisions)
                        .0, as: UTF8.self)
            }
            let ada = try await load("ada")
            let eve = try await load("eve")
            #expect(ada != eve)
            let (_, response) = try await rig.session.data(from: rig.origin.url("/"))
            #expect(response.http?.status == .unauthorized)
        }
    }

    @Test("a response to the cookies of one store is served to sessions with that store (checklist 18)")
    func cookies() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok($0.headers[.cookie] ?? "anonymous", headers: [.cacheControl: "max-age=60"]) }
            let cache = ResponseCache()
            func configuration(_ user: String) throws -> Configuration {
                var configuration = with(cache, .ephemeral)
                let store = CookieStore()
                store.set(try #require(Cookie(name: "user", value: user, domain: "127.0.0.1")))
                configuration.cookies.storage = .store(store)
                return configuration
            }
            let ada = try configuration("ada")
            let eve = try configuration("eve")
            try await withSession(ada) { try await $0.expect(origin.url(), "user=ada") }
            try await withSession(eve) { try await $0.expect(origin.url(), "user=eve") }
            try await withSession(with(cache, .ephemeral)) { try await $0.expect(origin.url(), "anonymous") }
            #expect(origin.counts.requests == 3)
            try await withSession(ada) { try await $0.expect(origin.url(), "user=ada") }
            #expect(origin.counts.requests == 3)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Checklist 2-4, 18, 29, 90-103: the responses that a session stores and serves.
@Suite(.timeLimit(.minutes(4)))
struct CacheRows {
    @Test("a missing response is fetched, a fresh one answers, a stale one is validated (checklist 91, 96, 97)")
    func protocolPolicy() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/") { request in
                if request.headers[.ifNoneMatch] == "\"1\"" {
                    return .status(.notModified, headers: [.etag: "\"1\"", .cacheControl: "max-age=60", "X-New": "1"])
                }
                return .ok(counter.next("a"), headers: [.etag: "\"1\"", .cacheControl: "max-age=60"])
            }
            try await rig.expect("/", "200 a1 -", requests: 1)
            try await rig.expect("/", "200 a1 0", requests: 1)
            rig.clock.advance(59)
            try await rig.expect("/", "200 a1 59", requests: 1)
            rig.clock.advance(2)
            try await rig.expect("/", "200 a1 0", requests: 2)
            #expect(rig.origin.requests.last?.headers[.ifNoneMatch] == "\"1\"")
            rig.clock.advance(30)
            try await rig.expect("/", "200 a1 30", requests: 2)
            let (_, response) = try await rig.session.data(from: rig.origin.url("/"))
            #expect(response.http?.headers["X-New"] == "1")
        }
    }

    @Test("Last-Modified validates without an entity tag; a changed response replaces the stored one (RFC 9111 4.3.1)")
    func changed() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            let date = rig.clock.date(-1000)
            rig.origin.route("/") { _ in
                .ok(counter.next("a"), headers: [.lastModified: date, .cacheControl: "max-age=1"])
            }
            try await rig.expect("/", "200 a1 -", requests: 1)
            rig.clock.advance(5)
            try await rig.expect("/", "200 a2 -", requests: 2)
            #expect(rig.origin.requests.last?.headers[.ifModifiedSince] == date)
            try await rig.expect("/", "200 a2 0", requests: 2)
        }
    }

    @Test("a 304 for another representation does not freshen the stored one (RFC 9111 4.3.4)")
    func foreign304() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/") { request in
                request.headers.contains(.ifNoneMatch)
                    ? .status(.notModified, headers: [.etag: "\"other\""])
                    : .ok(counter.next("a"), headers: [.etag: "\"1\""])
            }
            try await rig.expect("/", "200 a1 -", requests: 1)
            try await rig.expect("/", "200 a2 -", requests: 3)
        }
    }

    @Test("the policies reload, prefer the stored response, or use only the stored response (checklist 92-94)")
    func policies() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"]) }
            await expectFailure(.notInCache, .local, .preparing) {
                try await rig.get { $0.cachePolicy = .onlyIfCached }
            }
            await expectFailure(.notInCache) { try await rig.get { $0.headers[.cacheControl] = "only-if-cached" } }
            #expect(rig.requests == 0)
            try await rig.expect("/", "200 a1 -", requests: 1) { $0.cachePolicy = .cacheElseLoad }
            try await rig.expect("/", "200 a2 -", requests: 2) { $0.cachePolicy = .reload }
            #expect(rig.origin.requests.last?.headers.contains(.cacheControl) == false)
            try await rig.expect("/", "200 a2 0", requests: 2)
            try await rig.expect("/", "200 a3 -", requests: 3) { $0.cachePolicy = .reloadIgnoringCaches }
            #expect(
                rig.origin.requests.last?.headers[.cacheControl] == "no-cache"
                    && rig.origin.requests.last?.headers[.pragma] == "no-cache")
            rig.clock.advance(1000)
            try await rig.expect("/", "200 a3 1000", requests: 3) { $0.cachePolicy = .onlyIfCached }
            try await rig.expect("/", "200 a3 1000", requests: 3) { $0.cachePolicy = .cacheElseLoad }
            try await rig.expect("/", "200 a4 -", requests: 4)
        }
    }

    @Test(
        "a reload sends its directives to intermediate caches, with and without a stored response (RFC 9111 5.2.1.1)",
        arguments: [false, true])
    func revalidationIsSaid(_ isConfigured: Bool) async throws {
        func ask(_ request: inout Request) { if !isConfigured { request.cachePolicy = .revalidate } }
        try await withCacheRig({ if isConfigured { $0.caching.policy = .revalidate } }) { rig in
            rig.origin.route("/") {
                $0.headers[.ifNoneMatch] == nil
                    ? .ok("a", headers: [.etag: "\"1\"", .cacheControl: "max-age=60"]) : .status(.notModified)
            }
            rig.origin.route("/post") { _ in .ok("b") }
            func said() -> [String?] {
                rig.origin.requests.last.map { [$0.headers[.cacheControl], $0.headers[.ifNoneMatch]] } ?? []
            }
            try await rig.expect("/", "200 a -", requests: 1) { ask(&$0) }
            #expect(said() == ["max-age=0", nil])
            try await rig.expect("/", "200 a 0", requests: 2) { ask(&$0) }
            #expect(said() == ["max-age=0", "\"1\""])
            // The caller's own field stays.
            try await rig.expect("/", "200 a 0", requests: 3) {
                ask(&$0)
                $0.headers[.cacheControl] = "no-transform"
            }
            #expect(said() == ["no-transform", "\"1\""])
            try await rig.expect("/post", "200 b -", requests: 4) {
                ask(&$0)
                $0.method = .post
            }
            #expect(said() == ["max-age=0", nil])
            var configuration = Configuration.ephemeral
            configuration.caching.store = nil
            if isConfigured { configuration.caching.policy = .revalidate }
            try await withSession(configuration) { session in
                var request = Request(url: rig.origin.url())
                ask(&request)
                _ = try await session.data(for: request)
            }
            #expect(said() == ["max-age=0", nil])
        }
    }

    @Test("a background revalidation does not force intermediate caches to revalidate (RFC 5861 3)")
    func aBackgroundRevalidationDoesNotForceIntermediateCachesToRevalidate() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in
                .ok("a", headers: [.etag: "\"1\"", .cacheControl: "max-age=1, stale-while-revalidate=60"])
            }
            try await rig.expect("/", "200 a -", requests: 1)
            rig.clock.advance(10)
            _ = try await rig.get("/")
            try await rig.origin.wait { $0.requests == 2 }
            #expect(
                rig.origin.requests.last?.headers[.cacheControl] == nil
                    && rig.origin.requests.last?.headers[.ifNoneMatch] == "\"1\"")
        }
    }

    @Test("the session's policy applies to requests without one (checklist 29, 102)")
    func configuredPolicy() async throws {
        try await withCacheRig({ $0.caching.policy = .cacheElseLoad }) { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in .ok(counter.next("a")) }
            try await rig.expect("/", "200 a1 -", requests: 1)
            rig.clock.advance(10_000)
            try await rig.expect("/", "200 a1 10000", requests: 1)
            try await rig.expect("/", "200 a2 -", requests: 2) { $0.cachePolicy = .useProtocol }
            try await rig.expect("/", "200 a2 0", requests: 2)
        }
    }

    @Test("a response without freshness and validator is stored for loads that accept any age (checklist 93)")
    func anyAge() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in .ok("a") }
            for count in 1...2 { try await rig.expect("/", "200 a -", requests: count) }
            await expectFailure(.notInCache) { try await rig.get("/") { $0.cachePolicy = .onlyIfCached } }
            #expect(rig.cache.memoryUsage == 0)
            try await rig.expect("/", "200 a -", requests: 3) { $0.cachePolicy = .cacheElseLoad }
            try await rig.expect("/", "200 a 0", requests: 3) { $0.cachePolicy = .cacheElseLoad }
            try await rig.expect("/", "200 a 0", requests: 3) { $0.cachePolicy = .onlyIfCached }
            for (path, directive) in [("/stale", "max-stale"), ("/failing", "stale-if-error=60")] {
                rig.origin.route(path) { _ in .ok("a") }
                let count = rig.requests + 1
                try await rig.expect(path, "200 a -", requests: count) { $0.headers[.cacheControl] = directive }
                try await rig.expect(path, "200 a 0", requests: count) { $0.cachePolicy = .onlyIfCached }
            }
            let count = rig.requests + 1
            rig.origin.route("/no") { _ in .ok("a", headers: [.cacheControl: "no-store"]) }
            try await rig.expect("/no", "200 a -", requests: count)
            await expectFailure(.notInCache) { try await rig.get("/no") { $0.cachePolicy = .onlyIfCached } }
        }
    }

    @Test("a session may store what only loads of any age can use")
    func storedForAnyAge() async throws {
        try await withCacheRig({ $0.caching.storesForAnyAge = true }) { rig in
            rig.origin.route("/") { _ in .ok("a") }
            for count in 1...2 { try await rig.expect("/", "200 a -", requests: count) }
            try await rig.expect("/", "200 a 0", requests: 2) { $0.cachePolicy = .onlyIfCached }
            try await rig.expect("/", "200 a 0", requests: 2) { $0.cachePolicy = .cacheElseLoad }
        }
    }

    @Test("a response that is not stored because nothing could use it ends the use of the one before it")
    func unusable() async throws {
        try await withCacheRig { rig in
            for (path, status) in [("/", Status.ok), ("/gone", .notFound)] {
                let counter = Counter()
                rig.origin.route(path) { _ in
                    let text = counter.next("a")
                    return text == "a1"
                        ? .ok(text, headers: [.cacheControl: "max-age=60"])
                        : .status(status, body: .bytes(Array(text.utf8)))
                }
                let count = rig.requests + 1
                try await rig.expect(path, "200 a1 -", requests: count)
                try await rig.expect(path, "200 a1 0", requests: count)
                try await rig.expect(path, "\(status.code) a2 -", requests: count + 1) { $0.cachePolicy = .reload }
                try await rig.expect(path, "\(status.code) a3 -", requests: count + 2)
                await expectFailure(.notInCache) { try await rig.get(path) { $0.cachePolicy = .onlyIfCached } }
            }
            #expect(rig.cache.memoryUsage == 0)
        }
    }

    @Test("a response that may be served stale is stored without a lifetime (RFC 5861)")
    func staleOnly() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in .ok("a", headers: [.cacheControl: "max-age=0, stale-while-revalidate=60"]) }
            try await rig.expect("/", "200 a -", requests: 1)
            let answer = try await rig.get("/")
            #expect(answer == "200 a 0")
        }
    }

    @Test("only http and https are cached; handlers and other schemes are not (checklist 95)")
    func otherSchemes() async throws {
        try await withCacheRig { rig in
            for policy in [Request.CachePolicy.useProtocol, .onlyIfCached] {
                var request = Request(url: try url("data:,abc"))
                request.cachePolicy = policy
                try await rig.session.expect(request, "abc")
            }
            #expect(rig.cache.memoryUsage == 0)
        }
    }

    @Test("variants are stored side by side, and session defaults count (RFC 9111 4.1)")
    func variants() async throws {
        try await withCacheRig({ $0.headers[.acceptLanguage] = "de" }) { rig in
            let counter = Counter()
            rig.origin.route("/") { request in
                .ok(
                    counter.next(request.headers[.acceptLanguage] ?? "-"),
                    headers: [.vary: "Accept-Language, Accept-Encoding", .cacheControl: "max-age=60"])
            }
            try await rig.expect("/", "200 de1 -", requests: 1)
            try await rig.expect("/", "200 fr2 -", requests: 2) { $0.headers[.acceptLanguage] = "fr" }
            try await rig.expect("/", "200 de1 0", requests: 2)
            try await rig.expect("/", "200 de1 0", requests: 2) { $0.headers[.acceptLanguage] = "de" }
            try await rig.expect("/", "200 fr2 0", requests: 2) { $0.headers[.acceptLanguage] = "fr" }
            try await rig.expect("/", "200 de3 -", requests: 3) { $0.headers[.acceptEncoding] = "identity" }
        }
    }

    @Test("a response to a credential is not served to other users or without one (security 72)")
    func identities() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") {
                .ok($0.headers[.authorization] ?? "anonymous", headers: [.cacheControl: "max-age=60"])
            }
            try await rig.expect("/", "200 anonymous -", requests: 1)
            try await rig.expect("/", "200 Bearer a -", requests: 2) { $0.headers[.authorization] = "Bearer a" }
            try await rig.expect("/", "200 Bearer b -", requests: 3) { $0.headers[.authorization] = "Bearer b" }
            try await rig.expect("/", "200 Bearer a 0", requests: 3) { $0.headers[.authorization] = "Bearer a" }
            try await rig.expect("/", "200 anonymous 0", requests: 3)
            #expect(rig.cache.cachedResponse(for: Request(url: rig.origin.url("/")))?.data == Data("anonymous".utf8))
        }
    }

    @Test("a response obtained by a session's login is served to that session only (security 72)")
    func logins() async throws {
        try await withCacheRig({ $0.authentication.credentialStore = CredentialStore() }) { rig in
            let counter = Counter()
            rig.origin.route("/") { request in
                request.headers.contains(.authorization)
                    ? .ok(counter.next("secret"), headers: [.cacheControl: "max-age=60"])
                    : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
            }
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "u", password: "p")) }
            let (data, _) = try await rig.session.data(for: Request(url: rig.origin.url("/")), decisions: decisions)
            #expect(data == Data("secret1".utf8))
            try await rig.expect("/", "200 secret1 0", requests: 2)
            var other = Configuration.ephemeral
            other.caching.store = rig.cache
            let clock = rig.clock
            other.wallClock = { clock.now }
            try await withSession(other) { session in
                let (_, response) = try await session.data(from: rig.origin.url("/"))
                #expect(response.http?.status == .unauthorized)
            }
        }
    }

    @Test("an unsafe request makes the next GET load anew (RFC 9111 4.4)")
    func invalidation() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/*") { request in
                guard request.method == .get else {
                    return .status(request.target == "/bad" ? .internalServerError : .ok, headers: [.location: "/b"])
                }
                return .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"])
            }
            try await rig.expect("/a", "200 a1 -", requests: 1)
            try await rig.expect("/b", "200 a2 -", requests: 2)
            try await rig.expect("/bad", "200 a3 -", requests: 3)
            _ = try await rig.get("/a") { $0.method = .post }
            _ = try? await rig.get("/bad") { $0.method = .post }
            try await rig.expect("/a", "200 a4 -", requests: 6)
            try await rig.expect("/b", "200 a5 -", requests: 7)
            try await rig.expect("/bad", "200 a3 0", requests: 7)
        }
    }

    @Test("a stored GET answers HEAD, and a HEAD response updates it (RFC 9111 4.3.5)")
    func head() async throws {
        try await withCacheRig { rig in
            let tag = Held("\"1\"")
            rig.origin.route("/") { request in
                .ok(
                    "abc",
                    headers: [.etag: tag.withLock { $0 }, .cacheControl: "max-age=60", "X-N": request.method.rawValue])
            }
            try await rig.expect("/", "200 abc -", requests: 1)
            try await rig.expect("/", "200  0", requests: 1) { $0.method = .head }
            rig.clock.advance(30)
            // Sent without a condition, because its response updates the stored GET.
            try await rig.expect("/", "200  -", requests: 2) { ($0.method, $0.cachePolicy) = (.head, .reload) }
            try await rig.expect("/", "200 abc 0", requests: 2)
            tag.withLock { $0 = "\"2\"" }
            try await rig.expect("/", "200  -", requests: 3) { ($0.method, $0.cachePolicy) = (.head, .reload) }
            try await rig.expect("/", "200 abc -", requests: 4)
        }
    }

    @Test("permanent redirects are stored, others if they allow it, and followed from the cache (RFC 9110 15.4)")
    func redirects() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/end") { _ in .ok("end", headers: [.cacheControl: "max-age=60"]) }
            rig.origin.route("/301") { _ in
                .status(.movedPermanently, headers: [.location: "/end"], body: .bytes(Array("moved".utf8)))
            }
            rig.origin.route("/302") { _ in .status(.found, headers: [.location: "/end"]) }
            rig.origin.route("/307") { _ in
                .status(.temporaryRedirect, headers: [.location: "/end", .cacheControl: "max-age=5"])
            }
            try await rig.expect("/301", "200 end -", requests: 2)
            try await rig.expect("/301", "200 end 0", requests: 2)
            try await rig.expect("/302", "200 end 0", requests: 3)
            try await rig.expect("/302", "200 end 0", requests: 4)
            try await rig.expect("/307", "200 end 0", requests: 5)
            try await rig.expect("/307", "200 end 0", requests: 5)
            rig.clock.advance(6)
            try await rig.expect("/307", "200 end 6", requests: 6)
        }
    }

    @Test("the wait before a retry does not add to the age of the response (RFC 9111 §4.2.3)")
    func retried() async throws {
        let time = ManualClock()
        try await withCacheRig({ configuration in
            configuration.use(time)
            configuration.retries.policy = RetryPolicy()
            configuration.retries.policy?.statuses = [.serviceUnavailable]
        }) { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in
                counter.next() == "1"
                    ? .status(.serviceUnavailable, headers: [.retryAfter: "30"])
                    : .ok("a", headers: [.cacheControl: "max-age=20"])
            }
            let first = Task { try await rig.get("/") }
            try await time.untilSleeping()
            // Longer than asked for, because the delay is lengthened at random.
            rig.clock.advance(60)
            time.advance(by: .seconds(60))
            #expect(try await first.value == "200 a -")
            try await rig.expect("/", "200 a 0", requests: 2)
        }
    }

    @Test("a redirect whose body is faulty or late is followed, and not stored")
    func redirectsWithoutBody() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/end") { _ in .ok("end", headers: [.cacheControl: "max-age=60"]) }
            rig.origin.route("/coding") { _ in
                .status(
                    .movedPermanently, headers: [.location: "/end", .contentEncoding: "gzip"],
                    body: .bytes(Array("plain".utf8)))
            }
            rig.origin.route("/truncated") { _ in
                .status(
                    .movedPermanently, headers: [.location: "/end"], body: .declared(100, bytes: Array("begin".utf8)))
            }
            rig.origin.route("/stalled", faults: [.init(.responseBody(after: 2), .stall)]) { _ in
                .status(.movedPermanently, headers: [.location: "/end"], body: .chunks(["moved"]))
            }
            try await rig.expect("/coding", "200 end -", requests: 2)
            try await rig.expect("/coding", "200 end 0", requests: 3)
            try await rig.expect("/truncated", "200 end 0", requests: 4)
            try await rig.expect("/truncated", "200 end 0", requests: 5)
            try await rig.expect("/stalled", "200 end 0", requests: 6)
            try await rig.expect("/stalled", "200 end 0", requests: 7)
        }
    }

    @Test("a redirect whose HTTP/2 stream is reset after its head is followed")
    func redirectsThatAreReset() async throws {
        try await withHTTP2 { server, session in
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.respond(
                    to: first.stream, .movedPermanently, [.location: "/end"], endStream: false)
                try await peer.reset(first.stream, .cancel)
                let second = try await peer.expectRequest()
                try await peer.respond(to: second.stream, body: Array("end".utf8))
            }
            try await session.expect(server.url("/"), "end")
        }
    }

    @Test("the certificates that decisions accepted are remembered within limits")
    func accepted() throws {
        let cache = try #require(SessionCache.make(.ephemeral))
        let origin = try Origin(scheme: "https", host: Origin.Host("a.example"))
        let peer = TLSPeer(TLSPeerName(origin.host), port: origin.port)
        for group in 0..<5_000 { cache.recordAccepted("a", of: peer, by: group) }
        #expect(cache.acceptedCertificates(by: 0, origin).isEmpty)
        #expect(cache.acceptedCertificates(by: 4_999, origin) == ["a"])
        for number in 0..<1_000 { cache.recordAccepted("\(number)", of: peer, by: 4_999) }
        #expect(cache.acceptedCertificates(by: 4_999, origin).count <= 16)
    }

    @Test("encoded content is stored as it is delivered; a caller that requests a coding gets it")
    func codings() async throws {
        try await withCacheRig { rig in
            let coded = Compressed.gzip(Array("expanded".utf8))
            rig.origin.route("/") { _ in
                .ok(.bytes(coded), headers: [.contentEncoding: "gzip", .cacheControl: "max-age=60"])
            }
            try await rig.expect("/", "200 expanded -", requests: 1)
            try await rig.expect("/", "200 expanded 0", requests: 1)
            var request = Request(url: rig.origin.url("/"), headers: [.acceptEncoding: "gzip"])
            let (raw, _) = try await rig.session.data(for: request)
            #expect([UInt8](raw) == coded && rig.requests == 2)
            // Ranges are served only from bodies that were stored with their content coding.
            request.headers[.range] = "bytes=0-1"
            let (part, _) = try await rig.session.data(for: request)
            #expect([UInt8](part) == Array(coded[..<2]) && rig.requests == 2)
            try await rig.expect("/", "200 expanded -", requests: 3)
        }
    }

    @Test("a range of a complete stored response is served (RFC 9110 14)")
    func parts() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in .ok("0123456789", headers: [.etag: "\"1\"", .cacheControl: "max-age=60"]) }
            try await rig.expect("/", "200 0123456789 -", requests: 1)
            try await rig.expect("/", "206 234 0", requests: 1) { $0.headers[.range] = "bytes=2-4" }
            try await rig.expect("/", "206 89 0", requests: 1) { $0.headers[.range] = "bytes=-2" }
            let (_, response) = try await rig.session.data(
                for: Request(url: rig.origin.url("/"), headers: [.range: "bytes=8-"]))
            #expect(response.http?.headers[.contentRange] == "bytes 8-9/10" && response.expectedLength == 2)
            try await rig.expect("/", "200 0123456789 0", requests: 1)
        }
    }

    @Test("an ephemeral session's cache is private, and deleted with it (checklist 3, 4, 18)")
    func ephemeral() async throws {
        try await withHTTPTestServer { origin in
            let counter = Counter()
            origin.route("/") { _ in .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"]) }
            let first = Session(.ephemeral)
            let second = Session(.ephemeral)
            try await first.expect(origin.url("/"), "a1")
            try await first.expect(origin.url("/"), "a1")
            try await second.expect(origin.url("/"), "a2")
            let cache = try #require(first.core.cache)
            let key = try #require(CacheKey(Request(url: origin.url("/"))))
            #expect(cache.storage.variantsNow(key)?.count == 1)
            first.finishTasksAndInvalidate()
            await first.invalidated()
            #expect(cache.storage.variantsNow(key)?.isEmpty == true)
            try await second.expect(origin.url("/"), "a2")
            second.invalidateAndCancel()
            var configuration = Configuration.ephemeral
            configuration.caching.usesMemoryStore = false
            #expect(Session(configuration).core.cache == nil)
        }
    }

    @Test("sessions share a cache, or have private ones (checklist 18, 29)")
    func sharing() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"]) }
            try await rig.expect("/", "200 a1 -", requests: 1)
            var configuration = rig.session.configuration
            try await withSession(configuration) { try await $0.expect(rig.origin.url("/"), "a1") }
            configuration.caching.store = ResponseCache(memoryCapacity: 1 << 20)
            try await withSession(configuration) { try await $0.expect(rig.origin.url("/"), "a2") }
            configuration.caching.store = ResponseCache(memoryCapacity: 0)
            try await withSession(configuration) { session in
                try await session.expect(rig.origin.url("/"), "a3")
                try await session.expect(rig.origin.url("/"), "a4")
            }
        }
    }

    @Test("looked up, stored and removed by request (checklist 103, 101)")
    func byRequest() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in .ok("network", headers: [.cacheControl: "max-age=60"]) }
            let request = Request(url: rig.origin.url("/"))
            let head = HTTPHead(status: .ok, headers: [.cacheControl: "max-age=60", .date: rig.clock.date()])
            let entry = CachedResponse(
                response: Response(url: request.url, http: head), data: Data("own".utf8), userInfo: Data("info".utf8))
            #expect(rig.cache.store(entry, for: request))
            #expect(rig.cache.cachedResponse(for: request)?.userInfo == Data("info".utf8))
            let own = try await rig.get { $0.cachePolicy = .cacheElseLoad }
            #expect(own.hasPrefix("200 own") && rig.requests == 0)
            rig.cache.remove(for: request)
            #expect(rig.cache.cachedResponse(for: request) == nil)
            try await rig.expect("/", "200 network -", requests: 1)
            #expect(rig.cache.cachedResponse(for: request)?.data == Data("network".utf8))
        }
    }
}

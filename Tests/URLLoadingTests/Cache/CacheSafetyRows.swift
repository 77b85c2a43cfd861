// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Responses that must not be stored are not, and removed ones do not return.
@Suite(.timeLimit(.minutes(4)))
struct CacheSafetyRows {
    @Test("a partial body is not stored behind a decision about storing (checklist 98, 99)")
    func beginnings() async throws {
        var decisions = Decisions()
        decisions.cache = Decision { _ in .skip }
        try await withCacheRig(decisions: decisions) { rig in
            rig.origin.route("/") { _ in
                .status(
                    .partialContent,
                    headers: [.contentRange: "bytes 0-3/4", .etag: "\"1\"", .cacheControl: "max-age=60"],
                    body: .bytes(Array("abcd".utf8)))
            }
            _ = try await rig.get { $0.headers[.range] = "bytes=0-" }
            #expect(rig.cache.memoryUsage == 0)
        }
    }

    @Test("a background revalidation calls the storing decision, too (RFC 5861 3) (checklist 99)")
    func refreshes() async throws {
        var decisions = Decisions()
        let asked = Counter()
        decisions.cache = Decision { entry in
            var entry = entry
            entry.data = Data(asked.next("clean").utf8)
            return .instead(entry)
        }
        try await withCacheRig(decisions: decisions) { rig in
            rig.origin.route("/") { _ in
                .ok("secret", headers: [.cacheControl: "max-age=1, stale-while-revalidate=100"])
            }
            try await rig.expect("/", "200 secret -", requests: 1)
            rig.clock.advance(5)
            let stale = try await rig.get()
            #expect(stale == "200 clean1 5")
            let request = Request(url: rig.origin.url("/"))
            try await rig.origin.wait { $0.answered == 2 }
            try await rig.session.eventuallyLoads { $0 == 0 }
            #expect(rig.cache.cachedResponse(for: request)?.data == Data("clean2".utf8))
        }
    }

    @Test(
        "a response requested before an invalidation is not stored after it (RFC 9111 4.4)", arguments: [true, false])
    func underWay(_ removesAll: Bool) async throws {
        try await withCacheRig { rig in
            let latch = Latch()
            let came = Latch()
            let counter = Counter()
            rig.origin.route("/") { request in
                guard request.method == .get else { return .ok("done") }
                let text = counter.next("a")
                if text == "a1" {
                    came.open()
                    await latch.wait()
                }
                return .ok(text, headers: [.cacheControl: "max-age=600"])
            }
            async let first = rig.get()
            await came.wait()
            if removesAll { rig.cache.removeAll() } else { _ = try await rig.get { $0.method = .post } }
            latch.open()
            _ = try await first
            let second = try await rig.get()
            #expect(second == "200 a2 -")
        }
    }

    @Test("immutable does not override no-cache (RFC 8246)")
    func immutable() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in
                .ok("a", headers: [.etag: "\"1\"", .cacheControl: "max-age=600, immutable, no-cache"])
            }
            for _ in 0..<2 { _ = try await rig.get() }
            _ = try await rig.get { $0.cachePolicy = .revalidate }
            _ = try await rig.get { $0.headers[.cacheControl] = "max-age=0" }
            #expect(rig.requests == 4)
        }
    }

    @Test("an altered response states its new length")
    func lengths() async throws {
        var decisions = Decisions()
        decisions.cache = Decision { entry in
            var entry = entry
            entry.data = Data("xy".utf8)
            return .instead(entry)
        }
        try await withCacheRig(decisions: decisions) { rig in
            rig.origin.route("/") { _ in .ok("secret", headers: [.cacheControl: "max-age=100"]) }
            _ = try await rig.get()
            let (data, response) = try await rig.session.data(from: rig.origin.url("/"))
            #expect(data.count == 2 && response.http?.headers[.contentLength] == "2")
        }
    }

    @Test(
        "a 304 or HEAD response with no-store removes the stored response (RFC 9111 §5.2.2.5)",
        arguments: [Method.get, .head])
    func forbidden(_ method: Method) async throws {
        try await withCacheRig { rig in
            let date = rig.clock.date(-1_000_000)
            rig.origin.route("/") { request in
                if request.headers.contains(.ifModifiedSince) {
                    return .status(.notModified, headers: [.cacheControl: "no-store"])
                }
                let control = request.method == .head ? "no-store" : "max-age=1"
                return .ok("a", headers: [.lastModified: date, .cacheControl: control])
            }
            _ = try await rig.get()
            rig.clock.advance(10)
            _ = try await rig.get { if method == .head { ($0.method, $0.cachePolicy) = (.head, .reload) } }
            #expect(rig.cache.memoryUsage == 0)
            _ = try await rig.get()
            #expect(rig.requests == 3)
        }
    }

    @Test("a 304 that adds Vary does not answer other requests (RFC 9111 4.1)")
    func varies() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                if request.headers.contains(.ifNoneMatch) {
                    return .status(
                        .notModified, headers: [.etag: "\"1\"", .vary: "Accept-Language", .cacheControl: "max-age=100"])
                }
                return .ok(
                    request.headers[.acceptLanguage] ?? "-", headers: [.etag: "\"1\"", .cacheControl: "max-age=1"])
            }
            _ = try await rig.get { $0.headers[.acceptLanguage] = "de" }
            rig.clock.advance(10)
            _ = try await rig.get { $0.headers[.acceptLanguage] = "de" }
            let french = try await rig.get { $0.headers[.acceptLanguage] = "fr" }
            #expect(french == "200 fr -")
        }
    }

    @Test("the number of variants of a key is limited")
    func variants() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { .ok($0.headers["X"] ?? "", headers: [.vary: "X", .cacheControl: "max-age=60"]) }
            for number in 0..<40 { _ = try await rig.get { $0.headers["X"] = "\(number)" } }
            let key = try #require(CacheKey(Request(url: rig.origin.url("/"))))
            #expect(rig.cache.storage.variants(key).count == MemoryTable.maximumVariants)
            try await rig.expect("/", "200 39 0", requests: 40) { $0.headers["X"] = "39" }
        }
    }
}

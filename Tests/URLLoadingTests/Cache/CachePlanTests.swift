// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingWire

@testable import URLLoading

/// The plan as a pure function: RFC 9111 §3, §4, §5, RFC 5861, RFC 8246.
@Suite struct CachePlanTests {
    static let now = 1_800_000_000.0

    static func date(_ offset: Double) -> String { HTTPDate(secondsSince1970: Int64(now + offset)).description }

    func stored(_ headers: Headers, _ status: Status = .ok, ago: Double = 0, delay: Double = 0, length: Int64 = 3)
        -> StoredResponse
    {
        var stored = StoredResponse(
            key: CacheKey(text: "http://a.example/"), url: "http://a.example/", status: status, version: .http11,
            headers: headers,
            requestTime: Self.now - ago - delay, responseTime: Self.now - ago)
        stored.extent = .whole(length)
        return stored
    }

    func request(_ headers: Headers = Headers(), _ policy: Request.CachePolicy? = nil, _ method: Method = .get)
        -> Request
    {
        var request = Request(
            url: URL(string: "http://a.example/") ?? URL(filePath: "/"), method: method, headers: headers)
        request.cachePolicy = policy
        return request
    }

    func plan(_ request: Request, _ variants: StoredResponse...) -> String {
        "\(CachePlan.make(CacheQuery(request), variants, now: Self.now))"
    }

    /// Functions instead of macros over whole expressions, which take the compiler minutes.
    func expect(
        _ words: String, _ request: Request, _ variants: StoredResponse...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let made = "\(CachePlan.make(CacheQuery(request), variants, now: Self.now))"
        #expect(made == words, sourceLocation: sourceLocation)
    }

    func expect(that isSo: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(isSo, sourceLocation: sourceLocation)
    }

    func expect(age: Double, _ stored: StoredResponse, sourceLocation: SourceLocation = #_sourceLocation) {
        let actual = stored.knownRules.age(Self.now)
        #expect(actual == age, sourceLocation: sourceLocation)
    }

    // MARK: 4.2

    @Test("the freshness lifetime comes from the first of its sources (RFC 9111 4.2.1, 4.2.2)")
    func lifetimes() {
        func rules(_ headers: Headers, _ status: Status = .ok) -> (Double, CacheRules.Source) {
            let rules = stored(headers, status).knownRules
            return (rules.lifetime, rules.source)
        }
        func expect(
            _ lifetime: Double, _ source: CacheRules.Source, _ headers: Headers, _ status: Status = .ok,
            _ line: Int = #line
        ) {
            let (l, s) = rules(headers, status)
            #expect(l == lifetime && s == source, "line \(line): \(l) \(s)")
        }
        expect(60, .maxAge, [.cacheControl: "max-age=60", .expires: Self.date(9)])
        expect(9, .expires, [.expires: Self.date(9)])
        expect(10, .expires, [.expires: Self.date(5), .date: Self.date(-5)])
        expect(0, .expires, [.expires: "0"])
        expect(0, .expires, [.expires: "tomorrow"])
        expect(0, .expires, [.expires: Self.date(-100), .date: Self.date(0)])
        expect(0, .maxAge, [.cacheControl: "max-age=x", .expires: Self.date(900)])
        // s-maxage is for shared caches (5.2.2.10).
        expect(9, .expires, [.cacheControl: "s-maxage=60", .expires: Self.date(9)])
        expect(10, .heuristic, [.lastModified: Self.date(-100), .date: Self.date(0)])
        expect(86_400, .heuristic, [.lastModified: Self.date(-100_000_000)])
        expect(0, .heuristic, [.lastModified: Self.date(100)])
        expect(0, .nothing, [:])
        expect(0, .nothing, [.lastModified: Self.date(-100)], .found)
        expect(10, .heuristic, [.lastModified: Self.date(-100), .cacheControl: "public"], .found)
        expect(86_400, .heuristic, [:], .movedPermanently)
        expect(86_400, .heuristic, [:], .permanentRedirect)
        expect(0, .nothing, [:], .notFound)
    }

    @Test("the age is never negative, even with wrong clocks (RFC 9111 4.2.3)")
    func ages() {
        expect(age: 10, stored([:], ago: 10))
        expect(age: 17, stored([.age: "7"], ago: 10))
        expect(age: 21, stored([.age: "7"], ago: 10, delay: 4))
        expect(age: 30, stored([.date: Self.date(-30)], ago: 10))
        // A server whose clock is ahead or behind, and an invalid Age.
        expect(age: 10, stored([.date: Self.date(500)], ago: 10))
        expect(age: 500, stored([.date: Self.date(-500), .age: "x"], ago: 10))
        // The local clock was set back.
        expect(age: 0, stored([:], ago: -30))
        expect(age: .infinity, stored([:], ago: -300))
    }

    // MARK: 4

    @Test("a fresh or stale response and the request's directives lead to a decision with its reason (RFC 9111 4)")
    func judgements() {
        let fresh = stored([.cacheControl: "max-age=60", .etag: "\"a\""], ago: 12)
        expect("stored (fresh: age 12 s of 60 s)", request(), fresh)
        expect("network (nothing stored)", request())
        let stale = stored([.cacheControl: "max-age=60", .etag: "\"a\""], ago: 70)
        expect("validate (stale: age 70 s of 60 s)", request(), stale)
        expect("network (stale: age 70 s of 60 s)", request(), stored([.cacheControl: "max-age=60"], ago: 70))
        expect(
            "stored (fresh by heuristics: age 20 s of 98 s)", request(),
            stored([.lastModified: Self.date(-1000)], ago: 20))
        expect(
            "validate (the response says no-cache)", request(),
            stored([.cacheControl: "max-age=60, no-cache", .etag: "\"a\""]))
        expect("validate (the request says no-cache)", request([.cacheControl: "no-cache"]), fresh)
        expect("validate (the request says no-cache)", request([.pragma: "no-cache"]), fresh)
        expect("stored (fresh: age 12 s of 60 s)", request([.pragma: "no-cache", .cacheControl: "max-age=100"]), fresh)
        expect("network (the request says no-store)", request([.cacheControl: "no-store"]), fresh)
        expect("validate (age 12 s, but the request says max-age=10)", request([.cacheControl: "max-age=10"]), fresh)
        expect("stored (fresh: age 12 s of 60 s)", request([.cacheControl: "max-age=12"]), fresh)
        expect(
            "validate (age 12 s, but the request says min-fresh=49)", request([.cacheControl: "min-fresh=49"]), fresh)
        expect("stored (fresh: age 12 s of 60 s)", request([.cacheControl: "min-fresh=48"]), fresh)
        expect("stored (max-stale allows it: age 70 s of 60 s)", request([.cacheControl: "max-stale"]), stale)
        expect("stored (max-stale allows it: age 70 s of 60 s)", request([.cacheControl: "max-stale=10"]), stale)
        expect("validate (stale: age 70 s of 60 s)", request([.cacheControl: "max-stale=9"]), stale)
        let strict = stored([.cacheControl: "max-age=60, must-revalidate", .etag: "\"a\""], ago: 70)
        expect("validate (must-revalidate: age 70 s of 60 s)", request([.cacheControl: "max-stale"]), strict)
        expect("stored (fresh: age 12 s of 60 s)", request([.cacheControl: "only-if-cached"]), fresh)
        expect("refused (stale: age 70 s of 60 s)", request([.cacheControl: "only-if-cached"]), stale)
        expect("refused (nothing stored)", request([.cacheControl: "only-if-cached"]))
        expect("network (only GET and HEAD are answered)", request([:], nil, .post), fresh)
        expect("stored (fresh: age 12 s of 60 s)", request([:], nil, .head), fresh)
    }

    @Test("each cache policy leads to its decision (checklist 91-94)")
    func policies() {
        let stale = stored([.cacheControl: "max-age=60", .etag: "\"a\""], ago: 70)
        let fresh = stored([.cacheControl: "max-age=60", .etag: "\"a\""])
        expect("network (policy reload)", request([:], .reload), fresh)
        expect("network (policy reloadIgnoringCaches)", request([:], .reloadIgnoringCaches), fresh)
        expect("validate (policy revalidate)", request([:], .revalidate), fresh)
        expect("network (policy revalidate)", request([:], .revalidate), stored([.cacheControl: "max-age=60"]))
        expect("stored (policy cacheElseLoad)", request([:], .cacheElseLoad), stale)
        expect("network (nothing stored)", request([:], .cacheElseLoad))
        expect("stored (policy onlyIfCached)", request([:], .onlyIfCached), stale)
        expect("refused (nothing stored)", request([:], .onlyIfCached))
        expect("refused (only GET and HEAD are answered)", request([:], .onlyIfCached, .post))
    }

    @Test("an immutable response is not validated while it is fresh (RFC 8246)")
    func immutable() {
        let headers: Headers = [.cacheControl: "max-age=60, immutable", .etag: "\"a\""]
        expect("stored (immutable, and fresh)", request([:], .revalidate), stored(headers))
        expect("stored (immutable, and fresh)", request([.cacheControl: "max-age=0"]), stored(headers, ago: 5))
        expect("validate (the request says no-cache)", request([.cacheControl: "no-cache"]), stored(headers))
        expect("validate (policy revalidate)", request([:], .revalidate), stored(headers, ago: 70))
        expect("network (policy reload)", request([:], .reload), stored(headers))
    }

    @Test("stale-while-revalidate and stale-if-error permit a stale response (RFC 5861)")
    func staleness() {
        let headers: Headers = [
            .cacheControl: "max-age=60, stale-while-revalidate=30, stale-if-error=90", .etag: "\"a\"",
        ]
        expect("stored, and refreshed (stale-while-revalidate: age 90 s of 60 s)", request(), stored(headers, ago: 90))
        expect("validate (stale: age 91 s of 60 s)", request(), stored(headers, ago: 91))
        expect(that: plan(request([.cacheControl: "max-age=80"]), stored(headers, ago: 90)).hasPrefix("validate"))
        expect(that: plan(request([.cacheControl: "only-if-cached"]), stored(headers, ago: 90)).hasPrefix("refused"))
        let query = CacheQuery(request())
        expect(that: CachePlan.mayServeStale(stored(headers, ago: 150), query, now: Self.now))
        expect(that: !CachePlan.mayServeStale(stored(headers, ago: 151), query, now: Self.now))
        expect(
            that: !CachePlan.mayServeStale(
                stored([.cacheControl: "max-age=60, must-revalidate, stale-if-error=90"], ago: 70), query, now: Self.now
            ))
        expect(
            that: CachePlan.mayServeStale(
                stored([.cacheControl: "max-age=60"], ago: 70),
                CacheQuery(request([.cacheControl: "stale-if-error=10"])), now: Self.now))
        expect(that: !CachePlan.mayServeStale(stored([.cacheControl: "max-age=60"], ago: 70), query, now: Self.now))
    }

    @Test("variants and owners are kept apart (RFC 9111 4.1) (security 72)")
    func variants() {
        func variant(_ fields: Headers, _ vary: String, made: Double = 0) -> StoredResponse {
            let headers: Headers = [.vary: vary, .cacheControl: "max-age=60", .date: Self.date(made)]
            var variant = stored(headers)
            variant.varying = Varying.make(headers, CacheQuery(request(fields))) ?? [:]
            return variant
        }
        let german = variant([.acceptLanguage: "de, en"], "Accept-Language")
        let french = variant([.acceptLanguage: "fr"], "accept-language")
        expect("stored (fresh: age 0 s of 60 s)", request([.acceptLanguage: "de ,en"]), french, german)
        expect("network (vary: accept-language differs)", request([.acceptLanguage: "it"]), french, german)
        expect(that: Varying.make([.vary: "*"], CacheQuery(request())) == nil)
        // Of several matching variants, the latest.
        let older = variant(["X": "1"], "X", made: -20)
        let newer = variant(["X": "1"], "X", made: -10)
        guard case .success(let chosen) = CachePlan.select(CacheQuery(request(["X": "1"])), [older, newer]) else {
            Issue.record("none")
            return
        }
        expect(that: chosen.headers[.date] == Self.date(-10))

        let mine = variant([.authorization: "Basic bWU6MQ=="], "X")
        expect(that: mine.varying["authorization"]??.hasPrefix("sha256:") == true)
        expect(that: plan(request([.authorization: "Basic bWU6MQ=="]), mine).hasPrefix("stored"))
        expect("network (stored for another owner)", request([.authorization: "Basic eW91OjI="]), mine)
        expect("network (stored for another owner)", request(), mine)
        expect("network (stored for another owner)", request([.authorization: "Basic eW91OjI="]), variant([:], "X"))
        let cookie = variant([.cookie: "id=secret"], "Cookie")
        expect(that: cookie.varying["cookie"]??.contains("secret") == false)
        expect(that: plan(request([.cookie: "id=secret"]), cookie).hasPrefix("stored"))
        expect("network (stored for another owner)", request([.cookie: "id=other"]), cookie)
    }

    @Test("a caller's own condition bypasses the cache; a range of a complete response is served (RFC 9110 13, 14)")
    func partsAndConditions() {
        let whole = stored([.cacheControl: "max-age=60", .etag: "\"a\""], length: 10)
        for name in [FieldName.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange] {
            expect("network (the request is conditional)", request([name: "\"a\""]), whole)
        }
        expect(that: plan(request([.range: "bytes=2-4"]), whole).hasPrefix("stored"))
        expect("network (the stored response does not have the range)", request([.range: "bytes=20-"]), whole)
        expect("network (the stored response does not have the range)", request([.range: "bytes=0-1,4-5"]), whole)
        var decoded = whole
        decoded.isDecoded = true
        expect("network (the stored response does not have the range)", request([.range: "bytes=2-4"]), decoded)
        var beginning = whole
        beginning.extent = .beginning(4, of: 10)
        expect("complete (only the beginning is stored)", request(), beginning)
        expect("complete (only the beginning is stored)", request([:], .cacheElseLoad), beginning)
        expect("refused (only the beginning is stored)", request([:], .onlyIfCached), beginning)
        expect("network (the stored response does not have the range)", request([.range: "bytes=2-3"]), beginning)
        beginning.headers[.etag] = "W/\"a\""
        expect("network (only the beginning is stored)", request(), beginning)
        expect(that: plan(request([:], nil, .head), beginning).hasPrefix("stored"))
    }

    // MARK: 3

    private func kept(_ headers: Headers, _ status: Status = .ok, _ request: Request? = nil) -> StoredResponse? {
        StoringPlan.make(
            CacheQuery(request ?? self.request()), CacheKey(text: "k"), HTTPHead(status: status, headers: headers),
            .init(requestTime: Self.now, responseTime: Self.now))
    }

    @Test("a response is storable by method, status and directives (RFC 9111 §3)")
    func storable() throws {
        expect(that: kept([:]) != nil && kept([:])?.isMemoryOnly == true)
        expect(that: kept([.etag: "\"a\""])?.isMemoryOnly == false)
        expect(that: kept([.cacheControl: "max-age=5"])?.isMemoryOnly == false)
        expect(that: kept([.cacheControl: "no-store"]) == nil)
        expect(that: kept([:], .ok, request([.cacheControl: "no-store"])) == nil)
        expect(that: kept([.cacheControl: "no-store, must-understand"]) != nil)
        try expect(that: kept([.cacheControl: "no-store, must-understand"], #require(Status(299))) == nil)
        expect(that: kept([:], .ok, request([:], nil, .post)) == nil && kept([:], .ok, request([:], nil, .head)) == nil)
        for status in [Status.movedPermanently, .permanentRedirect, .notFound, .gone, .noContent] {
            expect(that: kept([:], status) != nil)
        }
        for status in [Status.found, .temporaryRedirect, .internalServerError, .forbidden, .created] {
            expect(that: kept([:], status) == nil)
            expect(that: kept([.cacheControl: "max-age=5"], status) != nil)
            expect(that: kept([.expires: Self.date(5)], status) != nil)
            expect(
                that: kept([.cacheControl: "private"], status) != nil && kept([.cacheControl: "public"], status) != nil)
        }
        for status in [
            Status.notModified, .unauthorized, .proxyAuthenticationRequired, .rangeNotSatisfiable, .preconditionFailed,
        ] {
            expect(that: kept([.cacheControl: "max-age=5"], status) == nil)
        }
        // 3.5 is about shared caches.
        expect(
            that: kept([.cacheControl: "max-age=5"], .ok, request([.authorization: "x"]))?.varying["authorization"]
                != nil)
        // 4.1
        expect(that: kept([.vary: "*", .cacheControl: "max-age=5"]) == nil)
    }

    @Test("fields of the connection are not stored (RFC 9111 3.1)")
    func fields() {
        let stored = kept([
            .connection: "X-Hop, close", "X-Hop": "1", .keepAlive: "timeout=5", .transferEncoding: "chunked",
            .proxyAuthenticate: "Basic",
            "X-Kept": "1", .cacheControl: "max-age=5, no-cache=\"set-cookie\"", .setCookie: "a=b", .upgrade: "h2c",
        ])
        expect(that: stored?.headers == ["X-Kept": "1", .cacheControl: "max-age=5, no-cache=\"set-cookie\""])
    }

    @Test("a first part is stored as an incomplete response, another part is not (RFC 9111 3.3)")
    func parts() {
        let ranged = request([.range: "bytes=0-3"])
        let first = kept([.contentRange: "bytes 0-3/10", .etag: "\"a\"", .contentLength: "4"], .partialContent, ranged)
        expect(
            that: first?.extent == .beginning(0, of: 10) && first?.status == .ok
                && first?.headers[.contentLength] == "10")
        expect(that: first?.headers.contains(.contentRange) == false)
        expect(that: kept([.contentRange: "bytes 1-3/10", .etag: "\"a\""], .partialContent, ranged) == nil)
        expect(that: kept([.contentRange: "bytes 0-3/*", .etag: "\"a\""], .partialContent, ranged) == nil)
        expect(that: kept([.contentRange: "bytes 0-3/10", .etag: "W/\"a\""], .partialContent, ranged) == nil)
        expect(
            that: kept(
                [.contentRange: "bytes 0-3/10", .etag: "\"a\"", .contentEncoding: "gzip"], .partialContent, ranged)
                == nil)
        expect(that: kept([.contentRange: "bytes 0-3/10", .etag: "\"a\""], .partialContent) == nil)
        expect(
            that: kept([.contentType: "multipart/byteranges; boundary=x", .etag: "\"a\""], .partialContent, ranged)
                == nil)
    }

    // MARK: 3.2, 4.3.4, 4.4

    @Test("a 304 updates the response it belongs to (RFC 9111 3.2, 4.3.4) (security 74)")
    func merge() {
        let old = stored(
            [.etag: "\"a\"", .contentLength: "3", "X-A": "1", "X-B": "1", .age: "50", .cacheControl: "max-age=1"],
            ago: 100)
        let head = HTTPHead(
            status: .notModified,
            headers: [
                .etag: "\"a\"", .contentLength: "0", .contentEncoding: "gzip", "X-A": "2", .cacheControl: "max-age=9",
                .connection: "close",
            ])
        let new = old.updated(by: head, from: .unknown, requestTime: Self.now, responseTime: Self.now)
        expect(
            that: new.headers == [
                .etag: "\"a\"", .contentLength: "3", "X-A": "2", "X-B": "1", .cacheControl: "max-age=9",
            ])
        expect(that: new.knownRules.age(Self.now) == 0 && new.knownRules.lifetime == 9)
        func canBeUpdated(_ headers: Headers, _ own: Headers = [.etag: "\"a\""]) -> Bool {
            stored(own).canBeUpdated(by: HTTPHead(status: .notModified, headers: headers))
        }
        expect(that: canBeUpdated([:]) && canBeUpdated([.etag: "\"a\""]) && canBeUpdated([.etag: "W/\"a\""]))
        expect(
            that: !canBeUpdated([.etag: "\"b\""]) && !canBeUpdated([.etag: "W/\"b\""])
                && !canBeUpdated([.etag: "\"a\""], [.lastModified: Self.date(0)]))
        expect(that: !canBeUpdated([.lastModified: Self.date(-5)], [.lastModified: Self.date(0)]))
        let strong = old.updated(
            by: HTTPHead(status: .notModified, headers: [.etag: "W/\"a\""]), from: .unknown, requestTime: 0,
            responseTime: 0)
        expect(that: strong.headers[.etag] == "\"a\"")
        // Head and body come from two sources: both owners apply.
        var located = old
        let (first, second) = (
            SocketAddress.ipv4((192, 0, 2, 1), port: 80), SocketAddress.ipv4((192, 0, 2, 2), port: 80)
        )
        located.source = .one(first)
        func source(_ newer: AnswerSource) -> AnswerSource {
            located.updated(by: head, from: newer, requestTime: Self.now, responseTime: Self.now).source
        }
        expect(
            that: source(.one(first)) == .one(first) && source(.one(second)) == .several([first, second])
                && source(.unknown) == .unknown)
    }

    @Test("an unsafe method invalidates (RFC 9111 4.4)")
    func invalidation() {
        func keys(_ method: Method, _ status: Status, _ headers: Headers = [:]) -> [String] {
            StoringPlan.invalidated(request([:], nil, method), HTTPHead(status: status, headers: headers)).map(\.text)
        }
        expect(that: keys(.post, .ok) == ["http://a.example/"])
        expect(
            that: keys(.delete, .noContent, [.location: "/x", .contentLocation: "http://a.example/y?z#f"]) == [
                "http://a.example/", "http://a.example/x", "http://a.example/y?z",
            ])
        expect(
            that: keys(.put, .seeOther, [.location: "http://b.example/x", .contentLocation: "https://a.example/"]) == [
                "http://a.example/"
            ])
        expect(that: keys("PROPPATCH", .ok).count == 1)
        expect(that: keys(.post, .internalServerError).isEmpty && keys(.post, .notFound).isEmpty)
        for safe in [Method.get, .head, .options, .trace] { expect(that: keys(safe, .ok).isEmpty) }
    }

    @Test("different requests have different keys (security 73)")
    func keys() throws {
        func key(_ text: String) throws -> String? { CacheKey(Request(url: try url(text)))?.text }
        let same = try ["http://A.example:80/x?q", "http://u:p@a.example/x?q#f", "HTTP://a.example/x?q"].map(key)
        expect(that: Set(same) == ["http://a.example/x?q"])
        let others = [
            "http://a.example/x", "http://a.example/x?", "https://a.example/x?q", "http://a.example:8080/x?q",
            "http://a.example/X?q",
        ]
        let keys = try others.map(key)
        expect(that: Set(keys).count == others.count && !keys.contains("http://a.example/x?q"))
        let none = try [key("file:///etc/hosts"), key("data:,x")]
        expect(that: none == [nil, nil])
    }
}

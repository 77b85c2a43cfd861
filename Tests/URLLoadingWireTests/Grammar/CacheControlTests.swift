// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 9111 §5.2, RFC 5861, RFC 8246: valid and invalid Cache-Control fields.
@Suite struct CacheControlTests {
    private func control(_ values: String...) -> CacheControl {
        var headers = Headers()
        for value in values { headers.append(.cacheControl, value) }
        return CacheControl(headers)
    }

    @Test("Directives are read without case, with blanks, from several fields, and unknown ones are ignored")
    func directives() {
        let some = control("Max-AGE=60 , NO-store,", "community=\"a, max-age=1\", must-revalidate")
        #expect(some.maxAge == 60 && some.flags == [.noStore, .mustRevalidate] && some.isPresent)
        #expect(!CacheControl(Headers()).isPresent && CacheControl(Headers()).flags.isEmpty)
        let all = control(
            "no-cache, no-transform, private, public, immutable, only-if-cached, must-understand, max-stale")
        #expect(
            all.flags == [
                .noCache, .noTransform, .private, .public, .immutable, .onlyIfCached, .mustUnderstand, .anyStale,
            ])
        let numbers = control("max-stale=5, min-fresh=6, stale-while-revalidate=7, stale-if-error=8")
        #expect(
            numbers.maxStale == 5 && numbers.minFresh == 6 && numbers.staleWhileRevalidate == 7
                && numbers.staleIfError == 8)
        #expect(!numbers.flags.contains(.anyStale))
    }

    @Test(
        "Numbers are delta-seconds; invalid ones are 0 (RFC 9111 §4.2.1, §1.2.2)",
        arguments: [
            ("60", 60), ("\"60\"", 60), ("0", 0), ("00060", 60), ("4294967296", 1 << 31),
            ("99999999999999999999999", 1 << 31),
            ("-1", 0), ("1.5", 0), ("'60'", 0), ("", 0), ("abc", 0), ("6 0", 0), ("\"60", 0), ("+60", 0), ("\"\"", 0),
        ])
    func maxAge(_ text: String, _ expected: Int64) { #expect(control("max-age=\(text)").maxAge == expected) }

    @Test("The first of repeated directives counts; max-age without a number is 0")
    func duplicates() {
        #expect(control("max-age=1, max-age=60").maxAge == 1)
        #expect(control("max-age=1", "max-age=60").maxAge == 1)
        #expect(control("max-age").maxAge == 0)
        #expect(control("stale-while-revalidate=x").staleWhileRevalidate == nil)
        #expect(control("s-maxage=60").maxAge == nil)
        #expect(control("xmax-age=60, max-agex=60").maxAge == nil)
    }

    @Test("a shared cache has the lifetime of s-maxage, and validates what is stale (RFC 9111 §5.2.2.8, §5.2.2.10)")
    func shared() {
        let shared = control("max-age=1, S-MaxAge=\"60\"").inSharedCache
        #expect(shared.maxAge == 60 && shared.flags == [.mustRevalidate])
        #expect(control("s-maxage=x").sharedMaxAge == 0 && control("s-maxage=1, s-maxage=2").sharedMaxAge == 1)
        #expect(control("max-age=1, proxy-revalidate").inSharedCache.flags == [.proxyRevalidate, .mustRevalidate])
        #expect(control("max-age=1, public").inSharedCache == control("max-age=1, public"))
    }

    @Test("no-cache may be limited to some fields (RFC 9111 §5.2.2.4)")
    func qualified() {
        let some = control("no-cache=\"Set-Cookie, X-A\", max-age=5")
        #expect(some.noCacheFields == ["set-cookie", "x-a"] && !some.flags.contains(.noCache) && some.maxAge == 5)
        #expect(control("no-cache=\"\"").flags.contains(.noCache))
        #expect(control("no-cache=x-a").noCacheFields == ["x-a"])
    }

    @Test("Bytes of every kind, cut anywhere, never trap")
    func garbage() {
        let text = "max-age=\"60\\\", no-cache=\"a,\u{FF}\",,;=,=\"\\"
        for end in text.indices { _ = control(String(text[..<end])) }
        #expect(control("\"max-age=60\"").maxAge == nil)
    }

    @Test("Vary and Age are read, and field values are normalised for comparison (RFC 9110 §12.5.5, RFC 9111 §5.1)")
    func others() {
        var headers: Headers = [.vary: "Accept, ACCEPT-language,accept", .age: "12, 13"]
        #expect(VaryField(headers) == .names(["accept", "accept-language"]))
        #expect(headers.age == 12)
        headers.append(.vary, "*")
        #expect(VaryField(headers) == .everything)
        #expect(VaryField([.vary: " , "]) == nil && VaryField(Headers()) == nil)
        let many = (0..<200_000).map { "n\($0)" }
        #expect(VaryField([.vary: many.joined(separator: ",")]) == .everything)
        #expect(VaryField([.vary: many[..<256].joined(separator: ",")]) == .names(Array(many[..<256])))
        let same = Array(repeating: "Accept", count: 100_000).joined(separator: ",")
        #expect(VaryField([.vary: same]) == .names(["accept"]))
        for bad in ["-1", "x", "", "1.0"] { #expect(([.age: bad] as Headers).age == nil) }
        #expect(([.age: "99999999999999999999"] as Headers).age == 1 << 31)
        var fields: Headers = ["A": "x ,y"]
        fields.append("a", "z")
        #expect(fields.comparable("A") == "x,y,z" && fields.comparable("B") == nil)
    }
}

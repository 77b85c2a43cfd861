// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// RFC 6265bis §5.7 and §5.8: storing, sending, and evicting cookies.
struct CookieTableTests {
    private let start = Date(timeIntervalSince1970: 1_600_000_000)

    private func context(_ text: String, mainDocument: String? = nil) throws -> CookieContext {
        try #require(CookieContext(url(text), mainDocument: mainDocument.map { try url($0) }))
    }

    /// Stores the cookies of a response; returns the stored ones.
    @discardableResult
    private func set(_ table: inout CookieTable, _ field: String, from text: String, at moment: Double = 0) throws
        -> Cookie?
    {
        let context = try context(text)
        let now = start + moment
        guard case .keep(let cookie) = CookieAdmission.make(field.utf8, context, now: now) else { return nil }
        return table.set(cookie, isSecure: context.isSecure, now: now).stored
    }

    private func sent(_ table: inout CookieTable, to text: String, at moment: Double = 0, mainDocument: String? = nil)
        throws -> String
    {
        var pairs: [String] = []
        table.forEach(for: try context(text, mainDocument: mainDocument), now: start + moment) {
            pairs.append($0.pair)
            return true
        }
        return pairs.joined(separator: "; ")
    }

    @Test(
        "cookies match by domain, path, security and expiry; longer paths first, then older cookies (RFC 6265bis 5.8.3)"
    )
    func retrieval() throws {
        var table = CookieTable()
        try set(&table, "host=1", from: "http://www.example.org/", at: 1)
        try set(&table, "wide=1; Domain=example.org; Path=/", from: "http://www.example.org/", at: 2)
        try set(&table, "deep=1; Path=/a/b", from: "http://www.example.org/", at: 3)
        try set(&table, "safe=1; Path=/; Secure", from: "https://www.example.org/", at: 4)
        try set(&table, "short=1; Path=/; Max-Age=10", from: "http://www.example.org/", at: 5)
        #expect(try sent(&table, to: "http://www.example.org/", at: 6) == "host=1; wide=1; short=1")
        #expect(
            try sent(&table, to: "https://www.example.org/a/b/c", at: 6) == "deep=1; host=1; wide=1; safe=1; short=1")
        #expect(try sent(&table, to: "http://www.example.org/a/bc", at: 15) == "host=1; wide=1")
        #expect(try sent(&table, to: "http://example.org/", at: 6) == "wide=1")
        #expect(try sent(&table, to: "http://x.y.example.org:8080/", at: 6) == "wide=1")
        #expect(try sent(&table, to: "http://www.example.org./", at: 15) == "host=1; wide=1")
        #expect(
            try sent(&table, to: "http://notexample.org/", at: 6) == "" && sent(&table, to: "http://org/", at: 6) == "")
    }

    @Test("SameSite decides which cookies are sent to cross-site requests (RFC 6265bis 5.8.3)")
    func sameSite() throws {
        var table = CookieTable()
        for (index, field) in [
            "none=1; SameSite=None; Secure", "lax=1; SameSite=Lax", "strict=1; SameSite=Strict", "silent=1",
        ].enumerated() {
            try set(&table, field, from: "https://example.org/", at: Double(index))
        }
        #expect(try sent(&table, to: "https://example.org/", at: 9) == "none=1; lax=1; strict=1; silent=1")
        #expect(
            try sent(&table, to: "https://example.org/", at: 9, mainDocument: "https://www.example.org")
                == "none=1; lax=1; strict=1; silent=1")
        #expect(try sent(&table, to: "https://example.org/", at: 9, mainDocument: "https://other.org") == "none=1")
        #expect(try sent(&table, to: "https://example.org/", at: 9, mainDocument: "nonsense") == "none=1")
    }

    @Test("a cookie replaces one with the same name, domain and path, and keeps its position (RFC 6265bis 5.7 step 22)")
    func replacing() throws {
        var table = CookieTable()
        try set(&table, "a=1", from: "http://example.org/", at: 1)
        try set(&table, "b=1", from: "http://example.org/", at: 2)
        try set(&table, "a=2", from: "http://example.org/", at: 3)
        #expect(try sent(&table, to: "http://example.org/", at: 4) == "a=2; b=1" && table.count == 2)
        try set(&table, "a=3; Domain=example.org", from: "http://example.org/", at: 4)
        #expect(table.count == 3)
        try set(&table, "a=; Max-Age=0", from: "http://example.org/", at: 5)
        try set(&table, "c=; Max-Age=0", from: "http://example.org/", at: 5)
        #expect(try sent(&table, to: "http://example.org/", at: 6) == "b=1; a=3" && table.count == 2)
    }

    @Test("cookies that are set together keep their order when one of them is set again")
    func togetherSet() throws {
        var table = CookieTable()
        for field in ["z=1", "a=1", "m=1"] { try set(&table, field, from: "http://example.org/", at: 1) }
        #expect(try sent(&table, to: "http://example.org/", at: 2) == "z=1; a=1; m=1")
        try set(&table, "z=2", from: "http://example.org/", at: 3)
        #expect(try sent(&table, to: "http://example.org/", at: 4) == "z=2; a=1; m=1")
        #expect(table.all.map(\.name) == ["z", "a", "m"])
        try set(&table, "b=1", from: "http://example.org/", at: 1)
        #expect(try sent(&table, to: "http://example.org/", at: 4) == "z=2; a=1; m=1; b=1")
    }

    @Test("plain http cannot overwrite a Secure cookie (RFC 6265bis 5.7 step 15) (security 26)")
    func overlay() throws {
        var table = CookieTable()
        try set(&table, "id=safe; Secure; Domain=example.org; Path=/login", from: "https://www.example.org/")
        for (field, from) in [
            ("id=evil; Domain=example.org; Path=/login", "http://www.example.org/"),
            ("id=evil; Path=/login", "http://www.example.org/"),
            ("id=evil; Path=/login/now", "http://www.example.org/"), ("id=evil; Path=/login", "http://example.org/"),
            ("id=; Max-Age=0; Domain=example.org; Path=/login", "http://www.example.org/"),
        ] {
            #expect(try set(&table, field, from: from) == nil, "\(field)")
        }
        #expect(try sent(&table, to: "https://www.example.org/login") == "id=safe" && table.count == 1)
        // The same name elsewhere, and other names anywhere, are allowed.
        for field in ["id=own; Path=/", "id=own; Path=/log", "other=1; Path=/login"] {
            #expect(try set(&table, field, from: "http://www.example.org/") != nil)
        }
        #expect(try set(&table, "id=new; Domain=example.org; Path=/login", from: "https://www.example.org/") != nil)
    }

    @Test(
        "cookies of a domain are limited; insecure and least recently used ones are evicted first (security 25, 6.1)"
    )
    func perDomain() throws {
        var table = CookieTable(CookieStore.Limits(perDomain: 5, total: 100))
        try set(&table, "s=1; Secure", from: "https://example.org/", at: 0)
        for index in 0..<4 {
            try set(&table, "c\(index)=1", from: "http://h\(index).example.org/", at: Double(index + 1))
        }
        _ = try sent(&table, to: "http://h0.example.org/", at: 10)
        try set(&table, "d=1", from: "http://example.org/", at: 11)
        #expect(table.count == 5 && table.all.map(\.name).sorted() == ["c0", "c2", "c3", "d", "s"])
        // Expired cookies are evicted first.
        try set(&table, "e=1; Max-Age=1", from: "http://example.org/", at: 12)
        try set(&table, "f=1", from: "http://example.org/", at: 20)
        #expect(table.all.map(\.name).sorted() == ["c0", "c3", "d", "f", "s"])
        // Other domains are not affected.
        try set(&table, "g=1", from: "http://example.net/", at: 21)
        #expect(table.count == 6)
    }

    @Test("the total number is limited; the least recently used are evicted (RFC 6265bis 6.1)")
    func total() throws {
        var table = CookieTable(CookieStore.Limits(perDomain: 50, total: 100))
        for index in 0..<100 { try set(&table, "c=\(index)", from: "http://h\(index).example/", at: Double(index)) }
        #expect(table.count == 100)
        _ = try sent(&table, to: "http://h0.example/", at: 200)
        try set(&table, "new=1", from: "http://new.example/", at: 201)
        #expect(table.count == 91)
        #expect(
            try sent(&table, to: "http://h0.example/", at: 202) == "c=0"
                && sent(&table, to: "http://h1.example/", at: 202) == "")
        #expect(try sent(&table, to: "http://new.example/", at: 202) == "new=1")
    }

    @Test("a public suffix that is a host itself, and its subdomains, have cookies of their own")
    func suffixes() throws {
        var table = CookieTable()
        try set(&table, "top=1", from: "http://github.io/")
        try set(&table, "me=1; Domain=me.github.io", from: "http://a.me.github.io/")
        #expect(
            try sent(&table, to: "http://github.io/") == "top=1" && sent(&table, to: "http://b.me.github.io/") == "me=1"
        )
        try set(&table, "ip=1", from: "http://127.0.0.1/")
        try set(&table, "ip=2", from: "http://1.0.0.1/")
        #expect(try sent(&table, to: "http://127.0.0.1/") == "ip=1" && table.count == 4)
    }

    @Test("any order of sets and removals keeps the count, the order and the limits")
    func random() throws {
        var generator = SeededGenerator(seed: 1)
        var table = CookieTable(CookieStore.Limits(perDomain: 6, total: 20))
        for step in 0..<3_000 {
            let label = ["a", "b", "c"].randomElement(using: &generator) ?? "a"
            let host = "http://\(label).d\(Int.random(in: 0..<8, using: &generator)).example/"
            let path = ["/", "/x", "/x/y"].randomElement(using: &generator) ?? "/"
            let name = "n\(Int.random(in: 0..<5, using: &generator))"
            let life = Int.random(in: 0..<40, using: &generator)
            try set(&table, "\(name)=\(step); Path=\(path); Max-Age=\(life)", from: host, at: Double(step))
            if step % 7 == 0, let cookie = table.all.randomElement(using: &generator) { _ = table.remove(cookie) }
            #expect(table.count == table.all.count && table.count <= 20)
            #expect(Set(table.all.map(\.key)).count == table.count)
            let lengths = table.all.map(\.path.utf8.count)
            #expect(lengths == lengths.sorted(by: >))
        }
    }
}

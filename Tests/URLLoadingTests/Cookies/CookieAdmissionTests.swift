// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingWire

@testable import URLLoading

/// The part of RFC 6265bis §5.7 that needs no store.
struct CookieAdmissionTests {
    private func admit(_ field: String, from text: String, mainDocument: String? = nil) throws -> CookieAdmission {
        let context = try #require(CookieContext(url(text), mainDocument: mainDocument.map { try url($0) }))
        return CookieAdmission.make(field.utf8, context, now: Date(timeIntervalSince1970: 1_600_000_000))
    }

    private func cookie(_ field: String, from text: String, mainDocument: String? = nil) throws -> Cookie? {
        if case .keep(let cookie) = try admit(field, from: text, mainDocument: mainDocument) { cookie } else { nil }
    }

    private func expect(
        _ refusal: CookieAdmission.Refusal, _ field: String, from text: String, mainDocument: String? = nil,
        at place: SourceLocation = #_sourceLocation
    ) throws {
        let outcome = try admit(field, from: text, mainDocument: mainDocument)
        #expect(outcome == .ignore(refusal), "\(field) from \(text)", sourceLocation: place)
    }

    @Test("the domain decides which hosts receive a cookie (RFC 6265bis 5.7 steps 7 to 9)")
    func domains() throws {
        let own = try #require(try cookie("a=b", from: "http://www.Example.org/x/y?z"))
        #expect(own.domain == "www.example.org" && own.isHostOnly && own.path == "/x" && own.expires == nil)
        let wide = try #require(try cookie("a=b; Domain=.EXAMPLE.org; Path=/", from: "http://www.example.org"))
        #expect(wide.domain == "example.org" && !wide.isHostOnly && wide.path == "/")
        try expect(.foreignDomain, "a=b; Domain=other.org", from: "http://www.example.org")
        try expect(.foreignDomain, "a=b; Domain=a.www.example.org", from: "http://www.example.org")
        try expect(.foreignDomain, "a=b; Domain=ample.org", from: "http://example.org")
        try expect(.domainIsNoHost, "a=b; Domain=bücher.example", from: "http://xn--bcher-kva.example")
        try expect(.domainIsNoHost, "a=b; Domain=a b", from: "http://example.org")
        let idn = try cookie("a=b; Domain=xn--bcher-kva.example", from: "http://www.bücher.example")
        #expect(idn?.domain == "xn--bcher-kva.example")
    }

    @Test(
        "a cookie for a public suffix is refused, in any letter case and with a trailing dot (security 21)",
        arguments: ["co.uk", ".CO.UK", "co.uk.", "Co.Uk."])
    func suffixes(_ domain: String) throws {
        try expect(.publicSuffix, "a=b; Domain=\(domain)", from: "http://www.example.co.uk/")
        try expect(.publicSuffix, "a=b; Domain=\(domain)", from: "http://www.example.co.uk./")
        let suffix = try cookie("a=b; Domain=github.io", from: "http://github.io")
        #expect(suffix?.isHostOnly == true)
        let dotted = try cookie("a=b; Domain=example.co.uk.", from: "http://www.example.co.uk.")
        #expect(dotted?.domain == "example.co.uk")
    }

    @Test("a cookie of an address is sent to that address only (security 22)")
    func addresses() throws {
        try expect(.domainIsNoHost, "a=b; Domain=0.0.1", from: "http://127.0.0.1/")
        try expect(.foreignDomain, "a=b; Domain=a.org", from: "http://127.0.0.1/")
        try expect(.foreignDomain, "a=b; Domain=127.0.0.2", from: "http://127.0.0.1/")
        #expect(try cookie("a=b; Domain=127.0.0.1", from: "http://127.0.0.1/")?.isHostOnly == true)
        #expect(try cookie("a=b", from: "http://[::1]/")?.domain == "[::1]")
    }

    @Test("a Secure cookie must be set over a secure connection (RFC 6265bis 5.7 step 12)")
    func secure() throws {
        try expect(.notSecure, "a=b; Secure", from: "http://example.org")
        #expect(try cookie("a=b; Secure", from: "https://example.org")?.isSecure == true)
    }

    @Test("SameSite restricts cross-site cookies (RFC 6265bis 5.7 steps 16 to 18)")
    func sameSite() throws {
        for field in ["a=b", "a=b; SameSite=Lax", "a=b; SameSite=Strict", "a=b; SameSite=x"] {
            try expect(.crossSite, field, from: "https://example.org", mainDocument: "https://other.org")
            try expect(.crossSite, field, from: "https://example.org", mainDocument: "http://example.org")
            #expect(
                try cookie(field, from: "https://a.example.org", mainDocument: "https://b.example.org:8443/x") != nil)
        }
        try expect(.noneWithoutSecure, "a=b; SameSite=None", from: "https://example.org")
        #expect(
            try cookie("a=b; SameSite=None; Secure", from: "https://example.org", mainDocument: "https://other.org")
                != nil)
        try expect(.crossSite, "a=b", from: "https://a.github.io", mainDocument: "https://b.github.io")
    }

    @Test(
        "name prefixes are enforced in any letter case, also without a name (RFC 6265bis 5.7 steps 19 to 21)"
    )
    func prefixes() throws {
        let (secure, plain) = ("https://example.org/x/y", "http://example.org/")
        try expect(.prefix, "__Secure-a=b", from: plain)
        try expect(.prefix, "__sEcUrE-a=b", from: secure)
        #expect(try cookie("__Secure-a=b; Secure; Domain=example.org", from: secure) != nil)
        #expect(try cookie("__Host-a=b; Secure; Path=/", from: secure) != nil)
        for wrong in [
            "__Host-a=b; Path=/", "__Host-a=b; Secure", "__HOST-a=b; Secure; Path=/; Domain=example.org",
            "__Host-a=b; Secure; Path=/x",
        ] {
            try expect(.prefix, wrong, from: secure)
        }
        for wrong in ["__Host-a", "=__Secure-a=b", "=__host-a=b; Secure; Path=/"] {
            try expect(.prefix, wrong, from: secure)
        }
        #expect(try cookie("__Hosta=b", from: plain) != nil)
    }

    @Test("a cookie describes itself, is parsed from fields, and formatted into one (checklist 106)")
    func fields() throws {
        let origin = try url("https://www.example.org/shop/cart")
        var headers = Headers()
        headers.append(.setCookie, "id=1; Path=/shop; Secure; HttpOnly; SameSite=Strict; Max-Age=60")
        headers.append(.setCookie, "theme=dark; Domain=example.org")
        headers.append(.setCookie, "evil=1; Domain=com")
        let cookies = Cookie.cookies(in: headers, from: origin)
        let id = try #require(cookies.first)
        #expect(
            cookies.count == 2 && id.name == "id" && id.value == "1" && id.path == "/shop" && id.isSecure
                && id.isHTTPOnly)
        #expect(id.sameSite == .strict && abs((id.expires ?? .distantPast).timeIntervalSinceNow - 60) < 30)
        #expect(Cookie.field(cookies) == "id=1; theme=dark" && Cookie.field([]) == nil)
        #expect(
            id.description == "id=… www.example.org/shop secure httponly samesite=strict"
                && !"\(cookies)".contains("dark"))
        var dumped = ""
        dump(cookies, to: &dumped)
        #expect(!dumped.contains("dark"))
    }

    @Test("a cookie created by the caller is validated as well")
    func own() {
        let cookie = Cookie(name: "a", value: "b", domain: ".Example.org", isHostOnly: false)
        #expect(cookie?.domain == "example.org" && cookie?.isHostOnly == false && cookie?.path == "/")
        #expect(Cookie(name: "a", value: "b", domain: "127.0.0.1", isHostOnly: false)?.isHostOnly == true)
        for (name, value, domain, path) in [
            ("a\n", "b", "x.org", "/"), ("a", "b\r\nEvil: 1", "x.org", "/"), ("a", "b;c", "x.org", "/"),
            ("a=", "b", "x.org", "/"),
            ("", "", "x.org", "/"), ("a", "b", "no host", "/"), ("a", "b", "x.org", "x"), ("a", "b", "x.org", "/\t"),
            ("a", String(repeating: "b", count: 4096), "x.org", "/"), ("__Secure-a", "b", "x.org", "/"),
            ("__Host-a", "b", "x.org", "/"),
        ] {
            #expect(Cookie(name: name, value: value, domain: domain, path: path) == nil, "\(name)")
        }
        let none = Cookie(name: "a", value: "b", domain: "x.org", sameSite: Cookie.SameSite.none)
        #expect(Cookie(name: "a", value: "b", domain: ".co.UK.", isHostOnly: false) == nil)
        #expect(none == nil && Cookie(name: "__Host-a", value: "b", domain: "x.org", isSecure: true) != nil)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

/// RFC 6265bis §5.6.
struct SetCookieTests {
    private func parse(_ text: String, now: Int64 = 1_000_000) -> SetCookie? { SetCookie(text.utf8, now: now) }

    @Test(
        "Name and value are read (§5.6 steps 2 to 4)",
        arguments: [
            ("a=b", "a", "b"), ("a = b ; Secure", "a", "b"), ("\ta\t=\tb\t", "a", "b"), ("a=", "a", ""),
            ("=b", "", "b"), ("b", "", "b"),
            (" b ;Path=/", "", "b"), ("a=b=c", "a", "b=c"), ("a=\"b\"", "a", "\"b\""), ("a=b c", "a", "b c"),
            ("==b", "", "=b"),
            ("a=ü", "a", "ü"), ("a b=c", "a b", "c"),
        ])
    func pair(_ text: String, _ name: String, _ value: String) {
        #expect(parse(text)?.name == name && parse(text)?.value == value)
    }

    @Test("A cookie without name and value is ignored", arguments: ["", "=", " = ", ";Secure", "=;Path=/", "\t"])
    func nothing(_ text: String) { #expect(parse(text) == nil) }

    @Test("A cookie with a control character is ignored (§5.6 step 1; security 24) (security 24)")
    func controls() {
        for code in (UInt8(0)...0x1F).map(\.self) + [0x7F] where code != 0x09 {
            for text in [
                [code], Array("a=".utf8) + [code], Array("a=b; Path=/".utf8) + [code],
                Array("a=b; ".utf8) + [code, 0x3B],
            ] {
                #expect(SetCookie(text, now: 0) == nil, "\(code)")
            }
        }
        #expect(parse("a=b\tc")?.value == "b\tc")
    }

    @Test("Name and value together have at most 4096 bytes (§5.6 step 5; security 25) (security 25)")
    func sizes() {
        let value = String(repeating: "v", count: 4095)
        #expect(
            parse("n=\(value)")?.value == value && parse("nn=\(value)") == nil
                && parse("\(value)v")?.value.count == 4096)
        #expect(parse("\(value)vv") == nil)
        // An attribute that is too long is ignored.
        let path = "/" + String(repeating: "p", count: 1023)
        #expect(parse("a=b; Path=\(path)")?.path == path && parse("a=b; Path=/x; Path=\(path)p")?.path == "/x")
    }

    @Test("Expires and Max-Age are read, and limited to 400 days (§5.5, §5.6.1, §5.6.2)")
    func expiry() {
        let now: Int64 = 1_600_000_000
        #expect(parse("a=b", now: now)?.expires == nil)
        #expect(parse("a=b; Expires=Wed, 09 Sep 2020 00:00:00 GMT", now: now)?.expires == 1_599_609_600)
        #expect(parse("a=b; Expires=Fri, 01 Jan 2100 00:00:00 GMT", now: now)?.expires == now + 400 * 86400)
        #expect(parse("a=b; expires=nonsense", now: now)?.expires == nil)
        #expect(parse("a=b; Max-Age=60", now: now)?.expires == now + 60)
        #expect(parse("a=b; MAX-AGE = 60 ", now: now)?.expires == now + 60)
        #expect(parse("a=b; Max-Age=99999999999999999999999", now: now)?.expires == now + 400 * 86400)
        for zero in ["0", "-1", "-99999999999999999999999", "00"] {
            #expect(parse("a=b; Max-Age=\(zero)", now: now)?.expires == .min)
        }
        for nonsense in ["", "1.5", "+1", "1x", "x"] {
            #expect(parse("a=b; Max-Age=\(nonsense)", now: now)?.expires == nil, "\(nonsense)")
        }
        // Max-Age has precedence over Expires; the last of several counts.
        #expect(parse("a=b; Max-Age=60; Expires=Wed, 09 Sep 2020 00:00:00 GMT", now: now)?.expires == now + 60)
        #expect(parse("a=b; Max-Age=60; Max-Age=70; Max-Age=x", now: now)?.expires == now + 70)
    }

    @Test("The last Domain and Path count; a leading dot is removed (§5.6.3, §5.6.4)")
    func scope() {
        #expect(parse("a=b")?.domain == "" && parse("a=b")?.path == nil)
        #expect(parse("a=b; Domain=.Example.ORG")?.domain == "example.org")
        #expect(
            parse("a=b; domain=x.org; Domain=y.org")?.domain == "y.org"
                && parse("a=b; domain=x.org; Domain=")?.domain == "")
        #expect(
            parse("a=b; Path=/a; path=/b")?.path == "/b" && parse("a=b; Path=/a; path=b")?.path == nil
                && parse("a=b; Path")?.path == nil)
    }

    @Test("Flags are read without case, unknown attributes are ignored (§5.6.5 to §5.6.7)")
    func flags() {
        #expect(
            parse("a=b; secure; HTTPONLY")?.isSecure == true && parse("a=b; secure=no; httponly=x")?.isHTTPOnly == true)
        #expect(parse("a=b; Secured; Priority=High; Partitioned")?.isSecure == false)
        #expect(parse("a=b; SameSite=STRICT")?.sameSite == .strict && parse("a=b; samesite=lax")?.sameSite == .lax)
        let none = parse("a=b; SameSite=None")?.sameSite
        #expect(none == SetCookie.SameSite.none && parse("a=b; SameSite=None; SameSite=other")?.sameSite == nil)
    }
}

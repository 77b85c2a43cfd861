// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

/// RFC 6265bis §5.1.3 and §5.1.4, and public suffixes.
struct CookieScopeTests {
    @Test(
        "A host matches a domain that it equals or is below (§5.1.3; security 22, 23)",
        arguments: [
            ("example.org", "example.org", true), ("example.org", "www.example.org", true),
            ("example.org", "a.b.example.org", true),
            ("www.example.org", "example.org", false), ("ample.org", "example.org", false),
            ("example.org", "example.org.evil", false),
            ("", "example.org", false), ("org", "example.org", true), (".example.org", "www.example.org", false),
        ])
    func domains(_ domain: String, _ host: String, _ matches: Bool) {
        #expect(CookieScope.matches(domain: domain, host: host, hostIsAddress: false) == matches)
    }

    @Test("An IP address is below no domain (security 22)")
    func addresses() {
        #expect(CookieScope.matches(domain: "127.0.0.1", host: "127.0.0.1", hostIsAddress: true))
        #expect(!CookieScope.matches(domain: "0.0.1", host: "127.0.0.1", hostIsAddress: true))
        #expect(!CookieScope.matches(domain: "1", host: "127.0.0.1", hostIsAddress: true))
    }

    @Test(
        "A path matches a prefix that ends at a slash (§5.1.4)",
        arguments: [
            ("/", "/", true), ("/", "/a", true), ("/a", "/a", true), ("/a", "/a/", true), ("/a", "/a/b", true),
            ("/a/", "/a/b", true),
            ("/a/", "/a", false), ("/a", "/ab", false), ("/a", "/", false), ("/a/b", "/a", false), ("/A", "/a", false),
        ])
    func paths(_ path: String, _ request: String, _ matches: Bool) {
        #expect(CookieScope.matches(path: path, requestPath: request.utf8) == matches)
    }

    @Test(
        "The default path is the folder of the request (§5.1.4)",
        arguments: [
            ("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/c?d/e", "/a/b"), ("?q", "/"),
            ("/a/b?c", "/a"), ("/?/x", "/"),
        ])
    func defaults(_ target: String, _ path: String) { #expect(CookieScope.defaultPath(of: target.utf8) == path) }

    @Test(
        "Public suffixes are recognised (security 21)",
        arguments: [
            ("com", true), ("co.uk", true), ("example.com", false), ("github.io", true), ("kawasaki.jp", true),
            ("city.kawasaki.jp", false),
            ("localhost", true), ("nowhere", true), ("xn--p1ai", true), ("example.co.uk", false),
        ])
    func suffixes(_ name: String, _ isPublic: Bool) { #expect(PublicSuffixes.contains(name) == isPublic) }

    @Test(
        "The registrable domain is the public suffix and one label",
        arguments: [
            ("a.b.example.co.uk", "example.co.uk"), ("example.com", "example.com"), ("co.uk", "co.uk"),
            ("localhost", "localhost"),
            ("me.github.io", "me.github.io"), ("a.me.github.io", "me.github.io"), ("a.nowhere", "a.nowhere"),
        ])
    func owners(_ name: String, _ owner: String) { #expect(PublicSuffixes.registrableDomain(of: name) == owner) }
}

// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct URIReferenceTests {
    /// All examples of RFC 3986 §5.4.1 and §5.4.2.
    @Test(
        "References are resolved",
        arguments: [
            ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"),
            ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y#s"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
            ("../../", "http://a/"),
            ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s/./x", "http://a/b/c/g#s/./x"),
            ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
        ])
    func resolution(_ reference: String, _ expected: String) throws {
        let base = try URIReference("http://a/b/c/d;p?q")
        let resolved = try base.resolve(URIReference(reference))
        #expect(resolved.absoluteString == expected)
        #expect(try URIReference(expected) == resolved)
    }

    @Test("Unusual references are resolved") func corners() throws {
        #expect(try URIReference("http://a").resolve(URIReference("g")).absoluteString == "http://a/g")
        #expect(try URIReference("x:/b").resolve(URIReference("/.//g")).absoluteString == "x:/.//g")
        #expect(violation { _ = try URIReference("a/b").resolve(URIReference("g")) } == .invalidURL)
    }

    @Test("A URI is split into its parts") func parts() throws {
        let reference = try URIReference("http://u:p@[::1]:8080/a?b?c#d")
        #expect(
            reference.scheme == "http" && reference.userinfo == "u:p" && reference.host == "[::1]"
                && reference.port == 8080)
        #expect(reference.path == "/a" && reference.query == "b?c" && reference.fragment == "d")
        #expect(reference.removingUserinfo.absoluteString == "http://[::1]:8080/a?b?c#d")
        #expect(!"\(reference)".contains("p@"))
        #expect(
            try URIReference("//a:").port == nil && URIReference("a?").query == "" && URIReference("a").query == nil)
    }

    @Test(
        "Ambiguous and invalid URLs are refused (security 11, 43, 57)",
        arguments: [
            ("http://user:p@ss@host/", WireViolation.Code.ambiguousAuthority), ("http://a\\@b/", .ambiguousAuthority),
            ("http://a%5C@b/", .ambiguousAuthority), ("http://a%5c@b/", .ambiguousAuthority),
            ("http://a/b\\c", .invalidURL), ("http:\\\\a", .invalidURL), ("http://a/b c", .invalidURL),
            ("http://a/b\r\nc", .invalidURL),
            ("http://a/\0", .invalidURL), ("http://a/\t", .invalidURL), ("http://a/\u{7f}", .invalidURL),
            ("http://a/é", .invalidURL),
            ("http://a/?é", .invalidURL), ("http://a/%", .invalidURL), ("http://a/%4", .invalidURL),
            ("http://a/%zz", .invalidURL),
            ("http://a/|", .invalidURL), ("http://a/[", .invalidURL), ("http://a/#b#c", .invalidURL),
            ("1http://a/", .invalidURL),
            ("http://a:65536/", .invalidPort), ("http://a:x/", .invalidPort), ("http://a:-1/", .invalidPort),
            ("http://a:80:80/", .invalidPort),
            ("http://a:99999999999999999999/", .invalidPort), ("http://[::1/", .invalidHost),
            ("http://a[b/", .invalidHost), ("http://[::1]a/", .invalidHost),
        ])
    func refused(_ text: String, _ code: WireViolation.Code) {
        #expect(violation { _ = try URIReference(text) } == code, "\(text)")
    }

    @Test("An escaped slash in a user or a password is part of it")
    func slashInUserinfo() throws {
        let target = try Target("http://ann%2Fdomain:p%2fw@a/b")
        #expect(target.user == "ann/domain" && target.password == "p/w" && target.origin.host.description == "a")
        #expect(try URIReference("http://u:p%2F@a/b").removingUserinfo.absoluteString == "http://a/b")
        // An unescaped one ends the authority: the text before it is the host.
        #expect(violation { _ = try Target("http://ann:p/w@a/b") } == .invalidPort)
    }

    @Test("Characters that are invalid in URLs are escaped") func repair() throws {
        #expect(
            try URIReference("http://a/ü b|c\"<>^`{}[]?q=[ü]", repairing: true).absoluteString
                == "http://a/%C3%BC%20b%7Cc%22%3C%3E%5E%60%7B%7D%5B%5D?q=%5B%C3%BC%5D")
        #expect(try URIReference(bytes: [0x2F, 0xE9], repairing: true).absoluteString == "/%E9")
        #expect(try URIReference("http://ü.example/", repairing: true).host == "ü.example")
        for (text, repaired) in [
            ("/a\\b", "/a%5Cb"), ("/a\tb", "/a%09b"), ("?q=100%", "?q=100%25"), ("/%u00e9", "/%25u00e9"),
            ("/%4", "/%254"),
            ("/%41%", "/%41%25"), ("/a#b#c", "/a#b%23c"), ("##", "#%23"), ("/\\a/b", "/%5Ca/b"), ("%", "%25"),
            ("\\\\a/b", "%5C%5Ca/b"),
        ] {
            #expect(try URIReference(text, repairing: true).absoluteString == repaired)
        }
        for bad in [
            "http://a b/", "/a\r\nb", "/a\0b", "http://a|b/", "http://a\\b/",
            "http://a\t/",
        ] {
            #expect(violation { _ = try URIReference(bad, repairing: true) } != nil, "\(bad)")
        }
    }

    @Test("Request targets are made in each of their forms") func targets() throws {
        let target = try Target("HTTP://u%20s:p%3Aw@EXAMPLE.com:8080?q#f")
        #expect(
            target.origin.description == "http://example.com:8080" && target.user == "u s" && target.password == "p:w")
        #expect(target.originForm == bytes("/?q") && target.hostField == bytes("example.com:8080"))
        #expect(target.absoluteForm == bytes("http://example.com:8080/?q"))
        #expect(!"\(target)".contains("q") && !"\(target)".contains("p:w"))
        let secure = try Target("https://[fe80::1%25eth0]:443/a/../b")
        #expect(secure.hostField == bytes("[fe80::1]") && secure.user == nil)
        #expect(try Target("http://host#@evil.example/").origin.host.description == "host", "CVE-2016-8624")
        for (text, code) in [
            ("ftp://a/", WireViolation.Code.unsupportedScheme), ("/a", .invalidURL), ("http:///a", .invalidHost),
            ("http:a", .invalidHost),
            ("http://u@/", .invalidHost), ("http://u%00@a/", .invalidURL), ("http://u%0D%0A@a/", .invalidURL),
            ("http://a%2Fb/", .invalidHost),
        ] {
            #expect(violation { _ = try Target(text) } == code, "\(text)")
        }
    }
}

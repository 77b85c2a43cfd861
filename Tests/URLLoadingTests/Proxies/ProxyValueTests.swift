// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingWire

@testable import URLLoading

/// The values of http_proxy and no_proxy.
@Suite struct ProxyValueTests {
    @Test(
        "the text of a proxy is parsed, with its default port",
        arguments: [
            ("proxy.example", "http://proxy.example:1080"), ("proxy.example:3128", "http://proxy.example:3128"),
            ("http://proxy.example/", "http://proxy.example:1080"),
            ("HTTPS://Proxy.Example", "https://proxy.example:443"),
            ("https://proxy.example:8443", "https://proxy.example:8443"),
            ("socks5://10.0.0.1:9", "socks5://10.0.0.1:9"),
            ("socks5h://a:b@gate", "socks5h://gate:1080"), ("socks://gate:1", "socks5h://gate:1"),
            ("socks4://gate", "socks4://gate:1080"),
            ("socks5h://u@localhost/run/a%20b", "socks5h://localhost/run/a b"),
            ("socks4a://me@gate", "socks4a://gate:1080"),
            ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080"),
            ("http://bücher.example:1", "http://xn--bcher-kva.example:1"),
        ])
    func goodText(text: String, expected: String) throws {
        let proxy = try Proxy(text)
        #expect(proxy.description == expected)
    }

    @Test(
        "the wrong text of a proxy is an error without its secrets",
        arguments: [
            "", "http://", "ftp://proxy", "localhost/run/a", "http://localhost:1/run/a", "http://localhost/run/%00",
            "http://localhost/run/" + String(repeating: "a", count: 108), "http://proxy:+80", "http://proxy:99999",
            "http://proxy:0", "http://proxy/path", "http://proxy?a", "http://a b",
            "http://u:p@", "http://u%0d:p@proxy", "http://u%3Ax:p@proxy", "socks5://:pw@gate", "http://secret@x@proxy",
            "proxy:1:2",
        ])
    func badText(text: String) throws {
        let error = #expect(throws: LoadError.self) { try Proxy(text) }
        #expect(error?.reason == .badProxy && error?.party == .local)
        #expect(error?.description.contains("secret") == false)
    }

    @Test("credentials of a proxy are parsed") func credentials() throws {
        let proxy = try Proxy("http://u%40x:p%2Fw@proxy:1")
        #expect(proxy.user == "u@x" && proxy.password == "p/w")
        #expect(proxy.authorizationField == "Basic " + Data("u@x:p/w".utf8).base64EncodedString())
        let anonymous = try Proxy("http://proxy:1")
        let gate = try Proxy("socks5://u:p@gate")
        #expect(anonymous.authorizationField == nil && gate.authorizationField == nil)
        let userAlone = try Proxy("http://u@proxy:1")
        #expect(userAlone.authorizationField == "Basic dTo=")
        #expect(throws: LoadError.self) { try Proxy(.socks5, host: "gate", user: String(repeating: "a", count: 256)) }
    }

    /// Whatever way it is printed.
    @Test("descriptions contain no secrets") func secretsArePrintedNowhere() throws {
        let proxy = try Proxy(.http, host: "proxy", port: 1, user: "USER", password: "S3CRET")
        let chain: ProxyChain = [proxy]
        var dumped = ""
        dump(chain, to: &dumped)
        let failure = ProxyFailure(proxy: proxy, head: nil, reply: nil)
        dump(failure, to: &dumped)
        let route = Route(
            origin: try Origin(scheme: "http", host: .init("a.test")), proxyChain: chain.authorized(by: "Basic S3CRET"))
        dump(route, to: &dumped)
        let texts = [
            "\(proxy)", String(reflecting: proxy), "\(chain)", String(reflecting: chain), dumped, "\(failure)",
            "\(route)",
        ]
        for text in texts { #expect(!text.contains("S3CRET") && !text.contains("USER"), "\(text)") }
    }

    // MARK: no_proxy

    @Test(
        arguments: [
            // rule, host, port, whether it fits
            ("example.org", "example.org", 80, true), ("example.org", "www.example.org", 80, true),
            (".example.org", "example.org", 80, true),
            (".example.org", "www.example.org", 443, true), ("example.org", "notexample.org", 80, false),
            ("example.org", "example.org.evil", 80, false),
            ("EXAMPLE.org", "Example.ORG", 80, true), ("example.org.", "example.org", 80, true),
            ("example.org", "example.org.", 80, true),
            ("*.example.org", "www.example.org", 80, true), ("*.example.org", "example.org", 80, false),
            ("*example.org", "www.example.org", 80, false),
            ("*", "anything.test", 1, true), ("*", "10.0.0.1", 1, true), ("a,*", "b", 1, true), ("", "a", 1, false),
            (",, ,", "a", 1, false),
            ("a b", "b", 1, true), ("a,\tb", "b", 1, true), ("localhost", "127.0.0.1", 80, false),
            ("127.0.0.1", "localhost", 80, false),
            ("example.org:8080", "example.org", 8080, true), ("example.org:8080", "example.org", 80, false),
            ("example.org:99999", "example.org", 80, false), ("example.org:+80", "example.org", 80, false),
            ("10.0.0.1", "10.0.0.1", 80, true), ("10.0.0.1", "10.0.0.2", 80, false),
            ("10.0.0.1:80", "10.0.0.1", 80, true), ("10.0.0.1:80", "10.0.0.1", 81, false),
            ("10.0.0.0/8", "10.255.1.2", 80, true), ("10.0.0.0/8", "11.0.0.1", 80, false),
            ("192.0.2.128/25", "192.0.2.127", 80, false),
            ("192.0.2.128/25", "192.0.2.200", 80, true), ("0.0.0.0/0", "8.8.8.8", 80, true),
            ("0.0.0.0/0", "a.test", 80, false), ("10.0.0.0/33", "10.0.0.0", 80, false),
            ("10.0.0.0/", "10.0.0.0", 80, false), ("10.0.0.0/8/8", "10.0.0.0", 80, false),
            ("10.0.0.0/8:81", "10.1.1.1", 81, true), ("10.0.0.0/8:81", "10.1.1.1", 80, false),
            ("::1", "[::1]", 80, true), ("[::1]", "[::1]", 80, true), ("[::1]:80", "[::1]", 80, true),
            ("[::1]:80", "[::1]", 81, false),
            ("2001:db8::/32", "[2001:db8:1::9]", 80, true), ("2001:db8::/32", "[2001:db9::]", 80, false),
            ("fd00::/8", "[fd12::1]", 80, true),
            ("::/0", "10.0.0.1", 80, false), ("0:0:0:0:0:0:0:1", "[::1]", 80, true), ("10", "10.0.0.1", 80, false),
            ("bücher.example", "xn--bcher-kva.example", 80, true),
            ("org", "example.org", 80, true), ("/24", "a", 80, false), ("a/b", "a", 80, false),
        ] as [(String, String, UInt16, Bool)])
    func `no_proxy is exact (security 86)`(rule: String, host: String, port: UInt16, fits: Bool) {
        #expect(ProxyBypass(rule).contains(host: host, port: port) == fits)
    }

    // MARK: The environment

    func way(_ variables: [String: String], _ text: String) throws -> String {
        let target = try Target(text).origin
        return try ProxyEnvironment { variables[$0] }.chain(to: target.host, port: target.port, scheme: target.scheme)
            .description
    }

    @Test(
        arguments: [
            (["http_proxy": "p:1"], "http://a.test/", "http://p:1"),
            (["http_proxy": "p:1"], "https://a.test/", "direct"),
            (["https_proxy": "p:1"], "https://a.test/", "http://p:1"),
            (["https_proxy": "p:1"], "http://a.test/", "direct"),
            (["HTTPS_PROXY": "p:1"], "https://a.test/", "http://p:1"),
            (["HTTPS_PROXY": "p:1", "https_proxy": "q:1"], "https://a.test/", "http://q:1"),
            (["all_proxy": "socks5://p:1"], "http://a.test/", "socks5://p:1"),
            (["ALL_PROXY": "socks5://p:1"], "https://a.test/", "socks5://p:1"),
            (["all_proxy": "socks5://p:1", "http_proxy": "q:1"], "http://a.test/", "http://q:1"),
            (["http_proxy": ""], "http://a.test/", "direct"),
            (["http_proxy": "", "all_proxy": "q:1"], "http://a.test/", "http://q:1"),
            (["HTTP_PROXY": "p:1"], "http://a.test/", "http://p:1"),
            (["HTTP_PROXY": "p:1", "REQUEST_METHOD": "GET"], "http://a.test/", "direct"),
            (["http_proxy": "p:1", "REQUEST_METHOD": "GET"], "http://a.test/", "http://p:1"),
            (["HTTP_PROXY": "p:1", "REQUEST_METHOD": "", "all_proxy": "q:1"], "http://a.test/", "http://q:1"),
            (["http_proxy": "p:1", "no_proxy": "test"], "http://a.test/", "direct"),
            (["http_proxy": "p:1", "NO_PROXY": "*"], "http://a.test/", "direct"),
            (["http_proxy": "p:1", "no_proxy": "b.test", "NO_PROXY": "*"], "http://a.test/", "http://p:1"),
            (["http_proxy": "p:1"], "http://localhost/", "direct"),
            (["http_proxy": "p:1"], "http://a.localhost/", "direct"),
            (["http_proxy": "p:1"], "http://127.1.2.3/", "direct"), (["http_proxy": "p:1"], "http://[::1]/", "direct"),
            ([:], "http://a.test/", "direct"),
        ] as [([String: String], String, String)])
    func `variables (checklist 120, security 86)`(variables: [String: String], url: String, expected: String) throws {
        let way = try way(variables, url)
        #expect(way == expected)
    }

    /// A proxy that was meant to be used is not passed by because it is misspelt.
    @Test("invalid environment variables are errors") func badVariables() throws {
        for variables in [["http_proxy": "ftp://u:S3CRET@p"], ["all_proxy": "http://"]] {
            let error = #expect(throws: LoadError.self) { try way(variables, "http://a.test/") }
            #expect(error?.reason == .badProxy && error?.detail?.contains("_proxy:") == true)
            #expect(error?.description.contains("S3CRET") == false)
        }
        let other = try way(["http_proxy": "ftp://p"], "https://a.test/")
        #expect(other == "direct")
    }

    // MARK: The desktop

    @Test("the answers of the desktop's settings are parsed") func answersOfTheDesktop() throws {
        let chains = try DesktopProxies.chains(from: [
            "http://p:3128", "socks5://s:1080", "socks://t:1", "socks4://u:1", "direct://", "pac+http://w/x.pac",
        ])
        #expect(
            chains.map(\.description) == [
                "http://p:3128", "socks5h://s:1080", "socks5h://t:1", "socks4a://u:1", "direct",
            ])
        // A way that is not understood is not the direct one.
        #expect(throws: LoadError.self) { try DesktopProxies.chains(from: ["wpad://"]) }
    }

    @Test("a head ends at its empty line and not earlier") func headsEndNoEarlierThan() {
        for (text, missing) in [
            ("HTTP", 4), ("HTTP\r", 3), ("HTTP\r\n", 2), ("HTTP\r\n\r", 1), ("\r\r", 3), ("\n", 4), ("a\r\n\r\na", 4),
        ] {
            #expect(HeadEnd.missing(in: Array(text.utf8)) == missing, "\(text.debugDescription)")
        }
    }
}

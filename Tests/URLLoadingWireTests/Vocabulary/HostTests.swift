// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct HostTests {
    @Test(
        "Hosts are brought to normal form",
        arguments: [
            ("Example.COM", "example.com"), ("example.com.", "example.com."), ("a_b.c", "a_b.c"), ("-a-.b", "-a-.b"),
            ("bücher.example", "xn--bcher-kva.example"), ("b%C3%BCcher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"), ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example"), ("bu\u{308}cher.example", "xn--bcher-kva.example"),
            ("faß.de", "xn--fa-hia.de"), ("a\u{3002}b", "a.b"), ("ex%61mple", "example"),
            ("r3---sn.xn--bcher-kva", "r3---sn.xn--bcher-kva"),
            ("\u{212A}.com", "k.com"), ("%E2%84%AA.com", "k.com"),  // security 34: mapped, never kept
            ("127.0.0.1", "127.0.0.1"), ("1.2.3.4a", "1.2.3.4a"), ("0x7g", "0x7g"), ("１.2.3.4", "1.2.3.4"),
            ("1.2.3.4.a", "1.2.3.4.a"),
            ("[::1]", "[::1]"), ("[0:0:0:0:0:0:0:0]", "[::]"), ("[2001:DB8:0:0:1:0:0:1]", "[2001:db8::1:0:0:1]"),
            ("[1:0:2:0:0:3:0:0]", "[1:0:2::3:0:0]"), ("[1:2:3:4:5:6:7::]", "[1:2:3:4:5:6:7:0]"),
            ("[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]"),
            ("[::FFFF:102:304]", "[::ffff:1.2.3.4]"), ("[fe80::1%25eth0]", "[fe80::1%25eth0]"),
            ("[1::2:3.4.5.6]", "[1::2:304:506]"),
        ])
    func normalForm(_ text: String, _ normal: String) throws {
        let host = try Origin.Host(text)
        #expect(host.description == normal)
        #expect(try Origin.Host(normal) == host)
    }

    /// Security 32, 34, 57: hosts that another parser could read as a different host.
    @Test(
        "Ambiguous hosts are refused (security 57)",
        arguments: [
            "", ".", "..", "a..b", ".a", "a b", "a%20b", "a%2Fb", "a%2fb", "a/b", "a%00b", "a\0b", "good\0.evil", "a@b",
            "a%40b",
            "a:b", "a%3A80", "a%3a", "%", "%4", "%zz", "%ff", "%C3", "a%5Cb", "a\\b", "a#b", "a?b", "a!b", "a,b",
            "\u{2100}.com", "\u{ad}",
            "xn--", "xn--a.com", "xn--zn7c.com", "xn--fa", "xn--abc-.de", "xn--bcher-kva%00", "\u{200d}.de",
            "a\u{ff0f}b", "a\u{ff1a}b",
            "1.2..4", "[", "[]", "[::1", "::1", "[::1]x", "[:1]", "[1:]", "[1:::2]",
            "[1::2::3]", "[12345::]",
            "[1:2:3:4:5:6:7:8:9]", "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8::]", "[::1.2.3]", "[::1.2.3.4:5]",
            "[1.2.3.4::]", "[::01.2.3.4]", "[::g]",
            "[v1.a]", "[fe80::1%eth0]", "[fe80::1%25]", "[fe80::1%25a%00]", "[fe80::1%25a%2F]",
            "[fe80::1%25aaaaaaaaaaaaaaaa]", "[%3A%3A1]",
        ])
    func refused(_ text: String) {
        #expect(violation { _ = try Origin.Host(text) } == .invalidHost, "\(text)")
    }

    @Test(
        "Addresses in other forms than four decimal numbers are refused (security 57)",
        arguments: [
            "1", "1.2", "1.2.3", "1.2.3.4.5", "127.1", "0x7f.1", "0x7f000001", "a.0x", "2130706433", "01.2.3.4",
            "1.2.3.256", "1.2.3.04", "1.2.3.4.", "1.2.3.0x4", "a.1",
        ])
    func refusedAddress(_ text: String) {
        #expect(violation { _ = try Origin.Host(text) } == .ambiguousAddress, "\(text)")
    }

    @Test("Labels and names have maximum lengths") func lengths() throws {
        let label = String(repeating: "a", count: 63)
        let longest = [label, label, label, String(repeating: "a", count: 61)].joined(separator: ".")
        #expect(try Origin.Host(longest + ".").dnsName == longest)
        #expect(violation { _ = try Origin.Host(longest + "a") } == .invalidHost)
        #expect(violation { _ = try Origin.Host(label + "a") } == .invalidHost)
    }

    @Test("A host has a kind, an authority and a DNS name") func forms() throws {
        let zoned = try Origin.Host("[fe80::1%25eth%30]")
        #expect(zoned.kind == .ipv6([0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [1], zone: "eth0"))
        #expect(zoned.authority == "[fe80::1]" && zoned.dnsName == nil && zoned.isAddress)
        #expect(try Origin.Host("a.") != Origin.Host("a") && Origin.Host("a.").dnsName == "a")
        #expect(Origin.Host(address: [1, 2, 3, 4])?.description == "1.2.3.4" && Origin.Host(address: [1]) == nil)
        #expect(try Origin.Host("1.2.3.4").kind == .ipv4([1, 2, 3, 4]))
    }

    @Test("Origins are compared by scheme, host and port") func origins() throws {
        let host = try Origin.Host("A.b")
        #expect(try Origin(scheme: "HTTPS", host: host) == Origin(scheme: "https", host: host, port: 443))
        #expect(try Origin(scheme: "http", host: host, port: 8080).description == "http://a.b:8080")
        #expect(try Origin(scheme: "wss", host: host).isSecure && Origin(scheme: "http", host: host).authority == "a.b")
        #expect(violation { _ = try Origin(scheme: "gopher", host: host) } == .unsupportedScheme)
        #expect(violation { _ = try Origin(scheme: "1", host: host, port: 1) } == .invalidURL)
    }
}

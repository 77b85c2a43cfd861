// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

/// The registries of RFC 6890, block by block: the first and last address of each, and the addresses beside it.
@Suite struct AddressKindTests {
    typealias Flag = any KeyPath<ResolvedAddress, Bool> & Sendable
    static let flags: [(String, Flag)] = [
        ("loopback", \.isLoopback), ("private", \.isPrivate), ("linkLocal", \.isLinkLocal),
        ("multicast", \.isMulticast),
        ("unspecified", \.isUnspecified), ("global", \.isGlobal),
    ]

    static let addresses: [(String, [String])] = [
        ("unspecified", ["0.0.0.0", "::", "::ffff:0.0.0.0", "64:ff9b::0.0.0.0"]),
        (
            "loopback",
            [
                "127.0.0.0", "127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1", "::FFFF:7F00:1",
                "64:ff9b::7f00:1",
            ]
        ),
        (
            "private",
            [
                "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255",
                "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::1", "::ffff:10.0.0.1", "::ffff:c0a8:1",
                "64:ff9b::192.168.1.1",
            ]
        ),
        (
            "linkLocal",
            ["169.254.0.0", "169.254.169.254", "169.254.255.255", "fe80::", "febf:ffff::1", "::ffff:169.254.169.254"]
        ),
        ("multicast", ["224.0.0.0", "239.255.255.255", "ff00::", "ff02::1", "ffff::", "::ffff:224.0.0.1"]),
        (
            "",
            [
                "0.0.0.1", "0.255.255.255", "100.64.0.0", "100.127.255.255", "192.0.0.0", "192.0.0.8", "192.0.0.11",
                "192.0.0.255",
                "192.0.2.0", "192.0.2.255", "192.88.99.1", "198.18.0.0", "198.19.255.255", "198.51.100.7",
                "203.0.113.255",
                "240.0.0.0", "255.255.255.255",
                "::2", "::7f00:1", "::ffff:0:127.0.0.1", "64:ff9b:1::1", "64:ff9b::1:7f00:1", "100::1", "2001::",
                "2001::1",
                "2001:0:7f00:1::", "2001:1::", "2001:1::4", "2001:2::1", "2001:10::1", "2001:1ff::", "2001:db8::1",
                "2002:7f00:1::1",
                "2002:808:808::1", "3fff::", "3fff:fff::1", "4000::", "5f00::1", "1fff::", "f000::", "fe00::",
            ]
        ),
        (
            "global",
            [
                "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
                "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.0.9", "192.0.0.10",
                "192.0.1.0",
                "192.31.196.1", "192.52.193.1", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
                "192.175.48.1",
                "198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2000::",
                "2001:1::1", "2001:1::2", "2001:1::3", "2001:3::1", "2001:4:112::1", "2001:20::1", "2001:2f:ffff::",
                "2001:30::1",
                "2001:200::1", "2001:db7:ffff::", "2001:db9::", "2003::1", "2606:4700::1111", "2620:4f:8000::1",
                "3ffe::1",
                "3fff:1000::", "2001:4860:4860::8888",
            ]
        ),
    ]

    @Test("each address has its kind, and one kind only", arguments: addresses)
    func kinds(_ kind: String, _ texts: [String]) throws {
        for text in texts {
            let address = try #require(ResolvedAddress(text), "\(text)")
            let found = Self.flags.filter { address[keyPath: $0.1] }.map(\.0)
            #expect(found == (kind.isEmpty ? [] : [kind]), "\(text)")
            #expect(AddressPolicy.publicOnly.allows(address) == (kind == "global"), "\(text)")
            #expect(AddressPolicy.any.allows(address))
        }
    }

    @Test("an address shows itself in one spelling")
    func description() throws {
        let own = try #require(ResolvedAddress("2001:DB8:0:0::1", port: 80))
        #expect(own.text == "2001:db8::1" && own.host == "[2001:db8::1]" && own.isIPv6)
        #expect("\(own)" == "[2001:db8::1]:80")
        let named = try #require(ResolvedAddress("192.0.2.1", host: "example.org"))
        #expect("\(named)" == "example.org 192.0.2.1:443" && !named.isIPv6)
        #expect(try #require(ResolvedAddress("::ffff:192.0.2.1")).text == "::ffff:192.0.2.1")
    }

    @Test(
        "text that is not an address yields none",
        arguments: [
            "", "example.org", "1.2.3", "0x7f.1", "127.1", "256.1.1.1", "01.2.3.4", "[::1]", "::1%25lo", "::1%lo",
            "1::2::3", ":", "::1]",
            "1.2.3.4:80", " 1.2.3.4", "1.2.3.4.", "::ffff:1.2.3",
        ])
    func refused(_ text: String) { #expect(ResolvedAddress(text) == nil) }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

@testable import urlload

/// Options for proxies, addresses and interfaces, with curl's grammar.
@Suite struct NetworkOptionsTests {
    private func parse(_ words: String...) throws -> NetworkOptions {
        try ArgumentParser.parse(words + ["u"]).networks
    }

    @Test("Proxies are parsed") func proxies() throws {
        #expect(try parse("-x", "p:1").proxy?.description == "http://p:1")
        #expect(try parse("--proxy", "https://p").proxy?.description == "https://p:443")
        #expect(try parse("-x", "socks5h://p").proxy?.description == "socks5h://p:1080")
        #expect(try parse("--socks5", "p").proxy?.description == "socks5://p:1080")
        #expect(try parse("--socks5-hostname", "p:2").proxy?.description == "socks5h://p:2")
        #expect(try parse("--socks4", "p").proxy?.description == "socks4://p:1080")
        #expect(try parse("--socks5", "socks5://p").proxy?.description == "socks5://p:1080")
        #expect(try parse("-x", "socks5h://localhost/run/p").proxy?.socketPath == "/run/p")
        let other = #expect(throws: UsageError.self) { try parse("--socks5", "http://p") }
        #expect(other?.words == "--socks5 is for socks5://; --proxy takes http:// if it is a kind of proxy")
        #expect(try parse("--socks4a", "u@p:2").proxy?.description == "socks4a://p:2")
        let none = try parse("-x", "p:1", "-x", "")
        #expect(none.forbidsProxies && none.proxy == nil)
        #expect(try !parse("-x", "", "-x", "p:1").forbidsProxies)
    }

    @Test("Options for proxies make a proxy policy") func optionsForProxiesMakeAProxyPolicy() throws {
        // These options apply to the proxies of the environment, too.
        #expect(try parse("-U", "a:b").policy() != nil)
        #expect(try parse("--preproxy", "socks5://p").policy() != nil)
        #expect(throws: UsageError.self) { try parse("-U", "a:b\nc") }
        #expect(throws: UsageError.self) { try parse("-x", "p", "-U", "a:b\nc") }
        #expect(try parse("-x", "p", "-U", "a:b:c", "--preproxy", "socks5://q").policy() != nil)
        #expect(try parse("--noproxy", "a,b").policy() != nil)
        #expect(try parse().policy() == nil)
        #expect(try parse("--noproxy", "*").bypass?.contains(host: "a", port: 1) == true)
    }

    @Test("Invalid proxies, addresses and interfaces are refused") func invalidProxiesAddressesAndInterfacesAreRefused()
    {
        for words in [
            ["-x", "ftp://p"], ["--socks5", "http://p"], ["--resolve", "a:80"], ["--resolve", "a:x:1.2.3.4"],
            ["--resolve", "a:80:b"], ["--resolve", "a:80:"], ["--connect-to", "a:1:b"], ["--connect-to", "a:x:b:1"],
            ["--connect-to", "a:+80:b:1"], ["--resolve", "a:+80:192.0.2.1"], ["-x", "p:+80"], ["--connect-to", "a"],
            ["--unix-socket", ""], ["--interface", "host!eth0"],
        ] {
            #expect(throws: UsageError.self, "\(words)") { try ArgumentParser.parse(words + ["u"]) }
        }
        let error = #expect(throws: UsageError.self) { try parse("-x", "http://u:SECRET@p:x") }
        #expect(error?.words.contains("SECRET") == false)
    }

    @Test("Address overrides and interfaces are parsed") func places() throws {
        #expect(
            try parse("--resolve", "a:80:192.0.2.1,[2001:db8::1]").overrides == [
                .addresses(["192.0.2.1", "2001:db8::1"], of: "a", port: 80)
            ])
        #expect(try parse("--resolve", "+a:80:::1").overrides == [.addresses(["::1"], of: "a", port: 80)])
        #expect(try parse("--resolve", "*:443:::1").overrides == [.addresses(["::1"], of: nil, port: 443)])
        #expect(
            try parse("--connect-to", "a:80:b:81", "--connect-to", ":::9").overrides == [
                .connect("a", port: 80, to: "b", onPort: 81), .connect(nil, to: nil, onPort: 9),
            ])
        #expect(try parse("--connect-to", "[::1]:80:[::2]:").overrides == [.connect("[::1]", port: 80, to: "[::2]")])
        #expect(try parse("--unix-socket", "/run/a").overrides == [.unixSocket("/run/a", for: nil)])
        #expect(try parse("--abstract-unix-socket", "a").overrides == [.abstractUnixSocket("a", for: nil)])
        #expect(try parse("--interface", "eth0").interface == .named("eth0"))
        #expect(try parse("--interface", "192.0.2.1").interface == .address("192.0.2.1"))
        #expect(try parse("--interface", "if!192.0.2.1").interface == .named("192.0.2.1"))
    }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

struct ServiceLookupTests {
    private func record(
        _ priority: UInt16, _ target: String, _ protocols: [String], port: UInt16? = nil
    ) throws -> ServiceRecord {
        ServiceRecord(priority: priority, target: try #require(DNSName(target)), protocols: protocols, port: port)
    }

    private func offer(_ records: ServiceRecord..., port: UInt16 = 443) throws -> AlternativeService? {
        var lookup = try #require(ServiceLookup(host: "www.example.com", port: port))
        let offer = lookup.take(ServiceAnswer(content: .services(records)))
        return try #require(offer).service
    }

    @Test("The name asked for is the host's, with another port before it") func names() throws {
        #expect(ServiceLookup(host: "WWW.example.com.", port: 443)?.name.host == "www.example.com")
        #expect(ServiceLookup(host: "www.example.com", port: 8443)?.name.host == "_8443._https.www.example.com")
    }

    @Test(
        "Names of this machine and its network are not asked for",
        arguments: ["localhost", "a.localhost", "printer", "printer.local", "a.onion", "a.invalid", "", "a..b"])
    func local(name: String) { #expect(ServiceLookup(host: name, port: 443) == nil) }

    @Test("HTTP/3 is offered at the host itself, at another port, or at another host") func places() throws {
        #expect(try offer(record(1, "www.example.com", ["h3"])) == AlternativeService("h3", port: 443))
        #expect(try offer(record(1, "www.example.com", ["h3"]), port: 81) == AlternativeService("h3", port: 81))
        #expect(try offer(record(1, "www.example.com", ["h2", "h3"], port: 8)) == AlternativeService("h3", port: 8))
        let other = AlternativeService("h3", host: try Origin.Host("cdn.example.net"), port: 443)
        #expect(try offer(record(1, "CDN.example.net", ["h3"])) == other)
        #expect(try offer(record(1, "www.example.com", ["h3"], port: 0)) == nil)
        #expect(try offer(record(1, "www.exa mple.com", ["h3"])) == nil)
    }

    @Test("The best record that this client can use decides") func priority() throws {
        let (h3, h2) = (["h3", "http/1.1"], ["h2", "http/1.1"])
        #expect(try offer(record(2, "b.example", h3), record(1, "a.example", h3))?.host?.description == "a.example")
        #expect(try offer(record(2, "b.example", h3), record(1, "a.example", h2)) == nil)
        #expect(try offer(record(1, "b.example", h2), record(1, "a.example", h3))?.host?.description == "a.example")
        #expect(try offer(record(2, "b.example", h3), record(1, "a.example", ["x"]))?.host?.description == "b.example")
        #expect(try offer(record(1, "www.example.com", h2)) == nil)
    }

    @Test("A record for others is passed over") func others() throws {
        typealias M = DNSMessages
        let query = ServiceQuery(try #require(DNSName("www.example.com")), id: 7)
        let reply = query.reply(
            M.answer([
                M.record(M.service(1, "a.example", [(0, [0, 9]), M.alpn("h3"), (9, [])])),
                M.record(M.service(2, "b.example", [M.alpn("h3")])),
            ]))
        guard case .answer(let answer) = reply else {
            Issue.record("\(reply)")
            return
        }
        var lookup = try #require(ServiceLookup(host: "www.example.com", port: 443))
        #expect(lookup.take(answer)?.service?.host?.description == "b.example")
    }

    @Test("Aliases are followed, and not without an end") func aliases() throws {
        var lookup = try #require(ServiceLookup(host: "www.example.com", port: 443))
        for index in 0..<8 {
            let target = try #require(DNSName("a\(index).example"))
            #expect(lookup.take(ServiceAnswer(content: .alias(target), lifetime: 100)) == nil)
            #expect(lookup.name == target)
        }
        var ended = lookup
        let last = ServiceAnswer(content: .services([try record(1, "a7.example", ["h3"])]), lifetime: 5_000)
        #expect(
            lookup.take(last)
                == ServiceOffer(
                    service: AlternativeService("h3", host: try Origin.Host("a7.example"), port: 443), lifetime: 100))
        let target = try #require(DNSName("www.example.com"))
        #expect(ended.take(ServiceAnswer(content: .alias(target))) == ServiceOffer(lifetime: 100))
    }

    @Test("A lifetime is between a minute and a day") func lifetimes() throws {
        for (given, used) in [(Int64(0), Int64(60)), (61, 61), (1 << 31, 86_400)] {
            var lookup = try #require(ServiceLookup(host: "www.example.com", port: 443))
            #expect(lookup.take(ServiceAnswer(content: .services([]), lifetime: given))?.lifetime == used)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

struct ServiceQueryTests {
    private typealias M = DNSMessages

    private func query(_ name: String = "www.example.com", id: UInt16 = 7) throws -> ServiceQuery {
        ServiceQuery(try #require(DNSName(name)), id: id)
    }

    private func services(_ records: [UInt8]...) throws -> [ServiceRecord]? {
        guard case .answer(let answer) = try query().reply(M.answer(records)),
            case .services(let services) = answer.content
        else { return nil }
        return services
    }

    private func host(_ name: String) throws -> DNSName { try #require(DNSName(name)) }

    // MARK: Names and questions

    @Test("A question has the id, asks for recursion, and says how large an answer may be") func question() throws {
        let name = M.name("www.example.com")
        #expect(
            try query("WWW.Example.COM.", id: 0x1234).bytes
                == [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1] + name + [
                    0, 65, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0,
                ])
    }

    @Test("Names that cannot be sent are refused") func names() {
        let long = String(repeating: "a", count: 63)
        #expect(DNSName(long)?.host == long)
        #expect(DNSName(long + "a") == nil)
        #expect(DNSName("\(long).\(long).\(long).\(String(repeating: "a", count: 61))")?.bytes.count == 255)
        #expect(DNSName("\(long).\(long).\(long).\(String(repeating: "a", count: 62))") == nil)
        for name in ["", ".", "a..b", ".a", "a.."] { #expect(DNSName(name) == nil, "\(name)") }
        #expect(DNSName("a.b.")?.host == "a.b")
        #expect(DNSName("a b.c")?.host == nil)
    }

    // MARK: Records

    @Test("The examples of RFC 9460 are read as it says") func examples() throws {
        let foo = M.name("foo.example.com")
        let wide: [UInt8] = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0]
        let rows: [([UInt8], ServiceRecord)] = [
            ([0, 1, 0], ServiceRecord(priority: 1, target: try host("www.example.com"), protocols: ["http/1.1"])),
            (
                [0, 16] + foo + [0, 3, 0, 2, 0, 53],
                ServiceRecord(priority: 16, target: try host("foo.example.com"), protocols: ["http/1.1"], port: 53)
            ),
            (
                [0, 1] + foo + [2, 0x9B, 0, 5] + Array("hello".utf8),
                ServiceRecord(priority: 1, target: try host("foo.example.com"), protocols: ["http/1.1"])
            ),
            (
                [0, 1] + foo + [0, 6, 0, 32] + wide + [0, 0, 0, 1] + wide + [0, 0x53, 0, 1],
                ServiceRecord(priority: 1, target: try host("foo.example.com"), protocols: ["http/1.1"])
            ),
            (
                [0, 16] + foo + [0, 0, 0, 4, 0, 1, 0, 4, 0, 1, 0, 9, 2, 0x68, 0x32, 5, 0x68, 0x33, 0x2D, 0x31, 0x39]
                    + [0, 4, 0, 4, 192, 0, 2, 1],
                ServiceRecord(
                    priority: 16, target: try host("foo.example.com"), protocols: ["h2", "h3-19", "http/1.1"])
            ),
        ]
        for (data, record) in rows { #expect(try services(M.record(data)) == [record]) }
        let alias = ServiceAnswer(content: .alias(try host("foo.example.com")), lifetime: 600)
        #expect(try query().reply(M.answer([M.record([0, 0] + foo)])) == .answer(alias))
    }

    @Test("A record without the default protocol has only those that it names") func noDefault() throws {
        let own = try services(M.record(M.service(1, "", [M.alpn("h3"), (2, [])])))
        #expect(own?.first?.protocols == ["h3"])
        #expect(try services(M.record(M.service(1, "", [(2, [])]))) == nil)
    }

    @Test("A record with an unknown mandatory key is for others, one with an unknown key is not")
    func mandatory() throws {
        let unknown = try services(M.record(M.service(1, "", [M.alpn("h3"), (5, [1]), (700, [1, 2])])))
        #expect(unknown?.map(\.isForOthers) == [false])
        for key in [UInt16(5), 700] {
            let record = M.service(1, "", [(0, M.numbers(1, key)), M.alpn("h3"), (key, [1])])
            #expect(try services(M.record(record))?.map(\.isForOthers) == [true])
        }
    }

    @Test(
        "A malformed record spoils all of its name's",
        arguments: [
            [], [0], [0, 1], [0, 1, 3, 97], [0, 1, 0, 0], [0, 1, 0, 0, 1], [0, 1, 0, 0, 1, 0],
            [0, 1, 0, 0, 1, 0, 2, 1],
            // Twice the same key, and keys in another order.
            [0, 1, 0, 0, 3, 0, 2, 0, 1, 0, 3, 0, 2, 0, 1], [0, 1, 0, 0, 3, 0, 2, 0, 1, 0, 1, 0, 3, 2, 104, 51],
            // Protocols: none, an empty one, one that is longer than the value.
            [0, 1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0, 1, 0], [0, 1, 0, 0, 1, 0, 3, 3, 104, 51],
            // Ports, addresses.
            [0, 1, 0, 0, 3, 0, 1, 1], [0, 1, 0, 0, 3, 0, 3, 1, 1, 1], [0, 1, 0, 0, 4, 0, 0],
            [0, 1, 0, 0, 4, 0, 3, 1, 1, 1],
            [0, 1, 0, 0, 6, 0, 4, 1, 1, 1, 1],
            // Mandatory keys: none, half, itself, twice, descending, one that is not there.
            [0, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0, 2, 0, 0],
            [0, 1, 0, 0, 0, 0, 4, 0, 3, 0, 3, 0, 3, 0, 2, 0, 1],
            [0, 1, 0, 0, 0, 0, 4, 0, 3, 0, 1, 0, 1, 0, 3, 2, 104, 51, 0, 3, 0, 2, 0, 1],
            [0, 1, 0, 0, 0, 0, 2, 0, 3],
            // A target that refers to the question.
            [0, 1, 0xC0, 12],
        ] as [[UInt8]])
    func malformed(data: [UInt8]) throws {
        let good = M.record(M.service(1, "", [M.alpn("h3")]))
        #expect(try services(good)?.count == 1)
        #expect(try query().reply(M.answer([good, M.record(data)])) == .answer(ServiceAnswer(content: .none)))
    }

    @Test("Aliases of the name are followed, records of other names and kinds are not read") func aliases() throws {
        let (a, b) = (M.name("a.example"), M.name("b.example"))
        let service = M.service(1, "", [M.alpn("h3")])
        let reply = try query().reply(
            M.answer([
                M.record(service, of: b, lifetime: 900), M.record(M.name("A.example"), type: 5, lifetime: 50),
                M.record(b, of: a, type: 5), M.record(service + [1]), M.record([1], type: 1),
                M.record([9], of: b, kind: 3),
            ]))
        let record = ServiceRecord(priority: 1, target: try host("b.example"), protocols: ["h3", "http/1.1"])
        #expect(reply == .answer(ServiceAnswer(content: .services([record]), lifetime: 50)))
        let circle = [M.record(a, type: 5), M.record(M.asked, of: a, type: 5), M.record(service)]
        guard case .answer = try query().reply(M.answer(circle)) else { throw Unexpected() }
    }
    private struct Unexpected: Error {}

    @Test("An alias among the records is the only one that counts; one without a target is none") func alias() throws {
        let records = [M.record(M.service(1, "", [M.alpn("h3")])), M.record(M.service(0, "other.example", [(9, [1])]))]
        let alias = ServiceAnswer(content: .alias(try host("other.example")), lifetime: 600)
        #expect(try query().reply(M.answer(records)) == .answer(alias))
        let none = ServiceAnswer(content: .none, lifetime: 600)
        #expect(try query().reply(M.answer([M.record(M.service(0))])) == .answer(none))
    }

    // MARK: Answers that are none

    @Test("An answer has the id and the question, and is no question") func unrelated() throws {
        let good = M.answer([M.record(M.service(1, "", [M.alpn("h3")]))])
        guard case .answer = try query().reply(good) else { throw Unexpected() }
        #expect(try query(id: 8).reply(good) == .unrelated)
        #expect(try query("www.example.org").reply(good) == .unrelated)
        #expect(try query("example.com").reply(good) == .unrelated)
        #expect(try query().reply(M.answer(to: "WWW.EXAMPLE.com")) == .answer(ServiceAnswer(content: .none)))
        // The id, the bit of an answer, the operation, the number of questions, each byte of the question.
        for place in [0, 1, 4, 5] + (12..<33) {
            var other = good
            other[place] ^= 1
            #expect(try query().reply(other) == .unrelated, "byte \(place)")
        }
        for flags in [UInt16(0x0180), 0x8980, 0x9180, 0xF980] {
            #expect(try query().reply(M.answer(flags: flags)) == .unrelated)
        }
    }

    @Test("What a server says of itself, and of names that there are not") func codes() throws {
        #expect(try query().reply(M.answer(flags: 0x8183)) == .answer(ServiceAnswer(content: .none)))
        for code in [UInt16(1), 2, 4, 5, 15] { #expect(try query().reply(M.answer(flags: 0x8180 | code)) == .refused) }
        #expect(try query().reply(M.answer(flags: 0x8380)) == .truncated)
        #expect(try query().reply(M.answer(flags: 0x8380, count: 9)) == .truncated)
        #expect(try query().reply(M.answer(count: 1)) == .unrelated)
    }

    @Test("An answer that is cut anywhere is none") func cut() throws {
        let a = M.name("a.example")
        let good = M.answer([
            M.record(a, type: 5), M.record(M.service(1, "b.example", [M.alpn("h3", "h2"), (3, [1, 187])]), of: a),
        ])
        guard case .answer = try query().reply(good) else { throw Unexpected() }
        for count in good.indices { #expect(try query().reply(Array(good[..<count])) == .unrelated, "\(count) bytes") }
    }

    @Test("Names that refer to themselves, forwards or to each other end") func circles() throws {
        let start = UInt16(M.answer().count)
        let data = M.service(1, "", [M.alpn("h3")])
        for owner in [
            M.reference(start), M.reference(start + 2), M.reference(0x3FFF), [1, 97] + M.reference(start),
            [1, 97] + M.reference(start + 2), [0x40, 1], [0x80, 1],
        ] { #expect(try query().reply(M.answer([M.record(data, of: owner)])) == .unrelated) }
        // The data of the first record refers to the owner of the second, which refers to that data.
        let inData = start + 2 + 10
        let first = M.record(M.reference(inData + 2), type: 5)
        #expect(try query().reply(M.answer([first, M.record(data, of: M.reference(inData))])) == .unrelated)
        // A long chain of references, each with a label: longer than a name may be.
        var records: [[UInt8]] = []
        var place = UInt16(12)
        for _ in 0..<64 {
            let next = start + UInt16(records.reduce(0) { $0 + $1.count })
            records.append(M.record([], of: [5, 97, 98, 99, 100, 101] + M.reference(place), type: 1))
            place = next
        }
        #expect(try query().reply(M.answer(records)) == .unrelated)
        #expect(try query().reply(M.answer(Array(records.prefix(30)))) == .answer(ServiceAnswer(content: .none)))
    }

    @Test("An answer with more records than are read is none") func most() throws {
        let record = M.record(M.service(1, "", [M.alpn("h3")]))
        #expect(try query().reply(M.answer(Array(repeating: record, count: 65))) == .unrelated)
        guard case .answer = try query().reply(M.answer(Array(repeating: record, count: 64))) else {
            throw Unexpected()
        }
    }

    @Test("No damage is worse than a wrong answer") func damage() throws {
        var random = SplitMix(state: 9_460)
        let a = M.name("a.example")
        let good = M.answer([
            M.record(a, type: 5),
            M.record(M.service(1, "b.example", [(0, [0, 1]), M.alpn("h3", "h2"), (3, [1, 187])]), of: a),
            M.record(M.service(2, "", [M.alpn("h3"), (2, []), (4, [1, 2, 3, 4])]), of: a),
        ])
        let query = try query()
        for _ in 0..<50_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
                case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 2: bytes.insert(UInt8.random(in: .min ... .max, using: &random), at: place)
                default: bytes.remove(at: place)
                }
            }
            guard case .answer(let answer) = query.reply(bytes) else { continue }
            var lookup = try #require(ServiceLookup(host: "www.example.com", port: 443))
            if let offer = lookup.take(answer) { #expect((60...86_400).contains(offer.lifetime)) }
        }
    }
}

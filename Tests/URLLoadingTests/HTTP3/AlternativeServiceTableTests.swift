// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingWire

@testable import URLLoading

/// Where HTTP/3 is tried, and when it is not. These rows need no build with HTTP/3.
struct AlternativeServiceTableTests {
    private let origin: Origin
    private let other: Origin
    private let start = Date.now

    init() throws {
        origin = try Origin(scheme: "https", host: Origin.Host("example.org"))
        other = try Origin(scheme: "https", host: Origin.Host("other.example"))
    }

    private func table(_ field: String) throws -> AlternativeServiceTable {
        var table = AlternativeServiceTable()
        try learn(field, &table)
        return table
    }

    private func learn(_ field: String, _ table: inout AlternativeServiceTable) throws {
        let field = try #require(AlternativeServices(field))
        _ = table.change(origin, now: start) { $0.learn(field, now: start) }
    }

    private func target(
        _ table: AlternativeServiceTable, _ origin: Origin? = nil, isPreferred: Bool = false, after: Double = 0
    ) -> AlternativeServiceTable.Target? {
        table.target(for: origin ?? self.origin, isPreferred: isPreferred, now: start + after)
    }

    @Test("An origin that offers h3 is tried there until the offer ends, and no other origin") func offers() throws {
        let table = try table("h2=\":1\", h3=\"alt.example:8443\"; ma=60, h3=\":443\"")
        let found = try #require(target(table))
        #expect(found.service?.host?.description == "alt.example" && found.service?.port == 8443 && !found.isSlow)
        #expect(target(table, other) == nil)
        #expect(target(table, after: 59) != nil)
        #expect(target(table, after: 60) == nil)
        #expect(table.knows(origin, now: start + 59) && !table.knows(origin, now: start + 60))
    }

    @Test(
        "A field without h3, an age of zero and clear revoke an offer",
        arguments: ["h2=\":1\"", "h3=\":1\"; ma=0", "clear"])
    func revoked(field: String) throws {
        var table = try table("h3=\":443\"")
        try learn(field, &table)
        #expect(target(table) == nil && table.count == 0)
    }

    @Test("Where HTTP/3 is preferred, every origin is tried at its own place") func preferred() throws {
        var table = AlternativeServiceTable()
        #expect(target(table, isPreferred: true) == AlternativeServiceTable.Target())
        table = try self.table("h3=\":8443\"")
        #expect(target(table, isPreferred: true)?.service?.port == 8443)
    }

    @Test("After a failure the origin is left alone, twice as long each time, up to a day") func backsOff() throws {
        var table = try table("h3=\":443\"; ma=31536000")
        var (now, rest) = (0.0, 300.0)
        for _ in 0..<12 {
            _ = table.change(origin, now: start) { $0.failed(now: start + now) }
            #expect(target(table, after: now) == nil)
            #expect(target(table, isPreferred: true, after: now + rest - 1) == nil)
            #expect(target(table, after: now + rest)?.isSlow == true)
            (now, rest) = (now + rest, min(rest * 2, 86_400))
        }
        #expect(rest == 86_400)
        // A clock that is set back does not make the rest longer.
        #expect(target(table, after: now - 2 * 86_400 - 1) != nil)
        _ = table.change(origin, now: start) { $0.succeeded() }
        #expect(target(table, after: now)?.isSlow == false)
    }

    @Test("Loads do not wait again for a place that was slow, until an attempt succeeds or the place changes")
    func slow() throws {
        var table = try table("h3=\":443\"")
        _ = table.change(origin, now: start) { $0.isSlow = true }
        #expect(target(table)?.isSlow == true)
        try learn("h3=\":443\"", &table)
        #expect(target(table)?.isSlow == true)
        try learn("h3=\":444\"", &table)
        #expect(target(table)?.isSlow == false)
    }

    @Test("The number of origins is limited; the offer that ends first is forgotten") func limited() throws {
        var table = AlternativeServiceTable()
        let count = AlternativeServiceTable.most
        for number in 0...count {
            let origin = try Origin(scheme: "https", host: Origin.Host("h\(number).example"))
            // The one in the middle ends first.
            let age = number == count / 2 ? 10 : 1_000
            let field = try #require(AlternativeServices("h3=\":1\"; ma=\(age)"))
            _ = table.change(origin, now: start) { $0.learn(field, now: start) }
        }
        let known = try (0...count).filter {
            table.knows(try Origin(scheme: "https", host: Origin.Host("h\($0).example")), now: start)
        }
        #expect(known.count == count && !known.contains(count / 2))
    }
}

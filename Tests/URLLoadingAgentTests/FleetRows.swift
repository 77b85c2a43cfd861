// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Issue 48: the limits that hold for all agents of a shared journal together.
@Suite(.postgres, .enabled(if: PostgresServer.isHere, PostgresServer.isMissing), .timeLimit(.minutes(4)))
struct FleetRows {
    private static func database() async throws -> String {
        try await #require(PostgresServer.current).database()
    }

    /// Opens journals of one database, and submits transfers with the given terms.
    private static func with(
        _ count: Int, leaseTime: Int64 = 60_000, _ use: ([PostgresJournal], PostgresConnection) async throws -> Void
    ) async throws {
        let address = try await database()
        var journals: [PostgresJournal] = []
        for index in 0..<count {
            journals.append(
                try await PostgresJournal.open(address, leaseTime: index == 0 ? leaseTime : 60_000) { _ in })
        }
        try await use(journals, PostgresConnection.open(address))
        for journal in journals { try await JournalRows.Place.close(journal) }
    }

    private static func submit(
        _ ids: [String], of identifier: String = "a", _ terms: JournaledTerms, _ journal: PostgresJournal
    ) async throws {
        for id in ids {
            var transfer = JournalRows.transfer(id, of: identifier)
            transfer.terms = terms
            try await journal.write([.accept(transfer)], mayFail: true)
        }
    }

    private static func claim(_ journal: PostgresJournal, _ count: Int = 32, after last: String? = nil) async throws
        -> [JournaledTransfer]
    {
        try await journal.claim(.ready(atMost: count, after: last)).transfers
    }

    private static func names(_ prefix: String, _ count: Int) -> [String] { (0..<count).map { "\(prefix)\($0)" } }

    // MARK: Places

    @Test("The places of a host are those of all agents together, and one that becomes free goes to any of them")
    func places() async throws {
        try await Self.with(2) { journals, admin in
            let (one, other) = (journals[0], journals[1])
            try await JournalRows.identify(["a"], one)
            try await Self.submit(Self.names("t", 20), JournaledTerms(host: "busy.example"), one)
            try await Self.submit(Self.names("u", 3), JournaledTerms(host: "other.example"), one)
            let first = try await Self.claim(one, 4)
            #expect(first.map(\.id) == Self.names("t", 4))
            #expect(try await Self.claim(other).map(\.id) == ["t4", "t5", "u0", "u1", "u2"])
            #expect(try await Self.claim(one).isEmpty)
            try await JournalRows.finish(first[0].claim, one)
            #expect(try await Self.claim(other).map(\.id) == ["t6"])
            // People set the places of a host, or of all.
            try await admin.run("INSERT INTO urlloading.host (name, places) VALUES ('busy.example', 8), ('*', 1)")
            #expect(try await Self.claim(one).map(\.id) == ["t7", "t8"])
            try await Self.submit(["v0", "v1"], JournaledTerms(host: "third.example"), one)
            #expect(try await Self.claim(one).map(\.id) == ["v0"])
        }
    }

    @Test("An agent that dies gives its places back when its leases have ended")
    func placesOfTheDead() async throws {
        try await Self.with(2, leaseTime: 300) { journals, _ in
            let (dead, living) = (journals[0], journals[1])
            try await JournalRows.identify(["a"], dead)
            try await Self.submit(Self.names("t", 12), JournaledTerms(host: "busy.example"), dead)
            #expect(try await Self.claim(dead).count == 6)
            var claimed: [JournaledTransfer] = []
            while claimed.isEmpty {
                _ = try await living.renew([])
                claimed = try await Self.claim(living)
            }
            #expect(claimed.map(\.id) == Self.names("t", 6))
            #expect(try await Self.claim(dead).isEmpty)
        }
    }

    @Test("A pause that one agent was told holds for all, and other hosts go on")
    func pause() async throws {
        try await Self.with(2) { journals, admin in
            let (one, other) = (journals[0], journals[1])
            try await JournalRows.identify(["a"], one)
            try await Self.submit(["t0", "t1"], JournaledTerms(host: "busy.example"), one)
            try await one.write([.pause(host: "busy.example", nanoseconds: 3_600_000_000_000)], mayFail: false)
            // A shorter one changes nothing.
            try await other.write([.pause(host: "busy.example", nanoseconds: 1)], mayFail: false)
            try await Self.submit(["u0"], JournaledTerms(host: "other.example"), one)
            #expect(try await Self.claim(other).map(\.id) == ["u0"])
            let next = try #require(try await other.claim(.ready(atMost: 9)).next)
            #expect(next > 3_500_000_000_000 && next <= 3_600_000_000_000)
            try await admin.run("UPDATE urlloading.host SET paused = clock_timestamp()")
            #expect(try await Self.claim(other).map(\.id) == ["t0", "t1"])
        }
    }

    @Test("A host with a rate: as many begin as a second allows, then one after the other, for all agents together")
    func rate() async throws {
        try await Self.with(2) { journals, admin in
            let (one, other) = (journals[0], journals[1])
            try await JournalRows.identify(["a"], one)
            try await admin.run(
                "INSERT INTO urlloading.host (name, places, rate) VALUES ('slow.example', 20, 0.0003), ('*', 20, 3)")
            try await Self.submit(Self.names("t", 3), JournaledTerms(host: "slow.example"), one)
            #expect(try await Self.claim(one).map(\.id) == ["t0"])
            let next = try #require(try await other.claim(.ready(atMost: 9)).next)
            #expect(next > 3_200_000_000_000 && next <= 3_334_000_000_000)
            // An hour later.
            try await admin.run("UPDATE urlloading.host SET next = next - interval '1 hour'")
            #expect(try await Self.claim(other).map(\.id) == ["t1"])
            try await Self.submit(Self.names("u", 9), JournaledTerms(host: "usual.example"), one)
            #expect(try await Self.claim(one).map(\.id) == Self.names("u", 3))
        }
    }

    // MARK: Turns

    @Test("Identifiers take turns, whatever their number of transfers; within one the most urgent comes first")
    func turns() async throws {
        try await Self.with(1) { journals, _ in
            let journal = journals[0]
            try await JournalRows.identify(["a", "b", "c"], journal)
            try await Self.submit(Self.names("a", 9), of: "a", JournaledTerms(host: "one.example"), journal)
            try await Self.submit(Self.names("b", 9), of: "b", JournaledTerms(host: "two.example"), journal)
            try await Self.submit(["b9"], of: "b", JournaledTerms(host: "third.example", priority: 99), journal)
            try await Self.submit(["c0"], of: "c", JournaledTerms(host: "one.example"), journal)
            #expect(try await Self.claim(journal, 5).map(\.id) == ["a0", "a1", "b0", "b9", "c0"])
            #expect(try await Self.claim(journal, 1, after: "a").map(\.id) == ["b1"])
            #expect(try await Self.claim(journal, 2, after: "c").map(\.id) == ["a2", "b2"])
            // One place of the host is left, and the agent has none for the other identifier.
            let room = ClaimRequest.Room(identifiers: ["b": 0], ofIdentifier: 5)
            #expect(try await journal.claim(.ready(atMost: 9, room: room)).transfers.map(\.id) == ["a3", "a4"])
        }
    }

    @Test("Transfers of more hosts than are looked at at once are all claimed, also behind hosts that are full")
    func manyHosts() async throws {
        try await Self.with(1) { journals, admin in
            let journal = journals[0]
            try await JournalRows.identify(["a"], journal)
            for number in 0..<300 {
                try await Self.submit(["t\(number)"], JournaledTerms(host: "h\(1000 + number)"), journal)
            }
            try await admin.run(
                "INSERT INTO urlloading.host (name, places) SELECT 'h' || n, 0 FROM generate_series(1000, 1280) n")
            #expect(try await Self.claim(journal, 300).map(\.id) == (281..<300).map { "t\($0)" })
        }
    }

    @Test("Transfers of one affinity belong to one agent, and to another one when that has gone or died")
    func affinity() async throws {
        try await Self.with(3, leaseTime: 300) { journals, _ in
            let (dead, one, other) = (journals[0], journals[1], journals[2])
            try await JournalRows.identify(["a", "b"], one)
            for host in ["one.example", "two.example"] {
                let ids = Self.names(host + " ", 3)
                try await Self.submit(ids, JournaledTerms(host: host, affinity: "album"), one)
            }
            try await Self.submit(["b"], of: "b", JournaledTerms(affinity: "album"), one)
            try await Self.submit(["free"], JournaledTerms(), one)
            let first = try #require(try await Self.claim(dead, 1).first)
            try await dead.release([first.claim])
            // The affinity of another identifier has nothing to do with it.
            #expect(Set(try await Self.claim(one).map(\.id)).isSubset(of: ["b", "free", first.id]))
            var claimed: [JournaledTransfer] = []
            while claimed.isEmpty { claimed = try await Self.claim(one, 2) }
            #expect(claimed.allSatisfy { $0.id.contains("example") })
            #expect(try await Self.claim(other).isEmpty)
            // The agent leaves.
            try await one.release(claimed.map(\.claim))
            try await JournalRows.Place.close(one)
            #expect(try await Self.claim(other).count >= 2)
        }
    }

    // MARK: Agents

    /// Counts the requests that an origin answers at the same time.
    private final class Meter: Sendable {
        private let state = Lock((now: 0, most: 0, all: 0))
        var most: Int { state.withLock(\.most) }

        func answer() async -> HTTPTestServer.Response {
            state.withLock { state in
                state.now += 1
                state.all += 1
                state.most = max(state.most, state.now)
            }
            try? await Task.sleep(for: .milliseconds(3))
            state.withLock { $0.now -= 1 }
            return .ok("small")
        }
    }

    @Test("Agents that share a queue never ask a host more at once than it has places", arguments: [2, 3])
    func atOnce(_ count: Int) async throws {
        let address = try await Self.database()
        var agents: [FleetAgent] = []
        for _ in 0..<count { agents.append(try await FleetAgent(address)) }
        try await PostgresConnection.open(address).run("INSERT INTO urlloading.host (name, places) VALUES ('*', 3)")
        try await withHTTPTestServer { origin in
            let meter = Meter()
            origin.route("/small") { _ in await meter.answer() }
            var programs: [AgentLink] = []
            let total = 60
            for (index, agent) in agents.enumerated() {
                let program = try await agent.rig.attach("program\(index)")
                for number in 0..<total {
                    let url = try #require(URL(string: "?\(index)-\(number)", relativeTo: origin.url("/small")))
                    let place = "\(agent.rig.folder)/f\(number)"
                    #expect(try await program.download(url.absoluteURL, id: "t\(index)-\(number)", to: place) == .done)
                }
                programs.append(program)
            }
            try await eventuallyProcess { Set(origin.requests.map(\.target)).count == total * count }
            #expect(meter.most <= 3 && meter.most > 1, "\(meter.most)")
            for program in programs {
                #expect(try await program.request(.listen) == .done)
                for _ in 0..<total {
                    let (sequence, record) = try await program.nextEvent()
                    if case .failed(let error)? = record.outcome { Issue.record("\(error)") }
                    try await program.acknowledge(sequence)
                }
                program.close()
            }
            #expect(origin.requests.count == total * count)
        }
        for agent in agents { await agent.stop() }
    }

    @Test("Retry-After of one agent's response pauses the others, until the time has come")
    func retryAfter() async throws {
        let address = try await Self.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        let admin = try await PostgresConnection.open(address)
        try await admin.run("INSERT INTO urlloading.host (name, places) VALUES ('*', 1)")
        try await withHTTPTestServer { origin in
            origin.route("/busy") { _ in .status(.serviceUnavailable, headers: ["Retry-After": "3600"]) }
            let program = try await one.rig.attach()
            for number in 0..<5 { try await program.download(origin.url("/busy"), id: "t\(number)") }
            _ = try await program.wait("t0") { $0.state == .waiting }
            for agent in [one, other] {
                let ready = try await agent.journal.claim(.ready(atMost: 9))
                #expect(ready.transfers.isEmpty && ready.next.map { $0 > 3_000_000_000_000 } == true)
            }
            #expect(origin.requests.count == 1)
            origin.route("/busy") { _ in .ok("free") }
            try await admin.run("UPDATE urlloading.host SET paused = clock_timestamp() WHERE paused IS NOT NULL")
            try await eventuallyProcess { origin.requests.count == 5 }
            program.close()
        }
        await one.stop()
        await other.stop()
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// The limits that hold for all agents of a shared journal together.
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
                try await PostgresJournal.open(
                    address, leaseTime: index == 0 ? leaseTime : 60_000, settling: 0
                ) { _ in })
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

    @Test("An identifier in which an accent follows a quotation mark or a backslash is claimed as any other")
    func oddIdentifiers() async throws {
        try await Self.with(1) { journals, _ in
            let names = ["a\"\u{301}", "a\\\u{301}", "a\"\\", "plain"]
            try await JournalRows.identify(names, journals[0])
            for (index, name) in names.enumerated() {
                try await Self.submit(["t\(index)"], of: name, JournaledTerms(host: "h.example"), journals[0])
            }
            #expect(try await Self.claim(journals[0]).map(\.id) == Self.names("t", names.count))
        }
    }

    @Test("A transfer that an agent cannot decode waits for one that can")
    func foreignRow() async throws {
        let address = try await Self.database()
        let agent = try await FleetAgent(address)
        try await JournalRows.identify(["a"], agent.journal)
        try await Self.submit(["t"], JournaledTerms(host: "h.example"), agent.journal)
        let admin = try await PostgresConnection.open(address)
        try await eventuallyProcess {
            let text = "SELECT FROM urlloading.claim WHERE agent IS NULL AND due > clock_timestamp() + interval '30 s'"
            return try await admin.run(text).rows.count == 1
        }
        #expect(agent.lines.count("cannot be decoded") == 1)
        await agent.stop()
    }

    @Test("A transfer whose secrets are missing in the journal is not sent without them")
    func missingSecrets() async throws {
        let address = try await Self.database()
        let agent = try await FleetAgent(address)
        let admin = try await PostgresConnection.open(address)
        try await withHTTPTestServer(answering: "small") { origin in
            let program = try await agent.rig.attach()
            try await program.download(origin.url("/")) {
                $0.earliestBegin = SystemTime.wall + 3_600_000_000_000
            }
            try await admin.run(
                """
                UPDATE urlloading.transfer SET secrets = NULL; UPDATE urlloading.claim SET due = clock_timestamp();
                SELECT pg_notify('urlloading', 'work')
                """)
            try await eventuallyProcess { agent.lines.count("has lost its request's secrets") > 0 }
            #expect(origin.requests.isEmpty)
            program.close()
        }
        await agent.stop()
    }

    @Test("An agent forgets the settings of a program elsewhere when it has none of its transfers")
    func forgotten() async throws {
        let address = try await Self.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        let admin = try await PostgresConnection.open(address)
        try await withHTTPTestServer(answering: "small") { origin in
            let program = try await one.rig.attach()
            try await program.download(origin.url("/")) { order in
                (order.affinity, order.earliestBegin) = ("kept", SystemTime.wall + 3_600_000_000_000)
            }
            try await Self.keep(other, admin)
            try await admin.run("UPDATE urlloading.claim SET due = clock_timestamp()")
            #expect(try await program.request(.listen) == .done)
            let (sequence, _) = try await program.nextEvent()
            #expect(other.lines.count("is over") == 1)
            try await program.acknowledge(sequence)
            try await eventuallyProcess { await other.service.owners.isEmpty }
            #expect(await one.service.owners.count == 1)
            program.close()
        }
        await one.stop()
        await other.stop()
    }

    @Test("A command is not taken for carried out by an agent that has lost its transfer")
    func carriedOutElsewhere() async throws {
        try await Self.with(2) { journals, admin in
            try await JournalRows.identify(["a"], journals[0])
            let claim = try await JournalRows.accept("t", journals[1])
            let change = JournalChange.command(transfer: "t", verb: "pause", argument: [])
            try await journals[0].write([change], mayFail: true)
            let command = try #require(try await journals[1].commands().first)
            for (journal, left) in [(journals[0], 1), (journals[1], 0)] {
                try await journal.write([.carriedOut(command: command.number)], mayFail: false)
                #expect(try await admin.run("SELECT FROM urlloading.command").rows.count == left)
            }
            try await JournalRows.finish(claim, journals[1])
        }
    }

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

    @Test("The time of a host that comes while an agent claims is not missed: it is told to claim again")
    func rateMoment() async throws {
        try await Self.with(1) { journals, admin in
            let journal = journals[0]
            try await JournalRows.identify(["a"], journal)
            try await admin.run("INSERT INTO urlloading.host (name, rate) VALUES ('slow.example', 1)")
            for round in 0..<400 {
                try await Self.submit(["t\(round)"], JournaledTerms(host: "slow.example"), journal)
                // About when the agent asks.
                try await admin.run(
                    "UPDATE urlloading.host SET next = clock_timestamp() + interval '1 microsecond' * \(round * 10)")
                var found = try await journal.claim(.ready(atMost: 9))
                while found.transfers.isEmpty {
                    guard found.next != nil else { return _ = Issue.record("round \(round): no time is told") }
                    found = try await journal.claim(.ready(atMost: 9))
                }
                #expect(found.transfers.map(\.id) == ["t\(round)"])
                try await JournalRows.finish(found.transfers[0].claim, journal)
            }
        }
    }

    // MARK: Turns

    @Test("Of many lanes those are looked into that have the most urgent transfers of each identifier in turn")
    func lanes() {
        func lane(_ identifier: String, _ host: String, _ priority: Int64, _ number: Int64) -> ClaimLane {
            ClaimLane(identifier: identifier, host: host, priority: priority, number: number)
        }
        let lanes = [
            lane("b", "1", 5, 1), lane("b", "2", 5, 9), lane("b", "3", 7, 10), lane("b", "4", 5, 2),
            lane("c", "1", 1, 11), lane("c", "2", 2, 12), lane("d", "1", 0, 13),
        ]
        func chosen(_ count: Int) -> [String] {
            ClaimLane.chosen(count, of: lanes).map { $0.identifier + $0.host }
        }
        #expect(chosen(1) == ["b3"])
        #expect(chosen(2) == ["b3", "c2"])
        #expect(chosen(4) == ["b3", "b1", "c2", "d1"])
        #expect(chosen(6) == ["b3", "b1", "b4", "c2", "c1", "d1"])
        #expect(chosen(7) == lanes.map { $0.identifier + $0.host })
    }

    @Test("The most urgent transfer of an identifier is claimed first, whichever of its hosts it is of")
    func urgentHost() async throws {
        try await Self.with(1) { journals, _ in
            let journal = journals[0]
            try await JournalRows.identify(["a", "b"], journal)
            for number in 0..<40 {
                let terms = JournaledTerms(host: "h\(10 + number)", priority: number == 37 ? 99 : 50)
                try await Self.submit(["a\(number)"], of: "a", terms, journal)
                try await Self.submit(["b\(number)"], of: "b", terms, journal)
            }
            #expect(try await Self.claim(journal, 1).map(\.id) == ["a37"])
            #expect(try await Self.claim(journal, 3, after: "a").map(\.id) == ["a0", "b0", "b37"])
            #expect(try await Self.claim(journal, 4).map(\.id) == ["a1", "b1", "a2", "b2"])
        }
    }

    @Test("A lane whose transfers are another agent's does not keep an agent from the lanes after it")
    func foreignLane() async throws {
        try await Self.with(2) { journals, _ in
            let (one, other) = (journals[0], journals[1])
            try await JournalRows.identify(["a", "b"], one)
            try await Self.submit(["held"], JournaledTerms(host: "h", affinity: "album"), one)
            #expect(try await Self.claim(one).map(\.id) == ["held"])
            for number in 0..<3 {
                let terms = JournaledTerms(host: "h\(number)", priority: 200, affinity: "album")
                try await Self.submit(["a\(number)"], of: "a", terms, one)
            }
            try await Self.submit(["b0"], of: "b", JournaledTerms(host: "z"), one)
            #expect(try await Self.claim(other, 1).map(\.id) == ["b0"])
            #expect(try await Self.claim(other, 1).isEmpty)
        }
    }

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

    @Test("After the last identifiers comes the turn of the first ones in the same claim, so the last ones get no more")
    func turnsAround() async throws {
        try await Self.with(1) { journals, _ in
            let journal = journals[0]
            try await JournalRows.identify(["a", "b", "c"], journal)
            for name in ["a", "b", "c"] {
                try await Self.submit(Self.names(name, 9), of: name, JournaledTerms(host: "one.example"), journal)
            }
            #expect(try await Self.claim(journal, 3, after: "b").map(\.id) == ["a0", "b0", "c0"])
            #expect(try await Self.claim(journal, 2, after: "b").map(\.id) == ["a1", "c1"])
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
        try await Self.with(3) { journals, admin in
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
            #expect(Set(try await Self.claim(one).map(\.id)).isSubset(of: ["b", "free"]))
            // It dies.
            try await admin.run(
                "UPDATE urlloading.agent SET lease = clock_timestamp() WHERE name = '\(dead.agent)'")
            let claimed = try await Self.claim(one, 2)
            #expect(claimed.allSatisfy { $0.id.contains("example") })
            #expect(try await Self.claim(other).isEmpty)
            // The agent leaves.
            try await one.release(claimed.map(\.claim))
            try await JournalRows.Place.close(one)
            #expect(try await Self.claim(other).count >= 2)
        }
    }

    @Test("An affinity without transfers is forgotten by its agent, or by any agent when its own has been forgotten")
    func oldAffinities() async throws {
        try await Self.with(2) { journals, admin in
            for (name, agent) in [("own", journals[0].agent), ("other", journals[1].agent), ("lost", "gone")] {
                try await admin.run("INSERT INTO urlloading.affinity VALUES ('a', '\(name)', '\(agent)')")
            }
            func left() async throws -> [String] {
                try await admin.run("SELECT name FROM urlloading.affinity ORDER BY name").rows.map { $0.text(0) }
            }
            _ = try await journals[0].renew([])
            #expect(try await left() == ["other"])
            _ = try await journals[1].renew([])
            #expect(try await left().isEmpty)
        }
    }

    @Test("A report counts no more than 10,000 transfers that wait, and finds the oldest of more among 1,000 lanes")
    func longQueue() async throws {
        try await Self.with(1) { journals, admin in
            try await JournalRows.identify(["a"], journals[0])
            let fill = [
                """
                INSERT INTO urlloading.transfer (id, identifier, task)
                SELECT 't' || n, 'a', '' FROM generate_series(1, 12000) AS n
                """,
                "INSERT INTO urlloading.progress SELECT number, '', '' FROM urlloading.transfer",
                """
                INSERT INTO urlloading.claim (number, identifier, host, priority, discretionary, ready)
                SELECT number, 'a', 'host' || number % 40, 100 + number % 3, false, true FROM urlloading.transfer
                """,
            ]
            for text in fill { try await admin.run(text) }
            let many = try #require(try await journals[0].fleet())
            #expect(many.waiting == 10_001 && many.oldest?.id == "t1")
            #expect(many.text(of: "", now: 0).contains("waiting   more than 10000"))
            // As from a crawler, whose piles would be too many to look at.
            try await admin.run("UPDATE urlloading.claim SET host = 'host' || number")
            let wide = try #require(try await journals[0].fleet())
            #expect(wide.waiting == 10_001 && wide.oldest == nil)
            try await admin.run("UPDATE urlloading.claim SET ready = number % 12000 = 0")
            let one = try #require(try await journals[0].fleet())
            #expect(one.waiting == 1 && one.oldest?.id == "t12000")
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

    // MARK: Commands and challenges

    /// Lets an agent carry out the transfers of the affinity `kept`, and no other agent.
    private static func keep(_ agent: FleetAgent, _ admin: PostgresConnection) async throws {
        try await admin.run(
            "INSERT INTO urlloading.affinity VALUES ('org.example.sync', 'kept', '\(agent.journal.agent)')")
    }

    @Test("Commands of a program take effect on a transfer that another agent works on")
    func commandsElsewhere() async throws {
        let address = try await Self.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        let admin = try await PostgresConnection.open(address)
        try await withHTTPTestServer { origin in
            origin.route("/film", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            let program = try await one.rig.attach()
            func command(_ verb: String, _ argument: [UInt8] = []) async throws {
                let message = AgentMessage.command(.init(transfer: "t1", verb: verb, argument: argument))
                #expect(try await program.request(message) == .done)
            }
            // The tidying of the journal removes affinities without transfers.
            try await program.download(origin.url("/film")) { order in
                (order.affinity, order.earliestBegin) = ("kept", SystemTime.wall + 3_600_000_000_000)
            }
            try await Self.keep(other, admin)
            try await admin.run("UPDATE urlloading.claim SET due = clock_timestamp()")
            try await origin.wait { $0.stalled == 1 }
            try await command("prioritize", [99])
            try await command("pause")
            _ = try await program.wait { $0.state == .paused }
            try await origin.wait { $0.open == 0 }
            // The agent lets go when its connection to the origin is closed; nothing notifies of that.
            var row = try #require(try await admin.run("SELECT priority, agent FROM urlloading.claim").rows.first)
            while !row.isNull(1) {
                row = try #require(try await admin.run("SELECT priority, agent FROM urlloading.claim").rows.first)
            }
            #expect(row.integer(0) == 99)
            try await command("resume")
            try await origin.wait { $0.requests == 2 && $0.stalled == 1 }
            try await command("cancel")
            #expect(try await program.request(.listen) == .done)
            let (sequence, record) = try await program.nextEvent()
            guard case .failed(let error)? = record.outcome else { return _ = Issue.record("\(record)") }
            #expect(error.loadError.reason == .cancelled && record.attempts == 2)
            try await program.acknowledge(sequence)
            #expect(other.lines.count("is over") == 1 && one.lines.count("is over") == 0)
            #expect(try await admin.run("SELECT FROM urlloading.command").rows.isEmpty)
            program.close()
        }
        await one.stop()
        await other.stop()
    }

    @Test("A command that its agent has not carried out when it dies is carried out by the next one")
    func commandOfTheDead() async throws {
        let address = try await Self.database()
        try await withHTTPTestServer { origin in
            origin.route("/film", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            let rig = AgentRig()
            try rig.start(under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"])
            let first = try await rig.attach()
            try await first.download(origin.url("/film"))
            try await origin.wait { $0.stalled == 1 }
            #expect(kill(rig.process, SIGSTOP) == 0)
            try await PostgresConnection.open(address).run(
                "UPDATE urlloading.identifier SET agent = NULL, lease = NULL")
            let living = try await FleetAgent(address)
            let program = try await living.rig.attachAgain()
            let pause = AgentMessage.command(.init(transfer: "t1", verb: "pause"))
            #expect(try await program.request(pause) == .done)
            await rig.kill()
            try await FleetAgent.endLeases(address)
            _ = try await program.wait { $0.state == .paused }
            first.close()
            program.close()
            await living.stop()
        }
    }

    @Test("A challenge that another agent has met is put to the program, whose agent goes on with the transfer")
    func challengeElsewhere() async throws {
        let address = try await Self.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        try await withHTTPTestServer { origin in
            ChallengeRows.guarded(origin)
            let asked = ChallengeRows.Asked()
            let session = ChallengeRows.session(
                one.rig,
                asked.decisions { _ in .use(Credential(user: "ada", password: "secret")) })
            let place = one.rig.folder + "/film.bin"
            // It begins when the other agent is the only one that may carry it out.
            var options = BackgroundOptions()
            (options.affinity, options.earliestBegin) = ("kept", Date(timeIntervalSinceNow: 3_600))
            try await session.background.download(
                Request(url: origin.url("/film")), to: URL(filePath: place), options: options)
            let admin = try await PostgresConnection.open(address)
            try await Self.keep(other, admin)
            try await admin.run("UPDATE urlloading.claim SET due = clock_timestamp()")
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content && asked.methods == ["Basic"])
            #expect(other.lines.count("waits for its program") == 1)
            try await eventuallyProcess { one.lines.count("is over") == 1 }
            session.invalidateAndCancel()
            await session.invalidated()
        }
        await one.stop()
        await other.stop()
    }

    // MARK: People

    @Test("bg ls, watch and doctor show the agents, the hosts at their limit, and the oldest transfer that waits")
    func shown() async throws {
        let address = try await Self.database()
        let admin = try await PostgresConnection.open(address)
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        try await admin.run("INSERT INTO urlloading.host (name, places) VALUES ('*', 1)")
        try await withHTTPTestServer { origin in
            origin.route("/film", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            let program = try await one.rig.attach()
            for id in ["first", "second", "third"] { try await program.download(origin.url("/film"), id: id) }
            try await origin.wait { $0.stalled == 1 }
            try await admin.run("INSERT INTO urlloading.host (name, paused) VALUES ('paused.example', 'tomorrow')")
            let said = try await BackgroundCommandRows.bg(one.rig, ["doctor"])
            let lines = said.output.split(separator: "\n").map(String.init)
            let agents = lines.filter { $0.hasPrefix("agent     ") && $0.contains("places") }
            #expect(agents.count == 2 && agents.allSatisfy { $0.contains("lease ") }, "\(said)")
            #expect(agents.count { $0.contains("\(one.journal.agent) (this one)") && $0.contains("1 programs") } == 1)
            #expect(agents.count { $0.contains("1 of 32 places") } == 1)
            let hosts = lines.filter { $0.hasPrefix("host ") }
            #expect(hosts.count == 2 && hosts[0].contains("127.0.0.1  1 of 1 places"), "\(said)")
            #expect(hosts.last?.contains("paused.example  0 of 1 places, waits for ") == true)
            #expect(lines.last?.contains("waiting   2, the oldest for ") == true, "\(said)")
            #expect(lines.last?.hasSuffix(": second of 127.0.0.1") == true)
            let listed = try await BackgroundCommandRows.bg(one.rig, ["ls", "--fleet"])
            #expect(listed.output.split(separator: "\n").count == 8, "\(listed)")
            #expect(try await !BackgroundCommandRows.bg(one.rig, ["ls"]).output.contains("places"))
            let watched = try await BackgroundCommandRows.bg(one.rig, ["watch"])
            #expect(watched.code == 0 && watched.errors.contains("of 32 places"), "\(watched)")
            origin.route("/film") { Film.answer($0) }
            origin.releaseStalls()
            program.close()
        }
        await one.stop()
        await other.stop()
        // An agent that has gone is not shown.
        #expect(try await admin.run("SELECT FROM urlloading.agent").rows.isEmpty)
    }

    @Test("--drain: what can be continued goes to another agent, what cannot ends first, and both processes end with 0")
    func drain() async throws {
        let address = try await Self.database()
        let rig = AgentRig()
        try await withHTTPTestServer { origin in
            let gate = Lock(false)
            origin.route("/film", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            origin.route("/make") { _ in
                while !gate.withLock(\.self) { try await Task.sleep(for: .milliseconds(5)) }
                return .ok("made")
            }
            try rig.start(under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"])
            let program = try await rig.attach()
            let place = rig.folder + "/film.bin"
            try await program.download(origin.url("/film"), id: "film", to: place)
            try await program.download(origin.url("/make"), id: "make") { $0.method = "POST" }
            try await eventuallyProcess { origin.requests.count == 2 }
            try await origin.wait { $0.stalled == 1 }
            let other = try await FleetAgent(address)
            origin.route("/film") { Film.answer($0) }
            let drained = try ChildProcess(
                AgentRig.executable, ["--drain", "--socket", rig.socket], files: .init(errors: rig.folder + "/drained"))
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content && rig.isRunning)
            let admin = try await PostgresConnection.open(address)
            #expect(try await admin.run("SELECT FROM urlloading.agent WHERE draining").rows.count == 1)
            // It takes nothing more.
            try await program.download(origin.url("/film"), id: "later")
            gate.withLock { $0 = true }
            #expect(await drained.wait() == 0)
            #expect(await rig.ended() == 0)
            #expect(rig.logText.contains("transfer make is over") && !rig.logText.contains("transfer film is over"))
            program.close()
            let next = try await other.rig.attachAgain()
            #expect(try await next.request(.listen) == .done)
            var outcomes: [String: TransferOutcome?] = [:]
            while outcomes.count < 3 {
                let (sequence, record) = try await next.nextEvent()
                outcomes[record.id] = record.outcome
                try await next.acknowledge(sequence)
            }
            for (id, outcome) in outcomes {
                if case .file? = outcome { continue }
                Issue.record("\(id): \(String(describing: outcome))")
            }
            #expect(origin.requests.count { $0.path == "/make" } == 1)
            next.close()
            await other.stop()
        }
    }
}

/// `--drain` with a journal of one agent.
@Suite(.timeLimit(.minutes(2)))
struct DrainRows {
    @Test("An agent that is alone is drained, too: what it has not finished waits for the next start")
    func alone() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/film", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            let program = try await rig.attach()
            let place = rig.folder + "/film.bin"
            try await program.download(origin.url("/film"), to: place)
            try await origin.wait { $0.stalled == 1 }
            func drain() async throws -> Int32 {
                try await ChildProcess(
                    AgentRig.executable, ["--drain", "--socket", rig.socket],
                    files: .init(errors: rig.folder + "/drained")
                ).wait()
            }
            #expect(try await drain() == 0)
            #expect(await rig.ended() == 0)
            // No agent listens any more.
            #expect(try await drain() == 69)
            origin.route("/film") { Film.answer($0) }
            try rig.start()
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
            program.close()
            await rig.kill(SIGTERM)
        }
    }
}

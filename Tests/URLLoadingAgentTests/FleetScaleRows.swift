// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Many agents, and many transfers. `URLLOADING_LONG` runs the rows with their full numbers, and prints
/// what was measured; `URLLOADING_HELD_SECONDS` holds the transaction of the last one open for so long.
@Suite(.postgres, .enabled(if: PostgresServer.isHere, PostgresServer.isMissing), .timeLimit(.minutes(60)))
struct FleetScaleRows {
    private static let isLong = ProcessInfo.processInfo.environment["URLLOADING_LONG"] != nil

    private static func seconds(since moment: ContinuousClock.Instant) -> Double {
        Double((ContinuousClock.now - moment) / .milliseconds(1)) / 1_000
    }

    /// Counts the requests of an origin, and those that it answers at the same time.
    private final class Meter: Sendable {
        private let state = Lock((now: 0, most: 0, targets: [String]()))
        var most: Int { state.withLock(\.most) }
        var targets: [String] { state.withLock(\.targets) }

        func answer(_ target: String) async -> HTTPTestServer.Response {
            state.withLock { state in
                state.now += 1
                state.most = max(state.most, state.now)
                state.targets.append(target)
            }
            try? await Task.sleep(for: .milliseconds(3))
            state.withLock { $0.now -= 1 }
            return .ok("file \(target)")
        }
    }

    @Test(
        "Each file comes once and whole, no host is asked beyond its places, identifiers get equal shares",
        arguments: [(3, 12), (10, 20)])
    func agents(_ count: Int, _ places: Int) async throws {
        let total = Self.isLong ? 10_000 : 400
        let programCount = 4
        let address = try await #require(PostgresServer.current).database()
        let admin = try await PostgresConnection.open(address)
        var agents: [FleetAgent] = []
        for _ in 0..<count { agents.append(try await FleetAgent(address, renewingEvery: 2_000_000_000)) }
        // Nothing begins before all is submitted.
        try await admin.run("INSERT INTO urlloading.host (name, places) VALUES ('*', 0)")
        let meter = Meter()
        try await withHTTPTestServer { origin in
            origin.route("/file") { await meter.answer($0.target) }
            let folder = agents[0].rig.folder + "/loaded"
            try PrivateFolder.make(folder)
            var programs: [AgentLink] = []
            for index in 0..<programCount {
                let program = try await agents[index % count].rig.attach("program\(index)")
                for number in 0..<total / programCount {
                    let name = "\(index)-\(number)"
                    let url = try #require(URL(string: "?\(name)", relativeTo: origin.url("/file"))).absoluteURL
                    #expect(try await program.download(url, id: name, to: "\(folder)/\(name)") == .done)
                }
                programs.append(program)
            }
            let begun = ContinuousClock.now
            try await admin.run(
                "UPDATE urlloading.host SET places = \(places); SELECT pg_notify('urlloading', 'work')")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for program in programs {
                    group.addTask { @Sendable in
                        #expect(try await program.request(.listen) == .done)
                        for _ in 0..<total / programCount {
                            let (sequence, record) = try await program.nextEvent()
                            if case .failed(let error)? = record.outcome { Issue.record("\(error)") }
                            try await program.acknowledge(sequence)
                        }
                        program.close()
                    }
                }
                try await group.waitForAll()
            }
            let time = Self.seconds(since: begun)
            let targets = meter.targets
            #expect(targets.count == total && Set(targets).count == total)
            #expect(meter.most <= places && meter.most > 1, "\(meter.most)")
            for index in 0..<programCount {
                for number in 0..<total / programCount {
                    let text = "file /file?\(index)-\(number)"
                    #expect(Film.of("\(folder)/\(index)-\(number)") == Array(text.utf8))
                }
            }
            // While all identifiers have transfers that wait, each gets its share.
            let half = targets.prefix(total / 2)
            let shares = (0..<programCount).map { index in half.count { $0.hasPrefix("/file?\(index)-") } }
            let fair = total / 2 / programCount
            // Each agent begins with the first identifier.
            #expect(shares.allSatisfy { abs($0 - fair) <= fair / 5 + count }, "\(shares)")
            let ofAgents = agents.map { $0.lines.count("is over") }
            #expect(ofAgents.reduce(0, +) == total)
            print(
                "\(count) agents, \(total) transfers, \(places) places: \(time) s, at most \(meter.most) at once, "
                    + "identifiers \(shares), agents \(ofAgents)")
        }
        for agent in agents { await agent.stop() }
    }

    /// What was measured of claims, in milliseconds each.
    private struct Claims {
        var rate: Double
        var times: [Double]
        var transfers: Int

        var words: String {
            let sorted = times.sorted()
            func at(_ share: Double) -> Double { sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * share)] }
            return "\(Int(rate)) transfers/s in \(times.count) claims, p50 \(at(0.5)) ms, p99 \(at(0.99)) ms"
        }
    }

    /// Lets journals claim until nothing is ready.
    private static func claimAll(_ journals: [PostgresJournal], _ count: Int) async throws -> Claims {
        let begun = ContinuousClock.now
        let numbers = Lock<[Int64]>([])
        let times = Lock<[Double]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for journal in journals {
                group.addTask { @Sendable in
                    var last: String?
                    while true {
                        let asked = ContinuousClock.now
                        let found = try await journal.claim(.ready(atMost: count, after: last)).transfers
                        let time = Double((ContinuousClock.now - asked) / .microseconds(1)) / 1_000
                        times.withLock { $0.append(time) }
                        guard let final = found.last else { return }
                        last = final.identifier
                        numbers.withLock { $0 += found.map(\.claim.number) }
                    }
                }
            }
            try await group.waitForAll()
        }
        let (time, claimed) = (seconds(since: begun), numbers.withLock(\.self))
        #expect(Set(claimed).count == claimed.count)
        return Claims(rate: Double(claimed.count) / time, times: times.withLock(\.self), transfers: claimed.count)
    }

    @Test("Ten agents claim what is due of many transfers, each once, also while a transaction elsewhere is held open")
    func claims() async throws {
        let (total, due, rounds) = Self.isLong ? (2_000_000, 10_000, 5) : (20_000, 1_000, 1)
        // The usual size of a server's memory, which the other rows do not need.
        let server = try await PostgresServer(memory: "128MB")
        let address = try await server.database()
        var journals: [PostgresJournal] = []
        for _ in 0..<10 { journals.append(try await PostgresJournal.open(address) { _ in }) }
        let admin = try await PostgresConnection.open(address)
        let patience: Int64 = 1_800_000_000_000
        for text in [
            "INSERT INTO urlloading.host (name, places) VALUES ('*', 1000)",
            "INSERT INTO urlloading.identifier (name, settings) SELECT 'program' || n, '' FROM generate_series(0, 99) n",
            """
            INSERT INTO urlloading.transfer (id, identifier, task, secrets)
            SELECT 't' || n, 'program' || (n % 100), repeat('x', 200)::bytea, repeat('s', 100)::bytea
            FROM generate_series(1, \(total)) n
            """,
            "INSERT INTO urlloading.progress SELECT number, 's', 'p' FROM urlloading.transfer",
            """
            INSERT INTO urlloading.claim (number, identifier, host, priority, discretionary, ready, due)
            SELECT number, identifier, 'host' || (number * 7919 / 100) % 1000 || '.example', 100, false, false,
            clock_timestamp() + interval '1 second' * (CASE WHEN (number / 100) % \(total / due) = 0 THEN -1 ELSE 86400 END)
            FROM urlloading.transfer
            """,
            "VACUUM ANALYZE",
        ] {
            try await admin.run(text, within: patience)
        }
        func again() async throws {
            try await admin.run(
                """
                UPDATE urlloading.claim SET agent = NULL, lease = NULL, ready = false,
                due = clock_timestamp() - interval '1 second' WHERE agent IS NOT NULL
                """, within: patience)
        }
        func measure(_ words: String, _ count: Int) async throws {
            var (rates, times): ([Double], [Double]) = ([], [])
            for _ in 0..<rounds {
                let claims = try await Self.claimAll(journals, count)
                #expect(claims.transfers == due)
                rates.append(claims.rate)
                times += claims.times
                try await again()
            }
            let all = Claims(rate: rates.reduce(0, +) / Double(rounds), times: times, transfers: 0)
            print("\(total) transfers, \(due) due, \(words), \(count) at a time: \(all.words)")
        }
        for count in [32, 1] { try await measure("10 agents", count) }
        let holder = try await PostgresConnection.open(address)
        try await holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM urlloading.claim LIMIT 1")
        let begun = ContinuousClock.now
        for count in [32, 1] { try await measure("with a transaction held open", count) }
        if let held = ProcessInfo.processInfo.environment["URLLOADING_HELD_SECONDS"].flatMap(Double.init) {
            while Self.seconds(since: begun) < held {
                try await Task.sleep(for: .seconds(20))
                try await measure("with a transaction held open for \(Int(Self.seconds(since: begun))) s", 32)
            }
        }
        try await holder.run("COMMIT")
        for journal in journals { try await JournalRows.Place.close(journal) }
        await server.end()
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The budget of retries: the ledger as a value, and loads of a session.
@Suite(.timeLimit(.minutes(4)))
struct RetryBudgetRows {
    private static let second: Int64 = 1_000_000_000

    // MARK: The ledger

    @Test("of 10,000 requests at once a fifth are retried, and the minimum of ten seconds") func atOnce() {
        var ledger = RetryLedger(RetryBudget(share: 0.2, minimumPerSecond: 10))
        for _ in 0..<10_000 { ledger.began(now: 5) }
        let planned = (0..<10_000).count { _ in ledger.plan(now: 5) != nil }
        #expect(planned == 2_100)
    }

    @Test("an outage of 30 s at 1,000 loads a second, with three attempts each, makes at most 1.2 requests a load")
    func outage() {
        let budget = RetryBudget()
        var ledger = RetryLedger(budget)
        var retries = 0
        for millisecond in 0..<30_000 {
            let now = Int64(millisecond) * Self.second / 1_000
            ledger.began(now: now)
            for _ in 0..<2 where ledger.plan(now: now) != nil { retries += 1 }
        }
        let loads = 30_000
        #expect(retries <= loads / 5 + Int(budget.minimumPerSecond) * 40)
        #expect(retries >= loads / 5)
    }

    @Test("one load a second may retry twice") func few() {
        var ledger = RetryLedger(RetryBudget())
        for second in 0..<60 {
            let now = Int64(second) * Self.second
            ledger.began(now: now)
            let both = ledger.plan(now: now) != nil && ledger.plan(now: now) != nil
            #expect(both)
        }
    }

    @Test("a retry that is given back may be planned again; one that has left the window is not given back twice")
    func givenBack() throws {
        var ledger = RetryLedger(RetryBudget(share: 0, minimumPerSecond: 0.1))
        let planned = ledger.plan(now: 0)
        let first = try #require(planned)
        let isBeyond = ledger.plan(now: 0) == nil
        #expect(isBeyond)
        ledger.giveBack(first, now: Self.second)
        let again = ledger.plan(now: Self.second)
        let second = try #require(again)
        // The window has left the second behind.
        let third = ledger.plan(now: 11 * Self.second)
        #expect(third != nil)
        ledger.giveBack(second, now: 11 * Self.second)
        let fourth = ledger.plan(now: 11 * Self.second)
        #expect(fourth == nil)
    }

    @Test("numbers that are none count as 0", arguments: [Double.nan, -1, -Double.infinity]) func invalid(
        _ number: Double
    ) {
        var ledger = RetryLedger(RetryBudget(share: number, minimumPerSecond: number))
        ledger.began(now: 0)
        let entry = ledger.plan(now: 0)
        #expect(entry == nil)
    }

    @Test("without a bound every retry is made") func unbounded() {
        var ledger = RetryLedger(RetryBudget(share: .infinity, minimumPerSecond: .infinity))
        let isPlanned = (0..<1_000).allSatisfy { _ in ledger.plan(now: 0) != nil }
        #expect(isPlanned)
    }

    @Test("the ledger agrees with a list of all moments", arguments: [1, 2, 3] as [UInt64])
    func model(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let budget = RetryBudget(share: 0.5, minimumPerSecond: 0.3)
        var ledger = RetryLedger(budget)
        var (requests, retries): ([Int64], [(id: Int, second: Int64)]) = ([], [])
        var open: [(id: Int, entry: RetryLedger.Entry)] = []
        var now: Int64 = 0
        for step in 0..<3_000 {
            now += Int64.random(in: 0...(Self.second * (step % 100 == 0 ? 15 : 1) / 2), using: &random)
            let second = now / Self.second
            requests.removeAll { $0 <= second - RetryLedger.window }
            retries.removeAll { $0.second <= second - RetryLedger.window }
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                ledger.began(now: now)
                requests.append(second)
            case 2:
                let isAllowed = Double(retries.count + 1) <= 0.5 * Double(requests.count) + 3
                let entry = ledger.plan(now: now)
                #expect((entry != nil) == isAllowed)
                guard let entry else { break }
                retries.append((step, second))
                open.append((step, entry))
            default:
                guard let index = open.indices.randomElement(using: &random) else { break }
                let (id, entry) = open.remove(at: index)
                ledger.giveBack(entry, now: now)
                retries.removeAll { $0.id == id }
            }
        }
    }

    // MARK: Loads

    @Test("loads beyond the budget get the outcome of their last attempt, with an event and a count")
    func refused() async throws {
        try await withHTTPTestServer { origin in
            RetryRows.serve(origin, [.serviceUnavailable])
            let statistics = LoadStatistics()
            let rig = RetryRows.Rig({ $0.backoff = .constant(.zero) }) { configuration in
                configuration.observers.append(statistics)
                configuration.retries.budget = RetryBudget(share: 0.2, minimumPerSecond: 0)
            }
            let session = rig.session
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        let (_, response) = try await session.data(from: origin.url())
                        #expect(response.status == .serviceUnavailable)
                    }
                }
                try await group.waitForAll()
            }
            let counts = statistics.snapshot
            #expect(origin.requests.count == 50 + counts.retries)
            #expect(counts.retries <= 10)
            #expect(counts.refusedRetries == 50)
            session.invalidateAndCancel()
            let story = rig.recorder.loads.map(\.description)
            #expect(story.allSatisfy { $0.contains("retryRefused") })
        }
    }

    @Test("an error beyond the budget is the load's error") func refusedError() async throws {
        let rig = RetryRows.Rig({ $0.backoff = .constant(.zero) }) {
            $0.retries.budget = RetryBudget(share: 0, minimumPerSecond: 0)
        }
        let port = try closedPort()
        await expectFailure(.connectionRefused) {
            try await rig.session.data(from: try #require(URL(string: "http://127.0.0.1:\(port)/")))
        }
        #expect(rig.retries.isEmpty)
        rig.session.invalidateAndCancel()
    }

    @Test("a load that is cancelled in its delay gives its retry back") func cancelled() async throws {
        try await withHTTPTestServer { origin in
            RetryRows.serve(origin, [.serviceUnavailable])
            let rig = RetryRows.Rig { configuration in
                configuration.maximumAttempts = 2
            } configure: { configuration in
                configuration.retries.budget = RetryBudget(share: 0, minimumPerSecond: 0.1)
            }
            let first = rig.session.dataTask(from: origin.url())
            first.resume()
            try await rig.recorder.wait(for: .retrying)
            first.cancel()
            await expectFailure(.cancelled) { try await first.value }
            async let second = rig.session.data(from: origin.url())
            try await rig.passWaits(1, from: 2)
            _ = try await second
            #expect(origin.requests.count == 3)
            // The second load has used it up.
            _ = try await rig.session.data(from: origin.url())
            #expect(origin.requests.count == 4)
            rig.session.invalidateAndCancel()
        }
    }

    @Test(
        "during an outage at most a fifth of the requests are retried, and after it retries happen as they did before")
    func recovery() async throws {
        try await withHTTPTestServer { origin in
            let isDown = Held(true)
            let seen = Held(Set<String>())
            origin.route("/*") { request in
                // When the outage is over, every tenth load still fails once.
                let isFirst = seen.withLock { $0.insert(request.path).inserted }
                let fails = isDown.withLock { $0 } || isFirst && request.path.hasSuffix("7")
                return fails ? .status(.serviceUnavailable) : .ok("x")
            }
            let statistics = LoadStatistics()
            let rig = RetryRows.Rig({ $0.backoff = .constant(.zero) }) { $0.observers = [statistics] }
            /// Runs loads of a second at once; returns how many succeeded.
            func second(_ number: Int, loads: Int) async throws -> Int {
                defer { rig.clock.advance(by: .seconds(1)) }
                return try await withThrowingTaskGroup(of: Bool.self) { group in
                    for load in 0..<loads {
                        group.addTask {
                            let (_, response) = try await rig.session.data(from: origin.url("/\(number)/\(load)"))
                            return response.status == .ok
                        }
                    }
                    return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
            }
            let (seconds, loads) = (20, 100)
            for number in 0..<seconds {
                let succeeded = try await second(number, loads: loads)
                #expect(succeeded == 0)
            }
            let minimum = 10 * seconds
            #expect(origin.requests.count <= seconds * loads * 12 / 10 + minimum)
            #expect(origin.requests.count > seconds * loads)
            isDown.withLock { $0 = false }
            var refused = statistics.snapshot.refusedRetries
            for number in seconds..<seconds + 15 {
                let succeeded = try await second(number, loads: loads)
                // The retries of the outage leave the window second by second.
                if number >= seconds + 10 { #expect(succeeded == loads) } else { #expect(succeeded >= loads * 9 / 10) }
                if number == seconds + 9 { refused = statistics.snapshot.refusedRetries }
            }
            #expect(statistics.snapshot.refusedRetries == refused)
            rig.session.invalidateAndCancel()
        }
    }

    @Test("without a budget each load has its policy") func none() async throws {
        try await withHTTPTestServer { origin in
            RetryRows.serve(origin, [.serviceUnavailable])
            let rig = RetryRows.Rig({ $0.backoff = .constant(.zero) }) { $0.retries.budget = nil }
            for _ in 0..<5 { _ = try await rig.session.data(from: origin.url()) }
            #expect(origin.requests.count == 15)
            rig.session.invalidateAndCancel()
        }
    }
}

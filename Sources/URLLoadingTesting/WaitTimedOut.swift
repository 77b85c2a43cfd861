// SPDX-License-Identifier: Apache-2.0

// The time limit of every wait of this library: a test whose condition never becomes true fails with a description of
// the actual state.

import URLLoadingIO

/// Thrown by a wait that reached its time limit before its condition became true.
///
/// ```swift
/// try await origin.wait(timeout: .seconds(5)) { $0.requests == 2 }
/// // waited 5.0 seconds for the counts of the origin (AppTests/FeedTests.swift:12), and saw: accepted: 1, open: 1, …
/// ```
/// Every wait has its limit as `timeout:`, by the system's clock, whatever clock the session has. The default is
/// ``usualLimit``. The condition is checked at least once, even if the limit is zero.
public struct WaitTimedOut: Error, Sendable, Hashable, CustomStringConvertible {
    /// One minute, enough for a machine that runs many tests at once.
    public static let usualLimit = Duration.seconds(60)

    /// The condition that did not become true, and the line of the test that waited for it.
    public let expected: String
    /// The limit of the wait.
    public let limit: Duration
    /// The state at the end of the wait.
    public let seen: String

    /// The expectation, the limit and the state, in one line.
    public var description: String { "waited \(limit) for \(expected), and saw: \(seen)" }
}

/// The time limit of one wait in progress.
struct WaitLimit: Sendable {
    /// The deadline in the poller's nanoseconds.
    let deadline: Int64
    private let limit: Duration
    private let expected: String

    /// - Parameter expected: a description of the condition, without the source location.
    init(_ limit: Duration, _ expected: String, _ file: StaticString, _ line: UInt) {
        self.limit = limit
        self.expected = "\(expected) (\(file):\(line))"
        deadline = Poller.now() + limit.inNanoseconds
    }

    var isOver: Bool { Poller.now() >= deadline }

    func failure(_ seen: String) -> WaitTimedOut { WaitTimedOut(expected: expected, limit: limit, seen: seen) }

    /// Polls a condition whose changes are not notified.
    nonisolated(nonsending) func poll(until isSo: () -> Bool, seen: () -> String) async throws {
        while !isSo() {
            guard !isOver else { throw failure(seen()) }
            try await Task.sleep(for: .microseconds(200))
        }
    }

    /// Calls `find` until it returns a value, each time that the slot is woken.
    /// - Parameter watch: adds the slot to those that every change wakes, or removes it.
    nonisolated(nonsending) func watch<R>(
        _ watch: (_ slot: PollSlot, _ adds: Bool) -> Void, find: () -> R?, seen: () -> String
    ) async throws -> R {
        let token = StopToken()
        let slot = Poller.shared.borrowSlot()
        token.attach(slot)
        watch(slot, true)
        let alarm = Alarm(.system, at: deadline, token)
        defer {
            alarm.off()
            watch(slot, false)
            token.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        return try await withTaskCancellationHandler {
            while true {
                if let found = find() { return found }
                guard token.stopReason == nil else { throw CancellationError() }
                guard !isOver else { throw failure(seen()) }
                await Poller.shared.park(slot, until: token)
            }
        } onCancel: {
            token.stop(.cancelled)
        }
    }
}

extension Sequence {
    /// The last elements in one line, for the state that a failed wait shows.
    func shown(last count: Int = 8) -> String {
        let all = map { "\($0)" }
        let rest = all.count > count ? "… " : ""
        return all.isEmpty ? "none" : rest + all.suffix(count).joined(separator: "; ")
    }
}

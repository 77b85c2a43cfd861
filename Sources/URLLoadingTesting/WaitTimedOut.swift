// The limit of every wait of this product: a test whose condition never comes true fails, and says what it saw instead.

import URLLoadingIO

/// A wait reached its limit before its condition came true.
///
/// ```swift
/// try await origin.wait(within: .seconds(5)) { $0.requests == 2 }
/// // waited 5.0 seconds for the counts of the origin (AppTests/FeedTests.swift:12), and saw: Counts(accepted: 1, …
/// ```
/// Every wait takes its limit as `within:`, in the system's time, whatever clock the session has. It is
/// ``usualLimit`` by default. The condition is checked at least once, even if the limit is zero.
public struct WaitTimedOut: Error, Sendable, Hashable, CustomStringConvertible {
    /// One minute: enough for a machine that runs many tests at once.
    public static let usualLimit = Duration.seconds(60)

    /// The condition that did not come true, and the line of the test that waited for it.
    public let expected: String
    /// The limit of the wait.
    public let limit: Duration
    /// The state at the end of the wait.
    public let seen: String

    /// The expectation, the limit and the state, in one line.
    public var description: String { "waited \(limit) for \(expected), and saw: \(seen)" }
}

/// The limit of one wait that goes on.
struct WaitLimit: Sendable {
    /// In the poller's nanoseconds.
    let deadline: Int64
    private let limit: Duration
    private let expected: String

    /// - Parameter expected: the condition, without the place of the wait.
    init(_ limit: Duration, _ expected: String, _ file: StaticString, _ line: UInt) {
        self.limit = limit
        self.expected = "\(expected) (\(file):\(line))"
        deadline = Poller.now() + limit.inNanoseconds
    }

    var isOver: Bool { Poller.now() >= deadline }

    func failure(_ seen: String) -> WaitTimedOut { WaitTimedOut(expected: expected, limit: limit, seen: seen) }

    /// Checks a condition whose changes notify nothing, again and again.
    nonisolated(nonsending) func poll(until isSo: () -> Bool, seen: () -> String) async throws {
        while !isSo() {
            guard !isOver else { throw failure(seen()) }
            try await Task.sleep(for: .microseconds(200))
        }
    }

    /// Calls `look` until it returns something, each time that the slot is woken.
    /// - Parameter watch: adds the slot to those that every change wakes, or removes it.
    nonisolated(nonsending) func watch<R>(
        _ watch: (_ slot: PollSlot, _ adds: Bool) -> Void, look: () -> R?, seen: () -> String
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
                if let found = look() { return found }
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
    /// The last elements, one after the other, for the state that a failed wait shows.
    func shown(last count: Int = 8) -> String {
        let all = map { "\($0)" }
        let rest = all.count > count ? "… " : ""
        return all.isEmpty ? "none" : rest + all.suffix(count).joined(separator: "; ")
    }
}

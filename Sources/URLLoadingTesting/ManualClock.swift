// SPDX-License-Identifier: Apache-2.0

// A clock that tests move by hand; see `LoopClock` and `ManualTime` for its users.

import Synchronization
public import URLLoading
package import URLLoadingIO

/// A clock that stands still until the test moves it: timeouts of minutes are tested instantly, and short ones never
/// fire early on a busy machine.
///
/// ```swift
/// let clock = ManualClock()
/// var configuration = Configuration.ephemeral
/// configuration.timeouts.idle = .seconds(60)
/// configuration.use(clock)
/// let session = Session(configuration)
/// async let loaded = session.data(from: origin.url("/stalls"))
/// try await origin.wait { $0.stalled == 1 }   // the server has stopped sending,
/// try await clock.untilWaiting()              // the load has read all of it,
/// clock.advance(by: .seconds(60))             // and has waited long enough
/// ```
/// A session uses it for the timeouts of its loads, the deadlines of decisions,
/// the lifetime of idle connections, and the timing of a ``ReplayHandler``. An origin uses
/// ``HTTPTestServer/Configuration/clock`` for the pauses and delays of its responses, a ``NetworkRelay`` the clock that
/// it is created with for its delays and rates. Measurements for logs and spans,
/// and the pacing of connection attempts, use the system's clock.
///
/// It conforms to `Clock`, so a test's handlers and decisions can sleep on it too.
public final class ManualClock: Clock, Sendable {
    package let time = ManualTime()

    /// Creates a clock at its starting point.
    public init() {}

    /// The duration by which the clock was moved.
    public var elapsed: Duration { now.offset }

    /// Moves the clock forward. Everything that becomes due happens before this returns, in chronological order: loads
    /// are told to end, connections are closed, sleeping tasks are woken. Work that these then do in tasks of their own
    /// happens later.
    ///
    /// A load that was woken but has not run yet, for instance because data has arrived, does not count as idle.
    /// - Parameter duration: at least zero.
    public func advance(by duration: Duration) { time.advance(by: duration.inNanoseconds) }

    /// Waits until loads of sessions with this clock wait for their peers, and have processed all data that has
    /// arrived. Data that the peers are still to send is not covered: wait for that first.
    ///
    /// Loads that wait for a connection, a decision or a handler do not count.
    /// - Parameters:
    ///   - count: the minimum number of such loads, more than 0.
    ///   - limit: the longest time to wait, by the system's clock.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilWaiting(
        _ count: Int = 1, timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        let expected = count == 1 ? "a load that waits for its peer" : "\(count) loads that wait for their peers"
        let limit = WaitLimit(limit, expected, file, line)
        while true {
            let (waiting, waits) = time.waiting
            if waiting >= count {
                // Two rounds, so that the poller has checked every socket in between.
                for _ in 0..<2 { await PollerRound().finished() }
                let later = time.waiting
                if later.count >= count, later.waits == waits { return }
            }
            guard !limit.isOver else { throw limit.failure(shown) }
            try await Task.sleep(for: .microseconds(200))
        }
    }

    /// Waits until tasks sleep on this clock: handlers, decisions, replays, pauses of origins. A task that
    /// ``advance(by:)`` has woken counts again only when it sleeps again:
    ///
    /// ```swift
    /// for _ in 1...3 {                        // three attempts, each after a minute
    ///     try await clock.untilSleeping()
    ///     clock.advance(by: .seconds(60))
    /// }
    /// ```
    /// - Parameters:
    ///   - count: the minimum number of such tasks, more than 0.
    ///   - limit: the longest time to wait, by the system's clock.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilSleeping(
        _ count: Int = 1, timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        let expected = count == 1 ? "a task that sleeps" : "\(count) tasks that sleep"
        try await WaitLimit(limit, expected, file, line).poll {
            time.asleep >= count
        } seen: {
            shown
        }
    }

    /// The state as shown by a wait that timed out.
    private var shown: String {
        let woken = time.sleeping - time.asleep
        return
            "\(time.asleep) tasks asleep\(woken > 0 ? " and \(woken) woken" : ""), "
            + "\(time.waiting.count) loads waiting, "
            + "\(time.scheduled) timers, the clock at \(now)"
    }

    // MARK: Clock

    /// A moment of a manual clock.
    public struct Instant: InstantProtocol, CustomStringConvertible {
        /// The duration from the clock's starting point.
        public let offset: Duration

        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        public static func < (a: Instant, b: Instant) -> Bool { a.offset < b.offset }
        public var description: String { "\(offset)" }
    }

    /// The current moment of the clock.
    public var now: Instant { Instant(offset: .nanoseconds(time.now - ManualTime.beginning)) }
    /// One nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Sleeps until the clock was moved to a moment.
    /// - Parameter tolerance: ignored.
    /// - Throws: `CancellationError` if the calling task is cancelled first.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await LoopClock(time).sleep(until: ManualTime.beginning + deadline.offset.inNanoseconds)
    }
}

/// Waits for one iteration of the poller, which fires due timers and then checks its sockets.
private final class PollerRound: TimerTarget {
    private let isDone = Atomic<Bool>(false)
    private let slot = Poller.shared.borrowSlot()
    deinit { Poller.shared.returnSlot(slot) }

    func timerFired(now: Int64) {
        isDone.store(true, ordering: .releasing)
        slot.wake()
    }

    func finished() async {
        Poller.shared.schedule(self, at: 0)
        while !isDone.load(ordering: .acquiring) { await Poller.shared.park(slot, until: .never) }
    }
}

extension Configuration {
    /// Makes sessions created with this configuration use `clock`.
    public mutating func use(_ clock: ManualClock) { self.clock = LoopClock(clock.time) }
}

extension LoopClock {
    /// Sleeps until `moment`; throws `CancellationError` if the calling task is cancelled first.
    package func sleep(until moment: Int64) async throws {
        let token = StopToken()
        do {
            try await withTaskCancellationHandler {
                try await sleep(until: moment, token)
            } onCancel: {
                token.stop(.cancelled)
            }
        } catch {
            throw CancellationError()
        }
    }
}

extension Duration {
    /// The duration in nanoseconds: at least 0, at most about 146 years.
    package var inNanoseconds: Int64 {
        guard self > .zero else { return 0 }
        // Compared as durations, because `components` ends the process if the seconds exceed `Int64`.
        guard self < .seconds(Int64.max / 2_000_000_000) else { return .max / 2 }
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}

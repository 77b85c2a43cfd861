// Time for tests, in their own hands: see `LoopClock` and `ManualTime` for who takes it.

import Synchronization
public import URLLoading
package import URLLoadingIO

/// A clock that stands still until the test moves it: time-outs of minutes are tested in no time, and
/// short ones never fire early on a busy machine.
///
/// ```swift
/// let clock = ManualClock()
/// var configuration = Configuration.ephemeral
/// configuration.idleTimeout = .seconds(60)
/// configuration.use(clock)
/// let session = Session(configuration)
/// async let loaded = session.data(from: origin.url("/stalls"))
/// try await origin.wait { $0.stalled == 1 }   // the server says no more,
/// try await clock.untilWaiting()              // the load has heard all it said,
/// clock.advance(by: .seconds(60))             // and has waited long enough
/// ```
/// A session takes from it: ``Configuration/idleTimeout`` and ``Configuration/resourceTimeout``,
/// deadlines of decisions, the life of idle connections, and the timing of a ``ReplayHandler``. An origin
/// takes the pauses and delays of its answers from ``TestOrigin/Configuration/clock``. What is measured
/// for logs and spans, and the pace of attempts to connect, stay on the system's time.
///
/// It is a `Clock`: handlers and decisions of a test can sleep on it too.
public final class ManualClock: Clock, Sendable {
    package let time = ManualTime()

    /// A clock at its beginning.
    public init() {}

    /// How far it was moved.
    public var elapsed: Duration { now.offset }

    /// Moves the time. All that becomes due is done before this returns, in the order of its moments:
    /// loads are told to end, connections are closed, sleepers woken. What those then do in tasks of
    /// their own comes after.
    ///
    /// A load that was woken but has not run yet, for instance because bytes have come, does not count
    /// as idle.
    /// - Parameter duration: at least zero.
    public func advance(by duration: Duration) { time.advance(by: duration.inNanoseconds) }

    /// Returns when loads of sessions with this clock wait for their peers, and nothing that has come
    /// for them was left unheard. What the peers have yet to say is another matter: wait for that first.
    ///
    /// Waiting for a connection, a decision or a handler does not count.
    /// - Parameters:
    ///   - count: how many at least; more than 0.
    ///   - limit: of the wait, in the system's time.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilWaiting(
        _ count: Int = 1, within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        let expected = count == 1 ? "a load that waits for its peer" : "\(count) loads that wait for their peers"
        let limit = WaitLimit(limit, expected, file, line)
        while true {
            let (waiting, waits) = time.waiting
            if waiting >= count {
                // Twice, so that the poller has looked at every socket in between.
                for _ in 0..<2 { await PollerRound().finished() }
                let later = time.waiting
                if later.count >= count, later.waits == waits { return }
            }
            guard !limit.isOver else { throw limit.failure(shown) }
            try await Task.sleep(for: .microseconds(200))
        }
    }

    /// Returns when tasks sleep on this clock: handlers, decisions, replays, pauses of origins. A task that
    /// ``advance(by:)`` has woken counts again when it sleeps again:
    ///
    /// ```swift
    /// for _ in 1...3 {                        // three tries, each after a minute
    ///     try await clock.untilSleeping()
    ///     clock.advance(by: .seconds(60))
    /// }
    /// ```
    /// - Parameters:
    ///   - count: how many at least; more than 0.
    ///   - limit: of the wait, in the system's time.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilSleeping(
        _ count: Int = 1, within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        let expected = count == 1 ? "a task that sleeps" : "\(count) tasks that sleep"
        try await WaitLimit(limit, expected, file, line).poll {
            time.asleep >= count
        } seen: {
            shown
        }
    }

    /// For a wait that reached its limit.
    private var shown: String {
        let woken = time.sleeping - time.asleep
        return
            "\(time.asleep) tasks asleep\(woken > 0 ? " and \(woken) woken" : ""), \(time.waiting.count) loads waiting, "
            + "\(time.scheduled) timers, the clock at \(now)"
    }

    // MARK: Clock

    /// A moment of a manual clock.
    public struct Instant: InstantProtocol, CustomStringConvertible {
        /// How far the clock was moved until then.
        public let offset: Duration

        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        public static func < (a: Instant, b: Instant) -> Bool { a.offset < b.offset }
        public var description: String { "\(offset)" }
    }

    /// The moment to which it was moved.
    public var now: Instant { Instant(offset: .nanoseconds(time.now - ManualTime.beginning)) }
    /// One nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Sleeps until the clock was moved so far.
    /// - Parameter tolerance: has no meaning here.
    /// - Throws: `CancellationError` if the calling task is cancelled first.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await LoopClock(time).sleep(until: ManualTime.beginning + deadline.offset.inNanoseconds)
    }
}

/// One way of the poller through its loop: it fires what is due, then looks at its sockets.
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
    /// From now on the sessions made with this value take their time from `clock`.
    public mutating func use(_ clock: ManualClock) { self.clock = LoopClock(clock.time) }
}

extension LoopClock {
    /// Sleeps until `moment`, or until the calling task is cancelled, with a `CancellationError`.
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
    /// At least 0, at most about 146 years.
    package var inNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0 else { return 0 }
        guard seconds < Int64.max / 2_000_000_000 else { return .max / 2 }
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}

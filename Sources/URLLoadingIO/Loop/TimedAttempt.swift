// A limit on one attempt of a task, such as the connect timeout: it ends the attempt's waits, and not the token's other
// work. The task that makes the attempt carries it as a task-local value, so that attempts that several tasks make at
// once for the same token do not share a limit.

import Synchronization

package final class TimedAttempt: Sendable {
    @TaskLocal static var current: TimedAttempt?

    private enum Time {
        /// No attempt is under way.
        static let none = Int64.max
        /// The limit is over.
        static let over = Int64.min
    }

    /// The token is stopped with its work; a timer does not keep it alive.
    private weak let owner: StopToken?
    private let clock: LoopClock
    /// The moment the attempt must have succeeded by, or one of `Time`. While the limit stands still, the nanoseconds
    /// that are left as a negative number.
    private let deadline = Atomic<Int64>(Time.none)
    /// The nanoseconds that are left between two parts of an attempt.
    private let left: Atomic<Int64>

    /// - Parameter limit: in nanoseconds, more than 0.
    package init(_ token: StopToken, within limit: Int64) {
        owner = token
        clock = token.clock
        left = Atomic(limit)
    }

    var token: StopToken? { owner }
    var isOver: Bool { deadline.load(ordering: .relaxed) == Time.over }

    /// The time that is left of the limit, in nanoseconds; 0 once it is over.
    package var timeLeft: Int64 {
        switch deadline.load(ordering: .relaxed) {
        case Time.none: left.load(ordering: .relaxed)
        case Time.over: 0
        case let moment where moment < 0: -moment
        case let moment: max(0, moment - clock.now())
        }
    }

    /// The limit runs from now on.
    func begin() {
        let (moment, overflows) = clock.now().addingReportingOverflow(left.load(ordering: .relaxed))
        guard !overflows else { return }
        deadline.store(moment, ordering: .releasing)
        clock.schedule(Timer(self, moment), at: moment)
    }

    /// The limit stops running; another part of the attempt goes on with what is left.
    func end() {
        left.store(timeLeft, ordering: .relaxed)
        deadline.store(Time.none, ordering: .releasing)
    }

    /// From now on the limit stands still: the load waits for its caller, and not for a peer.
    /// - Returns: what ``go(on:)`` needs; nil if no limit runs.
    package func pause() -> Int64? {
        let moment = deadline.load(ordering: .acquiring)
        guard moment > 0, moment != Time.none else { return nil }
        let paused = -max(1, moment - clock.now())
        return replace(moment, by: paused) ? paused : nil
    }

    /// The limit runs again, unless its attempt has ended meanwhile.
    package func go(on paused: Int64?) {
        guard let paused else { return }
        let moment = clock.now() - paused
        guard replace(paused, by: moment) else { return }
        clock.schedule(Timer(self, moment), at: moment)
    }

    private func replace(_ expected: Int64, by desired: Int64) -> Bool {
        deadline.compareExchange(expected: expected, desired: desired, ordering: .acquiringAndReleasing).exchanged
    }

    /// A timer stays in its queue until its moment: the limit may stand still by then, or run to another moment.
    fileprivate func fired(_ moment: Int64) {
        if replace(moment, by: Time.over) { owner?.wake() }
    }

    /// One run of the limit. It keeps no attempt alive.
    private final class Timer: TimerTarget {
        private weak let attempt: TimedAttempt?
        private let moment: Int64

        init(_ attempt: TimedAttempt, _ moment: Int64) {
            self.attempt = attempt
            self.moment = moment
        }

        func timerFired(now: Int64) { attempt?.fired(moment) }
    }
}

// SPDX-License-Identifier: Apache-2.0

// A time limit for one attempt of a task, such as the connect timeout: it ends the attempt's waits, but not the token's
// other work. The attempt is a task-local value of the task that makes it, so that attempts of several tasks for the
// same token have separate limits.

import Synchronization

package final class TimedAttempt: Sendable {
    @TaskLocal static var current: TimedAttempt?

    private enum Time {
        /// No attempt is under way.
        static let none = Int64.max
        /// The limit has expired.
        static let over = Int64.min
    }

    /// Weak: a timer must not keep the token alive, which is stopped together with its work.
    private weak let owner: StopToken?
    private let clock: LoopClock
    /// The moment at which the attempt times out, or one of `Time`. While the limit is paused, the negated remaining
    /// time in nanoseconds.
    private let deadline = Atomic<Int64>(Time.none)
    /// The remaining time in nanoseconds, between two parts of an attempt.
    private let left: Atomic<Int64>

    /// - Parameter limit: in nanoseconds, more than 0.
    package init(_ token: StopToken, timeout limit: Int64) {
        owner = token
        clock = token.clock
        left = Atomic(limit)
    }

    var token: StopToken? { owner }
    var isOver: Bool { deadline.load(ordering: .relaxed) == Time.over }

    /// The remaining time in nanoseconds; 0 once the limit has expired.
    package var timeLeft: Int64 {
        switch deadline.load(ordering: .relaxed) {
        case Time.none: left.load(ordering: .relaxed)
        case Time.over: 0
        case let moment where moment < 0: -moment
        case let moment: max(0, moment - clock.now())
        }
    }

    /// Starts the limit.
    func begin() {
        let (moment, overflows) = clock.now().addingReportingOverflow(left.load(ordering: .relaxed))
        guard !overflows else { return }
        deadline.store(moment, ordering: .releasing)
        clock.schedule(Timer(self, moment), at: moment)
    }

    /// Stops the limit; a later part of the attempt continues with the remaining time.
    func end() {
        left.store(timeLeft, ordering: .relaxed)
        deadline.store(Time.none, ordering: .releasing)
    }

    /// Pauses the limit while the load waits for its caller instead of a peer.
    /// - Returns: the value to pass to ``resume(_:)``; `nil` if no limit runs.
    package func pause() -> Int64? {
        let moment = deadline.load(ordering: .acquiring)
        guard moment > 0, moment != Time.none else { return nil }
        let paused = -max(1, moment - clock.now())
        return replace(moment, by: paused) ? paused : nil
    }

    /// Continues the paused limit, unless the attempt has ended meanwhile.
    package func resume(_ paused: Int64?) {
        guard let paused else { return }
        let moment = clock.now() - paused
        guard replace(paused, by: moment) else { return }
        clock.schedule(Timer(self, moment), at: moment)
    }

    private func replace(_ expected: Int64, by desired: Int64) -> Bool {
        deadline.compareExchange(expected: expected, desired: desired, ordering: .acquiringAndReleasing).exchanged
    }

    /// Handles a timer. A timer stays in its queue until its moment: by then the limit may be paused, or end at another
    /// moment.
    fileprivate func fired(_ moment: Int64) {
        if replace(moment, by: Time.over) { owner?.wake() }
    }

    /// The timer of one run of the limit. Holds the attempt weakly.
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

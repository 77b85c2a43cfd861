// SPDX-License-Identifier: Apache-2.0

// A time limit for one attempt of a task, such as the connect timeout: it ends the attempt's waits, but not the token's
// other work. The attempt is a task-local value of the task that makes it, so that attempts of several tasks for the
// same token have separate limits.

import Synchronization

package final class TimedAttempt: Sendable {
    @TaskLocal static var current: TimedAttempt?

    /// Weak: a timer must not keep the token alive, which is stopped together with its work.
    private weak let owner: StopToken?
    private let clock: LoopClock
    private let limit: Lock<Limit>

    /// - Parameter limit: in nanoseconds, more than 0.
    package init(_ token: StopToken, timeout limit: Int64) {
        owner = token
        clock = token.clock
        self.limit = Lock(Limit(left: limit))
    }

    var token: StopToken? { owner }

    /// Whether the limit has expired.
    package var isOver: Bool { limit.withLock { $0.left == 0 } }

    /// Stops the limit until ``release()`` is called as often: the load waits for its caller instead of a peer. The
    /// attempt then continues with the remaining time.
    package func hold() { change(holds: 1) }

    /// Revokes one ``hold()``.
    package func release() { change(holds: -1) }

    /// - Parameter count: how many reasons to hold the limit were added, or removed if negative.
    func change(holds count: Int) {
        let now = clock.now()
        let moment = limit.withLock { $0.change(holds: count, now) }
        if let moment { clock.schedule(Timer(self, moment), at: moment) }
    }

    /// The remaining time, which runs only while there is no reason to hold it.
    private struct Limit: Sendable {
        /// In nanoseconds, as of the moment at which the limit was last held; 0 once it has expired.
        var left: Int64
        /// The moment at which the running limit expires; `nil` while it is held.
        private var moment: Int64?
        /// The reasons to hold the limit: no part of the attempt is under way, the load is suspended, or a decision is
        /// being asked. They may be counted in another order than they occurred, so the number may be below 0 for a
        /// moment.
        private var holds = 1

        init(left: Int64) { self.left = left }

        /// Returns the moment of expiry if the limit begins to run.
        mutating func change(holds count: Int, _ now: Int64) -> Int64? {
            holds += count
            if holds > 0 {
                if let moment { left = max(1, moment - now) }
                moment = nil
            } else if moment == nil, left > 0 {
                let (end, overflows) = now.addingReportingOverflow(left)
                moment = overflows ? nil : end
                return moment
            }
            return nil
        }

        /// Handles a timer. Returns false for one of an earlier run: a timer stays in its queue until its moment.
        mutating func expires(at moment: Int64) -> Bool {
            guard self.moment == moment else { return false }
            (left, self.moment) = (0, nil)
            return true
        }
    }

    fileprivate func fired(_ moment: Int64) {
        if limit.withLock({ $0.expires(at: moment) }) { owner?.wake() }
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

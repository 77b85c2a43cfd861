// Wakes the waits of a token at a moment, wherever they are. Until the alarm is off, the token's work is a sleep to
// tests that move the time (`ManualTime.sleeping`).

import Synchronization

package final class Alarm: TimerTarget {
    private let clock: LoopClock
    /// Let go of when it is off: a timer stays in its queue until its moment.
    private let token: Lock<StopToken?>

    /// Wakes the waits of `token` at `moment`.
    package init(_ clock: LoopClock, at moment: Int64, _ token: StopToken) {
        self.clock = clock
        self.token = Lock(token)
        clock.manual?.beganSleeping(self, until: moment, token)
        clock.schedule(self, at: moment)
    }

    package func off() {
        let wasOn = token.withLock { token in
            defer { token = nil }
            return token != nil
        }
        if wasOn { clock.manual?.endedSleeping(self) }
    }

    package func timerFired(now: Int64) { token.withLock { $0 }?.wake() }
}

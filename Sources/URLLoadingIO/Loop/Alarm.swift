// A moment at which whoever waits for a token is to look again, wherever he waits. Until it is off, his work
// counts as asleep for tests that move the time.

import Synchronization

package final class Alarm: TimerTarget {
    private let clock: LoopClock
    /// Let go of when it is off: a timer stays in its queue until its moment.
    private let token: Lock<StopToken?>

    /// Wakes the waits of `token` at `moment`.
    package init(_ clock: LoopClock, at moment: Int64, _ token: StopToken) {
        self.clock = clock
        self.token = Lock(token)
        clock.manual?.beganSleeping()
        clock.schedule(self, at: moment)
    }

    package func off() {
        let wasOn = token.withLock { token in
            defer { token = nil }
            return token != nil
        }
        if wasOn { clock.manual?.endedSleeping() }
    }

    package func timerFired(now: Int64) { token.withLock { $0 }?.wake() }
}

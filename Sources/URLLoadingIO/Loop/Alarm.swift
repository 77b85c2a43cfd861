// SPDX-License-Identifier: Apache-2.0

// Wakes all waits of a stop token at a given moment. Until the alarm is turned off, tests that move the time count the
// token's work as sleeping (`ManualTime.sleeping`).

import Synchronization

package final class Alarm: TimerTarget {
    private let clock: LoopClock
    /// Released by `off()`, because the timer itself stays in its queue until its moment.
    private let token: Lock<StopToken?>

    /// Sets an alarm that wakes the waits of `token` at `moment`.
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

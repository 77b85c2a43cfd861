// SPDX-License-Identifier: Apache-2.0

// The source of time: the system's clock, or one that a test moves by hand. Every timeout of a load or connection uses
// it; measurements and network pacing (`ConnectRace`) use the system's clock.

package struct LoopClock: Sendable {
    /// `nil` means the system's clock; the hot path pays for one comparison.
    package let manual: ManualTime?

    package static var system: LoopClock { LoopClock(nil) }

    package init(_ manual: ManualTime?) { self.manual = manual }

    /// Monotonic nanoseconds.
    package func now() -> Int64 { manual?.now ?? Poller.now() }

    /// Monotonic nanoseconds: cheaper than `now()`, but only accurate to a few milliseconds.
    package func coarseNow() -> Int64 { manual?.now ?? Poller.coarseNow() }

    /// Calls `target` at `moment`: on the poller's thread, or with manual time on the thread that moves the time.
    package func schedule(_ target: any TimerTarget, at moment: Int64) {
        if let manual {
            manual.schedule(.object(target), at: moment)
        } else {
            Poller.shared.schedule(target, at: moment)
        }
    }

    /// Wakes the task that waits on `slot` at `moment`.
    package func schedule(_ slot: PollSlot, at moment: Int64) {
        if let manual { manual.schedule(.slot(slot), at: moment) } else { Poller.shared.schedule(slot, at: moment) }
    }

    /// Returns how long to leave between two checks of the same condition: 0 under manual time, where each check must
    /// be on time.
    package func spacing(_ nanoseconds: Int64) -> Int64 { manual == nil ? nanoseconds : 0 }

    /// Sleeps until `moment`; throws earlier if the token is stopped.
    package func sleep(until moment: Int64, _ token: StopToken) async throws(IOFailure) {
        guard now() < moment else { return try token.check(.sleep) }
        let slot = Poller.shared.borrowSlot()
        token.attach(slot)
        defer {
            token.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        schedule(slot, at: moment)
        manual?.beganSleeping(slot, until: moment, token)
        defer { manual?.endedSleeping(slot) }
        while now() < moment {
            try token.check(.sleep)
            await Poller.shared.park(slot, until: token)
        }
        try token.check(.sleep)
    }
}

// Whose time it is: the system's, or one that a test moves by hand. Everything that ends a load or a
// connection by the passing of time takes it from here; what only measures, or follows the pace of the
// network (`ConnectRace`), takes the system's.

package struct LoopClock: Sendable {
    /// `nil` is the system's time: the hot path pays for one comparison.
    package let manual: ManualTime?

    package static var system: LoopClock { LoopClock(nil) }

    package init(_ manual: ManualTime?) { self.manual = manual }

    /// Monotonic nanoseconds.
    package func now() -> Int64 { manual?.now ?? Poller.now() }

    /// The same, cheap, but a few milliseconds coarse.
    package func coarseNow() -> Int64 { manual?.now ?? Poller.coarseNow() }

    /// Calls `target` at `moment`: on the poller's thread, or on that of whoever moves the time.
    package func schedule(_ target: any TimerTarget, at moment: Int64) {
        if let manual {
            manual.schedule(.object(target), at: moment)
        } else {
            Poller.shared.schedule(target, at: moment)
        }
    }

    /// Wakes whoever waits on `slot` at `moment`.
    package func schedule(_ slot: PollSlot, at moment: Int64) {
        if let manual { manual.schedule(.slot(slot), at: moment) } else { Poller.shared.schedule(slot, at: moment) }
    }

    /// How long to leave between two looks at the same things: time that is moved by hand has nobody
    /// to spare, and must not be late.
    package func rest(_ nanoseconds: Int64) -> Int64 { manual == nil ? nanoseconds : 0 }

    /// Sleeps until `moment`, or less if the token is stopped.
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

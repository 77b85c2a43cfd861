// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// Wakes the agent's main loop at the next due time, or when something has changed.
final class ServiceAlarm: Sendable {
    private struct State: Sendable {
        /// Monotonic nanoseconds.
        var next = Int64.max
        var handsOver = false
    }
    private let state = Lock(State())
    private let token = StopToken()
    private let slot = Poller.shared.borrowSlot()

    /// The longest wait in nanoseconds, because the wall clock may be set and the system may be suspended.
    private static let longest: Int64 = 15_000_000_000

    deinit { Poller.shared.returnSlot(slot) }

    func set(in nanoseconds: Int64) {
        let moment = Poller.now() + min(max(nanoseconds, 1_000_000), Self.longest)
        state.withLock { $0.next = moment }
        slot.wake()
    }

    /// Wakes the main loop earlier than it was set to.
    func advance(to nanoseconds: Int64) {
        let moment = Poller.now() + min(max(nanoseconds, 1_000_000), Self.longest)
        state.withLock { $0.next = min($0.next, moment) }
        slot.wake()
    }

    func handOver() {
        state.withLock { $0.handsOver = true }
        slot.wake()
    }

    var handsOver: Bool { state.withLock { $0.handsOver } }

    /// Returns when something may be due; may return early. For one task.
    func wait(atMost nanoseconds: Int64) async {
        let moment = min(state.withLock { $0.next }, Poller.now() + nanoseconds)
        Poller.shared.schedule(slot, at: moment)
        if Poller.now() < moment, !handsOver { await Poller.shared.park(slot, until: token) }
    }

    /// Returns whether the time has come, and then clears it.
    func isDue() -> Bool {
        state.withLock { state in
            guard Poller.now() >= state.next else { return false }
            state.next = .max
            return true
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension LoadHandle {
    /// Waits in a queue of a pool.
    /// - Parameters:
    ///   - slot: the slot of the load's waiter, which is returned.
    ///   - turn: returns the waiter's turn; `nil` while it waits.
    ///   - abandon: removes the waiter from its queue, because the load is stopped.
    func turn<Turn>(
        in slot: PollSlot, _ turn: () -> Turn?, abandon: () -> Void
    ) async throws(LoadError) -> Turn {
        attach(slot)
        defer {
            detach(slot)
            Poller.shared.returnSlot(slot)
        }
        while true {
            if let reason = stopReason {
                abandon()
                throw LoadError(reason, phase: .connecting)
            }
            if let turn = turn() { return turn }
            await Poller.shared.park(slot, until: self)
        }
    }
}

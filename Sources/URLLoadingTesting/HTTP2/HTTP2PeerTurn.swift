// SPDX-License-Identifier: Apache-2.0

// The order of the tasks that use one connection: a gate of a socket's slot has room for one waiting task
// (docs/concurrency.md, rule 6), and the bytes of two calls must not mix.

import Synchronization
import URLLoadingIO

/// A right that one task has at a time; other tasks wait for it.
final class HTTP2PeerTurn: Sendable {
    private struct State: Sendable {
        var isTaken = false
        var waiting: [PollSlot] = []

        /// Takes the turn and returns true; otherwise registers `slot`, which `leave` wakes.
        mutating func take(_ slot: PollSlot?) -> Bool {
            guard isTaken else {
                isTaken = true
                return true
            }
            if let slot, !waiting.contains(where: { $0 === slot }) { waiting.append(slot) }
            return false
        }
    }
    private let state = Lock(State())

    /// Waits for the turn. Returns false, without the turn, once the wait is needless or the token is stopped.
    /// - Parameter isNeedless: called whenever the task with the turn leaves it; that task leaves it after each change
    ///   that makes the wait of another one needless.
    func take(_ token: StopToken, unless isNeedless: () -> Bool = { false }) async -> Bool {
        if state.withLock({ $0.take(nil) }) { return true }
        let isTaken = await Poller.shared.wait(
            until: token,
            check: { slot -> Bool? in
                if state.withLock({ $0.take(slot) }) { return true }
                // The slot is registered before this check, so that a change after it wakes the slot.
                return isNeedless() ? false : nil
            },
            forget: { slot in state.withLock { $0.waiting.removeAll { $0 === slot } } })
        return isTaken == true
    }

    /// Gives the turn back, and wakes the tasks that wait for it.
    func leave() {
        let waiting = state.withLock { state -> [PollSlot] in
            defer { state.waiting = [] }
            state.isTaken = false
            return state.waiting
        }
        for slot in waiting { slot.wake() }
    }
}

// SPDX-License-Identifier: Apache-2.0

// The only function that waits for a condition that other code changes: register the slot, check, park, check again.

extension Poller {
    /// Repeats `check` until it returns a value. Returns `nil` as soon as the token is stopped.
    ///
    /// For waits that are not on the path of every load: the closures enlarge the async frame of the caller.
    /// - Parameters:
    ///   - check: called at first, and after every wake of the slot. If it returns `nil`, it has registered the slot
    ///     with what will wake it; under the same lock as the check, so that no wake is lost.
    ///   - forget: undoes the registration, before the slot is lent to another wait.
    package func wait<Value>(
        until token: StopToken, check: (PollSlot) -> Value?, forget: (PollSlot) -> Void = { _ in }
    ) async -> Value? {
        let slot = borrowSlot()
        // Attached to by every such wait, the token that is never stopped would be contended.
        if token !== StopToken.never { token.attach(slot) }
        defer {
            forget(slot)
            if token !== StopToken.never { token.detach(slot) }
            returnSlot(slot)
        }
        while token.stopReason == nil {
            if let value = check(slot) { return value }
            await park(slot, until: token)
        }
        return nil
    }

    /// Repeats `isMet`, which registers the slot if it returns false. Nothing ends the wait from outside.
    package func wait(until isMet: (PollSlot) -> Bool) async {
        _ = await wait(until: .never) { isMet($0) ? () : nil }
    }
}

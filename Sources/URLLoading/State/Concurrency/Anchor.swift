// SPDX-License-Identifier: Apache-2.0

// A weak reference for timers, so that they keep no session alive. The anchor is an object of its own because one weak
// reference makes every count of its target slower, and the pool and the registry are counted with every load.

import Synchronization
import URLLoadingIO

final class Anchor<Owner: AnyObject & Sendable>: Sendable {
    let owner: Owner

    init(_ owner: Owner) { self.owner = owner }

    /// A weak reference to an anchor, set once when the session is made.
    final class Weak: Sendable {
        private struct Reference: Sendable { weak var anchor: Anchor? }
        private let reference = Lock(Reference())
        func set(_ anchor: Anchor) { reference.withLock { $0.anchor = anchor } }
        var owner: Owner? { reference.withLock { $0.anchor }?.owner }
    }

    /// A timer for the owner, if it still exists.
    final class Timer: TimerTarget {
        private let anchor: Weak
        private let fired: @Sendable (Owner, Int64) -> Void

        init(_ anchor: Weak, _ fired: @escaping @Sendable (Owner, Int64) -> Void) {
            self.anchor = anchor
            self.fired = fired
        }

        func timerFired(now: Int64) {
            if let owner = anchor.owner { fired(owner, now) }
        }
    }
}

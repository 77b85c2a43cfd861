// What timers hold on to, weakly, so that they keep no session alive. It is an object of its own
// because one weak reference makes every count of its target slower, and pool and registry are counted
// with every load.

import Synchronization
import URLLoadingIO

final class Anchor: Sendable {
    let pool: ConnectionPool
    let registry: LoadRegistry

    init(_ pool: ConnectionPool, _ registry: LoadRegistry) {
        self.pool = pool
        self.registry = registry
    }

    /// A weak reference to an anchor, set once when the session is made.
    final class Weak: Sendable {
        private struct Reference: Sendable { weak var anchor: Anchor? }
        private let reference = Lock(Reference())
        func set(_ anchor: Anchor) { reference.withLock { $0.anchor = anchor } }
        var anchor: Anchor? { reference.withLock { $0.anchor } }
    }

    /// A timer for something of the session, if there still is one.
    final class Timer: TimerTarget {
        private let anchor: Weak
        private let fired: @Sendable (Anchor, Int64) -> Void

        init(_ anchor: Weak, _ fired: @escaping @Sendable (Anchor, Int64) -> Void) {
            self.anchor = anchor
            self.fired = fired
        }

        func timerFired(now: Int64) {
            if let anchor = anchor.anchor { fired(anchor, now) }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Lets a few secure connections of the process be made on the event loop at a time.
///
/// A handshake waits three times, and each wait in Swift's pool is a hand-over between two threads and their caches: on
/// the loop a handshake takes a quarter less CPU. Its computations (a key exchange, a chain of certificates) hold the
/// loop for some 0.3 ms at a time, during which other loads wait; so the rest of a crowd is made in the pool.
enum LoopHandshakes {
    /// As many as keep the loop busy while their peers compute.
    static let maximum = 4
    private static let running = Atomic<Int>(0)

    /// Takes a place; the caller gives it back with `end`.
    /// - Returns: false if all places are taken.
    static func begin() -> Bool {
        if running.add(1, ordering: .relaxed).newValue <= maximum { return true }
        end()
        return false
    }

    static func end() { running.subtract(1, ordering: .relaxed) }
}

// SPDX-License-Identifier: Apache-2.0

// Counts removals by key, with several keys sharing a counter. A load reads the count when it sends a request, and does
// not store the response if the count has changed since (RFC 9111 §4.4: an invalidated response must not come back).

import Synchronization
import URLLoadingIO

final class CacheRemovals: Sendable {
    // More counters than keys are loaded at a time. A removal of a key that shares the counter of a running load keeps
    // that load's response from being stored.
    private static let places: UInt64 = 1024
    private let counts = Lock([Int](repeating: 0, count: Int(places) + 1))

    func count(_ key: CacheKey) -> Int { counts.withLock { $0[Int(Self.places)] &+ $0[Self.place(key)] } }
    func note(_ key: CacheKey) { counts.withLock { $0[Self.place(key)] &+= 1 } }
    func noteAll() { counts.withLock { $0[Int(Self.places)] &+= 1 } }

    private static func place(_ key: CacheKey) -> Int { Int(UInt64(bitPattern: key.hash64) % places) }
}

// How often anything of a key was removed, of some keys together: whoever loads something takes the count when he asks for
// it, and keeps nothing if it is another when he has it (RFC 9111 §4.4: what is invalid now must not come back).

import Synchronization
import URLLoadingIO

final class CacheRemovals: Sendable {
    // More places than keys are loaded at a time: one that another key shares costs what it loads meanwhile its storing.
    private static let places: UInt64 = 1024
    private let counts = Lock([Int](repeating: 0, count: Int(places) + 1))

    func count(_ key: CacheKey) -> Int { counts.withLock { $0[Int(Self.places)] &+ $0[Self.place(key)] } }
    func note(_ key: CacheKey) { counts.withLock { $0[Self.place(key)] &+= 1 } }
    func noteAll() { counts.withLock { $0[Int(Self.places)] &+= 1 } }

    private static func place(_ key: CacheKey) -> Int { Int(UInt64(bitPattern: key.hash64) % places) }
}

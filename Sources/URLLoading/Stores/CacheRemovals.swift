// How often anything of a key was removed, of some keys together: whoever loads something takes the count when he asks for
// it, and keeps nothing if it is another when he has it (RFC 9111 §4.4: what is invalid now must not come back).

import Synchronization
import URLLoadingIO

final class CacheRemovals: Sendable {
    private let counts = Lock([Int](repeating: 0, count: 65))

    func count(_ key: CacheKey) -> Int { counts.withLock { $0[64] &+ $0[Int(key.hash64 & 63)] } }
    func note(_ key: CacheKey) { counts.withLock { $0[Int(key.hash64 & 63)] &+= 1 } }
    func noteAll() { counts.withLock { $0[64] &+= 1 } }
}

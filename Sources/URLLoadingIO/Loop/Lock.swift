// SPDX-License-Identifier: Apache-2.0

// The only lock type of the library. Held for a few lines, never across an `await` or a call into foreign code.
// `Synchronization.Mutex` is invisible to the thread sanitizer, which would report correctly locked code and hide real
// races, so sanitized builds use a pthread mutex.

#if URLLOADING_THREAD_SANITIZER
import Glibc

package struct Lock<State>: ~Copyable {
    private final class Storage {
        var mutex = pthread_mutex_t()
        var state: State
        init(_ state: State) {
            self.state = state
            pthread_mutex_init(&mutex, nil)
        }
        deinit { pthread_mutex_destroy(&mutex) }
    }
    private let storage: Storage

    package init(_ state: sending State) { storage = Storage(state) }

    package borrowing func withLock<R, E: Error>(_ body: (inout sending State) throws(E) -> sending R) throws(E)
        -> sending R
    {
        pthread_mutex_lock(&storage.mutex)
        defer { pthread_mutex_unlock(&storage.mutex) }
        return try body(&storage.state)
    }
}

// Unchecked: `withLock` is the only access to the storage.
extension Lock: @unchecked Sendable {}
#else
package import Synchronization

package typealias Lock<State> = Mutex<State>
#endif

// SPDX-License-Identifier: Apache-2.0

// Writes pending state when a program ends by `exit` or by returning from `main`. A killed program loses its last
// changes.

import Synchronization
import URLLoadingCSystem

package enum StateExit {
    private static let waiting = Lock<[ObjectIdentifier: @Sendable () -> Void]>([:])
    /// Registers the exit handler, once.
    private static let isRegistered: Void = csys_at_exit {
        for write in StateExit.waiting.withLock({ Array($0.values) }) { write() }
    }

    package static func add(_ owner: ObjectIdentifier, _ write: @escaping @Sendable () -> Void) {
        _ = isRegistered
        waiting.withLock { $0[owner] = write }
    }

    package static func remove(_ owner: ObjectIdentifier) { waiting.withLock { $0[owner] = nil } }
}

// What is still to be written when a program ends by `exit`, or by returning from `main`. One that is killed loses what it
// set in its last moments.

import Synchronization
import URLLoadingCSystem

package enum StateExit {
    private static let waiting = Lock<[ObjectIdentifier: @Sendable () -> Void]>([:])
    /// Asked for once.
    private static let isRegistered: Void = csys_at_exit {
        for write in StateExit.waiting.withLock({ Array($0.values) }) { write() }
    }

    package static func add(_ owner: ObjectIdentifier, _ write: @escaping @Sendable () -> Void) {
        _ = isRegistered
        waiting.withLock { $0[owner] = write }
    }

    package static func remove(_ owner: ObjectIdentifier) { waiting.withLock { $0[owner] = nil } }
}

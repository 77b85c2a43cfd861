// SPDX-License-Identifier: Apache-2.0

import URLLoadingCSystem

/// A counting semaphore of the system, for threads that may block.
package final class ThreadSignal: Sendable {
    nonisolated(unsafe) private let semaphore: OpaquePointer?

    package init() { semaphore = csys_semaphore_create() }
    deinit { csys_semaphore_destroy(semaphore) }

    package func raise() { csys_semaphore_raise(semaphore) }

    /// Returns false if the semaphore was not raised within the given time.
    package func wait(nanoseconds: Int64) -> Bool { csys_semaphore_wait(semaphore, nanoseconds) }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoadingCSystem

/// A lock between processes, released when this object is dropped or its process dies. The lock file stays: empty, and
/// accessible to its owner only.
package final class FileLock: Sendable {
    private let descriptor: Int32

    /// Waits until the lock is free; `nil` if the lock file cannot be created. Blocks.
    package init?(_ path: String) {
        descriptor = csys_lock_file_open(path)
        guard descriptor >= 0 else { return nil }
    }

    /// Waits at most `timeout` milliseconds for the lock.
    /// - Throws: `EWOULDBLOCK` if another holder still has the lock.
    package init(_ path: String, timeout: Int) throws(IOFailure) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else { throw IOFailure(.system(errno), .open) }
        var left = timeout
        while flock(opened, LOCK_EX | LOCK_NB) < 0 {
            let number = errno
            guard number == EWOULDBLOCK || number == EINTR, left > 0 else {
                _ = csys_close(opened)
                throw IOFailure(.system(number), .open)
            }
            usleep(5_000)
            left -= 5
        }
        descriptor = opened
    }

    deinit { if descriptor >= 0 { _ = csys_close(descriptor) } }
}

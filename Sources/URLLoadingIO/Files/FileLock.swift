// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoadingCSystem

/// A lock between processes, released when this object is dropped or its process dies. The lock file stays, accessible
/// to its owner only; it is empty, or has the number that a holder wrote.
package final class FileLock: Sendable {
    private let descriptor: Int32

    /// Waits at most `timeout` milliseconds for the lock: its holder may be stopped, or the file server away. Blocks.
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

    /// The number in the file; 0 in an empty one. Blocks.
    package var number: UInt64 {
        var number: UInt64 = 0
        let count = withUnsafeMutableBytes(of: &number) { csys_file_read(descriptor, $0.baseAddress, $0.count, 0) }
        return count == MemoryLayout<UInt64>.size ? number : 0
    }

    /// Writes a number to the file, for this holder's successors and for readers without the lock. Blocks.
    package func write(_ number: UInt64) throws(IOFailure) {
        let count = withUnsafeBytes(of: number) { csys_file_write(descriptor, $0.baseAddress, $0.count, 0) }
        guard count == MemoryLayout<UInt64>.size else {
            throw IOFailure(.system(count < 0 ? Int32(-count) : ENOSPC), .write)
        }
    }

    deinit { _ = csys_close(descriptor) }
}

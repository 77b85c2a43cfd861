import Glibc
import URLLoadingCSystem

/// A lock between processes: held until it is dropped, and by nobody when its process has died. The file it is made
/// on stays, empty, readable by its owner alone.
package final class FileLock: Sendable {
    private let descriptor: Int32

    /// Waits for whoever holds it; `nil` if the file cannot be made. Blocks.
    package init?(_ path: String) {
        descriptor = csys_lock_file_open(path)
        guard descriptor >= 0 else { return nil }
    }

    /// The same for so many milliseconds at most.
    /// - Throws: `EWOULDBLOCK` if somebody else still holds it.
    package init(_ path: String, patience: Int) throws(IOFailure) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else { throw IOFailure(.system(errno), .open) }
        var left = patience
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

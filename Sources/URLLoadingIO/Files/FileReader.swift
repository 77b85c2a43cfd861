// An open file, read at offsets. What the kernel has in memory is read at once; what it would have to
// fetch is read on a blocking thread, which nobody waits for when the load ends.

import Glibc
import URLLoadingCSystem

package final class FileReader: Sendable {
    package enum Kind: Sendable { case file, directory, other }

    package let kind: Kind
    package let size: Int64
    private let descriptor: Int32

    /// Opens without waiting for whoever may be at the other end of a pipe. May block on slow file systems.
    package init(path: String) throws(IOFailure) {
        var info = csys_file_info()
        let descriptor = csys_file_open(path, &info)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .open) }
        self.descriptor = descriptor
        size = info.size
        kind = info.is_directory ? .directory : info.is_regular ? .file : .other
    }

    deinit { _ = csys_close(descriptor) }

    /// The size at this moment.
    package var currentSize: Int64 { csys_file_size(descriptor) }

    /// When its content was changed last, in nanoseconds since 1970; 0 if the system does not say.
    package var modified: Int64 {
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { return 0 }
        return Int64(info.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(info.st_mtim.tv_nsec)
    }

    /// Reads what is in memory; `nil` if it is not there, 0 at the end.
    package func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(IOFailure) -> Int? {
        try count(csys_file_read_now(descriptor, buffer.baseAddress, buffer.count, offset))
    }

    /// Reads; 0 at the end. Blocks.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(IOFailure) -> Int {
        try count(csys_file_read(descriptor, buffer.baseAddress, buffer.count, offset)) ?? 0
    }

    /// Whether so many bytes are in memory, as far as their ends tell.
    package func isNear(_ offset: Int64, count: Int) -> Bool { csys_file_is_near(descriptor, offset, count) }

    /// Sends into a socket; 0 at the end, -errno on failure.
    func send(to socket: Int32, at offset: Int64, count: Int) -> Int {
        csys_send_file(socket, descriptor, offset, count)
    }

    private func count(_ result: Int) throws(IOFailure) -> Int? {
        if result >= 0 { return result }
        if result == -Int(EAGAIN) { return nil }
        throw IOFailure(.system(Int32(truncatingIfNeeded: -result)), .read)
    }
}

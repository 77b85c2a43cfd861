// SPDX-License-Identifier: Apache-2.0

// An open file, read at offsets. Cached pages are read at once; uncached pages are read on a blocking thread, for which
// no task waits once the load has ended.

import Glibc
import URLLoadingCSystem

package final class FileReader: Sendable {
    package enum Kind: Sendable { case file, directory, other }

    package let path: String
    package let kind: Kind
    package let size: Int64
    private let descriptor: Int32

    /// Opens the file without waiting for the writer of a pipe. May block on slow file systems.
    package init(path: String) throws(IOFailure) {
        var info = csys_file_info()
        let descriptor = csys_file_open(path, &info)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .open) }
        self.descriptor = descriptor
        self.path = path
        size = info.size
        kind = info.is_directory ? .directory : info.is_regular ? .file : .other
    }

    deinit { _ = csys_close(descriptor) }

    /// Whether the file has been removed from its folder.
    package var isRemoved: Bool {
        var info = stat()
        return fstat(descriptor, &info) != 0 || info.st_nlink == 0
    }

    /// Whether a path names this file. Blocks.
    package func isAt(_ path: String) -> Bool { csys_file_is_same(path, descriptor) }

    /// Reads leave the file's time of access as it is, where the system permits that: to write it, a read that must not
    /// wait for a disk could wait for the journal of the file system.
    package func leaveAccessTime() { csys_file_leave_access_time(descriptor) }

    /// Time of the last content change in nanoseconds since 1970; 0 if the system does not provide it.
    package var modified: Int64 {
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { return 0 }
        return Int64(info.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(info.st_mtim.tv_nsec)
    }

    /// Reads from cached pages only; `nil` if the bytes are not cached, 0 at the end of the file.
    package func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(IOFailure) -> Int? {
        try count(csys_file_read_now(descriptor, buffer.baseAddress, buffer.count, offset))
    }

    /// Reads at an offset; returns 0 at the end of the file. Blocks.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(IOFailure) -> Int {
        try count(csys_file_read(descriptor, buffer.baseAddress, buffer.count, offset)) ?? 0
    }

    /// Returns the bytes of a range, or fewer if the file ends before it does. Blocks.
    package func bytes(_ range: Range<Int64>) throws(IOFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(range.count))
        var done = 0
        while done < bytes.count {
            let result = bytes.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in
                    try self.read(
                        into: UnsafeMutableRawBufferPointer(rebasing: room[done...]), at: range.lowerBound + Int64(done)
                    )
                }
            }
            let count = try result.get()
            guard count > 0 else { break }
            done += count
        }
        return Array(bytes.prefix(done))
    }

    /// Returns the content of a regular file of at most `limit` bytes; `nil` for a larger one, and for any other kind
    /// of file. Blocks.
    /// - Throws: the failure of the system. Some pass, such as too many open files, and say nothing of the file.
    package static func content(of path: String, limit: Int64) throws(IOFailure) -> [UInt8]? {
        let reader = try FileReader(path: path)
        guard reader.kind == .file, reader.size <= limit else { return nil }
        // Files that a file system makes while they are read may have a size of 0.
        return try reader.bytes(0..<(reader.size > 0 ? reader.size : limit))
    }

    /// Returns whether the `count` bytes at `offset` are in the page cache, judged by the first and the last of them.
    package func isInPageCache(_ offset: Int64, count: Int) -> Bool { csys_file_is_near(descriptor, offset, count) }

    /// Sends bytes of the file into a socket. Returns 0 at the end of the file, -errno on failure.
    func send(to socket: Int32, at offset: Int64, count: Int) -> Int {
        csys_send_file(socket, descriptor, offset, count)
    }

    private func count(_ result: Int) throws(IOFailure) -> Int? {
        if result >= 0 { return result }
        if result == -Int(EAGAIN) { return nil }
        throw IOFailure(.system(Int32(truncatingIfNeeded: -result)), .read)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file that is read piece by piece; `-` is standard input. Used by one task, or one thread, at a time.
final class InputFile: Sendable {
    private let descriptor: Int32
    private let name: String
    private static let pieceSize = 256 * 1024

    init(_ path: String) throws(OutputError) {
        name = path == "-" ? "standard input" : path
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(errno, name, .read) }
    }

    deinit { if descriptor > STDIN_FILENO { close(descriptor) } }

    /// Returns the next piece; `nil` at the end.
    func next() throws(OutputError) -> [UInt8]? {
        while true {
            var failure: Int32 = 0
            let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { buffer, count in
                let got = read(descriptor, buffer.baseAddress, buffer.count)
                if got < 0 { failure = errno }
                count = max(0, got)
            }
            if failure == 0 { return piece.isEmpty ? nil : piece }
            if failure == EAGAIN {
                // Another process that shares the open file description has made it non-blocking.
                var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                poll(&wait, 1, -1)
                continue
            }
            guard failure == EINTR else { throw .system(failure, name, .read) }
        }
    }

    /// True for standard input, a pipe or a device: the bytes may come once, and late.
    static func isSpecial(_ path: String) -> Bool {
        var status = stat()
        return path == "-" || stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }

    /// True for a pipe or a socket, also as standard input.
    static func isPipe(_ path: String) -> Bool {
        var status = stat()
        return stat(path == "-" ? "/dev/stdin" : path, &status) == 0
            && [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
    }

    /// Returns all bytes of a file; `-` is standard input.
    static func all(_ path: String) throws(OutputError) -> [UInt8] {
        let file = try InputFile(path)
        var bytes: [UInt8] = []
        while let piece = try file.next() { bytes += piece }
        return bytes
    }
}

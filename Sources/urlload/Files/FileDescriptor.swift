// SPDX-License-Identifier: Apache-2.0

// Complete writes to a descriptor. They may block: the command has nothing else to do, and interrupts do not depend on
// this thread (`Signals`).

import Glibc

struct FileDescriptor: Sendable {
    let number: Int32
    /// The name for messages.
    let name: String

    static let standardOutput = FileDescriptor(number: STDOUT_FILENO, name: "standard output")
    static let standardError = FileDescriptor(number: STDERR_FILENO, name: "standard error")

    /// Returns standard output or standard error for a path that names it. Opened by that path, a file to which it is
    /// redirected would be cut or replaced, and written at an offset of its own; a socket could not be opened.
    static func standard(_ path: String) -> FileDescriptor? {
        switch path {
        case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1": .standardOutput
        case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2": .standardError
        default: nil
        }
    }

    var isTerminal: Bool { isatty(number) == 1 }

    /// Columns and rows of the terminal; `nil` if it is not a terminal or does not say.
    var terminalSize: (columns: Int, rows: Int)? {
        var size = winsize()
        guard ioctl(number, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return nil }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(OutputError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(number, rest.baseAddress, rest.count)
            if count >= 0 {
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            } else if errno == EAGAIN {
                // Another process that shares the open file description has made it non-blocking.
                var wait = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
                poll(&wait, 1, -1)
            } else if errno != EINTR {
                throw .system(errno, name)
            }
        }
    }

    func write(_ text: String) throws(OutputError) { try write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) throws(OutputError) {
        var failure: OutputError?
        bytes.withUnsafeBytes { buffer in
            do throws(OutputError) { try write(buffer) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}

// SPDX-License-Identifier: Apache-2.0

// The file of `-D`: the heads of all responses and the trailers of the last one, in the order in which they come.

import Glibc
import Synchronization
import URLLoading
import URLLoadingIO

final class HeadFile: Sendable {
    private let descriptor: FileDescriptor
    /// The first failure, after which nothing more is written.
    private let failure = Lock<OutputError?>(nil)

    /// - Parameter path: `-` is standard output.
    init(_ path: String) throws(OutputError) {
        if let standard = path == "-" ? FileDescriptor.standardOutput : FileDescriptor.standard(path) {
            descriptor = standard
            return
        }
        let number = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .system(errno, path) }
        descriptor = FileDescriptor(number: number, name: path)
    }

    deinit { if descriptor.number > STDERR_FILENO { close(descriptor.number) } }

    /// Writes a head as soon as it has come.
    func write(_ head: HTTPHead) { write(HeadText.make(head)) }

    /// Writes the trailers of a response whose body is complete, as curl does: without a blank line behind them.
    /// - Throws: the error of this call or of an earlier one.
    func end(_ trailers: Headers) throws(OutputError) {
        write(HeadText.lines(trailers))
        try check()
    }

    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        failure.withLock { failure in
            guard failure == nil else { return }
            do throws(OutputError) { try descriptor.write(text) } catch { failure = error }
        }
    }

    /// - Throws: the error of an earlier ``write(_:)``.
    func check() throws(OutputError) {
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}

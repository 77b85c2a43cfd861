// The file of `-D`: the heads of all responses in order.

import Glibc
import Synchronization
import URLLoading
import URLLoadingIO

final class HeadFile: Sendable {
    private let descriptor: FileDescriptor
    private let turn = Lock(())

    /// - Parameter path: `-` is standard output.
    init(_ path: String) throws(OutputError) {
        guard path != "-" else {
            descriptor = .standardOutput
            return
        }
        let number = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .system(errno, path) }
        descriptor = FileDescriptor(number: number, name: path)
    }

    deinit { if descriptor.number > STDERR_FILENO { close(descriptor.number) } }

    func write(_ heads: [HTTPHead]) throws(OutputError) {
        let text = heads.map(HeadText.make).joined()
        let result = turn.withLock { _ in Result { () throws(OutputError) in try descriptor.write(text) } }
        try result.get()
    }
}

// What `-d` sends. A file is read as the server takes it, and read again if the body must be sent
// again; what can be read only once is read to its end before.

import FoundationEssentials
import Glibc
import URLLoading

enum UploadBody {
    static func make(_ payloads: [Options.Payload]) throws(OutputError) -> RequestBody? {
        guard let first = payloads.first else { return nil }
        if payloads.count == 1, case .file(let path) = first, path != "-", let length = try regularFileLength(path) {
            return .stream(length: length) { UploadFile(path: path, length: length) }
        }
        var bytes: [UInt8] = []
        for (index, payload) in payloads.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: "&")) }
            switch payload {
            case .text(let text): bytes += text.utf8
            case .file(let path): bytes += try all(path)
            }
        }
        return .data(Data(bytes))
    }

    /// `nil` for what has no length: a pipe, a device.
    private static func regularFileLength(_ path: String) throws(OutputError) -> Int64? {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .system(errno, path, .read) }
        return status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : nil
    }

    private static func all(_ path: String) throws(OutputError) -> [UInt8] {
        let file = try InputFile(path)
        var bytes: [UInt8] = []
        while let piece = try file.next() { bytes += piece }
        return bytes
    }
}

/// A file as a sequence of pieces, from its beginning each time.
struct UploadFile: AsyncSequence, Sendable {
    let path: String
    let length: Int64

    struct AsyncIterator: AsyncIteratorProtocol {
        let path: String
        var left: Int64
        var file: InputFile?

        /// Stops at the length that was announced: a file that grew meanwhile is sent as it was.
        mutating func next() async throws -> [UInt8]? {
            guard left > 0 else { return nil }
            let file = try file ?? InputFile(path)
            self.file = file
            guard var piece = try file.next() else {
                throw OutputError(.read, "\(path): became shorter while it was sent")
            }
            if Int64(piece.count) > left { piece.removeLast(piece.count - Int(left)) }
            left -= Int64(piece.count)
            return piece
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(path: path, left: length) }
}

/// Used by one task.
final class InputFile {
    private let descriptor: Int32
    private let name: String
    private static let pieceSize = 256 * 1024

    init(_ path: String) throws(OutputError) {
        name = path == "-" ? "standard input" : path
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(errno, name, .read) }
    }

    deinit { if descriptor > STDIN_FILENO { close(descriptor) } }

    /// The next piece; `nil` at the end.
    func next() throws(OutputError) -> [UInt8]? {
        while true {
            var failure: Int32 = 0
            let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { buffer, count in
                let got = read(descriptor, buffer.baseAddress, buffer.count)
                if got < 0 { failure = errno }
                count = max(0, got)
            }
            if failure == 0 { return piece.isEmpty ? nil : piece }
            guard failure == EINTR else { throw .system(failure, name, .read) }
        }
    }
}

// What `-d` and `-T` send. A file is read as the server takes it, and read again if the body must be sent
// again; what can be read only once is read to its end before.

import FoundationEssentials
import Glibc
import URLLoading

enum UploadBody {
    static func make(_ payloads: [Options.Payload]) throws(OutputError) -> RequestBody? {
        guard let first = payloads.first else { return nil }
        if payloads.count == 1, case .file(let path) = first, path != "-", try isRegularFile(path) {
            return .file(URL(filePath: path))
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

    /// A pipe or a device can be read only once, and has no length.
    private static func isRegularFile(_ path: String) throws(OutputError) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .system(errno, path, .read) }
        return status.st_mode & S_IFMT == S_IFREG
    }

    private static func all(_ path: String) throws(OutputError) -> [UInt8] {
        let file = try InputFile(path)
        var bytes: [UInt8] = []
        while let piece = try file.next() { bytes += piece }
        return bytes
    }
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

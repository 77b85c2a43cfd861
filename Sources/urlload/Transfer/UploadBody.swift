// SPDX-License-Identifier: Apache-2.0

// The bodies of `-d` and `-T`. A file is read while it is sent, and read again if the request is repeated. For `-T`, a
// pipe or a device is sent while it is read (`PipedInput`); for `-d` it is read completely first.

import FoundationEssentials
import Glibc
import URLLoading

enum UploadBody {
    /// - Returns: `nil` without parts.
    static func make(_ payloads: [Options.Payload]) throws(OutputError) -> RequestBody? {
        guard let first = payloads.first else { return nil }
        if payloads.count == 1, case .file(let path) = first.content, path != "-", try isRegularFile(path) {
            return .file(URL(filePath: path))
        }
        return .data(Data(try bytes(payloads)))
    }

    /// Concatenates the parts, with `&` between fields.
    static func bytes(_ payloads: [Options.Payload]) throws(OutputError) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, payload) in payloads.enumerated() {
            if index > 0, payload.isField { bytes.append(UInt8(ascii: "&")) }
            switch payload.content {
            case .text(let text): bytes += text.utf8
            case .bytes(let own): bytes += own
            case .file(let path): bytes += try InputFile.all(path)
            case .lines(let path): bytes += try InputFile.all(path).filter { $0 != 0x0D && $0 != 0x0A && $0 != 0 }
            case .encoded(let path, let prefix):
                bytes += prefix.utf8
                bytes += Options.Payload.encoded(try InputFile.all(path)).utf8
            }
        }
        return bytes
    }

    /// The body of `-T`, and whether it comes from a pipe and can be sent only once.
    static func upload(_ path: String) throws(OutputError) -> (body: RequestBody, isPiped: Bool) {
        guard path == "-" else {
            return try isRegularFile(path) ? (.file(URL(filePath: path)), false) : (try PipedInput.body(path), true)
        }
        var status = stat()
        let offset = lseek(STDIN_FILENO, 0, SEEK_CUR)
        guard fstat(STDIN_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, offset >= 0,
            offset <= status.st_size
        else { return (try PipedInput.body(path), true) }
        // Standard input redirected from a file is read like that file.
        var body = RequestBody.file(URL(filePath: "/dev/stdin"), range: Int64(offset)..<Int64(status.st_size))
        body.contentType = "application/octet-stream"
        return (body, false)
    }

    /// False for a pipe or a device, which can be read only once and has no length.
    private static func isRegularFile(_ path: String) throws(OutputError) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .system(errno, path, .read) }
        return status.st_mode & S_IFMT == S_IFREG
    }
}

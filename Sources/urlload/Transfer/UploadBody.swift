// SPDX-License-Identifier: Apache-2.0

// The bodies of `-d` and `-T`. A file is read while it is sent, and read again if the request is repeated. For `-T`, a
// pipe or a device is sent while it is read (`PipedInput`); for `-d` it is read completely
// before the first load (`PipedData`).

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
            bytes += try Self.bytes(payload)
        }
        return bytes
    }

    fileprivate static func bytes(_ payload: Options.Payload) throws(OutputError) -> [UInt8] {
        switch payload.content {
        case .text(let text): return Array(text.utf8)
        case .bytes(let bytes): return bytes
        case .file(let path): return try InputFile.all(path)
        case .lines(let path): return try InputFile.all(path).filter { $0 != 0x0D && $0 != 0x0A && $0 != 0 }
        case .encoded(let path, let prefix):
            return Array((prefix + Options.Payload.encoded(try InputFile.all(path))).utf8)
        }
    }

    /// The body of `-T`, and whether it comes from a pipe and can be sent only once.
    static func upload(_ path: String) throws(OutputError) -> (body: RequestBody, isPiped: Bool) {
        guard path == "-" else {
            return try isRegularFile(path) ? (.file(URL(filePath: path)), false) : (PipedInput.body(path), true)
        }
        var status = stat()
        let offset = lseek(STDIN_FILENO, 0, SEEK_CUR)
        guard fstat(STDIN_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, offset >= 0,
            offset <= status.st_size
        else { return (PipedInput.body(path), true) }
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

/// The data of `-d`, `-F` and the like that comes from a pipe. It is read completely before the first load of a group:
/// each of its loads sends the same bytes, and none waits for them while others are under way.
enum PipedData {
    static func read(_ options: inout Options) throws(OutputError) {
        for index in options.request.payloads.indices { try read(&options.request.payloads[index]) }
        for index in options.data.query.indices { try read(&options.data.query[index]) }
        for index in options.request.formFields.indices {
            switch options.request.formFields[index].content {
            case .file(let path), .textOf(let path):
                guard InputFile.isSpecial(path) else { continue }
                options.request.formFields[index].bytes = try InputFile.all(path)
            case .text: continue
            }
        }
    }

    private static func read(_ payload: inout Options.Payload) throws(OutputError) {
        guard let path = payload.path, InputFile.isSpecial(path) else { return }
        payload.content = .bytes(try UploadBody.bytes(payload))
    }
}

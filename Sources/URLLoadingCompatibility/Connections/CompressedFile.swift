// SPDX-License-Identifier: Apache-2.0

// Files compressed with gzip. That is not a content coding (RFC 9110 §8.4), so they are decompressed only on request.

import Foundation
import URLLoadingWire

enum CompressedFile {
    static func isKnown(_ type: String) -> Bool {
        ["application/gzip", "application/x-gzip"].contains(type.lowercased())
    }

    /// Returns the name of the decompressed file.
    static func inner(_ name: String) -> String {
        let lower = name.lowercased()
        if lower.hasSuffix(".tgz"), name.count > 4 { return name.dropLast(4) + ".tar" }
        return lower.hasSuffix(".gz") && name.count > 3 ? String(name.dropLast(3)) : name
    }

    /// Replaces a file by its decompressed content, readable by its owner only. Both files exist on the disk meanwhile.
    /// A file that does not begin with the gzip signature is left unchanged: it was already decompressed in transit.
    /// - Throws: `URLError.cannotDecodeRawData` for invalid or truncated gzip data (RFC 1952); errors of the file
    ///   system.
    static func decompress(_ file: URL) throws {
        let target = file.appendingPathExtension("inner")
        let input = try FileHandle(forReadingFrom: file)
        guard let first = try input.read(upToCount: 2), first.elementsEqual([0x1F, 0x8B]) else {
            return try input.close()
        }
        try input.seek(toOffset: 0)
        guard FileManager.default.createFile(atPath: target.path, contents: nil, attributes: [.posixPermissions: 0o600])
        else { throw URLError.described(.cannotCreateFile) }
        defer { try? FileManager.default.removeItem(at: target) }
        let output = try FileHandle(forWritingTo: target)
        defer {
            try? input.close()
            try? output.close()
        }
        do {
            try decompress(input, into: output)
        } catch let violation as WireViolation {
            throw URLError.described(.cannotDecodeRawData, [NSUnderlyingErrorKey: violation])
        }
        try FileManager.default.removeItem(at: file)
        try FileManager.default.moveItem(at: target, to: file)
    }

    private static func decompress(_ input: FileHandle, into output: FileHandle) throws {
        guard var decoder = try ContentDecoder(contentEncoding: "gzip") else { return }
        var room = [UInt8](repeating: 0, count: 128 << 10)
        while let piece = try input.read(upToCount: 64 << 10), !piece.isEmpty {
            var rest = piece[...]
            while true {
                let step = try room.withUnsafeMutableBytes { room in
                    try rest.withUnsafeBytes { try decoder.decode($0, into: room) }
                }
                if step.produced > 0 { try output.write(contentsOf: room[..<step.produced]) }
                rest = rest.dropFirst(step.consumed)
                if step == (0, 0) || (rest.isEmpty && step.produced < room.count) { break }
            }
        }
        try decoder.finish()
    }
}

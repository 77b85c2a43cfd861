// SPDX-License-Identifier: Apache-2.0

// The stored form of a response's head. One checksum protects everything that determines the response; the other
// columns of the row serve lookup and sorting, and are not trusted.

import URLLoadingIO
import URLLoadingWire

struct DiskHead: Sendable {
    var response: StoredResponse
    /// The name of the body's file; `nil` if the body is in a row.
    var file: String?
    /// The checksums of the body's blocks.
    var sums: [UInt32]

    /// Format 1 does not contain the source of the response.
    private static let formats: ClosedRange<UInt8> = 1...2

    // MARK: Writing

    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.put(Self.formats.upperBound)
        put(&writer)
        let sum = writer.bytes.withUnsafeBytes { BlockSums.sum($0) }
        writer.put(sum)
        return writer.bytes
    }

    private func put(_ writer: inout ByteWriter) {
        response.put(into: &writer)
        writer.put(file ?? "")
        writer.put(UInt32(sums.count))
        for sum in sums { writer.put(sum) }
        response.source.put(into: &writer)
    }

    // MARK: Reading

    /// Fails for bytes that were not written by `bytes`, or are damaged.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 4 else { return nil }
        let content = UnsafeRawBufferPointer(rebasing: bytes.dropLast(4))
        var end = ByteReader(UnsafeRawBufferPointer(rebasing: bytes.suffix(4)))
        guard end.number(UInt32.self) == BlockSums.sum(content) else { return nil }
        var reader = ByteReader(content)
        guard let format = reader.number(UInt8.self), Self.formats.contains(format),
            var response = StoredResponse(&reader), let file = reader.text(), let count = reader.number(UInt32.self)
        else { return nil }
        var sums: [UInt32] = []
        for _ in 0..<count {
            guard let sum = reader.number(UInt32.self) else { return nil }
            sums.append(sum)
        }
        if format > 1 {
            guard let source = AnswerSource(&reader) else { return nil }
            response.source = source
        }
        // The checksums must cover the complete body.
        guard reader.isAtEnd, BlockSums.count(response.storedLength) == Int64(sums.count), Self.isName(file) else {
            return nil
        }
        self.response = response
        self.file = file.isEmpty ? nil : file
        self.sums = sums
    }

    init(_ response: StoredResponse, file: String?, sums: [UInt32]) {
        self.response = response
        self.file = file
        self.sums = sums
    }

    /// Whether a name is safe: it cannot refer to a file outside of the bodies' folder.
    private static func isName(_ file: String) -> Bool {
        file.utf8.allSatisfy {
            ("a"..."z").contains(Character(UnicodeScalar($0))) || ("0"..."9").contains(Character(UnicodeScalar($0)))
        }
    }
}

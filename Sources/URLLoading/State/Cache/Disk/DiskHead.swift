// SPDX-License-Identifier: Apache-2.0

// The stored form of a response's head. One checksum protects everything that determines the response; the other
// columns of the row serve lookup and sorting, and are not trusted.

import URLLoadingIO

struct DiskHead: Sendable {
    var response: StoredResponse
    /// The name of the file that has the body; `nil` if the body is empty.
    var file: String?
    /// Where the body begins in a pack; 0 in a file of its own.
    var offset: Int64
    /// The checksums of the body's blocks.
    var sums: [UInt32]

    private static let format: UInt8 = 3

    // MARK: Writing

    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.put(Self.format)
        put(&writer)
        let sum = writer.bytes.withUnsafeBytes { BlockSums.sum($0) }
        writer.put(sum)
        return writer.bytes
    }

    private func put(_ writer: inout ByteWriter) {
        response.put(into: &writer)
        writer.put(file ?? "")
        writer.put(offset)
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
        guard reader.number(UInt8.self) == Self.format, var response = StoredResponse(&reader),
            let file = reader.text(), let offset = reader.number(Int64.self), let count = reader.number(UInt32.self)
        else { return nil }
        var sums: [UInt32] = []
        for _ in 0..<count {
            guard let sum = reader.number(UInt32.self) else { return nil }
            sums.append(sum)
        }
        guard let source = AnswerSource(&reader) else { return nil }
        response.source = source
        // The checksums must cover the complete body.
        guard reader.isAtEnd, BlockSums.count(response.storedLength) == Int64(sums.count),
            file.isEmpty || DiskPaths.isName(file), (0...1 << 40).contains(offset), file.isEmpty == sums.isEmpty,
            !DiskPack.isPack(file) || sums.count == 1
        else { return nil }
        self.init(response, file: file.isEmpty ? nil : file, offset: offset, sums: sums)
    }

    /// - Parameters:
    ///   - file: the file of a large body; `nil` for an empty one.
    ///   - sums: the checksums of that file's blocks.
    init(_ response: StoredResponse, file: String?, offset: Int64 = 0, sums: [UInt32]) {
        (self.response, self.file, self.offset, self.sums) = (response, file, offset, sums)
    }

    init(_ response: StoredResponse, at place: PackPlace) {
        self.init(response, file: place.pack, offset: place.offset, sums: [place.sum])
    }

    /// The place of a body in a pack, or of an empty one; `nil` for a body with a file of its own.
    var place: PackPlace? {
        guard let file else { return PackPlace(pack: "", offset: 0, count: 0, sum: 0) }
        guard DiskPack.isPack(file), let sum = sums.first else { return nil }
        return PackPlace(pack: file, offset: offset, count: Int(response.storedLength), sum: sum)
    }
}

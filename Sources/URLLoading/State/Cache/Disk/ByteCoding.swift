// SPDX-License-Identifier: Apache-2.0

// Encodes numbers and texts as bytes and decodes them, for files that may be read by another version of the library, or
// after damage. The reader returns `nil` for invalid data.

struct ByteWriter: Sendable {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }
    mutating func put(_ number: Double) { put(number.bitPattern) }
    mutating func put(_ flag: Bool) { put(UInt8(flag ? 1 : 0)) }
    mutating func put(_ raw: UnsafeRawBufferPointer) {
        put(UInt32(truncatingIfNeeded: raw.count))
        bytes.append(contentsOf: raw)
    }
    mutating func put(_ text: String) {
        var text = text
        text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
    }
}

struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { offset == bytes.count }

    mutating func number<N: FixedWidthInteger>(_ type: N.Type = N.self) -> N? {
        guard bytes.count - offset >= MemoryLayout<N>.size else { return nil }
        defer { offset += MemoryLayout<N>.size }
        return N(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: N.self))
    }
    mutating func double() -> Double? { number(UInt64.self).map { Double(bitPattern: $0) } }
    mutating func flag() -> Bool? { number(UInt8.self).map { $0 != 0 } }
    /// Returns a length-prefixed part, valid as long as the underlying buffer.
    mutating func raw() -> UnsafeRawBufferPointer? {
        guard let count = number(UInt32.self), bytes.count - offset >= Int(count) else { return nil }
        defer { offset += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Int(count)])
    }
    mutating func text() -> String? { raw().map { String(decoding: $0, as: UTF8.self) } }
}

extension StoredResponse {
    /// Distinguishes the variants of a key, independently of the order of their fields.
    var variantHash: Int64 {
        var hash = StableHash()
        for name in varying.keys.sorted() {
            hash.add(name)
            // An absent field is not an empty one.
            hash.add((varying[name] ?? nil).map { "=" + $0 } ?? "")
        }
        return hash.result
    }
}

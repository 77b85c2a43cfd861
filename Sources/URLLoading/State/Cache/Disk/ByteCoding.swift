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

/// A hash that is equal in every process, for lookups on disk. Collisions are possible, so every lookup also compares
/// the key.
struct StableHash: Sendable {
    private var value: UInt64 = 0x9E37_79B9_7F4A_7C15

    static func of(_ text: String) -> Int64 {
        var hash = StableHash()
        hash.add(text)
        return hash.result
    }

    mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            var offset = 0
            while bytes.count - offset >= 8 {
                mix(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
                offset += 8
            }
            var rest: UInt64 = 0
            while offset < bytes.count {
                rest = rest << 8 | UInt64(bytes[offset])
                offset += 1
            }
            mix(rest)
            mix(UInt64(bytes.count))
        }
    }

    private mutating func mix(_ word: UInt64) {
        let product = (value ^ word).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        value = product.high ^ product.low &+ 0x9E37_79B9_7F4A_7C15
    }

    var result: Int64 { Int64(bitPattern: value ^ value >> 32) }
}

extension CacheKey {
    var hash64: Int64 { StableHash.of(text) }
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

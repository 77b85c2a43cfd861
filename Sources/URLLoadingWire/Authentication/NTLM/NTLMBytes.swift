// SPDX-License-Identifier: Apache-2.0

// The layout of NTLM messages (MS-NLMP §2.2): little endian, a fixed part followed by a variable part, to which
// "fields" of length and offset point.

/// Reads numbers and slices; returns `nil` beyond the end of the message, because lengths and offsets come from the
/// peer.
struct NTLMReader {
    let bytes: [UInt8]

    func number16(at offset: Int) -> Int? {
        guard let bytes = slice(offset, 2) else { return nil }
        return Int(bytes[0]) | Int(bytes[1]) << 8
    }

    func number32(at offset: Int) -> UInt32? {
        guard let bytes = slice(offset, 4) else { return nil }
        return bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    func slice(_ offset: Int, _ count: Int) -> [UInt8]? {
        guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else { return nil }
        return Array(bytes[offset..<offset + count])
    }

    /// Returns the bytes that the fields at an offset refer to. A length of 0 yields an empty array, whatever its
    /// offset.
    func payload(_ offset: Int) -> [UInt8]? {
        guard let count = number16(at: offset), let place = number32(at: offset + 4) else { return nil }
        return count == 0 ? [] : slice(Int(place), count)
    }
}

/// Writes a message with its signature and type: the fixed part first, then the bytes that its fields refer to.
struct NTLMWriter {
    private var fixed: [UInt8]
    private var payload: [UInt8] = []
    private let fixedCount: Int

    /// `NTLMSSP\0`.
    static let signature: [UInt8] = Array("NTLMSSP".utf8) + [0]

    init(type: UInt32, fixedCount: Int) {
        fixed = Self.signature
        self.fixedCount = fixedCount
        number(type)
    }

    mutating func number(_ value: UInt32) { fixed += value.littleEndianBytes }
    mutating func append(_ bytes: [UInt8]) { fixed += bytes }

    /// Appends fields; returns false if the bytes are too long for them.
    mutating func fields(_ bytes: [UInt8]) -> Bool {
        guard let count = UInt16(exactly: bytes.count) else { return false }
        fixed += count.littleEndianBytes + count.littleEndianBytes
        number(UInt32(fixedCount + payload.count))
        payload += bytes
        return true
    }

    var bytes: [UInt8] { fixed + payload }
}

extension FixedWidthInteger {
    var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }
}

extension String {
    /// UTF-16, little endian; NTLM calls it Unicode.
    var ntlmBytes: [UInt8] { utf16.flatMap { $0.littleEndianBytes } }

    /// The text in upper case, character by character, as servers compare it: "ß" stays unchanged.
    var ntlmUppercased: String {
        var text = ""
        for scalar in unicodeScalars {
            let upper = scalar.properties.uppercaseMapping.unicodeScalars
            text.unicodeScalars.append(upper.count == 1 ? upper[upper.startIndex] : scalar)
        }
        return text
    }
}

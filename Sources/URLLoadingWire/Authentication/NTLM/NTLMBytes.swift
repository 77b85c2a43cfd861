// How the messages of NTLM are laid out (MS-NLMP §2.2): little endian, and what varies in length behind a fixed part, where
// "fields" of a length and an offset say.

/// Reads nothing that is not there: whatever lengths and offsets say comes from the peer (security 64).
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

    /// What the fields at an offset refer to; empty where they say so, wherever they point to then.
    func payload(_ offset: Int) -> [UInt8]? {
        guard let count = number16(at: offset), let place = number32(at: offset + 4) else { return nil }
        return count == 0 ? [] : slice(Int(place), count)
    }
}

/// A message with its signature and type: a fixed part first, and what its fields refer to behind it.
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

    /// Returns false if it is too long to be said.
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
    /// UTF-16, little endian: what NTLM calls Unicode.
    var ntlmBytes: [UInt8] { utf16.flatMap { $0.littleEndianBytes } }

    /// One character for each, as the servers that compare it have it: "ß" stays what it is.
    var ntlmUppercased: String {
        var text = ""
        for scalar in unicodeScalars {
            let upper = scalar.properties.uppercaseMapping.unicodeScalars
            text.unicodeScalars.append(upper.count == 1 ? upper[upper.startIndex] : scalar)
        }
        return text
    }
}

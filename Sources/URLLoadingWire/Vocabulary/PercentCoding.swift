// SPDX-License-Identifier: Apache-2.0

package enum PercentCoding {
    /// Decodes percent escapes (RFC 3986 §2.1); `nil` when a "%" is not followed by two hexadecimal digits.
    package static func decode(_ bytes: some RandomAccessCollection<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue else { return nil }
            decoded.append(high << 4 | low)
        }
        return decoded
    }

    /// Escapes all bytes but the unreserved ones (RFC 3986 §2.3).
    package static func encode(_ bytes: some Sequence<UInt8>) -> String { encode(bytes) { isUnreserved($0) } }

    /// Escapes all bytes that cannot stand in a path (RFC 3986 §3.3).
    package static func encodePath(_ bytes: some Sequence<UInt8>) -> String {
        encode(bytes) { isUnreserved($0) || "!$&'()*+,;=:@/".utf8.contains($0) }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        byte.isAlpha || byte.isDigit || "-._~".utf8.contains(byte)
    }

    private static func encode(_ bytes: some Sequence<UInt8>, unless isKept: (UInt8) -> Bool) -> String {
        var text: [UInt8] = []
        for byte in bytes { if isKept(byte) { text.append(byte) } else { append(byte, to: &text) } }
        return String(decoding: text, as: UTF8.self)
    }

    static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(.upperHex(byte >> 4))
        bytes.append(.upperHex(byte & 15))
    }
}

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

    static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(.upperHex(byte >> 4))
        bytes.append(.upperHex(byte & 15))
    }
}

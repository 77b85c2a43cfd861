// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// Integers of variable length (RFC 9000 §16).
package enum QUICInteger {
    /// The largest integer that can be written.
    package static let largest: UInt64 = 1 << 62 - 1

    /// Reads an integer and the number of its bytes; `nil` if it is not complete.
    package static func read(_ bytes: ArraySlice<UInt8>) -> (value: UInt64, count: Int)? {
        guard let first = bytes.first else { return nil }
        let count = 1 << Int(first >> 6)
        guard bytes.count >= count else { return nil }
        return (bytes.dropFirst().prefix(count - 1).reduce(UInt64(first & 0x3F)) { $0 << 8 | UInt64($1) }, count)
    }

    /// Returns the shortest form of an integer; of one beyond ``largest``, that of the remainder.
    package static func bytes(_ value: UInt64) -> [UInt8] {
        let value = value & largest
        let power =
            switch value {
            case ..<0x40: 0
            case ..<0x4000: 1
            case ..<0x4000_0000: 2
            default: 3
            }
        let count = 1 << power
        var bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64(count - 1 - $0))) }
        bytes[0] |= UInt8(power << 6)
        return bytes
    }
}

#endif

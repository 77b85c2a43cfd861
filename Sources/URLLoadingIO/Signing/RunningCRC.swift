// SPDX-License-Identifier: Apache-2.0

import URLLoadingCSystem
import URLLoadingCZlib

/// Computes a cyclic redundancy check of bytes that arrive in pieces. It detects damage, not forgery.
package struct RunningCRC: Sendable {
    package enum Kind: Sendable {
        /// CRC-32 (ISO/IEC 3309), as of gzip.
        case crc32
        /// CRC-32C (RFC 3720, appendix B.4).
        case crc32c
        /// CRC-64/NVME (NVM Express, NVM Command Set Specification 1.0, section 5.2.1.3.4).
        case crc64NVME

        /// The number of bytes of the checksum.
        package var size: Int { self == .crc64NVME ? 8 : 4 }
    }

    private let kind: Kind
    private var value: UInt64 = 0

    package init(_ kind: Kind) { self.kind = kind }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        // With a null pointer, zlib returns its initial value instead.
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
        switch kind {
        case .crc32:
            value = UInt64(crc32_z(UInt(value), start.assumingMemoryBound(to: UInt8.self), bytes.count))
        case .crc32c: value = UInt64(csys_crc32c(UInt32(truncatingIfNeeded: value), start, bytes.count, false))
        case .crc64NVME: value = CRC64.continued(value, bytes)
        }
    }

    /// The bytes of the checksum, the most significant one first.
    package var bytes: [UInt8] {
        (1...kind.size).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (kind.size - $0))) }
    }
}

/// CRC-64/NVME: the reflected polynomial 0xAD93D23594C93659, all bits set before and inverted after.
private enum CRC64 {
    /// What each byte adds, 256 values for each of the eight places of a word.
    private static let table: [UInt64] = {
        var table = [UInt64](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var sum = UInt64(byte)
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0x9A6C_9329_AC4B_C9B5 }
            table[byte] = sum
        }
        for index in 256..<table.count {
            let before = table[index - 256]
            table[index] = table[Int(before & 0xFF)] ^ before >> 8
        }
        return table
    }()

    static func continued(_ value: UInt64, _ bytes: UnsafeRawBufferPointer) -> UInt64 {
        table.withUnsafeBufferPointer { table in
            var sum = ~value
            var index = 0
            while index + 8 <= bytes.count {
                let word = sum ^ UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                sum = 0
                for place in 0..<8 { sum ^= table[(7 - place) * 256 + Int(word >> UInt64(place * 8) & 0xFF)] }
                index += 8
            }
            for byte in bytes[index...] { sum = table[Int((sum ^ UInt64(byte)) & 0xFF)] ^ sum >> 8 }
            return ~sum
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import URLLoadingCZlib

/// Computes the CRC-32 (ISO/IEC 3309) of bytes that arrive in pieces. It detects damage, not forgery.
package struct RunningCRC: Sendable {
    private var value = crc32_z(0, nil, 0)

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        // With a null pointer, zlib returns its initial value instead.
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
        value = crc32_z(value, start.assumingMemoryBound(to: UInt8.self), bytes.count)
    }

    /// The four bytes of the checksum, the most significant one first.
    package var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
}

// SPDX-License-Identifier: Apache-2.0

// CRC-32C checksums of a file's blocks, so that a part of the file can be verified without reading all of it. It
// detects every burst error of up to 32 bits and misses one in four billion of the others. It is no defence against an
// attacker with write access to the file, and need not be: such an attacker can replace the checksums too.

import URLLoadingCSystem

package struct BlockSums: Sendable {
    /// Bytes of a block; the last block may be shorter.
    package static let blockSize = 64 << 10

    private var finished: [UInt32] = []
    private var current: UInt32 = 0
    private var filled = 0

    package init() {}

    package mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Self.blockSize - filled)
            current = Self.crc(current, UnsafeRawBufferPointer(rebasing: piece))
            filled += piece.count
            rest = rest.dropFirst(piece.count)
            if filled == Self.blockSize { close() }
        }
    }

    /// Returns the checksum of each block, in order; no bytes may be added afterwards.
    package mutating func finish() -> [UInt32] {
        if filled > 0 { close() }
        return finished
    }

    private mutating func close() {
        finished.append(current)
        current = 0
        filled = 0
    }

    package static func sum(_ bytes: UnsafeRawBufferPointer) -> UInt32 { crc(0, bytes) }

    /// Returns the number of blocks of a file of the given length.
    package static func count(_ length: Int64) -> Int64 {
        length / Int64(blockSize) + (length % Int64(blockSize) == 0 ? 0 : 1)
    }

    private static func crc(_ seed: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        csys_crc32c(seed, bytes.baseAddress, bytes.count, false)
    }
}

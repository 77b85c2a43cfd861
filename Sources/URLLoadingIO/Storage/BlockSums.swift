// Checksums of a file by blocks, so that a reader can judge what it reads without reading all of it. CRC-32 finds
// every burst of up to 32 bits and misses one in four billion of the others; it is no defence against somebody who
// may write to the file, and need not be: he may write whatever he likes.

import URLLoadingCZlib

package struct BlockSums: Sendable {
    /// Bytes of a block; the last may be shorter.
    package static let blockSize = 64 << 10

    private var finished: [UInt32] = []
    private var current: UInt = 0
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

    /// Of each block, in order; nothing may be added afterwards.
    package mutating func finish() -> [UInt32] {
        if filled > 0 { close() }
        return finished
    }

    private mutating func close() {
        finished.append(UInt32(truncatingIfNeeded: current))
        current = 0
        filled = 0
    }

    package static func sum(_ bytes: UnsafeRawBufferPointer) -> UInt32 { UInt32(truncatingIfNeeded: crc(0, bytes)) }

    /// How many blocks so many bytes have.
    package static func count(_ length: Int64) -> Int64 {
        length / Int64(blockSize) + (length % Int64(blockSize) == 0 ? 0 : 1)
    }

    private static func crc(_ seed: UInt, _ bytes: UnsafeRawBufferPointer) -> UInt {
        // A null pointer would ask for the seed.
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return seed }
        return UInt(crc32_z(uLong(seed), start.assumingMemoryBound(to: UInt8.self), bytes.count))
    }
}

// SPDX-License-Identifier: Apache-2.0

/// The mask of a frame's payload (RFC 6455 §5.3), applied piece by piece.
struct WebSocketMask: Sendable {
    /// The bytes of the key twice in a row, the next one to use first in memory.
    private var key: UInt64

    init(_ key: UInt32) {
        let bytes = UInt64(key.bigEndian)
        self.key = bytes | bytes << 32
    }

    /// Masks or unmasks bytes in place.
    mutating func apply(to bytes: UnsafeMutableRawBufferPointer) {
        var offset = 0
        while bytes.count - offset >= 8 {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            bytes.storeBytes(of: word ^ key.littleEndianBits, toByteOffset: offset, as: UInt64.self)
            offset += 8
        }
        for index in 0..<(bytes.count - offset) {
            bytes[offset + index] ^= UInt8(truncatingIfNeeded: key >> UInt64(8 * index))
        }
        rotate(by: bytes.count)
    }

    /// Rotates the key after `count` bytes, so that the next byte uses the right byte of the key.
    private mutating func rotate(by count: Int) {
        let bits = UInt64(8 * (count & 3))
        if bits > 0 { key = key >> bits | key << (64 - bits) }
    }
}

extension UInt64 {
    /// The number with its lowest byte first in memory.
    fileprivate var littleEndianBits: UInt64 { UInt64(littleEndian: self) }
}

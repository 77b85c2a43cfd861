/// The mask of a frame's payload (RFC 6455 5.3), while the payload passes piece by piece.
struct WebSocketMask: Sendable {
    /// The key's bytes, the next one to use first in memory, twice over.
    private var key: UInt64

    init(_ key: UInt32) {
        let bytes = UInt64(key.bigEndian)
        self.key = bytes | bytes << 32
    }

    /// Masks or unmasks bytes where they lie.
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

    /// So many bytes have passed: the next one is masked by another byte of the key.
    private mutating func rotate(by count: Int) {
        let bits = UInt64(8 * (count & 3))
        if bits > 0 { key = key >> bits | key << (64 - bits) }
    }
}

extension UInt64 {
    /// A number whose lowest byte is the first one in memory.
    fileprivate var littleEndianBits: UInt64 { UInt64(littleEndian: self) }
}

// SPDX-License-Identifier: Apache-2.0

// Enough of RFC 1951 and 1952 to write test data: stored blocks, and one fixed Huffman block whose only matches are
// runs, as in decompression bombs.

import Glibc

enum Compressed {
    /// A gzip member around stored blocks.
    static func gzip(_ bytes: [UInt8]) -> [UInt8] { member(stored(bytes), of: bytes) }

    /// A zlib stream (RFC 1950) around stored blocks.
    static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        var (a, b): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            a = (a + UInt32(byte)) % 65521
            b = (b + a) % 65521
        }
        return [0x78, 0x01] + stored(bytes) + (b << 16 | a).bigEndianBytes
    }

    /// A gzip member that repeats data of this period: 1 for zeros, 13 for the compressed form of zeros.
    static func gzip(_ bytes: [UInt8], period: Int) -> [UInt8] { member(runs(bytes, period), of: bytes) }

    private static func member(_ deflated: [UInt8], of bytes: [UInt8]) -> [UInt8] {
        [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255] + deflated + crc(bytes).littleEndianBytes
            + UInt32(truncatingIfNeeded: bytes.count).littleEndianBytes
    }

    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        var rest = bytes[...]
        repeat {
            let block = rest.prefix(65535)
            rest = rest.dropFirst(65535)
            let size = UInt16(block.count)
            out.append(rest.isEmpty ? 1 : 0)
            for half in [size, ~size] { out += [UInt8(truncatingIfNeeded: half), UInt8(half >> 8)] }
            out += block
        } while !rest.isEmpty
        return out
    }

    private static func runs(_ bytes: [UInt8], _ period: Int) -> [UInt8] {
        var bits = BitWriter()
        bits.write(0b011, 3)
        bytes.withUnsafeBufferPointer { bytes in
            var index = 0
            while index < bytes.count {
                if isRun(bytes, at: index, period) {
                    bits.writeCode(0b1100_0101, 8)
                    // Distance 1 is code 0, distance 13 is code 7 with two more bits.
                    bits.writeCode(period == 1 ? 0 : 7, 5)
                    if period != 1 { bits.write(0, 2) }
                    index += 258
                } else {
                    bits.writeLiteral(Int(bytes[index]))
                    index += 1
                }
            }
        }
        bits.writeCode(0, 7)
        return bits.finished
    }

    private static func isRun(_ bytes: UnsafeBufferPointer<UInt8>, at start: Int, _ period: Int) -> Bool {
        guard start >= period, start + 258 <= bytes.count, let base = bytes.baseAddress else { return false }
        return memcmp(base + start, base + start - period, 258) == 0
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        let table = (0..<256).map { start in
            var value = UInt32(start)
            for _ in 0..<8 { value = value & 1 == 1 ? (value >> 1) ^ 0xEDB8_8320 : value >> 1 }
            return value
        }
        return table.withUnsafeBufferPointer { table in
            var value = UInt32.max
            bytes.withUnsafeBufferPointer {
                for byte in $0 { value = (value >> 8) ^ table[Int((value ^ UInt32(byte)) & 0xFF)] }
            }
            return ~value
        }
    }
}

/// RFC 1951 3.1.1: numbers from their lowest bit, Huffman codes from their highest.
private struct BitWriter {
    private var bytes: [UInt8] = []
    private var current: UInt8 = 0
    private var filled = 0

    mutating func write(_ value: Int, _ count: Int) {
        for bit in 0..<count { push(value >> bit & 1) }
    }

    mutating func writeCode(_ code: Int, _ count: Int) {
        for bit in (0..<count).reversed() { push(code >> bit & 1) }
    }

    mutating func writeLiteral(_ byte: Int) {
        if byte < 144 { writeCode(0x30 + byte, 8) } else { writeCode(0x190 + byte - 144, 9) }
    }

    private mutating func push(_ bit: Int) {
        current |= UInt8(bit) << UInt8(filled)
        filled += 1
        guard filled == 8 else { return }
        bytes.append(current)
        (current, filled) = (0, 0)
    }

    var finished: [UInt8] { filled == 0 ? bytes : bytes + [current] }
}

extension UInt32 {
    fileprivate var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }
    fileprivate var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

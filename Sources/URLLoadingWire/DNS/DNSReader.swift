// SPDX-License-Identifier: Apache-2.0

/// Reads a part of a message (RFC 1035 §4.1). Each method returns `nil` where the part ends too early, or breaks a
/// rule.
struct DNSReader {
    private let message: [UInt8]
    private(set) var position: Int
    private let end: Int

    init(_ message: [UInt8]) { self.init(message, 0..<message.count) }

    /// - Parameter part: names in it may refer to earlier bytes of the message.
    init(_ message: [UInt8], _ part: Range<Int>) {
        (self.message, position, end) = (message, part.lowerBound, min(part.upperBound, message.count))
    }

    /// Reads a part of the message of another reader.
    init(_ other: DNSReader, _ part: Range<Int>) { self.init(other.message, part) }

    var isAtEnd: Bool { position >= end }

    /// Reads that many bytes, and returns where they are.
    mutating func range(_ count: Int) -> Range<Int>? {
        guard count <= end - position else { return nil }
        defer { position += count }
        return position..<position + count
    }

    mutating func bytes(_ count: Int) -> [UInt8]? { range(count).map { Array(message[$0]) } }
    mutating func number16() -> UInt16? { bytes(2).map { UInt16($0[0]) << 8 | UInt16($0[1]) } }
    mutating func number32() -> UInt32? { bytes(4).map { $0.reduce(0) { $0 << 8 | UInt32($1) } } }

    /// Reads a name.
    /// - Parameter isPlain: the name may not refer to an earlier one (RFC 9460 §2.2).
    mutating func name(isPlain: Bool = false) -> DNSName? {
        var labels: [[UInt8]] = []
        var (next, start, bound) = (position, position, end)
        var size = 0
        var hasJumped = false
        while next < bound {
            let length = Int(message[next])
            next += 1
            switch length >> 6 {
            case 0 where length == 0:
                if !hasJumped { position = next }
                return labels.isEmpty ? .root : DNSName(labels: labels)
            case 0:
                size += length + 1
                guard next + length <= bound, size < 255 else { return nil }
                labels.append(Array(message[next..<next + length]))
                next += length
            // Each reference leads to a place before the part of the name that it ends, so that there is no circle.
            case 3 where !isPlain && next < bound:
                let target = (length & 0x3F) << 8 | Int(message[next])
                guard target < start else { return nil }
                if !hasJumped { position = next + 1 }
                hasJumped = true
                (next, start, bound) = (target, target, message.count)
            default: return nil
            }
        }
        return nil
    }
}

// SPDX-License-Identifier: Apache-2.0

/// The header of a frame (RFC 6455 §5.2).
struct WebSocketFrame: Sendable, Equatable {
    enum Opcode: UInt8, Sendable {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10
        var isControl: Bool { rawValue >= 8 }
    }

    var opcode: Opcode
    var isFinal = true
    /// RSV1: the message is compressed (RFC 7692 §6).
    var isCompressed = false
    var mask: UInt32?
    var length: UInt64

    /// The maximum payload of a control frame (RFC 6455 §5.5).
    static let maximumControlBytes = 125
    /// The maximum size of a header.
    static let maximumHeadBytes = 14

    /// Parses the header at the front of `bytes` and returns it with its size; `nil` if it is incomplete. Errors in the
    /// first byte are thrown as soon as it has arrived.
    static func parse(_ bytes: UnsafeRawBufferPointer) throws(WireViolation) -> (WebSocketFrame, size: Int)? {
        guard let first = bytes.first else { return nil }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw malformed("RFC 6455 5.2, opcode") }
        guard first & 0x30 == 0 else { throw malformed("RFC 6455 5.2, RSV2 and RSV3") }
        let isFinal = first & 0x80 != 0
        let isCompressed = first & 0x40 != 0
        if opcode.isControl, !isFinal || isCompressed { throw malformed("RFC 6455 5.5") }
        guard bytes.count > 1 else { return nil }
        let short = bytes[1] & 0x7F
        let isMasked = bytes[1] & 0x80 != 0
        if opcode.isControl, short > maximumControlBytes { throw malformed("RFC 6455 5.5") }
        let lengthSize = short == 126 ? 2 : short == 127 ? 8 : 0
        let size = 2 + lengthSize + (isMasked ? 4 : 0)
        guard bytes.count >= size else { return nil }
        var length = UInt64(short)
        if lengthSize > 0 {
            length = bytes[2..<2 + lengthSize].reduce(0) { $0 << 8 | UInt64($1) }
            // The shortest encoding is required, and the first bit is not part of the length.
            guard length > (lengthSize == 2 ? 125 : 0xFFFF), length <= UInt64(Int64.max) else {
                throw malformed("RFC 6455 5.2, payload length")
            }
        }
        let mask = isMasked ? bytes[size - 4..<size].reduce(0) { $0 << 8 | UInt32($1) } : nil
        let frame = WebSocketFrame(
            opcode: opcode, isFinal: isFinal, isCompressed: isCompressed, mask: mask, length: length)
        return (frame, size)
    }

    func write(to output: inout [UInt8]) {
        output.append((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
        let flag: UInt8 = mask == nil ? 0 : 0x80
        switch length {
        case ...125: output.append(flag | UInt8(length))
        case ...0xFFFF:
            output.append(flag | 126)
            Self.write(length, 2, to: &output)
        default:
            output.append(flag | 127)
            Self.write(length, 8, to: &output)
        }
        if let mask { Self.write(UInt64(mask), 4, to: &output) }
    }

    private static func write(_ number: UInt64, _ size: Int, to output: inout [UInt8]) {
        for index in (0..<size).reversed() { output.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))) }
    }

    static func malformed(_ section: String) -> WireViolation { .remote(.malformedFrame, section) }
}

// SPDX-License-Identifier: Apache-2.0

// Frames, the messages composed of them, and the closing of both directions, for either role. Handshake, compression,
// text, randomness and time are handled elsewhere.

/// WebSocket frames as bytes and events (RFC 6455 §5), without I/O.
///
/// ```swift
/// var codec = WebSocketCodec(role: .client, allowsCompression: false)
/// codec.send(.text, "hello".utf8…, mask: random, into: &output)
/// var consumed = 0
/// while let event = try codec.next(input, consumed: &consumed) { …; drop `consumed` bytes }
/// ```
/// A payload is returned as ranges of the input, unmasked in place. Unconsumed bytes must be at the front of the next
/// input (at most a frame header, or a control frame: 139 bytes).
package struct WebSocketCodec: Sendable, CustomStringConvertible {
    package enum Role: Sendable, Hashable { case client, server }
    package enum Kind: Sendable, Hashable { case text, binary }

    package enum Event: Sendable, Equatable {
        /// A message begins.
        case message(Kind, isCompressed: Bool)
        /// A part of the message's payload: its range in the input of this call.
        case data(Range<Int>)
        /// The message is complete.
        case end
        /// A ping; the caller must answer with a pong of the same bytes (RFC 6455 §5.5.2).
        case ping([UInt8])
        case pong([UInt8])
        /// The peer sends nothing more; `nil` if it gave no status. The caller must answer with the same status unless
        /// a close frame was sent.
        case close(WebSocketClose?)
    }

    private enum Receiving: Sendable, Equatable {
        case head
        /// The number of bytes of the current frame's payload still to be received.
        case payload(UInt64, isFinal: Bool)
        case closed
        case failed
    }

    package let role: Role
    private let allowsCompression: Bool
    private let frameFlood: Int
    private var receiving = Receiving.head
    private var mask: WebSocketMask?
    /// True if a message has begun and not ended.
    private var isInMessage = false
    /// The number of empty fragments since the last frame with content.
    private var emptyFrames = 0
    /// True once a close frame was sent; nothing may be sent after it.
    package private(set) var hasSentClose = false
    package var hasReceivedClose: Bool { receiving == .closed }
    /// The bytes of the current frame still to be received, according to its header.
    package var remaining: UInt64 { if case .payload(let missing, _) = receiving { missing } else { 0 } }

    /// - Parameters:
    ///   - allowsCompression: whether permessage-deflate was negotiated.
    ///   - frameFlood: the maximum number of consecutive empty fragments, at least 1.
    package init(role: Role, allowsCompression: Bool, frameFlood: Int = 1_000) {
        self.role = role
        self.allowsCompression = allowsCompression
        self.frameFlood = max(1, frameFlood)
    }

    // MARK: Receiving

    /// Returns the next event in the input; `nil` if more input is needed, and after a close frame. Data after a close
    /// frame is ignored.
    package mutating func next(
        _ input: UnsafeMutableRawBufferPointer, consumed: inout Int
    ) throws(WireViolation) -> Event? {
        consumed = 0
        do throws(WireViolation) {
            while true {
                let rest = UnsafeMutableRawBufferPointer(rebasing: input[consumed...])
                switch receiving {
                case .closed:
                    consumed = input.count
                    return nil
                case .failed: throw .local(.illegalState, "RFC 6455 7.1.7")
                case .payload(0, let isFinal):
                    receiving = .head
                    guard isFinal else { continue }
                    isInMessage = false
                    return .end
                case .payload(let missing, let isFinal):
                    guard !rest.isEmpty else { return nil }
                    let count = Int(clamping: min(missing, UInt64(rest.count)))
                    mask?.apply(to: UnsafeMutableRawBufferPointer(rebasing: rest[..<count]))
                    receiving = .payload(missing - UInt64(count), isFinal: isFinal)
                    defer { consumed += count }
                    return .data(consumed..<consumed + count)
                case .head:
                    guard let event = try head(rest, &consumed) else { return nil }
                    if let event { return event }
                }
            }
        } catch {
            receiving = .failed
            throw error
        }
    }

    /// - Returns: `nil` if more input is needed; `.some(nil)` if the frame alone is not an event.
    private mutating func head(
        _ rest: UnsafeMutableRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> Event?? {
        guard let (frame, size) = try WebSocketFrame.parse(UnsafeRawBufferPointer(rest)) else { return .none }
        guard (frame.mask != nil) == (role == .server) else { throw WebSocketFrame.malformed("RFC 6455 5.1") }
        try count(frame)
        if frame.opcode.isControl {
            let length = Int(frame.length)
            guard rest.count >= size + length else { return .none }
            let payload = UnsafeMutableRawBufferPointer(rebasing: rest[size..<size + length])
            if let key = frame.mask {
                var mask = WebSocketMask(key)
                mask.apply(to: payload)
            }
            consumed += size + length
            return .some(try control(frame.opcode, Array(payload)))
        }
        guard (frame.opcode == .continuation) == isInMessage else { throw WebSocketFrame.malformed("RFC 6455 5.4") }
        if frame.isCompressed, !allowsCompression || isInMessage { throw WebSocketFrame.malformed("RFC 7692 6.1") }
        consumed += size
        mask = frame.mask.map { WebSocketMask($0) }
        receiving = .payload(frame.length, isFinal: frame.isFinal)
        guard !isInMessage else { return .some(nil) }
        isInMessage = true
        return .message(frame.opcode == .text ? .text : .binary, isCompressed: frame.isCompressed)
    }

    /// Limits empty fragments. Control frames do not count: pings keep an idle connection alive for days, and the code
    /// that answers them keeps them from piling up.
    private mutating func count(_ frame: WebSocketFrame) throws(WireViolation) {
        guard !frame.opcode.isControl else { return }
        // A complete empty message counts as content, because it is delivered.
        let isContent = frame.length > 0 || (frame.opcode != .continuation && frame.isFinal)
        emptyFrames = isContent ? 0 : emptyFrames + 1
        guard emptyFrames <= frameFlood else { throw .remote(.webSocketFlood, "RFC 6455 10.4") }
    }

    private mutating func control(_ opcode: WebSocketFrame.Opcode, _ payload: [UInt8]) throws(WireViolation) -> Event {
        switch opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        default:
            let close = try Self.close(payload)
            receiving = .closed
            return .close(close)
        }
    }

    /// Parses the payload of a close frame (RFC 6455 §5.5.1).
    private static func close(_ payload: [UInt8]) throws(WireViolation) -> WebSocketClose? {
        guard !payload.isEmpty else { return nil }
        guard payload.count >= 2 else { throw WebSocketFrame.malformed("RFC 6455 5.5.1") }
        let code = WebSocketClose.Code(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isSendable else { throw WebSocketFrame.malformed("RFC 6455 7.4") }
        guard let reason = String(validating: payload[2...], as: UTF8.self) else {
            throw .remote(.invalidText, "RFC 6455 5.5.1")
        }
        return WebSocketClose(code, reason: reason)
    }

    // MARK: Sending

    /// The position of a piece in its message.
    package struct Position: Sendable {
        package var isFirst: Bool
        package var isLast: Bool
        package init(isFirst: Bool, isLast: Bool) { (self.isFirst, self.isLast) = (isFirst, isLast) }
        /// The piece is the message.
        package static let whole = Position(isFirst: true, isLast: true)
    }

    /// Writes a message, or a piece of one, as a frame.
    /// - Parameters:
    ///   - mask: for clients, unpredictable and new for every frame (RFC 6455 §5.3); ignored for servers.
    /// - Throws: `illegalState` once a close frame was sent.
    package mutating func send(
        _ kind: Kind, _ payload: UnsafeRawBufferPointer, at position: Position = .whole,
        isCompressed: Bool = false, mask: UInt32, into output: inout [UInt8]
    ) throws(WireViolation) {
        let opcode: WebSocketFrame.Opcode = !position.isFirst ? .continuation : kind == .text ? .text : .binary
        try write(
            WebSocketFrame(
                opcode: opcode, isFinal: position.isLast, isCompressed: isCompressed && position.isFirst, mask: mask,
                length: UInt64(payload.count)),
            payload, &output)
    }

    package mutating func sendPing(_ payload: [UInt8], mask: UInt32, into output: inout [UInt8]) throws(WireViolation) {
        try control(.ping, payload, mask, &output)
    }

    package mutating func sendPong(_ payload: [UInt8], mask: UInt32, into output: inout [UInt8]) throws(WireViolation) {
        try control(.pong, payload, mask, &output)
    }

    /// Writes a close frame, only once. A code that must not be sent is omitted.
    package mutating func sendClose(_ close: WebSocketClose?, mask: UInt32, into output: inout [UInt8]) {
        guard !hasSentClose else { return }
        var payload: [UInt8] = []
        if let close, close.code.isSendable {
            payload = [UInt8(close.code.rawValue >> 8), UInt8(truncatingIfNeeded: close.code.rawValue)]
            payload += close.reason.utf8
        }
        try? control(.close, payload, mask, &output)
        hasSentClose = true
    }

    private mutating func control(
        _ opcode: WebSocketFrame.Opcode, _ payload: [UInt8], _ mask: UInt32, _ output: inout [UInt8]
    ) throws(WireViolation) {
        guard payload.count <= WebSocketFrame.maximumControlBytes else { throw .local(.malformedFrame, "RFC 6455 5.5") }
        let frame = WebSocketFrame(opcode: opcode, mask: mask, length: UInt64(payload.count))
        try payload.withUnsafeBufferPointer { (bytes) throws(WireViolation) in
            try write(frame, UnsafeRawBufferPointer(bytes), &output)
        }
    }

    private mutating func write(
        _ frame: WebSocketFrame, _ payload: UnsafeRawBufferPointer, _ output: inout [UInt8]
    ) throws(WireViolation) {
        guard !hasSentClose else { throw .local(.illegalState, "RFC 6455 5.5.1") }
        var frame = frame
        if role == .server { frame.mask = nil }
        output.reserveCapacity(output.count + WebSocketFrame.maximumHeadBytes + payload.count)
        frame.write(to: &output)
        let start = output.count
        output.append(contentsOf: payload)
        guard let key = frame.mask else { return }
        output.withUnsafeMutableBytes { bytes in
            var mask = WebSocketMask(key)
            mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
        }
    }

    package var description: String {
        "WebSocket \(role): receiving \(receiving)\(isInMessage ? " in a message" : "")"
            + "\(hasSentClose ? ", sent close" : "")"
    }
}

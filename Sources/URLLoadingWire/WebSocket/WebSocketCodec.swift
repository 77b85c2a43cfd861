// What must live here: frames, the messages they make up, and the closing of both directions, for both roles. What
// this file does not know: the handshake, compression, text, randomness, time.

/// WebSocket frames as bytes and events (RFC 6455 5), without input or output.
///
/// ```swift
/// var codec = WebSocketCodec(role: .client, allowsCompression: false)
/// codec.send(.text, "hello".utf8…, mask: random, into: &output)
/// var consumed = 0
/// while let event = try codec.next(input, consumed: &consumed) { …; drop `consumed` bytes }
/// ```
/// A payload is handed out as ranges of the input, unmasked where it lies; what was not consumed must be at the front of
/// the next input (at most a head, or a control frame: 139 bytes).
package struct WebSocketCodec: Sendable, CustomStringConvertible {
    package enum Role: Sendable, Hashable { case client, server }
    package enum Kind: Sendable, Hashable { case text, binary }

    package enum Event: Sendable, Equatable {
        /// A message begins.
        case message(Kind, isCompressed: Bool)
        /// A part of its payload: where it lies in the input of this call.
        case data(Range<Int>)
        /// The message is whole.
        case end
        /// To be answered by a pong with the same bytes (RFC 6455 5.5.2).
        case ping([UInt8])
        case pong([UInt8])
        /// The peer sends nothing more; `nil` if it gave no reason. To be answered by the same unless one was sent.
        case close(WebSocketClose?)
    }

    private enum Receiving: Sendable, Equatable {
        case head
        /// So many bytes of a frame's payload are still to come.
        case payload(UInt64, isFinal: Bool)
        case closed
        case failed
    }

    package let role: Role
    private let allowsCompression: Bool
    private let frameFlood: Int
    private var receiving = Receiving.head
    private var mask: WebSocketMask?
    /// A message has begun and not ended.
    private var isInMessage = false
    /// Fragments without a byte of payload since the last frame with one.
    private var emptyFrames = 0
    /// Nothing may be sent behind a close frame.
    package private(set) var hasSentClose = false
    package var hasReceivedClose: Bool { receiving == .closed }
    /// What is still to come of the frame that is being received, by its own word.
    package var remaining: UInt64 { if case .payload(let missing, _) = receiving { missing } else { 0 } }

    /// - Parameters:
    ///   - allowsCompression: permessage-deflate was agreed upon.
    ///   - frameFlood: how many fragments without content may follow each other, at least 1.
    package init(role: Role, allowsCompression: Bool, frameFlood: Int = 1_000) {
        self.role = role
        self.allowsCompression = allowsCompression
        self.frameFlood = max(1, frameFlood)
    }

    // MARK: Receiving

    /// The next event in the input; `nil` if more is needed, and after a close. What follows a close is ignored.
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

    /// - Returns: `nil` if more is needed; `.some(nil)` if the frame is no event by itself.
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

    /// Pings keep a silent connection alive for days: whoever answers them sees to it that they do not pile up.
    private mutating func count(_ frame: WebSocketFrame) throws(WireViolation) {
        guard !frame.opcode.isControl else { return }
        // A whole empty message is content: it has a receiver.
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

    /// RFC 6455 5.5.1.
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

    /// Writes a message, or one piece of it, as a frame.
    /// - Parameters:
    ///   - isFirst, isLast: where the piece stands; control frames must not come between by this call's doing.
    ///   - mask: a client's, unpredictable and new for every frame (RFC 6455 5.3); ignored for servers.
    /// - Throws: `illegalState` once a close frame was sent.
    package mutating func send(
        _ kind: Kind, _ payload: UnsafeRawBufferPointer, isFirst: Bool = true, isLast: Bool = true,
        isCompressed: Bool = false, mask: UInt32, into output: inout [UInt8]
    ) throws(WireViolation) {
        let opcode: WebSocketFrame.Opcode = !isFirst ? .continuation : kind == .text ? .text : .binary
        try write(
            WebSocketFrame(
                opcode: opcode, isFinal: isLast, isCompressed: isCompressed && isFirst, mask: mask,
                length: UInt64(payload.count)),
            payload, &output)
    }

    package mutating func sendPing(_ payload: [UInt8], mask: UInt32, into output: inout [UInt8]) throws(WireViolation) {
        try control(.ping, payload, mask, &output)
    }

    package mutating func sendPong(_ payload: [UInt8], mask: UInt32, into output: inout [UInt8]) throws(WireViolation) {
        try control(.pong, payload, mask, &output)
    }

    /// Writes a close frame; a second one is not written. A code that may not be sent goes without.
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
        guard payload.count <= WebSocketFrame.mostControlBytes else { throw .local(.malformedFrame, "RFC 6455 5.5") }
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
        output.reserveCapacity(output.count + WebSocketFrame.mostHeadBytes + payload.count)
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
        "WebSocket \(role): receiving \(receiving)\(isInMessage ? " in a message" : "")\(hasSentClose ? ", sent close" : "")"
    }
}

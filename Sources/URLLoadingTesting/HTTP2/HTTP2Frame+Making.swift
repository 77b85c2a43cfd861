// SPDX-License-Identifier: Apache-2.0

// Factories for the ten frame types of RFC 9113 §6 in correct form.

extension HTTP2Frame {
    /// Creates a DATA frame (§6.1), followed by `padding` zero bytes; `nil` for no padding.
    public static func data(
        stream: Int, _ bytes: [UInt8], endStream: Bool = false, padding: UInt8? = nil
    ) -> HTTP2Frame {
        var frame = HTTP2Frame(.data, flags: endStream ? .endStream : [], stream: stream, payload: bytes)
        frame.pad(padding)
        return frame
    }

    /// Creates a HEADERS frame, the beginning of a field section or all of it (§6.2).
    /// - Parameter fragment: HPACK, see ``HTTP2Fields/encoded()``.
    public static func headers(
        stream: Int, _ fragment: [UInt8], endStream: Bool = false, endHeaders: Bool = true, padding: UInt8? = nil
    ) -> HTTP2Frame {
        var frame = HTTP2Frame(.headers, stream: stream, payload: fragment)
        if endStream { frame.flags.insert(.endStream) }
        if endHeaders { frame.flags.insert(.endHeaders) }
        frame.pad(padding)
        return frame
    }

    /// Creates a CONTINUATION frame, more of a field section (§6.10).
    public static func continuation(stream: Int, _ fragment: [UInt8], endHeaders: Bool = true) -> HTTP2Frame {
        HTTP2Frame(.continuation, flags: endHeaders ? .endHeaders : [], stream: stream, payload: fragment)
    }

    /// Creates a PRIORITY frame (§6.3, deprecated); `weight` is one less than the weight it stands for.
    public static func priority(stream: Int, dependsOn parent: Int = 0, weight: UInt8 = 15, isExclusive: Bool = false)
        -> HTTP2Frame
    {
        HTTP2Frame(.priority, stream: stream, payload: bytes31(parent, highBit: isExclusive) + [weight])
    }

    /// Creates a RST_STREAM frame, which ends a stream (§6.4).
    public static func resetStream(_ stream: Int, _ code: ErrorCode = .cancel) -> HTTP2Frame {
        HTTP2Frame(.resetStream, stream: stream, payload: bytes32(code.rawValue))
    }

    /// Creates a SETTINGS frame (§6.5).
    public static func settings(_ settings: Setting...) -> HTTP2Frame { .settings(settings) }

    /// Creates a SETTINGS frame (§6.5).
    public static func settings(_ settings: [Setting]) -> HTTP2Frame {
        let payload = settings.flatMap {
            [UInt8($0.identifier >> 8), UInt8(truncatingIfNeeded: $0.identifier)] + bytes32($0.value)
        }
        return HTTP2Frame(.settings, payload: payload)
    }

    /// The acknowledgement of SETTINGS.
    public static let settingsAck = HTTP2Frame(.settings, flags: .ack)

    /// Creates a PUSH_PROMISE frame (§6.6).
    public static func pushPromise(
        stream: Int, promised: Int, _ fragment: [UInt8], endHeaders: Bool = true
    ) -> HTTP2Frame {
        HTTP2Frame(
            .pushPromise, flags: endHeaders ? .endHeaders : [], stream: stream,
            payload: bytes31(promised, highBit: false) + fragment)
    }

    /// Creates a PING frame, or the reply to one (§6.7). The legal length is eight bytes.
    public static func ping(_ bytes: [UInt8] = [UInt8](repeating: 0, count: 8), ack: Bool = false) -> HTTP2Frame {
        HTTP2Frame(.ping, flags: ack ? .ack : [], payload: bytes)
    }

    /// Creates a GOAWAY frame, which ends the connection (§6.8): streams above `last` were not processed.
    public static func goAway(last: Int, _ code: ErrorCode = .noError, debug: [UInt8] = []) -> HTTP2Frame {
        HTTP2Frame(.goAway, payload: bytes31(last, highBit: false) + bytes32(code.rawValue) + debug)
    }

    /// Creates a WINDOW_UPDATE frame (§6.9): legal increments are 1 to 2^31 - 1 bytes; stream 0 is the connection.
    public static func windowUpdate(stream: Int = 0, _ increment: Int) -> HTTP2Frame {
        HTTP2Frame(.windowUpdate, stream: stream, payload: bytes31(increment, highBit: false))
    }

    /// Creates a field section in the given number of frames: HEADERS, then CONTINUATIONs.
    ///
    /// ```swift
    /// HTTP2Frame.section(stream: 1, block, endStream: true, splitInto: 3)
    /// ```
    /// - Parameter count: the number of frames, at least 1; some are empty if there are fewer bytes.
    public static func section(stream: Int, _ block: [UInt8], endStream: Bool = false, splitInto count: Int = 1)
        -> [HTTP2Frame]
    {
        let count = max(1, count)
        let size = (block.count + count - 1) / count
        return (0..<count).map { index in
            let start = min(block.count, index * size)
            let fragment = Array(block[start..<min(block.count, start + size)])
            let isLast = index == count - 1
            return index == 0
                ? .headers(stream: stream, fragment, endStream: endStream, endHeaders: isLast)
                : .continuation(stream: stream, fragment, endHeaders: isLast)
        }
    }

    /// The frame's bytes on the wire.
    ///
    /// ```swift
    /// HTTP2Frame.settingsAck.bytes   // [0, 0, 0, 4, 1, 0, 0, 0, 0]
    /// ```
    public var bytes: [UInt8] {
        let length = declaredLength ?? payload.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(9 + payload.count)
        bytes += [
            UInt8(truncatingIfNeeded: length >> 16), UInt8(truncatingIfNeeded: length >> 8),
            UInt8(truncatingIfNeeded: length),
        ]
        bytes += [kind.rawValue, flags.rawValue]
        bytes += Self.bytes31(stream, highBit: reservedBit)
        bytes += payload
        return bytes
    }

    private mutating func pad(_ count: UInt8?) {
        guard let count else { return }
        flags.insert(.padded)
        payload = [count] + payload + [UInt8](repeating: 0, count: Int(count))
    }

    static func bytes32(_ value: UInt32) -> [UInt8] {
        [
            UInt8(value >> 24), UInt8(truncatingIfNeeded: value >> 16), UInt8(truncatingIfNeeded: value >> 8),
            UInt8(truncatingIfNeeded: value),
        ]
    }

    static func bytes31(_ value: Int, highBit: Bool) -> [UInt8] {
        bytes32(UInt32(truncatingIfNeeded: value) & 0x7FFF_FFFF | (highBit ? 0x8000_0000 : 0))
    }
}

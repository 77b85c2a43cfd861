// SPDX-License-Identifier: Apache-2.0

// Access to the parts of a payload. Every property is `nil` for a payload that is too short or of another frame type.

extension HTTP2Frame {
    /// The data of DATA without padding, the fragment of HEADERS, PUSH_PROMISE and CONTINUATION, and the payload of
    /// other frames. `nil` if the padding exceeds the payload (RFC 9113 §6.1).
    public var content: [UInt8]? {
        var rest = payload[...]
        var padding = 0
        if flags.contains(.padded), [.data, .headers, .pushPromise].contains(kind) {
            guard let length = rest.popFirst() else { return nil }
            padding = Int(length)
        }
        let fixed = kind == .headers && flags.contains(.priority) ? 5 : kind == .pushPromise ? 4 : 0
        guard rest.count >= fixed + padding else { return nil }
        return Array(rest.dropFirst(fixed).dropLast(padding))
    }

    /// Whether the frame ends its stream; only DATA and HEADERS can.
    public var endsStream: Bool { (kind == .data || kind == .headers) && flags.contains(.endStream) }

    /// Whether the frame acknowledges SETTINGS or answers a PING.
    public var isAck: Bool { (kind == .settings || kind == .ping) && flags.contains(.ack) }

    /// The parameters of a SETTINGS frame, in order.
    public var settings: [Setting]? {
        guard kind == .settings, payload.count.isMultiple(of: 6) else { return nil }
        return stride(from: 0, to: payload.count, by: 6).map { start in
            Setting(UInt16(payload[start]) << 8 | UInt16(payload[start + 1]), number(at: start + 2) ?? 0)
        }
    }

    /// The error code of RST_STREAM and GOAWAY.
    public var errorCode: ErrorCode? {
        switch kind {
        case .resetStream: number(at: 0).map { ErrorCode(rawValue: $0) }
        case .goAway: number(at: 4).map { ErrorCode(rawValue: $0) }
        default: nil
        }
    }

    /// The last stream that the sender of a GOAWAY may have processed.
    public var lastStream: Int? { kind == .goAway ? number(at: 0).map { Int($0 & 0x7FFF_FFFF) } : nil }

    /// The debug data of a GOAWAY.
    public var debugData: [UInt8]? { kind == .goAway && payload.count >= 8 ? Array(payload[8...]) : nil }

    /// The increment of a WINDOW_UPDATE in bytes; 0 is an error.
    public var increment: Int? { kind == .windowUpdate ? number(at: 0).map { Int($0 & 0x7FFF_FFFF) } : nil }

    /// The stream that a PUSH_PROMISE announces.
    public var promisedStream: Int? {
        guard kind == .pushPromise else { return nil }
        return number(at: flags.contains(.padded) ? 1 : 0).map { Int($0 & 0x7FFF_FFFF) }
    }

    private func number(at start: Int) -> UInt32? {
        guard payload.count >= start + 4 else { return nil }
        return payload[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}

extension HTTP2Frame: CustomStringConvertible {
    /// One line: `HEADERS stream 1, 40 bytes, endStream endHeaders`.
    public var description: String {
        var words = "\(kind) stream \(stream), \(payload.count) bytes"
        if let declaredLength { words += " (says \(declaredLength))" }
        if let settings, !isAck { words += settings.map { ", \($0.identifier)=\($0.value)" }.joined() }
        if let lastStream { words += ", last \(lastStream)" }
        if let errorCode { words += ", \(errorCode)" }
        if let increment { words += ", +\(increment)" }
        if !flags.isEmpty { words += ", \(flagWords)" }
        return words
    }

    private var flagWords: String {
        let first: (Flags, String) = kind == .settings || kind == .ping ? (.ack, "ack") : (.endStream, "endStream")
        let known: [(Flags, String)] = [
            first, (.endHeaders, "endHeaders"), (.padded, "padded"), (.priority, "priority"),
        ]
        return known.filter { flags.contains($0.0) }.map(\.1).joined(separator: " ")
    }
}

extension HTTP2Frame.Kind: CustomStringConvertible {
    private static let names = [
        "DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE",
        "CONTINUATION",
    ]
    /// The name in RFC 9113, or the number.
    public var description: String {
        if self == .priorityUpdate { return "PRIORITY_UPDATE" }
        return rawValue < Self.names.count ? Self.names[Int(rawValue)] : "kind \(rawValue)"
    }
}

extension HTTP2Frame.ErrorCode: CustomStringConvertible {
    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]
    /// The name in RFC 9113, or the number.
    public var description: String {
        rawValue < UInt32(Self.names.count) ? Self.names[Int(rawValue)] : "error \(rawValue)"
    }
}

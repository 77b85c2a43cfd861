// SPDX-License-Identifier: Apache-2.0

/// The nine-byte header of a frame (RFC 9113 §4.1). Parsed before nghttp2 receives the frame: to pass whole frames, to
/// count those without effect, and to trace them.
package struct HTTP2FrameHeader: Sendable, Hashable, CustomStringConvertible {
    package static let size = 9

    /// The frame types of RFC 9113 §6; unknown types must be ignored (§4.1).
    package enum Kind: UInt8, Sendable, Hashable {
        case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
        /// RFC 9218 §7.1.
        case priorityUpdate = 16
    }

    package let length: Int
    package let type: UInt8
    package let flags: UInt8
    package let stream: Int32

    package var kind: Kind? { Kind(rawValue: type) }
    /// END_STREAM for DATA and HEADERS, ACK for SETTINGS and PING.
    package var hasFirstFlag: Bool { flags & 1 != 0 }
    package var endsHeaders: Bool { flags & 4 != 0 }

    /// Parses a header; `nil` if fewer than nine bytes are available.
    package init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
        guard bytes.count - start >= Self.size else { return nil }
        length = Int(bytes[start]) << 16 | Int(bytes[start + 1]) << 8 | Int(bytes[start + 2])
        type = bytes[start + 3]
        flags = bytes[start + 4]
        let number = bytes[(start + 5)..<(start + 9)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        // The first bit is reserved and ignored.
        stream = Int32(number & 0x7FFF_FFFF)
    }

    /// For example `HEADERS stream 1, 42 bytes, END_STREAM END_HEADERS`.
    package var description: String {
        var line = "\(name) stream \(stream), \(length) bytes"
        let names = flagNames
        if !names.isEmpty { line += ", " + names.joined(separator: " ") }
        return line
    }

    private var name: String {
        switch kind {
        case .data: "DATA"
        case .headers: "HEADERS"
        case .priority: "PRIORITY"
        case .reset: "RST_STREAM"
        case .settings: "SETTINGS"
        case .pushPromise: "PUSH_PROMISE"
        case .ping: "PING"
        case .goAway: "GOAWAY"
        case .windowUpdate: "WINDOW_UPDATE"
        case .continuation: "CONTINUATION"
        case .priorityUpdate: "PRIORITY_UPDATE"
        case nil: "frame of type \(type)"
        }
    }

    private var flagNames: [String] {
        switch kind {
        case .settings, .ping: hasFirstFlag ? ["ACK"] : []
        case .data, .headers:
            (hasFirstFlag ? ["END_STREAM"] : []) + (kind == .headers && endsHeaders ? ["END_HEADERS"] : [])
        case .continuation, .pushPromise: endsHeaders ? ["END_HEADERS"] : []
        default: []
        }
    }
}

/// The error codes of streams and connections (RFC 9113 §7).
package struct HTTP2ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let noError = Self(rawValue: 0)
    package static let protocolError = Self(rawValue: 1)
    package static let internalError = Self(rawValue: 2)
    package static let flowControlError = Self(rawValue: 3)
    package static let settingsTimeout = Self(rawValue: 4)
    package static let frameSizeError = Self(rawValue: 6)
    package static let refusedStream = Self(rawValue: 7)
    package static let cancel = Self(rawValue: 8)
    package static let enhanceYourCalm = Self(rawValue: 11)
    package static let http11Required = Self(rawValue: 13)

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    /// The name in the specification.
    package var description: String {
        rawValue < UInt32(Self.names.count) ? Self.names[Int(rawValue)] : "error \(rawValue)"
    }
}

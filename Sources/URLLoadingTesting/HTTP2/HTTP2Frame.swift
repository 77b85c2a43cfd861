// SPDX-License-Identifier: Apache-2.0

// A frame as it is on the wire. It can represent everything that nine bytes and a payload can express, including
// illegal frames; it does not judge them.

/// An HTTP/2 frame (RFC 9113 §4.1), valid or not.
///
/// ```swift
/// try await peer.send(.settings(.initialWindowSize(100)), .ping([1, 2, 3, 4, 5, 6, 7, 8]))
/// var frame = HTTP2Frame.data(stream: 1, Array("hi".utf8), endStream: true)
/// frame.stream = 0            // a connection error at its receiver
/// frame.declaredLength = 9    // more than there is
/// ```
///
/// The factories in `HTTP2Frame+Making` create correct frames; every part can be changed afterwards, or set directly.
/// The properties in `HTTP2Frame+Reading` give access to the parts of a payload.
public struct HTTP2Frame: Sendable, Hashable {
    /// The frame type: one byte, of which RFC 9113 defines ten values.
    public var kind: Kind
    /// The flags.
    public var flags: Flags
    /// The stream id, 0 to 2^31 - 1; 0 is the connection.
    public var stream: Int
    /// The bytes after the nine-byte header.
    public var payload: [UInt8]
    /// The reserved bit before the stream id, which receivers ignore (RFC 9113 §4.1).
    public var reservedBit = false
    /// The stated length, 0 to 2^24 - 1; `nil` for the actual length of the payload.
    public var declaredLength: Int?

    /// Creates a frame from its parts.
    public init(_ kind: Kind, flags: Flags = [], stream: Int = 0, payload: [UInt8] = []) {
        self.kind = kind
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    /// A frame type (RFC 9113 §6).
    public struct Kind: RawRepresentable, Sendable, Hashable {
        /// The type's number.
        public let rawValue: UInt8
        /// Creates a type from any number; receivers ignore unknown types (RFC 9113 §4.1).
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// DATA: a part of a body.
        public static let data = Kind(rawValue: 0)
        /// HEADERS: the beginning of a field section.
        public static let headers = Kind(rawValue: 1)
        /// PRIORITY, deprecated.
        public static let priority = Kind(rawValue: 2)
        /// RST_STREAM: ends a stream.
        public static let resetStream = Kind(rawValue: 3)
        /// SETTINGS: parameters for the peer.
        public static let settings = Kind(rawValue: 4)
        /// PUSH_PROMISE: announces a pushed response.
        public static let pushPromise = Kind(rawValue: 5)
        /// PING: a liveness check.
        public static let ping = Kind(rawValue: 6)
        /// GOAWAY: ends a connection.
        public static let goAway = Kind(rawValue: 7)
        /// WINDOW_UPDATE: enlarges a flow-control window.
        public static let windowUpdate = Kind(rawValue: 8)
        /// CONTINUATION: more of a field section.
        public static let continuation = Kind(rawValue: 9)
        /// PRIORITY_UPDATE: a new priority for a stream (RFC 9218 §7.1).
        public static let priorityUpdate = Kind(rawValue: 16)
    }

    /// The flags of a frame. The meaning of a bit depends on the frame type.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The flags as a byte.
        public let rawValue: UInt8
        /// Creates flags from any bits; receivers ignore undefined ones.
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// DATA, HEADERS: the last frame of its stream.
        public static let endStream = Flags(rawValue: 0x01)
        /// SETTINGS, PING: an acknowledgement or reply.
        public static let ack = Flags(rawValue: 0x01)
        /// HEADERS, PUSH_PROMISE, CONTINUATION: the field section is complete.
        public static let endHeaders = Flags(rawValue: 0x04)
        /// DATA, HEADERS, PUSH_PROMISE: the payload begins with a padding length.
        public static let padded = Flags(rawValue: 0x08)
        /// HEADERS: the payload begins with five bytes of priority.
        public static let priority = Flags(rawValue: 0x20)
    }

    /// The error code of a stream or connection (RFC 9113 §7).
    public struct ErrorCode: RawRepresentable, Sendable, Hashable {
        /// The code's number.
        public let rawValue: UInt32
        /// Creates a code from any number; unknown ones have no special meaning.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// No error.
        public static let noError = ErrorCode(rawValue: 0)
        /// The peer violated a rule for which there is no specific code.
        public static let protocolError = ErrorCode(rawValue: 1)
        /// An internal error of the sender.
        public static let internalError = ErrorCode(rawValue: 2)
        /// The peer exceeded a flow-control window.
        public static let flowControlError = ErrorCode(rawValue: 3)
        /// SETTINGS were not acknowledged in time.
        public static let settingsTimeout = ErrorCode(rawValue: 4)
        /// A frame arrived after the end of its stream.
        public static let streamClosed = ErrorCode(rawValue: 5)
        /// A frame has an illegal length.
        public static let frameSizeError = ErrorCode(rawValue: 6)
        /// The request was not processed, and may be retried.
        public static let refusedStream = ErrorCode(rawValue: 7)
        /// The stream is no longer needed.
        public static let cancel = ErrorCode(rawValue: 8)
        /// The state of field compression is lost.
        public static let compressionError = ErrorCode(rawValue: 9)
        /// A connection requested with CONNECT failed.
        public static let connectError = ErrorCode(rawValue: 10)
        /// The peer causes excessive load.
        public static let enhanceYourCalm = ErrorCode(rawValue: 11)
        /// The TLS connection is not secure enough.
        public static let inadequateSecurity = ErrorCode(rawValue: 12)
        /// The request requires HTTP/1.1.
        public static let http11Required = ErrorCode(rawValue: 13)
    }

    /// One parameter of SETTINGS (RFC 9113 §6.5.2).
    public struct Setting: Sendable, Hashable {
        /// The parameter's identifier, 16 bits.
        public var identifier: UInt16
        /// The parameter's value.
        public var value: UInt32
        /// Creates any parameter with any value; receivers ignore unknown ones.
        public init(_ identifier: UInt16, _ value: UInt32) {
            self.identifier = identifier
            self.value = value
        }
        /// SETTINGS_HEADER_TABLE_SIZE: the limit of the peer's HPACK table in bytes; 4096 by default.
        public static func headerTableSize(_ value: UInt32) -> Setting { Setting(1, value) }
        /// SETTINGS_ENABLE_PUSH: 0 or 1; a server may only send 0.
        public static func enablePush(_ value: UInt32) -> Setting { Setting(2, value) }
        /// SETTINGS_MAX_CONCURRENT_STREAMS: how many streams the peer may have open; unlimited by default.
        public static func maxConcurrentStreams(_ value: UInt32) -> Setting { Setting(3, value) }
        /// SETTINGS_INITIAL_WINDOW_SIZE: the window of each stream, at most 2^31 - 1; 65,535 by default.
        public static func initialWindowSize(_ value: UInt32) -> Setting { Setting(4, value) }
        /// SETTINGS_MAX_FRAME_SIZE: the largest payload, 16,384 (the default) to 2^24 - 1.
        public static func maxFrameSize(_ value: UInt32) -> Setting { Setting(5, value) }
        /// SETTINGS_MAX_HEADER_LIST_SIZE: the largest field section in uncompressed bytes; advisory only.
        public static func maxHeaderListSize(_ value: UInt32) -> Setting { Setting(6, value) }
        /// SETTINGS_ENABLE_CONNECT_PROTOCOL: 1 permits CONNECT with `:protocol` (RFC 8441 §3).
        public static func enableConnectProtocol(_ value: UInt32) -> Setting { Setting(8, value) }
        /// SETTINGS_NO_RFC7540_PRIORITIES: 1 states that the old priorities are not used (RFC 9218 §2.1).
        public static func noPriorities(_ value: UInt32) -> Setting { Setting(9, value) }
    }
}

// A frame as it is on the wire. Rule: it can say everything that nine bytes and a payload can say, also what no
// peer may; whether it makes sense is for whoever reads it.

/// A frame of HTTP/2 (RFC 9113 4.1), right or wrong.
///
/// ```swift
/// try await peer.send(.settings(.initialWindowSize(100)), .ping([1, 2, 3, 4, 5, 6, 7, 8]))
/// var frame = HTTP2Frame.data(stream: 1, Array("hi".utf8), endStream: true)
/// frame.stream = 0            // a connection error for who receives it
/// frame.declaredLength = 9    // more than there is
/// ```
///
/// The factories in `HTTP2Frame+Making` write correct frames; every part can be changed afterwards, or a frame be
/// made of its parts. The properties in `HTTP2Frame+Reading` take a payload apart.
public struct HTTP2Frame: Sendable, Hashable {
    /// What kind of frame it is: one byte, of which RFC 9113 names ten values.
    public var kind: Kind
    /// Its flags.
    public var flags: Flags
    /// The stream it belongs to, 0 to 2^31 - 1; 0 is the connection.
    public var stream: Int
    /// What follows the nine bytes.
    public var payload: [UInt8]
    /// The bit before the number of the stream, which is to be ignored (RFC 9113 4.1).
    public var reservedBit = false
    /// The length it claims, 0 to 2^24 - 1; `nil` for that of the payload.
    public var declaredLength: Int?

    /// A frame of its parts.
    public init(_ kind: Kind, flags: Flags = [], stream: Int = 0, payload: [UInt8] = []) {
        self.kind = kind
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    /// The type of a frame (RFC 9113 6).
    public struct Kind: RawRepresentable, Sendable, Hashable {
        /// The byte.
        public let rawValue: UInt8
        /// Any byte: kinds that nobody knows are to be ignored (RFC 9113 4.1).
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// A part of a body.
        public static let data = Kind(rawValue: 0)
        /// The beginning of a field section.
        public static let headers = Kind(rawValue: 1)
        /// Deprecated priorities.
        public static let priority = Kind(rawValue: 2)
        /// The end of a stream, by one side.
        public static let resetStream = Kind(rawValue: 3)
        /// What the sender expects of its peer.
        public static let settings = Kind(rawValue: 4)
        /// A request that a server makes up.
        public static let pushPromise = Kind(rawValue: 5)
        /// A question for a sign of life.
        public static let ping = Kind(rawValue: 6)
        /// The end of a connection.
        public static let goAway = Kind(rawValue: 7)
        /// More room in a window.
        public static let windowUpdate = Kind(rawValue: 8)
        /// More of a field section.
        public static let continuation = Kind(rawValue: 9)
        /// A new priority for a stream (RFC 9218 7.1).
        public static let priorityUpdate = Kind(rawValue: 16)
    }

    /// The flags of a frame. What a bit means depends on the kind.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The byte.
        public let rawValue: UInt8
        /// Any bits: those without a meaning are to be ignored.
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// DATA, HEADERS: the last of its stream.
        public static let endStream = Flags(rawValue: 0x01)
        /// SETTINGS, PING: an answer.
        public static let ack = Flags(rawValue: 0x01)
        /// HEADERS, PUSH_PROMISE, CONTINUATION: the field section is complete.
        public static let endHeaders = Flags(rawValue: 0x04)
        /// DATA, HEADERS, PUSH_PROMISE: a length of padding comes first.
        public static let padded = Flags(rawValue: 0x08)
        /// HEADERS: five bytes of priority come first.
        public static let priority = Flags(rawValue: 0x20)
    }

    /// Why a stream or a connection ends (RFC 9113 7).
    public struct ErrorCode: RawRepresentable, Sendable, Hashable {
        /// The number.
        public let rawValue: UInt32
        /// Any number: unknown ones have no special meaning.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// Nothing is wrong.
        public static let noError = ErrorCode(rawValue: 0)
        /// The peer broke a rule for which there is no other code.
        public static let protocolError = ErrorCode(rawValue: 1)
        /// Something went wrong at the sender's.
        public static let internalError = ErrorCode(rawValue: 2)
        /// More was sent than there was room for.
        public static let flowControlError = ErrorCode(rawValue: 3)
        /// SETTINGS were not acknowledged in time.
        public static let settingsTimeout = ErrorCode(rawValue: 4)
        /// A frame came after the end of its stream.
        public static let streamClosed = ErrorCode(rawValue: 5)
        /// A frame has a length it must not have.
        public static let frameSizeError = ErrorCode(rawValue: 6)
        /// Nothing was done yet: the request may be sent again.
        public static let refusedStream = ErrorCode(rawValue: 7)
        /// The stream is not needed any more.
        public static let cancel = ErrorCode(rawValue: 8)
        /// The state of field compression is lost.
        public static let compressionError = ErrorCode(rawValue: 9)
        /// A connection made with CONNECT failed.
        public static let connectError = ErrorCode(rawValue: 10)
        /// The peer makes too much work.
        public static let enhanceYourCalm = ErrorCode(rawValue: 11)
        /// The TLS below does not suffice.
        public static let inadequateSecurity = ErrorCode(rawValue: 12)
        /// HTTP/1.1 is wanted instead.
        public static let http11Required = ErrorCode(rawValue: 13)
    }

    /// One parameter of SETTINGS (RFC 9113 6.5.2).
    public struct Setting: Sendable, Hashable {
        /// Which one, 16 bits.
        public var identifier: UInt16
        /// Its value.
        public var value: UInt32
        /// Any parameter with any value: unknown ones are to be ignored.
        public init(_ identifier: UInt16, _ value: UInt32) {
            self.identifier = identifier
            self.value = value
        }
        /// The most the peer's HPACK table may hold, in bytes; 4096 unless told.
        public static func headerTableSize(_ value: UInt32) -> Setting { Setting(1, value) }
        /// 0 or 1; from a server only 0.
        public static func enablePush(_ value: UInt32) -> Setting { Setting(2, value) }
        /// How many streams the peer may have open; any number unless told.
        public static func maxConcurrentStreams(_ value: UInt32) -> Setting { Setting(3, value) }
        /// The window of each stream, at most 2^31 - 1; 65,535 unless told.
        public static func initialWindowSize(_ value: UInt32) -> Setting { Setting(4, value) }
        /// The largest payload, 16,384 (unless told) to 2^24 - 1.
        public static func maxFrameSize(_ value: UInt32) -> Setting { Setting(5, value) }
        /// The largest field section, in bytes, uncompressed; advice only.
        public static func maxHeaderListSize(_ value: UInt32) -> Setting { Setting(6, value) }
        /// 1 allows CONNECT with `:protocol` (RFC 8441 3).
        public static func enableConnectProtocol(_ value: UInt32) -> Setting { Setting(8, value) }
        /// 1 says that the old priorities are not used (RFC 9218 2.1).
        public static func noPriorities(_ value: UInt32) -> Setting { Setting(9, value) }
    }
}

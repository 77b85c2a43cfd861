// SPDX-License-Identifier: Apache-2.0

// A frame of HTTP/3 as it is on a stream. It can represent illegal frames too, and does not judge them.

#if HTTP3

import URLLoadingWire

/// An HTTP/3 frame (RFC 9114 §7.1), valid or not.
///
/// ```swift
/// try await peer.send(.headers([":status": "200"]), .data(Array("hi".utf8)), on: request.stream, endStream: true)
/// var frame = HTTP3Frame.data(Array("hi".utf8))
/// frame.declaredLength = 9    // more than there is
/// ```
///
/// A frame of HTTP/3 does not name its stream: it is sent on one.
public struct HTTP3Frame: Sendable, Hashable, CustomStringConvertible {
    /// The frame type, at most 2^62 - 1.
    public var kind: Kind
    /// The bytes after type and length.
    public var payload: [UInt8]
    /// The stated length, at most 2^62 - 1; `nil` for the actual length of the payload.
    public var declaredLength: UInt64?

    /// Creates a frame from its parts.
    public init(_ kind: Kind, payload: [UInt8] = []) {
        self.kind = kind
        self.payload = payload
    }

    /// A frame type (RFC 9114 §7.2).
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The type's number.
        public let rawValue: UInt64
        /// Creates a type from any number; receivers ignore unknown types (RFC 9114 §9).
        public init(rawValue: UInt64) { self.rawValue = rawValue }
        /// DATA: a part of a body.
        public static let data = Kind(rawValue: 0)
        /// HEADERS: a field section.
        public static let headers = Kind(rawValue: 1)
        /// CANCEL_PUSH: a push that is not wanted.
        public static let cancelPush = Kind(rawValue: 3)
        /// SETTINGS: parameters for the peer.
        public static let settings = Kind(rawValue: 4)
        /// PUSH_PROMISE: announces a pushed response.
        public static let pushPromise = Kind(rawValue: 5)
        /// GOAWAY: ends a connection.
        public static let goAway = Kind(rawValue: 7)
        /// MAX_PUSH_ID: how many pushes a client permits.
        public static let maxPushID = Kind(rawValue: 13)
        /// PRIORITY_UPDATE: a new priority for a request (RFC 9218 §7.2).
        public static let priorityUpdate = Kind(rawValue: 0xF0700)

        private static let names: [UInt64: String] = [
            0: "DATA", 1: "HEADERS", 3: "CANCEL_PUSH", 4: "SETTINGS", 5: "PUSH_PROMISE", 7: "GOAWAY",
            13: "MAX_PUSH_ID", 0xF0700: "PRIORITY_UPDATE",
        ]
        /// The name in the specification, or the number.
        public var description: String { Self.names[rawValue] ?? "frame of type \(rawValue)" }
    }

    /// The error code of a stream or connection (RFC 9114 §8.1, RFC 9204 §6).
    public struct ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The code's number, at most 2^62 - 1.
        public let rawValue: UInt64
        /// Creates a code from any number; unknown ones have no special meaning.
        public init(rawValue: UInt64) { self.rawValue = rawValue }
        /// H3_NO_ERROR: no error.
        public static let noError = ErrorCode(rawValue: 0x100)
        /// H3_GENERAL_PROTOCOL_ERROR: the peer violated a rule for which there is no specific code.
        public static let generalProtocolError = ErrorCode(rawValue: 0x101)
        /// H3_INTERNAL_ERROR: an internal error of the sender.
        public static let internalError = ErrorCode(rawValue: 0x102)
        /// H3_STREAM_CREATION_ERROR: the peer opened a stream that it may not.
        public static let streamCreationError = ErrorCode(rawValue: 0x103)
        /// H3_CLOSED_CRITICAL_STREAM: a stream ended that the connection needs.
        public static let closedCriticalStream = ErrorCode(rawValue: 0x104)
        /// H3_FRAME_UNEXPECTED: a frame at a place or time where it is forbidden.
        public static let frameUnexpected = ErrorCode(rawValue: 0x105)
        /// H3_FRAME_ERROR: a frame of a wrong form or length.
        public static let frameError = ErrorCode(rawValue: 0x106)
        /// H3_EXCESSIVE_LOAD: the peer causes excessive load.
        public static let excessiveLoad = ErrorCode(rawValue: 0x107)
        /// H3_ID_ERROR: the number of a stream or push is wrong.
        public static let idError = ErrorCode(rawValue: 0x108)
        /// H3_SETTINGS_ERROR: SETTINGS are wrong.
        public static let settingsError = ErrorCode(rawValue: 0x109)
        /// H3_MISSING_SETTINGS: the first frame of a control stream is not SETTINGS.
        public static let missingSettings = ErrorCode(rawValue: 0x10A)
        /// H3_REQUEST_REJECTED: the request was not processed, and may be retried.
        public static let requestRejected = ErrorCode(rawValue: 0x10B)
        /// H3_REQUEST_CANCELLED: the stream is no longer needed.
        public static let requestCancelled = ErrorCode(rawValue: 0x10C)
        /// H3_REQUEST_INCOMPLETE: a stream ended before its message.
        public static let requestIncomplete = ErrorCode(rawValue: 0x10D)
        /// H3_MESSAGE_ERROR: a malformed message.
        public static let messageError = ErrorCode(rawValue: 0x10E)
        /// H3_VERSION_FALLBACK: the request requires HTTP/1.1.
        public static let versionFallback = ErrorCode(rawValue: 0x110)
        /// QPACK_DECOMPRESSION_FAILED: a field section cannot be decoded.
        public static let qpackDecompressionFailed = ErrorCode(rawValue: 0x200)
        /// QPACK_ENCODER_STREAM_ERROR: an instruction of an encoder is wrong.
        public static let qpackEncoderStreamError = ErrorCode(rawValue: 0x201)
        /// QPACK_DECODER_STREAM_ERROR: an instruction of a decoder is wrong.
        public static let qpackDecoderStreamError = ErrorCode(rawValue: 0x202)

        /// The name in the specification, or the number.
        public var description: String { HTTP3ErrorCode(rawValue: rawValue).description }
    }

    /// One parameter of SETTINGS (RFC 9114 §7.2.4.1, RFC 9204 §5).
    public struct Setting: Sendable, Hashable {
        /// The parameter's identifier, at most 2^62 - 1.
        public var identifier: UInt64
        /// The parameter's value, at most 2^62 - 1.
        public var value: UInt64
        /// Creates any parameter with any value; receivers ignore unknown ones.
        public init(_ identifier: UInt64, _ value: UInt64) {
            self.identifier = identifier
            self.value = value
        }
        /// SETTINGS_MAX_FIELD_SECTION_SIZE: the largest field section in uncompressed bytes; advisory only.
        public static func maxFieldSectionSize(_ value: UInt64) -> Setting { Setting(6, value) }
        /// SETTINGS_QPACK_MAX_TABLE_CAPACITY: the limit of the peer's QPACK table in bytes; 0 by default. A test
        /// server decodes no fields that refer to a table.
        public static func qpackMaxTableCapacity(_ value: UInt64) -> Setting { Setting(1, value) }
        /// SETTINGS_QPACK_BLOCKED_STREAMS: how many streams may wait for the table; 0 by default.
        public static func qpackBlockedStreams(_ value: UInt64) -> Setting { Setting(7, value) }
    }
}

extension HTTP3Frame {
    /// Creates DATA.
    public static func data(_ bytes: [UInt8]) -> HTTP3Frame { HTTP3Frame(.data, payload: bytes) }
    /// Creates HEADERS with literal fields, which refer to no table.
    public static func headers(_ fields: HTTP2Fields) -> HTTP3Frame {
        HTTP3Frame(.headers, payload: QPACK.section(fields))
    }
    /// Creates SETTINGS.
    public static func settings(_ settings: [Setting] = []) -> HTTP3Frame {
        HTTP3Frame(
            .settings,
            payload: settings.flatMap { QUICInteger.bytes($0.identifier) + QUICInteger.bytes($0.value) })
    }
    /// Creates GOAWAY: requests from this stream on were not processed (RFC 9114 §5.2). Of a server that is a stream
    /// that clients open in both directions, a multiple of 4.
    public static func goAway(from stream: UInt64) -> HTTP3Frame {
        HTTP3Frame(.goAway, payload: QUICInteger.bytes(stream))
    }

    /// The frame as bytes.
    public var bytes: [UInt8] {
        QUICInteger.bytes(kind.rawValue) + QUICInteger.bytes(declaredLength ?? UInt64(payload.count)) + payload
    }

    /// The parameters of SETTINGS; `nil` for other frames, and for a payload that is not a list of pairs.
    public var settings: [Setting]? {
        guard kind == .settings else { return nil }
        var (rest, settings) = (payload[...], [Setting]())
        while !rest.isEmpty {
            guard let (identifier, first) = QUICInteger.read(rest),
                let (value, second) = QUICInteger.read(rest.dropFirst(first))
            else { return nil }
            settings.append(Setting(identifier, value))
            rest = rest.dropFirst(first + second)
        }
        return settings
    }

    /// The number in GOAWAY, CANCEL_PUSH or MAX_PUSH_ID; `nil` for other frames, and for another payload than one
    /// number.
    public var number: UInt64? {
        guard [.goAway, .cancelPush, .maxPushID].contains(kind), let (value, count) = QUICInteger.read(payload[...]),
            count == payload.count
        else { return nil }
        return value
    }

    /// One line.
    public var description: String { "\(kind), \(declaredLength ?? UInt64(payload.count)) bytes" }
}

#endif

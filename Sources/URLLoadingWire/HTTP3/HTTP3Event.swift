// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// An event found in the received bytes of streams, or caused by sending.
package enum HTTP3Event: Sendable, Equatable {
    /// An interim response (1xx); more will follow.
    case informational(Int64, HTTP1ResponseHead)
    /// The head of the final response.
    case response(Int64, HTTP1ResponseHead)
    /// A part of the body: its range in the memory that the input is a part of.
    case data(Int64, Range<Int>)
    /// A part of the body that had to wait for fields of its stream, which were compressed with others.
    case lateData(Int64, [UInt8])
    /// The response is complete.
    case end(Int64, trailers: Headers)
    /// The number of bytes of the request's body that went into frames; more may be queued now.
    case sent(Int64, Int)
    /// The last byte of the request went into a frame.
    case sentAll(Int64)
    /// The peer reset the stream.
    case reset(Int64, HTTP3ErrorCode)
    /// The codec reset the stream because of a violation by the peer.
    case violation(Int64, WireViolation)
    /// The request was never processed by the peer: it may be retried, whatever its method (RFC 9114 §4.1.1).
    case unprocessed(Int64)
    /// The peer's settings have arrived.
    case settings
    /// The peer processes no streams from this one on; those are reported as `unprocessed`.
    case goAway(from: Int64)
    /// The connection must be closed because of a violation that concerns all of it.
    case failed(WireViolation, HTTP3ErrorCode)
}

/// What the codec asks of the streams of the transport.
package enum HTTP3StreamOrder: Sendable, Equatable {
    /// End both directions.
    case abort(Int64, HTTP3ErrorCode)
    case stopReceiving(Int64, HTTP3ErrorCode)
    case stopSending(Int64, HTTP3ErrorCode)
    /// Bytes that were held for their stream, and are consumed.
    case consumed(Int64, Int)
}

/// The error codes of streams and connections (RFC 9114 §8.1, RFC 9204 §6).
package struct HTTP3ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static let noError = Self(rawValue: 0x100)
    package static let generalProtocolError = Self(rawValue: 0x101)
    package static let internalError = Self(rawValue: 0x102)
    package static let excessiveLoad = Self(rawValue: 0x107)
    package static let settingsError = Self(rawValue: 0x109)
    package static let requestRejected = Self(rawValue: 0x10B)
    package static let requestCancelled = Self(rawValue: 0x10C)
    package static let requestIncomplete = Self(rawValue: 0x10D)
    package static let messageError = Self(rawValue: 0x10E)
    package static let versionFallback = Self(rawValue: 0x110)
    package static let qpackDecoderStreamError = Self(rawValue: 0x202)

    private static let names = [
        "H3_NO_ERROR", "H3_GENERAL_PROTOCOL_ERROR", "H3_INTERNAL_ERROR", "H3_STREAM_CREATION_ERROR",
        "H3_CLOSED_CRITICAL_STREAM", "H3_FRAME_UNEXPECTED", "H3_FRAME_ERROR", "H3_EXCESSIVE_LOAD", "H3_ID_ERROR",
        "H3_SETTINGS_ERROR", "H3_MISSING_SETTINGS", "H3_REQUEST_REJECTED", "H3_REQUEST_CANCELLED",
        "H3_REQUEST_INCOMPLETE", "H3_MESSAGE_ERROR", "H3_CONNECT_ERROR", "H3_VERSION_FALLBACK",
    ]

    /// The name in the specification.
    package var description: String {
        switch rawValue {
        case 0x100..<0x100 + UInt64(Self.names.count): Self.names[Int(rawValue - 0x100)]
        case 0x200: "QPACK_DECOMPRESSION_FAILED"
        case 0x201: "QPACK_ENCODER_STREAM_ERROR"
        case 0x202: "QPACK_DECODER_STREAM_ERROR"
        default: "error \(rawValue)"
        }
    }
}

#endif

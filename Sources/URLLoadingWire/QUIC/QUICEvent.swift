// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// An event found in a received datagram, or caused by a deadline or by sending.
package enum QUICEvent: Sendable, Equatable {
    /// The handshake is over, and the peer was verified within it. Streams can be opened.
    case handshakeCompleted
    /// The server has rejected early data: the streams that were opened for it are gone without an event, and their
    /// numbers are given again (RFC 9001 §4.6.2). `handshakeCompleted` follows.
    case earlyDataRejected
    /// The peer has confirmed that its handshake is over too (RFC 9001 §4.1.2).
    case handshakeConfirmed
    /// Bytes of a stream: their range in `QUICCodec.received`. `isEnd`: the peer has ended its direction.
    case data(Int64, Range<Int>, isEnd: Bool)
    /// The peer has received that many bytes more of a stream, in order.
    case acknowledged(Int64, Int)
    /// The peer resets its direction of a stream (RESET_STREAM).
    case reset(Int64, UInt64)
    /// More may be sent on a stream that was blocked by the peer's flow control.
    case unblocked(Int64)
    /// Both directions of a stream are over; the code is that of a reset.
    case closed(Int64, UInt64?)
    /// The peer permits more streams in both directions.
    case streamsPermitted
    /// A token for later connections to this server (RFC 9000 §8.1.3).
    case token([UInt8])
    /// The peer has answered on a path, which is the one that is sent on from now on.
    case moved(UInt32)
    /// The peer has not answered on a path.
    case pathFailed(UInt32)
    /// The connection is over. The output may contain a last datagram.
    case ended(QUICEnd)
}

/// Why a connection is over.
package enum QUICEnd: Sendable, Equatable {
    /// The owner closed it.
    case closedHere
    /// The peer closed it.
    case closedByPeer(QUICErrorCode)
    /// The peer has lost its state (a stateless reset, RFC 9000 §10.3).
    case forgottenByPeer
    /// The peer was silent for the idle timeout.
    case idle
    case handshakeTimedOut
    /// TLS failed: this side sent the alert, or found the peer's messages wrong (RFC 8446 §6).
    case handshakeFailed(alert: UInt8)
    /// The peer speaks no version of QUIC that is supported here (RFC 9000 §6).
    case noCommonVersion
    /// A rule of the connection was broken.
    case violation(WireViolation)
    /// ngtcp2 gives the connection up without a word to the peer.
    case dropped
}

/// The code with which a connection is closed (RFC 9000 §20).
package enum QUICErrorCode: Sendable, Hashable {
    case application(UInt64)
    case transport(QUICTransportError)
}

/// The error codes of the transport (RFC 9000 §20.1).
package struct QUICTransportError: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static let noError = Self(rawValue: 0)
    package static let internalError = Self(rawValue: 1)
    package static let connectionRefused = Self(rawValue: 2)
    package static let applicationError = Self(rawValue: 12)

    /// The error for an alert of TLS (RFC 9001 §4.8).
    package init(alert: UInt8) { self.init(rawValue: 0x100 + UInt64(alert)) }
    /// The alert of TLS; `nil` for other errors.
    package var alert: UInt8? { (0x100...0x1FF).contains(rawValue) ? UInt8(rawValue - 0x100) : nil }

    private static let names = [
        "NO_ERROR", "INTERNAL_ERROR", "CONNECTION_REFUSED", "FLOW_CONTROL_ERROR", "STREAM_LIMIT_ERROR",
        "STREAM_STATE_ERROR", "FINAL_SIZE_ERROR", "FRAME_ENCODING_ERROR", "TRANSPORT_PARAMETER_ERROR",
        "CONNECTION_ID_LIMIT_ERROR", "PROTOCOL_VIOLATION", "INVALID_TOKEN", "APPLICATION_ERROR",
        "CRYPTO_BUFFER_EXCEEDED", "KEY_UPDATE_ERROR", "AEAD_LIMIT_REACHED", "NO_VIABLE_PATH",
    ]

    /// The name in the specification.
    package var description: String {
        if let alert { return "CRYPTO_ERROR \(alert)" }
        return rawValue < UInt64(Self.names.count) ? Self.names[Int(rawValue)] : "error \(rawValue)"
    }
}

/// Datagrams to send on one path, one after the other in a buffer.
package struct QUICDatagrams: Sendable, Equatable {
    /// The bytes of all.
    package let count: Int
    /// The size of each; the last one may be smaller.
    package let size: Int
    /// The mark of congestion that their packets carry.
    package let ecn: UInt8
    /// The number of the path.
    package let path: UInt32
}

#endif

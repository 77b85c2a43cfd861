// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// The TLS of one connection, which the codec is handed: this layer knows no OpenSSL and no certificates.
///
/// ngtcp2's helper drives TLS within calls of the codec. The event `handshakeCompleted` comes only after the peer's
/// certificate was verified.
package protocol QUICSecurity: AnyObject {
    /// The object of ngtcp2's helper for the TLS library.
    var handle: UnsafeMutableRawPointer { get }
    /// Names the connection that drives this object; `nil` once there is none.
    func bind(to connection: OpaquePointer?)
    /// The application protocol that a finished handshake has agreed on (RFC 7301).
    var applicationProtocol: String? { get }
    /// Whether the server of a finished handshake has accepted early data (RFC 8446 §4.2.10).
    var hasAcceptedEarlyData: Bool { get }
    /// Called before calls that may reach the TLS library.
    func beginCalls()
}

/// The bytes of streams that are to be sent. They must stay where they are until they are acknowledged, or their stream
/// has ended.
package protocol QUICStreamSource: AnyObject {
    /// Returns the bytes to send next, of which any number may be taken; `nil` if there are none now.
    /// - Parameter pieces: filled from the beginning.
    func nextOutput(_ pieces: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> QUICStreamOutput?
    /// Called with the number of bytes that went into a packet, which is 0 for an end without bytes.
    func took(_ count: Int, on stream: Int64)
    /// Called if the peer's flow control permits no more on a stream, until the event `unblocked`.
    func isBlocked(_ stream: Int64)
    /// Called if a stream takes no bytes any more, because a side has ended it.
    func isStopped(_ stream: Int64)
}

/// What a source offers.
package struct QUICStreamOutput {
    package let stream: Int64
    /// The number of pieces.
    package let pieces: Int
    /// Whether the stream ends behind them.
    package let isEnd: Bool

    package init(stream: Int64, pieces: Int, isEnd: Bool) {
        (self.stream, self.pieces, self.isEnd) = (stream, pieces, isEnd)
    }
}

#endif

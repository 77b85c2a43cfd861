// SPDX-License-Identifier: Apache-2.0

/// An event found in the received bytes, or caused by sending.
package enum HTTP2Event: Sendable, Equatable {
    /// An interim response (1xx); more will follow.
    case informational(Int32, HTTP1ResponseHead)
    /// The head of the final response.
    case response(Int32, HTTP1ResponseHead)
    /// A part of the body: its range in the input of this call.
    case data(Int32, Range<Int>)
    /// The response is complete.
    case end(Int32, trailers: Headers)
    /// The number of bytes of the request's body that went into frames; more may be queued now.
    case sent(Int32, Int)
    /// The last byte of the request went into a frame.
    case sentAll(Int32)
    /// The peer reset the stream.
    case reset(Int32, HTTP2ErrorCode)
    /// The codec reset the stream because of a violation by the peer.
    case violation(Int32, WireViolation)
    /// The request was never processed by the peer: it may be retried, whatever its method (RFC 9113 §8.7).
    case unprocessed(Int32)
    /// The peer's limit of concurrent streams, from its SETTINGS.
    case concurrency(Int)
    /// The peer acknowledged the client's SETTINGS.
    case settingsAcknowledged
    /// The peer's reply to a PING.
    case pong
    /// The peer accepts no new streams. Streams above the last one that it names are reported as `unprocessed`.
    /// - last: the last stream that the peer has processed or will process.
    case goAway(HTTP2ErrorCode, last: Int32)
    /// The connection must be closed because of a violation that concerns all of it. The output contains a GOAWAY with
    /// the reason.
    case failed(WireViolation)
}

/// A request in the form of HTTP/2.
package struct HTTP2Request: Sendable {
    package var method: Method
    package var scheme: String
    /// Host and port, which HTTP/1 sends as Host (RFC 9113 §8.3.1).
    package var authority: [UInt8]
    /// Path and query.
    package var path: [UInt8]
    package var headers: Headers
    package var framing: HTTP1BodyFraming
    /// The urgency of RFC 9218 §4.1, 0 to 7; the default is 3.
    package var urgency: Int
    /// The protocol of an Extended CONNECT (RFC 8441 §4), used on the stream after a 2xx response. The method is then
    /// CONNECT, whatever it is in HTTP/1, and the body lasts until either side ends it.
    package var tunnelProtocol: String?

    package init(
        method: Method, scheme: String, authority: [UInt8], path: [UInt8], headers: Headers = Headers(),
        framing: HTTP1BodyFraming = .none, urgency: Int = 3
    ) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.headers = headers
        self.framing = framing
        self.urgency = urgency
    }
}

/// What the codec found in the bytes it was given, or did with those it has sent.
package enum HTTP2Event: Sendable, Equatable {
    /// An interim response (1xx); more will come.
    case informational(Int32, HTTP1ResponseHead)
    /// The head of the final response.
    case response(Int32, HTTP1ResponseHead)
    /// A part of the body: where it lies in the input of this call.
    case data(Int32, Range<Int>)
    /// The response is complete.
    case end(Int32, trailers: Headers)
    /// So many bytes of the request's body went into frames; there may be room for more.
    case sent(Int32, Int)
    /// The last byte of the request did.
    case sentAll(Int32)
    /// The stream was ended by the peer.
    case reset(Int32, HTTP2ErrorCode)
    /// The stream was ended by us, because of what the peer sent.
    case violation(Int32, WireViolation)
    /// The request never reached the peer's application: it may be sent again, whatever it asks for
    /// (RFC 9113 8.7).
    case unprocessed(Int32)
    /// The peer's SETTINGS: how many streams it allows at a time.
    case concurrency(Int)
    /// The peer acknowledged our SETTINGS.
    case settingsAcknowledged
    /// The answer to a PING of ours.
    case pong
    /// The peer takes no more streams. Those above the last it names come back as `unprocessed`.
    case goAway(HTTP2ErrorCode)
    /// The connection must be closed: a rule was broken that holds for all of it. What is in the output tells the
    /// peer.
    case failed(WireViolation)
}

/// A request as HTTP/2 writes it.
package struct HTTP2Request: Sendable {
    package var method: Method
    package var scheme: String
    /// Host and port: what HTTP/1 sends as Host (RFC 9113 8.3.1).
    package var authority: [UInt8]
    /// Path and query.
    package var path: [UInt8]
    package var headers: Headers
    package var framing: HTTP1BodyFraming
    /// RFC 9218 4.1, 0 to 7, 3 by default.
    package var urgency: Int
    /// Extended CONNECT (RFC 8441 4): what is spoken on the stream once the answer is 2xx. The method is CONNECT then,
    /// whatever it is in HTTP/1, and the body goes on until either side ends it.
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

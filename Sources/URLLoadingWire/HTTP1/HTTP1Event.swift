/// What the codec found in the bytes it was given.
package enum HTTP1Event: Sendable, Equatable {
    /// The head of a request; server role only.
    case request(HTTP1RequestHead)
    /// An interim response, 1xx but not 101; more will come.
    case informational(HTTP1ResponseHead)
    /// The head of the final response.
    case response(HTTP1ResponseHead)
    /// A part of the body: where it lies in the input of this call.
    case data(Range<Int>)
    /// The message is complete.
    case end(trailers: Headers)
    /// 101, or 2xx to CONNECT: what follows in the input belongs to the other protocol.
    case upgraded(HTTP1ResponseHead)
}

/// The head of a request as it was received.
package struct HTTP1RequestHead: Sendable, Equatable {
    package var method: Method
    /// The request target, printable ASCII, otherwise unchecked (RFC 9112 3.2).
    package var target: String
    package var version: HTTPVersion
    package var headers: Headers

    package init(method: Method, target: String, version: HTTPVersion, headers: Headers) {
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
    }
}

/// The head of a response as it was received.
package struct HTTP1ResponseHead: Sendable, Equatable {
    package var status: Status
    /// For people only (RFC 9112 4). Empty when there was none.
    package var reason: String
    package var version: HTTPVersion
    package var headers: Headers

    package init(status: Status, reason: String, version: HTTPVersion, headers: Headers) {
        self.status = status
        self.reason = reason
        self.version = version
        self.headers = headers
    }
}

/// How the end of a body that we send is marked (RFC 9112 6).
package enum HTTP1BodyFraming: Sendable, Hashable {
    /// No content: the message ends with its head. `sendEnd` is not needed, and harmless.
    case none
    /// So many bytes, by Content-Length.
    case length(Int64)
    /// By chunks, when the length is not known.
    case chunked
    /// By closing the connection; responses only.
    case untilClose
}

/// Whether the connection may carry another exchange (RFC 9112 9.3).
package enum HTTP1Reuse: Sendable, Hashable {
    /// Both messages are complete and both sides want to go on.
    case yes
    /// Something is still under way.
    case notYet
    /// It must be closed.
    case never
}

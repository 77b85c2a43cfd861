// SPDX-License-Identifier: Apache-2.0

/// An event that the codec found in its input.
package enum HTTP1Event: Sendable, Equatable {
    /// The head of a request; server role only.
    case request(HTTP1RequestHead)
    /// An interim response, 1xx except 101; more will follow.
    case informational(HTTP1ResponseHead)
    /// The head of the final response.
    case response(HTTP1ResponseHead)
    /// A part of the body: its range in the input of this call.
    case data(Range<Int>)
    /// The message is complete.
    case end(trailers: Headers)
    /// 101, or 2xx to CONNECT: the rest of the input belongs to the other protocol.
    case upgraded(HTTP1ResponseHead)
}

/// The head of a received request.
package struct HTTP1RequestHead: Sendable, Equatable {
    package var method: Method
    /// The request target, printable ASCII, otherwise unchecked (RFC 9112 §3.2).
    package var target: String
    package var version: HTTPVersion
    package var headers: Headers
}

/// The head of a received response.
package struct HTTP1ResponseHead: Sendable, Equatable {
    package var status: Status
    /// The reason phrase, for display only (RFC 9112 §4). Empty if there was none.
    package var reason: String
    package var version: HTTPVersion
    package var headers: Headers
    /// The rules that the head breaks, and that were tolerated.
    package var violations = WireViolations()
}

/// How the end of a sent body is marked (RFC 9112 §6).
package enum HTTP1BodyFraming: Sendable, Hashable {
    /// No content: the message ends with its head. `sendEnd` is not required, but harmless.
    case none
    /// A length in bytes, sent as Content-Length.
    case length(Int64)
    /// Chunks, when the length is not known.
    case chunked
    /// Closing the connection; for responses only.
    case untilClose
}

/// Whether the connection may carry another exchange (RFC 9112 §9.3).
package enum HTTP1Reuse: Sendable, Hashable {
    /// Both messages are complete and both sides keep the connection alive.
    case yes
    /// A message is not complete yet.
    case notYet
    /// The connection must be closed.
    case never
}

// SPDX-License-Identifier: Apache-2.0

// Protocol violations, one reason each: of a received message (`LoadError.party` is `.remote`), or of a message that
// the caller asked to send (`.local`).

import URLLoadingWire

extension LoadError.Reason {
    /// A malformed status line (RFC 9112 §4).
    public static let malformedStatusLine = Self(.malformedStatusLine)
    /// A major version other than 1.
    public static let unsupportedVersion = Self(.unsupportedVersion)
    /// A line that ends without CR (RFC 9112 §2.2).
    public static let bareLineFeed = Self(.bareLineFeed)
    /// The first header line begins with white space, so it continues no field (RFC 9112 §5.2).
    public static let obsoleteFolding = Self(.obsoleteFolding)
    /// White space between a field name and its colon (RFC 9112 §5.1).
    public static let whitespaceBeforeColon = Self(.whitespaceBeforeColon)
    /// A field name that is not a token (RFC 9110 §5.1).
    public static let malformedFieldName = Self(.malformedFieldName)
    /// A control character in a field value (RFC 9110 §5.5).
    public static let malformedFieldValue = Self(.malformedFieldValue)
    /// A method that is not a token (RFC 9110 §9.1).
    public static let malformedMethod = Self(.malformedMethod)
    /// The head exceeds ``Configuration/Limits/headSize``.
    public static let headTooLarge = Self(.headTooLarge)
    /// More fields than ``Configuration/Limits/fieldCount``.
    public static let tooManyFields = Self(.tooManyFields)
    /// Two Host fields in a request.
    public static let duplicateHost = Self(.duplicateHost)
    /// A Host field whose value is not an authority (RFC 9110 §7.2).
    public static let malformedHost = Self(.malformedHost)
    /// A field that only the library may write, or that this kind of message must not have.
    public static let forbiddenField = Self(.forbiddenField)
    /// Content-Length fields that differ, or that differ from the body (RFC 9112 §6.3).
    public static let conflictingContentLength = Self(.conflictingContentLength)
    /// A Content-Length that is not a number.
    public static let malformedContentLength = Self(.malformedContentLength)
    /// Transfer-Encoding together with Content-Length (RFC 9112 §6.1).
    public static let transferEncodingWithContentLength = Self(.transferEncodingWithContentLength)
    /// A transfer coding other than chunked.
    public static let unsupportedTransferEncoding = Self(.unsupportedTransferEncoding)
    /// A Transfer-Encoding in an HTTP/1.0 message (RFC 9112 §6.1).
    public static let transferEncodingInOldVersion = Self(.transferEncodingInOldVersion)
    /// A malformed chunk size (RFC 9112 §7.1).
    public static let malformedChunkSize = Self(.malformedChunkSize)
    /// A chunk size beyond 63 bits.
    public static let chunkSizeOverflow = Self(.chunkSizeOverflow)
    /// Chunk extensions beyond ``Configuration/Limits/chunkExtensionSize``.
    public static let chunkExtensionsTooLarge = Self(.chunkExtensionsTooLarge)
    /// Chunk data not followed by CRLF.
    public static let malformedChunkEnd = Self(.malformedChunkEnd)
    /// Trailer fields beyond ``Configuration/Limits/trailerSize``.
    public static let trailersTooLarge = Self(.trailersTooLarge)
    /// More than ``Configuration/Limits/informationalCount`` interim responses.
    public static let tooManyInformational = Self(.tooManyInformational)
    /// A response without an outstanding request.
    public static let unexpectedResponse = Self(.unexpectedResponse)
    /// A switch of protocols that was not requested (RFC 9110 §15.2.2).
    public static let unexpectedUpgrade = Self(.unexpectedUpgrade)

    /// The server speaks another protocol than HTTP/2 (RFC 9113 §3.4).
    public static let notHTTP2 = Self(.notHTTP2)
    /// A violation of HTTP/2 by a connection or a stream (RFC 9113 §5.4) that has no reason of its own.
    public static let http2Violation = Self(.http2Violation)
    /// The server made a flow-control window overflow, or sent more than one allows (RFC 9113 §5.2, §6.9).
    public static let http2FlowControl = Self(.http2FlowControl)
    /// An HTTP/2 response that is not well-formed (RFC 9113 §8.1.1).
    public static let http2MalformedMessage = Self(.http2MalformedMessage)
    /// More useless frames than the limit allows, as a flooding server sends them (RFC 9113 §10.5).
    public static let http2Flood = Self(.http2Flood)
    /// HTTP/3 was demanded (``Configuration/HTTPVersions/http3PriorKnowledge``), and the load cannot use it: the detail
    /// says why.
    public static let notHTTP3 = Self("notHTTP3", -1004)
    /// The server reset the request's stream (RFC 9113 §5.4.2); the detail is the error code it gave.
    public static let streamReset = Self("streamReset", -1005)

    init(_ code: WireViolation.Code) { self.init(code.rawValue, -1011) }
}

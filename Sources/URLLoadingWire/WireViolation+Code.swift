// SPDX-License-Identifier: Apache-2.0

extension WireViolation {
    /// A code for each distinct violation. New ones may be added: switch with a `default`.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The name of the code, stable across releases.
        public let rawValue: String

        /// Creates a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ name: String) { rawValue = name }

        // MARK: The head of a message

        /// The first bytes cannot begin an HTTP/1 response: the peer speaks another protocol.
        public static let notHTTP = Code("notHTTP")
        /// A status line violates the grammar (RFC 9112 §4).
        public static let malformedStatusLine = Code("malformedStatusLine")
        /// A request line violates the grammar (RFC 9112 §3).
        public static let malformedRequestLine = Code("malformedRequestLine")
        /// An HTTP version other than 1.x (RFC 9110 §2.5).
        public static let unsupportedVersion = Code("unsupportedVersion")
        /// A line ended by LF alone (RFC 9112 §2.2).
        public static let bareLineFeed = Code("bareLineFeed")
        /// A folded line where folding is not allowed (RFC 9112 §5.2).
        public static let obsoleteFolding = Code("obsoleteFolding")
        /// Whitespace between a field name and its colon (RFC 9112 §5.1).
        public static let whitespaceBeforeColon = Code("whitespaceBeforeColon")
        /// A field name is not a token (RFC 9110 §5.1).
        public static let malformedFieldName = Code("malformedFieldName")
        /// A control character in a field value (RFC 9110 §5.5).
        public static let malformedFieldValue = Code("malformedFieldValue")
        /// A method is not a token (RFC 9110 §9.1).
        public static let malformedMethod = Code("malformedMethod")
        /// A request target contains a byte that must not be sent (RFC 9112 §3.2).
        public static let malformedTarget = Code("malformedTarget")
        /// A head exceeds the limit in bytes.
        public static let headTooLarge = Code("headTooLarge")
        /// A section has more fields than the limit.
        public static let tooManyFields = Code("tooManyFields")
        /// A request without a Host field (RFC 9112 §3.2).
        public static let missingHost = Code("missingHost")
        /// More than one Host field (RFC 9112 §3.2).
        public static let duplicateHost = Code("duplicateHost")
        /// A Host value is not an authority (RFC 9112 §3.2).
        public static let malformedHost = Code("malformedHost")
        /// A field that the sender must not set (RFC 9110 §6.5.1, §7.6.1).
        public static let forbiddenField = Code("forbiddenField")

        // MARK: Framing

        /// Several different lengths (RFC 9112 §6.3), or one that differs from the length of the body sent.
        public static let conflictingContentLength = Code("conflictingContentLength")
        /// A length is not a decimal number below 2^63 (RFC 9110 §8.6).
        public static let malformedContentLength = Code("malformedContentLength")
        /// Both framing fields in one message (RFC 9112 §6.3).
        public static let transferEncodingWithContentLength = Code("transferEncodingWithContentLength")
        /// A transfer coding other than one final `chunked` (RFC 9112 §6.1).
        public static let unsupportedTransferEncoding = Code("unsupportedTransferEncoding")
        /// Transfer-Encoding in an HTTP/1.0 message (RFC 9112 §6.1).
        public static let transferEncodingInOldVersion = Code("transferEncodingInOldVersion")
        /// A chunk header violates the grammar (RFC 9112 §7.1).
        public static let malformedChunkSize = Code("malformedChunkSize")
        /// A chunk size of 2^63 or more (RFC 9112 §7.1).
        public static let chunkSizeOverflow = Code("chunkSizeOverflow")
        /// Chunk extensions exceed the limit for one body (RFC 9112 §7.1.1).
        public static let chunkExtensionsTooLarge = Code("chunkExtensionsTooLarge")
        /// Chunk data not followed by CRLF (RFC 9112 §7.1).
        public static let malformedChunkEnd = Code("malformedChunkEnd")
        /// A trailer section exceeds the limit in bytes.
        public static let trailersTooLarge = Code("trailersTooLarge")
        /// More interim responses than the limit (RFC 9110 §15.2).
        public static let tooManyInformational = Code("tooManyInformational")
        /// The input ended inside a message (RFC 9112 §8).
        public static let prematureEnd = Code("prematureEnd")
        /// A response arrived without a request (RFC 9112 §9.3).
        public static let unexpectedResponse = Code("unexpectedResponse")
        /// A 101 response to a request without Upgrade (RFC 9110 §7.8).
        public static let unexpectedUpgrade = Code("unexpectedUpgrade")
        /// The body has more or fewer bytes than announced (RFC 9110 §8.6).
        public static let bodyLengthMismatch = Code("bodyLengthMismatch")
        /// A call does not fit the state of the codec.
        public static let illegalState = Code("illegalState")

        // MARK: HTTP/2

        /// The peer's first frame is not SETTINGS: it speaks another protocol (RFC 9113 §3.4).
        public static let notHTTP2 = Code("notHTTP2")
        /// A rule of the connection or of a stream was violated (RFC 9113 §5.4), other than those with a code of their
        /// own.
        public static let http2Violation = Code("http2Violation")
        /// A flow-control window overflowed, or more DATA arrived than a window permits (RFC 9113 §5.2, §6.9).
        public static let http2FlowControl = Code("http2FlowControl")
        /// A malformed message: its fields, their order, or its length (RFC 9113 §8.1.1).
        public static let http2MalformedMessage = Code("http2MalformedMessage")
        /// The number of frames without effect exceeds the limit (RFC 9113 §10.5).
        public static let http2Flood = Code("http2Flood")
        /// No further stream can begin on this connection (RFC 9113 §5.1.1).
        public static let http2NoStream = Code("http2NoStream")

        // MARK: URLs

        /// The text is not a URI reference (RFC 3986 §4.1).
        public static let invalidURL = Code("invalidURL")
        /// A host is neither a name nor an address (RFC 3986 §3.2.2).
        public static let invalidHost = Code("invalidHost")
        /// A host ends in a number and is not an IPv4 address of four decimal parts, such as `127.1` or `0x7f.0.0.1`:
        /// programs read it differently (RFC 3986 §7.4).
        public static let ambiguousAddress = Code("ambiguousAddress")
        /// A port is not a number up to 65535 (RFC 3986 §3.2.3).
        public static let invalidPort = Code("invalidPort")
        /// An authority that other parsers may read as another host (RFC 3986 §7.6).
        public static let ambiguousAuthority = Code("ambiguousAuthority")
        /// The scheme is not supported.
        public static let unsupportedScheme = Code("unsupportedScheme")

        // MARK: Content codings

        /// The content does not match its coding (RFC 9110 §8.4).
        public static let contentDecodingFailed = Code("contentDecodingFailed")
        /// The decoded content exceeds the limit.
        public static let contentDecodingLimit = Code("contentDecodingLimit")
        /// Coded content ends too early.
        public static let truncatedContent = Code("truncatedContent")
        /// More content codings than the limit.
        public static let tooManyCodings = Code("tooManyCodings")
    }
}

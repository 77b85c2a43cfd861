extension WireViolation {
    /// One code per distinct reason. New ones may be added: switch with a `default`.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The name of the code, stable across releases.
        public let rawValue: String

        /// Makes a code of a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ name: String) { rawValue = name }

        // MARK: The head of a message

        /// The first bytes cannot begin an HTTP/1 response: another protocol answers.
        public static let notHTTP = Code("notHTTP")
        /// A status line out of grammar (RFC 9112 4).
        public static let malformedStatusLine = Code("malformedStatusLine")
        /// A request line out of grammar (RFC 9112 3).
        public static let malformedRequestLine = Code("malformedRequestLine")
        /// An HTTP version other than 1.x (RFC 9110 2.5).
        public static let unsupportedVersion = Code("unsupportedVersion")
        /// A line ended by LF alone (RFC 9112 2.2).
        public static let bareLineFeed = Code("bareLineFeed")
        /// A folded line where folding is not allowed (RFC 9112 5.2).
        public static let obsoleteFolding = Code("obsoleteFolding")
        /// Whitespace between a field name and its colon (RFC 9112 5.1).
        public static let whitespaceBeforeColon = Code("whitespaceBeforeColon")
        /// A field name that is no token (RFC 9110 5.1).
        public static let malformedFieldName = Code("malformedFieldName")
        /// A control character in a field value (RFC 9110 5.5).
        public static let malformedFieldValue = Code("malformedFieldValue")
        /// A method that is no token (RFC 9110 9.1).
        public static let malformedMethod = Code("malformedMethod")
        /// A request target with a byte that may not be sent (RFC 9112 3.2).
        public static let malformedTarget = Code("malformedTarget")
        /// A head beyond the limit in bytes.
        public static let headTooLarge = Code("headTooLarge")
        /// A section with more fields than the limit.
        public static let tooManyFields = Code("tooManyFields")
        /// A request without a Host field (RFC 9112 3.2).
        public static let missingHost = Code("missingHost")
        /// More than one Host field (RFC 9112 3.2).
        public static let duplicateHost = Code("duplicateHost")
        /// A Host value that is no authority (RFC 9112 3.2).
        public static let malformedHost = Code("malformedHost")
        /// A field that the sender may not set (RFC 9110 6.5.1, 7.6.1).
        public static let forbiddenField = Code("forbiddenField")

        // MARK: Framing

        /// Several, different lengths (RFC 9112 6.3), or one that differs from what is sent.
        public static let conflictingContentLength = Code("conflictingContentLength")
        /// A length that is no decimal number below 2^63 (RFC 9110 8.6).
        public static let malformedContentLength = Code("malformedContentLength")
        /// Both framing fields in one message (RFC 9112 6.3).
        public static let transferEncodingWithContentLength = Code("transferEncodingWithContentLength")
        /// A transfer coding other than one final `chunked` (RFC 9112 6.1).
        public static let unsupportedTransferEncoding = Code("unsupportedTransferEncoding")
        /// Transfer-Encoding in an HTTP/1.0 message (RFC 9112 6.1).
        public static let transferEncodingInOldVersion = Code("transferEncodingInOldVersion")
        /// A chunk header out of grammar (RFC 9112 7.1).
        public static let malformedChunkSize = Code("malformedChunkSize")
        /// A chunk size of 2^63 or more (RFC 9112 7.1).
        public static let chunkSizeOverflow = Code("chunkSizeOverflow")
        /// Chunk extensions beyond the limit for one body (RFC 9112 7.1.1).
        public static let chunkExtensionsTooLarge = Code("chunkExtensionsTooLarge")
        /// Chunk data not followed by CRLF (RFC 9112 7.1).
        public static let malformedChunkEnd = Code("malformedChunkEnd")
        /// A trailer section beyond the limit in bytes.
        public static let trailersTooLarge = Code("trailersTooLarge")
        /// More interim responses than the limit (RFC 9110 15.2).
        public static let tooManyInformational = Code("tooManyInformational")
        /// End of input inside a message (RFC 9112 8).
        public static let prematureEnd = Code("prematureEnd")
        /// A response nobody asked for (RFC 9112 9.3).
        public static let unexpectedResponse = Code("unexpectedResponse")
        /// A 101 that was not asked for (RFC 9110 7.8).
        public static let unexpectedUpgrade = Code("unexpectedUpgrade")
        /// More or fewer body bytes than announced (RFC 9110 8.6).
        public static let bodyLengthMismatch = Code("bodyLengthMismatch")
        /// A call that does not fit the state of the codec.
        public static let illegalState = Code("illegalState")

        // MARK: HTTP/2

        /// The peer's first bytes are no SETTINGS: it speaks something else (RFC 9113 3.4).
        public static let notHTTP2 = Code("notHTTP2")
        /// A rule of the connection or of a stream was broken (RFC 9113 5.4), other than those with a code of their
        /// own.
        public static let http2Violation = Code("http2Violation")
        /// A flow-control window that overflows, or more DATA than a window allows (RFC 9113 5.2, 6.9).
        public static let http2FlowControl = Code("http2FlowControl")
        /// A message that is not well-formed: its fields, their order, its length (RFC 9113 8.1.1).
        public static let http2MalformedMessage = Code("http2MalformedMessage")
        /// Frames without use beyond the limit (RFC 9113 10.5).
        public static let http2Flood = Code("http2Flood")
        /// No further stream can begin on this connection (RFC 9113 5.1.1).
        public static let http2NoStream = Code("http2NoStream")

        // MARK: URLs

        /// Text that is no URI reference (RFC 3986 4.1).
        public static let invalidURL = Code("invalidURL")
        /// A host that is no name and no address (RFC 3986 3.2.2).
        public static let invalidHost = Code("invalidHost")
        /// A port that is no number up to 65535 (RFC 3986 3.2.3).
        public static let invalidPort = Code("invalidPort")
        /// An authority that others may read as another host (RFC 3986 7.6).
        public static let ambiguousAuthority = Code("ambiguousAuthority")
        /// A scheme this floor does not know.
        public static let unsupportedScheme = Code("unsupportedScheme")

        // MARK: Content codings

        /// Content that is not what its coding says (RFC 9110 8.4).
        public static let contentDecodingFailed = Code("contentDecodingFailed")
        /// Content that grows beyond the limit.
        public static let contentDecodingLimit = Code("contentDecodingLimit")
        /// Coded content that ends too early.
        public static let truncatedContent = Code("truncatedContent")
        /// More layers of coding than the limit.
        public static let tooManyCodings = Code("tooManyCodings")
    }
}

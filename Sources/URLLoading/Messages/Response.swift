public import FoundationEssentials
public import URLLoadingWire

/// What was answered, before its body: for every scheme the same shape.
public struct Response: Sendable, CustomStringConvertible {
    /// Where it came from: after redirects, the last URL.
    public let url: URL
    /// The media type of the body, if one was stated. Parsed at each call.
    public var mediaType: MediaType? { statedMediaType ?? http?.headers[.contentType].flatMap { MediaType($0) } }
    private let statedMediaType: MediaType?
    /// The number of body bytes the caller will get, if known. Unknown for chunked and for
    /// compressed bodies.
    public let expectedLength: Int64?
    /// Status and fields, for http and https.
    public let http: HTTPHead?

    /// The name of the text encoding, from the media type's charset.
    public var textEncodingName: String? { mediaType?.charset }

    package init(url: URL, mediaType: MediaType? = nil, expectedLength: Int64?, http: HTTPHead?) {
        self.url = url
        statedMediaType = mediaType
        self.expectedLength = expectedLength
        self.http = http
    }

    public var description: String {
        guard let http else { return url.absoluteString }
        return "\(http.version) \(http.status.code) \(mediaType.map { "\($0)" } ?? "-") \(expectedLength.map(String.init) ?? "?")"
    }
}

/// Status and fields of an HTTP response (RFC 9110 §15, §5).
public struct HTTPHead: Sendable {
    public let status: Status
    /// The version the peer stated.
    public let version: HTTPVersion
    public let headers: Headers

    /// For responses that do not come from a server: stubs, handlers, tests.
    public init(status: Status, version: HTTPVersion = .http11, headers: Headers = Headers()) {
        self.status = status
        self.version = version
        self.headers = headers
    }

    init(_ head: HTTP1ResponseHead) {
        self.init(status: head.status, version: head.version, headers: head.headers)
    }
}

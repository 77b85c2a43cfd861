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
    /// The status code; 200 for schemes without one (`file`, `data`, `ftp`), as their responses are successful.
    ///
    /// ```swift
    /// guard response.status == .ok else { return }
    /// ```
    public var status: Status { http?.status ?? .ok }
    /// The response's fields; empty for schemes without any.
    public var headers: Headers { http?.headers ?? Headers() }

    /// The name of the text encoding, from the media type's charset.
    public var textEncodingName: String? { mediaType?.charset }

    /// What a handler attached to it.
    public var properties = Properties()
    /// Whether a cache may keep what a handler answers, as far as HTTP lets it (RFC 9111 §3): answers to GET of http and
    /// https. `nil`, the default, keeps nothing. What a session gets from servers it keeps before handlers see it. A handler
    /// is asked before the cache: it looks for itself (``ResponseCache/cachedResponse(for:)``) if what is kept shall answer.
    public var storagePolicy: StoragePolicy?

    /// What a cache may do with a response, whatever the protocol says.
    public enum StoragePolicy: Sendable, Hashable {
        case allowed
        /// In memory, never in a file.
        case allowedInMemoryOnly
        case notAllowed
    }

    /// For handlers: sessions make the responses of servers.
    /// - Parameters:
    ///   - url: where it came from.
    ///   - mediaType: of the body; `nil` takes it from the Content-Type of `http`.
    ///   - expectedLength: bytes of the body, at least 0; `nil` if nobody knows.
    ///   - http: status and fields, if there are any.
    public init(url: URL, mediaType: MediaType? = nil, expectedLength: Int64? = nil, http: HTTPHead? = nil) {
        self.url = url
        statedMediaType = mediaType
        self.expectedLength = expectedLength.map { max(0, $0) }
        self.http = http
    }

    public var description: String {
        guard let http else {
            return "\(url.withoutSecrets) \(mediaType.map { "\($0)" } ?? "-") \(expectedLength.map(String.init) ?? "?")"
        }
        return
            "\(http.version) \(http.status.code) \(mediaType.map { "\($0)" } ?? "-") \(expectedLength.map(String.init) ?? "?")"
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

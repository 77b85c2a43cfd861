// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

/// The response without its body, in one shape for every URL scheme.
public struct Response: Sendable, CustomStringConvertible {
    /// The URL of the response: after redirects, the final one.
    public let url: URL
    /// The media type of the body, if one was declared. Parsed at each call.
    public var mediaType: MediaType? { statedMediaType ?? http?.headers[.contentType].flatMap { MediaType($0) } }
    private let statedMediaType: MediaType?
    /// The number of body bytes that the caller will receive, if known. Unknown for chunked and for compressed bodies.
    public let expectedLength: Int64?
    /// The status and the header fields of an http or https response; `nil` for other schemes.
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

    /// The values that a handler attached.
    public var properties = Properties()
    /// Whether the session's cache may store a handler's response, within the rules of HTTP (RFC 9111 §3): only
    /// responses to GET over http and https are stored. `nil`, the default, does not store. Responses of servers are
    /// stored before handlers see them. A handler is called before the cache: to reuse a stored response it must look
    /// it up itself (``ResponseCache/cachedResponse(for:)``).
    public var storagePolicy: StoragePolicy?

    /// The permission to store a response, on top of the protocol's rules.
    public enum StoragePolicy: Sendable, Hashable {
        /// In memory and on disk.
        case allowed
        /// In memory, never in a file.
        case allowedInMemoryOnly
        /// Not at all.
        case notAllowed
    }

    /// Creates a response, for handlers: sessions create the responses of servers.
    /// - Parameters:
    ///   - url: the URL of the response.
    ///   - mediaType: the media type of the body; `nil` uses the Content-Type of `http`.
    ///   - expectedLength: the number of body bytes, at least 0; `nil` if unknown.
    ///   - http: the status and the fields, if there are any.
    public init(url: URL, mediaType: MediaType? = nil, expectedLength: Int64? = nil, http: HTTPHead? = nil) {
        self.url = url
        statedMediaType = mediaType
        self.expectedLength = expectedLength.map { max(0, $0) }
        self.http = http
    }

    public var description: String {
        var text = http.map { "\($0.version) \($0.status.code)" } ?? "\(url.withoutSecrets)"
        if let mediaType { text += " \(mediaType)" }
        if let expectedLength { text += ", \(expectedLength) bytes" }
        return text
    }
}

/// Status and fields of an HTTP response (RFC 9110 §15, §5).
public struct HTTPHead: Sendable {
    /// The status of the response.
    public let status: Status
    /// The HTTP version of the response.
    public let version: HTTPVersion
    /// The header fields, in the order in which they were received.
    public let headers: Headers
    /// The rules of HTTP that the response breaks, each once; empty for almost all. It was read by the precedence that
    /// the RFCs give (``Configuration/Strictness/tolerant``), and no cache stores it. Over HTTP/1 its connection
    /// carried nothing after it.
    ///
    /// ```swift
    /// for violation in response.http?.violations ?? [] { print(violation) }
    /// // bareLineFeed: a line ends with a line feed alone (RFC 9112 2.2)
    /// ```
    public var violations: [WireViolation] { tolerated.all }
    var tolerated: WireViolations { exceptions?.tolerated ?? WireViolations() }

    /// The reason phrase of the status line, as the server sent it (RFC 9112 §4). It is for display only: programs
    /// decide by ``status``. Empty where there is none: in HTTP/2 and HTTP/3, and from servers that leave it out. A
    /// head that was not read from a connection, such as that of a stored response or of a background transfer, has the
    /// registered phrase of its status.
    ///
    /// ```swift
    /// print(response.http?.reasonPhrase ?? "")       // Not Found, or what else the server says
    /// ```
    public var reasonPhrase: String { version.major > 1 ? "" : exceptions?.phrase ?? status.reasonPhrase }

    /// What few heads have. One reference, because a head is copied several times in each load, and a null reference
    /// is not counted.
    private final class Exceptions: Sendable {
        let tolerated: WireViolations
        /// `nil` for the registered phrase.
        let phrase: String?

        init(_ tolerated: WireViolations, _ phrase: String?) { (self.tolerated, self.phrase) = (tolerated, phrase) }
    }
    private let exceptions: Exceptions?

    /// Creates a head for responses that do not come from a server: stubs, handlers, tests.
    public init(status: Status, version: HTTPVersion = .http11, headers: Headers = Headers()) {
        self.status = status
        self.version = version
        self.headers = headers
        exceptions = nil
    }

    /// Creates a head made of a stored one.
    /// - Parameter tolerated: the violations of the answer that confirmed it.
    init(status: Status, version: HTTPVersion, headers: Headers, tolerated: WireViolations) {
        (self.status, self.version, self.headers) = (status, version, headers)
        exceptions = tolerated.isEmpty ? nil : Exceptions(tolerated, nil)
    }

    init(_ head: HTTP1ResponseHead) {
        (status, version, headers) = (head.status, head.version, head.headers)
        let isRegistered = head.version.major > 1 || head.reason == head.status.reasonPhrase
        exceptions =
            isRegistered && head.violations.isEmpty
            ? nil : Exceptions(head.violations, isRegistered ? nil : head.reason)
    }
}

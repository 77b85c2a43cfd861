public import FoundationEssentials
import URLLoadingWire

/// What to load, and how: a value. A load works on its own copy; later changes do not reach it.
///
/// ```swift
/// var request = Request(url: url, method: .post)
/// request.headers[.contentType] = "application/json"
/// request.body = .data(json)
/// let (data, response) = try await session.data(for: request)
/// ```
public struct Request: Sendable {
    /// The absolute URL. Whether it can be loaded is decided when it is.
    public var url: URL {
        didSet { target = Self.parse(url) }
    }
    /// The request method.
    public var method: Method
    /// Fields to send. Host, Content-Length and Transfer-Encoding are written by the library; a
    /// Content-Length given here must be right.
    public var headers: Headers
    /// What to send after the head.
    public var body: RequestBody?
    /// Overrides ``Configuration/idleTimeout``; more than zero.
    public var idleTimeout: Duration?
    /// Overrides ``Configuration/resourceTimeout``; more than zero.
    public var resourceTimeout: Duration?
    /// Whether stored responses may answer.
    public var cachePolicy = CachePolicy.useProtocol

    /// The URL as the wire wants it, computed once per URL rather than per load.
    var target: Result<Target, WireViolation>

    public init(url: URL, method: Method = .get, headers: Headers = Headers(), body: RequestBody? = nil) {
        self.url = url
        self.method = method
        self.headers = headers
        self.body = body
        target = Self.parse(url)
    }

    private static func parse(_ url: URL) -> Result<Target, WireViolation> {
        Result { () throws(WireViolation) in try Target(url.absoluteString) }
    }

    /// Whether a stored response may answer a request.
    ///
    /// Sessions do not store responses yet: every policy goes to the network, but for
    /// ``storedOnly``, which finds nothing.
    public enum CachePolicy: Sendable, Hashable {
        /// As HTTP says (RFC 9111).
        case useProtocol
        /// Never a stored response.
        case reload
        /// A stored response whatever its age; the network if there is none.
        case storedElseLoad
        /// A stored response whatever its age, or ``LoadError/Reason/notInCache``: no traffic.
        case storedOnly
    }
}

/// What a request sends after its head.
public struct RequestBody: Sendable {
    enum Content: Sendable {
        case data(Data)
        case stream(length: Int64?, @Sendable () -> AnyChunkIterator)
    }
    let content: Content

    /// These bytes, with their Content-Length.
    public static func data(_ data: Data) -> RequestBody { RequestBody(content: .data(data)) }

    /// A sequence of pieces, asked for when the body is sent, and again if it must be sent again (a
    /// redirect, a stale connection). Pulled no faster than the peer takes the bytes.
    ///
    /// ```swift
    /// request.body = .stream { lines.map { Array(($0 + "\n").utf8) } }
    /// ```
    /// - Parameters:
    ///   - length: the exact number of bytes; `nil` sends the body chunked (RFC 9112 §7.1).
    ///   - make: makes a fresh sequence each time.
    public static func stream<S: AsyncSequence & Sendable>(
        length: Int64? = nil, _ make: @escaping @Sendable () -> S
    ) -> RequestBody where S.Element == [UInt8] {
        RequestBody(content: .stream(length: length) { AnyChunkIterator(make()) })
    }

    var length: Int64? {
        switch content {
        case .data(let data): Int64(data.count)
        case .stream(let length, _): length
        }
    }
}

/// The iterator of a body sequence whose type nobody needs to know. Used by one task.
final class AnyChunkIterator: @unchecked Sendable {
    private let pull: () async throws -> [UInt8]?

    init<S: AsyncSequence>(_ sequence: S) where S.Element == [UInt8] {
        nonisolated(unsafe) var iterator = sequence.makeAsyncIterator()
        pull = { try await iterator.next() }
    }

    func next() async throws -> [UInt8]? { try await pull() }
}

public import FoundationEssentials
import URLLoadingIO
public import URLLoadingWire

/// What a request sends after its head.
///
/// ```swift
/// request.body = .file(URL(filePath: "/var/log/syslog"))
/// request.body = try .json(["name": "Ada"])
/// request.body = .form([("name", "Ada"), ("born", "1815")])
/// request.body = .stream { lines.map { Array(($0 + "\n").utf8) } }
/// ```
/// Content-Length is computed wherever the length is known; otherwise the body is chunked (RFC 9112 §7.1).
/// A Content-Type is sent if the body brings one and the request has none. A body is made anew for every
/// request it is sent with: a redirect, a challenge, a connection that turned out to be stale.
public struct RequestBody: Sendable {
    enum Content: Sendable {
        case data(Data)
        /// One after the other.
        case parts([Part])
        case stream(length: Int64?, trailers: (@Sendable () -> Headers)?, @Sendable () -> AnyChunkIterator)
        case provided
    }
    enum Part: Sendable {
        case data(Data)
        case file(path: String, range: Range<Int64>?)
    }
    let content: Content
    /// Sent as Content-Type unless the request has one.
    public var contentType: String?

    /// Bytes that are given, and none.
    package var isEmptyData: Bool { if case .data(let data) = content { data.isEmpty } else { false } }

    init(_ content: Content, contentType: String?) {
        self.content = content
        self.contentType = contentType
    }

    /// These bytes, as `application/octet-stream`.
    public static func data(_ data: Data) -> RequestBody {
        RequestBody(.data(data), contentType: "application/octet-stream")
    }

    /// A file, read as the peer takes it and never held in memory; its type by its name. On a connection
    /// without TLS its bytes do not pass through this process at all.
    ///
    /// The file is opened when the request is sent, and its length is that of this moment; if it becomes
    /// shorter while it is sent, the load ends with ``LoadError/Reason/requestBodyFailed``.
    /// - Parameters:
    ///   - url: a `file` URL of a regular file.
    ///   - range: the offsets of the bytes to send, within the file; `nil` sends all.
    public static func file(_ url: URL, range: Range<Int64>? = nil) -> RequestBody {
        RequestBody(
            .parts([.file(path: url.path(percentEncoded: false), range: range)]),
            contentType: FileTypes.mediaType(ofName: url.lastPathComponent).map { "\($0)" }
                ?? "application/octet-stream")
    }

    /// A value as JSON (RFC 8259).
    /// - Throws: what the encoder throws.
    public static func json(_ value: some Encodable, encoder: JSONEncoder = JSONEncoder()) throws -> RequestBody {
        RequestBody(.data(try encoder.encode(value)), contentType: "application/json")
    }

    /// Names and values as `application/x-www-form-urlencoded` (WHATWG URL §5.2), in this order.
    public static func form(_ fields: [(name: String, value: String)]) -> RequestBody {
        let text = fields.map { "\(FormCoding.encoded($0.name))=\(FormCoding.encoded($0.value))" }.joined(
            separator: "&")
        return RequestBody(.data(Data(text.utf8)), contentType: "application/x-www-form-urlencoded")
    }

    /// A sequence of pieces, asked for when the body is sent, and again if it must be sent again, or hashed before it
    /// is (Digest with auth-int): all must give the same bytes. Pulled no
    /// faster than the peer takes the bytes.
    /// - Parameters:
    ///   - length: the exact number of bytes; `nil` sends the body chunked.
    ///   - trailers: the fields after a chunked body (RFC 9110 §6.5), asked for when the sequence has ended.
    ///     With a length there are none. Announce them in a Trailer field if the server wants that.
    ///   - make: makes a fresh sequence each time.
    public static func stream<S: AsyncSequence & Sendable>(
        length: Int64? = nil, trailers: (@Sendable () -> Headers)? = nil, _ make: @escaping @Sendable () -> S
    ) -> RequestBody where S.Element: ContiguousBytes {
        RequestBody(
            .stream(length: length.map { max(0, $0) }, trailers: trailers) { AnyChunkIterator(make()) },
            contentType: nil)
    }

    /// A body that ``Decisions/bodyProvider`` is asked for each time one is needed.
    public static let provided = RequestBody(.provided, contentType: nil)

    /// The number of bytes, if that is known before files are opened.
    var length: Int64? {
        switch content {
        case .data(let data): Int64(data.count)
        case .parts(let parts):
            parts.reduce(0 as Int64?) { sum, part in
                guard let sum, let length = part.length else { return nil }
                return sum + length
            }
        case .stream(let length, _, _): length
        case .provided: nil
        }
    }
}

extension RequestBody.Part {
    /// The same for a file as it is now.
    var currentLength: Int64? {
        if let length { return length }
        guard case .file(let path, _) = self else { return nil }
        return (try? FileReader(path: path))?.size
    }

    fileprivate var length: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .file(_, let range): range.map { Int64($0.count) }
        }
    }
}

/// The iterator of a body sequence whose type nobody needs to know. Used by one task.
final class AnyChunkIterator: @unchecked Sendable {
    private let pull: () async throws -> Chunk?

    init<S: AsyncSequence>(_ sequence: S) where S.Element: ContiguousBytes {
        nonisolated(unsafe) var iterator = sequence.makeAsyncIterator()
        pull = {
            guard let piece = try await iterator.next() else { return nil }
            return piece as? Chunk ?? piece.withUnsafeBytes { Chunk(copying: $0) }
        }
    }

    /// The next piece; nil at the end. For tasks that run the caller's code anyway.
    func next() async throws -> Chunk? { try await pull() }
}

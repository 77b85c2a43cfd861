// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
public import URLLoadingWire

/// The body of a request.
///
/// ```swift
/// request.body = .file(URL(filePath: "/var/log/syslog"))
/// request.body = try .json(["name": "Ada"])
/// request.body = .form([("name", "Ada"), ("born", "1815")])
/// request.body = .stream { lines.map { Array(($0 + "\n").utf8) } }
/// ```
/// Content-Length is computed if the length is known; otherwise the body is chunked (RFC 9112 §7.1). A Content-Type is
/// sent if the body has one and the request has none. The body is opened anew for every request that sends it: after a
/// redirect, after an authentication challenge, after a stale connection.
public struct RequestBody: Sendable {
    enum Content: Sendable {
        case data(Data)
        /// Parts that are sent one after the other.
        case parts([Part])
        case stream(length: Int64?, trailers: (@Sendable () -> Headers)?, @Sendable () -> AnyChunkIterator)
        case provided
    }
    enum Part: Sendable {
        case data(Data)
        case file(path: String, range: Range<Int64>?)
    }
    let content: Content
    /// The Content-Type to send unless the request has one.
    public var contentType: String?

    /// True for a body of given bytes that is empty.
    package var isEmptyData: Bool { if case .data(let data) = content { data.isEmpty } else { false } }

    init(_ content: Content, contentType: String?) {
        self.content = content
        self.contentType = contentType
    }

    /// The given bytes, as `application/octet-stream`.
    public static func data(_ data: Data) -> RequestBody {
        RequestBody(.data(data), contentType: "application/octet-stream")
    }

    /// A file, streamed at the peer's pace and never held in memory; its Content-Type follows from its name. On a
    /// connection without TLS the kernel sends the bytes, and they do not pass through this process.
    ///
    /// The file is opened and measured when the request is sent; if it becomes shorter while it is sent, the load ends
    /// with ``LoadError/Reason/requestBodyFailed``.
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
    /// - Throws: the error of the encoder.
    public static func json(_ value: some Encodable, encoder: JSONEncoder = JSONEncoder()) throws -> RequestBody {
        RequestBody(.data(try encoder.encode(value)), contentType: "application/json")
    }

    /// Names and values as `application/x-www-form-urlencoded` (WHATWG URL §5.2), in this order.
    public static func form(_ fields: [(name: String, value: String)]) -> RequestBody {
        let text = fields.map { "\(FormCoding.encoded($0.name))=\(FormCoding.encoded($0.value))" }.joined(
            separator: "&")
        return RequestBody(.data(Data(text.utf8)), contentType: "application/x-www-form-urlencoded")
    }

    /// A sequence of pieces. It is created when the body is sent, and again if the body must be sent again or hashed
    /// before (Digest with auth-int): all sequences must yield the same bytes. It is pulled no faster than the peer
    /// accepts the bytes.
    /// - Parameters:
    ///   - length: the exact number of bytes; `nil` sends the body chunked.
    ///   - trailers: returns the trailer fields (RFC 9110 §6.5); called when the sequence has ended. Not called if
    ///     `length` is given. Announce them in a Trailer field if the server requires that.
    ///   - make: creates a fresh sequence each time.
    public static func stream<S: AsyncSequence & Sendable>(
        length: Int64? = nil, trailers: (@Sendable () -> Headers)? = nil, _ make: @escaping @Sendable () -> S
    ) -> RequestBody where S.Element: ContiguousBytes {
        RequestBody(
            .stream(length: length.map { max(0, $0) }, trailers: trailers) { AnyChunkIterator(make()) },
            contentType: nil)
    }

    /// A body that ``Decisions/bodyProvider`` supplies each time one is needed.
    public static let provided = RequestBody(.provided, contentType: nil)

    /// The number of bytes, if it is known before files are opened.
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

extension RequestBody {
    /// Passes the bytes of the body, piece by piece, as they would be sent now. Blocks while files are read. Nothing of
    /// a sequence is passed, which only the request that sends it reads.
    package func forEachPiece(_ take: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch content {
        case .data(let data): try data.withUnsafeBytes(take)
        case .parts(let parts): for part in parts { try part.forEachPiece(take) }
        case .stream, .provided: break
        }
    }
}

extension RequestBody.Part {
    fileprivate func forEachPiece(_ take: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch self {
        case .data(let data): try data.withUnsafeBytes(take)
        case .file(let path, let range):
            let file = try FileReader(path: path)
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
            defer { buffer.deallocate() }
            var offset = range?.lowerBound ?? 0
            let end = range?.upperBound ?? file.size
            while offset < end {
                let count = try file.read(into: buffer, at: offset)
                guard count > 0 else { return }
                let used = Int(min(Int64(count), end - offset))
                try take(UnsafeRawBufferPointer(rebasing: buffer[..<used]))
                offset += Int64(used)
            }
        }
    }

    /// The length of the part in bytes; that of a file is its length at this moment.
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

/// The iterator of a body's sequence, type-erased. Used by one task at a time.
final class AnyChunkIterator: Sendable {
    // Unsafe: the caller's iterator need not be `Sendable`, and is called by one task at a time.
    private nonisolated(unsafe) let pull: () async throws -> SequencePiece?

    init<S: AsyncSequence>(_ sequence: S) where S.Element: ContiguousBytes {
        nonisolated(unsafe) var iterator = sequence.makeAsyncIterator()
        pull = {
            guard let piece = try await iterator.next() else { return nil }
            return SequencePiece(piece)
        }
    }

    /// Returns the next piece; nil at the end. Runs the caller's code, so call it only in tasks that may.
    func next() async throws -> SequencePiece? { try await pull() }
}

/// A piece of a caller's sequence. The types that programs use are kept as they are: copying a body costs a quarter of
/// sending it.
enum SequencePiece: Sendable {
    case chunk(Chunk)
    case bytes([UInt8])
    case data(Data)

    init(_ piece: some ContiguousBytes) {
        self =
            switch piece {
            case let chunk as Chunk: .chunk(chunk)
            case let bytes as [UInt8]: .bytes(bytes)
            case let data as Data: .data(data)
            default: .chunk(piece.withUnsafeBytes { Chunk(copying: $0) })
            }
    }

    var count: Int {
        switch self {
        case .chunk(let chunk): chunk.count
        case .bytes(let bytes): bytes.count
        case .data(let data): data.count
        }
    }

    /// Calls `use` with the bytes, which are valid during the call only.
    func withBytes<R>(_ use: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        switch self {
        case .chunk(let chunk): try chunk.withUnsafeBytes(use)
        case .bytes(let bytes): try bytes.withUnsafeBytes(use)
        case .data(let data): try data.withUnsafeBytes(use)
        }
    }

    /// The piece as a chunk; bytes of other types are copied.
    var chunk: Chunk {
        if case .chunk(let chunk) = self { chunk } else { withBytes { Chunk(copying: $0) } }
    }
}

public import FoundationEssentials

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
    ) -> RequestBody where S.Element: ContiguousBytes {
        RequestBody(content: .stream(length: length) { AnyChunkIterator(make()) })
    }

    /// The bytes that would be sent: for handlers and tests, which answer in a server's place. A body of a
    /// sequence is asked for anew.
    /// - Parameter limit: the most bytes to collect, at least 0; ``LoadError/Reason/bodyTooLarge`` beyond.
    /// - Throws: what the sequence throws.
    public func collect(upTo limit: Int) async throws -> Data {
        var data = Data()
        switch content {
        case .data(let whole): data = whole
        case .stream(_, let make):
            let pieces = make()
            while data.count <= limit, let piece = try await pieces.next() { data.append(piece) }
        }
        guard data.count <= limit else { throw LoadError.tooLarge(limit) }
        return data
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
    private let pull: () async throws -> Chunk?

    init<S: AsyncSequence>(_ sequence: S) where S.Element: ContiguousBytes {
        nonisolated(unsafe) var iterator = sequence.makeAsyncIterator()
        pull = {
            guard let piece = try await iterator.next() else { return nil }
            return piece as? Chunk ?? piece.withUnsafeBytes { Chunk(copying: $0) }
        }
    }

    /// The next piece; `nil` at the end. For whoever runs in a task of the caller's code anyway.
    func next() async throws -> Chunk? { try await pull() }

    /// The next piece; `nil` at the end. The sequence is the caller's code: stopping the load cancels
    /// it, and does not wait for it.
    func next(for load: LoadControl) async -> Result<Chunk?, any Error> {
        let pulled = await Interruption.run(load) { [self] () -> Result<Chunk?, any Error> in
            do { return .success(try await pull()) } catch { return .failure(error) }
        }
        guard case .answered(let piece) = pulled else { return .failure(CancellationError()) }
        return piece
    }
}

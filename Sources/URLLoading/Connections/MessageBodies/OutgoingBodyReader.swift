// SPDX-License-Identifier: Apache-2.0

// Reads a request's body in order while it is sent. It alone knows the source of the bytes (memory, files, a sequence
// of the caller's); HTTP/1.1, HTTP/2 and FTP frame and write them.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class OutgoingBodyReader {
    /// The next part of the body.
    enum NextPart {
        /// This many bytes are in memory: `withBytes` or `chunk` reads them, `advance` moves past them.
        case bytes(Int)
        /// Bytes of a file: the transport sends them itself, or `loadNow` or `read` loads them into memory.
        case file(FileReader, offset: Int64, count: Int64)
        /// The sequence has not delivered its next piece. Its arrival wakes the sender.
        case pending
        /// The trailers, if the body is a sequence without a length.
        case end(Headers)
    }

    private let body: OutgoingBody
    private var part = 0
    /// The number of bytes taken from the current part.
    private var offset: Int64 = 0
    /// A piece of the sequence or of a file, in memory.
    private var piece: SequencePiece?
    private var pieceTaken = 0
    /// The pieces of a sequence; nil for other bodies.
    private let pieces: PieceSource?
    /// The number of bytes that the sequence has delivered.
    private var streamed: Int64 = 0
    private let token: LoadHandle

    /// - Parameter wake: wakes the sender after `nextPart` has returned `.pending`.
    init(_ body: OutgoingBody, for token: LoadHandle, waking wake: @escaping @Sendable () -> Void) {
        self.body = body
        self.token = token
        pieces = if case .stream(_, _, let pieces) = body { PieceSource(pieces, token.leaked, wake) } else { nil }
    }

    /// Returns the next part of the body. A sequence is asked here, on the calling thread: its code runs until it has
    /// the next piece, or suspends.
    func nextPart() throws(LoadError) -> NextPart {
        if let piece { return .bytes(piece.count - pieceTaken) }
        while true {
            switch body {
            case .data(let data):
                return offset < data.count ? .bytes(data.count - Int(offset)) : .end(Headers())
            case .parts(let parts):
                guard part < parts.count else { return .end(Headers()) }
                switch parts[part] {
                case .data(let data) where offset < data.count: return .bytes(data.count - Int(offset))
                case .file(let reader, let range) where offset < range.count:
                    return .file(reader, offset: range.lowerBound + offset, count: Int64(range.count) - offset)
                case .data, .file: (part, offset) = (part + 1, 0)
                }
            case .stream(let length, let trailers, _):
                guard let pulled = pieces?.take() else { return .pending }
                // A cancelled sequence may throw before the load notices its own cancellation; the load's stop reason
                // takes precedence.
                if case .failure = pulled, let reason = token.stopReason { throw LoadError(reason, phase: .sending) }
                guard let next = try accept(pulled, length) else {
                    return .end(length == nil ? trailers?() ?? Headers() : Headers())
                }
                guard next.count > 0 else { continue }
                (piece, pieceTaken) = (next, 0)
                return .bytes(next.count)
            }
        }
    }

    /// True if no byte is left, as far as that is known without asking a sequence.
    var isAtEnd: Bool {
        switch body {
        case .data(let data): offset == data.count
        case .parts(let parts): piece == nil && part == parts.count
        case .stream: false
        }
    }

    private func accept(_ pulled: PieceSource.Piece, _ length: Int64?) throws(LoadError) -> SequencePiece? {
        let next: SequencePiece?
        do { next = try pulled.get() } catch {
            throw LoadError(.requestBodyFailed, phase: .sending, party: .local, underlying: error)
        }
        streamed += Int64(next?.count ?? 0)
        guard streamed <= length ?? .max, next != nil || streamed == length ?? streamed else {
            let words = next == nil ? "ended after \(streamed) bytes" : "has at least \(streamed) bytes"
            throw LoadError(
                .requestBodyFailed, phase: .sending, party: .local,
                detail: "the body \(words), and \(length ?? 0) were announced (RFC 9110 8.6)")
        }
        return next
    }

    // MARK: Bytes in memory

    /// Calls `use` with the bytes at the front. Call only after `nextPart` has returned `.bytes`.
    func withBytes<Result>(_ use: (UnsafeRawBufferPointer) -> Result) -> Result {
        if let piece { return piece.withBytes { use(UnsafeRawBufferPointer(rebasing: $0[pieceTaken...])) } }
        return data.withUnsafeBytes { use(UnsafeRawBufferPointer(rebasing: $0[Int(offset)...])) }
    }

    /// Returns the bytes at the front; those of chunks and files are not copied.
    func chunk(atMost most: Int) -> Chunk {
        guard case .chunk(let piece)? = piece else {
            return withBytes { Chunk(copying: UnsafeRawBufferPointer(rebasing: $0.prefix(most))) }
        }
        let start = piece.range.lowerBound + pieceTaken
        return Chunk(storage: piece.storage, range: start..<min(start + most, piece.range.upperBound))
    }

    private var data: Data {
        switch body {
        case .data(let data): data
        case .parts(let parts): if case .data(let data) = parts[part] { data } else { Data() }
        case .stream: Data()
        }
    }

    /// Moves past `count` bytes at the front, of memory or of a file.
    func advance(_ count: Int) {
        guard let piece else {
            offset += Int64(count)
            return
        }
        pieceTaken += count
        if pieceTaken == piece.count { self.piece = nil }
    }

    // MARK: Files

    /// Loads bytes of the file at the front into memory. Returns false if that would block.
    func loadNow(_ reader: FileReader, _ offset: Int64, count: Int) throws(LoadError) -> Bool {
        let storage = ChunkStorage(capacity: count)
        let read: Int?
        do throws(IOFailure) { read = try reader.readNow(into: storage.room(from: 0), at: offset) } catch {
            throw LoadError(file: error, .sending)
        }
        guard let read else { return false }
        try loaded(Chunk(storage: storage, range: 0..<read))
        return true
    }

    /// Reads bytes of a file on a thread that may block. Pass the result to `loaded`.
    static func read(
        _ reader: FileReader, _ offset: Int64, count: Int, for token: StopToken
    ) async throws(LoadError) -> Chunk {
        let storage = ChunkStorage(capacity: count)
        // The closure keeps the reader and the storage alive, even if the load stops waiting.
        let read = await BlockingThreads.files.call(token) { () -> Result<Int, IOFailure> in
            Result { () throws(IOFailure) in try reader.read(into: storage.room(from: 0), at: offset) }
        }
        guard let read else { throw LoadError(token.stopReason ?? .cancelled, phase: .sending) }
        do { return Chunk(storage: storage, range: 0..<(try read.get())) } catch {
            throw LoadError(file: error, .sending)
        }
    }

    /// Replaces the file's bytes at the front by `chunk`, which holds them in memory.
    func loaded(_ chunk: Chunk) throws(LoadError) {
        guard chunk.count > 0 else { throw fileChanged }
        offset += Int64(chunk.count)
        (piece, pieceTaken) = (.chunk(chunk), 0)
    }

    /// The error for a file that has become shorter since it was opened.
    var fileChanged: LoadError {
        guard case .parts(let parts) = body, part < parts.count, case .file(let reader, let range) = parts[part] else {
            return LoadError(.requestBodyFailed, phase: .sending, party: .system, detail: "the body became shorter")
        }
        return OutgoingBody.fileChanged(reader.path, missing: Int64(range.count) - offset)
    }

    /// Stops the body: a piece that was asked for is not awaited.
    func abandon() { pieces?.abandon() }
}

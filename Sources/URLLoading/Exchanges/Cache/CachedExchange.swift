// SPDX-License-Identifier: Apache-2.0

// A stored response as an exchange. Bytes in memory are delivered without suspension; files are read on a thread that
// may block.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class CachedExchange: Exchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    private let owner: LoadContext
    private let url: URL
    private let content: Content
    /// What is served of a stored response.
    struct Content {
        let head: HTTPHead
        let body: any StoredBody
        let stored: StoredResponse
        /// The owner of an answer that changed the fields of the stored response.
        var newer: AnswerMarks?
        /// The range of the body to deliver.
        let part: Range<Int64>
    }

    /// The range of the body still to be read.
    private var rest: Range<Int64>
    // The owner has the exchange alone.
    @exclusivity(unchecked)
    private var pipeline = BodyPipeline()
    private var record: TransactionRecord?
    let expectedLength: Int64?

    /// - Parameter length: the expected length of the response in bytes, if it is not that of the part.
    init(_ content: Content, to request: Request, for load: LoadContext, length: Int64? = nil) {
        self.content = content
        owner = load
        url = request.url
        let (body, part) = (content.body, content.part)
        rest = part
        expectedLength = length ?? Int64(part.count)
        // A body shorter than its head says takes the path of a file, which detects the damage.
        if let bytes = body.bytes, !part.isEmpty, part.upperBound <= Int64(bytes.count) {
            pipeline.add(
                Chunk(
                    storage: bytes.storage,
                    range: bytes.range.lowerBound + Int(part.lowerBound)..<bytes.range.lowerBound + Int(part.upperBound)
                ))
            rest = part.upperBound..<part.upperBound
        } else if !part.isEmpty, let ahead = body.ahead(from: part.lowerBound) {
            let count = min(ahead.count, Int(clamping: part.count))
            pipeline.add(
                Chunk(storage: ahead.storage, range: ahead.range.lowerBound..<ahead.range.lowerBound + count))
            rest = part.lowerBound + Int64(count)..<part.upperBound
        }
        guard let events = load.events else { return }
        record = events.beginCached(request)
        events.responded(response, record)
        record?.mark(.responseStart)
    }

    deinit { release() }

    var load: LoadContext? { owner }
    var head: HTTPHead? { content.head }
    var status: Status? { content.head.status }
    var trailers: Headers { Headers() }
    var response: Response { Response(url: url, expectedLength: expectedLength, http: content.head) }
    var hasOwnRecord: Bool { true }

    func marks(for query: CacheQuery) -> AnswerMarks {
        var marks = AnswerMarks(content.stored)
        if let newer = content.newer { marks.unite(newer) }
        return marks
    }

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        try pipeline.next(atMost: most, record) { rest.isEmpty ? .end : nil }
    }

    func fill(atMost most: Int) async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        guard !pipeline.hasPending, !rest.isEmpty else { return }
        let count = Int(min(Int64(Self.pieceSize), Int64(rest.count)))
        let read = await BlockingThreads.files.call(owner.handle) { [body = content.body, offset = rest.lowerBound] in
            Read(chunk: body.read(at: offset, atMost: count))
        }
        guard let read else { throw LoadError(owner.stopReason ?? .cancelled, phase: .receiving) }
        guard let chunk = read.chunk, chunk.count > 0, chunk.count <= rest.count else {
            throw LoadError(
                .cannotReadFile, phase: .receiving, party: .system, detail: "the stored body is damaged")
        }
        rest = rest.lowerBound + Int64(chunk.count)..<rest.upperBound
        pipeline.add(chunk)
    }

    private static let pieceSize = 128 * 1024
    private struct Read: Sendable { let chunk: Chunk? }

    func release() {
        pipeline.end()
        guard let record else { return }
        self.record = nil
        owner.events?.add(record)
    }
}

/// The empty body of an answer to HEAD or of a status without content.
final class EmptyBody: StoredBody {
    static let shared = EmptyBody()
    var length: Int64 { 0 }
    var bytes: Chunk? { nil }
    func read(at offset: Int64, atMost: Int) -> Chunk? { nil }
}

/// A stored beginning of a body and the rest from its server, as one response.
final class ConcatenatedExchange: Exchange {
    private let first: CachedExchange
    private let second: CacheTee
    private let hasBegunSecond = Atomic<Bool>(false)
    let expectedLength: Int64?
    private let answer: HTTPHead

    init(_ head: HTTPHead, _ first: CachedExchange, _ second: CacheTee, length: Int64) {
        (answer, self.first, self.second, expectedLength) = (head, first, second, length)
    }

    deinit { release() }

    var load: LoadContext? { first.load }
    var head: HTTPHead? { answer }
    var trailers: Headers { second.trailers }
    var response: Response { Response(url: first.response.url, expectedLength: expectedLength, http: answer) }
    var hasOwnRecord: Bool { true }

    func marks(for query: CacheQuery) -> AnswerMarks {
        var marks = first.marks(for: query)
        marks.unite(second.marks(for: query))
        return marks
    }

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        if !hasBegunSecond.load(ordering: .relaxed) {
            let piece = try first.buffered(atMost: most)
            guard case .end? = piece else { return piece }
            first.release()
            hasBegunSecond.store(true, ordering: .relaxed)
        }
        return try second.buffered(atMost: most)
    }

    func fill(atMost most: Int) async throws(LoadError) {
        if hasBegunSecond.load(ordering: .relaxed) {
            try await second.fill(atMost: most)
        } else {
            try await first.fill(atMost: most)
        }
    }

    func fillNow() throws(LoadError) -> Bool {
        hasBegunSecond.load(ordering: .relaxed) ? try second.fillNow() : false
    }
    func setUnread(_ isUnread: Bool) { second.setUnread(isUnread) }

    func release() {
        first.release()
        second.release()
    }
}

// SPDX-License-Identifier: Apache-2.0

// An exchange whose body is stored while the caller reads it, without a second buffer and without reading ahead of the
// caller. A body that is abandoned before its end is discarded, except for a beginning that a range request can
// complete.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class CacheTee: Exchange, @unchecked Sendable {
    private let inner: any Exchange
    private let owner: LoadContext
    private let stored: StoredResponse
    private let cache: SessionCache
    private var writer: (any CacheWriting)?
    /// The cache decision, asked when the body is complete.
    private var decision: Decision<CachedResponse, CacheDecision>?
    private var collected: [UInt8] = []
    /// The shared fetch whose followers wait for this body.
    private let shared: SharedFetch?
    /// Checked before storing: false if a handler has meanwhile received answers of other owners; `nil` for responses
    /// that no handler made.
    private let isStillMarked: (@Sendable () -> Bool)?
    /// Chunks that were read before the caller asked for them.
    private var ahead: [Chunk] = []
    private var pending = PendingChunk()
    private var hasEnded = false
    private var isReleased = false
    private var count: Int64 = 0

    init(
        _ inner: any Exchange, _ load: LoadContext, _ stored: StoredResponse, _ cache: SessionCache,
        writer: (any CacheWriting)?,
        decision: Decision<CachedResponse, CacheDecision>?, shared: SharedFetch?,
        isStillMarked: (@Sendable () -> Bool)? = nil
    ) {
        self.isStillMarked = isStillMarked
        (self.inner, owner, self.stored, self.cache) = (inner, load, stored, cache)
        (self.writer, self.decision, self.shared) = (writer, decision, shared)
    }

    deinit { release() }

    var load: LoadContext? { owner }
    var head: HTTPHead? { inner.head }
    var response: Response { inner.response }
    var expectedLength: Int64? { inner.expectedLength }
    var trailers: Headers { inner.trailers }
    var redirect: Request? { inner.redirect }
    var network: (any NetworkExchange)? { inner.network }
    var hasOwnRecord: Bool { inner.hasOwnRecord }
    /// Taken from the stored response, because the exchange with the server may have been released already.
    func marks(for query: CacheQuery) -> AnswerMarks { AnswerMarks(stored) }

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        while pending.chunk == nil {
            if !ahead.isEmpty {
                pending.chunk = ahead.removeFirst()
                break
            }
            if hasEnded { return decision == nil ? .end : nil }
            switch try inner.buffered(atMost: most) {
            case .chunk(let chunk)?:
                keep(chunk)
                return .chunk(chunk)
            case .end?: end()
            case nil: return nil
            }
        }
        return pending.take(atMost: most)
    }

    func fill(atMost most: Int) async throws(LoadError) {
        if hasEnded { return try await decide() }
        if let writer, writer.isBehind { await writer.ready(owner.handle) }
        try await inner.fill(atMost: most)
    }

    func fillNow() throws(LoadError) -> Bool {
        if hasEnded || writer?.isBehind == true { return false }
        return try inner.fillNow()
    }
    var isSending: Bool { !hasEnded && inner.isSending }
    func continueSending() async throws(LoadError) { try await inner.continueSending() }
    func setUnread(_ isUnread: Bool) { if !hasEnded { inner.setUnread(isUnread) } }

    /// Reads a short body at once; used for a redirect, whose body the load does not read.
    func readAhead(upTo most: Int) async throws(LoadError) {
        var total = 0
        while total <= most {
            switch try inner.buffered(atMost: .max) {
            case .chunk(let chunk)?:
                keep(chunk)
                ahead.append(chunk)
                total += chunk.count
            case .end?: return end()
            case nil: try await inner.fill(atMost: .max)
            }
        }
    }

    // MARK: Storing

    private func keep(_ chunk: Chunk) {
        count += Int64(chunk.count)
        if let writer {
            guard !writer.append(chunk) else { return }
            self.writer = nil
            shared?.settle(.unstorable)
        } else if decision != nil {
            guard chunk.count <= cache.maximumEntrySize - collected.count else {
                (decision, collected) = (nil, [])
                shared?.settle(.unstorable)
                return
            }
            collected.append(contentsOf: [UInt8](chunk))
        }
    }

    private func end() {
        hasEnded = true
        inner.release()
        guard let writer else {
            if decision == nil { shared?.settle(.unstorable) }
            return
        }
        self.writer = nil
        guard mayStore else {
            writer.abandon(isResumable: false)
            shared?.settle(.unstorable)
            return
        }
        // A partial response stays partial unless it is complete now.
        if case .beginning(let before, let whole) = stored.extent, before + count != whole {
            // A body longer than the server announced is not resumable.
            writer.abandon(isResumable: whole.map { before + count < $0 } ?? true)
            shared?.settle(.unstorable)
        } else {
            writer.finish()
            tell()
            shared?.settle(.stored)
        }
    }

    private var mayStore: Bool { isStillMarked?() ?? true }

    /// Reports the store to observers, unless the response can only be used by a policy that ignores freshness.
    private func tell() {
        if stored.knownRules.isOfUse { owner.events?.note(.stored) }
    }

    private func decide() async throws(LoadError) {
        guard let decision else { return }
        self.decision = nil
        let proposed = CachedResponse(
            response: response, data: Data(collected),
            storagePolicy: stored.isMemoryOnly ? .allowedInMemoryOnly : .allowed)
        var entry: CachedResponse?
        switch try await owner.ask(decision, proposed) {
        case .store: entry = proposed
        case .instead(let other): entry = other
        case .skip: break
        }
        let isStored = entry.map { store($0) } ?? false
        if isStored { tell() }
        shared?.settle(isStored ? .stored : .unstorable)
    }

    private func store(_ entry: CachedResponse) -> Bool {
        guard mayStore, entry.storagePolicy != .notAllowed, entry.data.count <= cache.maximumEntrySize
        else { return false }
        let isStored = cache.storage.store(stored.altered(by: entry), body: [UInt8](entry.data))
        if !isStored { owner.noteRefusal(of: stored, by: cache.storage) }
        return isStored
    }

    func release() {
        guard !isReleased else { return }
        isReleased = true
        if !hasEnded { finishWithWhatIsHere() }
        inner.release()
        if let writer {
            self.writer = nil
            writer.abandon(isResumable: count > 0 && isResumable && mayStore)
        }
        (decision, collected, ahead, pending.chunk) = (nil, [], [], nil)
        shared?.settle(.failed)
    }

    /// Stores the rest of a body that has already arrived when the caller stops reading.
    private func finishWithWhatIsHere() {
        guard owner.stopReason == nil, writer != nil else { return }
        while !hasEnded, let piece = try? inner.buffered(atMost: .max) {
            if case .chunk(let chunk) = piece { keep(chunk) } else { end() }
        }
    }

    /// RFC 9111 §3.3: only the beginning of a response with a strong tag and a known length can be completed.
    private var isResumable: Bool {
        guard stored.status == .ok, !stored.isDecoded, stored.strongTag != nil,
            !stored.headers.contains(.contentEncoding)
        else { return false }
        if case .beginning = stored.extent { return true }
        return inner.expectedLength.map { count < $0 } ?? false
    }
}

extension StoredResponse {
    /// Returns the response with the caller's changes; its key and its varying fields stay.
    func altered(by entry: CachedResponse) -> StoredResponse {
        var altered = self
        if let head = entry.response.http {
            (altered.status, altered.version, altered.headers) = (head.status, head.version, head.headers.kept)
        }
        // The Content-Length of a decoded body is that of the coded bytes, so it is left alone.
        if !isDecoded, altered.headers.contains(.contentLength) {
            altered.headers[.contentLength] = "\(entry.data.count)"
        }
        altered.headers.remove(.contentRange)
        altered.extent = .whole(Int64(entry.data.count))
        altered.isMemoryOnly = isMemoryOnly || entry.storagePolicy == .allowedInMemoryOnly
        altered.userInfo = entry.userInfo.map { [UInt8]($0) }
        altered.rules = nil
        altered.rules = altered.knownRules
        return altered
    }
}

// SPDX-License-Identifier: Apache-2.0

// An exchange whose body is stored while the caller reads it, without a second buffer and without reading ahead of the
// caller. A body that is abandoned before its end is discarded, except for a beginning that a range request can
// complete.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class CacheTee: Exchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    /// How a response is stored: by a writer while it is read, or by a decision at its end.
    struct Storing {
        let stored: StoredResponse
        let cache: SessionCache
        var writer: (any CacheWriting)?
        /// The cache decision, asked when the body is complete.
        var decision: Decision<CachedResponse, CacheDecision>?
        /// The shared fetch whose followers wait for this body.
        var shared: SharedFetch?
        /// Checked before storing: false if a handler has meanwhile received answers of other owners; `nil` for
        /// responses that no handler made.
        var isStillMarked: (@Sendable () -> Bool)?
    }

    private let inner: any Exchange
    private let owner: LoadContext
    private var storing: Storing
    private var collected: [UInt8] = []
    private var hasEnded = false
    private var isReleased = false
    private var count: Int64 = 0

    init(_ inner: any Exchange, for load: LoadContext, _ storing: Storing) {
        (self.inner, owner, self.storing) = (inner, load, storing)
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
    func marks(for query: CacheQuery) -> AnswerMarks { AnswerMarks(storing.stored) }

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        if !hasEnded {
            switch try inner.buffered(atMost: most) {
            case .chunk(let chunk)?:
                keep(chunk)
                return .chunk(chunk)
            case .end?: end()
            case nil: return nil
            }
        }
        return storing.decision == nil ? .end : nil
    }

    func fill(atMost most: Int) async throws(LoadError) {
        if hasEnded { return try await decide() }
        if let writer = storing.writer, writer.isBehind { await writer.ready(owner.handle) }
        try await inner.fill(atMost: most)
    }

    func fillNow() throws(LoadError) -> Bool {
        if hasEnded || storing.writer?.isBehind == true { return false }
        return try inner.fillNow()
    }
    var isSending: Bool { !hasEnded && inner.isSending }
    func continueSending() async throws(LoadError) { try await inner.continueSending() }
    func setUnread(_ isUnread: Bool) { if !hasEnded { inner.setUnread(isUnread) } }

    // MARK: Storing

    private func keep(_ chunk: Chunk) {
        count += Int64(chunk.count)
        if let writer = storing.writer {
            guard !writer.append(chunk) else { return }
            storing.writer = nil
            storing.shared?.settle(.unstorable)
        } else if storing.decision != nil {
            guard chunk.count <= storing.cache.maximumEntrySize - collected.count else {
                (storing.decision, collected) = (nil, [])
                storing.shared?.settle(.unstorable)
                return
            }
            collected.append(contentsOf: [UInt8](chunk))
        }
    }

    private func end() {
        hasEnded = true
        inner.release()
        guard let writer = storing.writer else {
            if storing.decision == nil { storing.shared?.settle(.unstorable) }
            return
        }
        storing.writer = nil
        guard mayStore else {
            writer.abandon(isResumable: false)
            storing.shared?.settle(.unstorable)
            return
        }
        // A partial response stays partial unless it is complete now.
        if case .beginning(let before, let whole) = storing.stored.extent, before + count != whole {
            // A body longer than the server announced is not resumable.
            writer.abandon(isResumable: whole.map { before + count < $0 } ?? true)
            storing.shared?.settle(.unstorable)
        } else {
            writer.finish()
            reportStored()
            storing.shared?.settle(.stored)
        }
    }

    private var mayStore: Bool { storing.isStillMarked?() ?? true }

    /// Reports the store to observers, unless the response can only be used by a policy that ignores freshness.
    private func reportStored() {
        if storing.stored.knownRules.isReusable { owner.events?.note(.stored) }
    }

    private func decide() async throws(LoadError) {
        guard let decision = storing.decision else { return }
        storing.decision = nil
        let proposed = CachedResponse(
            response: response, data: Data(collected),
            storagePolicy: storing.stored.isMemoryOnly ? .allowedInMemoryOnly : .allowed)
        var entry: CachedResponse?
        switch try await owner.ask(decision, proposed) {
        case .store: entry = proposed
        case .instead(let other): entry = other
        case .skip: break
        }
        let isStored = entry.map { store($0) } ?? false
        if isStored { reportStored() }
        storing.shared?.settle(isStored ? .stored : .unstorable)
    }

    private func store(_ entry: CachedResponse) -> Bool {
        guard mayStore, entry.storagePolicy != .notAllowed, entry.data.count <= storing.cache.maximumEntrySize
        else { return false }
        let isStored = storing.cache.storage.store(storing.stored.altered(by: entry), body: [UInt8](entry.data))
        if !isStored { owner.noteRefusal(of: storing.stored, by: storing.cache.storage) }
        return isStored
    }

    func release() {
        guard !isReleased else { return }
        isReleased = true
        if !hasEnded { finishWithArrivedBytes() }
        inner.release()
        stopStoring(isResumable: storing.writer != nil && count > 0 && isResumable && mayStore)
    }

    /// Hands over the connection. The bytes that follow are no body, so nothing is stored.
    func surrender() -> SurrenderedConnection? {
        guard !isReleased else { return nil }
        isReleased = true
        stopStoring(isResumable: false)
        return inner.surrender()
    }

    private func stopStoring(isResumable: Bool) {
        storing.writer?.abandon(isResumable: isResumable)
        (storing.writer, storing.decision, collected) = (nil, nil, [])
        storing.shared?.settle(.failed)
    }

    /// Stores the rest of a body that has already arrived when the caller stops reading, such as the body of a redirect
    /// that is followed. Does not wait, and stores nothing of a body that is faulty or late.
    private func finishWithArrivedBytes() {
        guard owner.stopReason == nil, storing.writer != nil else { return }
        let most = count + Self.mostUnread
        do throws(LoadError) {
            while !hasEnded {
                switch try inner.buffered(atMost: .max) {
                case .chunk(let chunk)?: keep(chunk)
                case .end?: end()
                case nil: guard count < most, try inner.fillNow() else { return }
                }
            }
        } catch {
            return
        }
    }

    /// The number of bytes from which on an unread body is not read to its end.
    private static let mostUnread: Int64 = 16 * 1024

    /// RFC 9111 §3.3: only the beginning of a response with a strong tag and a known length can be completed.
    private var isResumable: Bool {
        guard storing.stored.status == .ok, !storing.stored.isDecoded, storing.stored.strongTag != nil,
            storing.stored.mayBeCompleted
        else { return false }
        if case .beginning = storing.stored.extent { return true }
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

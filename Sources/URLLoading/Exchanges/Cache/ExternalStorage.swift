// SPDX-License-Identifier: Apache-2.0

// An external cache as the storage of one load.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class ExternalStorage: AskedStorage {
    private let external: ExternalStore
    private let work: ExternalStore.Work
    private let query: CacheQuery
    private struct State: Sendable {
        /// Whether the store was asked, if the request permits it.
        var hasAsked = false
        /// What the store has; `nil` if that is not known.
        var finding: ExternalStore.Finding?
        /// The number of removals of the URL when it was looked up.
        var found = 0
        /// That number when the response to store was asked for.
        var removals = 0
    }
    private let state = Lock(State())

    init(_ external: ExternalStore, _ query: CacheQuery, _ work: ExternalStore.Work) {
        (self.external, self.query, self.work) = (external, query, work)
        isClosed = query.checks?.areWeakened == true || !external.isUsable || Self.namesUser(query.fields)
    }

    var removals: CacheRemovals { external.removals }

    /// Whether nothing is given to the store and nothing is taken from it.
    private let isClosed: Bool
    /// Whether fields of the caller's name a user in another way than Authorization, Cookie and Host, which have marks.
    private static func namesUser(_ headers: Headers) -> Bool {
        FieldName.personal.contains { ![.authorization, .cookie, .host].contains($0) && headers.contains($0) }
    }
    private func key(_ url: CacheKey) -> StoreKey {
        StoreKey(url, isShared: external.settings.isShared, checks: query.checks?.mark)
    }

    // MARK: Looking up

    func find(_ url: CacheKey, again: Bool) async throws(LoadError) -> [StoredResponse] {
        guard again || !state.withLock({ $0.hasAsked }) else { return variants(url) }
        let count = removals.count(url)
        var finding: ExternalStore.Finding?
        if !isClosed, CachePlan.reasonWithoutLookUp(query, query.control) == nil {
            finding = try await external.look(key(url), url, query, for: work)
        }
        let found = finding
        state.withLock { $0 = State(hasAsked: true, finding: found, found: count, removals: count) }
        return variants(url)
    }

    func variantsNow(_ url: CacheKey) -> [StoredResponse]? {
        state.withLock { state in state.finding.map { finding in finding.response.map { [$0.head] } ?? [] } }
    }

    func variants(_ url: CacheKey) -> [StoredResponse] { variantsNow(url) ?? [] }
    func bodyNow(_ response: StoredResponse) -> (any StoredBody)? { body(response) }

    func body(_ response: StoredResponse) -> (any StoredBody)? { bytes(of: response).map { MemoryBody($0) } }

    private func bytes(of response: StoredResponse) -> Chunk? {
        state.withLock { state in
            guard let found = state.finding?.response, found.head.id == response.id else { return nil }
            return found.body
        }
    }

    // MARK: Storing

    func admitted(_ response: StoredResponse, _ head: HTTPHead, since removals: Int) -> StoredResponse? {
        guard !isClosed else { return nil }
        state.withLock { $0.removals = removals }
        return external.admission.admitted(response, head)
    }

    func write(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)? {
        guard !isClosed, !response.isMemoryOnly else { return nil }
        guard (length ?? 0) <= Int64(external.settings.maximumEntrySize) else {
            external.count(\.left)
            return nil
        }
        return ExternalWriting(response, length, self, external)
    }

    func append(to response: StoredResponse) -> (any CacheWriting)? { nil }

    func store(_ response: StoredResponse, body: [UInt8]) -> Bool {
        // The cache decision may have changed the fields.
        guard !response.isMemoryOnly, let admitted = external.admission.admitted(response, nil),
            let writer = write(admitted, length: Int64(body.count)),
            body.isEmpty || writer.append(body.withUnsafeBytes { Chunk(copying: $0) })
        else { return false }
        writer.finish()
        return true
    }

    func update(_ response: StoredResponse) {
        guard let body = bytes(of: response) else { return }
        guard let admitted = external.admission.admitted(response, nil) else {
            return remove(response.key)
        }
        put(admitted, body)
    }

    /// Gives a complete response to the store, unless its URL was invalidated meanwhile.
    fileprivate func put(_ response: StoredResponse, _ body: Chunk) {
        let state = state.withLock { $0 }
        // An index that was removed since does not make the variant reachable.
        let index = state.found == state.removals ? state.finding?.index : nil
        guard let place = place(response, index) else { return }
        external.store(
            StoreEntry(response: response, body: body, place: place), key(response.key), since: state.removals,
            for: work)
    }

    private func place(_ response: StoredResponse, _ known: StoreIndex?) -> StoreEntry.Place? {
        let known = known.flatMap { $0.covers(response) ? $0 : nil }
        guard known != nil || !StoreIndex.names(response).isEmpty else { return .url }
        let index = known ?? StoreIndex(response)
        guard let variant = key(response.key).variant(index, query) else { return nil }
        return .variant(variant, index, isNew: known == nil)
    }

    // MARK: Removing

    func remove(_ response: StoredResponse) { remove(response.key) }

    func remove(_ url: CacheKey) {
        removals.note(url)
        guard !isClosed else { return }
        external.change(key(url), .remove, for: work)
    }

    func removeAll(since moment: Double?) {}
    func flush() {}
}

/// Collects a body for the store, in no more memory than the session may use for that.
private final class ExternalWriting: CacheWriting {
    private let response: StoredResponse
    private let storage: ExternalStorage
    private let store: ExternalStore
    private let length: Int?
    private var collected: ChunkStorage?
    private var count = 0

    init(_ response: StoredResponse, _ length: Int64?, _ storage: ExternalStorage, _ store: ExternalStore) {
        (self.response, self.storage, self.store) = (response, storage, store)
        self.length = length.map { Int($0) }
    }

    func append(_ chunk: Chunk) -> Bool {
        guard chunk.count <= store.settings.maximumEntrySize - count, let room = room(for: chunk.count) else {
            collected = nil
            store.count(\.left)
            return false
        }
        chunk.withUnsafeBytes { room.copyMemory(from: $0) }
        count += chunk.count
        return true
    }

    private static let believedLength = 1 << 20

    /// Returns room behind the bytes so far; `nil` if the session may not hold as much.
    private func room(for more: Int) -> UnsafeMutableRawBufferPointer? {
        if (collected?.capacity ?? 0) - count < more {
            // What a length announces is believed up to a limit: it may never come.
            let least = max(count + more, min(length ?? 0, Self.believedLength))
            let wanted = collected == nil ? least : max(least, 2 * count)
            guard let larger = store.budget.buffer(capacity: min(wanted, store.settings.maximumEntrySize)) else {
                return nil
            }
            if let collected { larger.base.copyMemory(from: collected.base, byteCount: count) }
            collected = larger
        }
        return collected?.room(from: count)
    }

    var isBehind: Bool { false }
    func ready(_ handle: LoadHandle) async {}

    func finish() {
        let body = collected.map { Chunk(storage: $0, range: 0..<count) }
        collected = nil
        storage.put(response, body ?? Chunk(copying: UnsafeRawBufferPointer(start: nil, count: 0)))
    }

    func abandon(isResumable: Bool) { collected = nil }
}

// SPDX-License-Identifier: Apache-2.0

// Stores responses in memory and evicts the least recently used. It has no file and never blocks; entries, heads
// included, never exceed the capacity.

import Synchronization
import URLLoadingIO

final class MemoryStorage: CacheStorage {
    let removals = CacheRemovals()
    private struct State: Sendable {
        var table: MemoryTable
        var open = OpenWrites()
        var maximumEntry: Int
    }
    private let state: Lock<State>

    /// - Parameters:
    ///   - capacity: the limit for all heads and bodies, in bytes.
    ///   - maximumEntry: the limit for one body, in bytes.
    init(capacity: Int, maximumEntry: Int = .max) {
        state = Lock(State(table: MemoryTable(capacity: capacity), maximumEntry: maximumEntry))
    }

    var usage: Int { state.withLock { $0.table.bytes } }
    var count: Int { state.withLock { $0.table.count } }

    func set(capacity: Int, maximumEntry: Int) {
        state.withLock {
            $0.table.setCapacity(capacity)
            $0.maximumEntry = maximumEntry
        }
    }

    /// Whether a body of this length would be stored; `nil` for an unknown length.
    func takes(_ length: Int64?) -> Bool {
        state.withLock { $0.table.capacity > 0 && (length ?? 0) <= Int64(min($0.maximumEntry, $0.table.capacity)) }
    }

    /// Whether the capacity is 0.
    var isDisabled: Bool { state.withLock { $0.table.capacity == 0 } }

    // MARK: Reading

    func variantsNow(_ key: CacheKey) -> [StoredResponse]? { variants(key) }
    func variants(_ key: CacheKey) -> [StoredResponse] { state.withLock { $0.table.variants(key) } }
    func bodyNow(_ response: StoredResponse) -> (any StoredBody)? { body(response) }
    func body(_ response: StoredResponse) -> (any StoredBody)? {
        state.withLock { $0.table.use(response) }.map { MemoryBody($0) }
    }

    // MARK: Writing

    func write(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)? { write(response, length: length) {} }

    /// - Parameter ended: called in the writer's task when the response is stored.
    func write(_ response: StoredResponse, length: Int64?, _ ended: @escaping @Sendable () -> Void) -> (
        any CacheWriting
    )? {
        begin(response, length: length, GrowingBody(), ended)
    }

    func append(to response: StoredResponse) -> (any CacheWriting)? {
        guard case .beginning(_, let total) = response.extent, takes(total),
            let body = state.withLock({ $0.table.use(response) })
        else { return nil }
        var growing = GrowingBody(expecting: Int(total ?? Int64(body.count)))
        body.withUnsafeBytes { growing.append($0) }
        return begin(response, length: total, growing, completing: response.id) {}
    }

    private func begin(
        _ response: StoredResponse, length: Int64?, _ body: GrowingBody, completing base: Int64 = 0,
        _ ended: @escaping @Sendable () -> Void
    ) -> MemoryWriting? {
        var response = response
        response.id = StoredResponse.newID()
        let limit = state.withLock { state -> Int? in
            let limit = min(state.maximumEntry, state.table.capacity)
            guard limit > 0, (length ?? 0) <= Int64(limit) else { return nil }
            state.open.begin(response, completing: base)
            return limit
        }
        guard let limit else { return nil }
        return MemoryWriting(response, length: length, limit, body, self, ended)
    }

    func store(_ response: StoredResponse, body: [UInt8]) -> Bool {
        guard takes(Int64(body.count)) else { return false }
        var response = response
        response.id = StoredResponse.newID()
        response.extent = .whole(Int64(body.count))
        return insert(response, body.withUnsafeBytes { Chunk(copying: $0) })
    }

    /// Stores a response under its existing id.
    func insert(_ response: StoredResponse, _ body: Chunk) -> Bool {
        state.withLock { $0.table.insert(response, body) }
    }

    func remove(replacedBy response: StoredResponse) { state.withLock { $0.table.remove(replacedBy: response) } }
    func held(_ response: StoredResponse) -> StoredResponse? { state.withLock { $0.table.held(response) } }

    func update(_ response: StoredResponse) { state.withLock { $0.table.update(response) } }

    /// Completes a write, or ends it with a partial body.
    fileprivate func end(_ response: StoredResponse, _ body: Chunk) -> Bool {
        state.withLock { state in
            guard state.open.end(response.id) else { return false }
            // A newer partial response is worth less than an older complete one.
            if !response.isWhole,
                state.table.variants(response.key).contains(where: { $0.isWhole && response.replaces($0) })
            {
                return false
            }
            return state.table.insert(response, body)
        }
    }

    fileprivate func abandon(_ id: Int64) { state.withLock { _ = $0.open.end(id) } }

    // MARK: Removing

    func remove(_ response: StoredResponse) {
        state.withLock {
            $0.table.remove(response)
            $0.open.void(completing: response.id)
        }
    }

    func remove(_ key: CacheKey) {
        removals.note(key)
        state.withLock {
            $0.table.remove(key)
            $0.open.void(key)
        }
    }

    func removeAll(since moment: Double?) {
        removals.noteAll()
        state.withLock { state in
            state.open.invalidateAll(since: moment)
            guard let moment else { return state.table.removeAll() }
            state.table.removeAll { $0.responseTime >= moment }
        }
    }

    func flush() {}
}

/// A body being written to memory.
private final class MemoryWriting: CacheWriting {
    private let storage: MemoryStorage
    private let response: StoredResponse
    private let length: Int64?
    private let limit: Int
    /// `nil` after the end, or after giving up.
    private var body: GrowingBody?
    private let ended: @Sendable () -> Void

    /// - Parameter body: the bytes that are stored already.
    init(
        _ response: StoredResponse, length: Int64?, _ limit: Int, _ body: GrowingBody, _ storage: MemoryStorage,
        _ ended: @escaping @Sendable () -> Void
    ) {
        self.ended = ended
        self.response = response
        self.length = length
        self.storage = storage
        self.limit = limit
        self.body = body
    }

    deinit { if body != nil { storage.abandon(response.id) } }

    func append(_ chunk: Chunk) -> Bool {
        guard let count = body?.count else { return false }
        guard count + chunk.count <= limit else {
            giveUp()
            return false
        }
        if count == 0, let length { body?.expect(Int(length)) }
        chunk.withUnsafeBytes { body?.append($0) }
        return true
    }

    var isBehind: Bool { false }
    func ready(_ handle: LoadHandle) async {}

    func finish() { end { .whole($0) } }

    func abandon(isResumable: Bool) {
        guard isResumable else { return giveUp() }
        let length = length
        end { $0 > 0 ? .beginning($0, of: length) : nil }
    }

    private func giveUp() {
        guard body != nil else { return }
        body = nil
        storage.abandon(response.id)
    }

    private func end(_ extent: (Int64) -> StoredResponse.Extent?) {
        guard let chunk = body?.take(), let extent = extent(Int64(chunk.count)) else { return giveUp() }
        body = nil
        var whole = response
        whole.extent = extent
        if storage.end(whole, chunk) { ended() }
    }
}

// SPDX-License-Identifier: Apache-2.0

// Stores responses on disk and removes them.

import Synchronization
import URLLoadingIO

extension DiskStorage {
    /// Whether a body of this length would be stored; `nil` for an unknown length.
    func takes(_ length: Int64?) -> Bool {
        let isOpen = state.withLock { state in
            !state.phase.hasFailed && state.capacity > 0 && (length ?? 0) <= min(state.maximumEntry, state.capacity)
        }
        guard isOpen, queued.load(ordering: .relaxed) < Self.overfull else { return false }
        return !isUnread
    }

    func write(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)? {
        guard takes(length), !response.isMemoryOnly else { return nil }
        return begin(response, length: length, base: nil)
    }

    func append(to response: StoredResponse) -> (any CacheWriting)? {
        guard case .beginning(_, let total) = response.extent, takes(total ?? response.storedLength) else { return nil }
        return begin(response, length: total, base: response)
    }

    /// - Parameter end: called with the entry instead of `end` when the body is complete.
    func begin(
        _ response: StoredResponse, length: Int64?, base: StoredResponse?, end: (@Sendable (DiskEntry) -> Void)? = nil
    ) -> DiskWriting {
        var response = response
        response.id = StoredResponse.newID()
        response.isCopy = false
        let limit = state.withLock { state in
            state.open.begin(response, completing: base?.id ?? 0)
            return min(state.maximumEntry, state.capacity)
        }
        return DiskWriting(response, length: length, limit: limit, completing: base, self, end)
    }

    func store(_ response: StoredResponse, body: [UInt8]) -> Bool {
        var response = response
        response.id = StoredResponse.newID()
        response.extent = .whole(Int64(body.count))
        return store(response, body.withUnsafeBytes { Chunk(copying: $0) })
    }

    /// Stores a response under its existing id.
    func store(_ response: StoredResponse, _ body: Chunk) -> Bool {
        guard takes(Int64(body.count)), !response.isMemoryOnly else { return false }
        var file: DiskFile?
        if body.count > Self.packLimit {
            let new = DiskFile()
            submit(.write(new, body))
            file = new
        }
        commit(DiskEntry(response, body: file == nil ? body : nil, file: file))
        return true
    }

    private func commit(_ entry: DiskEntry) {
        submit { state in
            state.add(entry)
            return [.commit(entry)]
        }
    }

    /// Completes a write, or ends it with a partial body.
    @discardableResult
    func end(_ entry: DiskEntry) -> Bool {
        var isWanted = false
        submit { state in
            guard state.open.end(entry.response.id) else { return [] }
            isWanted = true
            state.add(entry)
            return [.commit(entry)]
        }
        return isWanted
    }

    func abandon(_ id: Int64) { state.withLock { _ = $0.open.end(id) } }

    func update(_ response: StoredResponse) {
        submit { state in
            state.update(response)
            return [.update(response)]
        }
    }

    // MARK: Removing

    func remove(_ response: StoredResponse) { remove(.one(hash: response.key.hash64, id: response.id)) }
    func remove(_ key: CacheKey) {
        removals.note(key)
        removeReplaced(key)
    }

    /// Removes the responses of a key that one in memory replaces. Loads of the key store their responses afterwards.
    func removeReplaced(_ key: CacheKey) { remove(.key(hash: key.hash64, key)) }

    func removeAll(since moment: Double?) {
        removals.noteAll()
        remove(.since(moment ?? -.infinity))
    }

    /// Removes rows even if the index does not contain the key, because another process may have stored it just now.
    private func remove(_ removal: DiskOperation.Removal) {
        var isNeeded = true
        submit { state in
            let removals = [removal] + state.hide(removal)
            guard state.phase.hasFailed else { return removals.map { .remove($0) } }
            isNeeded = false
            state.phase = .untrusted
            for removal in removals { state.settle(removal) }
            return []
        }
        guard isNeeded else { return }
        // The removal must reach the disk before the process exits.
        StateExit.add(ObjectIdentifier(self)) { [weak self] in self?.settle(atMost: 1_000_000_000) }
    }

    // MARK: Waiting for the disk

    var isBehind: Bool { queued.load(ordering: .relaxed) > Self.behind }

    /// Returns when the disk has caught up, or the load is stopped.
    func ready(_ load: LoadHandle) async {
        await Poller.shared.wait(until: load) { slot -> Void? in
            lane.withLock { $0.waiters.append(slot) }
            // The queue may have become short before the slot was added.
            return isBehind ? nil : ()
        }
    }

    /// Waits on a thread that may block until the disk has caught up.
    func waitUntilReady() { if isBehind { settle() } }
}

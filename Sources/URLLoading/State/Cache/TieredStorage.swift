// SPDX-License-Identifier: Apache-2.0

// A memory tier in front of a disk. The disk is authoritative, except for responses that must not be written to it.
// Memory holds copies of small, recently used responses, and caches the heads found under a key until that key changes.

import Synchronization
import URLLoadingIO

final class TieredStorage: CacheStorage {
    let memory: MemoryStorage
    let disk: DiskStorage
    private let known = Lock(KnownHeads())
    private let hasRefused = Atomic<Bool>(false)

    /// Those of the disk: what one cache of a directory removes, another one must not store again.
    var removals: CacheRemovals { disk.removals }

    /// The reason why responses cannot be stored in either tier; problems of the disk itself are reported separately.
    var problem: CacheProblem? { hasRefused.load(ordering: .relaxed) ? .memoryOnly : nil }

    func refusal(of response: StoredResponse) -> CacheProblem? {
        guard CacheOwner.isTemporary(response.varying), memory.isDisabled else { return nil }
        hasRefused.store(true, ordering: .relaxed)
        return .memoryOnly
    }

    init(_ memory: MemoryStorage, _ disk: DiskStorage) {
        self.memory = memory
        self.disk = disk
    }

    // MARK: Lookup

    func variantsNow(_ key: CacheKey) -> [StoredResponse]? {
        // Without this check, a removal by another process would be noticed too late.
        if disk.isUpToDate() {
            let revision = disk.revision(key.hash64)
            if let heads = known.withLock({ $0.heads(key, revision) }) { return heads }
        }
        return disk.variantsNow(key).map { merge(key, $0) }
    }

    func variants(_ key: CacheKey) -> [StoredResponse] {
        let revision = disk.revision(key.hash64)
        let (found, isAll) = disk.find(key)
        let heads = merge(key, found)
        // `find` itself may have noticed a change by another process; then the heads are cached at the next lookup.
        if isAll { known.withLock { $0.put(key, heads, revision) } }
        return heads
    }

    /// Adds the responses that are in memory only, newest first; without a working disk, copies count as well.
    private func merge(_ key: CacheKey, _ onDisk: [StoredResponse]) -> [StoredResponse] {
        let isAlone = disk.leavesServingToCopies
        let own = memory.variants(key).filter { isAlone || !$0.isCopy }
        guard !own.isEmpty else { return onDisk }
        return (own + onDisk.filter { other in !own.contains { $0.replaces(other) } }).sorted {
            $0.responseTime > $1.responseTime
        }
    }

    func bodyNow(_ response: StoredResponse) -> (any StoredBody)? { body(response) { disk.bodyNow(response) } }
    func body(_ response: StoredResponse) -> (any StoredBody)? { body(response) { disk.body(response) } }

    private func body(_ response: StoredResponse, onDisk: () -> (any StoredBody)?) -> (any StoredBody)? {
        if let body = memory.body(response) {
            if !response.isMemoryOnly { disk.touch(response.id, response.key.hash64, isCopy: true) }
            return body
        }
        guard !response.isMemoryOnly, let body = onDisk() else { return nil }
        guard memory.takes(body.length) else { return body }
        // A damaged body has been removed by the disk.
        guard let chunk = body.whole else { return nil }
        copy(response, chunk)
        return MemoryBody(chunk)
    }

    private func copy(_ response: StoredResponse, _ body: Chunk) {
        var copy = response
        copy.isCopy = true
        guard memory.takes(Int64(body.count)), memory.insert(copy, body) else { return memory.remove(replacedBy: copy) }
    }

    // MARK: Writing

    func write(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)? {
        guard !response.isMemoryOnly, disk.takes(length) else { return writeInMemory(response, length: length) }
        return disk.begin(response, length: length, base: nil) { [self] in end($0) }
    }

    /// Once the response is complete, older entries of the key leave the disk; otherwise they would come back after an
    /// eviction from memory.
    private func writeInMemory(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)? {
        memory.write(response, length: length) { [disk, key = response.key] in disk.removeReplaced(key) }
    }

    func append(to response: StoredResponse) -> (any CacheWriting)? {
        if isOnlyInMemory(response) { return memory.append(to: response) }
        guard case .beginning(_, let total) = response.extent, disk.takes(total ?? response.storedLength) else {
            return nil
        }
        return disk.begin(response, length: total, base: response) { [self] in end($0) }
    }

    private func isOnlyInMemory(_ response: StoredResponse) -> Bool {
        response.isMemoryOnly || memory.held(response)?.isCopy == false
    }

    func store(_ response: StoredResponse, body: [UInt8]) -> Bool {
        let length = Int64(body.count)
        guard !response.isMemoryOnly, disk.takes(length) else {
            guard memory.store(response, body: body) else { return false }
            disk.removeReplaced(response.key)
            return true
        }
        var response = response
        response.id = StoredResponse.newID()
        response.extent = .whole(length)
        response.isCopy = false
        let chunk = body.withUnsafeBytes { Chunk(copying: $0) }
        return remember(response) {
            guard disk.store(response, chunk) else { return false }
            copy(response, chunk)
            return true
        }
    }

    private func end(_ entry: DiskEntry) {
        _ = remember(entry.response) {
            guard disk.end(entry) else { return false }
            if let body = entry.body { copy(entry.response, body) } else { memory.remove(replacedBy: entry.response) }
            return true
        }
    }

    /// Keeps the cached heads of a key up to date, if they were known and this change was the only one.
    private func remember(_ response: StoredResponse, _ change: () -> Bool) -> Bool {
        let hash = response.key.hash64
        let before = disk.revision(hash)
        let heads = response.isWhole ? variantsNow(response.key) : nil
        guard change() else { return false }
        if let heads {
            known.withLock { $0.put(response.key, [response] + heads.filter { !response.replaces($0) }, before &+ 1) }
        }
        return true
    }

    func update(_ response: StoredResponse) {
        memory.update(response)
        if isOnlyInMemory(response) { disk.advanceRevision(response.key.hash64) } else { disk.update(response) }
    }

    // MARK: Removing

    func remove(_ response: StoredResponse) {
        memory.remove(response)
        if response.isMemoryOnly { disk.advanceRevision(response.key.hash64) } else { disk.remove(response) }
    }

    func remove(_ key: CacheKey) {
        // Before the memory is searched: a response that is stored after that belongs to a later request.
        removals.note(key)
        memory.remove(key)
        disk.remove(key)
    }

    func removeAll(since moment: Double?) {
        removals.noteAll()
        memory.removeAll(since: moment)
        disk.removeAll(since: moment)
    }

    func flush() { disk.flush() }
}

/// The heads found under some keys. Those of a key are valid while its revision (`DiskStorage.revision`) is the one
/// that they were put in with.
private struct KnownHeads: Sendable {
    private var found = RecentTable<CacheKey, (heads: [StoredResponse], revision: Int)>(capacity: maximumBytes)
    /// The limit of each half of the table, in bytes.
    private static let maximumBytes = 1 << 20

    mutating func heads(_ key: CacheKey, _ revision: Int) -> [StoredResponse]? {
        guard let entry = found[key], entry.revision == revision else { return nil }
        return entry.heads
    }

    mutating func put(_ key: CacheKey, _ heads: [StoredResponse], _ revision: Int) {
        let size = heads.reduce(64 + key.text.utf8.count) { $0 + $1.headSize }
        guard size <= Self.maximumBytes / 16 else { return }
        found.put(key, (heads, revision), cost: size)
    }
}

extension StoredBody {
    /// The complete body in one piece; `nil` if it cannot be read. Blocks, unless it is in memory.
    var whole: Chunk? {
        if let bytes { return bytes }
        var body = GrowingBody(expecting: Int(clamping: length))
        while Int64(body.count) < length {
            guard let chunk = read(at: Int64(body.count), atMost: 1 << 20), chunk.count > 0 else { return nil }
            chunk.withUnsafeBytes { body.append($0) }
        }
        return body.take()
    }
}

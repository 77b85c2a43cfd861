// SPDX-License-Identifier: Apache-2.0

// In this folder: the storage on disk: rows of SQLite and files (17 files: lane, state, tables, bodies)

// Stores responses on disk: heads and small bodies in rows of an SQLite database, large bodies in files that a row
// refers to. docs/internals/cache-store.md shows the layout, and the state after each kind of crash.
//
// Rule 1: only calls that are documented to block wait for the disk. All changes go through the lane, one thread at a
// time, in order (`DiskStorage+Lane.swift`); `DiskState` contains the pending ones.
// Rule 2: nothing read from disk is used before its checksum was verified.
// Rule 3: after any failure the cache stores less, and reports the problem once (`problem`).

import FoundationEssentials
import Glibc
import Synchronization
import URLLoadingIO

final class DiskStorage: CacheStorage {
    let removals = CacheRemovals()
    let paths: DiskPaths
    let state: Lock<DiskState>
    let lane: Lock<DiskLane>
    let thread = BlockingThreads(limit: 1)
    /// Ends the lane's wait for more operations.
    let urgency = ThreadSignal()
    /// The bytes of queued operations.
    let queued = Atomic<Int>(0)
    /// Idle connections for reading.
    private let readers = Lock(Readers())
    /// The connection for writing, used by the lane's thread only.
    let writer = Lock<DiskTables?>(nil)
    let firstProblem = Lock<CacheProblem?>(nil)

    private struct Readers: Sendable {
        var idle: [DiskTables] = []
        var generation = 0
    }

    /// Bodies up to this size are stored in rows, because a file would take more space.
    static let rowLimit = 16 << 10
    /// Above the first limit of queued bytes, writers are asked to wait; above the second, writes are refused.
    static let behind = 4 << 20
    static let overfull = 32 << 20
    /// The milliseconds to wait for another process that opens or replaces the database.
    static let lockTimeout = 1000
    /// The milliseconds to wait for another process that writes.
    static let writeTimeout = 250
    /// The longest time for which changes of other processes may go unnoticed, in nanoseconds.
    static let checkInterval: Int64 = 100_000_000

    init(_ folder: String, capacity: Int64, maximumEntry: Int64) {
        paths = DiskPaths(folder: folder)
        state = Lock(DiskState(capacity: capacity, maximumEntry: maximumEntry))
        lane = Lock(DiskLane())
    }

    var problem: CacheProblem? { firstProblem.withLock { $0 } }
    func report(_ problem: CacheProblem) { firstProblem.withLock { $0 = $0 ?? problem } }

    /// The bytes stored. May block.
    var usage: Int64 {
        ensureOpen()
        return state.withLock { $0.known.total }
    }

    /// Whether the storage has failed and stores nothing.
    var hasFailed: Bool { state.withLock { $0.phase == .failed } }

    /// The bytes stored, as far as known without opening the database.
    var knownUsage: Int64 { state.withLock { $0.known.total } }

    /// A value that differs after any change of a key.
    func revision(_ hash: Int64) -> Int { state.withLock { $0.revision(hash) } }
    func advanceRevision(_ hash: Int64) { state.withLock { $0.advanceRevision(hash) } }

    func set(capacity: Int64, maximumEntry: Int64) {
        let isSmaller = state.withLock { state in
            defer { (state.capacity, state.maximumEntry) = (capacity, maximumEntry) }
            return capacity < state.capacity
        }
        if isSmaller { submit(.shrink) }
    }

    // MARK: Lookup

    func variantsNow(_ key: CacheKey) -> [StoredResponse]? {
        let hash = key.hash64
        let now = Poller.coarseNow()
        return state.withLock { state in
            switch state.phase {
            case .unopened: return nil
            case .failed: return []
            case .absent, .open:
                guard now &- state.lastCheck < Self.checkInterval, !state.index.contains(hash) else { return nil }
                return state.overlay(key, hash).pending
            }
        }
    }

    /// Whether changes of other processes were checked for recently.
    var isUpToDate: Bool {
        let now = Poller.coarseNow()
        return state.withLock { $0.phase == .failed || now &- $0.lastCheck < Self.checkInterval }
    }

    func variants(_ key: CacheKey) -> [StoredResponse] { find(key).found }

    /// - Returns: the variants; `isAll` is true if the rows could be read.
    func find(_ key: CacheKey) -> (found: [StoredResponse], isAll: Bool) {
        ensureOpen()
        let hash = key.hash64
        let now = Poller.coarseNow()
        let (overlay, phase, isDue) = state.withLock {
            ($0.overlay(key, hash), $0.phase, now &- $0.lastCheck >= Self.checkInterval)
        }
        guard phase == .open else { return (overlay.pending, phase != .unopened) }
        let rows = reading { reader throws(DatabaseFailure) in
            if isDue { try readChanges(reader, now) }
            return try reader.heads(hash)
        }
        return (overlay.over((rows ?? []).map(\.response).filter { $0.key == key }), rows != nil)
    }

    func isInMemory(_ response: StoredResponse) -> Bool {
        state.withLock { $0.pending[response.id]?.body != nil }
    }

    func body(_ response: StoredResponse) -> (any StoredBody)? {
        let hash = response.key.hash64
        let (entry, isHidden) = state.withLock { ($0.pending[response.id], $0.isHidden(response, hash)) }
        if let entry {
            if let body = entry.body { return MemoryBody(body) }
            // The file of the body is still being written.
            settle()
        } else if isHidden {
            return nil
        }
        ensureOpen()
        guard let found = reading({ reader throws(DatabaseFailure) in try reader.find(response.id, hash) }) ?? nil
        else { return nil }
        let body: any StoredBody
        do throws(IOFailure) { body = try open(found.head, found.body) } catch {
            if !error.isTemporary { remove(response) }
            return nil
        }
        touch(response.id, hash)
        return body
    }

    private func open(_ head: DiskHead, _ body: Chunk?) throws(IOFailure) -> any StoredBody {
        guard let name = head.file else {
            guard let body else { throw IOFailure(.system(ENOENT), .open) }
            return MemoryBody(body)
        }
        let response = head.response
        return try DiskBody(head, paths.body(name)) { [weak self] in self?.remove(response) }
    }

    /// Notes a use. Uses are written in groups, and before an eviction.
    /// - Parameter isCopy: the copy in memory was used, which alone causes no transaction.
    func touch(_ id: Int64, _ hash: Int64, isCopy: Bool = false) {
        let moment = Self.now()
        let isOverLimit = state.withLock { state in
            guard state.touches.count < 8192 || state.touches[id] != nil else { return false }
            state.touches[id] = (hash, moment)
            guard !isCopy, state.touches.count >= 512, !state.isTouching else { return false }
            state.isTouching = true
            return true
        }
        if isOverLimit { submit(.touch) }
    }

    // MARK: Connections

    /// Lends a connection; `nil` if none can be opened, or if `use` failed. Blocks.
    func reading<R>(_ use: (DiskTables) throws(DatabaseFailure) -> R) -> R? {
        let generation = state.withLock { $0.generation }
        guard
            let reader = readers.withLock({ readers in
                if readers.generation != generation {
                    readers = Readers(generation: generation)
                }
                return readers.idle.popLast()
            }) ?? openReader()
        else { return nil }
        do throws(DatabaseFailure) {
            let result = try use(reader)
            readers.withLock { if $0.generation == generation, $0.idle.count < 4 { $0.idle.append(reader) } }
            return result
        } catch {
            if error.kind == .damaged { submit(.replaceDamaged(reader.identity)) }
            return nil
        }
    }

    private func openReader() -> DiskTables? {
        guard let identity = PathIdentity(paths.database),
            let lock = try? FileLock(paths.lock, timeout: Self.lockTimeout)
        else { return nil }
        defer { withExtendedLifetime(lock) {} }
        do throws(DiskTables.Failure) { return try DiskTables.open(paths) } catch {
            if case .database(let failure) = error, failure.kind == .damaged { submit(.replaceDamaged(identity)) }
            return nil
        }
    }

    /// Reads the changes of other processes.
    func readChanges(_ reader: DiskTables, _ now: Int64) throws(DatabaseFailure) {
        guard PathIdentity(paths.database) == reader.identity else { return submit(.readChanges) }
        let found = try reader.state()
        let (known, seen) = state.withLock { ($0.known, $0.seen) }
        var hashes: [Int64] = []
        let last = found.changes == known.changes ? seen : try reader.hashes(after: seen) { hashes.append($0) }
        state.withLock { state in
            state.lastCheck = now
            guard found.changes > state.known.changes else { return }
            state.index.formUnion(hashes)
            state.seen = max(state.seen, last)
            state.known = found
            state.epoch += 1
        }
    }

    /// Opens the database if there is one. Blocks.
    private func ensureOpen() {
        let now = Poller.coarseNow()
        let phase = state.withLock { $0.phase }
        guard phase == .unopened || phase == .absent else { return }
        guard PathIdentity(paths.database) != nil else {
            return state.withLock { state in
                guard state.phase == .unopened || state.phase == .absent else { return }
                state.phase = .absent
                state.lastCheck = now
            }
        }
        submit(.open)
        settle()
    }

    /// Milliseconds since 1970.
    static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
}

// SPDX-License-Identifier: Apache-2.0

// In this folder: the storage on disk: rows of SQLite and files (19 files: lane, state, tables, bodies)

// Stores responses on disk: heads in rows of an SQLite database, bodies in files that a row refers to: a large body in
// one of its own, small ones together in packs. docs/internals/cache-store.md shows the layout, and the state after
// each kind of crash.
//
// Rule 1: only calls that are documented to block wait for the disk; the others read what the kernel has in memory. All
// changes go through the lane, one thread at a time, in order (`DiskStorage+Lane.swift`); `DiskState` contains the
// pending ones.
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
    /// The connection for writing, and the pack for small bodies, used by the lane's thread only.
    let writer = Lock<DiskTables?>(nil)
    let pack = Lock<DiskPack?>(nil)
    let packs: OpenPacks
    /// The lock file, open for the number of changes.
    let changes = Lock<FileReader?>(nil)
    let firstProblem = Lock<CacheProblem?>(nil)

    private struct Readers: Sendable {
        var idle: [DiskTables] = []
        var generation = 0
    }

    /// Bodies up to this size are stored in packs, because a file of their own would take more space and time.
    static let packLimit = 16 << 10
    /// Above the first limit of queued bytes, writers are asked to wait; above the second, writes are refused.
    static let behind = 4 << 20
    static let overfull = 32 << 20
    /// The milliseconds to wait for another process that opens or replaces the database.
    static let lockTimeout = 1000
    /// The milliseconds to wait for another process that writes.
    static let writeTimeout = 250
    /// The nanoseconds for which a flush waits for removals that fail for now.
    static let flushPatience: Int64 = 5_000_000_000

    init(_ folder: String, capacity: Int64, maximumEntry: Int64) {
        paths = DiskPaths(folder: folder)
        packs = OpenPacks(paths)
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

    /// Whether copies of its responses are served in its place: it has failed, and nothing was removed since.
    var leavesServingToCopies: Bool { state.withLock { $0.phase == .failed } }

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
        let isUpToDate = isUpToDate()
        return state.withLock { state in
            switch state.phase {
            case .unopened: return nil
            case .failed, .untrusted: return []
            case .absent, .open:
                guard isUpToDate, !state.keys.contains(hash) else { return nil }
                return state.overlay(key, hash).pending
            }
        }
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
        remember(rows ?? [])
        let stored = (rows ?? []).map(\.response.ruled).filter { $0.key == key }
        return (overlay.over(stored), rows != nil)
    }

    private func remember(_ heads: [DiskHead]) {
        state.withLock { state in
            for head in heads { if let place = head.place { state.places.put(head.response.id, place) } }
        }
    }

    func bodyNow(_ response: StoredResponse) -> (any StoredBody)? {
        let hash = response.key.hash64
        let moment = Self.now()
        let (body, place, isDue) = state.withLock { state -> (Chunk?, PackPlace?, Bool) in
            if let entry = state.pending[response.id] { return (entry.body, nil, false) }
            guard state.phase == .open, let place = state.places[response.id], !state.isHidden(response, hash)
            else { return (nil, nil, false) }
            state.touch(response.id, hash, at: moment)
            return (nil, place, state.beginsTouching())
        }
        if isDue { submit(.touch) }
        return (body ?? place.flatMap { packs.readNow($0) }).map { MemoryBody($0) }
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
        guard let head = reading({ reader throws(DatabaseFailure) in try reader.find(response.id, hash) }) ?? nil
        else { return nil }
        remember([head])
        let body: any StoredBody
        do throws(IOFailure) { body = try open(head) { [weak self] in self?.remove(response) } } catch {
            if !error.isTemporary { remove(response) }
            return nil
        }
        touch(response.id, hash)
        return body
    }

    /// Opens a body. Blocks.
    func open(_ head: DiskHead, onDamage: @escaping @Sendable () -> Void = {}) throws(IOFailure) -> any StoredBody {
        guard let place = head.place else { return try DiskBody(head, paths.body(head.file ?? ""), onDamage: onDamage) }
        guard let body = try packs.read(place) else { throw IOFailure(.system(ENOENT), .open) }
        return MemoryBody(body)
    }

    /// Notes a use. Uses are written in groups, and before an eviction.
    /// - Parameter isCopy: the copy in memory was used, which alone causes no transaction.
    func touch(_ id: Int64, _ hash: Int64, isCopy: Bool = false) {
        let moment = Self.now()
        let isDue = state.withLock { state in
            state.touch(id, hash, at: moment)
            return !isCopy && state.beginsTouching()
        }
        if isDue { submit(.touch) }
    }

    // MARK: Connections

    /// Lends a connection; `nil` if none can be opened, or if `use` failed. Blocks.
    func reading<R>(_ use: (DiskTables) throws(DatabaseFailure) -> R) -> R? {
        let (generation, opensAgain) = state.withLock { ($0.generation, $0.opensAgain) }
        guard
            let reader = readers.withLock({ readers in
                if readers.generation != generation {
                    readers = Readers(generation: generation)
                }
                return readers.idle.popLast()
            }) ?? (opensAgain <= Poller.coarseNow() ? openReader() : nil)
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
        guard let identity = PathIdentity(paths.database) else { return nil }
        let lock: FileLock
        do throws(IOFailure) { lock = try FileLock(paths.lock, timeout: Self.lockTimeout) } catch {
            waitBeforeOpening(error)
            return nil
        }
        defer { withExtendedLifetime(lock) {} }
        do throws(DiskTables.Failure) { return try DiskTables.open(paths) } catch {
            if case .database(let failure) = error, failure.kind == .damaged { submit(.replaceDamaged(identity)) }
            return nil
        }
    }

    /// Opens the database if there is one, and its lock was not held by another process a short time ago. Blocks.
    private func ensureOpen() {
        let now = Poller.coarseNow()
        let (phase, opensAgain) = state.withLock { ($0.phase, $0.opensAgain) }
        guard phase == .unopened || phase == .absent, opensAgain <= now else { return }
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

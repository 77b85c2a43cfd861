// SPDX-License-Identifier: Apache-2.0

// The in-memory state of a disk storage, as a value behind one lock: the keys that may exist, pending writes, and
// pending removals, whose entries must not be found any more.

import URLLoadingIO

/// A response that is being written. It is found as soon as it is complete.
final class DiskEntry: Sendable {
    let response: StoredResponse
    let hash: Int64
    /// The body, if it is small enough for a pack.
    let body: Chunk?
    /// The file of a large body.
    let file: DiskFile?

    init(_ response: StoredResponse, body: Chunk?, file: DiskFile?) {
        self.response = response
        hash = response.key.hash64
        self.body = body
        self.file = file
    }

    var size: Int { response.headSize + (body?.count ?? 0) }
}

/// The hashes of all keys that may have rows, and of some that have none: what other processes remove stays, until the
/// number has doubled and all are read anew.
struct KnownKeys: Sendable {
    /// What was known at a moment.
    struct Mark: Sendable {
        fileprivate let changes: Int
        /// Whether all hashes should be read anew.
        let isFull: Bool
    }
    private var hashes: Set<Int64> = []
    private var changes = 0
    private var limit = least
    /// The number below which nothing is read anew.
    private static let least = 2_048

    var count: Int { hashes.count }
    var mark: Mark { Mark(changes: changes, isFull: hashes.count > limit) }
    func contains(_ hash: Int64) -> Bool { hashes.contains(hash) }

    mutating func add(_ found: some Sequence<Int64>) {
        hashes.formUnion(found)
        changes &+= 1
    }
    mutating func remove(_ hash: Int64) { hashes.remove(hash) }

    /// Takes the hashes of all rows that there were after the mark, in place of the known ones unless others have been
    /// added since.
    mutating func replace(with all: some Sequence<Int64>, since mark: Mark) {
        guard changes == mark.changes else { return add(all) }
        hashes = Set(all)
        changes &+= 1
        limit = max(Self.least, 2 * hashes.count)
    }
}

struct DiskState: Sendable {
    enum Phase: Sendable {
        case unopened
        /// There is no database, and nothing to store yet.
        case absent
        case open
        /// The database cannot be used; nothing is stored, and copies in memory are served.
        case failed
        /// As `failed`, and a removal was not carried out: what it removed may be among the copies, so none is served.
        case untrusted

        var hasFailed: Bool { self == .failed || self == .untrusted }
    }
    var phase = Phase.unopened
    /// The moment until which no look-up tries to open the database (`Poller.coarseNow`).
    var opensAgain: Int64 = .min
    var capacity: Int64
    var maximumEntry: Int64

    // MARK: Known content

    var keys = KnownKeys()
    /// The last row and the database state that were seen.
    var seen: Int64 = 0
    var known = DiskTables.State(total: 0, changes: 0)
    /// The time of the last check for changes of other processes, and of the last one that asked the database
    /// (`csys_now_coarse`).
    var lastCheck: Int64 = .min / 2
    var lastLongCheck: Int64 = .min / 2
    /// The number of the lock file that belongs to what was seen (`DiskStorage.isUpToDate`).
    var changeNumber: UInt64?
    /// Incremented with each change of another process that was seen.
    var epoch = 0
    /// Incremented with each change of a key; several keys share a counter. A cached lookup is valid while the counter
    /// is unchanged.
    private var revisions = [Int](repeating: 0, count: 64)
    /// Incremented when the database is replaced; connections to the old one are discarded.
    var generation = 0
    /// The places of small bodies that were read or written, by the id of the response: about 100 bytes each.
    var places = RecentTable<Int64, PackPlace>(capacity: 8_192)

    // MARK: Pending changes

    var open = OpenWrites()
    private(set) var pending: [Int64: DiskEntry] = [:]
    private var pendingByKey: [CacheKey: [DiskEntry]] = [:]
    /// Heads that replace those in rows.
    private var updates: [Int64: (response: StoredResponse, count: Int)] = [:]
    /// Removals that are not in the database yet.
    private var hiddenIDs: [Int64: Int] = [:]
    private var hiddenKeys: [Int64: Int] = [:]
    private var hiddenVariants: [Variant: Int] = [:]
    private var hiddenSince: [Double] = []
    /// The uses that are not written yet, and whether a write is queued.
    var touches: [Int64: (hash: Int64, moment: Int64)] = [:]
    var isTouching = false

    /// Identifies the responses of a key that replace each other.
    private struct Variant: Hashable, Sendable {
        let hash: Int64
        let variant: Int64
    }

    init(capacity: Int64, maximumEntry: Int64) {
        self.capacity = capacity
        self.maximumEntry = maximumEntry
    }

    /// The pending changes to a key. Taken before the rows are read, so that a change that is written meanwhile appears
    /// in at least one of the two.
    struct Overlay: Sendable {
        var pending: [StoredResponse] = []
        var updates: [Int64: StoredResponse] = [:]
        var hiddenIDs: Set<Int64> = []
        var hidesKey = false
        var hiddenVariants: Set<Int64> = []
        var since = Double.infinity

        func over(_ rows: [StoredResponse]) -> [StoredResponse] {
            var result = pending
            for row in rows where !hidesKey && !hiddenIDs.contains(row.id) && row.responseTime < since {
                let response = updates[row.id] ?? row
                guard response.responseTime < since else { continue }
                guard hiddenVariants.isEmpty || !hiddenVariants.contains(row.variantHash) else { continue }
                let isReplaced = pending.contains {
                    $0.id == row.id || $0.replaces(row) && ($0.isWhole || !row.isWhole)
                }
                if !isReplaced { result.append(response) }
            }
            return result
        }
    }

    func overlay(_ key: CacheKey, _ hash: Int64) -> Overlay {
        var overlay = Overlay()
        if !pending.isEmpty {
            overlay.pending = (pendingByKey[key] ?? []).map { updates[$0.response.id]?.response ?? $0.response }
        }
        if !updates.isEmpty { overlay.updates = updates.filter { $0.value.response.key == key }.mapValues(\.response) }
        if !hiddenIDs.isEmpty { overlay.hiddenIDs = Set(hiddenIDs.keys) }
        if !hiddenKeys.isEmpty { overlay.hidesKey = hiddenKeys[hash] != nil }
        if !hiddenVariants.isEmpty {
            overlay.hiddenVariants = Set(hiddenVariants.keys.filter { $0.hash == hash }.map(\.variant))
        }
        if let since = hiddenSince.min() { overlay.since = since }
        return overlay
    }

    func isHidden(_ response: StoredResponse, _ hash: Int64) -> Bool {
        if hiddenIDs[response.id] != nil || hiddenKeys[hash] != nil { return true }
        if !hiddenVariants.isEmpty, hiddenVariants[Variant(hash: hash, variant: response.variantHash)] != nil {
            return true
        }
        return response.responseTime >= hiddenSince.min() ?? .infinity
    }

    mutating func sawChanges(_ number: UInt64?, _ now: Int64) {
        (changeNumber, lastCheck, lastLongCheck) = (number, now, now)
    }

    // MARK: Uses

    /// The uses that are kept until they are written; more are forgotten.
    private static let mostTouches = 8_192
    /// The number of uses that are written without another reason.
    private static let manyTouches = 2_048

    mutating func touch(_ id: Int64, _ hash: Int64, at moment: Int64) {
        guard touches.count < Self.mostTouches || touches[id] != nil else { return }
        touches[id] = (hash, moment)
    }

    /// Whether the uses must be written now, which the caller then does.
    mutating func beginsTouching() -> Bool {
        guard touches.count >= Self.manyTouches, !isTouching else { return false }
        isTouching = true
        return true
    }

    // MARK: Coming and going

    func revision(_ hash: Int64) -> Int { epoch &+ revisions[Int(hash & 63)] }
    mutating func advanceRevision(_ hash: Int64) { revisions[Int(hash & 63)] &+= 1 }

    mutating func add(_ entry: DiskEntry) {
        advanceRevision(entry.hash)
        pending[entry.response.id] = entry
        pendingByKey[entry.response.key, default: []].removeAll {
            entry.response.replaces($0.response) && (entry.response.isWhole || !$0.response.isWhole)
        }
        pendingByKey[entry.response.key, default: []].insert(entry, at: 0)
    }

    /// Removes an entry that is in its row, or was given up.
    mutating func settle(_ entry: DiskEntry) {
        pending[entry.response.id] = nil
        pendingByKey[entry.response.key]?.removeAll { $0 === entry }
        if pendingByKey[entry.response.key]?.isEmpty == true { pendingByKey[entry.response.key] = nil }
    }

    mutating func update(_ response: StoredResponse) {
        advanceRevision(response.key.hash64)
        updates[response.id] = (response, (updates[response.id]?.count ?? 0) + 1)
    }
    mutating func settle(update id: Int64) {
        guard let update = updates[id] else { return }
        updates[id] = update.count > 1 ? (update.response, update.count - 1) : nil
    }

    /// Hides the responses of a pending removal. A pending response has replaced earlier ones on disk; if it is removed
    /// before it is written, they must not be found again.
    /// - Returns: the removals of the replaced responses.
    mutating func hide(_ removal: DiskOperation.Removal) -> [DiskOperation.Removal] {
        switch removal {
        case .one(let hash, let id):
            advanceRevision(hash)
            hiddenIDs[id, default: 0] += 1
            open.void(completing: id)
            return pending[id].map { takeAway([$0]) } ?? []
        case .key(let hash, let key):
            advanceRevision(hash)
            hiddenKeys[hash, default: 0] += 1
            for entry in pendingByKey[key] ?? [] { settle(entry) }
            open.void(key)
        case .variant(let hash, let variant): hiddenVariants[Variant(hash: hash, variant: variant), default: 0] += 1
        case .since(let moment):
            epoch += 1
            hiddenSince.append(moment)
            open.invalidateAll(since: moment == -.infinity ? nil : moment)
            return takeAway(pending.values.filter { $0.response.responseTime >= moment })
        }
        return []
    }

    /// Hides the responses of all rows, whose removal takes the place of many removals. Pending responses stay: they
    /// are newer than those removals.
    mutating func hideRows() {
        epoch += 1
        hiddenSince.append(-.infinity)
    }

    private mutating func takeAway(_ entries: [DiskEntry]) -> [DiskOperation.Removal] {
        var removals: [DiskOperation.Removal] = []
        for entry in entries {
            let isNewest = pendingByKey[entry.response.key]?.contains { $0 === entry } == true
            settle(entry)
            // A newer partial response has not replaced an older complete one. If a newer response is pending after
            // this one, its row replaces the same responses and must not be removed.
            guard entry.response.isWhole, isNewest else { continue }
            let replaced = DiskOperation.Removal.variant(hash: entry.hash, variant: entry.response.variantHash)
            removals.append(replaced)
            _ = hide(replaced)
        }
        return removals
    }

    mutating func settle(_ removal: DiskOperation.Removal) {
        switch removal {
        case .one(_, let id): hiddenIDs[id] = (hiddenIDs[id] ?? 0) > 1 ? (hiddenIDs[id] ?? 1) - 1 : nil
        case .key(let hash, _): hiddenKeys[hash] = (hiddenKeys[hash] ?? 0) > 1 ? (hiddenKeys[hash] ?? 1) - 1 : nil
        case .variant(let hash, let number):
            let variant = Variant(hash: hash, variant: number)
            let count = hiddenVariants[variant] ?? 0
            hiddenVariants[variant] = count > 1 ? count - 1 : nil
        case .since(let moment): if let place = hiddenSince.firstIndex(of: moment) { hiddenSince.remove(at: place) }
        }
    }
}

/// An operation of the lane, in order.
enum DiskOperation: Sendable {
    case write(DiskFile, Chunk)
    /// Begins a file with the stored part of another response.
    case copy(DiskFile, StoredResponse)
    case commit(DiskEntry)
    case update(StoredResponse)
    case remove(Removal)
    /// Writes the pending times of use.
    case touch
    /// Opens the database, and creates it if it is missing.
    case open
    /// Checks for changes of other processes.
    case readChanges
    /// Moves the content of the write-ahead log to the database.
    case checkpoint
    /// Evicts down to the capacity.
    case shrink
    /// Replaces the damaged database with this identity.
    case replaceDamaged(PathIdentity)
    /// Removes the files of these folders that no row refers to.
    case sweep([String])
    /// Signals that all earlier operations are done, or were given up. Until the given moment (`Poller.coarseNow`) it
    /// waits for removals that failed for now.
    case barrier(ThreadSignal, until: Int64)

    enum Removal: Hashable, Sendable {
        case one(hash: Int64, id: Int64)
        case key(hash: Int64, CacheKey)
        /// Removes the variant of a key.
        case variant(hash: Int64, variant: Int64)
        /// Removes responses that arrived at or after a moment; -infinity: all.
        case since(Double)

        var hash: Int64? {
            switch self {
            case .one(let hash, _), .key(let hash, _), .variant(let hash, _): hash
            case .since: nil
            }
        }
    }

    /// The memory that the operation holds until it is done, in bytes.
    var size: Int {
        switch self {
        case .write(_, let chunk): chunk.storage.capacity
        case .commit(let entry): entry.size
        default: 256
        }
    }
}

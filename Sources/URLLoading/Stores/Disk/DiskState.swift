// What a disk storage knows without asking the disk. A value behind one lock: which keys there may be, what is on its
// way there, and what is to go and must not be found any more.

import URLLoadingIO

/// A response on its way to the disk. It is found from the moment it is whole.
final class DiskEntry: Sendable {
    let response: StoredResponse
    let hash: Int64
    /// A small body.
    let body: Chunk?
    /// A large one.
    let file: DiskFile?

    init(_ response: StoredResponse, body: Chunk?, file: DiskFile?) {
        self.response = response
        hash = response.key.hash64
        self.body = body
        self.file = file
    }

    var size: Int { response.headSize + (body?.count ?? 0) }
}

struct DiskState: Sendable {
    enum Phase: Sendable {
        case unopened
        /// There is no database, and nothing to store yet.
        case absent
        case open
        /// It cannot be had: nothing is kept there.
        case failed
    }
    var phase = Phase.unopened
    var capacity: Int64
    var maximumEntry: Int64

    // MARK: What there is

    /// Of all keys there are, and some there were.
    var index: Set<Int64> = []
    /// The last row we have seen, and the state the database was in.
    var seen: Int64 = 0
    var known = DiskTables.State(total: 0, changes: 0)
    /// When we looked last whether others have changed it (`csys_now_coarse`).
    var looked: Int64 = .min / 2
    /// Grows with each change of others that we have seen.
    var epoch = 0
    /// Grow with each change of a key, of some keys together: who remembers what he found knows by them whether it still
    /// holds.
    private var revisions = [Int](repeating: 0, count: 64)
    /// Grows when the database is another one: connections to the old are of no use.
    var generation = 0

    // MARK: What is on its way

    var open = OpenWrites()
    private(set) var pending: [Int64: DiskEntry] = [:]
    private var pendingByKey: [CacheKey: [DiskEntry]] = [:]
    /// Heads that replace those in the rows.
    private var updates: [Int64: (response: StoredResponse, count: Int)] = [:]
    /// Removals that the database has not heard of.
    private var hiddenIDs: [Int64: Int] = [:]
    private var hiddenKeys: [Int64: Int] = [:]
    private var hiddenVariants: [Variant: Int] = [:]
    private var hiddenSince: [Double] = []
    /// What was used, and is not written down yet; and whether that was asked for.
    var touches: [Int64: (hash: Int64, moment: Int64)] = [:]
    var isTouching = false

    /// The responses of a key that replace each other.
    private struct Variant: Hashable, Sendable {
        let hash: Int64
        let variant: Int64
    }

    init(capacity: Int64, maximumEntry: Int64) {
        self.capacity = capacity
        self.maximumEntry = maximumEntry
    }

    /// What has to be known besides the rows; taken before they are read, so that what gets there meanwhile is found
    /// here or there.
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

    // MARK: Coming and going

    func revision(_ hash: Int64) -> Int { epoch &+ revisions[Int(hash & 63)] }
    mutating func bump(_ hash: Int64) { revisions[Int(hash & 63)] &+= 1 }

    mutating func add(_ entry: DiskEntry) {
        bump(entry.hash)
        pending[entry.response.id] = entry
        pendingByKey[entry.response.key, default: []].removeAll {
            entry.response.replaces($0.response) && (entry.response.isWhole || !$0.response.isWhole)
        }
        pendingByKey[entry.response.key, default: []].insert(entry, at: 0)
    }

    /// It is in its row, or given up.
    mutating func settle(_ entry: DiskEntry) {
        pending[entry.response.id] = nil
        pendingByKey[entry.response.key]?.removeAll { $0 === entry }
        if pendingByKey[entry.response.key]?.isEmpty == true { pendingByKey[entry.response.key] = nil }
    }

    mutating func update(_ response: StoredResponse) {
        bump(response.key.hash64)
        updates[response.id] = (response, (updates[response.id]?.count ?? 0) + 1)
    }
    mutating func settle(update id: Int64) {
        guard let update = updates[id] else { return }
        updates[id] = update.count > 1 ? (update.response, update.count - 1) : nil
    }

    /// Hides what a removal is to remove. A response on its way to the disk has replaced what is there already; when it is
    /// removed before it is in its row, that must not come back.
    /// - Returns: the removals of what was replaced.
    mutating func hide(_ removal: DiskOperation.Removal) -> [DiskOperation.Removal] {
        switch removal {
        case .one(let hash, let id):
            bump(hash)
            hiddenIDs[id, default: 0] += 1
            open.void(completing: id)
            return pending[id].map { takeAway([$0]) } ?? []
        case .key(let hash, let key):
            bump(hash)
            hiddenKeys[hash, default: 0] += 1
            for entry in pendingByKey[key] ?? [] { settle(entry) }
            open.void(key)
        case .variant(let hash, let variant): hiddenVariants[Variant(hash: hash, variant: variant), default: 0] += 1
        case .since(let moment):
            epoch += 1
            hiddenSince.append(moment)
            open.voidAll(since: moment == -.infinity ? nil : moment)
            return takeAway(pending.values.filter { $0.response.responseTime >= moment })
        }
        return []
    }

    private mutating func takeAway(_ entries: [DiskEntry]) -> [DiskOperation.Removal] {
        var removals: [DiskOperation.Removal] = []
        for entry in entries {
            let isNewest = pendingByKey[entry.response.key]?.contains { $0 === entry } == true
            settle(entry)
            // The beginning of a newer one has not replaced the whole of an older one. Where a newer response is on its way
            // behind this one, its row replaces all that this one has replaced, and must not be removed.
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

/// What the lane is asked to do, in order.
enum DiskOperation: Sendable {
    case write(DiskFile, Chunk)
    /// Begins a file with what another has.
    case copy(DiskFile, StoredResponse)
    case commit(DiskEntry)
    case update(StoredResponse)
    case remove(Removal)
    /// Writes down what was used.
    case touch
    /// Opens the database, and makes it unless it is there.
    case open
    /// Looks whether others have changed it.
    case look
    /// Brings what was written ahead to where it belongs.
    case checkpoint
    /// Keeps the capacity.
    case shrink
    /// The database is damaged: the one with this identity.
    case setAside(PathIdentity)
    /// Removes files of a folder that no row knows.
    case sweep([String])
    /// Says that all before it is done.
    case barrier(ThreadSignal)

    enum Removal: Sendable {
        case one(hash: Int64, id: Int64)
        case key(hash: Int64, CacheKey)
        /// The one of a key that varies like another.
        case variant(hash: Int64, variant: Int64)
        /// -infinity: everything.
        case since(Double)

        var hash: Int64? {
            switch self {
            case .one(let hash, _), .key(let hash, _), .variant(let hash, _): hash
            case .since: nil
            }
        }
    }

    /// Bytes that it keeps in memory until it is done.
    var size: Int {
        switch self {
        case .write(_, let chunk): chunk.storage.capacity
        case .commit(let entry): entry.size
        default: 256
        }
    }
}

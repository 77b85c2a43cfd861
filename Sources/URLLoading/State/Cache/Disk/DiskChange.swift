// SPDX-License-Identifier: Apache-2.0

// One transaction: its changes, and the work that follows its commit.

import URLLoadingIO

struct DiskChange {
    private(set) var stored: [DiskEntry] = []
    /// Files of one body that no row refers to any more, and packs that no row refers to.
    private(set) var files: [String] = []
    private(set) var packs: [String] = []
    private(set) var holes: [Hole] = []
    private(set) var hashes: Set<Int64> = []
    /// Whether `hashes` are those of all rows.
    private(set) var hasAllHashes = false
    /// Hashes that no row has any more.
    private(set) var removedHashes: Set<Int64> = []
    private(set) var known: DiskTables.State
    private(set) var seen: Int64
    /// Another process has changed the database since the last check.
    private(set) var isForeign = false
    let epoch: Int
    /// The keys as they were known before the transaction.
    let keys: KnownKeys.Mark
    /// The number of the lock file after the transaction.
    var number: UInt64?

    /// Bytes of a pack to which no row refers.
    struct Hole: Sendable {
        let pack: String
        let range: Range<Int64>
        /// The size of the file system's blocks, or a part of it.
        private static let block: Int64 = 4096

        /// All bodies of a pack without a row. Those to which a process that has claimed the pack is about to refer are
        /// behind them.
        init(all ranges: [Range<Int64>], of pack: String) {
            (self.pack, range) = (pack, 0..<(ranges.map(\.upperBound).max() ?? 0))
        }

        /// The whole blocks of a gap; fails if there are none.
        init?(_ pack: String, _ gap: Range<Int64>) {
            let start = (gap.lowerBound + Self.block - 1) / Self.block * Self.block
            let end = gap.upperBound / Self.block * Self.block
            guard start < end else { return nil }
            (self.pack, range) = (pack, start..<end)
        }
    }

    private let capacity: Int64
    private let pending: [Int64: DiskEntry]
    /// The places of small bodies, which are in their pack already.
    let places: [Int64: PackPlace]
    /// The ranges of packs whose rows were removed.
    private var gone: [String: [Range<Int64>]] = [:]
    private let touches: [Int64: (hash: Int64, moment: Int64)]
    /// The touches that were written.
    private(set) var touched: [Int64: (hash: Int64, moment: Int64)] = [:]
    private var difference: Int64 = 0

    init(_ state: DiskState, _ places: [Int64: PackPlace] = [:]) {
        self.places = places
        known = state.known
        seen = state.seen
        epoch = state.epoch
        keys = state.keys.mark
        capacity = state.capacity
        pending = state.pending
        touches = state.touches
    }

    mutating func apply(_ batch: [DiskOperation], _ tables: DiskTables) throws(DatabaseFailure) {
        // A retry starts from the state before the transaction.
        let base = self
        do throws(DatabaseFailure) {
            try begin(tables)
            for operation in batch { try apply(operation, tables) }
            try keepCapacity(tables)
            try close(tables)
        } catch {
            self = base
            throw error
        }
    }

    mutating func makeRoom(_ room: Int64, _ tables: DiskTables) throws(DatabaseFailure) {
        try begin(tables)
        try evict(to: max(0, known.total - room), tables)
        try close(tables)
    }

    private mutating func apply(_ operation: DiskOperation, _ tables: DiskTables) throws(DatabaseFailure) {
        switch operation {
        case .commit(let entry): try store(entry, tables)
        case .update(let response): try update(response, tables)
        case .remove(.one(let hash, let id)): try delete(.one(hash: hash, id: id), tables)
        case .remove(.key(let hash, _)): try delete(.key(hash), tables)
        case .remove(.variant(let hash, let variant)): try delete(.variant(hash: hash, variant: variant), tables)
        case .remove(.since(let moment)): try delete(moment == -.infinity ? .all : .since(moment), tables)
        case .touch: try touch(tables)
        default: break
        }
    }

    private mutating func store(_ entry: DiskEntry, _ tables: DiskTables) throws(DatabaseFailure) {
        // The response was removed meanwhile, or its file could not be written.
        guard pending[entry.response.id] === entry, entry.file?.hasFailed != true else { return }
        guard let head = head(of: entry) else { return }
        let variant = entry.response.variantHash
        // A newer partial response is worth less than an older complete one.
        if !entry.response.isWhole, try tables.hasWhole(hash: entry.hash, variant: variant) { return }
        try delete(.variant(hash: entry.hash, variant: variant), tables)
        let row = try tables.insert(head, hash: entry.hash, used: DiskStorage.now())
        difference += row.size
        // The rows of a key are read together, so their number is limited: a response that varies with every request
        // must not slow each lookup.
        let siblings = try tables.rows(.key(entry.hash))
        if siblings.count > MemoryTable.maximumVariants {
            try delete(siblings.sorted { $0.seq < $1.seq }.dropLast(MemoryTable.maximumVariants), tables)
        }
        seen = max(seen, row.seq)
        hashes.insert(entry.hash)
        removedHashes.remove(entry.hash)
        stored.append(entry)
    }

    /// Returns the head with the place of the body; `nil` if the body could not be written.
    private func head(of entry: DiskEntry) -> DiskHead? {
        guard let file = entry.file else {
            if entry.body?.count ?? 0 == 0 { return DiskHead(entry.response, file: nil, sums: []) }
            return places[entry.response.id].map { DiskHead(entry.response, at: $0) }
        }
        guard file.length == entry.response.storedLength else {
            file.fail()
            return nil
        }
        return DiskHead(entry.response, file: file.name, sums: file.finishSums())
    }

    private mutating func update(_ response: StoredResponse, _ tables: DiskTables) throws(DatabaseFailure) {
        let hash = response.key.hash64
        guard var head = try tables.find(response.id, hash) else { return }
        let extent = head.response.extent
        head.response = response
        head.response.extent = extent
        difference += try tables.update(head, hash: hash)
    }

    private mutating func delete(_ selection: DiskTables.Selection, _ tables: DiskTables) throws(DatabaseFailure) {
        try delete(try tables.rows(selection), tables)
    }

    private mutating func delete(_ rows: some Sequence<DiskTables.Row>, _ tables: DiskTables) throws(DatabaseFailure) {
        for row in rows {
            try tables.delete(row)
            difference -= row.size
            removedHashes.insert(row.hash)
            guard let file = row.file else { continue }
            if DiskPack.isPack(file) { gone[file, default: []].append(row.range) } else { files.append(file) }
        }
    }

    private mutating func touch(_ tables: DiskTables) throws(DatabaseFailure) {
        guard touched.count < touches.count else { return }
        for (id, touch) in touches { try tables.touch(id, hash: touch.hash, at: touch.moment) }
        touched = touches
    }

    /// Evicts down to 95 % of the capacity, so that not every transaction evicts.
    private mutating func keepCapacity(_ tables: DiskTables) throws(DatabaseFailure) {
        guard known.total + difference > capacity else { return }
        try evict(to: capacity - capacity / 20, tables)
    }

    private mutating func evict(to limit: Int64, _ tables: DiskTables) throws(DatabaseFailure) {
        try touch(tables)
        while known.total + difference > limit {
            let rows = try tables.rows(.oldest(64))
            guard !rows.isEmpty else { return }
            for row in rows where known.total + difference > limit { try delete([row], tables) }
        }
    }

    /// Reads the changes of other processes since the last check.
    private mutating func begin(_ tables: DiskTables) throws(DatabaseFailure) {
        let now = try tables.state()
        guard now.changes != known.changes else { return }
        isForeign = true
        known = now
        var found: Set<Int64> = []
        hasAllHashes = keys.isFull
        seen = try tables.hashes(after: hasAllHashes ? 0 : seen) { found.insert($0) }
        hashes.formUnion(found)
    }

    private mutating func close(_ tables: DiskTables) throws(DatabaseFailure) {
        known = try tables.note(difference)
        for hash in removedHashes where try tables.hasRow(forHash: hash) { removedHashes.remove(hash) }
        hashes.subtract(removedHashes)
        for (pack, ranges) in gone { try free(ranges, of: pack, tables) }
        gone = [:]
    }

    private mutating func free(
        _ ranges: [Range<Int64>], of pack: String, _ tables: DiskTables
    ) throws(DatabaseFailure) {
        guard try tables.hasRow(forFile: pack) else {
            // What was removed is gone at once, even if another process appends to the pack or reads it.
            holes.append(Hole(all: ranges, of: pack))
            return packs.append(pack)
        }
        // Responses that are stored together are often removed together: one gap for all of them.
        var end: Int64 = -1
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > end {
            let gap = try tables.gap(around: range, in: pack)
            end = gap.upperBound
            if let hole = Hole(pack, gap) { holes.append(hole) }
        }
    }
}

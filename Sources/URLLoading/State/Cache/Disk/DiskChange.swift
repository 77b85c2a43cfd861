// SPDX-License-Identifier: Apache-2.0

// One transaction: its changes, and the work that follows its commit.

import URLLoadingIO

struct DiskChange {
    private(set) var stored: [DiskEntry] = []
    /// Files that no row refers to any more.
    private(set) var files: [String] = []
    private(set) var hashes: Set<Int64> = []
    /// Hashes that no row has any more.
    private(set) var removedHashes: Set<Int64> = []
    private(set) var known: DiskTables.State
    private(set) var seen: Int64
    /// Another process has changed the database since the last check.
    private(set) var isForeign = false
    let epoch: Int

    private let capacity: Int64
    private let pending: [Int64: DiskEntry]
    private let touches: [Int64: (hash: Int64, moment: Int64)]
    /// The touches that were written.
    private(set) var touched: [Int64: (hash: Int64, moment: Int64)] = [:]
    private var difference: Int64 = 0

    init(_ state: DiskState) {
        known = state.known
        seen = state.seen
        epoch = state.epoch
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
        var sums = BlockSums()
        entry.body?.withUnsafeBytes { sums.add($0) }
        let all = entry.file?.finishSums() ?? sums.finish()
        if let file = entry.file, file.length != entry.response.storedLength { return file.fail() }
        let variant = entry.response.variantHash
        // A newer partial response is worth less than an older complete one.
        if !entry.response.isWhole, try tables.hasWhole(hash: entry.hash, variant: variant) { return }
        try delete(.variant(hash: entry.hash, variant: variant), tables)
        let head = DiskHead(entry.response, file: entry.file?.name, sums: all)
        let row = try tables.insert(head, hash: entry.hash, body: entry.body, used: DiskStorage.now())
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

    private mutating func update(_ response: StoredResponse, _ tables: DiskTables) throws(DatabaseFailure) {
        let hash = response.key.hash64
        guard let found = try tables.find(response.id, hash) else { return }
        var head = found.head
        let extent = head.response.extent
        head.response = response
        head.response.extent = extent
        try tables.update(head, hash: hash)
    }

    private mutating func delete(_ selection: DiskTables.Selection, _ tables: DiskTables) throws(DatabaseFailure) {
        try delete(try tables.rows(selection), tables)
    }

    private mutating func delete(_ rows: some Sequence<DiskTables.Row>, _ tables: DiskTables) throws(DatabaseFailure) {
        for row in rows {
            try tables.delete(row)
            difference -= row.size
            removedHashes.insert(row.hash)
            if let file = row.file { files.append(file) }
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
        seen = try tables.hashes(after: seen) { found.insert($0) }
        hashes.formUnion(found)
    }

    private mutating func close(_ tables: DiskTables) throws(DatabaseFailure) {
        known = try tables.note(difference)
        for hash in removedHashes where try tables.hasRow(forHash: hash) { removedHashes.remove(hash) }
        hashes.subtract(removedHashes)
    }
}

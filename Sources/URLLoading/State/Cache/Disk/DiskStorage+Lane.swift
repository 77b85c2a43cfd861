// SPDX-License-Identifier: Apache-2.0

// The lane: one thread carries out the queued operations in batches. It writes bodies first, then changes all rows in
// one transaction, then removes files without a row. Whenever the process ends, each row therefore refers to a complete
// file, and only files without a row are left over.

import Synchronization
import URLLoadingIO

extension DiskStorage {
    func submit(_ operation: DiskOperation) { begin(enqueue(operation)) }

    /// Changes the state and queues the operations for the rows in one step. With two separate steps, a removal could
    /// be queued after the commit of a newer response, and remove that response.
    func submit(_ change: (inout DiskState) -> [DiskOperation]) {
        let work = state.withLock { state in change(&state).map(enqueue) }
        for work in work { begin(work) }
    }

    /// The signal that a queued operation gives to the lane's thread.
    private enum Work {
        case starts
        case isUrgent
        case waits
    }

    private func enqueue(_ operation: DiskOperation) -> Work {
        let bytes = queued.add(operation.size, ordering: .relaxed).newValue
        let mustStart = lane.withLock { lane in
            lane.add(operation)
            if case .barrier = operation { lane.isUrgent = true }
            if bytes > Self.behind / 4 { lane.isUrgent = true }
            defer { lane.isRunning = true }
            return !lane.isRunning
        }
        if mustStart { return .starts }
        if case .barrier = operation { return .isUrgent }
        return bytes > Self.behind / 4 && bytes - operation.size <= Self.behind / 4 ? .isUrgent : .waits
    }

    private func begin(_ work: Work) {
        switch work {
        case .starts: thread.run { self.work() }
        case .isUrgent: urgency.raise()
        case .waits: break
        }
    }

    /// Waits until all submitted operations are done, or were given up. Blocks; must not run on the lane's own thread.
    /// - Parameter patience: the nanoseconds for which a removal is waited for that fails because another process has
    ///   the lock, or because the disk is full.
    func settle(patience: Int64 = 0) {
        let done = ThreadSignal()
        submit(.barrier(done, until: patience > 0 ? Poller.coarseNow() + patience : .min))
        while !done.wait(nanoseconds: 3_600_000_000_000) {}
    }

    /// Waits for at most this many nanoseconds, so that the process's exit does not hang.
    func settle(atMost limit: Int64) {
        let done = ThreadSignal()
        submit(.barrier(done, until: Poller.coarseNow() + limit))
        _ = done.wait(nanoseconds: limit)
    }

    func flush() {
        submit(.touch)
        // A wrong bit in the log would lose everything after it, so a flush moves it to the database.
        submit(.checkpoint)
        settle(patience: Self.flushPatience)
    }

    private func work() {
        while true {
            // One transaction for many operations costs little more than for one.
            if let pause = lane.withLock({ $0.isUrgent ? nil : $0.pause }) { _ = urgency.wait(nanoseconds: pause) }
            let batch = lane.withLock { lane in
                lane.isUrgent = false
                let batch = lane.takeBatch()
                if batch.isEmpty { lane.isRunning = false } else if !lane.isEmpty { lane.isUrgent = true }
                return batch
            }
            if batch.isEmpty { return }
            let removals = perform(batch)
            done(batch, again: removals)
        }
    }

    /// - Parameter removals: the removals of the batch that failed for now.
    private func done(_ batch: [DiskOperation], again removals: [DiskOperation]) {
        let now = Poller.coarseNow()
        // What waits for removals follows them.
        let again = removals.isEmpty ? [] : removals + batch.filter { $0.waitsForRemovals(now) }
        let bytes = batch.reduce(0) { $0 + $1.size } - again.reduce(0) { $0 + $1.size }
        let left = queued.subtract(bytes, ordering: .relaxed).newValue
        if !again.isEmpty { lane.withLock { $0.putBack(again) } }
        for case .barrier(let signal, let end) in batch where removals.isEmpty || end <= now {
            if !removals.isEmpty, end > .min { report(.pending) }
            signal.raise()
        }
        guard left < Self.behind / 2 else { return }
        for slot in lane.withLock({ lane in
            defer { lane.waiters.removeAll() }
            return lane.waiters
        }) { slot.wake() }
    }

    // MARK: A batch

    /// - Returns: the removals to try again.
    private func perform(_ all: [DiskOperation]) -> [DiskOperation] {
        guard let tables = prepare(for: all) else {
            // The database is being opened by another process, or there is no descriptor: removals must not be lost.
            let hasRows = mayExist
            if !hasRows, all.contains(where: \.removesAll), PathIdentity(paths.damaged) != nil {
                try? locked { _ in paths.removeDamaged() }
            }
            return giveUp(all, hasRows: hasRows)
        }
        let batch = tables.isLogFull ? withoutStoring(all, tables) : all
        for operation in batch { writeFile(operation, tables) }
        let places = writePack(batch, tables)
        guard batch.contains(where: \.changesRows), !isNothing(batch, tables) else {
            state.withLock { state in for operation in batch { state.settle(operation) } }
            maintain(batch, tables)
            return []
        }
        var change = state.withLock { DiskChange($0, places) }
        do throws(DatabaseFailure) {
            try write(&change, to: tables) { change, tables throws(DatabaseFailure) in try change.apply(batch, tables) }
            settle(batch, change, tables)
            maintain(batch, tables)
            return []
        } catch {
            return failed(batch, error, tables, places)
        }
    }

    /// Whether there may be a database.
    private var mayExist: Bool {
        do throws(IOFailure) { return try PathIdentity.find(paths.database) != nil } catch { return true }
    }

    /// Gives up what would be stored, if the log is full and cannot be emptied because a reader in another process
    /// stands still. Removals are carried out: they need little room.
    private func withoutStoring(_ batch: [DiskOperation], _ tables: DiskTables) -> [DiskOperation] {
        try? locked { _ throws(DatabaseFailure) in try tables.checkpoint() }
        guard tables.isLogFull else { return batch }
        stopStoring()
        _ = giveUp(batch.filter(\.stores), hasRows: true)
        return batch.filter { !$0.stores }
    }

    /// Runs one transaction under the lock that keeps other processes from writing and from checkpoints (`Database`).
    private func write(
        _ change: inout DiskChange, to tables: DiskTables,
        _ work: (inout DiskChange, DiskTables) throws(DatabaseFailure) -> Void
    ) throws(DatabaseFailure) {
        try locked { lock throws(DatabaseFailure) in
            // While this process waited for the lock, another may have set the database aside, or moved the folder.
            guard PathIdentity(paths.database) == tables.identity else { throw .replaced }
            change.number = try self.change(lock) { () throws(DatabaseFailure) in
                try tables.transaction { () throws(DatabaseFailure) in try work(&change, tables) }
            }
            tables.checkpointIfLong()
        }
    }

    private func locked(_ work: (FileLock) throws(DatabaseFailure) -> Void) throws(DatabaseFailure) {
        let lock: FileLock
        do throws(IOFailure) { lock = try FileLock(paths.lock, timeout: Self.writeTimeout) } catch {
            throw DatabaseFailure(lock: error)
        }
        defer { withExtendedLifetime(lock) {} }
        try work(lock)
    }

    private func checkpoint(_ tables: DiskTables) {
        // What a flush has written survives a loss of power.
        pack.withLock { $0 }?.synchronize()
        try? locked { _ throws(DatabaseFailure) in try tables.checkpoint() }
    }

    /// Whether a batch removes only responses that do not exist, as most unsafe methods do (RFC 9111 §4.4): no
    /// transaction is needed.
    private func isNothing(_ batch: [DiskOperation], _ tables: DiskTables) -> Bool {
        batch.allSatisfy { operation in
            guard operation.changesRows else { return true }
            guard case .remove(let removal) = operation, let hash = removal.hash else { return false }
            return (try? tables.hasRow(forHash: hash)) == false
        }
    }

    /// Carries out the operations that do not change rows.
    private func maintain(_ batch: [DiskOperation], _ tables: DiskTables) {
        for operation in batch {
            switch operation {
            case .readChanges: try? readChanges(tables, Poller.coarseNow())
            case .checkpoint: checkpoint(tables)
            case .replaceDamaged(let identity): replaceDamaged(identity)
            case .sweep(let folders): sweep(folders, tables)
            case .shrink: giveBack(tables)
            case .remove(.since(let moment)): clear(since: moment, tables)
            default: break
            }
        }
    }

    /// Removes what a large removal has left: free pages, and what can still be read in the log and in a database that
    /// was set aside.
    private func clear(since moment: Double, _ tables: DiskTables) {
        giveBack(tables)
        try? locked { _ throws(DatabaseFailure) in
            if moment == -.infinity { paths.removeDamaged() }
            try tables.checkpoint()
        }
    }

    /// Returns freed space to the file system after a large removal; at most 512 MiB at a time.
    private func giveBack(_ tables: DiskTables) {
        var count = 0
        var hasMore = true
        // The lock is released after each step, so that other processes can write.
        while hasMore, count < 256 {
            hasMore = false
            try? locked { _ throws(DatabaseFailure) in hasMore = try tables.giveBack() }
            if hasMore { count += 1 }
        }
        if count > 0 { checkpoint(tables) }
    }

    private func writeFile(_ operation: DiskOperation, _ tables: DiskTables) {
        do throws(IOFailure) {
            switch operation {
            case .write(let file, let chunk) where !file.hasFailed: try file.write(chunk, paths)
            case .copy(let file, let base): try copy(base, to: file, tables)
            default: break
            }
        } catch {
            switch operation {
            case .write(let file, _), .copy(let file, _): file.fail()
            default: break
            }
            refused(error, tables)
        }
    }

    private func refused(_ error: IOFailure, _ tables: DiskTables) {
        report(.init(error))
        if error.isFull { isFull(tables) }
    }

    /// Appends the small bodies of a batch to the pack of this process.
    private func writePack(_ batch: [DiskOperation], _ tables: DiskTables) -> [Int64: PackPlace] {
        let bodies = state.withLock { state in
            batch.compactMap { operation -> (id: Int64, body: Chunk)? in
                guard case .commit(let entry) = operation, let body = entry.body, body.count > 0,
                    state.pending[entry.response.id] === entry
                else { return nil }
                return (entry.response.id, body)
            }
        }
        guard !bodies.isEmpty else { return [:] }
        do throws(IOFailure) { return try openPack(tables).append(bodies) } catch {
            closePack(tables)
            refused(error, tables)
            return [:]
        }
    }

    private func openPack(_ tables: DiskTables) throws(IOFailure) -> DiskPack {
        if let pack = pack.withLock({ $0 }) {
            if pack.takesMore { return pack }
            closePack(tables)
        }
        let made = try DiskPack(paths)
        pack.withLock { $0 = made }
        return made
    }

    /// Ends the use of the pack of this process, and removes it if no row refers to it.
    private func closePack(_ tables: DiskTables) {
        guard let closed = pack.withLock({ $0.take() }) else { return }
        // A later flush knows only the next pack.
        closed.synchronize()
        closed.close()
        removeLeftOver(closed.name, tables)
    }

    /// Removes the bodies whose rows are gone.
    private func remove(_ change: DiskChange, _ tables: DiskTables) {
        for name in change.files { paths.remove(name) }
        // Holes first: another process may keep a removed pack open for a long time.
        for hole in change.holes { free(hole) }
        for name in change.packs {
            packs.close()
            if pack.withLock({ $0?.name == name }) { closePack(tables) } else { removeLeftOver(name, tables) }
        }
    }

    private func free(_ hole: DiskChange.Hole) { try? FileWriter.reopen(paths.body(hole.pack)).0.free(hole.range) }

    private func copy(_ base: StoredResponse, to file: DiskFile, _ tables: DiskTables) throws(IOFailure) {
        let head = (try? tables.find(base.id, base.key.hash64)) ?? nil
        guard let head, let body = try? open(head) else { return file.fail() }
        var offset: Int64 = 0
        while offset < body.length {
            guard let chunk = body.read(at: offset, atMost: 1 << 20), chunk.count > 0 else { return file.fail() }
            try file.write(chunk, paths)
            offset += Int64(chunk.count)
        }
    }

    private func settle(_ batch: [DiskOperation], _ change: DiskChange, _ tables: DiskTables) {
        lane.withLock { $0.failures = 0 }
        for entry in change.stored { entry.file?.keep() }
        if !change.places.isEmpty { pack.withLock { $0 }?.keep() }
        remove(change, tables)
        state.withLock { state in
            for (id, place) in change.places { state.places.put(id, place) }
            for operation in batch { state.settle(operation) }
            for (id, touch) in change.touched where state.touches[id]?.moment == touch.moment {
                state.touches[id] = nil
            }
            if change.hasAllHashes {
                state.keys.replace(with: change.hashes, since: change.keys)
            } else {
                state.keys.add(change.hashes)
            }
            // A lookup may have seen the key again since.
            for hash in change.removedHashes where state.epoch == change.epoch { state.keys.remove(hash) }
            // The transaction has seen all changes before it. If a look-up has seen later ones meanwhile, the next one
            // asks the database again.
            if let number = change.number, change.known.changes != state.known.changes { state.changeNumber = number }
            if change.isForeign { state.epoch += 1 }
            state.seen = max(state.seen, change.seen)
            state.known = change.known
        }
        if change.isForeign { packs.close() }
    }

    // MARK: Failures

    private func failed(
        _ batch: [DiskOperation], _ failure: DatabaseFailure, _ tables: DiskTables, _ places: [Int64: PackPlace]
    ) -> [DiskOperation] {
        switch failure.kind {
        case .busy: return giveUp(batch, hasRows: true)
        case .full:
            report(.init(failure))
            isFull(tables)
        case .damaged:
            replaceDamaged(tables.identity)
            // Retry once with the new database.
            if let tables = writer.withLock({ $0 }) {
                var change = state.withLock { DiskChange($0, places) }
                let isWritten: Void? = try? write(&change, to: tables) { change, tables throws(DatabaseFailure) in
                    try change.apply(batch, tables)
                }
                if isWritten != nil {
                    settle(batch, change, tables)
                    maintain(batch, tables)
                    return []
                }
            }
        case .unwritable, .other: report(.init(failure))
        }
        // A full disk may have room again at any time.
        let triesAgain =
            failure.kind == .full
            || failure.kind != .unwritable
                && lane.withLock { lane in
                    lane.failures += 1
                    return lane.failures <= 3
                }
        // A response whose removal failed must not be served, so the storage stops serving.
        if !triesAgain, batch.contains(where: \.isRemoval) { fail(.init(failure)) }
        return giveUp(batch, hasRows: true)
    }

    /// Drops the writes of a batch.
    /// - Returns: the removals of rows that there may be. They stay hidden, and are tried again.
    private func giveUp(_ batch: [DiskOperation], hasRows: Bool) -> [DiskOperation] {
        for case .write(let file, _) in batch { file.fail() }
        return state.withLock { $0.giveUp(batch, hasRows: hasRows) }
    }

    /// Stores nothing for a while.
    func stopStoring() { lane.withLock { $0.resumes = Poller.coarseNow() + 10_000_000_000 } }

    /// Makes room, and stores nothing for a while.
    private func isFull(_ tables: DiskTables) {
        stopStoring()
        var change = state.withLock { DiskChange($0) }
        let room = max(64 << 10, change.known.total / 10)
        do throws(DatabaseFailure) {
            try write(&change, to: tables) { change, tables throws(DatabaseFailure) in
                try change.makeRoom(room, tables)
            }
            settle([], change, tables)
            return giveBack(tables)
        } catch {}
        // Even the removal of rows does not fit. Removing bodies needs no room, and a row without its body is detected.
        for row in (try? tables.rows(.oldest(64))) ?? [] {
            guard let name = row.file else { continue }
            if !DiskPack.isPack(name) {
                paths.remove(name)
            } else if let hole = DiskChange.Hole(name, row.range) {
                free(hole)
            }
        }
        checkpoint(tables)
    }

    /// Whether the disk, or the log, was full a short time ago.
    var isUnread: Bool { lane.withLock { $0.resumes > Poller.coarseNow() } }
}

extension DiskState {
    /// The number of removals that are tried again. More are replaced by the removal of everything: a cache may forget,
    /// but neither its memory nor a transaction may grow for as long as another process has the lock.
    static let mostRemovals = 2_048

    /// Settles the operations of a batch that failed, except for its removals of rows that there may be.
    /// - Returns: the removals to try again.
    mutating func giveUp(_ batch: [DiskOperation], hasRows: Bool) -> [DiskOperation] {
        var removals: Set<DiskOperation.Removal> = []
        for operation in batch {
            if case .remove(let removal) = operation {
                if phase.hasFailed {
                    phase = .untrusted
                } else if hasRows, removals.insert(removal).inserted {
                    continue
                }
            }
            // Also a removal that is in the batch twice: what would be stored between the two is given up.
            settle(operation)
        }
        guard removals.count > Self.mostRemovals else { return removals.map { .remove($0) } }
        hideRows()
        for removal in removals { settle(removal) }
        return [.remove(.since(-.infinity))]
    }

    mutating func settle(_ operation: DiskOperation) {
        switch operation {
        case .commit(let entry): settle(entry)
        case .update(let response): settle(update: response.id)
        case .remove(let removal): settle(removal)
        case .touch: isTouching = false
        default: break
        }
    }
}

extension DiskOperation {
    var isRemoval: Bool { if case .remove = self { true } else { false } }

    var removesAll: Bool { if case .remove(.since(-.infinity)) = self { true } else { false } }

    var stores: Bool {
        switch self {
        case .write, .copy, .commit, .update: true
        default: false
        }
    }

    /// Whether the operation is done after removals that failed for now.
    func waitsForRemovals(_ now: Int64) -> Bool {
        switch self {
        case .checkpoint: true
        case .barrier(_, let end): end > now
        default: false
        }
    }

    var changesRows: Bool {
        switch self {
        case .commit, .update, .remove, .touch, .shrink: true
        default: false
        }
    }
}

extension DiskFile {
    func write(_ chunk: Chunk, _ paths: DiskPaths) throws(IOFailure) {
        let result = chunk.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try write(bytes, paths) } }
        try result.get()
    }
}

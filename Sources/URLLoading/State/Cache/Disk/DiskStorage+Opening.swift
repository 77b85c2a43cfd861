// SPDX-License-Identifier: Apache-2.0

// Opens, creates and replaces the database: always on the lane's thread, and under a lock that other processes respect.

import Synchronization
import URLLoadingIO

extension DiskStorage {
    /// Returns the connection for writing; `nil` if the database cannot be opened, or need not exist.
    func prepare(for batch: [DiskOperation]) -> DiskTables? {
        if state.withLock({ $0.phase.hasFailed }) { return nil }
        let current: PathIdentity?
        do throws(IOFailure) { current = try PathIdentity.find(paths.database) } catch { return unavailable(error) }
        let tables = writer.withLock { $0 }
        if let tables, tables.identity == current { return tables }
        if tables != nil { forget() }
        return current != nil || batch.contains(where: \.makesDatabase) ? open() : nil
    }

    /// Resets the state, because the database was replaced or removed.
    private func forget() {
        writer.withLock { $0 = nil }
        packs.close()
        state.withLock { state in
            state.phase = .unopened
            state.keys = KnownKeys()
            state.seen = 0
            state.known = .init(total: 0, changes: 0)
            state.places.removeAll()
            state.changeNumber = nil
            state.epoch += 1
            state.generation += 1
        }
    }

    private func open() -> DiskTables? {
        do throws(IOFailure) { try paths.makeFolders() } catch { return unavailable(error) }
        let lock: FileLock
        do throws(IOFailure) { lock = try FileLock(paths.lock, timeout: Self.lockTimeout) } catch {
            waitBeforeOpening(error)
            // The folder was moved just now.
            return error.isMissing ? nil : unavailable(error)
        }
        defer { withExtendedLifetime(lock) {} }
        return openLocked(lock, mayBeginAnew: true)
    }

    /// Ends the use of the disk, unless the failure may pass.
    private func unavailable(_ failure: IOFailure) -> DiskTables? {
        if failure.isTemporary { return nil }
        guard failure.isFull else { return fail(CacheProblem(failure)) }
        report(CacheProblem(failure))
        stopStoring()
        return nil
    }

    /// Keeps look-ups from waiting for the holder of the lock again at once: it may be a process that was stopped.
    func waitBeforeOpening(_ failure: IOFailure) {
        guard failure.isLocked else { return }
        state.withLock { $0.opensAgain = Poller.coarseNow() + 2_000_000_000 }
    }

    private func openLocked(_ lock: FileLock, mayBeginAnew: Bool) -> DiskTables? {
        do throws(DiskTables.Failure) {
            let tables = try DiskTables.open(paths)
            do throws(DatabaseFailure) { try read(tables) } catch { throw .database(error) }
            writer.withLock { $0 = tables }
            return tables
        } catch {
            switch error {
            case .folder(let failure): return unavailable(failure)
            case .database(let failure) where failure.kind == .busy: return nil
            case .database(let failure) where failure.kind != .damaged:
                report(CacheProblem(failure))
                if failure.kind == .full { stopStoring() }
                return failure.kind == .unwritable ? fail(CacheProblem(failure)) : nil
            case .earlier where mayBeginAnew:
                // The entries of an earlier version are given up; a sweep removes their files.
                for part in DiskPaths.parts { PrivateFolder.remove(paths.database + part) }
                return openLocked(lock, mayBeginAnew: false)
            case .database, .foreign, .earlier:
                return mayBeginAnew ? createDatabase(lock) : fail(CacheProblem(.damaged, "\(error)"))
            }
        }
    }

    @discardableResult
    func fail(_ problem: CacheProblem) -> DiskTables? {
        report(problem)
        state.withLock { state in
            if !state.phase.hasFailed { state.phase = .failed }
            state.epoch += 1
        }
        return nil
    }

    /// Reads the keys and the size of the database.
    private func read(_ tables: DiskTables) throws(DatabaseFailure) {
        // The recount fails if another process is writing; that process recounts itself.
        try? tables.transaction { () throws(DatabaseFailure) in try tables.recount() }
        var hashes: Set<Int64> = []
        let number = changeNumber()
        let known = try tables.state()
        let seen = try tables.hashes(after: 0) { hashes.insert($0) }
        let now = Poller.coarseNow()
        let isTooMuch = state.withLock { state in
            state.phase = .open
            state.keys.replace(with: hashes, since: state.keys.mark)
            state.seen = seen
            state.known = known
            state.sawChanges(number, now)
            return known.total > state.capacity
        }
        if isTooMuch { submit(.shrink) }
        submit(.sweep(PrivateFolder.names(paths.bodies).filter { $0.utf8.count == 2 }))
    }

    // MARK: Damage

    /// Replaces a damaged database, unless another process has done so.
    func replaceDamaged(_ identity: PathIdentity) {
        guard PathIdentity(paths.database) == identity, let lock = try? FileLock(paths.lock, timeout: Self.lockTimeout)
        else { return }
        defer { withExtendedLifetime(lock) {} }
        guard PathIdentity(paths.database) == identity else { return }
        forget()
        _ = createDatabase(lock)
    }

    private func createDatabase(_ lock: FileLock) -> DiskTables? {
        report(CacheProblem(.damaged, "the database was damaged, and was replaced by a new one"))
        _ = try? change(lock) {
            paths.setAside()
        }
        guard let tables = openLocked(lock, mayBeginAnew: false) else { return nil }
        _ = try? change(lock) { () throws(DatabaseFailure) in try salvage(into: tables) }
        try? read(tables)
        return tables
    }

    /// Copies the readable rows of the damaged database; heads are verified by their checksums, and their bodies stay
    /// where they are.
    private func salvage(into tables: DiskTables) throws(DatabaseFailure) {
        DamagedTables.lengthen(paths.damaged)
        let damaged = DamagedTables(try Database(path: paths.damaged, timeout: 0))
        let end = Poller.coarseNow() + 5_000_000_000
        try tables.transaction { () throws(DatabaseFailure) in
            var change: Int64 = 0
            var seq = damaged.lastRow
            let first = max(0, max(0, seq) - 200_000)
            while seq > first, Poller.coarseNow() < end {
                defer { seq -= 1 }
                guard let (head, used) = damaged.row(seq) else { continue }
                let hash = head.response.key.hash64
                guard try tables.rows(.variant(hash: hash, variant: head.response.variantHash)).isEmpty else {
                    continue
                }
                change += try tables.insert(head, hash: hash, used: used).size
            }
            _ = try tables.note(change)
        }
    }

    // MARK: Orphaned files

    /// Removes the files of one folder that no row refers to, and queues the other folders.
    func sweep(_ folders: [String], _ tables: DiskTables) {
        guard let folder = folders.last else { return }
        for name in PrivateFolder.names(paths.folder(of: folder), atMost: 4096) where name.hasPrefix(folder) {
            removeLeftOver(name, tables)
        }
        if folders.count > 1 { submit(.sweep(folders.dropLast())) }
    }

    /// Removes a file that no row refers to, unless a process is writing it.
    func removeLeftOver(_ name: String, _ tables: DiskTables) {
        guard isLeftOver(name, tables), let (file, _) = try? FileWriter.reopen(paths.body(name)), file.claim()
        else { return }
        // A claimed file is not being written, and a finished one has its row.
        if isLeftOver(name, tables) { file.remove(at: paths.body(name)) }
        file.unclaim()
    }

    private func isLeftOver(_ name: String, _ tables: DiskTables) -> Bool {
        (try? tables.hasRow(forFile: name)) == false
    }
}

extension DiskOperation {
    /// Whether the operation requires a database.
    var makesDatabase: Bool {
        switch self {
        case .write, .copy, .commit: true
        default: false
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// Stores in-memory state in a SQLite file: read at first use, written in the background, reread when other processes
// have written. The file is created when there is something to store.
//
// Failures are recorded and reported once, and fail no request: the state then lives in memory only. A damaged file is
// renamed with the suffix `.damaged`.

import Synchronization
import URLLoadingCSystem

package final class StateDisk<Memory: StateMemory>: Sendable {
    private typealias Schema = Memory.Schema
    private let folder: String
    package let path: String
    private let memory: Memory
    private let clock: LoopClock

    private struct File {
        var database: Database?
        var identity: PathIdentity?
        var version: Int64 = -1
        var isAbandoned = false
        /// The folder or the file is not this user's alone, so nothing in it counts.
        var isForeign = false
    }
    /// The holder of this lock may block.
    private let gate = Lock(File())
    /// Consecutive failures; each one lengthens the delay before the next attempt.
    private let failureCount = Atomic<Int64>(0)

    private let loaded = Atomic<Bool>(false)
    private let known = Atomic<Bool>(false)
    private let isScheduled = Atomic<Bool>(false)
    /// Whether changes that memory has given up are not in the file yet.
    private let isWriting = Atomic<Bool>(false)
    private let nextCheck = Atomic<Int64>(0)
    /// Whether a check, or a write that a timer has begun, is under way or waits for the gate.
    private let isAttended = Atomic<Bool>(false)
    private let firstProblem = Lock<String?>(nil)

    /// Delay that lets several changes be written together, and interval between checks for changes by other processes;
    /// in nanoseconds.
    private static var writingDelay: Int64 { 200_000_000 }
    private static var checkInterval: Int64 { 1_000_000_000 }
    /// Milliseconds to wait for another process that is writing.
    private static var lockTimeout: Int { 2_000 }

    package init(folder: String, memory: Memory, clock: LoopClock = .system) {
        // With a trailing slash, a symbolic link would be followed.
        let folder = folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
        self.folder = folder
        path = folder + "/" + Schema.fileName
        self.memory = memory
        self.clock = clock
    }

    /// The first failure with the file; `nil` if there was none.
    package var problem: String? { firstProblem.withLock { $0 } }

    // MARK: Reading

    /// Whether the first attempt to read the file is over. Callers do not wait for another one.
    package var isLoaded: Bool { loaded.load(ordering: .acquiring) }
    /// Whether the file's content is in memory; also true if there is no file, or it is not this user's alone. False
    /// for one that cannot be read.
    package var isKnown: Bool { known.load(ordering: .acquiring) }

    /// Loads the file's content into memory. Blocks.
    package func load() {
        guard !isLoaded else { return }
        gate.withLock { file in
            guard !isLoaded else { return }
            read(&file)
            loaded.store(true, ordering: .releasing)
            nextCheck.store(clock.coarseNow() + Self.checkInterval, ordering: .relaxed)
        }
    }

    /// Whether the memory reflects the file as of at most one second ago.
    package var isFresh: Bool { isLoaded && clock.coarseNow() < nextCheck.load(ordering: .relaxed) }

    /// Brings the memory up to date. Blocks, except for a caller that arrives while another caller is checking the
    /// file.
    package func refresh() {
        guard isLoaded else { return load() }
        if claimsCheck() { check() }
    }

    /// Returns true for one caller per interval: that caller checks the file (`check`).
    package func claimsCheck() -> Bool {
        let now = clock.coarseNow()
        let due = nextCheck.load(ordering: .relaxed)
        return now >= due
            && nextCheck.compareExchange(expected: due, desired: now + Self.checkInterval, ordering: .relaxed).exchanged
    }

    /// Reads changes that other processes wrote. Blocks.
    package func readChanges() { gate.withLock { read(&$0) } }

    /// As ``readChanges()``, unless another check or a write is under way. Blocks.
    package func check() { _ = alone { readChanges() } }

    /// Does the work, unless other work of this kind is under way: that may wait for another process or a file server,
    /// and checks and writes behind it would occupy all threads of file access. Returns whether it did.
    private func alone(_ work: () -> Void) -> Bool {
        guard !isAttended.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        defer { isAttended.store(false, ordering: .releasing) }
        work()
        return true
    }

    private func read(_ file: inout File) {
        var isRead = false
        attempt(&file) { (file) throws(DatabaseFailure) in
            guard let database = try open(&file, making: false) else { return }
            let current = try Self.version(database)
            guard current != file.version else {
                isRead = true
                return
            }
            do throws(DatabaseFailure) {
                try database.withoutWaitingForLock { () throws(DatabaseFailure) in
                    _ = try writePending(database, timeout: 0)
                }
            } catch {
                // A caller is waiting: if another process is writing just now, the pending changes are laid over the
                // rows in memory alone, and the background write waits for it.
                guard error.kind == .busy else { throw error }
            }
            let version = try Self.version(database)
            let rows = try Schema.rows(database)
            memory.replace(with: rows)
            // Not before: rows that could not be read are read by the next check.
            (file.version, isRead) = (version, true)
            // A program that changes nothing would otherwise leave expired rows in the file for ever.
            if Schema.hasExpired(rows) { removeExpired(database) }
            // Other processes may have added as many rows as this one, so some may have to be removed.
            if memory.hasPending { schedule() }
        }
        // A damaged file was set aside by now.
        if isRead || file.isForeign || isMissing { known.store(true, ordering: .releasing) }
    }

    /// Returns a number that changes when another connection has written.
    private static func version(_ database: Database) throws(DatabaseFailure) -> Int64 {
        try database.statement("PRAGMA data_version").first { $0.integer(0) } ?? 0
    }

    // MARK: Writing

    /// Schedules a write of the pending changes: soon, and at the latest when the process exits.
    package func schedule() {
        guard !isScheduled.exchange(true, ordering: .sequentiallyConsistent) else { return }
        joinExit()
        clock.schedule(
            WriteTimer { self.writeAlone() },
            at: clock.now() + Self.writingDelay << min(failureCount.load(ordering: .relaxed), 6))
    }

    /// Writes for a timer; later, if a check or another write is under way.
    private func writeAlone() {
        // Without pending changes, which another write has taken then, `write` waits for nothing.
        guard memory.hasPending else { return write() }
        if alone({ write() }) { return }
        isScheduled.store(false, ordering: .sequentiallyConsistent)
        schedule()
    }

    private func joinExit() { StateExit.add(ObjectIdentifier(self)) { self.finish() } }

    /// The exit of the process waits for a write that is under way or scheduled.
    private func leaveExit() {
        guard !isWriting.load(ordering: .sequentiallyConsistent) else { return }
        StateExit.remove(ObjectIdentifier(self))
        if isScheduled.load(ordering: .sequentiallyConsistent) { joinExit() }
    }

    /// Writes the pending changes, and returns when those are in the file that another thread was writing. Blocks.
    package func finish() {
        write()
        gate.withLock { _ in }
    }

    /// Writes the pending changes. Blocks, but not for a write that is under way and has taken all of them.
    package func write() {
        isScheduled.store(false, ordering: .sequentiallyConsistent)
        defer { leaveExit() }
        // The changes were written meanwhile, before the timer. The file may have been replaced since, so leave it
        // alone.
        guard memory.hasPending else { return }
        // Callers do not wait for a writer that waits for another process: they check the file afterwards.
        let due = nextCheck.exchange(.max, ordering: .relaxed)
        let hasWork = gate.withLock { file -> Bool in
            guard !file.isAbandoned else {
                _ = memory.takePending()
                return false
            }
            if file.database == nil, isMissing {
                let pending = memory.takePending()
                guard pending.storesRows else { return false }
                memory.restore(pending)
            }
            var isNeeded = true
            attempt(&file) { (file) throws(DatabaseFailure) in
                guard let database = try open(&file, making: true) else { return }
                isNeeded = try writePending(database, timeout: Self.lockTimeout)
            }
            return isNeeded
        }
        let now = clock.coarseNow()
        nextCheck.store(hasWork ? now : min(due, now + Self.checkInterval), ordering: .relaxed)
    }

    private func removeExpired(_ database: Database) {
        try? database.withoutWaitingForLock { () throws(DatabaseFailure) in
            let lock = try lock(timeout: 0)
            defer { withExtendedLifetime(lock) {} }
            try Schema.removeExpired(database)
        }
    }

    /// Acquires the lock that each process holds while it writes to the file, checkpoints its log, or sets it aside.
    private func lock(timeout: Int) throws(DatabaseFailure) -> FileLock {
        do throws(IOFailure) { return try FileLock(path + ".lock", timeout: timeout) } catch {
            throw DatabaseFailure(lock: error)
        }
    }

    /// Returns whether there was something to write.
    private func writePending(_ database: Database, timeout: Int) throws(DatabaseFailure) -> Bool {
        isWriting.store(true, ordering: .sequentiallyConsistent)
        defer {
            isWriting.store(false, ordering: .sequentiallyConsistent)
            leaveExit()
        }
        guard memory.hasPending, try !dropsIdleRemovals(database) else { return false }
        let lock = try lock(timeout: timeout)
        defer { withExtendedLifetime(lock) {} }
        let pending = memory.takePending()
        guard !pending.isEmpty else { return false }
        defer { database.checkpointIfLong() }
        do throws(DatabaseFailure) {
            try database.transaction { () throws(DatabaseFailure) in
                if let moment = pending.clearedSince { try Schema.clear(since: moment, database) }
                for (key, row) in pending.rows {
                    if let row { try Schema.write(row, database) } else { try Schema.remove(key, database) }
                }
                for row in pending.notes.values { try Schema.note(row, database) }
            }
        } catch {
            memory.restore(pending)
            throw error
        }
        return true
    }

    /// Counts the pending changes as written if all of them remove rows that the file does not have: servers repeat
    /// such removals in each response. Returns whether it did.
    private func dropsIdleRemovals(_ database: Database) throws(DatabaseFailure) -> Bool {
        let pending = memory.takePending()
        var isIdle = false
        defer { if !isIdle { memory.restore(pending) } }
        guard pending.onlyRemovesRows else { return false }
        for key in pending.rows.keys {
            if try Schema.contains(key, database) { return false }
        }
        isIdle = true
        return true
    }

    // MARK: The file

    private func attempt(_ file: inout File, _ work: (inout File) throws(DatabaseFailure) -> Void) {
        guard !file.isAbandoned else { return }
        do throws(DatabaseFailure) {
            try work(&file)
            failureCount.store(0, ordering: .relaxed)
        } catch {
            if error.kind != .busy { report("\(path): \(error)") }
            switch error.kind {
            case .damaged: replaceDamaged(&file)
            case .unwritable: file.isAbandoned = true
            // Temporary failures: the next write includes the changes that this one could not store.
            case .busy, .full, .other:
                failureCount.add(1, ordering: .relaxed)
                if memory.hasPending { schedule() }
                return
            }
        }
    }

    /// Whether there is no file; false if that cannot be told.
    private var isMissing: Bool {
        do throws(IOFailure) { return try PathIdentity.find(path) == nil } catch { return false }
    }

    private func report(_ words: String) { firstProblem.withLock { $0 = $0 ?? words } }

    /// - Parameter isLocked: whether the caller holds the file's lock.
    private func open(_ file: inout File, making: Bool, isLocked: Bool = false) throws(DatabaseFailure) -> Database? {
        if let database = file.database {
            if PathIdentity(path) == file.identity { return database }
            // The file was removed or set aside; writes to the open one would be lost.
            file.database = nil
            memory.rememberAll()
            schedule()
        }
        guard making || !isMissing else { return nil }
        try preparePrivateFile(&file)
        let opened = try Database(path: path)
        try Schema.prepare(opened)
        if !(try opened.missing(of: [Schema.table])).isEmpty {
            let lock = try isLocked ? nil : lock(timeout: Self.lockTimeout)
            defer { withExtendedLifetime(lock) {} }
            // Another process may have created the table meanwhile.
            for part in try opened.missing(of: [Schema.table]) { try opened.execute(part.text) }
        }
        file = File(database: opened, identity: PathIdentity(path))
        return opened
    }

    /// Makes sure that folder and file exist and belong to this user alone: a user who could replace or read the file
    /// would have its content. SQLite gives its auxiliary files the mode of the database.
    private func preparePrivateFile(_ file: inout File) throws(DatabaseFailure) {
        do throws(IOFailure) {
            try PrivateFolder.make(folder)
            _ = try PrivateFolder.makeFile(path)
            PrivateFolder.hide(path)
        } catch {
            report(
                "\(path): cannot be created"
                    + (error.isForeign ? ", or is not private to this user" : ": \(error.words)")
            )
            file.isForeign = error.isForeign || error.isDenied
            throw DatabaseFailure(lock: error)
        }
    }

    /// Replaces a damaged file with a new one that holds the memory's content. Other processes may have found the
    /// damage too: a process that finds the file readable again leaves it alone.
    private func replaceDamaged(_ file: inout File) {
        file.database = nil
        let lock: FileLock
        do throws(DatabaseFailure) { lock = try self.lock(timeout: Self.lockTimeout) } catch {
            // Its holder may be stopped: the next check or write asks again.
            guard error.kind == .busy else {
                file.isAbandoned = true
                return
            }
            failureCount.add(1, ordering: .relaxed)
            if memory.hasPending { schedule() }
            return
        }
        defer { withExtendedLifetime(lock) {} }
        if !isMissing, isDamaged(&file) {
            file.database = nil
            for suffix in ["-wal", "-shm"] { _ = csys_file_remove(path + suffix) }
            guard csys_file_rename(path, path + ".damaged") >= 0 else {
                file.isAbandoned = true
                return
            }
        }
        memory.rememberAll()
        schedule()
    }

    private func isDamaged(_ file: inout File) -> Bool {
        do throws(DatabaseFailure) {
            if let database = try open(&file, making: false, isLocked: true) { _ = try Schema.rows(database) }
            return false
        } catch { return error.kind == .damaged || error.kind == .other }
    }
}

private final class WriteTimer: TimerTarget {
    private let work: @Sendable () -> Void
    init(_ work: @escaping @Sendable () -> Void) { self.work = work }
    func timerFired(now: Int64) { BlockingThreads.files.run(work) }
}

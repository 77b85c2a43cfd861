// A SQLite file behind a memory: read when it is first wanted, written behind, looked at again when other processes have
// written. It is made when there is something to keep.
//
// What goes wrong is noted and reported once, and costs no answer: the memory goes on without it. A damaged file is set
// aside, under its name and `.damaged`.

import Synchronization
import URLLoadingCSystem

package final class StateDisk<Memory: StateMemory>: @unchecked Sendable {
    private typealias Schema = Memory.Schema
    private let folder: String
    package let path: String
    private let memory: Memory
    private let clock: LoopClock

    // Under the gate, whose holder may block.
    private let gate = Lock(())
    private var database: Database?
    private var identity: PathIdentity?
    private var version: Int64 = -1
    private var isGivenUp = false
    /// One after another; the next try waits the longer.
    private let failureCount = Atomic<Int64>(0)

    private let loaded = Atomic<Bool>(false)
    private let isScheduled = Atomic<Bool>(false)
    private let nextLook = Atomic<Int64>(0)
    private let trouble = Lock<String?>(nil)

    /// How long what was set may wait for more that is set, and how often others' writing is looked for: nanoseconds.
    private static var writingDelay: Int64 { 200_000_000 }
    private static var lookInterval: Int64 { 1_000_000_000 }
    /// Milliseconds to wait for another process that writes.
    private static var lockPatience: Int { 2_000 }

    package init(folder: String, memory: Memory, clock: LoopClock = .system) {
        // With a slash behind it a link would be looked through.
        let folder = folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
        self.folder = folder
        path = folder + "/" + Schema.fileName
        self.memory = memory
        self.clock = clock
    }

    /// What went wrong with the file first; `nil` if nothing did.
    package var problem: String? { trouble.withLock { $0 } }

    // MARK: Reading

    /// Whether what the file holds is in memory.
    package var isLoaded: Bool { loaded.load(ordering: .acquiring) }

    /// Brings it there. Blocks.
    package func load() {
        guard !isLoaded else { return }
        gate.withLock { _ in
            guard !isLoaded else { return }
            read()
            loaded.store(true, ordering: .releasing)
            nextLook.store(clock.coarseNow() + Self.lookInterval, ordering: .relaxed)
        }
    }

    /// Whether memory holds what the file held a second ago.
    package var isFresh: Bool { isLoaded && clock.coarseNow() < nextLook.load(ordering: .relaxed) }

    /// Makes it so. Blocks; who comes while another looks does not wait for him.
    package func refresh() {
        guard isLoaded else { return load() }
        if isLookMine() { look() }
    }

    /// The look of this second falls to one.
    private func isLookMine() -> Bool {
        let now = clock.coarseNow()
        let due = nextLook.load(ordering: .relaxed)
        return now >= due
            && nextLook.compareExchange(expected: due, desired: now + Self.lookInterval, ordering: .relaxed).exchanged
    }

    /// Looks for what others wrote. Blocks.
    package func look() { gate.withLock { _ in read() } }

    private func read() {
        attempt { () throws(DatabaseFailure) in
            guard let database = try open(making: false) else { return }
            let current = try Self.version(database)
            guard current != version else { return }
            // What we have not told it yet would be missing from what it tells. Somebody waits: whoever is writing just now
            // is waited for at the next look, or by who writes behind.
            try database.withoutPatience { () throws(DatabaseFailure) in try writePending(database, patience: 0) }
            version = try Self.version(database)
            let rows = try Schema.rows(database)
            memory.replace(with: rows)
            // A program that sets nothing would leave what has expired there for ever.
            if Schema.hasExpired(rows) { removeExpired(database) }
            // What is too much, for others have set as many as we.
            if memory.hasPending { schedule() }
        }
    }

    /// Changes when another connection has written.
    private static func version(_ database: Database) throws(DatabaseFailure) -> Int64 {
        var version: Int64 = 0
        let statement = try database.statement("PRAGMA data_version")
        try statement.each { () throws(DatabaseFailure) in
            version = statement.integer(0)
            return false
        }
        return version
    }

    // MARK: Writing

    /// Something is pending: it is written soon, at the latest when the process exits.
    package func schedule() {
        guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        StateExit.add(ObjectIdentifier(self)) { self.write() }
        clock.schedule(
            WriteTimer { self.write() },
            at: clock.now() + Self.writingDelay << min(failureCount.load(ordering: .relaxed), 6))
    }

    /// Writes what is pending. Blocks.
    package func write() {
        isScheduled.store(false, ordering: .sequentiallyConsistent)
        StateExit.remove(ObjectIdentifier(self))
        // Written meanwhile, by whoever did not wait for the timer: the file, which may be another by now, has nothing to hear.
        guard memory.hasPending else { return }
        // Nobody waits for who waits for another process: whoever wants to look does it afterwards.
        nextLook.store(.max, ordering: .relaxed)
        defer { nextLook.store(clock.coarseNow(), ordering: .relaxed) }
        gate.withLock { _ in
            guard !isGivenUp else {
                _ = memory.takePending()
                return
            }
            attempt { () throws(DatabaseFailure) in
                guard let database = try open(making: true) else { return }
                try writePending(database, patience: Self.lockPatience)
            }
        }
    }

    private func removeExpired(_ database: Database) {
        try? database.withoutPatience { () throws(DatabaseFailure) in
            let lock = try lock(patience: 0)
            defer { withExtendedLifetime(lock) {} }
            try Schema.removeExpired(database)
        }
    }

    /// The lock that is held by each process that writes to the file, moves its log, or sets it aside.
    private func lock(patience: Int) throws(DatabaseFailure) -> FileLock {
        do throws(IOFailure) { return try FileLock(path + ".lock", patience: patience) } catch {
            throw DatabaseFailure(lock: error)
        }
    }

    private func writePending(_ database: Database, patience: Int) throws(DatabaseFailure) {
        guard memory.hasPending else { return }
        let lock = try lock(patience: patience)
        defer { withExtendedLifetime(lock) {} }
        let pending = memory.takePending()
        guard !pending.isEmpty else { return }
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
    }

    // MARK: The file

    private func attempt(_ work: () throws(DatabaseFailure) -> Void) {
        guard !isGivenUp else { return }
        do throws(DatabaseFailure) {
            try work()
            failureCount.store(0, ordering: .relaxed)
        } catch {
            if error.kind != .busy { report("\(path): \(error)") }
            switch error.kind {
            case .damaged: setAside()
            case .unwritable: isGivenUp = true
            // They pass: the next writing brings what this one could not.
            case .busy, .full, .other:
                failureCount.add(1, ordering: .relaxed)
                if memory.hasPending { schedule() }
                return
            }
        }
    }

    private func report(_ words: String) { trouble.withLock { $0 = $0 ?? words } }

    /// - Parameter isLocked: the caller holds the file's lock.
    private func open(making: Bool, isLocked: Bool = false) throws(DatabaseFailure) -> Database? {
        if let database {
            if PathIdentity(path) == identity { return database }
            // Somebody has removed it, or set it aside: what is written to it now is nobody's.
            self.database = nil
            memory.rememberAll()
            schedule()
        }
        guard csys_file_exists(path) || making else { return nil }
        guard isOurs() else { return nil }
        let opened = try Database(path: path)
        try Schema.prepare(opened)
        if !(try opened.missing(of: [Schema.table])).isEmpty {
            let lock = try isLocked ? nil : lock(patience: Self.lockPatience)
            defer { withExtendedLifetime(lock) {} }
            // Another process may have made it meanwhile.
            for part in try opened.missing(of: [Schema.table]) { try opened.execute(part.text) }
        }
        database = opened
        identity = PathIdentity(path)
        version = -1
        return opened
    }

    /// Whether folder and file are there, made if need be, and nobody else's: he who could put another in its place, or
    /// read it, would have what is kept there (security 81). SQLite gives its other files the mode of the first.
    private func isOurs() -> Bool {
        do throws(IOFailure) {
            try PrivateFolder.make(folder)
            _ = try PrivateFolder.makeFile(path)
            PrivateFolder.hide(path)
            return true
        } catch {
            report(
                error.isForeign
                    ? "\(path): it cannot be made, or is not this user's alone" : "\(path): it cannot be made, \(error)"
            )
            isGivenUp = !error.isFull && !error.isPassing
            return false
        }
    }

    /// What is in memory goes to a new file. Others may have found the damage too: who comes second leaves the new one alone.
    private func setAside() {
        database = nil
        guard let lock = FileLock(path + ".lock") else {
            isGivenUp = true
            return
        }
        defer { withExtendedLifetime(lock) {} }
        if csys_file_exists(path), !isReadable() {
            database = nil
            for suffix in ["-wal", "-shm"] { _ = csys_file_remove(path + suffix) }
            guard csys_file_rename(path, path + ".damaged") >= 0 else {
                isGivenUp = true
                return
            }
        }
        memory.rememberAll()
        schedule()
    }

    private func isReadable() -> Bool {
        do throws(DatabaseFailure) {
            if let database = try open(making: false, isLocked: true) { _ = try Schema.rows(database) }
            return true
        } catch { return false }
    }
}

private final class WriteTimer: TimerTarget {
    private let work: @Sendable () -> Void
    init(_ work: @escaping @Sendable () -> Void) { self.work = work }
    func timerFired(now: Int64) { BlockingThreads.files.run(work) }
}

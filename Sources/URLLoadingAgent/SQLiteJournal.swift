// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// The journal as an SQLite database in the agent's folder.
///
/// It uses one connection in one process, guarded by a lock file: SQLite before 3.51.3 can corrupt a database if two
/// connections reset its log at the same time. A thread of the journal writes; groups that arrive during a write are
/// combined into the next one.
final class SQLiteJournal: Journal {
    static let fileName = "journal.sqlite"

    private struct Group: Sendable {
        let changes: [JournalChange]
        let mayFail: Bool
        let done: @Sendable (JournalFailure?) -> Void
    }
    private struct Queue: Sendable {
        var groups: [Group] = []
        var isScheduled = false
    }

    let problem: String?
    private let content: Lock<JournalContent?>
    private let lock: FileLock
    /// Used by the journal's thread, and by the initialiser.
    private let tables: Lock<Tables>
    private let thread = BlockingThreads(limit: 1)
    private let queue = Lock(Queue())
    /// The nanoseconds between attempts to write a required group.
    private let retryDelay: Int64

    private struct Tables {
        let database: Database
        var isDirty = false
    }

    /// Opens or creates the journal of a folder. One of an earlier version is migrated in one transaction. A damaged
    /// one is renamed with the suffix `.damaged` and the time. Blocks.
    /// - Throws: ``JournalFailure/inUse``, ``JournalFailure/newer(version:)``, ``JournalFailure/failed(_:)``.
    init(
        folder: String, schema: JournalSchema = .current, retryingAfter retryDelay: Int64 = 1_000_000_000
    ) throws(JournalFailure) {
        self.retryDelay = retryDelay
        do throws(IOFailure) {
            try PrivateFolder.make(folder)
            lock = try FileLock(folder + "/agent.lock", timeout: 0)
        } catch {
            throw error.isTemporary ? .inUse : .failed("\(folder): \(error.code)")
        }
        let path = folder + "/" + Self.fileName
        var problem: String?
        var opened: (Database, JournalContent)?
        do throws(DatabaseFailure) { opened = try Self.open(path, schema) } catch {
            guard error.kind == .damaged else { throw .failed("\(error)") }
            problem = "\(path) was damaged (\(error)) and is set aside"
            Self.moveAside(path)
        }
        let found: JournalContent
        do throws(DatabaseFailure) {
            let database: Database
            (database, found) = if let opened { opened } else { try Self.open(path, schema) }
            tables = Lock(Tables(database: database))
        } catch { throw .failed("\(error)") }
        content = Lock(found)
        self.problem = problem
        guard found.nextNumber >= 0 else { throw .newer(version: -found.nextNumber) }
    }

    func takeContent() -> JournalContent? { content.withLock { $0.take() } }

    private static func moveAside(_ path: String) {
        let stamp = SystemTime.wall / 1_000_000_000
        for suffix in ["", "-wal", "-shm"] where PathIdentity(path + suffix) != nil {
            PrivateFolder.rename(path + suffix, "\(path)\(suffix).damaged-\(stamp)")
        }
    }

    private static func open(
        _ path: String, _ schema: JournalSchema
    ) throws(DatabaseFailure) -> (Database, JournalContent) {
        _ = try? PrivateFolder.makeFile(path)
        let database = try Database(path: path, durability: .exclusive)
        // 512 KiB of pages: the journal is read once, and written a few rows at a time.
        try database.execute("PRAGMA cache_size = -512")
        var version: Int64 = 0
        let pragma = try database.statement("PRAGMA user_version")
        try pragma.each { () throws(DatabaseFailure) in
            version = pragma.integer(0)
            return false
        }
        var content = JournalContent()
        guard version <= schema.version else {
            content.nextNumber = -version
            return (database, content)
        }
        let steps = schema.steps(from: version)
        if !steps.isEmpty {
            try database.transaction { () throws(DatabaseFailure) in for step in steps { try database.execute(step) } }
        }
        try JournalTables.read(database, into: &content)
        return (database, content)
    }

    // MARK: Writing

    func write(
        _ changes: [JournalChange], mayFail: Bool, done: @escaping @Sendable (JournalFailure?) -> Void
    ) {
        let group = Group(changes: changes, mayFail: mayFail, done: done)
        let mustSchedule = queue.withLock { queue in
            queue.groups.append(group)
            defer { queue.isScheduled = true }
            return !queue.isScheduled
        }
        if mustSchedule { thread.run { self.drain() } }
    }

    private func drain() {
        while true {
            let groups = queue.withLock { queue in
                defer { queue.groups = [] }
                if queue.groups.isEmpty { queue.isScheduled = false }
                return queue.groups
            }
            guard !groups.isEmpty else { return cleanUp() }
            guard let rest = commit(groups) else { continue }
            // Required groups stay at the front, and are retried after a delay.
            queue.withLock { $0.groups = rest + $0.groups }
            Poller.shared.schedule(DelayedCall { self.thread.run { self.drain() } }, at: Poller.now() + retryDelay)
            return
        }
    }

    /// - Returns: the groups to retry; `nil` if all were written or dropped.
    private func commit(_ groups: [Group]) -> [Group]? {
        do throws(DatabaseFailure) {
            try tables.withLock { tables throws(DatabaseFailure) in
                let database = tables.database
                try database.transaction { () throws(DatabaseFailure) in
                    for group in groups { for change in group.changes { try JournalTables.apply(change, database) } }
                }
            }
        } catch {
            // A group that may fail can be the reason, if the disk has no room for it.
            let failure = JournalFailure.failed("\(error)")
            let (dropped, kept) = (groups.filter(\.mayFail), groups.filter { !$0.mayFail })
            for group in dropped { group.done(failure) }
            guard !kept.isEmpty else { return nil }
            return dropped.isEmpty ? kept : commit(kept)
        }
        let removesSecrets = groups.contains { group in
            group.changes.contains { if case .removeSecrets = $0 { true } else { false } }
        }
        tables.withLock { tables in
            tables.isDirty = tables.isDirty || removesSecrets
            tables.database.checkpointIfLong()
        }
        for group in groups { group.done(nil) }
        return nil
    }

    /// Empties the log, which still contains removed secrets.
    private func cleanUp() {
        tables.withLock { tables in
            guard tables.isDirty else { return }
            tables.isDirty = false
            try? tables.database.checkpoint()
        }
    }

    func finish() {
        let waiter = Waiter()
        thread.run { [self] in
            drain()
            waiter.signal.raise()
        }
        _ = waiter.signal.wait(nanoseconds: 10_000_000_000)
    }

    private final class Waiter: Sendable { let signal = ThreadSignal() }
}

/// Calls a closure at a given time.
final class DelayedCall: TimerTarget {
    private let work: @Sendable () -> Void
    init(_ work: @escaping @Sendable () -> Void) { self.work = work }
    func timerFired(now: Int64) { work() }
}

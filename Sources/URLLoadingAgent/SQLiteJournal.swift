// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// The journal as an SQLite database in the folder of one agent, which has claimed all of its transfers.
///
/// It uses one connection in one process, guarded by a lock file: SQLite before 3.51.3 can corrupt a database if two
/// connections reset its log at the same time. A thread of the journal reads and writes; groups that arrive during a
/// write are combined into the next one.
final class SQLiteJournal: Journal {
    static let fileName = "journal.sqlite"

    private struct Group: Sendable {
        let changes: [JournalChange]
        let mayFail: Bool
        let done: JournalAnswer
    }
    private struct Queue: Sendable {
        var groups: [Group] = []
        /// Whether ``drain()`` is about to run, runs, or waits until it retries a write.
        var isScheduled = false
        var reads: [@Sendable (Database) -> Void] = []
    }

    let problem: String?
    let signals: AsyncStream<JournalSignal>? = nil
    let agent = ""
    private let identifiersAtOpening: Lock<[JournaledIdentifier]>
    /// The transfers that were not over when the journal was opened, until they are claimed.
    private let unclaimed: Lock<[JournaledTransfer]>
    private let lock: FileLock
    /// Used by the journal's thread, and by the initialiser.
    private let tables: Lock<Tables>
    private let thread = BlockingThreads(limit: 1)
    private let queue = Lock(Queue())
    /// The nanoseconds between attempts to write a required group.
    private let retryDelay: Int64

    private struct Tables {
        let database: Database
        var nextNumber: Int64
        var isDirty = false
    }

    /// Opens or creates the journal of a folder. One of an earlier version is migrated in one transaction. A damaged
    /// one is renamed with the suffix `.damaged` and the time. Blocks.
    /// - Throws: ``JournalFailure/inUse``, ``JournalFailure/newer(version:)``, ``JournalFailure/failed(_:)``.
    init(
        folder: String, schema: JournalSchema = .current, retryingAfter retryDelay: Int64 = 1_000_000_000
    ) throws(JournalFailure) {
        self.retryDelay = retryDelay
        lock = try Self.lock(folder)
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
            tables = Lock(Tables(database: database, nextNumber: found.nextNumber))
        } catch { throw .failed("\(error)") }
        identifiersAtOpening = Lock(found.identifiers)
        unclaimed = Lock(found.transfers)
        self.problem = problem
        guard found.nextNumber >= 0 else { throw .newer(version: -found.nextNumber) }
    }

    /// Creates the folder of an agent, and keeps other agents from it. Blocks.
    static func lock(_ folder: String) throws(JournalFailure) -> FileLock {
        do throws(IOFailure) {
            try PrivateFolder.make(folder)
            return try FileLock(folder + "/agent.lock", timeout: 0)
        } catch {
            throw error.isTemporary ? .inUse : .failed("\(folder): \(error.words)")
        }
    }

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
        let version = try database.statement("PRAGMA user_version").first { $0.integer(0) } ?? 0
        var content = JournalContent()
        guard version <= schema.version else {
            content.nextNumber = -version
            return (database, content)
        }
        let steps = schema.steps(from: version)
        if !steps.isEmpty {
            try database.transaction { () throws(DatabaseFailure) in for step in steps { try database.execute(step) } }
        }
        return (database, try JournalTables.content(database))
    }

    // MARK: Claims

    // One agent has the journal, and has claimed all transfers when it has opened it. A claim ends with the process, so
    // there is no other one to be told from it.

    func identifiers() async throws(JournalFailure) -> [JournaledIdentifier] {
        identifiersAtOpening.withLock { identifiers in
            defer { identifiers = [] }
            return identifiers
        }
    }

    func identifier(_ name: String) async throws(JournalFailure) -> JournaledIdentifier? { nil }

    func claim(_ request: ClaimRequest) async throws(JournalFailure) -> ClaimedTransfers {
        unclaimed.withLock { transfers in
            defer { transfers = [] }
            return ClaimedTransfers(transfers)
        }
    }

    func renew(_ claims: [TransferClaim]) async throws(JournalFailure) -> JournalRenewal { JournalRenewal() }

    func release(_ claims: [TransferClaim]) async throws(JournalFailure) {}

    // MARK: Reading

    func transfers(of identifier: String, after number: Int64, atMost count: Int) async throws(JournalFailure)
        -> [JournaledTransfer]
    {
        try await read { (database) throws(DatabaseFailure) in
            try JournalTables.transfers(of: identifier, after: number, atMost: count, database)
        }
    }

    func transfer(_ id: String) async throws(JournalFailure) -> JournaledTransfer? {
        try await read { (database) throws(DatabaseFailure) in try JournalTables.transfer(id, database) }
    }

    func events(of identifier: String, after sequence: Int64, atMost count: Int) async throws(JournalFailure)
        -> [JournaledEvent]
    {
        try await read { (database) throws(DatabaseFailure) in
            try JournalTables.events(of: identifier, after: sequence, atMost: count, database)
        }
    }

    func sequences(of identifier: String) async throws(JournalFailure) -> [Int64] {
        try await read { (database) throws(DatabaseFailure) in try JournalTables.sequences(of: identifier, database) }
    }

    private func read<R: Sendable>(
        _ work: @escaping @Sendable (Database) throws(DatabaseFailure) -> R
    ) async throws(JournalFailure) -> R {
        let result: Result<R, DatabaseFailure> = await withCheckedContinuation { continuation in
            queue.withLock { queue in
                queue.reads.append { database in
                    continuation.resume(
                        returning: Result { () throws(DatabaseFailure) in try work(database) })
                }
            }
            thread.run { self.answer(self.takeReads()) }
        }
        do throws(DatabaseFailure) { return try result.get() } catch { throw .failed("\(error)") }
    }

    private func takeReads() -> [@Sendable (Database) -> Void] {
        queue.withLock { queue in
            defer { queue.reads = [] }
            return queue.reads
        }
    }

    private func answer(_ reads: [@Sendable (Database) -> Void]) {
        guard !reads.isEmpty else { return }
        tables.withLock { tables in for read in reads { read(tables.database) } }
    }

    // MARK: Writing

    func write(_ changes: [JournalChange], mayFail: Bool, done: @escaping JournalAnswer) {
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
            // The reads that are queued now find these groups; they wait for no later ones.
            let (groups, reads) = queue.withLock { queue in
                defer { (queue.groups, queue.reads) = ([], []) }
                if queue.groups.isEmpty { queue.isScheduled = false }
                return (queue.groups, queue.reads)
            }
            guard !groups.isEmpty else {
                answer(reads)
                return cleanUp()
            }
            let rest = commit(groups)
            answer(reads)
            guard let rest else { continue }
            // Required groups stay at the front, and are retried after a delay.
            queue.withLock { $0.groups = rest + $0.groups }
            Poller.shared.schedule(DelayedCall { self.thread.run { self.drain() } }, at: Poller.now() + retryDelay)
            return
        }
    }

    /// - Returns: the groups to retry; `nil` if all were written or dropped.
    private func commit(_ groups: [Group]) -> [Group]? {
        var results: [Result<JournalReceipt, JournalFailure>] = []
        do throws(DatabaseFailure) {
            results = try tables.withLock { tables throws(DatabaseFailure) in try Self.apply(groups, &tables) }
        } catch {
            // A group that may fail can be the reason, if the disk has no room for it.
            let failure = JournalFailure.failed("\(error)")
            let (dropped, kept) = (groups.filter(\.mayFail), groups.filter { !$0.mayFail })
            for group in dropped { group.done(.failure(failure)) }
            guard !kept.isEmpty else { return nil }
            return dropped.isEmpty ? kept : commit(kept)
        }
        for (group, result) in zip(groups, results) { group.done(result) }
        return nil
    }

    /// Applies groups in one transaction.
    private static func apply(
        _ groups: [Group], _ tables: inout Tables
    ) throws(DatabaseFailure) -> [Result<JournalReceipt, JournalFailure>] {
        let database = tables.database
        var (nextNumber, removesSecrets) = (tables.nextNumber, false)
        let results = try database.transaction { () throws(DatabaseFailure) in
            var results: [Result<JournalReceipt, JournalFailure>] = []
            for group in groups {
                guard group.changes.allSatisfy({ $0.claim.map { $0.epoch == JournalTables.epoch } ?? true }) else {
                    results.append(.failure(.stale))
                    continue
                }
                var receipt = JournalReceipt()
                for change in group.changes {
                    try JournalTables.apply(change, database, nextNumber: &nextNumber, &receipt)
                    switch change {
                    case .acknowledge, .leave: removesSecrets = true
                    default: break
                    }
                }
                results.append(.success(receipt))
            }
            return results
        }
        tables.nextNumber = nextNumber
        tables.isDirty = tables.isDirty || removesSecrets
        database.checkpointIfLong()
        return results
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

// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// The journal as a PostgreSQL database, which the agents of several machines share.
///
/// One task has the connection: it writes the queued groups, many in one transaction, answers what was asked for, and
/// otherwise waits for notifications. While the database cannot be reached, groups wait, and questions are refused; so
/// is new work if the groups that wait are large (``JournalBacklog``).
final class PostgresJournal: Journal {
    private typealias Question = @Sendable (Result<PostgresStatements, PostgresFailure>) async -> PostgresFailure?
    private struct State: Sendable {
        var backlog = JournalBacklog()
        var questions: [Question] = []
        var connection: PostgresConnection?
        /// The moment of the poller's clock since which the connection lasts.
        var connected = Poller.now()
        /// The moment of the poller's clock from which on a claim makes transfers ready whose time has come.
        var promotion: Int64 = 0
        /// The look for them.
        var dueLook = PostgresStatements.DueLook()
        /// Claims that the last renewal has found, and that this agent did not know.
        var unknown: Set<TransferClaim> = []
        /// Whether this agent takes no more work, which each renewal records: the database may be away at first.
        var isDraining = false
        /// Why there is no connection.
        var failure = PostgresFailure(.disconnected, "not connected yet")
        /// The version of the tables, if the failure is that it is later than this agent's.
        var laterVersion: Int?
        var isEnding = false
    }

    let problem: String? = nil
    let signals: AsyncStream<JournalSignal>?
    /// The name of this agent among those that share the journal.
    let agent: String
    private let signal: AsyncStream<JournalSignal>.Continuation
    private let address: String
    private let schema: PostgresSchema
    private let leaseTime: Int64
    private let places: Int
    private let settling: Int64
    private let log: @Sendable (String) -> Void
    private let state: Lock<State>
    private let slot = Poller.shared.borrowSlot()
    private let hasEnded = ThreadSignal()

    /// The nanoseconds between attempts to reach the database: the first, and the longest.
    private static let (firstDelay, longestDelay) = (200_000_000 as Int64, 10_000_000_000 as Int64)
    private static let retryDelay: Int64 = 1_000_000_000
    /// The nanoseconds between two claims that make transfers ready whose time has come, while others are ready.
    private static let promotionDelay: Int64 = 250_000_000

    /// Connects to a database, and creates or migrates the tables.
    /// - Parameters:
    ///   - address: a URI or keywords and values, as libpq takes them. It appears in no message.
    ///   - leaseTime: the milliseconds after which a claim ends that is not renewed; the same for all agents.
    ///   - places: the transfers of a host that may run at once, of all agents together; what the table `host` says of
    ///     a host counts more.
    ///   - settling: the milliseconds for which a connection must have lasted before this agent ends claims that others
    ///     have not renewed: they may come back a little later from the same outage. `leaseTime` if it is `nil`.
    ///   - log: receives a line when the database cannot be reached, and when it is reached again.
    /// - Throws: ``JournalFailure/newer(version:)``, ``JournalFailure/failed(_:)``.
    static func open(
        _ address: String, schema: PostgresSchema = .current, leaseTime: Int64 = 60_000,
        places: Int = SchedulePlan.Limits().host, settling: Int64? = nil, log: @escaping @Sendable (String) -> Void
    ) async throws(JournalFailure) -> PostgresJournal {
        let connection: PostgresConnection
        let version: Int
        do throws(PostgresFailure) {
            connection = try await PostgresConnection.open(address)
            try await prepare(connection)
            version = try await schema.migrate(connection)
        } catch { throw .failed("\(error)") }
        guard version <= schema.versions.count else { throw .newer(version: Int64(version)) }
        let journal = PostgresJournal(
            address, schema, connection, leaseTime, places, settling ?? leaseTime, log)
        do throws(PostgresFailure) { try await journal.statements(connection).live() } catch {
            throw .failed("\(error)")
        }
        Task { await journal.work() }
        return journal
    }

    private init(
        _ address: String, _ schema: PostgresSchema, _ connection: PostgresConnection, _ leaseTime: Int64,
        _ places: Int, _ settling: Int64, _ log: @escaping @Sendable (String) -> Void
    ) {
        (self.address, self.schema, self.leaseTime) = (address, schema, leaseTime)
        (self.places, self.settling, self.log) = (places, settling, log)
        let (stream, continuation) = AsyncStream.makeStream(
            of: JournalSignal.self, bufferingPolicy: .bufferingNewest(1_000))
        (signals, signal) = (stream, continuation)
        let chance = UInt64.random(in: 0...UInt64.max)
        agent = "\(Self.hostName):\(ProgramEnvironment.process):\(String(chance, radix: 36))"
        state = Lock(State(connection: connection))
    }

    deinit { Poller.shared.returnSlot(slot) }

    private static var hostName: String {
        let name = (try? FileReader.text("/proc/sys/kernel/hostname")) ?? ""
        return name.split(whereSeparator: \.isNewline).first.map(String.init) ?? "unknown"
    }

    /// Sets what a new connection needs.
    static func prepare(_ connection: PostgresConnection) async throws(PostgresFailure) {
        // Each statement finds a few rows by an index. The planner, which does not know the values of prepared
        // statements, expects many, and would read and sort all transfers that are ready for each claim. To compile
        // statements (`jit`), or to plan them again for each value, takes far longer than to run them. An agent that is
        // stopped within a transaction keeps its rows from the others no longer than a statement may take.
        try await connection.run(
            """
            SET statement_timeout = '20s'; SET lock_timeout = '10s'; SET bytea_output = 'hex';
            SET idle_in_transaction_session_timeout = '20s';
            SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
            SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan; LISTEN urlloading
            """)
        // What the role, the database or the server says of these does not count. Names of functions and operators are
        // those of PostgreSQL; a claim is seen when it is committed; what was committed survives a crash.
        try await connection.run(
            """
            SET search_path = pg_catalog, pg_temp; SET default_transaction_isolation = 'read committed';
            SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') IN ('off', 'local')
            """)
        let found = try await connection.run("SELECT current_setting('transaction_read_only') = 'on'")
        if found.rows.first?.flag(0) == true { throw PostgresFailure(.disconnected, "the database is read-only") }
    }

    // MARK: The task of the connection

    private func work() async {
        var delay = Self.firstDelay
        while true {
            let connection = state.withLock { $0.connection }
            guard let connection else {
                if await reconnect(after: delay) {
                    delay = Self.firstDelay
                    continue
                }
                delay = min(delay * 2, Self.longestDelay)
                guard !state.withLock({ $0.isEnding }) else { break }
                continue
            }
            do throws(PostgresFailure) {
                guard try await serve(statements(connection)) else { break }
            } catch { disconnected(error) }
        }
        if let connection = state.withLock({ $0.connection }) { try? await statements(connection).depart() }
        disconnected(PostgresFailure(.disconnected, "the journal is closed"), isExpected: true)
        signal.finish()
        hasEnded.raise()
    }

    private func statements(_ connection: PostgresConnection) -> PostgresStatements {
        let (connected, isDraining) = state.withLock { ($0.connected, $0.isDraining) }
        return PostgresStatements(
            connection: connection, agent: agent, leaseTime: leaseTime, places: places,
            endsForeignClaims: Poller.now() - connected >= settling * 1_000_000, isDraining: isDraining)
    }

    /// Does what is queued, or waits for it.
    /// - Returns: false when everything is done and the journal ends.
    private func serve(_ statements: PostgresStatements) async throws(PostgresFailure) -> Bool {
        let (groups, questions, isEnding) = state.withLock { state in
            defer { state.questions = [] }
            return (state.backlog.takeAll(), state.questions, state.isEnding)
        }
        do throws(PostgresFailure) {
            try await commit(groups, statements)
        } catch {
            // Those of the questions are refused with the others that come while there is no connection.
            state.withLock { $0.questions = questions + $0.questions }
            throw error
        }
        var lost: PostgresFailure?
        for question in questions {
            let failure = await question(lost.map { .failure($0) } ?? .success(statements))
            if let failure, failure.endsSession { lost = lost ?? failure }
        }
        if let lost { throw lost }
        let isDone = groups.isEmpty && questions.isEmpty
        guard !isDone || !isEnding else { return false }
        // Also in a turn with work: a busy agent hears of commands, too.
        let moment = isDone ? Poller.now() + 60_000_000_000 : 0
        for notification in try await statements.connection.notifications(until: moment) {
            if let found = JournalSignal(notification.payload) { signal.yield(found) }
        }
        return true
    }

    private func disconnected(_ failure: PostgresFailure, isExpected: Bool = false) {
        if !isExpected { log("the connection to the database was lost: \(failure)") }
        let questions = state.withLock { state in
            (state.connection, state.failure, state.laterVersion) = (nil, failure, nil)
            defer { state.questions = [] }
            return state.questions
        }
        refuse(questions, failure)
    }

    private func refuse(_ questions: [Question], _ failure: PostgresFailure) {
        for question in questions { Task { _ = await question(.failure(failure)) } }
    }

    private func reconnect(after delay: Int64) async -> Bool {
        let moment = Poller.now() + delay
        Poller.shared.schedule(slot, at: moment)
        while Poller.now() < moment, !state.withLock({ $0.isEnding }) {
            await Poller.shared.park(slot, until: .never)
        }
        do throws(PostgresFailure) {
            let connection = try await PostgresConnection.open(address)
            try await Self.prepare(connection)
            // Another agent may have migrated the tables meanwhile, or an older copy may have been restored.
            let version = try await schema.migrate(connection)
            guard version <= schema.versions.count else { return outdated(by: version) }
            state.withLock { ($0.connection, $0.connected) = (connection, Poller.now()) }
        } catch {
            state.withLock { ($0.failure, $0.laterVersion) = (error, nil) }
            return false
        }
        log("the database is reached again")
        signal.yield(.reconnected)
        return true
    }

    /// The tables are of a later version: they are left as they are, and this agent must go.
    private func outdated(by version: Int) -> Bool {
        let words = "its tables are of version \(version), later than this agent; they are left as they are"
        let isNew = state.withLock { state in
            defer { (state.failure, state.laterVersion) = (PostgresFailure(.disconnected, words), version) }
            return state.laterVersion != version
        }
        if isNew {
            log("the database is reached again, but \(words)")
            signal.yield(.outdated)
        }
        return false
    }

    // MARK: Writing

    var isFull: Bool { state.withLock(\.backlog.isFull) }
    var isReached: Bool { state.withLock { $0.connection != nil } }

    func write(_ changes: [JournalChange], mayFail: Bool, done: @escaping JournalAnswer) {
        write(JournalGroup(changes, mayFail: mayFail, done: done))
    }

    func submit(
        _ transfer: JournaledTransfer, while isWanted: @escaping @Sendable () -> Bool, done: @escaping JournalAnswer
    ) {
        write(JournalGroup([.accept(transfer)], mayFail: true, while: isWanted, done: done))
    }

    private func write(_ group: JournalGroup) {
        let (isAdded, connection) = state.withLock { ($0.backlog.add(group), $0.connection) }
        guard isAdded else { return Self.fail([group], Self.full) }
        connection?.wake()
    }

    private static let full =
        "the database takes no changes, and those that wait fill the agent's memory: no new work is accepted until then"

    /// Reports on a thread of its own, because a caller may hold locks.
    private static func fail(_ groups: [JournalGroup], _ words: String) {
        guard !groups.isEmpty else { return }
        Task { for group in groups { group.done(.failure(.failed(words))) } }
    }

    /// Writes groups in one transaction. What is not written goes back to the front of the queue.
    private func commit(_ queued: [JournalGroup], _ statements: PostgresStatements) async throws(PostgresFailure) {
        var (groups, unwanted): ([JournalGroup], [JournalGroup]) = ([], [])
        for group in queued { if group.isWanted() { groups.append(group) } else { unwanted.append(group) } }
        Self.fail(unwanted, "its program has gone")
        guard !groups.isEmpty else { return }
        var left = groups[...]
        // Some may have been written if the connection was lost: groups can be repeated. Claims that have ended since
        // are stale.
        defer { state.withLock { [left] in $0.backlog.putBack(left) } }
        do throws(PostgresFailure) {
            let results = try await apply(groups, statements)
            left = []
            for (group, result) in zip(groups, results) { group.done(result) }
        } catch {
            switch error.kind {
            case .disconnected, .noLibrary: throw error
            case .refused where error.endsSession: throw error
            case .refused where error.isConflict: break
            case .refused where error.mayPass:
                // Locked tables, or no room: each group by itself would wait for the same.
                left = groups.filter { !$0.mayFail }[...]
                Self.fail(groups.filter(\.mayFail), "\(error)")
                await pause(for: error, left)
            case .refused: try await commitApart(&left, statements)
            }
        }
    }

    /// Writes groups one by one: the server has refused one of them. Those that must be written, and are refused for
    /// what they say, wait with the later ones of their transfers; the others go on.
    private func commitApart(
        _ left: inout ArraySlice<JournalGroup>, _ statements: PostgresStatements
    ) async throws(PostgresFailure) {
        var (aside, claims): ([JournalGroup], Set<TransferClaim>) = ([], [])
        var reason: PostgresFailure?
        defer { left = aside + left }
        while let group = left.popFirst() {
            if let claim = group.claim, claims.contains(claim) {
                aside.append(group)
                continue
            }
            do throws(PostgresFailure) { group.done(try await apply([group], statements)[0]) } catch {
                if error.endsSession || error.mayPass && !group.mayFail { left.insert(group, at: left.startIndex) }
                if error.endsSession { throw error }
                if group.mayFail {
                    group.done(.failure(.failed("\(error)")))
                } else if error.mayPass {
                    return await pause(for: error, left)
                } else {
                    reason = error
                    aside.append(group)
                    if let claim = group.claim { claims.insert(claim) }
                }
            }
        }
        if let reason { await pause(for: reason, aside[...]) }
    }

    private func pause(for error: PostgresFailure, _ left: ArraySlice<JournalGroup>) async {
        guard !left.isEmpty else { return }
        log("the journal cannot be written, which is tried again: \(error)")
        try? await Poller.shared.sleep(until: Poller.now() + Self.retryDelay, .never)
    }

    private func apply(_ groups: [JournalGroup], _ statements: PostgresStatements) async throws(PostgresFailure)
        -> [Result<JournalReceipt, JournalFailure>]
    {
        let connection = statements.connection
        guard groups.contains(where: { !$0.changes.isEmpty }) else { return groups.map { _ in .success(.init()) } }
        try await connection.run("BEGIN")
        do throws(PostgresFailure) {
            var results = groups.map { _ in Result<JournalReceipt, JournalFailure>.success(.init()) }
            var ended = groups.flatMap(\.ended)
            for index in JournalGroup.order(of: groups) {
                if ended.count > 1, !groups[index].ended.isEmpty {
                    try await statements.lockCounters(of: ended)
                    ended = []
                }
                results[index] = try await apply(groups[index], statements)
            }
            try await connection.run("COMMIT")
            return results
        } catch {
            if error.kind == .refused { try await connection.run("ROLLBACK") }
            throw error
        }
    }

    private func apply(_ group: JournalGroup, _ statements: PostgresStatements) async throws(PostgresFailure)
        -> Result<JournalReceipt, JournalFailure>
    {
        // A change that is refused is usually the first of its group, which then has changed nothing: it locks the row
        // of the claim until the end of the transaction, so the claim of those after it is not stale.
        let mustUndo = group.changes.count > 1 && group.changes[0].claim == nil
        if mustUndo { try await statements.connection.run("SAVEPOINT before_group") }
        var receipt = JournalReceipt()
        for change in group.changes {
            guard let failure = try await statements.apply(change, &receipt) else { continue }
            if mustUndo { try await statements.connection.run("ROLLBACK TO before_group") }
            return .failure(failure)
        }
        return .success(receipt)
    }

    func finish() {
        let connection = state.withLock { state in
            state.isEnding = true
            return state.connection
        }
        connection?.wake()
        slot.wake()
        _ = hasEnded.wait(nanoseconds: 10_000_000_000)
    }

    // MARK: Questions

    private func ask<R: Sendable>(
        _ work: @escaping @Sendable (PostgresStatements) async throws(PostgresFailure) -> R
    ) async throws(JournalFailure) -> R {
        let result: Result<R, PostgresFailure> = await withCheckedContinuation { continuation in
            let question: Question = { statements in
                do throws(PostgresFailure) {
                    let answer = try await work(try statements.get())
                    continuation.resume(returning: .success(answer))
                    return nil
                } catch {
                    continuation.resume(returning: .failure(error))
                    return error
                }
            }
            let (connection, failure) = state.withLock { state in
                if state.connection != nil { state.questions.append(question) }
                return (state.connection, state.failure)
            }
            if let connection { connection.wake() } else { refuse([question], failure) }
        }
        do throws(PostgresFailure) { return try result.get() } catch { throw .failed("\(error)") }
    }

    func identifiers() async throws(JournalFailure) -> [JournaledIdentifier] {
        try await ask { statements throws(PostgresFailure) in try await statements.identifiers(nil) }
    }

    func identifier(_ name: String) async throws(JournalFailure) -> JournaledIdentifier? {
        try await ask { statements throws(PostgresFailure) in try await statements.identifiers(name).first }
    }

    func claim(_ request: ClaimRequest) async throws(JournalFailure) -> ClaimedTransfers {
        try await ask { statements throws(PostgresFailure) in
            var (promotes, look) = self.state.withLock { state in
                guard case .ready = request, Poller.now() >= state.promotion else { return (false, state.dueLook) }
                state.promotion = Poller.now() + Self.promotionDelay
                return (true, state.dueLook)
            }
            let found = try await statements.claim(request, promotes: promotes, &look)
            self.state.withLock { [look] in $0.dueLook = look }
            return found
        }
    }

    func renew(_ claims: [TransferClaim]) async throws(JournalFailure) -> JournalRenewal {
        let held = try await ask { statements throws(PostgresFailure) in
            let held = try await statements.renew()
            // A claim that was just answered is known at the next renewal, one whose answer was lost never is.
            let forgotten = self.state.withLock { state in
                let unknown = held.claims.subtracting(claims).subtracting(state.backlog.claims)
                defer { state.unknown = unknown }
                return unknown.intersection(state.unknown)
            }
            if !forgotten.isEmpty { try await statements.release(Array(forgotten)) }
            try await statements.tidy()
            return held
        }
        let lost = claims.filter { !held.claims.contains($0) }.map(\.number)
        return JournalRenewal(lost: Set(lost), identifiers: held.identifiers)
    }

    func commands() async throws(JournalFailure) -> [JournaledCommand] {
        try await ask { statements throws(PostgresFailure) in try await statements.commands() }
    }

    func stopClaiming() async throws(JournalFailure) {
        state.withLock { $0.isDraining = true }
        try await ask { statements throws(PostgresFailure) in try await statements.drain() }
    }

    func fleet() async throws(JournalFailure) -> FleetReport? {
        try await ask { statements throws(PostgresFailure) in try await statements.fleet() }
    }

    func unpark(_ identifier: String, again: Bool) async throws(JournalFailure) {
        try await ask { statements throws(PostgresFailure) in
            try await statements.unpark(identifier, again: again)
        }
    }

    func release(_ claims: [TransferClaim]) async throws(JournalFailure) {
        try await ask { statements throws(PostgresFailure) in try await statements.release(claims) }
    }

    func transfers(of identifier: String, after number: Int64, atMost count: Int) async throws(JournalFailure)
        -> [JournaledTransfer]
    {
        try await ask { statements throws(PostgresFailure) in
            try await statements.transfers(of: identifier, after: number, atMost: count)
        }
    }

    func transfer(_ id: String) async throws(JournalFailure) -> JournaledTransfer? {
        try await ask { statements throws(PostgresFailure) in try await statements.transfer(id) }
    }

    func events(of identifier: String, after sequence: Int64, atMost count: Int) async throws(JournalFailure)
        -> [JournaledEvent]
    {
        try await ask { statements throws(PostgresFailure) in
            try await statements.events(of: identifier, after: sequence, atMost: count)
        }
    }

    func sequences(of identifier: String) async throws(JournalFailure) -> [Int64] {
        try await ask { statements throws(PostgresFailure) in try await statements.sequences(of: identifier) }
    }
}

extension PostgresFailure {
    /// Whether another connection is needed: this one has ended, the server that may be written to now is another one
    /// or lets later sessions write, or the server has lost what was prepared in the session.
    fileprivate var endsSession: Bool { kind != .refused || isReadOnly || code == "26000" }
}

// SPDX-License-Identifier: Apache-2.0

// In this folder: the agent of background transfers (34 files: journals, plans, service, one attempt)

// The agent's state and its actions: one actor, whose changes are queued for the journal in the order in which they are
// made.

import FoundationEssentials
import URLLoading
import URLLoadingIO

actor TransferService {
    /// An identifier, and the program that uses it.
    struct Owner {
        var settings: SessionSettings
        var secrets: SessionSecrets
        /// Whether the journal has the settings and the secrets.
        var isRecorded = false
        /// The session that loads its transfers; created with the first of them.
        var session: Session?
        var client: AgentClient?
        /// Of the client; a new one without.
        var visit = ProgramVisit()
        var wakes = WakePlan()
        /// The number of programs that have attached.
        var attachments = 0
        /// The number of recorded events that no program has acknowledged.
        var undelivered = 0
    }

    enum Phase {
        case serving
        /// The transfers that can be continued are being stopped, the others end, and nothing begins.
        case draining
        /// The attempts are being stopped, and nothing begins.
        case ending
    }

    /// What the agent does for a transfer now.
    enum Activity {
        case loading(Task<Void, Never>)
        /// Its complete file is being renamed.
        case placing(Task<Void, Never>)
        /// The attempt is over, and its result is being written.
        case ending(Task<Void, Never>)
        /// Another agent has claimed the transfer, and the attempt is being stopped.
        case leaving(Task<Void, Never>)

        var task: Task<Void, Never> {
            switch self {
            case .loading(let task), .placing(let task), .ending(let task), .leaving(let task): task
            }
        }

        /// Whether it takes one of the places of a host, of an identifier and of the agent.
        var takesPlace: Bool {
            switch self {
            case .loading, .placing: true
            case .ending, .leaving: false
            }
        }
    }

    let journal: any Journal
    let spool: any FileStore
    let limits = SchedulePlan.Limits()
    var phase = Phase.serving
    var owners: [String: Owner] = [:]
    /// The transfers that this agent has claimed; each leaves when its end is recorded.
    var transfers = TransferTable()
    /// The identifiers of new transfers, by id, until the journal has accepted them.
    var submissions: [String: String] = [:]
    var activities: [String: Activity] = [:]
    /// The challenges that programs are asked, by number.
    var challenges: [Int64: PendingChallenge] = [:]
    var lastChallenge: Int64 = 0
    var lastTurn: String?
    /// Whether ``scheduleNow()`` is about to run.
    var isScheduled = false
    var clients = 0
    /// The tasks that follow the signals of a shared journal and renew the claims.
    var followers: [Task<Void, Never>] = []
    enum Claiming {
        case none, running
        /// Looks for transfers once more when it has found none.
        case repeating
    }
    var claiming = Claiming.none
    /// The identifier whose transfer was claimed last; the turn continues after it.
    var lastClaim: String?
    /// The moment of the poller's clock at which transfers of a shared journal may begin that wait until a time.
    var nextClaim: Int64?
    let renewalInterval: Int64
    /// The nanoseconds for which the agent waits for what may never answer: a file system, or a journal that takes no
    /// changes.
    let patience: Int64
    /// The threads that look at the files of orders. A file system that does not answer keeps them, and must not keep
    /// those on which files are written.
    let looks = BlockingThreads(limit: 64)
    enum Recording {
        case once
        /// The transfer has got further meanwhile.
        case again
    }
    /// The transfers of a shared journal whose progress waits to be written, by id.
    var recordings: [String: Recording] = [:]
    /// The boot-time nanoseconds since when the agent has had neither work nor connections; `nil` while it has.
    private(set) var idleSince: Int64?
    let alarm = ServiceAlarm()
    /// Returns what decides about discretionary transfers.
    let machine: @Sendable () -> MachineState
    let log: @Sendable (String) -> Void

    /// - Parameters:
    ///   - folder: the agent's state folder.
    ///   - files: the folder in which agents that share the journal keep the files of transfers; `nil` for one of this
    ///     agent's own.
    ///   - machine: returns what decides about discretionary transfers.
    ///   - renewalInterval: the nanoseconds between renewals of the claims of a shared journal.
    ///   - patience: the nanoseconds for which it waits for what may never answer.
    ///   - log: receives one line for each notable event.
    /// - Throws: ``JournalFailure``; `failed` if the spool cannot be created.
    init(
        _ journal: any Journal, folder: String, files: String? = nil,
        machine: @escaping @Sendable () -> MachineState = { .read() },
        renewingEvery renewalInterval: Int64 = 15_000_000_000, patience: Int64 = 20_000_000_000,
        log: @escaping @Sendable (String) -> Void
    ) throws(JournalFailure) {
        (self.journal, self.machine, self.log) = (journal, machine, log)
        (self.renewalInterval, self.patience) = (renewalInterval, patience)
        // Files of transfers that only the damaged journal knows are kept for people.
        if journal.problem != nil, let kept = Spool.moveAside(folder) {
            log("the files of its transfers are in \(kept)")
        }
        do throws(IOFailure) {
            if let files { spool = try FolderStore(files) } else { spool = try Spool(folder) }
        } catch { throw .failed("\(files ?? folder + "/spool"): \(error.words)") }
        if let problem = journal.problem { log(problem) }
    }

    // MARK: The start

    /// Claims transfers, and continues those of an earlier agent. Called once, before any program is served.
    func start() async {
        if let signals = journal.signals { return share(signals) }
        do throws(JournalFailure) {
            for identifier in try await journal.identifiers() { add(identifier) }
            var rows = try await journal.claim(.ready(atMost: .max)).transfers
            // Each row is released before the next one is decoded: its memory becomes that of a transfer.
            while let row = rows.popLast() { add(row) }
        } catch { log("the journal cannot be read: \(error)") }
        await removeOrphans()
        for id in transfers.ids.sorted() { restart(id) }
        schedule()
    }

    private func add(_ identifier: JournaledIdentifier) {
        refresh(identifier)
        owners[identifier.name]?.undelivered = identifier.undelivered
    }

    /// Takes over the settings of an identifier that the journal has.
    func refresh(_ identifier: JournaledIdentifier) {
        let settings = TransferCoding.decode(SessionSettings.self, identifier.settings) ?? SessionSettings()
        let secrets =
            identifier.secrets.flatMap { TransferCoding.decode(SessionSecrets.self, $0) } ?? SessionSecrets()
        if let known = owners[identifier.name], known.settings == settings, known.secrets == secrets { return }
        var owner = owners[identifier.name] ?? Owner(settings: settings, secrets: secrets)
        (owner.settings, owner.secrets, owner.session, owner.isRecorded) = (settings, secrets, nil, true)
        owners[identifier.name] = owner
    }

    func add(_ row: JournaledTransfer) {
        guard let transfer = Transfer(row) else {
            return log("transfer \(row.id) of the journal cannot be decoded, and is ignored")
        }
        guard row.secrets != nil || transfer.state.isOver else {
            return log("transfer \(row.id) of the journal has lost its request's secrets, and is ignored")
        }
        transfers[transfer.id] = transfer
    }

    /// Continues a transfer of an earlier agent.
    func restart(_ id: String) {
        guard var transfer = transfers[id] else { return }
        // A request that may have been carried out is not repeated.
        guard transfer.mayRepeat || transfer.state.phase != .running else {
            return finish(id, .failed(TransferError(Self.mayHaveBeenCarriedOut(transfer))))
        }
        let action = transfer.state.receive(.restart)
        transfers[id] = transfer
        act(action, on: id)
        // The agent was killed after the end of the transfer was recorded, and before its event was.
        if case .finished(let outcome) = transfer.state.phase { act(.announce(outcome), on: id) }
    }

    /// The seconds after which a file is removed that the journal of several agents does not know: until then its
    /// transfer may be about to be recorded, by any agent.
    private static let orphanAge = 86_400

    /// Removes the spool's files that belong to no transfer.
    func removeOrphans() async {
        let (spool, age) = (spool, isShared ? Self.orphanAge : 0)
        let found = await BlockingThreads.files.call(.never) { () -> Set<String> in
            (spool as? Spool)?.removeDelivered()
            return spool.files(unchangedFor: age)
        }
        guard let found, !found.isEmpty else { return }
        var orphans = OrphanedFiles(found)
        for transfer in transfers { orphans.keep(transfer) }
        // Those that remain may belong to transfers that are over, or of other agents.
        let names: [String]
        do throws(JournalFailure) {
            names = isShared ? try await journal.identifiers().map(\.name) : Array(owners.keys)
        } catch { return log("the spool is not tidied: \(error)") }
        for name in names {
            var last: Int64 = 0
            while !orphans.paths.isEmpty {
                let rows: [JournaledTransfer]
                do throws(JournalFailure) {
                    rows = try await journal.transfers(of: name, after: last, atMost: Self.pageSize)
                } catch { return log("the spool is not tidied: \(error)") }
                guard let end = rows.last?.claim.number else { break }
                for row in rows {
                    guard let transfer = Transfer(row) else {
                        return log("the spool is not tidied: transfer \(row.id) cannot be decoded, nor its files found")
                    }
                    orphans.keep(transfer)
                }
                last = end
            }
        }
        let removed = orphans
        _ = await BlockingThreads.files.call(.never) { removed.remove() }
    }

    /// The number of transfers that are read from the journal at once.
    static let pageSize = 500

    static func mayHaveBeenCarriedOut(_ transfer: Transfer) -> LoadError {
        LoadError(
            .connectionLost, phase: .sending, party: .system, url: URL(string: transfer.secrets.url),
            detail:
                "the transfer was stopped while the request was sent; it may have been carried out, "
                + "and is not repeated without Idempotency-Key")
    }

    // MARK: The journal

    /// Queues changes that must reach the disk eventually.
    func save(_ changes: [JournalChange], then: @escaping @Sendable () -> Void = {}) {
        journal.write(changes, mayFail: false) { result in
            if result == .failure(.stale), let claim = changes.lazy.compactMap(\.claim).first {
                Task { await self.leave(claim) }
            }
            then()
        }
    }

    func save(_ id: String) {
        guard let transfer = transfers[id] else { return }
        save([transfer.update])
        // The change ends the claim on a transfer that waits, and any agent may claim it later.
        if isShared, transfer.standing != .working { transfers[id] = nil }
    }

    /// Stops work on a transfer that another agent has claimed, and touches neither its row nor its files.
    func leave(_ claim: TransferClaim) {
        guard let id = transfers.first(where: { $0.claim == claim })?.id else { return }
        log("transfer \(id) was claimed by another agent, and is left to it")
        transfers[id] = nil
        if let activity = activities[id] {
            activities[id] = .leaving(activity.task)
            activity.task.cancel()
        }
        schedule()
    }

    /// Takes no more work. What can be continued without loss is stopped, and free for other agents; a request that
    /// must not be repeated, for instance, ends first. Then the agent exits.
    func drain() {
        guard phase == .serving else { return }
        log("is asked to take no more work")
        phase = .draining
        Task {
            // A journal that is away records it later, with a renewal.
            try? await journal.stopClaiming()
            var reached = Poller.now()
            // Later ones reach the next agent, if this one exits before it has answered.
            let begun = Set(submissions.keys)
            // So do those whose file is still being copied then: its file system may not answer.
            let end = Poller.now() + patience
            while phase == .draining,
                !activities.isEmpty || (Poller.now() < end && !begun.isDisjoint(with: submissions.keys))
            {
                // Nothing ends while the journal is away: the next agents find what this one has begun.
                if journal.isReached { reached = Poller.now() }
                guard Poller.now() - reached < patience else { break }
                for (id, activity) in activities {
                    if case .loading(let task) = activity, transfers[id]?.isResumable == true { task.cancel() }
                }
                // An attempt that must not be repeated would wait for its program's answer.
                withdrawChallenges()
                try? await Poller.shared.sleep(until: Poller.now() + 20_000_000, .never)
            }
            alarm.handOver()
        }
    }

    /// Stops all attempts, with their progress and their results synchronised to disk.
    func stop() async {
        phase = .ending
        for follower in followers { follower.cancel() }
        for activity in activities.values { activity.task.cancel() }
        await waitForActivities()
        for owner in owners.values {
            owner.client?.channel.close()
            owner.session?.invalidateAndCancel()
        }
        // An attempt that has not stopped keeps its claim until this agent's lease ends.
        let free = transfers.filter { !$0.isAnnounced && activities[$0.id] == nil }
        if isShared { try? await journal.release(free.map(\.claim)) }
        let journal = journal
        _ = await BlockingThreads.files.call(.never) { journal.finish() }
    }

    /// Waits until attempts have stopped. What one must record first may have no room on the journal's disk, or find
    /// no database.
    private func waitForActivities() async {
        var (left, deadline) = (activities.count, Poller.now() + patience)
        while left > 0, Poller.now() < deadline {
            try? await Poller.shared.sleep(until: Poller.now() + 5_000_000, .never)
            if activities.count < left { (left, deadline) = (activities.count, Poller.now() + patience) }
        }
        if left > 0 {
            log("the journal cannot be written: \(activities.count) transfers are left as they are")
        }
    }

    // MARK: Idleness

    /// Whether all work that needs no program is done.
    private var isIdle: Bool {
        // An agent that shares its journal has work as soon as others have.
        !isShared && clients == 0 && activities.isEmpty && submissions.isEmpty && transfers.activeCount == 0
            && !owners.values.contains { $0.wakes.next != nil }
    }

    func noteIdleness() { idleSince = isIdle ? idleSince ?? SystemTime.boot : nil }

    /// The seconds of idleness; `nil` while there is work.
    var idleTime: Double? {
        noteIdleness()
        return idleSince.map { Double(SystemTime.boot - $0) / 1e9 }
    }

    /// The status in one line, for service managers and logs.
    var status: String {
        let running = activities.values.count(where: \.takesPlace)
        let waiting = transfers.count + submissions.count - transfers.overCount - running
        let finished = transfers.overCount + owners.values.reduce(0) { $0 + $1.undelivered }
        return "\(running) running, \(waiting) waiting, \(finished) finished, \(clients) programs connected"
            + (phase == .draining ? ", draining" : "")
    }

    func connected() {
        clients += 1
        noteIdleness()
    }

    func disconnected(_ client: AgentClient) {
        clients -= 1
        client.leave()
        for (name, owner) in owners where owner.client === client { detach(name) }
        noteIdleness()
        schedule()
    }
}

// SPDX-License-Identifier: Apache-2.0

// In this folder: the agent of background transfers (27 files: journal, plans, service, one attempt)

// The agent's state and its actions: one actor, whose changes are queued for the journal in the order in which they are
// made.

import FoundationEssentials
import URLLoading
import URLLoadingIO
import URLLoadingWire

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
        /// Whether a task is about to send more events.
        var isSending = false
    }

    let journal: any Journal
    let spool: Spool
    let limits = SchedulePlan.Limits()
    var owners: [String: Owner] = [:]
    var transfers = TransferTable()
    /// The events that the journal contains, by sequence.
    var events: [Int64: JournaledEvent] = [:]
    /// Events that the journal is about to contain, in the order of their sequence.
    var unannounced: [JournaledEvent] = []
    /// The attempts, and the renames of complete files.
    var runs: [String: Task<Void, Never>] = [:]
    /// The attempts whose results are being written.
    var endings: [String: Task<Void, Never>] = [:]
    /// The challenges that programs are asked, by number.
    var challenges: [Int64: PendingChallenge] = [:]
    var lastChallenge: Int64 = 0
    var lastTurn: String?
    var isStopping = false
    /// Whether ``scheduleNow()`` is about to run.
    var isScheduled = false
    private var nextNumber: Int64
    var clients = 0
    /// The boot-time nanoseconds since when the agent has had neither work nor connections; `nil` while it has.
    private(set) var idleSince: Int64?
    let alarm = ServiceAlarm()
    /// Returns what decides about discretionary transfers.
    let machine: @Sendable () -> MachineState
    let log: @Sendable (String) -> Void

    /// - Parameters:
    ///   - folder: the agent's state folder.
    ///   - machine: returns what decides about discretionary transfers.
    ///   - log: receives one line for each notable event.
    /// - Throws: ``JournalFailure``; `failed` if the spool cannot be created.
    init(
        _ journal: any Journal, folder: String, machine: @escaping @Sendable () -> MachineState = { .read() },
        log: @escaping @Sendable (String) -> Void
    ) throws(JournalFailure) {
        (self.journal, self.machine, self.log) = (journal, machine, log)
        // Files of transfers that only the damaged journal knows are kept for people.
        if journal.problem != nil, let kept = Spool.moveAside(folder) {
            log("the files of its transfers are in \(kept)")
        }
        do throws(IOFailure) { spool = try Spool(folder) } catch { throw .failed("\(folder)/spool: \(error.code)") }
        var content = journal.takeContent() ?? JournalContent()
        nextNumber = content.nextNumber
        if let problem = journal.problem { log(problem) }
        for (name, bytes) in content.identifiers {
            let settings = TransferCoding.decode(SessionSettings.self, bytes) ?? SessionSettings()
            let secrets = content.secrets["identifier " + name].flatMap {
                TransferCoding.decode(SessionSecrets.self, $0)
            }
            owners[name] = Owner(settings: settings, secrets: secrets ?? SessionSecrets(), isRecorded: true)
        }
        // Each row is released before the next one is decoded: its memory becomes that of a transfer.
        while let row = content.transfers.popLast() {
            let secrets = content.secrets.removeValue(forKey: "transfer " + row.id)
            guard let transfer = Transfer(row, secrets: secrets) else {
                log("transfer \(row.id) of the journal cannot be decoded, and is ignored")
                continue
            }
            transfers[transfer.id] = transfer
        }
        for event in content.events {
            events[event.sequence] = event
            transfers[event.transfer]?.event = event.sequence
        }
        spool.removeOrphans(transfers)
    }

    /// Continues the transfers of an earlier agent.
    func start() {
        for id in transfers.ids.sorted() {
            guard var transfer = transfers[id] else { continue }
            // A request that may have been carried out is not repeated.
            guard transfer.mayRepeat || transfer.state.phase != .running else {
                finish(id, .failed(TransferError(Self.mayHaveBeenCarriedOut(transfer))))
                continue
            }
            let action = transfer.state.receive(.restart)
            transfers[id] = transfer
            act(action, on: id)
            // The agent was killed after the end of the transfer was recorded, and before its event was.
            if transfer.state.isOver, transfer.event == nil, case .finished(let outcome) = transfer.state.phase {
                act(.announce(outcome), on: id)
            }
        }
        schedule()
    }

    static func mayHaveBeenCarriedOut(_ transfer: Transfer) -> LoadError {
        LoadError(
            .connectionLost, phase: .sending, party: .system, url: URL(string: transfer.secrets.url),
            detail:
                "the transfer was stopped while the request was sent; it may have been carried out, "
                + "and is not repeated without Idempotency-Key")
    }

    func takeNumber() -> Int64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    /// Queues changes that must reach the disk eventually.
    func save(_ changes: [JournalChange], then: @escaping @Sendable () -> Void = {}) {
        journal.write(changes, mayFail: false) { _ in then() }
    }

    func save(_ id: String) {
        if let transfer = transfers[id] { save([transfer.update]) }
    }

    /// Stops all attempts, with their progress and their results synchronised to disk.
    func stop() async {
        isStopping = true
        let running = Array(runs.values) + Array(endings.values)
        for run in running { run.cancel() }
        for run in running { await run.value }
        for owner in owners.values {
            owner.client?.channel.close()
            owner.session?.invalidateAndCancel()
        }
        let journal = journal
        _ = await BlockingThreads.files.call(.never) { journal.finish() }
    }

    // MARK: Idleness

    /// Whether all work that needs no program is done.
    private var isIdle: Bool {
        clients == 0 && runs.isEmpty && endings.isEmpty && transfers.activeCount == 0
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
        let waiting = transfers.count - transfers.overCount - runs.count
        return
            "\(runs.count) running, \(waiting) waiting, \(transfers.overCount) finished, \(clients) programs connected"
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

// The agent's memory and what it does: one actor, whose every change is queued for the journal in the order it is made.

import FoundationEssentials
import URLLoading
import URLLoadingIO
import URLLoadingWire

actor TransferService {
    /// An identifier and the program that has it.
    struct Owner {
        var settings: SessionSettings
        var secrets: SessionSecrets
        /// Loads its transfers; made when the first begins.
        var session: Session?
        var client: AgentClient?
        var wakes = WakePlan()
        /// Events that were there when the program asked, and are not acknowledged yet.
        var missed: Set<Int64> = []
    }

    let journal: any Journal
    let spool: Spool
    let limits = SchedulePlan.Limits()
    var owners: [String: Owner] = [:]
    var transfers: [String: Transfer] = [:]
    /// Events that the journal has, by sequence.
    var events: [Int64: JournaledEvent] = [:]
    var runs: [String: Task<Void, Never>] = [:]
    var lastTurn: String?
    var isStopping = false
    private var nextNumber: Int64
    var clients = 0
    /// Boot-time nanoseconds since which there is nothing to do and nobody connected; `nil` while there is.
    private(set) var idleSince: Int64?
    let alarm = ServiceAlarm()
    let log: @Sendable (String) -> Void

    /// - Parameters:
    ///   - folder: the agent's state folder.
    ///   - log: gets a line for each thing that people may want to know.
    /// - Throws: ``JournalFailure``; `failed` if the spool cannot be made.
    init(_ journal: any Journal, folder: String, log: @escaping @Sendable (String) -> Void) throws(JournalFailure) {
        self.journal = journal
        self.log = log
        do throws(IOFailure) { spool = try Spool(folder) } catch { throw .failed("\(folder)/spool: \(error.code)") }
        let content = journal.content
        nextNumber = content.nextNumber
        if let problem = journal.problem { log(problem) }
        for (name, bytes) in content.identifiers {
            let settings = TransferCoding.decode(SessionSettings.self, bytes) ?? SessionSettings()
            let secrets = content.secrets["identifier " + name].flatMap {
                TransferCoding.decode(SessionSecrets.self, $0)
            }
            owners[name] = Owner(settings: settings, secrets: secrets ?? SessionSecrets())
        }
        for row in content.transfers {
            guard let transfer = Transfer(row, secrets: content.secrets["transfer " + row.id]) else {
                log("transfer \(row.id) of the journal cannot be read, and is left alone")
                continue
            }
            transfers[transfer.id] = transfer
        }
        for event in content.events {
            events[event.sequence] = event
            transfers[event.transfer]?.event = event.sequence
        }
        spool.removeOrphans(transfers.values)
    }

    /// Goes on with what an earlier agent left.
    func start() {
        for id in transfers.keys.sorted() {
            guard var transfer = transfers[id] else { continue }
            // What may have been carried out is not done twice.
            let wasSending =
                transfer.state.phase == .running && transfer.order.kind == .upload && !transfer.order.isIdempotent
                && transfer.progress.uploadToken == nil
            let action = transfer.state.receive(.restart)
            transfers[id] = transfer
            if wasSending {
                _ = transfers[id]?.state.receive(.start(now: SystemTime.wall))
                finish(id, .failed(TransferError(Self.mayHaveBeenCarriedOut(transfer))))
            } else {
                act(action, on: id)
            }
            // Its end was decided, and the agent killed before the event was written.
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
                "the transfer was stopped while the request was sent; it may have been carried out, and is not repeated "
                + "without Idempotency-Key")
    }

    func takeNumber() -> Int64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    /// Queues changes that must reach the disk sooner or later.
    func save(_ changes: [JournalChange], then: @escaping @Sendable () -> Void = {}) {
        journal.write(changes, mayFail: false) { _ in then() }
    }

    func save(_ id: String) {
        if let transfer = transfers[id] { save([transfer.update]) }
    }

    /// Stops at synchronised offsets: nothing is lost, and nothing runs any more.
    func stop() async {
        isStopping = true
        let running = runs
        for run in running.values { run.cancel() }
        for run in running.values { await run.value }
        for owner in owners.values {
            owner.client?.channel.close()
            owner.session?.invalidateAndCancel()
        }
        let journal = journal
        _ = await BlockingThreads.files.call(.never) { journal.finish() }
    }

    // MARK: Idleness

    /// Whether everything is done that can be done without a program.
    private var isIdle: Bool {
        clients == 0 && runs.isEmpty && !transfers.values.contains { !$0.state.isOver && !$0.state.isPaused }
            && !owners.values.contains { $0.wakes.next != nil }
    }

    func noteIdleness() { idleSince = isIdle ? idleSince ?? SystemTime.boot : nil }

    /// Seconds without anything to do; `nil` while there is.
    var idleTime: Double? {
        noteIdleness()
        return idleSince.map { Double(SystemTime.boot - $0) / 1e9 }
    }

    /// One line for service managers and people.
    var status: String {
        let over = transfers.values.count { $0.state.isOver }
        let waiting = transfers.count - over - runs.count
        return "\(runs.count) running, \(waiting) waiting, \(over) for their programs, \(clients) programs connected"
    }

    func connected() {
        clients += 1
        noteIdleness()
    }

    func disconnected(_ client: AgentClient) {
        clients -= 1
        for (name, owner) in owners where owner.client === client { detach(name) }
        noteIdleness()
        schedule()
    }
}

// SPDX-License-Identifier: Apache-2.0

// The requests of programs.

import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// A connected program.
final class AgentClient: Sendable {
    let channel: AgentChannel
    let process: Int32
    /// Set on the service's actor when the connection has ended.
    private let hasLeft = Atomic(false)
    var isGone: Bool { hasLeft.load(ordering: .acquiring) }

    init(_ channel: AgentChannel, process: Int32) { (self.channel, self.process) = (channel, process) }

    /// The identifier that an observer looks at.
    private let observation = Lock<String?>(nil)
    var observed: String? { observation.withLock { $0 } }
    func observe(_ identifier: String) { observation.withLock { $0 = identifier } }

    private let isAnswering = Atomic(false)
    /// Whether the program answers challenges.
    var answers: Bool { isAnswering.load(ordering: .acquiring) }
    func noteAnswers() { isAnswering.store(true, ordering: .releasing) }

    func leave() { hasLeft.store(true, ordering: .releasing) }
}

extension TransferService {
    private static func refusal(_ code: AgentFailure.Code, _ detail: String, process: Int64 = 0) -> AgentMessage {
        .refused(AgentFailure(code, detail, process: process).refusal)
    }

    /// Handles one request of a program. Replies are sent when they are ready, in any order.
    func receive(_ incoming: AgentChannel.Incoming, from client: AgentClient) {
        let reply: @Sendable (AgentMessage) -> Void = { client.channel.send($0, id: incoming.id) }
        switch incoming.message {
        case .attach(let attachment) where attachment.observes:
            client.observe(attachment.identifier)
            reply(.done)
        case .attach(let attachment): attach(attachment, client, reply)
        case .status: reply(.report(text: status))
        case .identifiers: reply(.report(text: owners.keys.sorted().joined(separator: "\n")))
        case .handOver: handOver(reply)
        default:
            if let name = client.observed { return observe(incoming, as: name, reply) }
            guard let name = owners.first(where: { $0.value.client === client })?.key else {
                return reply(Self.refusal(.refused, "the program has not attached"))
            }
            receive(incoming, from: client, as: name, reply)
        }
    }

    /// Handles a request of a program that is not the live session.
    private func observe(
        _ incoming: AgentChannel.Incoming, as name: String, _ reply: @escaping @Sendable (AgentMessage) -> Void
    ) {
        switch incoming.message {
        case .submit(let submission) where owners[name] != nil:
            submit(submission, name, incoming.files, inBackground: false, reply)
        case .list(let number): reply(page(name, after: number))
        case .command(let command) where command.verb != "answer": carryOut(command, name, reply)
        default: reply(Self.refusal(.refused, "only the live session of \(name) may do this"))
        }
    }

    private func receive(
        _ incoming: AgentChannel.Incoming, from client: AgentClient, as name: String,
        _ reply: @escaping @Sendable (AgentMessage) -> Void
    ) {
        switch incoming.message {
        case .submit(let submission):
            submit(submission, name, incoming.files, inBackground: owners[name]?.visit.isInBackground == true, reply)
        case .list(let number): reply(page(name, after: number))
        case .command(let command): carryOut(command, name, reply)
        case .listen: listen(name, client, reply)
        case .acknowledge(let sequence): acknowledge(sequence, name, reply)
        case .detach:
            detach(name)
            reply(.done)
        default: reply(Self.refusal(.refused, "this agent does not know the request"))
        }
    }

    // MARK: Identifiers

    /// The number of checks, and the nanoseconds between them, for an identifier that another program still has: the
    /// end of that program may not have been noticed yet.
    private static let (checks, checkInterval) = (10, 50_000_000 as Int64)

    private func attach(
        _ attachment: AgentMessage.Attachment, _ client: AgentClient, checks: Int = checks,
        _ reply: @escaping @Sendable (AgentMessage) -> Void
    ) {
        // The program may have left while it waited for its identifier, and nothing would detach it then.
        guard !client.isGone else { return }
        // The program then connects to the next agent.
        guard !isStopping else { return client.channel.close() }
        let known = attachment.settings.isEmpty ? owners[attachment.identifier] : nil
        let sent = attachment.settings.isEmpty ? SessionSettings() : nil
        guard
            let settings = known?.settings ?? sent ?? TransferCoding.decode(SessionSettings.self, attachment.settings)
        else { return reply(Self.refusal(.refused, "the settings cannot be read")) }
        let name = attachment.identifier
        if let other = owners[name]?.client {
            if checks > 0, other !== client {
                Task {
                    try? await Poller.shared.sleep(until: Poller.now() + Self.checkInterval, .never)
                    attach(attachment, client, checks: checks - 1, reply)
                }
                return
            }
            let text = "process \(other.process) has a live session with the identifier \(name)"
            return reply(Self.refusal(.identifierInUse, text, process: Int64(other.process)))
        }
        let secrets =
            known?.secrets ?? TransferCoding.decode(SessionSecrets.self, attachment.secrets) ?? SessionSecrets()
        var owner = owners[name] ?? Owner(settings: settings, secrets: secrets)
        if owner.settings != settings || owner.secrets != secrets {
            // Attempts that have begun finish with the previous settings, and keep their session until then.
            (owner.session, owner.isRecorded) = (nil, false)
        }
        (owner.settings, owner.secrets, owner.client) = (settings, secrets, client)
        owner.visit = ProgramVisit()
        owner.attachments += 1
        if attachment.answers { client.noteAnswers() }
        owners[name] = owner
        if attachment.answers { unpark(name) }
        let isBehind = owners[name]?.visit.isBehind == true || events.values.contains { $0.identifier == name }
        owners[name]?.visit.isInBackground = attachment.wasWoken && isBehind
        // A program that reconnects while the disk is full changes nothing.
        if owner.isRecorded { return reply(.done) }
        let changes: [JournalChange] = [
            .identifier(name, settings: TransferCoding.encode(settings)),
            .secrets(owner: "identifier " + name, TransferCoding.encode(secrets)),
        ]
        journal.write(changes, mayFail: true) { failure in
            if let failure {
                return reply(Self.refusal(.journal, "the agent cannot write its journal: \(failure)"))
            }
            Task { await self.recorded(name, settings, secrets) }
            reply(.done)
        }
    }

    private func recorded(_ name: String, _ settings: SessionSettings, _ secrets: SessionSecrets) {
        guard let owner = owners[name], owner.settings == settings, owner.secrets == secrets else { return }
        owners[name]?.isRecorded = true
    }

    func detach(_ name: String) {
        owners[name]?.client = nil
        withdrawChallenges(of: name)
        owners[name]?.visit = ProgramVisit()
        // Without transfers there is nothing to remember for the identifier.
        if !transfers.contains(where: { $0.identifier == name }) {
            owners[name] = nil
            save([.removeIdentifier(name), .removeSecrets(owner: "identifier " + name)])
        }
        wakeProgram(name)
    }

    private func handOver(_ reply: @escaping @Sendable (AgentMessage) -> Void) {
        log("a newer program asks this agent to hand over")
        reply(.done)
        alarm.handOver()
    }

    // MARK: Transfers

    /// - Parameter inBackground: whether the program was started for events that it has not handled yet.
    private func submit(
        _ submission: AgentMessage.Submission, _ name: String, _ files: [PassedFile], inBackground: Bool,
        _ reply: @escaping @Sendable (AgentMessage) -> Void
    ) {
        // The program repeats a request whose connection ended before the reply.
        if let known = transfers[submission.transfer] {
            guard known.identifier == name else { return reply(Self.refusal(.refused, "the id is in use")) }
            // The copy of its file is being made.
            if known.order.copiesSource == true, !known.isAccepted {
                Task {
                    try? await Poller.shared.sleep(until: Poller.now() + Self.checkInterval, .never)
                    submit(submission, name, files, inBackground: inBackground, reply)
                }
                return
            }
            return save([]) { reply(.done) }
        }
        guard var order = TransferCoding.decode(TransferOrder.self, submission.order),
            let secrets = TransferCoding.decode(TransferSecrets.self, submission.secrets),
            Self.isPlain(submission.transfer)
        else { return reply(Self.refusal(.refused, "the order cannot be read")) }
        if inBackground { order.isDiscretionary = true }
        if let problem = Self.problem(order, secrets, files) { return reply(Self.refusal(.refused, problem)) }
        let transfer = Transfer(
            id: submission.transfer, number: takeNumber(), identifier: name, order: order, secrets: secrets)
        transfers[transfer.id] = transfer
        noteIdleness()
        guard order.copiesSource == true else { return record(transfer, submission.secrets, reply) }
        let spool = spool
        Task {
            let copied = await BlockingThreads.files.call(.never) { () -> Result<TransferOrder?, IOFailure> in
                Result { () throws(IOFailure) in try spool.copySource(of: transfer) }
            }
            switch copied {
            case .success(let order?)?:
                transfers[transfer.id]?.order = order
                if let changed = transfers[transfer.id] { record(changed, submission.secrets, reply) }
            case .success(nil)?, nil: refuse(transfer, .refused, "the file has changed", reply)
            case .failure(let failure)?:
                refuse(transfer, .refused, "the file cannot be copied: \(failure.code)", reply)
            }
        }
    }

    /// Records an order, and accepts it when it is on the disk.
    private func record(
        _ transfer: Transfer, _ secrets: [UInt8], _ reply: @escaping @Sendable (AgentMessage) -> Void
    ) {
        let changes: [JournalChange] = [
            .transfer(transfer.journaled), .secrets(owner: "transfer " + transfer.id, secrets),
        ]
        journal.write(changes, mayFail: true) { failure in
            Task { await self.submitted(transfer.id, failure, reply) }
        }
    }

    /// Forgets an order that was not accepted.
    private func refuse(
        _ transfer: Transfer, _ code: AgentFailure.Code, _ detail: String, _ reply: @Sendable (AgentMessage) -> Void
    ) {
        transfers[transfer.id] = nil
        BlockingThreads.files.run { [spool] in spool.remove(transfer) }
        noteIdleness()
        reply(Self.refusal(code, detail))
    }

    private func submitted(
        _ id: String, _ failure: JournalFailure?, _ reply: @Sendable (AgentMessage) -> Void
    ) {
        if let failure {
            let detail = "the agent cannot write its journal: \(failure)"
            guard let transfer = transfers[id] else { return reply(Self.refusal(.journal, detail)) }
            return refuse(transfer, .journal, detail, reply)
        }
        transfers[id]?.isAccepted = true
        reply(.done)
        schedule()
    }

    /// Whether an id is safe as a part of file names.
    private static func isPlain(_ id: String) -> Bool {
        (1...64).contains(id.utf8.count)
            && id.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || $0.properties.numericType != nil || $0 == "-")
            }
    }

    /// Returns why an order cannot be accepted; `nil` if it can. Descriptors of files and folders that come with the
    /// order show whether this process sees the same ones, because it may be in another mount namespace.
    private static func problem(_ order: TransferOrder, _ secrets: TransferSecrets, _ files: [PassedFile]) -> String? {
        guard order.userData.count <= TransferOrder.maximumUserData else { return "more than 64 KiB of user data" }
        guard let scheme = URL(string: secrets.url)?.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            return "only http and https are carried out in the background"
        }
        switch order.kind {
        case .download:
            guard let destination = order.destination else { return nil }
            guard destination.hasPrefix("/"), let slash = destination.lastIndex(of: "/") else {
                return "the destination is not an absolute path"
            }
            let folder = slash == destination.startIndex ? "/" : String(destination[..<slash])
            guard let place = FilePlace(folder) else { return "\(folder): no such folder for the agent" }
            guard order.destinationFolder == nil || order.destinationFolder == place,
                files.first?.place ?? place == place
            else { return "\(folder) is another folder for the agent than for the program" }
            return nil
        case .upload:
            guard let source = order.source, source.hasPrefix("/"), let stamp = order.sourceStamp else {
                return "an upload needs a file"
            }
            guard let own = SourceStamp(path: source) else { return "\(source): no such file for the agent" }
            return own == stamp ? nil : "\(source) is another file for the agent than for the program"
        }
    }

    private static let pageSize = 500

    private func page(_ name: String, after number: Int64) -> AgentMessage {
        let all = transfers.accepted(of: name, after: number)
        var records: [[UInt8]] = []
        var size = 0
        for entry in all.prefix(Self.pageSize) {
            let record = transfers[entry.id].map { TransferCoding.encode($0.record) } ?? []
            size += record.count
            // A single record always fits, because user data are limited.
            if !records.isEmpty, size > AgentFrame.largest / 2 { break }
            records.append(record)
        }
        let isLast = records.count == all.count
        return .page(.init(records: records, next: isLast ? nil : all[records.count - 1].number))
    }

    private func carryOut(
        _ command: AgentMessage.Command, _ name: String, _ reply: @escaping @Sendable (AgentMessage) -> Void
    ) {
        let id = command.transfer
        guard let transfer = transfers[id], transfer.identifier == name else {
            return reply(Self.refusal(.unknownTransfer, "there is no transfer \(id)"))
        }
        switch command.verb {
        case "pause": input(.pause, to: id)
        case "resume": input(.resume, to: id)
        case "cancel":
            let error = LoadError(.cancelled, phase: .waiting, party: .local, url: URL(string: transfer.order.shownURL))
            input(.cancel(.failed(TransferError(error))), to: id)
        case "answer":
            return reply(
                answer(command.argument, of: name)
                    ? .done : Self.refusal(.refused, "no challenge waits for this answer"))
        case "prioritize":
            guard let priority = command.argument.first else { return reply(Self.refusal(.refused, "no priority")) }
            transfers[id]?.order.priority = priority
            if let changed = transfers[id] { save([.transfer(changed.journaled)]) }
        default: return reply(Self.refusal(.refused, "this agent does not know \(command.verb)"))
        }
        save([]) { reply(.done) }
        schedule()
    }

    // MARK: Events

    private func listen(_ name: String, _ client: AgentClient, _ reply: @Sendable (AgentMessage) -> Void) {
        reply(.done)
        let missed = events.values.filter { $0.identifier == name }.map(\.sequence).sorted()
        owners[name]?.visit.listen(missed)
        sendEvents(name)
        // The challenges that had waited are answered already.
        if owners[name]?.visit.handled() == true { client.channel.send(.finishedEvents) }
    }

    /// Sends the events of an identifier as fast as its program reads them.
    func sendEvents(_ name: String) {
        guard let owner = owners[name], let client = owner.client, !owner.isSending else { return }
        while !client.channel.isBusy, let sequence = owners[name]?.visit.takeUnsent() {
            guard let event = events[sequence], let transfer = transfers[event.transfer] else { continue }
            let record = TransferCoding.encode(transfer.record)
            client.channel.send(.event(.init(sequence: sequence, record: record)))
        }
        guard owners[name]?.visit.hasUnsent == true else { return }
        owners[name]?.isSending = true
        Task {
            try? await Poller.shared.sleep(until: Poller.now() + 2_000_000, .never)
            owners[name]?.isSending = false
            sendEvents(name)
        }
    }

    private func acknowledge(
        _ sequence: Int64, _ name: String, _ reply: @escaping @Sendable (AgentMessage) -> Void
    ) {
        guard let event = events[sequence], event.identifier == name else { return reply(.done) }
        events[sequence] = nil
        owners[name]?.wakes.acknowledged()
        var changes: [JournalChange] = [.removeEvent(sequence: sequence)]
        let transfer = transfers[event.transfer]
        transfers[event.transfer] = nil
        if let transfer {
            changes += [.removeTransfer(id: transfer.id), .removeSecrets(owner: "transfer " + transfer.id)]
        }
        let client = owners[name]?.client
        let isLast = owners[name]?.visit.handled(event: sequence) == true
        let spool = spool
        save(changes) {
            // The files are removed once the journal no longer refers to them.
            if let transfer { BlockingThreads.files.run { spool.remove(transfer) } }
            reply(.done)
            if isLast { client?.channel.send(.finishedEvents) }
        }
        noteIdleness()
    }

    /// The attempt of a transfer that waited for its program has got past its challenges, or has ended.
    func caughtUp(_ id: String) {
        guard let name = transfers[id]?.identifier, owners[name]?.visit.handled(transfer: id) == true else { return }
        owners[name]?.client?.channel.send(.finishedEvents)
    }
}

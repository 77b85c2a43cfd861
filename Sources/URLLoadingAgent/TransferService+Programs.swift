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
    /// Sends the answer to a request.
    private typealias Reply = @Sendable (AgentMessage) -> Void

    private static func refusal(_ code: AgentFailure.Code, _ detail: String, process: Int64 = 0) -> AgentMessage {
        .refused(AgentFailure(code, detail, process: process).refusal)
    }

    private static func unknown(_ id: String) -> AgentMessage {
        refusal(.unknownTransfer, "there is no transfer \(id)")
    }

    /// Handles one request of a program. Replies are sent when they are ready, in any order.
    func receive(_ incoming: AgentChannel.Incoming, from client: AgentClient) {
        let reply: Reply = { message in
            guard client.channel.send(message, id: incoming.id) == .tooLarge else { return }
            client.channel.send(Self.refusal(.refused, "the answer does not fit a message"), id: incoming.id)
        }
        switch incoming.message {
        case .attach(let attachment) where attachment.observes:
            client.observe(attachment.identifier)
            guard isShared else { return reply(.done) }
            Task {
                await load(attachment.identifier)
                reply(.done)
            }
        case .attach(let attachment): attach(attachment, client, reply)
        case .status: reply(.report(text: status))
        case .identifiers: Task { await listIdentifiers(reply) }
        case .handOver: handOver(reply)
        case .fleet: Task { await reportFleet(reply) }
        case .drain:
            drain()
            reply(.done)
        default:
            if let name = client.observed { return observe(incoming, from: client, as: name, reply) }
            guard let name = owners.first(where: { $0.value.client === client })?.key else {
                return reply(Self.refusal(.refused, "the program has not attached"))
            }
            receive(incoming, from: client, as: name, reply)
        }
    }

    /// Handles a request of a program that is not the live session.
    /// - Parameter mayLoad: whether the journal is asked for the identifier's settings, if this agent has none.
    private func observe(
        _ incoming: AgentChannel.Incoming, from client: AgentClient, as name: String, mayLoad: Bool = true,
        _ reply: @escaping Reply
    ) {
        switch incoming.message {
        case .submit(let submission) where owners[name] != nil:
            submit(submission, name, incoming.files, inBackground: false, client, reply)
        case .submit where isShared && mayLoad:
            Task {
                await load(name)
                observe(incoming, from: client, as: name, mayLoad: false, reply)
            }
        case .list(let number): Task { await page(name, after: number, reply) }
        case .command(let command) where command.verb != "answer": carryOut(command, name, reply)
        default: reply(Self.refusal(.refused, "only the live session of \(name) may do this"))
        }
    }

    private func receive(
        _ incoming: AgentChannel.Incoming, from client: AgentClient, as name: String, _ reply: @escaping Reply
    ) {
        switch incoming.message {
        case .submit(let submission):
            let inBackground = owners[name]?.visit.isInBackground == true
            submit(submission, name, incoming.files, inBackground: inBackground, client, reply)
        case .list(let number): Task { await page(name, after: number, reply) }
        case .command(let command): carryOut(command, name, reply)
        case .listen: Task { await listen(name, client, reply) }
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
        isLoaded: Bool = false, _ reply: @escaping Reply
    ) {
        // The program may have left while it waited for its identifier, and nothing would detach it then.
        guard !client.isGone else { return }
        // The program then connects to the next agent.
        guard phase == .serving else { return client.channel.close() }
        if isShared, attachment.settings.isEmpty, owners[attachment.identifier] == nil, !isLoaded {
            return _ = Task {
                await load(attachment.identifier)
                attach(attachment, client, checks: checks, isLoaded: true, reply)
            }
        }
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
        // Other agents must know where the program is.
        if isShared { owner.isRecorded = false }
        if attachment.answers { client.noteAnswers() }
        owners[name] = owner
        if attachment.answers { unpark(name) }
        let isBehind = owners[name].map { $0.visit.isBehind || $0.undelivered > 0 } ?? false
        owners[name]?.visit.isInBackground = attachment.wasWoken && isBehind
        // A program that reconnects while the disk is full changes nothing.
        if owner.isRecorded { return reply(.done) }
        let change = JournalChange.identifier(
            name, settings: TransferCoding.encode(settings), secrets: TransferCoding.encode(secrets))
        journal.write([change], mayFail: true) { result in
            let answer: AgentMessage
            switch result {
            case .success:
                Task { await self.recorded(name, settings, secrets) }
                return reply(.done)
            case .failure(.elsewhere):
                let text = "a program with the identifier \(name) is attached to another agent"
                answer = Self.refusal(.identifierInUse, text)
            case .failure(let failure):
                answer = Self.refusal(.journal, "the agent cannot write its journal: \(failure)")
            }
            Task {
                await self.dismiss(client, of: name)
                reply(answer)
            }
        }
    }

    private func recorded(_ name: String, _ settings: SessionSettings, _ secrets: SessionSecrets) {
        guard let owner = owners[name], owner.settings == settings, owner.secrets == secrets else { return }
        owners[name]?.isRecorded = true
    }

    /// The journal has not recorded, or not kept, the attachment of a program to this agent.
    func dismiss(_ client: AgentClient, of name: String) {
        guard isShared, owners[name]?.client === client else { return }
        owners[name]?.client = nil
        withdrawChallenges(of: name)
        owners[name]?.visit = ProgramVisit()
    }

    func detach(_ name: String) {
        owners[name]?.client = nil
        withdrawChallenges(of: name)
        owners[name]?.visit = ProgramVisit()
        // Another agent may have the program next.
        if isShared { save([.leave(identifier: name)]) }
        forgetUnused(name)
        wakeProgram(name)
    }

    /// Without a program and without transfers there is nothing to remember for an identifier.
    private func forgetUnused(_ name: String) {
        guard let owner = owners[name], owner.client == nil, owner.undelivered == 0 || isShared,
            !transfers.contains(where: { $0.identifier == name }),
            !submissions.values.contains(name)
        else { return }
        owners[name] = nil
        save([.leave(identifier: name)])
    }

    private func handOver(_ reply: @escaping Reply) {
        log("a newer program asks this agent to hand over")
        reply(.done)
        alarm.handOver()
    }

    // MARK: Transfers

    /// - Parameter inBackground: whether the program was started for events that it has not handled yet.
    private func submit(
        _ submission: AgentMessage.Submission, _ name: String, _ files: [PassedFile], inBackground: Bool,
        _ client: AgentClient, _ reply: @escaping Reply
    ) {
        let id = submission.transfer
        // The program repeats a request whose connection ended before the reply.
        if let known = transfers[id] {
            return known.identifier == name
                ? save([]) { reply(.done) } : reply(Self.refusal(.refused, "the id is in use"))
        }
        if submissions[id] != nil {
            return whenSettled(id) { service in
                service.submit(submission, name, files, inBackground: inBackground, client, reply)
            }
        }
        guard var order = TransferCoding.decode(TransferOrder.self, submission.order),
            let secrets = TransferCoding.decode(TransferSecrets.self, submission.secrets),
            Self.isPlain(id)
        else { return reply(Self.refusal(.refused, "the order cannot be read")) }
        if inBackground { order.isDiscretionary = true }
        if isShared, order.copiesSource == true, !(spool is FolderStore) {
            let problem = "another agent would not find the copy of the file: agents need a folder for files (--files)"
            return reply(Self.refusal(.refused, problem))
        }
        if let problem = Self.problem(order, secrets) { return reply(Self.refusal(.refused, problem)) }
        let transfer = Transfer(id: id, identifier: name, order: order, secrets: secrets)
        submissions[id] = name
        noteIdleness()
        guard order.kind == .upload || order.destination != nil else {
            return record(transfer, submission.secrets, client, reply)
        }
        Task { await examine(transfer, files, submission.secrets, client, reply) }
    }

    /// Looks at the files of an order, and records it. A file system that does not answer must not stop the agent.
    private func examine(
        _ transfer: Transfer, _ files: [PassedFile], _ secrets: [UInt8], _ client: AgentClient, _ reply: @escaping Reply
    ) async {
        let order = transfer.order
        let looked = await looks.call(.never, until: Poller.now() + patience) { () -> String? in
            Self.problem(order, files)
        }
        guard let problem = looked else {
            let path = order.destination ?? order.source ?? ""
            return refuse(transfer, .refused, "the file system of \(path) does not answer the agent", reply)
        }
        if let problem { return refuse(transfer, .refused, problem, reply) }
        guard order.copiesSource == true else { return record(transfer, secrets, client, reply) }
        await copy(transfer, secrets, client, reply)
    }

    /// Copies the file of an upload, and records the order with the copy.
    private func copy(_ transfer: Transfer, _ secrets: [UInt8], _ client: AgentClient, _ reply: @escaping Reply) async {
        do throws(JournalFailure) {
            // A transfer that is over keeps its copy.
            if try await journal.transfer(transfer.id) != nil { return record(transfer, secrets, client, reply) }
        } catch { return refuse(transfer, .journal, "the agent cannot read its journal: \(error)", reply) }
        let spool = spool
        let copied = await BlockingThreads.files.call(.never) { () -> Result<TransferOrder?, IOFailure> in
            Result { () throws(IOFailure) in try spool.copySource(of: transfer) }
        }
        switch copied {
        case .success(let order?)?:
            var copy = transfer
            copy.order = order
            record(copy, secrets, hasCopy: true, client, reply)
        case .success(nil)?, nil: refuse(transfer, hasCopy: true, .refused, "the file has changed", reply)
        case .failure(let failure)?:
            refuse(transfer, hasCopy: true, .refused, "the file cannot be copied: \(failure.words)", reply)
        }
    }

    /// The journal has decided about a submission.
    private func settle(_ id: String) {
        submissions[id] = nil
        // Many submissions at once leave a large dictionary.
        if submissions.isEmpty { submissions = [:] }
    }

    /// Repeats a request about a transfer that the journal has not accepted yet, when it has decided.
    private func whenSettled(_ id: String, _ work: @escaping @Sendable (isolated TransferService) -> Void) {
        Task {
            while submissions[id] != nil {
                try? await Poller.shared.sleep(until: Poller.now() + Self.checkInterval, .never)
            }
            work(self)
        }
    }

    /// Records an order, and accepts it when it is on the disk. A program that has gone meanwhile may have submitted it
    /// to another agent.
    private func record(
        _ transfer: Transfer, _ secrets: [UInt8], hasCopy: Bool = false, _ client: AgentClient, _ reply: @escaping Reply
    ) {
        journal.submit(transfer.row(secrets), while: { !client.isGone }) { result in
            Task { await self.submitted(transfer, hasCopy: hasCopy, result, reply) }
        }
    }

    /// Forgets an order that was not accepted.
    /// - Parameter hasCopy: whether a copy was made for it. Other files of this id belong to a transfer that is over,
    ///   and whose submission was repeated.
    private func refuse(
        _ transfer: Transfer, hasCopy: Bool = false, _ code: AgentFailure.Code, _ detail: String, _ reply: Reply
    ) {
        settle(transfer.id)
        if hasCopy { BlockingThreads.files.run { [spool] in spool.remove(transfer) } }
        noteIdleness()
        reply(Self.refusal(code, detail))
    }

    private func submitted(
        _ transfer: Transfer, hasCopy: Bool, _ result: Result<JournalReceipt, JournalFailure>, _ reply: Reply
    ) {
        switch result {
        case .failure(let failure):
            let detail = "the agent cannot write its journal: \(failure)"
            return refuse(transfer, hasCopy: hasCopy, .journal, detail, reply)
        case .success(let receipt):
            settle(transfer.id)
            switch receipt.acceptance {
            case .known(let identifier)? where identifier != transfer.identifier:
                reply(Self.refusal(.refused, "the id is in use"))
            case .known?, .queued?, nil: reply(.done)
            case .claimed(let claim)?:
                var accepted = transfer
                accepted.claim = claim
                transfers[transfer.id] = accepted
                reply(.done)
            }
        }
        schedule()
    }

    /// Whether an id is safe as a part of file names.
    private static func isPlain(_ id: String) -> Bool {
        (1...64).contains(id.utf8.count)
            && id.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || $0.properties.numericType != nil || $0 == "-")
            }
    }

    /// Returns why an order cannot be accepted whatever files there are; `nil` if it can.
    private static func problem(_ order: TransferOrder, _ secrets: TransferSecrets) -> String? {
        guard order.userData.count <= TransferOrder.maximumUserData else { return "more than 64 KiB of user data" }
        guard let scheme = URL(string: secrets.url)?.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            return "only http and https are carried out in the background"
        }
        return nil
    }

    /// Returns why an order cannot be accepted with its files; `nil` if it can. Descriptors of files and folders that
    /// come with the order show whether this process sees the same ones, because it may be in another mount namespace.
    private static func problem(_ order: TransferOrder, _ files: [PassedFile]) -> String? {
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

    /// Answers with a page of the journal, and with what this agent knows better: the progress of its transfers.
    private func page(_ name: String, after number: Int64, _ reply: @escaping Reply) async {
        let rows: [JournaledTransfer]
        do throws(JournalFailure) {
            // One more, which shows whether another page follows.
            rows = try await journal.transfers(of: name, after: number, atMost: Self.pageSize + 1)
        } catch { return reply(Self.refusal(.journal, "the agent cannot read its journal: \(error)")) }
        var records: [[UInt8]] = []
        var (size, last) = (0, number)
        for row in rows.prefix(Self.pageSize) {
            let record = (transfers[row.id] ?? Transfer(row)).map { Self.fitted($0.record) } ?? []
            size += record.count
            // A single record always fits, because user data are limited.
            if !records.isEmpty, size > AgentFrame.largest / 2 { break }
            records.append(record)
            last = row.claim.number
        }
        reply(.page(.init(records: records, next: last == rows.last?.claim.number ?? number ? nil : last)))
    }

    /// Encodes a record for a message: without the fields of its response if they are too large for one.
    private static func fitted(_ record: TransferRecord) -> [UInt8] {
        let bytes = TransferCoding.encode(record)
        guard bytes.count > AgentFrame.largest / 2 else { return bytes }
        var short = record
        short.outcome = record.outcome?.withoutFields
        return TransferCoding.encode(short)
    }

    private static let full = "the agent's journal takes no changes at the moment; try again later"

    private func carryOut(_ command: AgentMessage.Command, _ name: String, _ reply: @escaping Reply) {
        let id = command.transfer
        guard !journal.isFull else { return reply(Self.refusal(.journal, Self.full)) }
        guard let transfer = transfers[id] else {
            guard submissions[id] == nil else {
                return whenSettled(id) { service in service.carryOut(command, name, reply) }
            }
            return _ = Task { await carryOutElsewhere(command, name, reply) }
        }
        guard transfer.identifier == name else { return reply(Self.unknown(id)) }
        if command.verb == "answer" {
            let isAnswered = answer(command.argument, of: name)
            return reply(isAnswered ? .done : Self.refusal(.refused, "no challenge waits for this answer"))
        }
        if let problem = carryOut(command.verb, command.argument, id) {
            return reply(Self.refusal(.refused, problem))
        }
        save([]) { reply(.done) }
        schedule()
    }

    /// Carries out a command for a transfer of this agent.
    /// - Returns: why that cannot be; `nil` if it was carried out, or changes nothing in the transfer's state.
    func carryOut(_ verb: String, _ argument: [UInt8], _ id: String) -> String? {
        switch verb {
        case "pause": input(.pause, to: id)
        case "resume": input(.resume, to: id)
        case "cancel":
            let url = transfers[id].flatMap { URL(string: $0.order.shownURL) }
            let error = LoadError(.cancelled, phase: transfers[id]?.place ?? .waiting, party: .local, url: url)
            input(.cancel(.failed(TransferError(error))), to: id)
        case "prioritize":
            guard let priority = argument.first else { return "no priority" }
            transfers[id]?.order.priority = priority
            if let changed = transfers[id] { save([changed.orderUpdate]) }
        default: return "this agent does not know \(verb)"
        }
        return nil
    }

    /// Carries out a command for a transfer that this agent does not work on.
    private func carryOutElsewhere(_ command: AgentMessage.Command, _ name: String, _ reply: @escaping Reply) async {
        guard isShared else {
            let known = try? await journal.transfer(command.transfer)
            return reply(known?.identifier == name ? .done : Self.unknown(command.transfer))
        }
        switch await claim(command.transfer, for: name) {
        case .refused(let failure): reply(.refused(failure.refusal))
        // A transfer that is over stays as it is.
        case .over: reply(.done)
        case .claimed:
            if transfers[command.transfer] == nil { return reply(.done) }
            carryOut(command, name, reply)
            letGo(command.transfer)
        case .elsewhere:
            // Only the agent that has asked the program knows its challenges.
            guard command.verb != "answer" else {
                return reply(Self.refusal(.refused, "no challenge waits for this answer"))
            }
            let change = JournalChange.command(
                transfer: command.transfer, verb: command.verb, argument: command.argument)
            do throws(JournalFailure) { try await journal.write([change], mayFail: true) } catch {
                return reply(Self.refusal(.journal, "the agent cannot write its journal: \(error)"))
            }
            reply(.done)
            // The other agent may have let go of it just before.
            if case .claimed = await claim(command.transfer, for: name) { letGo(command.transfer) }
        }
    }

    private func listIdentifiers(_ reply: @escaping Reply) async {
        var names = Set(owners.keys)
        if isShared { names.formUnion((try? await journal.identifiers())?.map(\.name) ?? []) }
        reply(.report(text: names.sorted().joined(separator: "\n")))
    }

    private func reportFleet(_ reply: @escaping Reply) async {
        do throws(JournalFailure) {
            let report = try await journal.fleet()
            reply(.report(text: report?.text(of: journal.agent, now: SystemTime.wall) ?? ""))
        } catch { reply(Self.refusal(.journal, "the agent cannot read its journal: \(error)")) }
    }

    // MARK: Events

    private func listen(_ name: String, _ client: AgentClient, _ reply: @escaping Reply) async {
        let attachment = owners[name]?.attachments
        let missed: [Int64]
        do throws(JournalFailure) { missed = try await journal.sequences(of: name) } catch {
            return reply(Self.refusal(.journal, "the agent cannot read its journal: \(error)"))
        }
        reply(.done)
        guard owners[name]?.client === client, owners[name]?.attachments == attachment else { return }
        owners[name]?.visit.listen(missed)
        sendEvents(name)
        // The challenges that had waited are answered already.
        if owners[name]?.visit.handled() == true { client.channel.send(.finishedEvents) }
    }

    /// Sends the events of an identifier to its program, if it listens.
    func sendEvents(_ name: String) {
        guard let owner = owners[name], let client = owner.client, owners[name]?.visit.hasEvents() == true else {
            return
        }
        let attachment = owner.attachments
        Task { await sendEvents(name, client, attachment) }
    }

    /// The number of events that are read from the journal at once: each may have 64 KiB of user data.
    private static let eventCount = 32

    /// Sends events as fast as the program reads them, until the journal has no more, or the program leaves.
    private func sendEvents(_ name: String, _ client: AgentClient, _ attachment: Int) async {
        func isAttached() -> Bool { owners[name]?.client === client && owners[name]?.attachments == attachment }
        while isAttached() {
            guard !client.channel.isBusy else {
                try? await Poller.shared.sleep(until: Poller.now() + 2_000_000, .never)
                continue
            }
            guard let last = owners[name]?.visit.look() else { return }
            guard let events = try? await journal.events(of: name, after: last, atMost: Self.eventCount) else {
                try? await Poller.shared.sleep(until: Poller.now() + 1_000_000_000, .never)
                continue
            }
            guard isAttached() else { return }
            for event in events {
                guard let transfer = Transfer(event.transfer) else { continue }
                let record = Self.fitted(transfer.record)
                client.channel.send(.event(.init(sequence: event.sequence, record: record)))
            }
            if let end = events.last?.sequence {
                owners[name]?.visit.sent(upTo: end)
            } else if owners[name]?.visit.foundNone() != true {
                return
            }
        }
    }

    private func acknowledge(_ sequence: Int64, _ name: String, _ reply: @escaping Reply) {
        owners[name]?.wakes.acknowledged()
        let client = owners[name]?.client
        let isLast = owners[name]?.visit.handled(event: sequence) == true
        journal.write([.acknowledge(sequence: sequence, identifier: name)], mayFail: false) { result in
            Task {
                if case .failure(.elsewhere) = result {
                    return reply(Self.refusal(.identifierInUse, "\(name) is attached to another agent"))
                }
                await self.acknowledged(name, (try? result.get())?.removed)
                reply(.done)
                if isLast { client?.channel.send(.finishedEvents) }
            }
        }
    }

    private func acknowledged(_ name: String, _ removed: JournaledTransfer?) {
        guard let removed else { return }
        if !isShared { owners[name]?.undelivered -= 1 }
        // The files are removed once the journal no longer refers to them.
        if let transfer = Transfer(removed) { BlockingThreads.files.run { [spool] in spool.remove(transfer) } }
        forgetUnused(name)
        noteIdleness()
    }

    /// The attempt of a transfer that waited for its program has got past its challenges, or has ended.
    func caughtUp(_ id: String) {
        guard let name = transfers[id]?.identifier, owners[name]?.visit.handled(transfer: id) == true else { return }
        owners[name]?.client?.channel.send(.finishedEvents)
    }
}

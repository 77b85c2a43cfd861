// SPDX-License-Identifier: Apache-2.0

// What an agent does whose journal is shared with others: it claims as many transfers as it has places for, renews its
// claims, and lets go of transfers that wait.

import FoundationEssentials
import URLLoading
import URLLoadingIO

extension TransferService {
    var isShared: Bool { journal.signals != nil }

    /// Follows what other agents tell, and renews the claims, until the agent ends.
    func share(_ signals: AsyncStream<JournalSignal>) {
        log("shares its journal with other agents, among which it is \(journal.agent)")
        followers = [
            Task { for await signal in signals { await receive(signal) } },
            Task {
                while !Task.isCancelled {
                    await renew()
                    try? await Task.sleep(for: .nanoseconds(renewalInterval))
                }
            },
            Task {
                while !Task.isCancelled {
                    await removeOrphans()
                    try? await Task.sleep(for: .seconds(Self.tidyingInterval))
                }
            },
        ]
    }

    /// The seconds between looks for files that belong to no transfer.
    private static let tidyingInterval = 6 * 3_600

    private func receive(_ signal: JournalSignal) async {
        switch signal {
        case .work: claimMore()
        case .event(let name): sendEvents(name)
        case .parked(let agent, let name):
            // This agent has asked its own program already.
            if agent != journal.agent { await claimParked(name) }
        case .command(let agent): if agent == journal.agent { await obey() }
        case .reconnected: await renew()
        case .outdated: alarm.handOver()
        }
    }

    /// Renews the claims, and looks for what a lost notification has told.
    private func renew() async {
        let claims = transfers.filter { !$0.isAnnounced }.map(\.claim)
        // The programs whose attachment the journal has recorded.
        let programs = owners.filter(\.value.isRecorded).compactMapValues(\.client)
        if let renewal = try? await journal.renew(claims) {
            for claim in claims where renewal.lost.contains(claim.number) { leave(claim) }
            for (name, client) in programs where !renewal.identifiers.contains(name) { expel(client, of: name) }
        }
        for name in owners.keys {
            sendEvents(name)
            await claimParked(name)
        }
        await obey()
        forgetOthers()
        claimMore()
    }

    /// Forgets the settings and the secrets of identifiers whose programs are elsewhere, and of whose transfers this
    /// agent has none.
    private func forgetOthers() {
        let used = Set(transfers.map(\.identifier)).union(submissions.values)
        owners = owners.filter { $1.client != nil || used.contains($0) }
    }

    /// Ends the connection of a program whose identifier another agent has taken, because this one has not renewed its
    /// lease: the events go there.
    private func expel(_ client: AgentClient, of name: String) {
        guard owners[name]?.client === client else { return }
        log("the identifier \(name) is attached to another agent, and its program here is disconnected")
        client.channel.close()
        dismiss(client, of: name)
    }

    /// Carries out what programs that are attached to other agents want of this agent's transfers, and of transfers
    /// that an agent has let go of before it has read the command.
    func obey() async {
        let commands = (try? await journal.commands()) ?? []
        carryOut(commands)
        for command in commands where transfers[command.transfer] == nil {
            if case .claimed = await claim(command.transfer, for: command.identifier) { letGo(command.transfer) }
        }
        schedule()
    }

    private func carryOut(_ commands: [JournaledCommand]) {
        for command in commands {
            // A transfer that was claimed just now: the command is looked for again when the agent holds it.
            guard transfers[command.transfer] != nil else { continue }
            _ = carryOut(command.verb, command.argument, command.transfer)
            save([.carriedOut(command: command.number)])
        }
    }

    // MARK: Recording

    /// Records how far a running transfer is. One such change of a transfer waits to be written at a time, so that a
    /// database that is away costs no memory.
    func record(_ id: String) {
        guard isShared else { return save(id) }
        guard let transfer = transfers[id] else { return }
        guard recordings[id] == nil else { return recordings[id] = .again }
        recordings[id] = .once
        save([transfer.update]) { Task { await self.recorded(id) } }
    }

    private func recorded(_ id: String) {
        let recording = recordings.removeValue(forKey: id)
        if recording == .again, transfers[id]?.state.phase == .running { record(id) }
    }

    /// Goes on with a copy of another agent's part, which is removed when the journal no longer refers to it.
    func exchange(_ old: Data, _ new: Data, of id: String) {
        transfers[id]?.progress.resumption = new
        guard let transfer = transfers[id] else { return }
        journal.write([transfer.update], mayFail: false) { result in
            guard case .success = result else { return _ = Task { await self.leave(transfer.claim) } }
            BlockingThreads.files.run { (try? ResumeToken(old))?.discard() }
        }
    }

    // MARK: Claims

    /// Claims transfers while there are places, soon.
    func claimMore() {
        guard isShared, phase == .serving else { return }
        switch claiming {
        case .none:
            claiming = .running
            Task { await claimAll() }
        case .running, .repeating: claiming = .repeating
        }
    }

    private func claimAll() async {
        while phase == .serving {
            let room = limits.agent - transfers.count
            guard room > 0 else { break }
            let request = ClaimRequest.ready(
                atMost: room, room: places, after: lastClaim, takesDiscretionary: machine().allowsDiscretionary)
            guard let claimed = try? await journal.claim(request) else {
                // The return of a journal that is away is told. One that is reached may have refused this question
                // alone.
                nextClaim = journal.isReached ? Poller.now() + Self.claimDelay : nil
                break
            }
            nextClaim = claimed.next.map { Poller.now() + $0 }
            if let last = claimed.transfers.last {
                lastClaim = claimed.last ?? last.identifier
                await take(claimed.transfers)
                scheduleNow()
            } else if claiming == .repeating {
                claiming = .running
            } else {
                break
            }
        }
        claiming = .none
        if let nextClaim { alarm.advance(to: nextClaim - Poller.now()) }
    }

    /// The nanoseconds after which an agent claims again whose claim the journal has refused.
    private static let claimDelay: Int64 = 1_000_000_000

    /// The places that are left of the limits of this agent.
    private var places: ClaimRequest.Room {
        var room = ClaimRequest.Room(ofHost: limits.host, ofIdentifier: limits.identifier)
        for transfer in transfers where !transfer.state.isOver {
            room.hosts[transfer.host, default: limits.host] -= 1
            room.identifiers[transfer.identifier, default: limits.identifier] -= 1
        }
        return room
    }

    /// Begins to work on claimed transfers.
    private func take(_ rows: [JournaledTransfer]) async {
        for name in Set(rows.map(\.identifier)) { await load(name) }
        for row in rows {
            // The settings could not be read, or an attempt under an earlier claim is still being stopped; or an agent
            // of a later version has written the row. Not at once, because this agent may be the next one to claim it.
            let canWork = owners[row.identifier] != nil && activities[row.id] == nil
            guard canWork, hold(row) else {
                let delay: Int64 = canWork ? 60_000_000_000 : 1_000_000_000
                save([.update(row.claim, state: row.state, progress: row.progress, standing: .later(delay))])
                continue
            }
            restart(row.id)
            // A transfer that waits for its program after all, whose agent has died before it could say so.
            if let transfer = transfers[row.id], transfer.state.needsAgent == false, !transfer.state.isOver {
                save(row.id)
            }
        }
        await obey()
    }

    /// Holds a transfer that may begin: the time or the program that it has waited for has come.
    /// - Returns: whether its row can be decoded.
    private func hold(_ row: JournaledTransfer) -> Bool {
        add(row)
        guard var transfer = transfers[row.id] else { return false }
        switch transfer.state.phase {
        case .waiting: _ = transfer.state.receive(.wake)
        case .parked: _ = transfer.state.receive(.answered)
        case .queued, .running, .placing, .finished, .delivered: break
        }
        transfers[row.id] = transfer
        return true
    }

    /// Reads the settings of an identifier. Those of a connected program are known.
    func load(_ name: String) async {
        guard owners[name]?.client == nil, let found = try? await journal.identifier(name),
            owners[name]?.client == nil
        else { return }
        refresh(found)
    }

    /// Claims the transfers of an identifier whose challenges wait for its program, if that is connected to this agent.
    ///
    /// Repeated with each renewal: notifications may be lost, and the database may be away. A program that has not
    /// answered is not asked again.
    func claimParked(_ name: String) async {
        guard let owner = owners[name], owner.client?.answers == true, phase == .serving else { return }
        do throws(JournalFailure) {
            try await journal.unpark(name, again: !owner.visit.hasUnparked)
        } catch { return log("challenges for the program of \(name) wait: \(error)") }
        if owners[name]?.attachments == owner.attachments { owners[name]?.visit.hasUnparked = true }
        claimMore()
    }

    enum Found {
        /// The agent has the transfer now.
        case claimed
        case over
        /// Another agent works on it.
        case elsewhere
        case refused(AgentFailure)
    }

    /// Claims a transfer that this agent does not work on, for a command of a program, which follows without a
    /// suspension: the transfer has no place of its host, and must not begin before ``letGo(_:)``.
    func claim(_ id: String, for name: String) async -> Found {
        do throws(JournalFailure) {
            let row = try await journal.transfer(id)
            guard let row, row.identifier == name else {
                return .refused(AgentFailure(.unknownTransfer, "there is no transfer \(id)"))
            }
            guard let claimed = try await journal.claim(.one(id: id)).transfers.first else {
                return Transfer(row)?.state.isOver == true ? .over : .elsewhere
            }
            await load(name)
            // Those that were given before.
            let commands = (try? await journal.commands()) ?? []
            add(claimed)
            restart(id)
            carryOut(commands.filter { $0.transfer == id })
            return .claimed
        } catch { return .refused(AgentFailure(.journal, "the agent cannot read its journal: \(error)")) }
    }

    /// Lets go of a transfer that was claimed for a command: it goes on waiting in the journal, unless it is over.
    func letGo(_ id: String) {
        if let transfer = transfers[id], !transfer.isAnnounced, activities[id] == nil { save(id) }
    }
}

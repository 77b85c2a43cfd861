// SPDX-License-Identifier: Apache-2.0

// Attempts: their start, their reports, and their results.

import FoundationEssentials
import URLLoading
import URLLoadingIO
import URLLoadingWire

extension TransferService {
    /// Passes an input to a transfer's state, records the new state, and carries out the action.
    func input(_ input: TransferState.Input, to id: String) {
        guard var transfer = transfers[id] else { return }
        let before = transfer.state
        let action = transfer.state.receive(input)
        transfers[id] = transfer
        if transfer.state != before, action != .begin { save(id) }
        act(action, on: id)
    }

    func act(_ action: TransferState.Action, on id: String) {
        switch action {
        case .none, .refuse, .remove: break
        case .begin: begin(id)
        case .stop:
            guard let activity = activities[id], activity.takesPlace else {
                // The attempt has ended, and its result is being written: the cancellation is the result.
                return transfers[id]?.state.isOver == true ? announce(id) : ()
            }
            // A request that may have been carried out is not repeated: its attempt runs to its end while the transfer
            // is suspended.
            if let transfer = transfers[id], transfer.state.isOver || transfer.mayRepeat { activity.task.cancel() }
        case .rename(let placing): place(placing, id)
        case .announce: announce(id)
        }
    }

    // MARK: Turns

    /// Schedules soon: many changes at once need only one pass over all transfers.
    func schedule() {
        guard !isScheduled, phase == .serving else { return }
        isScheduled = true
        Task { scheduleNow() }
    }

    /// Wakes transfers whose wait is over, and begins those that may begin.
    func scheduleNow() {
        isScheduled = false
        guard phase == .serving else { return }
        let (wall, boot) = (SystemTime.wall, SystemTime.boot)
        var next = Int64.max
        for (id, end) in transfers.waits {
            let left = end.left(wall: wall, boot: boot)
            if left <= 0 { input(.wake, to: id) } else { next = min(next, left) }
        }
        for name in owners.keys {
            if let left = wakeProgram(name) { next = min(next, left) }
        }
        let running = activities.filter(\.value.takesPlace).keys
        let ready = candidates(transfers.ready(atMost: limits.host).filter { !running.contains($0) }, wall)
        let allows = !ready.contains(where: \.isDiscretionary) || machine().allowsDiscretionary
        if !allows { next = min(next, Self.machineInterval) }
        let plan = SchedulePlan.make(
            ready: ready, running: candidates(running, wall), limits: limits, last: lastTurn,
            allowsDiscretionary: allows)
        for id in plan.begins {
            lastTurn = transfers[id]?.identifier
            input(.start(now: wall), to: id)
        }
        for id in plan.yields { activities[id]?.task.cancel() }
        noteIdleness()
        claimMore()
        if let left = nextClaim.map({ $0 - Poller.now() }), left > 0 { next = min(next, left) } else { nextClaim = nil }
        alarm.set(in: next)
    }

    /// The nanoseconds between checks of the machine while transfers wait for a good moment.
    private static let machineInterval: Int64 = 60_000_000_000

    private func candidates(_ ids: some Sequence<String>, _ now: Int64) -> [SchedulePlan.Candidate] {
        ids.compactMap { transfers[$0] }.map { transfer in
            SchedulePlan.Candidate(
                id: transfer.id, identifier: transfer.identifier, host: transfer.host,
                priority: transfer.order.priority,
                number: transfer.number,
                isDiscretionary: transfer.order.isDiscretionary
                    && now.saturatingSubtract(transfer.order.created) < MachineState.maximumDelay,
                isResumable: transfer.isResumable)
        }
    }

    /// Retries the transfers that wait after a failure, because a network has become available.
    func pathChanged() {
        for id in transfers.waits.keys where transfers[id]?.state.wait?.reason == .backoff { input(.wake, to: id) }
        schedule()
    }

    // MARK: One attempt

    private func begin(_ id: String) {
        guard var transfer = transfers[id], let session = session(of: transfer.identifier) else { return }
        // The resource timeout applies to all attempts together: this one has the rest.
        transfer.order.overrides.resourceTimeout = facts(transfer, mayRepeat: true).timeLeft
        if isShared { transfers[id]?.progress.writer = journal.agent }
        let attempt = Attempt(transfer: transfer, session: session, spool: spool, agent: journal.agent) {
            [weak self] report in
            await self?.process(report, of: id)
        } ask: { [weak self] challenge in
            await self?.ask(challenge, of: id)
        }
        let journal = journal
        // A request that must not be repeated is sent only after the journal has recorded that it may have been.
        let mustBeRecorded = !transfer.order.isIdempotent
        let update = transfers[id]?.update ?? transfer.update
        if !mustBeRecorded { save(id) }
        activities[id] = .loading(
            Task { [weak self] in
                do throws(JournalFailure) {
                    if mustBeRecorded { try await journal.write([update], mayFail: false) }
                } catch { return await self?.left(id, transfer.claim) ?? () }
                let result = await attempt.run()
                await self?.ended(id, result)
            })
    }

    /// The journal has refused the start of an attempt or of a rename: another agent has claimed the transfer.
    private func left(_ id: String, _ claim: TransferClaim) {
        activities[id] = nil
        leave(claim)
    }

    private func session(of name: String) -> Session? {
        guard let owner = owners[name] else { return nil }
        if let session = owner.session { return session }
        let configuration = owner.settings.configuration(owner.secrets, temporaryDirectory: spool.folder)
        let session = Session(configuration)
        owners[name]?.session = session
        return session
    }

    private func process(_ report: AttemptReport, of id: String) {
        // The other agent may continue from the partial file.
        if case .leaving? = activities[id] { return }
        guard var transfer = transfers[id], !transfer.state.isOver else {
            // Cancelled meanwhile: nothing refers to the partial file of a last token. Where another agent may have
            // claimed the transfer, the file goes when the journal has taken the end.
            if case .token(let data) = report {
                if isShared {
                    transfers[id]?.progress.resumption = data
                } else {
                    BlockingThreads.files.run { (try? ResumeToken(data))?.discard() }
                }
            }
            return
        }
        var mustSave = false
        var response: [UInt8] = []
        switch report {
        case .responded(let received):
            transfer.progress.response = received
            response = TransferCoding.encode(received)
            caughtUp(id)
        case .token(let data):
            transfer.progress.resumption = data
            mustSave = true
        case .moved(let old, let new): return exchange(old, new, of: id)
        case .uploadToken(let text):
            transfer.progress.uploadToken = text
            mustSave = true
        case .received(let total, let expected):
            (transfer.progress.received, transfer.progress.expectedToReceive) = (total, expected)
            _ = transfer.state.receive(.progress)
        case .sent(let total, let expected):
            (transfer.progress.sent, transfer.progress.expectedToSend) = (total, expected)
            _ = transfer.state.receive(.progress)
        }
        transfers[id] = transfer
        if mustSave { record(id) }
        guard let channel = owners[transfer.identifier]?.client?.channel, !channel.isBusy || !response.isEmpty else {
            return
        }
        channel.send(.progress(transfer.progress.message(id, response)))
    }

    private func ended(_ id: String, _ result: AttemptResult) async {
        if case .loading(let task)? = activities[id] { activities[id] = .ending(task) }
        defer {
            // A file that is being renamed is the next activity.
            if activities[id]?.takesPlace == false { activities[id] = nil }
            schedule()
        }
        caughtUp(id)
        guard let transfer = transfers[id] else { return }
        // The program cancelled the transfer during the attempt.
        if case .finished(let outcome) = transfer.state.phase { return act(.announce(outcome), on: id) }
        switch result {
        case .file(let path, let size, let response): await complete(transfer, path, size, response)
        case .answer(let bytes, let response): await answered(transfer, bytes, response)
        case .parked(let question): park(id, question)
        case .refused(let error):
            var failure = TransferError(error)
            failure.url = failure.url ?? transfer.secrets.url
            finish(id, .failed(failure))
        case .anew:
            transfers[id]?.progress = TransferProgress()
            transfers[id]?.order.resumption = nil
            let tokens = [transfer.progress.resumption, transfer.order.resumption].compactMap(\.self)
            if let changed = transfers[id] {
                // The partial file that cannot be continued goes when the journal no longer refers to it. If another
                // agent has claimed the transfer, the file is that agent's.
                journal.write([changed.orderUpdate, changed.update], mayFail: false) { result in
                    guard case .success = result else { return }
                    BlockingThreads.files.run { for data in tokens { (try? ResumeToken(data))?.discard() } }
                }
            }
            input(.yield, to: id)
        case .delayed(let status, let seconds):
            // What one agent is told holds for all.
            if isShared { save([TransferRetryPlan.pause(of: transfer.host, retryAfter: seconds)]) }
            let plan = TransferRetryPlan.after(status: status, retryAfter: seconds, facts(transfer, mayRepeat: true))
            carryOut(plan ?? .finish(.unacceptableStatus, detail: "status \(status)"), id)
        case .failed(let error, let mayRepeat):
            // The attempt was stopped by a pause, by a more urgent transfer, or by the agent's end.
            if error.reason == .cancelled || error.reason == .sessionInvalidated {
                guard !mayRepeat else { return input(.yield, to: id) }
                // The next agent finds the transfer running, and reports the failure.
                if phase != .ending { finish(id, .failed(TransferError(Self.mayHaveBeenCarriedOut(transfer)))) }
                return
            }
            let plan = TransferRetryPlan.after(error, facts(transfer, mayRepeat: mayRepeat))
            if case .finish(let reason, let detail) = plan {
                let changed = LoadError(
                    reason, phase: error.phase, party: error.party, url: error.url, detail: detail,
                    kind: reason == error.reason ? error.kind : nil)
                return finish(id, .failed(TransferError(reason == error.reason && mayRepeat ? error : changed)))
            }
            carryOut(plan, id)
        }
    }

    private func facts(_ transfer: Transfer, mayRepeat: Bool) -> TransferRetryPlan.Facts {
        let timeout = transfer.order.overrides.resourceTimeout ?? owners[transfer.identifier]?.settings.resourceTimeout
        let now = SystemTime.wall
        return TransferRetryPlan.Facts(
            now: now, began: transfer.state.firstAttempt ?? now, resourceTimeout: timeout.map(\.wholeNanoseconds),
            failures: transfer.state.failures + 1, share: Double.random(in: 0.5...1), mayRepeat: mayRepeat)
    }

    private func carryOut(_ plan: TransferRetryPlan, _ id: String) {
        switch plan {
        case .wait(var wait):
            wait.makeRelative(wall: SystemTime.wall, boot: SystemTime.boot, SystemBoot.identity)
            log("transfer \(id) waits: \(wait.detail)")
            input(.wait(wait), to: id)
        case .finish(let reason, let detail):
            let url = transfers[id].flatMap { URL(string: $0.secrets.url) }
            finish(
                id,
                .failed(
                    TransferError(
                        LoadError(reason, phase: .waiting, party: .system, url: url, detail: detail))))
        }
    }

    // MARK: Ends

    private func complete(_ transfer: Transfer, _ path: String, _ size: Int64, _ response: TransferResponse) async {
        let outcome = TransferOutcome.file(path: transfer.order.destination ?? path, size: size, response: response)
        guard let destination = transfer.order.destination else { return finish(transfer.id, outcome) }
        let file = await BlockingThreads.files.call(.never) { FilePlace(itself: path) } ?? nil
        guard let file else {
            let error = LoadError(.cannotMoveFile, phase: .receiving, party: .system, detail: "\(path) is gone")
            return finish(transfer.id, .failed(TransferError(error)))
        }
        input(.place(.init(from: path, to: destination, file: file, outcome: outcome)), to: transfer.id)
    }

    /// Renames the file after the journal has recorded the intention.
    private func place(_ placing: TransferState.Placing, _ id: String) {
        guard let transfer = transfers[id] else { return }
        activities[id] = .placing(Task { [weak self] in await self?.carryOut(placing, transfer) })
    }

    private func carryOut(_ placing: TransferState.Placing, _ transfer: Transfer) async {
        do throws(JournalFailure) { try await journal.write([transfer.update], mayFail: false) } catch {
            return left(transfer.id, transfer.claim)
        }
        let spool = spool
        let checked = await BlockingThreads.files.call(.never) { () -> Result<Void, LoadError> in
            Result { () throws(LoadError) in try spool.checkDestination(transfer.order) }
        }
        if case .failure? = checked { return placed(transfer.id, placing, checked) }
        let result = await Self.persistently { () throws(IOFailure) in try spool.place(placing, transfer.order) }
        placed(
            transfer.id, placing,
            result?.mapError {
                LoadError(.cannotMoveFile, phase: .receiving, party: .system, detail: "\(placing.to): \($0.words)")
            })
    }

    private func placed(_ id: String, _ placing: TransferState.Placing, _ result: Result<Void, LoadError>?) {
        activities[id] = nil
        defer { schedule() }
        switch result {
        case .success?, nil: finish(id, placing.outcome)
        // The next agent finds the intention in the journal.
        case .failure? where phase == .ending: break
        case .failure(let error)?:
            let shown = transfers[id].flatMap { URL(string: $0.secrets.url) }
            finish(
                id,
                .failed(
                    TransferError(
                        LoadError(
                            error.reason, phase: error.phase, party: error.party, url: shown, detail: error.detail))))
        }
    }

    /// Repeats work on the disk that fails for a reason that may pass, for some minutes.
    private static func persistently<R: Sendable>(
        _ work: @escaping @Sendable () throws(IOFailure) -> R
    ) async -> Result<R, IOFailure>? {
        var tries = 0
        while true {
            let result = await BlockingThreads.files.call(.never) { () -> Result<R, IOFailure> in
                Result { () throws(IOFailure) in try work() }
            }
            guard case .failure(let failure)? = result, failure.mayPass, tries < 20, !Task.isCancelled else {
                return result
            }
            try? await Task.sleep(for: .seconds(min(1 << tries, 30)))
            tries += 1
        }
    }

    private func answered(_ transfer: Transfer, _ bytes: [UInt8], _ response: TransferResponse) async {
        let spool = spool
        let written = await Self.persistently { () throws(IOFailure) in try spool.write(bytes, for: transfer) }
        switch written {
        case .success(let path)?:
            finish(transfer.id, .answer(path: path, size: Int64(bytes.count), response: response))
        case .failure(let failure)?: finish(transfer.id, .failed(Self.bodyLost(response, failure.words)))
        case nil: finish(transfer.id, .failed(Self.bodyLost(response, "the agent was stopped")))
        }
    }

    /// The failure of an upload that was carried out: the body of its response is lost, its head is not.
    private static func bodyLost(_ response: TransferResponse, _ detail: String) -> TransferError {
        let status = response.status.map { " (status \($0))" } ?? ""
        let error = LoadError(
            .cannotWriteFile, phase: .receiving, party: .system, url: URL(string: response.url),
            detail: "the upload was answered\(status), but the body of the response cannot be written: \(detail)")
        return TransferError(error, response: response)
    }

    func finish(_ id: String, _ outcome: TransferOutcome) { input(.finish(outcome), to: id) }

    /// Records the event for the program, and sends it when it is on the disk.
    private func announce(_ id: String) {
        guard let transfer = transfers[id], !transfer.isAnnounced else { return }
        transfers[id]?.isAnnounced = true
        log("transfer \(id) is over: \(transfer.state.shown.outcome.map(Self.words) ?? "")")
        journal.write([transfer.update, .event(transfer.claim)], mayFail: false) { result in
            Task { await self.announced(transfer, result) }
        }
    }

    private static func words(_ outcome: TransferOutcome) -> String {
        switch outcome {
        case .file(_, let size, let response): "status \(response.status ?? 0), \(size) bytes"
        case .answer(_, let size, let response): "status \(response.status ?? 0), answered with \(size) bytes"
        case .failed(let error): error.reason
        }
    }

    /// The event of a transfer is on the disk: the transfer belongs to the journal now.
    private func announced(_ transfer: Transfer, _ result: Result<JournalReceipt, JournalFailure>) {
        guard case .success = result else { return leave(transfer.claim) }
        transfers[transfer.id] = nil
        if !isShared { owners[transfer.identifier]?.undelivered += 1 }
        sendEvents(transfer.identifier)
        schedule()
    }
}

extension TransferProgress {
    fileprivate func message(_ id: String, _ response: [UInt8]) -> AgentMessage.Progress {
        AgentMessage.Progress(
            transfer: id, received: received, expectedToReceive: expectedToReceive ?? -1, sent: sent,
            expectedToSend: expectedToSend ?? -1, response: response)
    }
}

extension Duration {
    /// The duration in nanoseconds, at most `Int64.max`.
    var wholeNanoseconds: Int64 {
        // Compared first, because `components` ends the process if the seconds exceed `Int64`.
        guard self < .seconds(Int64.max / 1_000_000_000) else { return .max }
        guard self > .seconds(Int64.min / 1_000_000_000) else { return .min }
        let (whole, overflows) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflows else { return .max }
        let (sum, over) = whole.addingReportingOverflow(components.attoseconds / 1_000_000_000)
        return over ? .max : sum
    }
}

// SPDX-License-Identifier: Apache-2.0

// The program's connection for one session identifier: keeps it open, and delivers the agent's events.

import FoundationEssentials
import Synchronization
package import URLLoadingIO
package import URLLoadingWire

/// An event that is not acknowledged yet.
package struct PendingEvent: Sendable {
    package let sequence: Int64
    package let record: TransferRecord
}

package actor BackgroundConnection {
    package typealias Handler = @Sendable (PendingEvent?) async throws -> Void
    package typealias ProgressHandler = @Sendable (AgentMessage.Progress) -> Void

    private let identifier: String
    private let settings: [UInt8]
    private let secrets: [UInt8]
    private let facts: LaunchPlan.Facts
    private let observes: Bool

    private var link: AgentLink?
    private var opening: Task<AgentLink, any Error>?
    /// Receives the agent's announcements while a connection is open.
    private var pump: Task<Void, Never>?
    private var isListening = false
    private var isClosed = false

    /// The events that were not taken yet, in order; `nil` marks the end of the missed ones.
    private var backlog: [PendingEvent?] = []
    /// The events that were received and not acknowledged: a restarted agent sends them again.
    private var taken: Set<Int64> = []
    /// The events that handlers and tasks work on. The connection stays open until they are acknowledged, so that the
    /// end of a session inside a handler does not repeat its event.
    private var held: Set<Int64> = []
    private var waiters: [String: CheckedContinuation<Result<PendingEvent, AgentFailure>, Never>] = [:]
    /// The transfers of this program's tasks, whose events no handler receives.
    private var ownTransfers: Set<String> = []
    /// The transfers of adopted tasks, whose events the handler passes on in order.
    private var adopted: Set<String> = []
    /// The events that the handler has passed on to tasks that did not wait yet.
    private var passedOn: [String: PendingEvent] = [:]
    /// The submissions that wait until the transfers of earlier programs are listed; `nil` if none has to.
    private var waitingSubmissions: [CheckedContinuation<Void, Never>]?
    private var progress: [String: ProgressHandler] = [:]
    private var handlerWaits: CheckedContinuation<Void, Never>?
    private var hasHandler = false

    package init(
        _ background: Configuration.Background, settings: SessionSettings, secrets: SessionSecrets,
        facts: LaunchPlan.Facts
    ) {
        identifier = background.identifier
        self.settings = background.keepsSettings ? [] : TransferCoding.encode(settings)
        self.secrets = background.keepsSettings ? [] : TransferCoding.encode(secrets)
        observes = background.observes
        waitingSubmissions = background.adopts ? [] : nil
        self.facts = facts
    }

    deinit {
        pump?.cancel()
        link?.close()
    }

    /// Closes the connection once the held events are acknowledged: waits for events fail, and transfers continue.
    package func close() {
        isClosed = true
        closeIfUnused()
        let failure = AgentFailure(.refused, "the session was invalidated")
        for (_, waiter) in waiters { waiter.resume(returning: .failure(failure)) }
        waiters = [:]
        releaseSubmissions()
        wakeHandler()
    }

    private func closeIfUnused() {
        guard isClosed, held.isEmpty else { return }
        pump?.cancel()
        link?.close()
        link = nil
    }

    /// Lets go of an event without an acknowledgement: its handler has failed.
    package func release(_ sequence: Int64) {
        held.remove(sequence)
        closeIfUnused()
    }

    // MARK: The connection

    /// Returns the attached connection; opens it on first use, and again after it was lost.
    private func attached() async throws(AgentFailure) -> AgentLink {
        guard !isClosed || !held.isEmpty else { throw AgentFailure(.refused, "the session was invalidated") }
        if let link { return link }
        let task = opening ?? Task { try await self.open() }
        opening = task
        do {
            let link = try await task.value
            return link
        } catch { throw error as? AgentFailure ?? .lost }
    }

    private func open() async throws(AgentFailure) -> AgentLink {
        defer { opening = nil }
        let link = try await AgentLauncher.open(facts)
        _ = try await link.request(
            .attach(.init(identifier: identifier, settings: settings, secrets: secrets, observes: observes)))
        if isListening { _ = try await link.request(.listen) }
        self.link = link
        pump?.cancel()
        pump = Task { [weak self] in
            for await message in link.announcements { await self?.process(message) }
            await self?.lost(link)
        }
        return link
    }

    private func lost(_ link: AgentLink) {
        guard self.link === link else { return }
        self.link = nil
        guard !isClosed || !held.isEmpty, isListening else { return }
        Task { [weak self] in await self?.reconnect() }
    }

    /// Reconnects to an agent that was stopped or killed, and queries the state of the awaited transfers.
    private func reconnect() async {
        var delay = Duration.milliseconds(20)
        while !isClosed, link == nil {
            do throws(AgentFailure) {
                _ = try await attached()
                return await checkWaiters()
            } catch {
                guard error.code == .unreachable else { return fail(error) }
                if delay >= .seconds(5) { return fail(error) }
            }
            try? await Task.sleep(for: delay)
            delay = delay * 2
        }
    }

    private func fail(_ failure: AgentFailure) {
        for (_, waiter) in waiters { waiter.resume(returning: .failure(failure)) }
        waiters = [:]
    }

    /// Fails the waits for transfers that the agent does not know, because a damaged journal was discarded.
    private func checkWaiters() async {
        guard !waiters.isEmpty, let known = try? await transfers() else { return }
        let ids = Set(known.map(\.id))
        for (id, waiter) in waiters where !ids.contains(id) {
            waiters[id] = nil
            waiter.resume(returning: .failure(.init(.unknownTransfer, "the agent knows no transfer \(id) any more")))
        }
    }

    /// Sends a request, and repeats it if the connection was lost before its answer, for about five seconds: a killed
    /// agent may be about to be started again. All requests may be repeated.
    package func request(_ message: AgentMessage, files: [PassedFile] = []) async throws(AgentFailure) -> AgentMessage {
        var delay = Duration.milliseconds(10)
        while true {
            var used: AgentLink?
            do throws(AgentFailure) {
                let link = try await attached()
                used = link
                return try await link.request(message, files: files)
            } catch {
                guard error.code == .unreachable, delay < .seconds(4), !isClosed || !held.isEmpty else { throw error }
                if let used, link === used { lost(used) }
            }
            try? await Task.sleep(for: delay)
            delay = delay * 2
        }
    }

    /// Subscribes to events, also after a reconnection.
    private func listen() async throws(AgentFailure) {
        guard !isListening else { return }
        isListening = true
        do throws(AgentFailure) { _ = try await request(.listen) } catch {
            isListening = false
            throw error
        }
    }

    // MARK: Requests of the program

    /// Submits a transfer; returns when the agent has stored it on disk.
    package func submit(
        _ id: String, _ order: TransferOrder, _ secrets: TransferSecrets, files: [PassedFile] = []
    ) async throws(AgentFailure) {
        await untilListed()
        _ = try await request(
            .submit(
                .init(transfer: id, order: TransferCoding.encode(order), secrets: TransferCoding.encode(secrets))),
            files: files)
    }

    /// Submits the transfer of a task, which then waits for its end with ``end(of:progress:)``.
    package func submitOwn(_ id: String, _ order: TransferOrder, _ secrets: TransferSecrets) async throws(AgentFailure)
    {
        // Before the submission: the event may precede the wait for it.
        ownTransfers.insert(id)
        do throws(AgentFailure) { try await submit(id, order, secrets) } catch {
            ownTransfers.remove(id)
            throw error
        }
    }

    /// Returns the transfers of earlier programs. Submissions of this program wait until then.
    package func earlierTransfers() async throws(AgentFailure) -> [TransferRecord] {
        defer { releaseSubmissions() }
        return try await transfers()
    }

    private func untilListed() async {
        guard waitingSubmissions != nil else { return }
        await withCheckedContinuation { waitingSubmissions?.append($0) }
    }

    private func releaseSubmissions() {
        let waiting = waitingSubmissions.take() ?? []
        for submission in waiting { submission.resume() }
    }

    /// Makes the handler receive the event of a transfer although a task waits for it: see ``pass(_:)``.
    package func adopt(_ id: String) { adopted.insert(id) }

    /// Passes an event from the handler to the adopted task of its transfer.
    package func pass(_ event: PendingEvent) {
        let id = event.record.id
        guard let waiter = waiters.removeValue(forKey: id) else { return passedOn[id] = event }
        waiter.resume(returning: .success(event))
    }

    /// Forgets an adopted task.
    package func abandon(_ id: String) {
        adopted.remove(id)
        passedOn[id] = nil
    }

    package func transfers() async throws(AgentFailure) -> [TransferRecord] {
        var records: [TransferRecord] = []
        var next: Int64? = 0
        while let after = next {
            guard case .page(let page) = try await request(.list(after: after)) else { return records }
            records += page.records.compactMap { TransferCoding.decode(TransferRecord.self, $0) }
            next = page.next
        }
        return records
    }

    /// Returns the identifiers of all programs that have transfers.
    package func identifiers() async throws(AgentFailure) -> [String] {
        guard case .report(let text) = try await request(.identifiers) else { return [] }
        return text.split(separator: "\n").map(String.init)
    }

    package func command(_ id: String, _ verb: String, _ argument: [UInt8] = []) async throws(AgentFailure) {
        _ = try await request(.command(.init(transfer: id, verb: verb, argument: argument)))
    }

    /// Returns the agent's welcome message, which describes the agent.
    package func welcome() async throws(AgentFailure) -> AgentMessage.Welcome { try await attached().welcome }

    package func acknowledge(_ sequence: Int64) async throws(AgentFailure) {
        defer { release(sequence) }
        _ = try await request(.acknowledge(sequence: sequence))
        taken.remove(sequence)
    }

    /// Waits for the end of a transfer; the caller acknowledges the event.
    /// - Parameter progress: receives the byte counts.
    package func end(of id: String, progress handler: ProgressHandler? = nil) async throws(AgentFailure) -> PendingEvent
    {
        progress[id] = handler
        defer {
            progress[id] = nil
            ownTransfers.remove(id)
        }
        try await listen()
        if let event = passedOn.removeValue(forKey: id) { return event }
        if !adopted.contains(id), let index = backlog.firstIndex(where: { $0?.record.id == id }),
            let event = backlog.remove(at: index)
        {
            held.insert(event.sequence)
            return event
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled {
                    continuation.resume(returning: Result<PendingEvent, AgentFailure>.failure(.cancelled))
                } else {
                    waiters[id] = continuation
                }
            }
        } onCancel: {
            Task { await self.cancelWait(id) }
        }
        return try result.get()
    }

    private func cancelWait(_ id: String) {
        waiters.removeValue(forKey: id)?.resume(returning: .failure(.cancelled))
    }

    /// Calls a closure for each event, one at a time, and acknowledges the event when the closure has returned. Returns
    /// when the calling task is cancelled or the session invalidated.
    /// - Parameter handle: receives `nil` when all missed events have been handled.
    /// - Throws: ``AgentFailure``; the error of the closure, whose event is then not acknowledged.
    package func handleEvents(_ handle: Handler) async throws {
        guard !hasHandler else { throw AgentFailure(.refused, "the events of this session are handled already") }
        hasHandler = true
        defer { hasHandler = false }
        try await listen()
        while !Task.isCancelled, !isClosed {
            guard let next = takeNext() else {
                await waitForEvents()
                continue
            }
            do { try await handle(next) } catch {
                // The event is not acknowledged: the next handler gets it again.
                backlog.insert(next, at: 0)
                if let next { release(next.sequence) }
                throw error
            }
            if let next { try await acknowledge(next.sequence) }
        }
    }

    private func takeNext() -> PendingEvent?? {
        guard let index = nextIndex else { return .none }
        let next = backlog.remove(at: index)
        if let next { held.insert(next.sequence) }
        return .some(next)
    }

    /// The next event for the handler: the tasks of this program receive theirs themselves.
    private var nextIndex: Int? {
        backlog.firstIndex { event in event.map { !ownTransfers.contains($0.record.id) } ?? true }
    }

    private func waitForEvents() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled || isClosed || nextIndex != nil {
                    continuation.resume()
                } else {
                    handlerWaits = continuation
                }
            }
        } onCancel: {
            Task { await self.wakeHandler() }
        }
    }

    private func wakeHandler() {
        handlerWaits?.resume()
        handlerWaits = nil
    }

    // MARK: Announcements of the agent

    private func process(_ message: AgentMessage) {
        switch message {
        case .progress(let counts): progress[counts.transfer]?(counts)
        case .finishedEvents:
            backlog.append(nil)
            wakeHandler()
        case .event(let event):
            guard let record = TransferCoding.decode(TransferRecord.self, event.record),
                taken.insert(event.sequence).inserted
            else { return }
            let pending = PendingEvent(sequence: event.sequence, record: record)
            if !adopted.contains(record.id), let waiter = waiters.removeValue(forKey: record.id) {
                held.insert(event.sequence)
                return waiter.resume(returning: .success(pending))
            }
            backlog.append(pending)
            wakeHandler()
        default: break
        }
    }
}

extension AgentFailure {
    static let cancelled = AgentFailure(.cancelled, "the waiting task was cancelled")
}

extension BackgroundConnection {
    /// Returns the connection for a background session, closed with the session; `nil` for other sessions.
    static func make(_ core: Core) -> BackgroundConnection? {
        guard let background = core.configuration.background else { return nil }
        var facts = AgentLauncher.facts()
        if let socket = background.socket { facts.environment["URLLOADING_AGENT_SOCKET"] = socket }
        let connection = BackgroundConnection(
            background, settings: SessionSettings(core.configuration),
            secrets: SessionSecrets(core.configuration), facts: facts)
        let registry = core.registry
        Task {
            await registry.emptied()
            await connection.close()
        }
        return connection
    }
}

// SPDX-License-Identifier: Apache-2.0

// The program's connection for one session identifier: keeps it open, and delivers the agent's events.

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
    package typealias ChallengeHandler = @Sendable (Challenge) async -> TransferAnswer

    private let identifier: String
    private let settings: [UInt8]
    private let secrets: [UInt8]
    private let facts: LaunchPlan.Facts
    private let observes: Bool

    private var connecting = Connecting.none
    private enum Connecting { case none, opening(Task<AgentLink, any Error>), open(AgentLink) }
    private var link: AgentLink? {
        if case .open(let link) = connecting { link } else { nil }
    }
    /// Receives the agent's announcements while a connection is open.
    private var pump: Task<Void, Never>?
    private var isListening = false
    private var isClosed = false

    /// The events that were not taken yet, in order; `nil` marks the end of the missed ones.
    private var backlog: [PendingEvent?] = []
    /// The events that were received and not acknowledged: a restarted agent sends them again.
    var taken: Set<Int64> = []
    /// The events that handlers and tasks work on. The connection stays open until they are acknowledged, so that the
    /// end of a session inside a handler does not repeat its event.
    private var held: Set<Int64> = []
    /// The transfers that tasks of this program wait for, or will.
    private var interests: [String: TransferInterest] = [:]
    /// The submissions that wait until the transfers of earlier programs are listed; `nil` if none has to.
    var waitingSubmissions: [CheckedContinuation<Void, Never>]?
    /// The bytes of the submissions that the agent has not answered, and the submissions that wait for fewer.
    var submittedBytes = 0
    var crowdedOut: [CheckedContinuation<Void, Never>] = []
    /// Answers the challenges of transfers without a task; `nil` if the session has no decision.
    private let decide: ChallengeHandler?
    /// Whether each transfer has, or will have, a task of this program (a session of the classic API).
    let adopts: Bool
    private var handler = EventHandler.none
    /// The handler of events, of which there is at most one.
    private enum EventHandler {
        case none, running
        case waiting(CheckedContinuation<Void, Never>)
        /// Reconnecting was given up: the handler throws the reason.
        case failed(AgentFailure)
    }

    package init(
        _ background: Configuration.Background, settings: SessionSettings, secrets: SessionSecrets,
        facts: LaunchPlan.Facts, decide: ChallengeHandler? = nil
    ) {
        identifier = background.identifier
        self.settings = background.keepsSettings ? [] : TransferCoding.encode(settings)
        self.secrets = background.keepsSettings ? [] : TransferCoding.encode(secrets)
        observes = background.observes
        adopts = background.adopts
        waitingSubmissions = background.adopts ? [] : nil
        (self.facts, self.decide) = (facts, decide)
    }

    deinit {
        pump?.cancel()
        if case .open(let link) = connecting { link.close() }
    }

    /// Closes the connection once the held events are acknowledged: waits for events fail, and transfers continue.
    package func close() {
        isClosed = true
        closeIfUnused()
        let failure = AgentFailure(.refused, "the session was invalidated")
        endWaits(failure)
        releaseSubmissions()
        wakeHandler()
    }

    private func closeIfUnused() {
        guard isClosed, held.isEmpty else { return }
        pump?.cancel()
        guard let link else { return }
        link.close()
        connecting = .none
    }

    /// Changes what this program wants of a transfer.
    func change<R>(_ id: String, _ body: (inout TransferInterest) -> R) -> R {
        var interest = interests[id] ?? TransferInterest()
        defer { interests[id] = interest.isEmpty ? nil : interest }
        return body(&interest)
    }

    private func endWaits(_ failure: AgentFailure) {
        for id in interests.keys {
            change(id) { $0.takeWaiter() }?.resume(returning: .failure(failure))
        }
    }

    /// Lets go of an event without an acknowledgement: its handler has failed.
    package func release(_ sequence: Int64) {
        held.remove(sequence)
        closeIfUnused()
    }

    // MARK: The connection

    /// Returns the attached connection; opens it on first use, and again after it was lost.
    func attached() async throws(AgentFailure) -> AgentLink {
        guard !isClosed || !held.isEmpty else { throw AgentFailure(.refused, "the session was invalidated") }
        let task: Task<AgentLink, any Error>
        switch connecting {
        case .open(let link): return link
        case .opening(let begun): task = begun
        case .none:
            task = Task { try await self.open() }
            connecting = .opening(task)
        }
        do { return try await task.value } catch { throw error as? AgentFailure ?? .lost }
    }

    private func open() async throws(AgentFailure) -> AgentLink {
        var opened = Connecting.none
        defer { connecting = opened }
        let link = try await AgentLauncher.open(facts)
        _ = try await link.request(
            .attach(
                .init(
                    identifier: identifier, settings: settings, secrets: secrets, observes: observes,
                    answers: !observes,
                    wasWoken: !observes && facts.environment[WakingOrder.variable] == identifier)))
        if isListening { _ = try await link.request(.listen) }
        guard !isClosed || !held.isEmpty else {
            link.close()
            throw AgentFailure(.refused, "the session was invalidated")
        }
        opened = .open(link)
        pump?.cancel()
        pump = Task { [weak self] in
            for await message in link.announcements { await self?.process(message) }
            await self?.lost(link)
        }
        return link
    }

    private func lost(_ link: AgentLink) {
        guard self.link === link else { return }
        connecting = .none
        // Otherwise the agent would refuse the next one beside it.
        link.close()
        for id in interests.keys { change(id) { $0.connectionWasLost() } }
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

    /// Ends all waits: the next one connects again.
    private func fail(_ failure: AgentFailure) {
        isListening = false
        endWaits(failure)
        wakeHandler()
        if case .running = handler { handler = .failed(failure) }
    }

    /// Fails the waits for transfers that the agent does not know, because a damaged journal was discarded.
    private func checkWaiters() async {
        guard interests.values.contains(where: \.isAwaited), let known = try? await transfers() else { return }
        let ids = Set(known.map(\.id))
        for id in interests.keys where !ids.contains(id) {
            change(id) { $0.takeWaiter() }?.resume(
                returning: .failure(.init(.unknownTransfer, "the agent knows no transfer \(id) any more")))
        }
    }

    /// Sends a request, again on the next connection if one was lost before its answer. All requests may be repeated.
    package func request(_ message: AgentMessage, files: [PassedFile] = []) async throws(AgentFailure) -> AgentMessage {
        try await connected { link throws(AgentFailure) in try await link.request(message, files: files) }
    }

    /// Uses the connection, and the next one if it was lost, for about five seconds: a killed agent may be about to be
    /// started again.
    func connected<Answer: Sendable>(
        _ use: @Sendable (AgentLink) async throws(AgentFailure) -> Answer
    ) async throws(AgentFailure) -> Answer {
        var delay = Duration.milliseconds(10)
        while true {
            var used: AgentLink?
            do throws(AgentFailure) {
                let link = try await attached()
                used = link
                return try await use(link)
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
        do throws(AgentFailure) {
            // A connection that is opened now listens from its beginning; a second request would repeat all events.
            if link == nil { _ = try await welcome() } else { _ = try await request(.listen) }
        } catch {
            // Others wait since the first of them has asked.
            fail(error)
            throw error
        }
    }

    // MARK: Ends of transfers

    /// Waits for the end of a transfer; the caller acknowledges the event.
    /// - Parameters:
    ///   - progress: receives the byte counts.
    ///   - decide: answers the challenges of the transfer.
    package func end(
        of id: String, progress handler: ProgressHandler? = nil, decide: ChallengeHandler? = nil
    ) async throws(AgentFailure) -> PendingEvent {
        let unanswered = change(id) { interest in
            interest.progress = handler
            return interest.answerChallenges(by: decide)
        }
        for challenge in unanswered { put(challenge) }
        defer { change(id) { $0.endWait() } }
        try await listen()
        if let event = change(id, { $0.takePassedOn() }) { return event }
        if interests[id]?.recipient != .adoptedTask, let index = backlog.firstIndex(where: { $0?.record.id == id }),
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
                    change(id) { $0.awaitEnd(continuation) }
                }
            }
        } onCancel: {
            Task { await self.cancelWait(id) }
        }
        return try result.get()
    }

    private func cancelWait(_ id: String) {
        change(id) { $0.takeWaiter() }?.resume(returning: .failure(.cancelled))
    }

    /// Calls a closure for each event, one at a time, and acknowledges the event when the closure has returned. Returns
    /// when the calling task is cancelled or the session invalidated.
    /// - Parameter handle: receives `nil` when all missed events have been handled.
    /// - Throws: ``AgentFailure``, also if the agent was lost and cannot be connected to again; the error of the
    ///   closure, whose event is then not acknowledged.
    package func handleEvents(_ handle: Handler) async throws {
        guard case .none = handler else {
            throw AgentFailure(.refused, "the events of this session are handled already")
        }
        handler = .running
        defer { handler = .none }
        try await listen()
        while !Task.isCancelled, !isClosed {
            guard let next = takeNext() else {
                if case .failed(let failure) = handler { throw failure }
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
        backlog.firstIndex { event in event.map { interests[$0.record.id]?.recipient != .task } ?? true }
    }

    private func waitForEvents() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard case .running = handler, !Task.isCancelled, !isClosed, nextIndex == nil else {
                    return continuation.resume()
                }
                handler = .waiting(continuation)
            }
        } onCancel: {
            Task { await self.wakeHandler() }
        }
    }

    private func wakeHandler() {
        guard case .waiting(let continuation) = handler else { return }
        handler = .running
        continuation.resume()
    }

    // MARK: Announcements of the agent

    private func process(_ message: AgentMessage) {
        switch message {
        case .progress(let counts): interests[counts.transfer]?.progress?(counts)
        case .challenge(let challenge): put(challenge)
        case .finishedEvents:
            backlog.append(nil)
            wakeHandler()
        case .event(let event):
            guard let record = TransferCoding.decode(TransferRecord.self, event.record),
                taken.insert(event.sequence).inserted
            else { return }
            let pending = PendingEvent(sequence: event.sequence, record: record)
            if interests[record.id]?.recipient != .adoptedTask, let waiter = change(record.id, { $0.takeWaiter() }) {
                held.insert(event.sequence)
                return waiter.resume(returning: .success(pending))
            }
            backlog.append(pending)
            wakeHandler()
        default: break
        }
    }

    /// Puts a challenge to the decision of its task, or of the session, and sends the answer.
    private func put(_ challenge: AgentMessage.Challenge) {
        let id = challenge.transfer
        // The task of the transfer has not begun to wait for its end.
        let interest = interests[id]
        guard interest?.challengeHandler != nil || !(interest?.recipient == .task || adopts) else {
            return change(id) { $0.keep(challenge) }
        }
        let (decide, link) = (interest?.challengeHandler ?? decide, link)
        Task {
            var answer = TransferAnswer.undecided
            if let decide, let asked = TransferCoding.decode(TransferChallenge.self, challenge.record)?.challenge {
                answer = await decide(asked)
            }
            let argument = TransferCoding.encode(NumberedAnswer(challenge.number, answer))
            // An agent that was restarted asks again, so the answer is not repeated on another connection.
            _ = try? await link?.request(.command(.init(transfer: id, verb: "answer", argument: argument)))
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
            secrets: SessionSecrets(core.configuration), facts: facts, decide: core.decideChallenges)
        let registry = core.registry
        Task {
            await registry.emptied()
            await connection.close()
        }
        return connection
    }
}

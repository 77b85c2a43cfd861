// SPDX-License-Identifier: Apache-2.0

// The background form of a task: the agent's transfer in place of a load of this process.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// The transfer of the background agent that carries out one task of this process.
///
/// The control of the program (suspended, cancelled, priority) is sent to the agent by one task at a time, so that the
/// last change prevails.
final class BackgroundWork: Sendable {
    private struct Control: Sendable, Equatable {
        var isPaused = false
        var isCancelled = false
        var priority: UInt8
    }
    /// The caller's closure that must return before the event is acknowledged.
    private enum Closure: Sendable { case none, running, returned, failed }
    private struct State: Sendable {
        /// `nil` until the agent has stored the transfer, or the task has failed.
        var acceptance: Result<Void, LoadError>?
        var waiting: [PollSlot] = []
        var desiredControl: Control
        var sentControl: Control
        var isSendingControl = false
        /// Bytes of the response's body that were reported.
        var received: Int64 = 0
        var sent: Int64 = 0
        var hasResponse = false
        var closure = Closure.none
        var event: PendingEvent?
        /// Waits until the closure has returned.
        var delivery: CheckedContinuation<Void, Never>?
        /// The order to submit; `nil` for a transfer that the agent has already.
        var order: TransferOrder?
        var hasFailed = false
        var leavesEvent = false
    }

    /// The transfer's identifier, never used again.
    let id: String
    let connection: BackgroundConnection
    private let state: Lock<State>
    /// Raised once the agent has the transfer, or never will.
    private let settled = ThreadSignal()

    init(_ connection: BackgroundConnection, _ order: TransferOrder) {
        id = TransferOrder.newIdentifier()
        self.connection = connection
        let control = Control(priority: order.priority)
        state = Lock(State(desiredControl: control, sentControl: control, order: order))
    }

    /// Creates the work of a transfer that the agent has already.
    init(_ connection: BackgroundConnection, adopting record: TransferRecord) {
        id = record.id
        self.connection = connection
        let control = Control(isPaused: record.state == .paused, priority: TransferOrder.usualPriority)
        state = Lock(State(acceptance: .success(()), desiredControl: control, sentControl: control, closure: .running))
        settled.raise()
    }

    /// Changes the order before its submission, and returns it; `nil` for a transfer that the agent has already.
    func change(_ change: (inout TransferOrder) -> Void) -> TransferOrder? {
        state.withLock { state in
            guard var order = state.order else { return nil }
            change(&order)
            state.order = order
            return order
        }
    }

    /// Whether the wait for the event has failed: the event, if it still comes, is for another task.
    var hasFailed: Bool { state.withLock { $0.hasFailed } }

    /// Whether the event is not acknowledged, because its file could not be taken over: it comes again.
    var leavesEvent: Bool { state.withLock { $0.leavesEvent } }
    func leaveEvent() { state.withLock { ($0.leavesEvent, $0.hasFailed) = (true, true) } }

    // MARK: Submission

    /// Submits the transfer and waits for its end; the caller acknowledges the event.
    func run(_ driver: TaskDriver) async throws(LoadError) -> PendingEvent {
        do throws(LoadError) {
            if let order = state.withLock({ $0.order }) { try await submit(order, driver) }
            let decide: BackgroundConnection.ChallengeHandler = { [weak driver] challenge in
                await driver?.answer(challenge) ?? .undecided
            }
            sendChanges()
            do throws(AgentFailure) {
                let process: BackgroundConnection.ProgressHandler = { [weak driver, weak self] counts in
                    if let driver { self?.process(counts, driver) }
                }
                return try await connection.end(of: id, progress: process, decide: decide)
            } catch { throw LoadError(error) }
        } catch {
            state.withLock { $0.hasFailed = true }
            throw error
        }
    }

    private func submit(_ order: TransferOrder, _ driver: TaskDriver) async throws(LoadError) {
        let exit = ObjectIdentifier(self)
        StateExit.add(exit) { [settled] in BackgroundExit.wait(for: settled) }
        defer { StateExit.remove(exit) }
        var order = order
        order.challenges = driver.challengeAuthority
        let secrets: TransferSecrets
        (order, secrets) = try await order.prepared(driver.original, driver.core, driver.context.handle)
        guard driver.stopReason == nil else { throw LoadError(.cancelled, phase: .preparing, party: .local) }
        do throws(AgentFailure) { try await connection.submitOwn(id, order, secrets) } catch { throw LoadError(error) }
        settle(.success(()))
    }

    /// Notes that the agent has the transfer, or that the task has failed.
    func settle(_ result: Result<Void, LoadError>) {
        let waiting = state.withLock { state in
            if state.acceptance == nil { state.acceptance = result }
            defer { state.waiting = [] }
            return state.waiting
        }
        settled.raise()
        for slot in waiting { slot.wake() }
    }

    /// Waits until the agent has the transfer on its disk.
    func accepted() async throws(LoadError) {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        let result: Result<Void, LoadError> = await withTaskCancellationHandler {
            while true {
                let known = state.withLock { state in
                    state.waiting.removeAll { $0 === slot }
                    if state.acceptance == nil, !Task.isCancelled { state.waiting.append(slot) }
                    return state.acceptance
                }
                if let known { return known }
                guard !Task.isCancelled else { return .failure(.init(.cancelled, phase: .preparing, party: .local)) }
                await Poller.shared.park(slot, until: .never)
            }
        } onCancel: {
            slot.wake()
        }
        try result.get()
    }

    // MARK: Control

    func setPaused(_ isPaused: Bool) { setControl { $0.isPaused = isPaused } }
    func cancel() { setControl { $0.isCancelled = true } }
    func prioritize(_ priority: TaskPriority) { setControl { $0.priority = priority.rawValue } }

    private func setControl(_ change: (inout Control) -> Void) {
        state.withLock { change(&$0.desiredControl) }
        sendChanges()
    }

    /// Sends the agent the changes of the control that it has not received yet, once it has the transfer.
    private func sendChanges() {
        let begins = state.withLock { state in
            guard case .success? = state.acceptance, !state.isSendingControl, state.desiredControl != state.sentControl
            else { return false }
            state.isSendingControl = true
            return true
        }
        if begins { Task { await sendAllChanges() } }
    }

    private func sendAllChanges() async {
        while let (desired, sent) = nextChange() {
            do throws(AgentFailure) {
                if desired.isCancelled, !sent.isCancelled {
                    try await connection.command(id, "cancel")
                } else {
                    if desired.priority != sent.priority {
                        try await connection.command(id, "prioritize", [desired.priority])
                    }
                    if desired.isPaused != sent.isPaused {
                        try await connection.command(id, desired.isPaused ? "pause" : "resume")
                    }
                }
            } catch { /* The transfer is over, or the wait for its end fails as well. */  }
        }
    }

    private func nextChange() -> (desired: Control, sent: Control)? {
        state.withLock { state in
            guard state.desiredControl != state.sentControl else {
                state.isSendingControl = false
                return nil
            }
            defer { state.sentControl = state.desiredControl }
            return (state.desiredControl, state.sentControl)
        }
    }

    // MARK: Progress

    private func process(_ counts: AgentMessage.Progress, _ driver: TaskDriver) {
        if let response = TransferCoding.decode(TransferResponse.self, counts.response)?.response {
            note(response, driver)
        }
        let (sent, received) = state.withLock { state in
            let sent = max(0, counts.sent - state.sent)
            let received = state.hasResponse ? max(0, counts.received - state.received) : 0
            state.sent += sent
            state.received += received
            return (sent, received)
        }
        if sent > 0 {
            let expected = counts.expectedToSend >= 0 ? counts.expectedToSend : nil
            driver.context.sent(TransferProgress(count: Int(sent), total: counts.sent, expected: expected))
        }
        if received > 0 { driver.context.received(Int(received)) }
    }

    /// Reports the first response; later ones belong to further attempts.
    func note(_ response: Response, _ driver: TaskDriver) {
        let isFirst = state.withLock { state in
            defer { state.hasResponse = true }
            return !state.hasResponse
        }
        guard isFirst else { return }
        driver.context.emit(.responded(response))
        driver.state.withLock { $0.respond(response) }.wake()
    }

    /// Reports the rest of a body of this size.
    func noteEnd(_ size: Int64, _ driver: TaskDriver) {
        let rest = state.withLock { size - $0.received }
        if rest > 0 { driver.context.received(Int(rest)) }
    }

    func acknowledge(_ event: PendingEvent) async {
        // The handler that has passed the event on acknowledges it.
        guard state.withLock({ $0.order != nil }) else { return }
        let closure = state.withLock { state in
            if state.closure == .running { state.event = event }
            return state.closure != .running && state.leavesEvent ? .failed : state.closure
        }
        switch closure {
        case .running: break
        case .failed: await connection.release(event.sequence)
        // Without an answer the agent delivers the event again, to the next program.
        case .none, .returned: try? await connection.acknowledge(event.sequence)
        }
    }

    /// Delays the acknowledgement until ``closureReturned(isDone:)``.
    func waitForClosure() { state.withLock { $0.closure = .running } }

    /// - Parameter isDone: false if the closure threw: the event then comes again.
    func closureReturned(isDone: Bool) async {
        let (event, delivery, acknowledges) = state.withLock { state in
            let acknowledges = isDone && !state.leavesEvent
            state.closure = acknowledges ? .returned : .failed
            return (state.event, state.delivery.take(), acknowledges)
        }
        delivery?.resume()
        guard let event else { return }
        if acknowledges {
            try? await connection.acknowledge(event.sequence)
        } else {
            await connection.release(event.sequence)
        }
    }

    /// Waits until the closure has returned.
    func delivered() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard state.closure == .running else { return true }
                state.delivery = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}

/// Lets a program that ends normally submit its last transfers, for two seconds at most.
enum BackgroundExit {
    private static let deadline = Lock<Int64?>(nil)

    static func wait(for signal: ThreadSignal) {
        let end = deadline.withLock { deadline in
            let end = deadline ?? Poller.now() + 2_000_000_000
            deadline = end
            return end
        }
        let left = end - Poller.now()
        if left > 0 { _ = signal.wait(nanoseconds: left) }
    }
}

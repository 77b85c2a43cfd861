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
    private struct State: Sendable {
        var acceptance = Acceptance.awaited(by: [])
        var control: ControlState
        var reported = Reported()
        var closure = Closure.none
        /// The order to submit; `nil` for a transfer that the agent has already.
        var order: TransferOrder?
        var wait = Wait.runs
    }
    private enum Acceptance: Sendable {
        case awaited(by: [PollSlot])
        /// The agent has stored the transfer, or the task has failed.
        case known(Result<Void, LoadError>)
    }
    /// What was reported of the transfer: bytes of the bodies, and the response.
    private struct Reported: Sendable {
        var received: Int64 = 0
        var sent: Int64 = 0
        var hasResponse = false
    }
    /// The caller's closure that must return before the event is acknowledged.
    private enum Closure: Sendable {
        case none, returned, failed
        /// - event: the event that came meanwhile.
        /// - delivery: waits until the closure has returned.
        case running(event: PendingEvent?, delivery: CheckedContinuation<Void, Never>?)
    }
    /// The wait for the event.
    private enum Wait: Sendable {
        case runs
        /// The event, if it still comes, is for another task.
        case failed
        /// The event is not acknowledged, because its file could not be taken over: it comes again.
        case leavesEvent
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
        state = Lock(State(control: ControlState(TransferControl(priority: order.priority)), order: order))
    }

    /// Creates the work of a transfer that the agent has already.
    init(_ connection: BackgroundConnection, adopting record: TransferRecord) {
        id = record.id
        self.connection = connection
        let control = TransferControl(isPaused: record.state == .paused, priority: TransferOrder.usualPriority)
        state = Lock(
            State(
                acceptance: .known(.success(())), control: ControlState(control),
                closure: .running(event: nil, delivery: nil)))
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
    var hasFailed: Bool { state.withLock { $0.wait != .runs } }

    /// Whether the event is not acknowledged, because its file could not be taken over: it comes again.
    var leavesEvent: Bool { state.withLock { $0.wait == .leavesEvent } }
    func leaveEvent() { state.withLock { $0.wait = .leavesEvent } }

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
            state.withLock { if $0.wait == .runs { $0.wait = .failed } }
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
        let waiting: [PollSlot] = state.withLock { state in
            guard case .awaited(let waiting) = state.acceptance else { return [] }
            state.acceptance = .known(result)
            return waiting
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
                let known: Result<Void, LoadError>? = state.withLock { state in
                    switch state.acceptance {
                    case .known(let result): return result
                    case .awaited(var waiting):
                        waiting.removeAll { $0 === slot }
                        if !Task.isCancelled { waiting.append(slot) }
                        state.acceptance = .awaited(by: waiting)
                        return nil
                    }
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

    private func setControl(_ change: (inout TransferControl) -> Void) {
        state.withLock { change(&$0.control.desired) }
        sendChanges()
    }

    /// Sends the agent the changes of the control that it has not received yet, once it has the transfer.
    private func sendChanges() {
        let begins = state.withLock { state in
            guard case .known(.success) = state.acceptance else { return false }
            return state.control.begin()
        }
        if begins { Task { await sendAllChanges() } }
    }

    private func sendAllChanges() async {
        while let (desired, sent) = state.withLock({ $0.control.next() }) {
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

    // MARK: Progress

    private func process(_ counts: AgentMessage.Progress, _ driver: TaskDriver) {
        if let response = TransferCoding.decode(TransferResponse.self, counts.response)?.response {
            note(response, driver)
        }
        let (sent, received) = state.withLock { state in
            let sent = max(0, counts.sent - state.reported.sent)
            let received = state.reported.hasResponse ? max(0, counts.received - state.reported.received) : 0
            state.reported.sent += sent
            state.reported.received += received
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
            defer { state.reported.hasResponse = true }
            return !state.reported.hasResponse
        }
        guard isFirst else { return }
        driver.context.emit(.responded(response))
        driver.state.withLock { $0.respond(response) }.wake()
    }

    /// Reports the rest of a body of this size.
    func noteEnd(_ size: Int64, _ driver: TaskDriver) {
        let rest = state.withLock { size - $0.reported.received }
        if rest > 0 { driver.context.received(Int(rest)) }
    }

    func acknowledge(_ event: PendingEvent) async {
        // The handler that has passed the event on acknowledges it.
        guard state.withLock({ $0.order != nil }) else { return }
        let acknowledges: Bool? = state.withLock { state in
            switch state.closure {
            case .running(_, let delivery):
                state.closure = .running(event: event, delivery: delivery)
                return nil
            case .failed: return false
            case .none, .returned: return state.wait != .leavesEvent
            }
        }
        if let acknowledges { await end(event, acknowledges: acknowledges) }
    }

    private func end(_ event: PendingEvent, acknowledges: Bool) async {
        guard acknowledges else { return await connection.release(event.sequence) }
        // Without an answer the agent delivers the event again, to the next program.
        try? await connection.acknowledge(event.sequence)
    }

    /// Delays the acknowledgement until ``closureReturned(isDone:)``.
    func waitForClosure() {
        state.withLock { state in
            guard case .running = state.closure else { return state.closure = .running(event: nil, delivery: nil) }
        }
    }

    /// - Parameter isDone: false if the closure threw: the event then comes again.
    func closureReturned(isDone: Bool) async {
        let (closure, acknowledges) = state.withLock { state in
            let acknowledges = isDone && state.wait != .leavesEvent
            defer { state.closure = acknowledges ? .returned : .failed }
            return (state.closure, acknowledges)
        }
        guard case .running(let event, let delivery) = closure else { return }
        delivery?.resume()
        if let event { await end(event, acknowledges: acknowledges) }
    }

    /// Waits until the closure has returned.
    func delivered() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard case .running(let event, _) = state.closure else { return true }
                state.closure = .running(event: event, delivery: continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}

/// What a program wants of its transfer.
struct TransferControl: Sendable, Equatable {
    var isPaused = false
    var isCancelled = false
    var priority: UInt8
}

/// The changes of the control on their way to the agent: one task at a time sends them, so that the last one prevails.
struct ControlState: Sendable {
    var desired: TransferControl
    private var sent: TransferControl
    private var isSending = false

    init(_ control: TransferControl) { (desired, sent) = (control, control) }

    /// Returns whether the caller must send the changes.
    mutating func begin() -> Bool {
        guard !isSending, desired != sent else { return false }
        isSending = true
        return true
    }

    /// The next change for the task that sends; nil ends its turn.
    mutating func next() -> (desired: TransferControl, sent: TransferControl)? {
        guard desired != sent else {
            isSending = false
            return nil
        }
        defer { sent = desired }
        return (desired, sent)
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

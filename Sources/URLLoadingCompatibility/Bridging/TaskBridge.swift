// SPDX-License-Identifier: Apache-2.0

// In this folder: from the core's load to the calls of a classic task (16 files: one class in parts)

// Connects a load and its `URLSessionTask`. Events arrive on the thread that drives the load and go into the mailbox;
// calls go out on the lane. No lock is held during a call of the program, and no thread is blocked.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

final class TaskBridge: Sendable {
    enum Kind: Sendable { case data, download, socket, stream }

    /// The receiver of the result of a task without delegate calls.
    enum Handler: Sendable {
        case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
        /// The library's own closure, which resumes the caller that awaits the result; called on any thread.
        case awaited(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
        case file(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
        /// The reader of the body, piece by piece.
        case bytes(BytePipe)
    }

    /// What a task is created with.
    struct Setup {
        let request: URLRequest
        let kind: Kind
        var handler: Handler?
        /// The task continues the load of another task, which is allowed even after the session was invalidated. It is
        /// announced by the other task's last call.
        var isSuccessor = false
        /// The identifier that the task had in an earlier program.
        var identifier: Int?
    }

    let identifier: Int
    let original: URLRequest
    let lane: DelegateLane
    let hasHandler: Bool
    /// Whether the result goes to a caller that awaits it.
    private let isAwaited: Bool
    let pipe: BytePipe?
    let kind: Kind
    /// The maximum number of bytes collected for a completion handler.
    let limit: Int
    /// Whether the background agent carries out the task.
    let isInBackground: Bool
    let state: Lock<State>

    /// Whether the program has requested the task's progress.
    let hasProgress = Atomic<Bool>(false)

    init(_ setup: Setup, identifier: Int, _ session: URLSession) {
        let (request, handler) = (setup.request, setup.handler)
        kind = setup.kind
        self.identifier = identifier
        original = request
        lane =
            session.lane.isSerial
            ? session.lane : DelegateLane(session.lane.queue, isOfProgram: session.lane.isOfProgram)
        limit = session.core.collectedBodySize
        isInBackground = session.values.isBackground
        hasHandler = handler != nil
        if case .awaited? = handler { isAwaited = true } else { isAwaited = false }
        if case .bytes(let pipe)? = handler { self.pipe = pipe } else { pipe = nil }
        let receiver: Mailbox.Receiver = hasHandler ? .handler : kind == .download ? .downloadDelegate : .delegate
        let details = Active(handler: handler, stream: request.httpBodyStream)
        state = Lock(State(Mailbox(receiver), request, session, details))
    }

    // MARK: The controls

    func begin(_ load: Result<BridgedLoad, LoadError>) {
        let (stopped, error) = state.withLock { state -> (BridgedLoad?, LoadError?) in
            guard !state.mailbox.isOver else { return (nil, nil) }
            let work = Work(load)
            state.work = work
            // The session was invalidated while the task was being created.
            return state.isCanceled ? (work.load, work.error) : (nil, nil)
        }
        stopped?.cancel()
        if let error { finish(error) }
    }

    /// Begins the load, or resumes it.
    func begin(_ priority: Float) {
        let (isFirst, load) = state.withLock { state in
            if case .begun = state.beginning { return (false, state.load) }
            state.beginning = .begun
            return (true, state.load)
        }
        if isFirst, hasChangedTrustDelegate { load?.decide(by: decisions) }
        if isFirst, isInBackground, let task = state.withLock({ $0.task }) { load?.setBackground(task.transferOptions) }
        if isFirst, case .stream(let stream)? = load { watchRoutes(of: stream) }
        if let error = apply(load, isSuspended: false, priority) { finish(error) }
    }

    /// Applies the latest of several concurrent suspend and resume calls to the load.
    /// - Returns: the reason why the load cannot begin.
    @discardableResult
    private func apply(_ load: BridgedLoad?, isSuspended: Bool, _ priority: Float = URLSessionTask.defaultPriority)
        -> LoadError?
    {
        var (load, isSuspended, error) = (load, isSuspended, nil as LoadError?)
        while true {
            if isSuspended { load?.suspend() } else { resume(load, TaskPriority(priority)) }
            let last = isSuspended
            (load, isSuspended, error) = state.withLock { ($0.load, $0.isSuspended, $0.work.error) }
            if last == isSuspended { return error }
        }
    }

    /// Resumes a load with its task in `current`, where decisions of the session find it. A load that reports each
    /// question to its sink (`asking`) need not carry it.
    private func resume(_ load: BridgedLoad?, _ priority: TaskPriority?) {
        guard kind == .socket || kind == .stream else {
            load?.resume(priority)
            return
        }
        Self.$current.withValue(self) { load?.resume(priority) }
    }

    func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer {
        try await Self.$current.withValue(self) { try await decision() }
    }

    func prioritize(_ priority: Float) { state.withLock { $0.load }?.prioritize(TaskPriority(priority) ?? .medium) }

    func suspend() {
        let (hasBegun, load, isSuspended) = state.withLock { state in
            state.isSuspended = state.task?.isSuspended ?? true
            if case .begun = state.beginning { return (true, state.load, state.isSuspended) }
            return (false, state.load, state.isSuspended)
        }
        if hasBegun { apply(load, isSuspended: isSuspended) }
    }

    func cancel() { cancel(cancellation) }

    /// The error of a task that the program cancels, with the phase that the task has seen its load reach.
    var cancellation: LoadError {
        let phase: LoadError.Phase = state.withLock { state in
            if state.response != nil { return .receiving }
            if case .begun = state.beginning { return .waiting }
            return .preparing
        }
        return LoadError(.cancelled, phase: phase, party: .local, url: original.url)
    }

    /// Cancels the task: drops the calls that are due, except those that report the end.
    func cancel(_ error: LoadError) {
        let (released, load, isImpossible, hasEnded) = state.withLock { state in
            state.isCanceled = true
            return (
                state.mailbox.fail(error), state.load, state.work.error != nil, state.mailbox.hasEnded
            )
        }
        released.settle()
        stopWaiting()
        load?.cancel()
        if isImpossible { finish(error) }
        // The load had already ended and was waiting for an answer.
        if hasEnded { schedule() }
    }

    func finish(_ error: LoadError?) {
        state.withLock { state in
            // A task whose load cannot be created has metrics as well: without a transaction.
            if state.work.error != nil, !state.mailbox.hasEnded { state.mailbox.put(LoadMetrics(unsentAt: Date())) }
            state.mailbox.finish(error)
        }
        schedule()
    }

    func schedule() {
        guard state.withLock({ $0.mailbox.schedule() }) else { return }
        // Without a delegate the only call is the last one.
        if isAwaited, isWithoutDelegate { makeCalls() } else { lane.append(.caller(self)) }
    }
}

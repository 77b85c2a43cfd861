// SPDX-License-Identifier: Apache-2.0

// The caller's own code inside a load: a decision, the sequence of a body, a handler. It may ignore its cancellation,
// or never return. So it runs in a task of its own, and the load waits for the first of its answer, a deadline, and the
// load's end. Code that is too late is cancelled, counted while it runs on, and never waited for; its answer is
// dropped.
//
// A task group would wait for its children: 3.0 s instead of 0.1 where a closure ignored cancellation.

import URLLoadingIO

enum CallbackOutcome<Answer: Sendable>: Sendable {
    case answered(Answer)
    /// The deadline has passed.
    case late
    /// The load was stopped; see its `stopReason`.
    case stopped
}

extension CallbackOutcome {
    /// - Parameters:
    ///   - limit: how long to wait; nil for as long as the load lives.
    ///   - attempt: the attempt whose limit ends the wait as well.
    ///   - onLoop: true if `work` is code of this package that does not block. It then runs on the event loop, even
    ///     while the program blocks all threads of the pool.
    ///   - work: inherits priority and task-local values.
    static func run(
        _ handle: LoadHandle, timeout limit: Duration? = nil, within attempt: TimedAttempt? = nil,
        onLoop: Bool = false, _ work: @escaping @Sendable () async -> Answer
    ) async -> CallbackOutcome {
        let slot = Poller.shared.borrowSlot()
        handle.attach(slot)
        defer {
            handle.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        let deadline = limit.map { handle.clock.now() &+ LoadHandle.nanoseconds($0) } ?? .max
        handle.clock.schedule(slot, at: deadline)
        let race = Race<Answer>(handle.leaked)
        let task = Task(executorPreference: onLoop ? Poller.shared : nil) {
            // The slot may have another user by now, which checks its own condition and waits again.
            if race.finish(await work()) { slot.wake() }
        }
        while true {
            // An answer counts although this task runs only after the deadline: a busy machine is no late answer.
            if handle.stopReason == nil, let answer = race.takeAnswer() { return .answered(answer) }
            let isLate = attempt?.isOver == true || deadline != .max && handle.clock.now() >= deadline
            if handle.stopReason != nil || isLate {
                if race.abandon() { task.cancel() }
                return handle.stopReason == nil ? .late : .stopped
            }
            await Poller.shared.park(slot, until: handle)
        }
    }
}

extension LoadHandle {
    /// Calls a decision, and waits for its answer, its deadline, or the end of the load. The connect timeout is
    /// suspended meanwhile.
    /// - Parameter decisionCaller: calls the decision; nil to call it directly.
    @inline(never)
    func ask<Question: Sendable, Answer: Sendable>(
        _ decision: Decision<Question, Answer>, _ question: Question, by decisionCaller: (any DecisionCaller)?
    ) async throws(LoadError) -> Answer {
        let attempt = attempt
        attempt?.hold()
        defer { attempt?.release() }
        #if DEBUG
        let watch = decision.deadline == nil && !decision.isOnLoop ? UnansweredNote.schedule(Question.self) : nil
        defer { watch?.answered() }
        #endif
        let ending = await CallbackOutcome.run(self, timeout: decision.deadline, onLoop: decision.isOnLoop) {
            () -> Result<Answer, any Error> in
            do {
                guard let decisionCaller else { return .success(try await decision.decide(question)) }
                return .success(try await decisionCaller.asking { try await decision.decide(question) })
            } catch { return .failure(error) }
        }
        switch ending {
        case .answered(.success(let answer)): return answer
        case .answered(.failure(let error)):
            throw LoadError(.decisionFailed, phase: .deciding, party: .local, underlying: error)
        case .late:
            if let fallback = decision.fallback { return fallback }
            throw LoadError(
                .decisionTimeout, phase: .deciding, party: .local,
                detail: decision.deadline.map { "no answer within \($0)" })
        case .stopped: throw LoadError(stopReason ?? .cancelled, phase: .deciding)
        }
    }
}

// The caller's own code inside a load: a decision, the sequence of a body, a handler. It knows nothing
// of our slots and may ignore its cancellation, or never return. So it runs as a task of its own, and
// the load waits for whatever comes first: its answer, a deadline, or the load's end. Code that lost is
// cancelled, counted while it goes on, and never waited for; what it answers then reaches nobody.
//
// A task group would wait for its children: 3.0 s instead of 0.1 where a closure ignored cancellation.

import Synchronization
import URLLoadingIO

enum Interruption<Answer: Sendable>: Sendable {
    case answered(Answer)
    /// The deadline has passed.
    case late
    /// The load was stopped; see its `stopReason`.
    case stopped
}

extension Interruption {
    /// - Parameters:
    ///   - within: how long to wait; `nil` for as long as the load lives.
    ///   - work: inherits priority and task-local values.
    static func run(
        _ load: LoadControl, within limit: Duration? = nil, _ work: @escaping @Sendable () async -> Answer
    ) async -> Interruption {
        let slot = Poller.shared.borrowSlot()
        load.attach(slot)
        defer {
            load.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        let deadline = limit.map { load.clock.now() &+ LoadControl.nanoseconds($0) } ?? .max
        load.clock.schedule(slot, at: deadline)
        let race = Race<Answer>(load.abandoned)
        let task = Task {
            // The slot may be somebody else's by now: he looks, and waits on.
            if race.finish(await work()) { slot.wake() }
        }
        while true {
            let isLate = deadline != .max && load.clock.now() >= deadline
            if load.stopReason == nil, !isLate {
                if let answer = race.takeAnswer() { return .answered(answer) }
            } else {
                if race.abandon() { task.cancel() }
                return load.stopReason == nil ? .late : .stopped
            }
            await Poller.shared.park(slot, until: load)
        }
    }
}

/// How many closures go on although nobody waits for them any more.
final class AbandonedCount: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add(_ difference: Int) { count.add(difference, ordering: .relaxed) }
}

final class Race<Answer: Sendable>: Sendable {
    private enum State: Sendable {
        case running, finished(Answer), abandoned, over
    }
    private let state = Lock(State.running)
    private let abandoned: AbandonedCount

    init(_ abandoned: AbandonedCount) { self.abandoned = abandoned }

    /// Returns false if nobody waits for the answer.
    func finish(_ answer: Answer) -> Bool {
        let isAwaited = state.withLock { state in
            guard case .running = state else { return false }
            state = .finished(answer)
            return true
        }
        if !isAwaited { abandoned.add(-1) }
        return isAwaited
    }

    func takeAnswer() -> Answer? {
        state.withLock { state in
            guard case .finished(let answer) = state else { return nil }
            state = .over
            return answer
        }
    }

    /// Returns whether it still runs.
    func abandon() -> Bool {
        let isRunning = state.withLock { state in
            guard case .running = state else { return false }
            state = .abandoned
            return true
        }
        if isRunning { abandoned.add(1) }
        return isRunning
    }
}

// A closure of the caller's against the end of its load: the first of the two wins.

import Synchronization
import URLLoadingIO

/// The number of closures that still run after their load stopped waiting for them.
final class AbandonedCount: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add(_ difference: Int) { count.add(difference, ordering: .relaxed) }
}

final class Race<Answer: Sendable>: Sendable {
    private enum State: Sendable {
        case running
        case finished(Answer)
        case abandoned, over
    }
    private let state = Lock(State.running)
    private let abandoned: AbandonedCount

    init(_ abandoned: AbandonedCount) { self.abandoned = abandoned }

    /// Returns false if the answer is no longer awaited.
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

    /// Returns whether the closure still runs.
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

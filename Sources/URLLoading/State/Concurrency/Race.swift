// SPDX-License-Identifier: Apache-2.0

// In this folder: what Swift's concurrency lacks: races with the end of a load, weak references for timers, objects
//     that are set late

// A race between a caller's closure and the end of its load.

import Synchronization
import URLLoadingIO

/// The number of callers' closures that still run although their load no longer waits for them.
final class LeakCount: Sendable {
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
    private let leaked: LeakCount

    init(_ leaked: LeakCount) { self.leaked = leaked }

    /// Records the answer. Returns false if the load no longer waits for it.
    func finish(_ answer: Answer) -> Bool {
        let isAwaited = state.withLock { state in
            guard case .running = state else { return false }
            state = .finished(answer)
            return true
        }
        if !isAwaited { leaked.add(-1) }
        return isAwaited
    }

    func takeAnswer() -> Answer? {
        state.withLock { state in
            guard case .finished(let answer) = state else { return nil }
            state = .over
            return answer
        }
    }

    /// Stops waiting for the closure. Returns whether it still runs.
    func abandon() -> Bool {
        let isRunning = state.withLock { state in
            guard case .running = state else { return false }
            state = .abandoned
            return true
        }
        if isRunning { leaked.add(1) }
        return isRunning
    }
}

// SPDX-License-Identifier: Apache-2.0

// Notices, in debug builds, that loads cannot run because the program blocks all threads of Swift's pool: a task that
// waits in a semaphore for a load which itself needs a thread of the pool waits for ever, without a word.

#if DEBUG
import Synchronization
import URLLoadingIO

/// While loads run in the pool, asks once a second whether the pool runs a task of their priority.
final class PoolWatch: TimerTarget {
    private static let shared = PoolWatch()
    private static let interval: Int64 = 1_000_000_000

    private struct State: Sendable {
        var loads = 0
        var isScheduled = false
        /// The priority of the load that began last; each priority has threads of its own.
        var priority: TaskPriority.RawValue = TaskPriority.medium.rawValue
        /// True while a task was started that has not run yet.
        var isAsking = false
        /// True from the first note to the next task that runs.
        var isNoted = false
    }
    private let state = Lock(State())

    static func began() { shared.began() }
    static func ended() { shared.state.withLock { $0.loads -= 1 } }

    private func began() {
        let priority = Task.currentPriority.rawValue
        let mustSchedule = state.withLock { state in
            state.loads += 1
            state.priority = priority
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustSchedule { Poller.shared.schedule(self, at: Poller.now() + Self.interval) }
    }

    func timerFired(now: Int64) {
        let (goesOn, asks, isBlocked) = state.withLock { state -> (Bool, TaskPriority?, Int?) in
            guard state.loads > 0 else {
                state.isScheduled = false
                return (false, nil, nil)
            }
            guard state.isAsking else {
                state.isAsking = true
                return (true, TaskPriority(rawValue: state.priority), nil)
            }
            defer { state.isNoted = true }
            return (true, nil, state.isNoted ? nil : state.loads)
        }
        if let isBlocked {
            DebugNote.write(
                "a task has waited a second for a thread of Swift's concurrency pool, and so may \(isBlocked) loads: "
                    + "the threads are busy, or blocked, for example by a semaphore in a task. Block no thread of the "
                    + "pool, or run the loads with eventLoopExecutor")
        }
        if let asks { Task.detached(priority: asks) { self.answered() } }
        if goesOn { Poller.shared.schedule(self, at: now + Self.interval) }
    }

    private func answered() { state.withLock { ($0.isAsking, $0.isNoted) = (false, false) } }
}
#endif

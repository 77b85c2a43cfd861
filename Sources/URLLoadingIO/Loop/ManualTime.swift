// Time that stands still until it is moved. Who moves it fires what has become due, in order, before
// the move returns: a test knows then that every deadline up to this moment has been acted upon.

import Synchronization

package final class ManualTime: Sendable {
    fileprivate struct Timer: Sendable {
        let moment: Int64
        let target: TimerQueue.Target
    }
    fileprivate struct State: Sendable {
        var now = ManualTime.beginning
        /// Where the moves that are going on lead.
        var goal = ManualTime.beginning
        /// By moment, then in the order of scheduling.
        var timers: [Timer] = []
        /// Work that has begun to wait for its peer.
        var waiting: [ObjectIdentifier: (token: StopToken, count: Int)] = [:]
        /// Tasks that sleep.
        var sleeping = 0
        /// Counts waits begun.
        var waits = 0
    }
    private let state = Lock(State())

    package init() {}

    /// Not 0, which could be taken for a moment that was never set.
    package static let beginning: Int64 = 1

    package var now: Int64 { state.withLock { $0.now } }
    /// Timers not fired yet.
    package var scheduled: Int { state.withLock { $0.timers.count } }

    /// Moves the time. Timers that come due while others fire are fired too; those that fall on the same
    /// moment, in the order in which they were set.
    package func advance(by nanoseconds: Int64) {
        let goal = state.withLock { state in
            state.goal = state.goal.saturatingAdd(max(0, nanoseconds))
            return state.goal
        }
        while let timer = state.withLock({ $0.popDue(at: goal) }) { fire(timer.target, now: timer.moment) }
        state.withLock { $0.now = max($0.now, goal) }
    }

    func schedule(_ target: TimerQueue.Target, at moment: Int64) {
        guard moment != .max else { return }
        let due = state.withLock { state -> Int64? in
            guard moment > state.now else { return state.now }
            state.add(Timer(moment: moment, target: target))
            return nil
        }
        // Moved past it since it was worked out: nobody else would fire it.
        if let due { fire(target, now: due) }
    }

    private func fire(_ target: TimerQueue.Target, now: Int64) {
        switch target {
        case .slot(let slot): slot.wake()
        case .object(let target): target.timerFired(now: now)
        }
    }

    // MARK: Who waits

    func beganSleeping() { state.withLock { $0.sleeping += 1 } }
    func endedSleeping() { state.withLock { $0.sleeping -= 1 } }
    package var sleeping: Int { state.withLock { $0.sleeping } }

    func beganWaiting(_ token: StopToken) {
        state.withLock {
            $0.waiting[ObjectIdentifier(token), default: (token, 0)].count += 1
            $0.waits += 1
        }
    }

    func endedWaiting(_ token: StopToken) {
        state.withLock { state in
            guard let count = state.waiting[ObjectIdentifier(token)]?.count else { return }
            state.waiting[ObjectIdentifier(token)] = count > 1 ? (token, count - 1) : nil
        }
    }

    /// How many loads wait for their peer at this moment, and how many such waits there ever were.
    package var waiting: (count: Int, waits: Int) {
        let (tokens, waits) = state.withLock { ($0.waiting.values.map(\.token), $0.waits) }
        return (tokens.count { $0.isParked && $0.stopReason == nil }, waits)
    }
}

extension ManualTime.State {
    fileprivate mutating func add(_ timer: ManualTime.Timer) {
        let index = timers.lastIndex { $0.moment <= timer.moment }.map { $0 + 1 } ?? 0
        timers.insert(timer, at: index)
    }

    fileprivate mutating func popDue(at goal: Int64) -> ManualTime.Timer? {
        guard let first = timers.first, first.moment <= goal else { return nil }
        now = max(now, first.moment)
        return timers.removeFirst()
    }
}

extension Int64 {
    fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max - 1 : sum
    }
}

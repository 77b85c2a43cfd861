// SPDX-License-Identifier: Apache-2.0

// A clock that stands still until a test moves it. Each move fires the timers that became due, in order, before it
// returns: the test then knows that every deadline up to that moment was acted upon.

import Synchronization

package final class ManualTime: Sendable {
    fileprivate struct Timer: Sendable {
        let moment: Int64
        let target: TimerQueue.Target
    }
    fileprivate struct Sleeper: Sendable {
        let moment: Int64
        let token: StopToken
    }
    fileprivate struct State: Sendable {
        var now = ManualTime.beginning
        /// The time at which the moves that have begun will end.
        var goal = ManualTime.beginning
        /// Sorted by moment, then by order of scheduling.
        var timers: [Timer] = []
        /// Work that waits for its peer.
        var waiting: [ObjectIdentifier: (token: StopToken, count: Int)] = [:]
        /// Sleeps and alarms that have not ended, by the identity of their object.
        var sleepers: [ObjectIdentifier: Sleeper] = [:]
        /// Counts the waits that ever began.
        var waits = 0
    }
    private let state = Lock(State())

    package init() {}

    /// Not 0, which could be mistaken for a moment that was never set.
    package static let beginning: Int64 = 1

    package var now: Int64 { state.withLock { $0.now } }
    /// The number of timers that have not fired.
    package var scheduled: Int { state.withLock { $0.timers.count } }

    /// Moves the time forward. Timers that become due while others fire are fired too; timers due at the same moment
    /// fire in the order in which they were set.
    package func advance(by nanoseconds: Int64) {
        let goal = state.withLock { state in
            // Nothing is due at `.max`, which means never.
            state.goal = min(.max - 1, state.goal.saturatingAdd(max(0, nanoseconds)))
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
        // The time moved past the moment since it was computed, so no later move would fire this timer.
        if let due { fire(target, now: due) }
    }

    private func fire(_ target: TimerQueue.Target, now: Int64) {
        switch target {
        case .slot(let slot): slot.wake()
        case .object(let target): target.timerFired(now: now)
        }
    }

    // MARK: Waiting tasks

    /// Records that `sleeper` sleeps until `moment`, or until `token` is stopped.
    func beganSleeping(_ sleeper: AnyObject, until moment: Int64, _ token: StopToken) {
        state.withLock { $0.sleepers[ObjectIdentifier(sleeper)] = Sleeper(moment: moment, token: token) }
    }

    func endedSleeping(_ sleeper: AnyObject) {
        let id = ObjectIdentifier(sleeper)
        // Release the token outside of the lock.
        _ = state.withLock { $0.sleepers.removeValue(forKey: id) }
    }

    /// The number of tasks inside a sleep, including tasks that were woken but have not run yet.
    package var sleeping: Int { state.withLock { $0.sleepers.count } }

    /// The number of tasks that only a later moment, or a stop, will wake. Excludes a task that an advance has woken
    /// but that has not run yet: a caller that advanced again for it would wait for ever.
    package var asleep: Int {
        let unwoken = state.withLock { state in state.sleepers.values.filter { $0.moment > state.goal } }
        return unwoken.count { $0.token.stopReason == nil }
    }

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

    /// The number of loads that wait for their peer now, and the number of such waits that ever began.
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

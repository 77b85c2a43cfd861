// All loads of a session that are going on, and their deadlines.
//
// Deadlines cost a load nothing but its entry here: one timer per session wakes for the earliest
// deadline, looks at all loads, and sets itself to the next. Activity moves a deadline later, never
// earlier, so a look too early is the worst that happens.

import Synchronization
import URLLoadingIO

final class LoadRegistry: Sendable {
    private struct State: Sendable {
        var loads: [LoadHandle?] = []
        var free: [Int] = []
        var count = 0
        var isClosed = false
        /// Closed, without loads, and what follows from that is done.
        var isSettled = false
        var waiting: [PollSlot] = []
    }
    private let state = Lock(State())
    /// The moment the next look is due.
    private let nextLook = Atomic<Int64>(.max)
    let anchor = Anchor<LoadRegistry>.Weak()
    private let clock: LoopClock
    private let whenEmptied: @Sendable () -> Void

    /// - Parameter whenEmptied: called when the last load of a closed registry has gone.
    init(_ clock: LoopClock = .system, whenEmptied: @escaping @Sendable () -> Void) {
        self.clock = clock
        self.whenEmptied = whenEmptied
    }

    var count: Int { state.withLock { $0.count } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Returns false if no load may begin any more.
    /// - Parameter predecessor: a load whose work goes on with this one: it may, also when nothing begins any more.
    func enter(_ load: LoadHandle, inPlaceOf predecessor: LoadHandle? = nil) -> Bool {
        let entered = state.withLock { state in
            let goesOn = predecessor.map { $0.registryIndex >= 0 && $0.stopReason == nil } ?? false
            guard !state.isClosed || goesOn else { return false }
            if let index = state.free.popLast() {
                state.loads[index] = load
                load.registryIndex = index
            } else {
                load.registryIndex = state.loads.count
                state.loads.append(load)
            }
            state.count += 1
            return true
        }
        if entered { watch(load) }
        return entered
    }

    /// The time of a load that entered before has begun to run.
    func watch(_ load: LoadHandle) { look(noLaterThan: due(load, clock.coarseNow())) }

    func leave(_ load: LoadHandle) {
        let emptied = state.withLock { state in
            guard load.registryIndex >= 0 else { return false }
            state.loads[load.registryIndex] = nil
            state.free.append(load.registryIndex)
            load.registryIndex = -1
            state.count -= 1
            return state.isClosed && state.count == 0
        }
        if emptied { announceEmpty() }
    }

    /// No load begins after this. Those going on are stopped if a reason is given; handles that nobody
    /// has resumed are stopped anyway.
    func close(stopping reason: StopReason?) {
        let (entered, emptied) = state.withLock { state in
            let wasClosed = state.isClosed
            state.isClosed = true
            return (state.loads.compactMap { $0 }, state.count == 0 && !wasClosed)
        }
        for load in entered where reason != nil || !load.holdsSession.load(ordering: .relaxed) {
            load.stop(reason ?? .invalidated)
        }
        if emptied { announceEmpty() }
    }

    /// Returns when a closed registry has no load left and `whenEmptied` has been called.
    func emptied() async {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        while true {
            let isEmpty = state.withLock { state in
                state.waiting.removeAll { $0 === slot }
                guard !state.isSettled else { return true }
                state.waiting.append(slot)
                return false
            }
            if isEmpty { return }
            await Poller.shared.park(slot, until: .never)
        }
    }

    private func announceEmpty() {
        whenEmptied()
        let waiting = state.withLock { state in
            state.isSettled = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for slot in waiting { slot.wake() }
    }

    // MARK: Deadlines

    /// When to look again at a load that was woken and does not run yet, in nanoseconds.
    private static let secondLook: Int64 = 100_000_000

    private func due(_ load: LoadHandle, _ now: Int64) -> Int64 {
        let waiting = load.isSuspended ? .max : load.idleDeadline.load(ordering: .relaxed)
        let idle = waiting != .max ? waiting : load.idleLimit == .max ? .max : now &+ load.idleLimit
        return min(load.deadline.load(ordering: .relaxed), idle)
    }

    private func look(noLaterThan moment: Int64) {
        var seen = nextLook.load(ordering: .relaxed)
        while moment < seen {
            let (exchanged, original) = nextLook.compareExchange(
                expected: seen, desired: moment, ordering: .acquiringAndReleasing)
            if exchanged {
                clock.schedule(Anchor.Timer(anchor) { $0.look(now: $1) }, at: moment)
                return
            }
            seen = original
        }
    }

    func look(now: Int64) {
        // A timer that a shorter deadline overtook.
        guard nextLook.load(ordering: .acquiring) <= now else { return }
        nextLook.store(.max, ordering: .releasing)
        let going = state.withLock { $0.loads.compactMap { $0 } }
        var next = Int64.max
        for load in going {
            if load.deadline.load(ordering: .relaxed) <= now {
                load.stop(.deadline)
            } else if !load.isSuspended, load.idleDeadline.load(ordering: .relaxed) <= now {
                // The peer was heard, and the load waits for a thread: that is not the peer's silence.
                if load.isParked { load.stop(.idle) } else { next = min(next, now + Self.secondLook) }
            } else {
                next = min(next, due(load, now))
            }
        }
        if next != .max { look(noLaterThan: max(next, now + clock.rest(Self.shortestRest))) }
    }

    /// However short the limits, the poller has other work between two looks.
    private static let shortestRest: Int64 = 5_000_000
}

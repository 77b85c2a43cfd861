// SPDX-License-Identifier: Apache-2.0

// The running loads of a session, and their deadlines.
//
// A deadline costs a load only its entry here: one timer per session fires at the earliest deadline, checks all loads,
// and is set to the next one. Activity moves a deadline later, never earlier, so the timer may fire too early but not
// too late.

import Synchronization
import URLLoadingIO

final class LoadRegistry: Sendable {
    private struct State: Sendable {
        var loads: [LoadHandle?] = []
        var free: [Int] = []
        var count = 0
        var isClosed = false
        /// True once the registry is closed and empty, and `whenEmptied` has been called.
        var isSettled = false
        var waiting: [PollSlot] = []
        #if DEBUG
        /// The number of loads so far.
        var entered = 0
        #endif
    }
    private let state = Lock(State())
    /// The time of the next check.
    private let nextCheck = Atomic<Int64>(.max)
    let anchor = Anchor<LoadRegistry>.Weak()
    private let clock: LoopClock
    private let whenEmptied: @Sendable () -> Void
    /// Whether the loads run in Swift's pool, which a debug build watches.
    private let isInPool: Bool

    /// - Parameter whenEmptied: called when the last load of a closed registry has left.
    init(_ clock: LoopClock = .system, isInPool: Bool = true, whenEmptied: @escaping @Sendable () -> Void) {
        self.clock = clock
        self.isInPool = isInPool
        self.whenEmptied = whenEmptied
    }

    #if DEBUG
    deinit { SingleLoadNote.ended(loads: state.withLock { $0.entered }) }
    #endif

    var count: Int { state.withLock { $0.count } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Registers a load. Returns false if the registry is closed.
    /// - Parameter predecessor: a running load that this one continues; such a load may enter a closed registry, too.
    func enter(_ load: LoadHandle, inPlaceOf predecessor: LoadHandle? = nil) -> Bool {
        let entered = state.withLock { state in
            let canContinue = predecessor.map { $0.registryIndex >= 0 && $0.stopReason == nil } ?? false
            guard !state.isClosed || canContinue else { return false }
            if let index = state.free.popLast() {
                state.loads[index] = load
                load.registryIndex = index
            } else {
                load.registryIndex = state.loads.count
                state.loads.append(load)
            }
            state.count += 1
            #if DEBUG
            state.entered += 1
            #endif
            return true
        }
        guard entered else { return false }
        #if DEBUG
        if isInPool { PoolWatch.began() }
        #endif
        watch(load)
        return true
    }

    /// Starts to check the deadlines of a registered load, which have been set.
    func watch(_ load: LoadHandle) { scheduleCheck(noLaterThan: due(load, clock.coarseNow())) }

    func leave(_ load: LoadHandle) {
        let emptied = state.withLock { state -> Bool? in
            guard load.registryIndex >= 0 else { return nil }
            state.loads[load.registryIndex] = nil
            state.free.append(load.registryIndex)
            load.registryIndex = -1
            state.count -= 1
            return state.isClosed && state.count == 0
        }
        guard let emptied else { return }
        #if DEBUG
        if isInPool { PoolWatch.ended() }
        #endif
        if emptied { announceEmpty() }
    }

    /// Closes the registry: no further load may enter. With a reason, the running loads are stopped. Tasks that were
    /// never resumed are stopped in any case.
    func close(stopping reason: StopReason?) {
        let (entered, emptied) = state.withLock { state in
            let wasClosed = state.isClosed
            state.isClosed = true
            return (state.loads.compactMap { $0 }, state.count == 0 && !wasClosed)
        }
        // Newest first: those that wait for a connection leave before those that have one, whose places would otherwise
        // go to loads that are about to be stopped.
        for load in entered.reversed() {
            if reason == nil, load.holdsSession.load(ordering: .relaxed) {
                load.requireEnd()
            } else {
                load.stop(reason ?? .invalidated)
            }
        }
        if emptied { announceEmpty() }
    }

    /// Waits until a closed registry has no load left and `whenEmptied` has been called.
    func emptied() async {
        await Poller.shared.wait { slot in
            state.withLock { state in
                state.waiting.removeAll { $0 === slot }
                if !state.isSettled { state.waiting.append(slot) }
                return state.isSettled
            }
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

    /// The interval, in nanoseconds, to the second check of a load that was woken and does not run yet.
    private static let secondCheckDelay: Int64 = 100_000_000

    private func due(_ load: LoadHandle, _ now: Int64) -> Int64 {
        let waiting = load.isSuspended ? .max : load.idleDeadline.load(ordering: .relaxed)
        let idle = waiting != .max ? waiting : load.idleLimit == .max ? .max : now &+ load.idleLimit
        return min(load.deadline.load(ordering: .sequentiallyConsistent), idle)
    }

    // A load stores its deadline and then reads `nextCheck`; a check stores `nextCheck` and then reads the deadlines.
    // In one order of all four operations, at least one of the two sees the other's value: no deadline is missed.

    private func scheduleCheck(noLaterThan moment: Int64) {
        var seen = nextCheck.load(ordering: .sequentiallyConsistent)
        while moment < seen {
            let (exchanged, original) = nextCheck.compareExchange(
                expected: seen, desired: moment, ordering: .sequentiallyConsistent)
            if exchanged {
                clock.schedule(Anchor.Timer(anchor) { $0.check(now: $1) }, at: moment)
                return
            }
            seen = original
        }
    }

    func check(now: Int64) {
        // A superseded timer: a shorter deadline has set another one.
        guard nextCheck.load(ordering: .acquiring) <= now else { return }
        nextCheck.store(.max, ordering: .sequentiallyConsistent)
        let going = state.withLock { $0.loads.compactMap { $0 } }
        var next = Int64.max
        var ending: [(load: LoadHandle, reason: StopReason)] = []
        for load in going {
            let idle = load.idleDeadline.load(ordering: .relaxed)
            if load.deadline.load(ordering: .sequentiallyConsistent) <= now {
                ending.append((load, .deadline))
            } else if !load.isSuspended, idle <= now {
                // A load that is not parked has received bytes and waits for a thread: the peer was not silent. The
                // bytes of a load that shares its connection may wait for the load that reads for all, though not for
                // ever: what the others receive without a pause is no sign of life for this one.
                let isSilent = load.isParked && (!load.awaitsReader || idle &+ load.idleLimit <= now)
                if isSilent { ending.append((load, .idle)) } else { next = min(next, now + Self.secondCheckDelay) }
            } else {
                next = min(next, due(load, now))
            }
        }
        // Only now: a load that is stopped is woken, and if it reads for others they would seem to have received bytes.
        for (load, reason) in ending { load.stop(reason) }
        if next != .max { scheduleCheck(noLaterThan: max(next, now + clock.spacing(Self.minimumInterval))) }
    }

    /// The shortest interval between two checks in nanoseconds, because the poller has other work, however short the
    /// limits.
    private static let minimumInterval: Int64 = 5_000_000
}

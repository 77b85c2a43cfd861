// Ends waits from outside. A token belongs to one piece of work (a load, an accept loop); every slot that the work
// waits on is attached to it, and stopping the token wakes them all. The reason is set once and checked before and
// after every wait.

package import Synchronization

package enum StopReason: UInt8, Sendable {
    case cancelled = 1
    case invalidated
    /// Nothing was received from the peer for the idle limit.
    case idle
    /// The work as a whole exceeded its time limit.
    case deadline
}

/// Open, so that `LoadControl` in URLLoading can add the session's state of a load.
open class StopToken: @unchecked Sendable {
    private let reason = Atomic<UInt8>(0)
    /// The reason of a stop that came after an idle stop; it takes effect if the idle stop is forgiven.
    private let laterReason = Atomic<UInt8>(0)
    private let attached = Lock(Attached())

    /// The longest that one wait for the peer may take, in nanoseconds; `.max` for no limit.
    package let idleLimit: Int64
    /// The moment at which the current wait for the peer times out; `.max` while there is no such wait.
    package let idleDeadline = Atomic<Int64>(.max)
    /// The number of waits for peers under way; more than one where a load has several requests under way.
    private let idleWaits = Atomic<Int>(0)

    private struct Attached: Sendable {
        // Usually one slot; a second one is waited on while a connection is being established.
        var first: PollSlot?
        var others: [PollSlot] = []
    }

    /// The moment at which the current attempt times out: `.max` without an attempt or a limit, `.min` once it has
    /// timed out. While the limit is paused, the negated remaining time in nanoseconds.
    private let attemptDeadline = Atomic<Int64>(.max)

    /// The clock that the limits refer to.
    package let clock: LoopClock

    /// A token that is never stopped, for waits that nothing ends from outside.
    package static let never = StopToken()

    package init(idleLimit: Int64 = .max, clock: LoopClock = .system) {
        self.idleLimit = idleLimit
        self.clock = clock
    }

    package final var stopReason: StopReason? {
        StopReason(rawValue: reason.load(ordering: .sequentiallyConsistent))
    }

    package final func check(_ operation: IOFailure.Operation) throws(IOFailure) {
        if let reason = stopReason { throw IOFailure(.stopped(reason), operation) }
        if attemptDeadline.load(ordering: .relaxed) == .min { throw IOFailure(.attemptTimedOut, operation) }
    }

    /// Stops the work. The first reason wins; returns whether it was this one.
    @discardableResult
    package final func stop(_ why: StopReason) -> Bool {
        while !set(why) {
            guard why != .idle else { return false }
            // The idle stop was forgiven meanwhile: try again.
            guard let earlier = stopReason else { continue }
            guard earlier == .idle else { return false }
            _ = laterReason.compareExchange(expected: 0, desired: why.rawValue, ordering: .sequentiallyConsistent)
            // The idle stop may have been forgiven just now, without `forgiveIdle()` having seen the later reason.
            guard set(why) else { return false }
            break
        }
        wake()
        didStop()
        return true
    }

    private func set(_ why: StopReason) -> Bool {
        reason.compareExchange(expected: 0, desired: why.rawValue, ordering: .sequentiallyConsistent).exchanged
    }

    /// Revokes an idle stop so that the work can begin anew elsewhere. Returns false if the token was stopped for
    /// another reason or not at all. A stop that came after the idle stop takes effect now.
    package final func forgiveIdle() -> Bool {
        guard
            reason.compareExchange(expected: StopReason.idle.rawValue, desired: 0, ordering: .sequentiallyConsistent)
                .exchanged
        else { return false }
        if let later = StopReason(rawValue: laterReason.load(ordering: .sequentiallyConsistent)) { stop(later) }
        return true
    }

    /// Wakes the waiting tasks, which then check their conditions again.
    package final func wake() {
        let (first, others) = attached.withLock { ($0.first, $0.others) }
        first?.wake()
        for slot in others { slot.wake() }
    }

    /// Called once after a stop, by the task that stopped the work, once the waiting tasks were woken.
    open func didStop() {}

    /// Lets a stop wake `slot` from now on. An earlier stop is seen by the check before the wait.
    package final func attach(_ slot: PollSlot) {
        attached.withLock {
            if $0.first == nil { $0.first = slot } else { $0.others.append(slot) }
        }
    }

    package final func detach(_ slot: PollSlot) {
        attached.withLock {
            if $0.first === slot { $0.first = nil } else { $0.others.removeAll { $0 === slot } }
        }
    }

    /// Whether the work waits for its peer at this moment. False once it was woken, although it may not have run yet,
    /// and while it waits for something local.
    package final var isParked: Bool {
        attached.withLock { $0.first?.awaitsPeer == true || $0.others.contains { $0.awaitsPeer } }
    }

    // MARK: Attempts

    /// Begins an attempt with a time limit in nanoseconds. When the limit is over the waits of this token are woken and
    /// `check` throws. A token has one attempt at a time.
    package final func beginAttempt(within limit: Int64) {
        let (moment, overflows) = clock.now().addingReportingOverflow(limit)
        guard limit != .max, !overflows else { return }
        attemptDeadline.store(moment, ordering: .releasing)
        clock.schedule(AttemptTimer(self, moment), at: moment)
    }

    /// Ends the attempt.
    /// - Returns: the rest of its time limit in nanoseconds: 0 if it timed out, `.max` without a limit.
    @discardableResult
    package final func endAttempt() -> Int64 {
        timeLeft(attemptDeadline.exchange(.max, ordering: .acquiringAndReleasing))
    }

    private func timeLeft(_ deadline: Int64) -> Int64 {
        switch deadline {
        case .max: .max
        case .min: 0
        case ..<0: -deadline
        default: max(0, deadline - clock.now())
        }
    }

    /// Pauses the time limit of the attempt.
    /// - Returns: the value to pass to ``continueAttempt(_:)``; `nil` if no limit runs.
    package final func pauseAttempt() -> Int64? {
        let moment = attemptDeadline.load(ordering: .acquiring)
        guard moment > 0, moment != .max else { return nil }
        let paused = -max(1, moment - clock.now())
        return replaceDeadline(moment, by: paused) ? paused : nil
    }

    private func replaceDeadline(_ expected: Int64, by desired: Int64) -> Bool {
        attemptDeadline.compareExchange(expected: expected, desired: desired, ordering: .acquiringAndReleasing)
            .exchanged
    }

    /// Continues the paused time limit, unless the attempt has ended meanwhile.
    package final func continueAttempt(_ paused: Int64?) {
        guard let paused else { return }
        let moment = clock.now() - paused
        guard replaceDeadline(paused, by: moment) else { return }
        clock.schedule(AttemptTimer(self, moment), at: moment)
    }

    /// Whether an attempt with a time limit is under way.
    package final var isInAttempt: Bool { attemptDeadline.load(ordering: .relaxed) != .max }

    /// The rest of the attempt's time limit in nanoseconds; `nil` without one.
    package final var attemptTimeLeft: Int64? {
        let left = timeLeft(attemptDeadline.load(ordering: .relaxed))
        return left == .max ? nil : left
    }

    /// Handles the attempt's timer. A timer stays in its queue until its moment: the attempt may have ended, or another
    /// may have begun.
    fileprivate final func attemptTimerFired(_ moment: Int64) {
        if replaceDeadline(moment, by: .min) { wake() }
    }

    // MARK: Idle time

    /// Begins a wait for the peer, during which the idle limit runs. Of several waits the last one sets the deadline.
    package final func beginIdle() {
        clock.manual?.beganWaiting(self)
        guard idleLimit != .max else { return }
        startIdle(since: clock.coarseNow())
    }

    // When one wait ends while another begins, the order of the atomic operations below keeps the deadline of the new
    // one: after its store, the ending wait checks whether another has begun.

    private func startIdle(since start: Int64) {
        idleWaits.add(1, ordering: .sequentiallyConsistent)
        idleDeadline.store(start &+ idleLimit, ordering: .sequentiallyConsistent)
    }

    /// Continues a wait for the peer that began at an earlier moment.
    final func beginIdle(since start: Int64) {
        clock.manual?.beganWaiting(self)
        guard idleLimit != .max else { return }
        startIdle(since: start)
    }

    final func endIdle() {
        clock.manual?.endedWaiting(self)
        guard idleLimit != .max else { return }
        if idleWaits.subtract(1, ordering: .sequentiallyConsistent).newValue == 0 {
            idleDeadline.store(.max, ordering: .sequentiallyConsistent)
            guard idleWaits.load(ordering: .sequentiallyConsistent) > 0 else { return }
        }
        // Another wait for a peer goes on, and data has just been received.
        idleDeadline.store(clock.coarseNow() &+ idleLimit, ordering: .sequentiallyConsistent)
    }
}

/// Times out an attempt at a given moment. Holds its token weakly.
private final class AttemptTimer: TimerTarget {
    private weak let token: StopToken?
    private let moment: Int64

    init(_ token: StopToken, _ moment: Int64) {
        self.token = token
        self.moment = moment
    }

    func timerFired(now: Int64) { token?.attemptTimerFired(moment) }
}

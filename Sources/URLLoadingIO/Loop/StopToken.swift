// SPDX-License-Identifier: Apache-2.0

// Ends waits from outside. A token belongs to one piece of work (a load, an accept loop); every slot that the work
// waits on is attached to it, and stopping the token wakes them all. The reason is set once and checked before and
// after every wait.

package import Synchronization

/// Open, so that `LoadHandle` in URLLoading can add the session's state of a load.
open class StopToken: @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are atomics or under a lock.
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
        var attempts: [TimedAttempt] = []
        /// How many reasons hold the limits of all attempts.
        var holds = 0
    }

    /// The number of attempts with a time limit under way. `check` looks up its task's attempt only if there are any.
    private let attempts = Atomic<Int>(0)

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
        if attempts.load(ordering: .relaxed) > 0, attempt?.isOver == true {
            throw IOFailure(.attemptTimedOut, operation)
        }
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
            // The idle stop may have been forgiven just now, without `clearIdleStop()` having seen the later reason.
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
    package final func clearIdleStop() -> Bool {
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

    /// Whether what the work waits for may have arrived on a socket that another task reads at this moment, or is about
    /// to.
    package final var awaitsReader: Bool {
        attached.withLock { $0.first?.awaitsReader == true || $0.others.contains { $0.awaitsReader } }
    }

    // MARK: Attempts

    /// The calling task's attempt for this token; `nil` outside an attempt.
    package final var attempt: TimedAttempt? {
        guard attempts.load(ordering: .relaxed) > 0, let attempt = TimedAttempt.current, attempt.token === self
        else { return nil }
        return attempt
    }

    /// Runs `body` as an attempt: when its time limit expires, the waits of the calling task for this token end, and
    /// `check` throws ``IOFailure/Code/attemptTimedOut``. Attempts of other tasks for the same token have separate
    /// limits.
    package final func attempting<Value, Failure: Error>(
        _ attempt: TimedAttempt, _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let holds = attached.withLock { attached in
            attached.attempts.append(attempt)
            return attached.holds
        }
        attempts.add(1, ordering: .relaxed)
        // The limit runs now, unless the work is suspended; at the end it is as it was before.
        attempt.change(holds: holds - 1)
        defer {
            attempts.subtract(1, ordering: .relaxed)
            let holds = attached.withLock { attached in
                attached.attempts.removeAll { $0 === attempt }
                return attached.holds
            }
            attempt.change(holds: 1 - holds)
        }
        // `withValue` rethrows without a type.
        let result: Result<Value, Failure> = await TimedAttempt.$current.withValue(attempt) {
            do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Holds the limits of all attempts, also of those that begin later, or releases them.
    package final func setHoldsAttempts(_ holds: Bool) {
        let count = holds ? 1 : -1
        let underWay = attached.withLock { attached in
            attached.holds += count
            return attached.attempts
        }
        for attempt in underWay { attempt.change(holds: count) }
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
        let isOnly = idleWaits.add(1, ordering: .sequentiallyConsistent).newValue == 1
        let desired = start &+ idleLimit
        let seen = idleDeadline.load(ordering: .sequentiallyConsistent)
        // While other waits are under way, a wait that began earlier does not move their deadline to an earlier moment.
        guard isOnly || seen == .max || seen < desired else { return }
        idleDeadline.store(desired, ordering: .sequentiallyConsistent)
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
        // Another wait for a peer continues, and data has just been received.
        idleDeadline.store(clock.coarseNow() &+ idleLimit, ordering: .sequentiallyConsistent)
        // If the last wait has ended meanwhile, no deadline may remain: the registry would check it in vain.
        guard idleWaits.load(ordering: .sequentiallyConsistent) == 0 else { return }
        idleDeadline.store(.max, ordering: .sequentiallyConsistent)
        // And if a wait has begun meanwhile, its deadline must remain.
        guard idleWaits.load(ordering: .sequentiallyConsistent) > 0 else { return }
        idleDeadline.store(clock.coarseNow() &+ idleLimit, ordering: .sequentiallyConsistent)
    }
}

extension StopToken {
    /// Returns a token that is stopped after some nanoseconds.
    package static func ending(after nanoseconds: Int64) -> StopToken {
        let token = StopToken()
        Poller.shared.schedule(Limit(token), at: Poller.now() + nanoseconds)
        return token
    }

    private final class Limit: TimerTarget {
        private weak let token: StopToken?
        init(_ token: StopToken) { self.token = token }
        func timerFired(now: Int64) { token?.stop(.deadline) }
    }
}

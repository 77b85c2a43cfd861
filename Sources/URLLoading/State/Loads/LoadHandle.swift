// SPDX-License-Identifier: Apache-2.0

// In this folder: the handle that ends, suspends and times a load, and the register of a session's loads

// The handle by which a load is ended from outside (by its task's cancellation, by a timer, by its session), suspended
// and resumed. It is independent of the features of a load, which belong to `LoadContext`. See `StopToken` for how a
// stop wakes the load.

import Synchronization
import URLLoadingIO

/// The driver of a task, which is notified when the work of a handle is stopped.
protocol StopListener: AnyObject, Sendable {
    /// Called once, by the task that stopped the work, after the waits of the work were woken.
    func stopped()
    /// Called when the session refuses new work and waits for the end of this one.
    func requireEnd()
}

/// Not final: its subclass, `LoadContext`, adds stored properties, so that one object is both the handle and the
/// context of a load. A subclass overrides nothing.
class LoadHandle: StopToken, @unchecked Sendable {
    // Unchecked: no class that is open to subclasses can be checked; `registryIndex` is guarded by the registry's
    // lock.
    /// The moment the whole load must have ended; `.max` for none, or while it has not begun.
    final let deadline = Atomic<Int64>(.max)
    final let resourceLimit: Int64
    /// The limit of an attempt to connect, in nanoseconds; `.max` for none.
    final let connectLimit: Int64
    /// The index in the registry. Accessed only under the registry's lock.
    final var registryIndex = -1
    /// Whether a session that finishes its tasks waits for this load. A task that was never resumed does not hold it.
    final let holdsSession: Atomic<Bool>
    /// Counts callers' closures that still run although this load no longer waits for them.
    final let leaked: LeakCount
    private let listener = Lock<(any StopListener)?>(nil)

    /// - Parameters:
    ///   - idle: the limit of one wait for a peer; nil for none.
    ///   - resource: the limit of the whole load; nil for none.
    ///   - connect: the limit of one attempt to connect; nil for none.
    /// - Parameter idleLimit, resourceLimit, connectLimit: the timeouts in nanoseconds; `.max` for none.
    init(
        idleLimit: Int64, resourceLimit: Int64, connectLimit: Int64, clock: LoopClock, holdsSession: Bool,
        leaked: LeakCount
    ) {
        self.resourceLimit = resourceLimit
        self.connectLimit = connectLimit
        self.holdsSession = Atomic(holdsSession)
        self.leaked = leaked
        super.init(idleLimit: idleLimit, clock: clock)
    }

    convenience init(
        idle: Duration?, resource: Duration?, connect: Duration? = nil, clock: LoopClock = .system,
        holdsSession: Bool = true, leaked: LeakCount = LeakCount()
    ) {
        self.init(
            idleLimit: Self.limit(idle), resourceLimit: Self.limit(resource), connectLimit: Self.limit(connect),
            clock: clock, holdsSession: holdsSession, leaked: leaked)
    }

    /// Returns a timeout in nanoseconds; `.max` for none.
    static func limit(_ timeout: Duration?) -> Int64 { timeout.map(nanoseconds) ?? .max }

    /// Starts the resource timeout.
    final func startClock() {
        guard resourceLimit != .max else { return }
        deadline.store(
            clock.now().addingReportingOverflow(resourceLimit).partialValue, ordering: .sequentiallyConsistent)
    }

    static func nanoseconds(_ duration: Duration) -> Int64 { duration.nanoseconds }

    // MARK: The driver

    /// Sets the driver that is notified of a stop, and keeps it alive until `forgetListener`.
    final func setListener(_ listener: any StopListener) { self.listener.withLock { $0 = listener } }

    /// Called at the end of the load: the handle may outlive its driver.
    final func forgetListener() {
        let last = listener.withLock { $0.take() }
        withExtendedLifetime(last) {}
    }

    /// Tells the driver that the session waits for the end of the load.
    final func requireEnd() { listener.withLock { $0 }?.requireEnd() }

    final override func didStop() { listener.withLock { $0 }?.stopped() }

    // MARK: Suspension

    private let suspended = Atomic<Bool>(false)

    /// While true, no byte is read or written on an open connection, and the idle and connect timeouts do not run.
    final var isSuspended: Bool { suspended.load(ordering: .relaxed) }

    final func setSuspended(_ isSuspended: Bool) {
        let wasSuspended = suspended.exchange(isSuspended, ordering: .sequentiallyConsistent)
        guard wasSuspended != isSuspended else { return }
        setHoldsAttempts(isSuspended)
        if !isSuspended { restartIdle() }
        // The woken waits check the state again: waits for the peer begin to wait for the resumption, and waits for it
        // end.
        wake()
    }

    /// Restarts the idle timeout, so that the time of a suspension does not count as the peer's silence.
    private func restartIdle() {
        let seen = idleDeadline.load(ordering: .relaxed)
        guard seen != .max else { return }
        _ = idleDeadline.compareExchange(expected: seen, desired: clock.now() &+ idleLimit, ordering: .relaxed)
    }

    /// Waits until the load is not suspended, or was stopped.
    final func untilResumed() async {
        guard isSuspended else { return }
        await Poller.shared.wait(until: self) { _ -> Void? in
            suspended.load(ordering: .sequentiallyConsistent) ? nil : ()
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// A place where one task waits. Every wait in this library uses one: for a socket, a timer, a free connection, a name
// lookup.
//
// Rule 1: slots are immortal and recycled. The kernel, a timer or a cancellation may notify a slot after its borrower
// has returned it; the next borrower sees that as a spurious wake-up.
// Rule 2: so every waiter loops and checks its condition again after each wake-up.

import Synchronization

#if URLLOADING_THREAD_SANITIZER
import URLLoadingCSystem
#endif

/// A binary semaphore for one waiting task. Its state is `idle`, `ready` (signalled) or the task's continuation.
package struct Gate: ~Copyable, Sendable {
    private static let idle: UInt = 0
    private static let ready: UInt = 1
    private let state = Atomic<UInt>(0)

    /// Signals: resumes the waiting task, or lets the next wait return at once.
    func open() {
        while true {
            let seen = state.load(ordering: .acquiring)
            if seen == Self.ready { return }
            let next = seen == Self.idle ? Self.ready : Self.idle
            guard state.compareExchange(expected: seen, desired: next, ordering: .acquiringAndReleasing).exchanged
            else { continue }
            if seen != Self.idle { unsafeBitCast(seen, to: UnsafeContinuation<Void, Never>.self).resume() }
            return
        }
    }

    /// Consumes a signal that has come already. Returns false if there is none.
    func take() -> Bool {
        state.load(ordering: .relaxed) == Self.ready
            && state.compareExchange(expected: Self.ready, desired: Self.idle, ordering: .acquiringAndReleasing)
                .exchanged
    }

    var hasWaiter: Bool { state.load(ordering: .acquiring) > Self.ready }

    /// Waits for the next signal, and consumes it.
    func pass() async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let parked = unsafeBitCast(continuation, to: UInt.self)
            if state.compareExchange(expected: Self.idle, desired: parked, ordering: .acquiringAndReleasing).exchanged {
                return
            }
            state.store(Self.idle, ordering: .releasing)
            continuation.resume()
        }
        #if URLLOADING_THREAD_SANITIZER
        // When a continuation is resumed before its task has suspended, the task runs on. In this one case the runtime
        // tells the sanitizer of the resumption but not of its arrival.
        withUnsafeCurrentTask {
            if let task = $0 { csys_sanitizer_acquire(unsafeBitCast(task, to: UnsafeRawPointer.self)) }
        }
        #endif
    }
}

package final class PollSlot: Sendable {
    package enum Interest: Sendable { case read, write }

    let readable = Gate()
    let writable = Gate()
    /// A second slot that receives every notification of this one, for a task that watches several sockets.
    let relay = Atomic<UInt>(0)
    /// See `Poller.waitBriefly`.
    let brief = BriefWait()
    /// See `gatherReads`.
    let gathers = Atomic<Bool>(false)
    /// While set, readability also wakes a writer, because a peer may answer before it has read the whole request.
    private let wakesWriterForReads = Atomic<Bool>(false)
    /// True while the waiter waits for something local (a slot of the pool, a decision, a handler) and not for its
    /// peer. Set by such a wait.
    let waitsLocally = Atomic<Bool>(false)
    /// True if the peer may have closed. Data and the end of the stream often arrive as one event.
    private let isEndNoted = Atomic<Bool>(false)
    /// See `mayHoldInput`.
    private let inputMark = Atomic<Bool>(false)
    /// See `share`; 0 for none.
    private let socket = Atomic<UInt>(0)

    func notify(readable isReadable: Bool, writable isWritable: Bool) {
        if isReadable { readable.open() }
        if isWritable || (isReadable && wakesWriterForReads.load(ordering: .acquiring)) { writable.open() }
        if let pointer = UnsafeRawPointer(bitPattern: relay.load(ordering: .acquiring)) {
            Unmanaged<PollSlot>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.receiveRelayed() }
        }
    }

    private func receiveRelayed() {
        readable.open()
        if wakesWriterForReads.load(ordering: .acquiring) { writable.open() }
    }

    // MARK: Input

    // The kernel notifies of changes only. A task that has used up a notification, and then reads bytes that lay above
    // the socket (read ahead with a TLS handshake, or with a proxy's reply), must not wait before it has read the
    // socket as well. So the slot keeps a mark from each notification to the read that finds no more: every reader of a
    // socket calls `beginRead` first, and `leaveInput` if it may have left something; `Poller.park` begins no wait for
    // input while the mark is set.

    /// Whether the socket may hold input of which no further notification comes.
    package var mayHoldInput: Bool { inputMark.load(ordering: .acquiring) }

    /// Called by the poller for a notification of input, and of the peer's end. A late notification of a socket that is
    /// closed may meet a slot that has no socket now; its user would never remove the mark.
    func noteInput(isEnd: Bool) {
        guard brief.descriptor.load(ordering: .acquiring) >= 0 else { return }
        if isEnd { isEndNoted.store(true, ordering: .releasing) }
        inputMark.store(true, ordering: .releasing)
    }

    /// Removes the mark before the socket is read: input that arrives from now on is notified.
    /// - Returns: whether the peer's end was notified. An unconnected socket notifies of one too.
    package func beginRead() -> Bool {
        if inputMark.load(ordering: .relaxed) { _ = inputMark.exchange(false, ordering: .acquiringAndReleasing) }
        return isEndNoted.load(ordering: .relaxed) && isEndNoted.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Sets the mark after a read that may have left something: it has filled its buffer, or the peer's end was
    /// notified and is still to be read.
    func leaveInput(isEnd: Bool) { noteInput(isEnd: isEnd) }

    /// Whether a task is parked here now; lets tests end waits that have really begun.
    package var hasWaiter: Bool { readable.hasWaiter || writable.hasWaiter }
    /// Whether a task is parked here until its peer acts.
    var awaitsPeer: Bool { hasWaiter && !waitsLocally.load(ordering: .relaxed) }

    /// Notes that the task that waits here waits for a socket which another task reads, or waits to read, at `socket`.
    package func share(_ socket: PollSlot) {
        self.socket.store(UInt(bitPattern: Unmanaged.passUnretained(socket).toOpaque()), ordering: .releasing)
    }

    /// Whether another task reads the shared socket at this moment, or is about to: what the task here waits for may
    /// have arrived.
    var awaitsReader: Bool {
        guard let pointer = UnsafeRawPointer(bitPattern: socket.load(ordering: .acquiring)) else { return false }
        return Unmanaged<PollSlot>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.mayHoldInput || !$0.hasWaiter }
    }

    /// Wakes the tasks that wait here, readers and writers.
    package func wake() { notify(readable: true, writable: true) }

    /// While set, data arrives so fast that waking for each arrival costs more than reading it: the poller lets more
    /// data gather first.
    package func gatherReads(_ on: Bool) {
        guard gathers.exchange(on, ordering: .relaxed) != on else { return }
        Poller.shared.gathering.add(on ? 1 : -1, ordering: .relaxed)
    }

    package func wakeWriterForReads(_ on: Bool) { wakesWriterForReads.store(on, ordering: .releasing) }

    /// Forwards this slot's notifications to `other` from now on. Slots are immortal, so a late notification is
    /// harmless.
    package func relay(to other: PollSlot) {
        Poller.shared.watch(self)
        relay.store(UInt(bitPattern: Unmanaged.passUnretained(other).toOpaque()), ordering: .releasing)
    }

    package func unrelay() { relay.store(0, ordering: .releasing) }

    /// Clears all notifications and settings.
    package func reset() {
        _ = readable.take()
        _ = writable.take()
        wakesWriterForReads.store(false, ordering: .releasing)
        gatherReads(false)
        brief.reset()
        inputMark.store(false, ordering: .releasing)
        isEndNoted.store(false, ordering: .releasing)
        waitsLocally.store(false, ordering: .relaxed)
        socket.store(0, ordering: .releasing)
        unrelay()
    }
}

// A place where one task waits. Everything that waits in this library waits here: for a socket, a
// timer, a free connection, a name.
//
// Rule 1: slots are immortal and recycled. The kernel, a timer or a cancellation may notify a slot
// after its borrower has left; the next borrower sees that as a spurious wake-up.
// Rule 2: so whoever waits does so in a loop that looks again at what it waits for.

import Synchronization

#if URLLOADING_THREAD_SANITIZER
import URLLoadingCSystem
#endif

/// A binary semaphore with room for one waiting task: ready, idle, or the task's continuation.
package struct Gate: ~Copyable, Sendable {
    private static let idle: UInt = 0
    private static let ready: UInt = 1
    private let state = Atomic<UInt>(0)

    /// Opens the gate for the waiting task, or for the next one that comes.
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

    /// Takes an opening that is already there.
    func take() -> Bool {
        state.load(ordering: .relaxed) == Self.ready
            && state.compareExchange(expected: Self.ready, desired: Self.idle, ordering: .acquiringAndReleasing)
                .exchanged
    }

    var hasWaiter: Bool { state.load(ordering: .acquiring) > Self.ready }

    /// Waits for the next opening.
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
        // A continuation resumed before its task has stopped running lets it run on; the runtime tells
        // the sanitizer of the resumption, but in this one case not of its arrival.
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
    /// Another slot that hears of everything this one hears of: one task watching several sockets.
    let relay = Atomic<UInt>(0)
    /// See `gatherReads`.
    let gathers = Atomic<Bool>(false)
    /// While set, readiness to read also wakes a writer: a peer may answer before it has read all.
    private let writerHearsReads = Atomic<Bool>(false)
    /// Whoever waits here waits for this side: a turn, a decision, a handler. Set by such a wait.
    let isAside = Atomic<Bool>(false)
    /// An end may have been heard. Bytes and the end behind them are often one event: whoever reads the
    /// bytes spends the word of `readable`, and this one stays.
    private let heardEnd = Atomic<Bool>(false)

    func notify(readable isReadable: Bool, writable isWritable: Bool) {
        if isReadable { readable.open() }
        if isWritable || (isReadable && writerHearsReads.load(ordering: .acquiring)) { writable.open() }
        if let pointer = UnsafeRawPointer(bitPattern: relay.load(ordering: .acquiring)) {
            Unmanaged<PollSlot>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.hearRelayed() }
        }
    }

    private func hearRelayed() {
        readable.open()
        if writerHearsReads.load(ordering: .acquiring) { writable.open() }
    }

    func hearEnd() { heardEnd.store(true, ordering: .releasing) }

    /// Takes the word of an end. A socket that is not connected yet gives it too: it has to be looked into.
    func takeEnd() -> Bool {
        heardEnd.load(ordering: .relaxed) && heardEnd.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Whether a task is parked here at this moment: tests end waits that have truly begun.
    package var hasWaiter: Bool { readable.hasWaiter || writable.hasWaiter }
    /// Whether a task is parked here until its peer does something.
    var awaitsPeer: Bool { hasWaiter && !isAside.load(ordering: .relaxed) }

    /// Wakes whoever waits here, for whatever.
    package func wake() { notify(readable: true, writable: true) }

    /// While set, bytes come so fast that waking for each arrival costs more than reading it: the
    /// poller lets a little more gather first.
    package func gatherReads(_ on: Bool) { gathers.store(on, ordering: .relaxed) }

    package func hearReadsWhileWriting(_ on: Bool) { writerHearsReads.store(on, ordering: .releasing) }

    /// From now on `other` hears what this slot hears. Slots are immortal, so a late word is harmless.
    package func relay(to other: PollSlot) {
        relay.store(UInt(bitPattern: Unmanaged.passUnretained(other).toOpaque()), ordering: .releasing)
    }

    package func unrelay() { relay.store(0, ordering: .releasing) }

    /// Forgets what was heard.
    package func reset() {
        _ = readable.take()
        _ = writable.take()
        writerHearsReads.store(false, ordering: .releasing)
        gathers.store(false, ordering: .relaxed)
        heardEnd.store(false, ordering: .releasing)
        isAside.store(false, ordering: .relaxed)
        unrelay()
    }
}

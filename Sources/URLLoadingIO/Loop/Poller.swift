// The one thread that waits for the kernel, and the one place that knows which sockets are ready.
//
// A task that finds its socket not ready parks on the socket's slot; the poller resumes it. Waking the
// thread for every single event would cost more than the request it belongs to, so under load it
// naps while events gather (`Pace`).
//
// It is a task executor too: tasks that prefer it run on the polling thread itself, which saves the
// last hand-over between threads. That is the caller's choice (`loopExecutor` in URLLoading).

import Synchronization
import URLLoadingCSystem

package final class Poller: Sendable {
    package static let shared = Poller()

    /// Negative (-errno) if the system refused: every registration then fails with that reason.
    private let poll: Int32
    private let wakeUp: Int32

    /// What others leave for the thread.
    private struct Inbox: Sendable {
        var timers = TimerQueue()
        var jobs: [UnownedJob] = []
    }
    private let inbox = Lock(Inbox())
    /// Until when the thread sleeps, set under the inbox's lock; `.min` while it is awake. What comes
    /// for an earlier moment must wake it.
    private let sleepsUntil = Atomic<Int64>(.min)

    private let free = Lock<[PollSlot]>([])
    private let lent = Atomic<Int>(0)

    /// Tasks that wait for their socket.
    private let waiting = Atomic<Int>(0)

    private static let batch = 256

    private init() {
        poll = csys_poll_create()
        wakeUp = poll < 0 ? poll : csys_wake_create(poll)
        guard wakeUp >= 0 else { return }
        let start = csys_thread_start(
            { context in
                guard let context else { return }
                Unmanaged<Poller>.fromOpaque(context).takeUnretainedValue().run()
            }, Unmanaged.passRetained(self).toOpaque(), "url-poller")
        if start != 0 { startFailure.store(start, ordering: .releasing) }
    }
    private let startFailure = Atomic<Int32>(0)

    // MARK: Slots

    /// Slots in use: what a test compares before and after.
    package var slotsInUse: Int { lent.load(ordering: .relaxed) }

    package func borrowSlot() -> PollSlot {
        lent.add(1, ordering: .relaxed)
        let recycled = free.withLock { $0.popLast() }
        if let recycled {
            recycled.reset()
            return recycled
        }
        let slot = PollSlot()
        // Immortal: the kernel and late timers may name it for ever.
        _ = Unmanaged.passRetained(slot)
        return slot
    }

    package func returnSlot(_ slot: PollSlot) {
        lent.subtract(1, ordering: .relaxed)
        slot.reset()
        free.withLock { $0.append(slot) }
    }

    /// Registers `descriptor` once, for its whole life; closing it ends the registration.
    package func register(_ descriptor: Int32, _ slot: PollSlot) throws(IOFailure) {
        let failure = startFailure.load(ordering: .acquiring)
        guard failure == 0 else { throw IOFailure(.system(failure), .open) }
        guard wakeUp >= 0 else { throw IOFailure(.system(-wakeUp), .open) }
        let result = csys_poll_add(poll, descriptor, Unmanaged.passUnretained(slot).toOpaque())
        guard result == 0 else { throw IOFailure(.system(-result), .open) }
    }

    // MARK: Waiting

    /// Waits until the slot hears something or the token is stopped; idle time counts.
    package func park(_ slot: PollSlot, _ interest: PollSlot.Interest, _ token: StopToken) async {
        switch interest {
        case .read: if slot.readable.take() { return }
        case .write: if slot.writable.take() { return }
        }
        guard token.stopReason == nil else { return }
        token.beginIdle()
        waiting.add(1, ordering: .relaxed)
        switch interest {
        case .read: await slot.readable.pass()
        case .write: await slot.writable.pass()
        }
        waiting.subtract(1, ordering: .relaxed)
        token.endIdle()
    }

    /// The same for one of several who share a socket: what others hear is no word from his peer, so his idle
    /// time runs from `start`; `nil` if he waits for something else, and it does not count.
    package func park(_ slot: PollSlot, _ interest: PollSlot.Interest, _ token: StopToken, idleSince start: Int64?)
        async
    {
        switch interest {
        case .read: if slot.readable.take() { return }
        case .write: if slot.writable.take() { return }
        }
        guard token.stopReason == nil else { return }
        slot.isAside.store(start == nil, ordering: .relaxed)
        if let start { token.beginIdle(since: start) }
        waiting.add(1, ordering: .relaxed)
        switch interest {
        case .read: await slot.readable.pass()
        case .write: await slot.writable.pass()
        }
        waiting.subtract(1, ordering: .relaxed)
        if start != nil { token.endIdle() }
        slot.isAside.store(false, ordering: .relaxed)
    }

    /// Waits on a slot that belongs to no socket: for a turn, a name, a timer. Idle time does not count.
    package func park(_ slot: PollSlot, until token: StopToken) async {
        guard token.stopReason == nil else { return }
        slot.isAside.store(true, ordering: .relaxed)
        await slot.readable.pass()
    }

    /// Waits on the slot of a socket for something else than the peer: idle time does not count.
    package func parkAside(_ slot: PollSlot, _ token: StopToken) async {
        guard token.stopReason == nil else { return }
        slot.isAside.store(true, ordering: .relaxed)
        await slot.writable.pass()
        slot.isAside.store(false, ordering: .relaxed)
    }

    /// The same while it is the peer that is waited for.
    func parkIdle(_ slot: PollSlot, _ token: StopToken) async {
        guard token.stopReason == nil else { return }
        token.beginIdle()
        await slot.readable.pass()
        token.endIdle()
    }

    /// True if all of these are floods: nobody else's answer waits meanwhile.
    private func areGathering(_ events: UnsafeMutableBufferPointer<csys_event>) -> Bool {
        events.allSatisfy { event in
            guard let key = event.key else { return false }
            return Unmanaged<PollSlot>.fromOpaque(key)._withUnsafeGuaranteedRef { $0.gathers.load(ordering: .relaxed) }
        }
    }

    private func dispatch(_ events: UnsafeMutableBufferPointer<csys_event>) {
        for event in events {
            guard let key = event.key else { continue }
            let ready = Int(event.ready)
            Unmanaged<PollSlot>.fromOpaque(key)._withUnsafeGuaranteedRef {
                if ready & CSYS_ENDED != 0 { $0.hearEnd() }
                $0.notify(readable: ready & CSYS_READABLE != 0, writable: ready & CSYS_WRITABLE != 0)
            }
        }
    }

    // MARK: Timers

    /// Monotonic nanoseconds: exact, and cheap but a few milliseconds coarse.
    package static func now() -> Int64 { csys_now() }
    package static func coarseNow() -> Int64 { csys_now_coarse() }

    /// Calls `target` on the poller's thread at `moment` (of `now()`).
    package func schedule(_ target: any TimerTarget, at moment: Int64) { add(moment, .object(target)) }

    /// Wakes whoever waits on `slot` at `moment`.
    package func schedule(_ slot: PollSlot, at moment: Int64) { add(moment, .slot(slot)) }

    private func add(_ moment: Int64, _ target: TimerQueue.Target) {
        guard moment != .max else { return }
        inbox.withLock { $0.timers.add(moment, target) }
        wakeIfAsleep(beyond: moment)
    }

    private func wakeIfAsleep(beyond moment: Int64) {
        if moment < sleepsUntil.load(ordering: .acquiring) { csys_wake(wakeUp) }
    }

    /// Sleeps until `moment`, or less if the token is stopped.
    package func sleep(until moment: Int64, _ token: StopToken) async throws(IOFailure) {
        try await LoopClock.system.sleep(until: moment, token)
    }

    // MARK: The thread

    private var mark: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    private func run() {
        csys_set_thread_mark(mark)
        var now = csys_now()
        var pace = Pace(now: now)
        var work = Work()
        var events = [csys_event](repeating: csys_event(), count: Self.batch)
        events.withUnsafeMutableBufferPointer { events in
            while true {
                let next = collect(&work, now)
                let ran = work.run(self, now)
                let count = csys_poll_wait(poll, events.baseAddress, Int32(events.count), wait(until: next))
                sleepsUntil.store(.min, ordering: .releasing)
                let heard = UnsafeMutableBufferPointer(rebasing: events[..<max(0, Int(count))])
                if !ran, !heard.isEmpty, areGathering(heard) { csys_nap(Pace.gathering) }
                dispatch(heard)
                now = csys_now()
                // Jobs on this thread are the same as naps: events gather while they run.
                guard !ran else { continue }
                let nap = pace.nap(events: heard.count, waiting: waiting.load(ordering: .relaxed), now: now)
                if nap > 0 { csys_nap(nap) }
            }
        }
    }

    /// Takes what has come for the thread. Returns until when it may sleep then.
    private func collect(_ work: inout Work, _ now: Int64) -> Int64 {
        inbox.withLock { inbox in
            swap(&inbox.jobs, &work.jobs)
            while let due = inbox.timers.popDue(at: now) { work.timers.append(due) }
            let next = work.isEmpty ? inbox.timers.next : .min
            sleepsUntil.store(next, ordering: .releasing)
            return next
        }
    }

    private func wait(until moment: Int64) -> Int64 {
        switch moment {
        case .max: -1
        case .min: 0
        default: max(0, moment - csys_now())
        }
    }

    /// The thread's own hands: its arrays come and go empty and keep their room.
    private struct Work {
        var jobs: [UnownedJob] = []
        var timers: [TimerQueue.Target] = []
        var isEmpty: Bool { jobs.isEmpty && timers.isEmpty }

        /// Does what was collected, and says whether there was anything.
        mutating func run(_ poller: Poller, _ now: Int64) -> Bool {
            guard !isEmpty else { return false }
            for timer in timers {
                switch timer {
                case .slot(let slot): slot.wake()
                case .object(let target): target.timerFired(now: now)
                }
            }
            timers.removeAll(keepingCapacity: true)
            for job in jobs { job.runSynchronously(on: poller.asUnownedTaskExecutor()) }
            jobs.removeAll(keepingCapacity: true)
            return true
        }
    }
}

// MARK: - The executor

extension Poller: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        inbox.withLock { $0.jobs.append(job) }
        if csys_thread_mark() != mark { wakeIfAsleep(beyond: .min) }
    }
}

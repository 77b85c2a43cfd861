// The one thread that waits for the kernel, and the one place that knows which sockets are ready.
//
// A task that finds its socket not ready parks on the socket's slot; the poller resumes it. Waking the
// thread for every single event would cost more than the request it belongs to, so under load
// (`Pace`) the thread naps while events gather, and tasks about to park ask the kernel themselves,
// without waiting, and resume everyone who is ready (`pollInline`).
//
// It is a task executor too: tasks that prefer it run on the polling thread itself, which saves the
// last hand-over between threads. That is the caller's choice (`LoopExecutor` in URLLoading).

import Synchronization
import CSystem

package final class Poller: Sendable {
    package static let shared = Poller()

    /// Negative (-errno) if the system refused: every registration then fails with that reason.
    private let poll: Int32
    private let wakeUp: Int32

    private let timers = Lock(TimerQueue())
    /// The moment the sleeping thread will wake by itself; a timer before it must wake the thread.
    private let sleepsUntil = Atomic<Int64>(.min)

    private let free = Lock<[PollSlot]>([])
    private let lent = Atomic<Int>(0)

    /// Set while somebody asks the kernel inline: a second asker would find nothing.
    private let asking = Atomic<Bool>(false)
    /// Tasks resumed and not parked again yet: while there are some, nobody needs to ask for more.
    private let running = Atomic<Int>(0)
    /// Tasks that wait for their socket.
    private let waiting = Atomic<Int>(0)
    /// Events found inline since the thread last looked.
    private let foundInline = Atomic<Int>(0)
    /// Whether tasks about to park should ask the kernel themselves.
    private let isBusy = Atomic<Bool>(false)

    private let jobs = Lock<[UnownedJob]>([])

    private static let batch = 256

    private init() {
        poll = csys_poll_create()
        wakeUp = poll < 0 ? poll : csys_wake_create(poll)
        guard wakeUp >= 0 else { return }
        let start = csys_thread_start({ context in
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
        if isBusy.load(ordering: .relaxed), csys_thread_mark() != mark { pollInline() }
        token.beginIdle()
        waiting.add(1, ordering: .relaxed)
        switch interest {
        case .read: await slot.readable.pass()
        case .write: await slot.writable.pass()
        }
        waiting.subtract(1, ordering: .relaxed)
        token.endIdle()
    }

    /// Waits on a slot that belongs to no socket: for a turn, a name, a timer. Idle time does not count.
    package func park(_ slot: PollSlot, until token: StopToken) async {
        guard token.stopReason == nil else { return }
        await slot.readable.pass()
    }

    /// The same while it is the peer that is waited for.
    func parkIdle(_ slot: PollSlot, _ token: StopToken) async {
        token.beginIdle()
        await park(slot, until: token)
        token.endIdle()
    }

    private func pollInline() {
        let before = running.subtract(1, ordering: .relaxed).oldValue
        guard before <= 1,
            asking.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged
        else { return }
        withUnsafeTemporaryAllocation(of: csys_event.self, capacity: Self.batch) { events in
            let count = csys_poll_wait(poll, events.baseAddress, Int32(events.count), 0)
            asking.store(false, ordering: .releasing)
            guard count > 0 else { return }
            foundInline.add(Int(count), ordering: .relaxed)
            let found = UnsafeMutableBufferPointer(rebasing: events[..<Int(count)])
            // The thread's own wake-up, taken from it: a timer or a job waits behind it.
            if found.contains(where: { $0.key == nil }) { csys_wake(wakeUp) }
            dispatch(found)
        }
    }

    /// True if all of these are floods: nobody else's answer waits meanwhile.
    private func areGathering(_ events: UnsafeMutableBufferPointer<csys_event>) -> Bool {
        events.allSatisfy { event in
            guard let key = event.key else { return false }
            return Unmanaged<PollSlot>.fromOpaque(key)._withUnsafeGuaranteedRef { $0.gathers.load(ordering: .relaxed) }
        }
    }

    private func dispatch(_ events: UnsafeMutableBufferPointer<csys_event>) {
        var resumed = 0
        for event in events {
            guard let key = event.key else { continue }
            let ready = Int(event.ready)
            resumed += Unmanaged<PollSlot>.fromOpaque(key)._withUnsafeGuaranteedRef {
                if ready & CSYS_ENDED != 0 { $0.hearEnd() }
                return $0.notify(readable: ready & CSYS_READABLE != 0, writable: ready & CSYS_WRITABLE != 0)
            }
        }
        // The count is a hint for `pollInline`; wake-ups by other means let it drift, so it is
        // set afresh by every batch.
        running.store(resumed, ordering: .relaxed)
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
        timers.withLock { $0.add(moment, target) }
        if moment < sleepsUntil.load(ordering: .sequentiallyConsistent) { csys_wake(wakeUp) }
    }

    /// Sleeps until `moment`, or less if the token is stopped.
    package func sleep(until moment: Int64, _ token: StopToken) async throws(IOFailure) {
        let slot = borrowSlot()
        token.attach(slot)
        defer {
            token.detach(slot)
            returnSlot(slot)
        }
        schedule(slot, at: moment)
        while Self.now() < moment {
            try token.check(.sleep)
            await park(slot, until: token)
        }
        try token.check(.sleep)
    }

    // MARK: The thread

    private var mark: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    private func run() {
        csys_set_thread_mark(mark)
        var pace = Pace(now: csys_now())
        var batch: [UnownedJob] = []
        var events = [csys_event](repeating: csys_event(), count: Self.batch)
        events.withUnsafeMutableBufferPointer { events in
            while true {
                let ran = runJobs(&batch)
                let next = ran ? .min : armSleep()
                let count = csys_poll_wait(poll, events.baseAddress, Int32(events.count), wait(until: next))
                sleepsUntil.store(.min, ordering: .sequentiallyConsistent)
                if count > 0 {
                    let heard = UnsafeMutableBufferPointer(rebasing: events[..<Int(count)])
                    if !ran, areGathering(heard) { csys_nap(Pace.gathering) }
                    dispatch(heard)
                }
                fireTimers()
                // Jobs on this thread are the same as naps: events gather while they run.
                guard !ran else { continue }
                let nap = pace.nap(
                    events: max(0, Int(count)) + foundInline.exchange(0, ordering: .relaxed),
                    waiting: waiting.load(ordering: .relaxed), now: csys_now())
                isBusy.store(pace.isBusy, ordering: .relaxed)
                if nap > 0 { csys_nap(nap) }
            }
        }
    }

    /// Publishes until when the thread is about to sleep, then looks once more for what came before
    /// anybody could know that it must be woken.
    private func armSleep() -> Int64 {
        let next = timers.withLock { $0.next }
        sleepsUntil.store(next, ordering: .sequentiallyConsistent)
        let late = timers.withLock { $0.next }
        return jobs.withLock { $0.isEmpty } ? min(next, late) : .min
    }

    private func wait(until moment: Int64) -> Int64 {
        switch moment {
        case .max: -1
        case .min: 0
        default: max(0, moment - csys_now())
        }
    }

    private func fireTimers() {
        guard timers.withLock({ $0.next }) != .max else { return }
        let now = csys_now()
        while let due = timers.withLock({ $0.popDue(at: now) }) {
            switch due {
            case .slot(let slot): slot.wake()
            case .object(let target): target.timerFired(now: now)
            }
        }
    }
}

// MARK: - The executor

extension Poller: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        guard csys_thread_mark() != mark else { return }
        if sleepsUntil.load(ordering: .sequentiallyConsistent) != .min { csys_wake(wakeUp) }
    }

    /// Runs what was queued when it began, and says whether there was anything. `batch` comes and
    /// goes empty: two arrays change places for ever.
    private func runJobs(_ batch: inout [UnownedJob]) -> Bool {
        jobs.withLock { swap(&$0, &batch) }
        guard !batch.isEmpty else { return false }
        for job in batch { job.runSynchronously(on: asUnownedTaskExecutor()) }
        batch.removeAll(keepingCapacity: true)
        return true
    }
}

// SPDX-License-Identifier: Apache-2.0

// In this folder: the one thread that waits for the kernel, the places where tasks wait, timers, locks (16 files: one
//     kind of wait each)

// The single thread that waits for the kernel and learns which sockets are ready.
//
// A task that finds its socket not ready parks on the socket's slot; the poller resumes it. Waking the thread for each
// event would cost more than the request that the event belongs to, so under load the thread naps while events gather
// (`Pace`).
//
// The poller is a task executor too: tasks that prefer it run on the polling thread itself, which saves the last
// hand-over between threads. The caller chooses that (`eventLoopExecutor` in URLLoading).

import Glibc
import Synchronization
import URLLoadingCSystem

package final class Poller: Sendable {
    package static let shared = Poller()

    /// Negative (-errno) until the system has created both: registrations fail with that error, and the thread goes on
    /// trying, because a process without free descriptors may have some later.
    private let poll = Atomic<Int32>(-1)
    private let wakeUpDescriptor = Atomic<Int32>(-1)
    /// 0 if the thread was started, otherwise why not (errno): whatever needs it tries again.
    private let startFailure = Atomic<Int32>(EAGAIN)

    /// Timers and jobs that other threads leave for the polling thread.
    private struct Inbox: Sendable {
        var timers = TimerQueue()
        var jobs: [UnownedJob] = []
    }
    private let inbox = Lock(Inbox())
    /// The moment until which the thread sleeps, set under the inbox's lock; `.min` while it is awake. A timer for an
    /// earlier moment must wake the thread.
    private let sleepsUntil = Atomic<Int64>(.min)

    private let free = Lock<[PollSlot]>([])
    private let lent = Atomic<Int>(0)

    /// The number of tasks that wait for their socket.
    private let waiting = Atomic<Int>(0)

    private static let batch = 256
    /// The nanoseconds between attempts to create the descriptors.
    private static let retryDelay: Int64 = 10_000_000

    private init() {
        makeDescriptors()
        startThread()
    }

    /// Called by one thread at a time.
    private func makeDescriptors() {
        let made = csys_poll_create()
        guard made >= 0 else { return poll.store(made, ordering: .releasing) }
        let wakeUp = csys_wake_create(made)
        guard wakeUp >= 0 else {
            _ = csys_close(made)
            return poll.store(wakeUp, ordering: .releasing)
        }
        wakeUpDescriptor.store(wakeUp, ordering: .releasing)
        poll.store(made, ordering: .releasing)
    }

    private func startThread() {
        let failure = startFailure.load(ordering: .acquiring)
        guard failure != 0,
            startFailure.compareExchange(expected: failure, desired: 0, ordering: .acquiringAndReleasing).exchanged
        else { return }
        let start = csys_thread_start(
            { context in
                guard let context else { return }
                Unmanaged<Poller>.fromOpaque(context).takeUnretainedValue().run()
            }, Unmanaged.passUnretained(self).toOpaque(), "url-poller")
        if start != 0 { startFailure.store(start, ordering: .releasing) }
    }

    // MARK: Slots

    /// The number of slots in use; tests compare it before and after.
    package var slotsInUse: Int { lent.load(ordering: .relaxed) }

    package func borrowSlot() -> PollSlot {
        lent.add(1, ordering: .relaxed)
        let recycled = free.withLock { $0.popLast() }
        if let recycled {
            recycled.reset()
            return recycled
        }
        let slot = PollSlot()
        // Immortal: the kernel and late timers may refer to it for ever.
        _ = Unmanaged.passRetained(slot)
        return slot
    }

    package func returnSlot(_ slot: PollSlot) {
        lent.subtract(1, ordering: .relaxed)
        slot.reset()
        free.withLock { $0.append(slot) }
    }

    /// What the kernel notifies of.
    package struct Interests: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }
        package static let input = Self(rawValue: Int32(CSYS_READABLE))
        package static let output = Self(rawValue: Int32(CSYS_WRITABLE))
    }

    /// Registers `descriptor` once for its whole life; closing the descriptor ends the registration.
    package func register(
        _ descriptor: Int32, _ slot: PollSlot, for interests: Interests = [.input, .output]
    ) throws(IOFailure) {
        startThread()
        let failure = startFailure.load(ordering: .acquiring)
        guard failure == 0 else { throw IOFailure(.system(failure), .open) }
        let poll = poll.load(ordering: .acquiring)
        guard poll >= 0 else { throw IOFailure(.system(-poll), .open) }
        // Before the first notification, of which the slot keeps a mark.
        slot.brief.descriptor.store(descriptor, ordering: .releasing)
        let result = csys_poll_add(
            poll, descriptor, Unmanaged.passUnretained(slot).toOpaque(), interests.rawValue)
        guard result == 0 else {
            slot.brief.descriptor.store(-1, ordering: .releasing)
            throw IOFailure(.system(-result), .open)
        }
    }

    /// Changes what the kernel notifies of, besides errors and hang-up.
    func setInterests(_ interests: Interests, in descriptor: Int32, _ slot: PollSlot) {
        _ = csys_poll_notify(
            poll.load(ordering: .relaxed), descriptor, Unmanaged.passUnretained(slot).toOpaque(), interests.rawValue)
    }

    /// Whether a task waits for its socket now.
    package var hasWaiters: Bool { waiting.load(ordering: .relaxed) > 0 }
    /// Whether so few sockets are open that a thread may wait for one of them. With many, tasks that do not wait may be
    /// ready to run.
    package var hasFewSockets: Bool { lent.load(ordering: .relaxed) <= Self.fewSlots }
    private static let fewSlots = 2

    // MARK: Waiting

    /// Waits until the slot is notified or the token is stopped; the wait counts as idle time.
    package func park(_ slot: PollSlot, _ interest: PollSlot.Interest, _ token: StopToken) async {
        switch interest {
        case .read:
            if slot.readable.take() { return }
            // A notification was used up and not followed by a read of the socket. The yield keeps a transport that
            // never reads it from occupying its thread.
            if slot.mayHoldInput { return await Task.yield() }
        case .write: if slot.writable.take() { return }
        }
        guard token.stopReason == nil else { return }
        watch(slot)
        token.beginIdle()
        let isAlone = waiting.add(1, ordering: .relaxed).oldValue == 0 && interest == .read
        let start = isAlone ? csys_now() : 0
        await pass(slot, interest)
        waiting.subtract(1, ordering: .relaxed)
        if isAlone { slot.brief.note(isQuick: csys_now() - start < BriefWait.longest) }
        token.endIdle()
    }

    /// Waits as one of several tasks that share a socket. Data for the other tasks is no sign of life from this task's
    /// peer, so its idle time runs from `start`; `nil` if the task waits for something else, and the wait does not
    /// count as idle time.
    package func park(_ slot: PollSlot, _ interest: PollSlot.Interest, _ token: StopToken, idleSince start: Int64?)
        async
    {
        switch interest {
        case .read:
            if slot.readable.take() { return }
            // A notification was used up and not followed by a read of the socket. The yield keeps a transport that
            // never reads it from occupying its thread.
            if slot.mayHoldInput { return await Task.yield() }
        case .write: if slot.writable.take() { return }
        }
        guard token.stopReason == nil else { return }
        watch(slot)
        slot.waitsLocally.store(start == nil, ordering: .relaxed)
        if let start { token.beginIdle(since: start) }
        waiting.add(1, ordering: .relaxed)
        await pass(slot, interest)
        waiting.subtract(1, ordering: .relaxed)
        if start != nil { token.endIdle() }
        slot.waitsLocally.store(false, ordering: .relaxed)
    }

    /// Inlined: a frame of its own would be allocated for each wait.
    @inline(__always)
    private func pass(_ slot: PollSlot, _ interest: PollSlot.Interest) async {
        switch interest {
        case .read:
            #if DEBUG
            let start = csys_now()
            await slot.readable.pass()
            LostWakeUp.look(at: slot, waitingSince: start)
            #else
            await slot.readable.pass()
            #endif
        case .write: await slot.writable.pass()
        }
    }

    /// Waits on a slot that belongs to no socket: for a slot of the pool, a name lookup, a timer. The wait does not
    /// count as idle time.
    package func park(_ slot: PollSlot, until token: StopToken) async {
        guard token.stopReason == nil else { return }
        slot.waitsLocally.store(true, ordering: .relaxed)
        await slot.readable.pass()
    }

    /// Waits on a socket's slot for something other than the peer; the wait does not count as idle time.
    package func parkUntimed(_ slot: PollSlot, _ token: StopToken) async {
        guard token.stopReason == nil else { return }
        watch(slot)
        slot.waitsLocally.store(true, ordering: .relaxed)
        await slot.writable.pass()
        slot.waitsLocally.store(false, ordering: .relaxed)
    }

    /// Waits on a slot that belongs to no socket while the remote side is awaited; the wait counts as idle time.
    package func parkIdle(_ slot: PollSlot, _ token: StopToken) async {
        guard token.stopReason == nil else { return }
        token.beginIdle()
        await slot.readable.pass()
        token.endIdle()
    }

    /// Whether the caller is to nap while the data of a fast body gathers: a nap takes no change of threads, a wait
    /// takes two. It is to wait instead if there are several such bodies or many sockets, because the thread has other
    /// work then, or if this is the polling thread, which naps itself.
    /// - Parameter ownSlots: the slots that the body's connection has beyond that of its socket.
    package func mayNap(ownSlots: Int = 0) -> Bool {
        gathering.load(ordering: .relaxed) == 1 && lent.load(ordering: .relaxed) <= Self.fewSlots + ownSlots
            && !isCurrentThread
    }

    /// Naps in the caller's thread, after ``mayNap(ownSlots:)``.
    package func nap() { csys_nap(Pace.gathering) }

    /// Naps if ``mayNap(ownSlots:)`` says so, and returns whether it did.
    package func napIfAlone() -> Bool {
        guard mayNap() else { return false }
        nap()
        return true
    }

    /// The number of sockets whose data may gather.
    let gathering = Atomic<Int>(0)

    /// Returns whether all events come from sockets whose data may gather (`gatherReads`), so that no other task is
    /// delayed meanwhile.
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
                if ready & CSYS_READABLE != 0 { $0.noteInput(isEnd: ready & CSYS_ENDED != 0) }
                $0.notify(readable: ready & CSYS_READABLE != 0, writable: ready & CSYS_WRITABLE != 0)
            }
        }
    }

    // MARK: Timers

    /// Monotonic nanoseconds; `coarseNow` is cheaper, but only accurate to a few milliseconds.
    package static func now() -> Int64 { csys_now() }
    package static func coarseNow() -> Int64 { csys_now_coarse() }

    /// Calls `target` on the poller's thread at `moment` (in the time of `now()`).
    package func schedule(_ target: any TimerTarget, at moment: Int64) { add(moment, .object(target)) }

    /// Wakes the task that waits on `slot` at `moment`.
    package func schedule(_ slot: PollSlot, at moment: Int64) { add(moment, .slot(slot)) }

    private func add(_ moment: Int64, _ target: TimerQueue.Target) {
        guard moment != .max else { return }
        inbox.withLock { $0.timers.add(moment, target) }
        wakeIfAsleep(beyond: moment)
    }

    #if DEBUG
    /// How often the thread has asked the kernel and passed on what it heard.
    let turns = Atomic<Int>(0)
    /// Lets the thread ask the kernel once more.
    func turn() { csys_wake(wakeUpDescriptor.load(ordering: .relaxed)) }
    #endif

    private func wakeIfAsleep(beyond moment: Int64) {
        startThread()
        if moment < sleepsUntil.load(ordering: .acquiring) { csys_wake(wakeUpDescriptor.load(ordering: .relaxed)) }
    }

    /// Sleeps until `moment`; throws earlier if the token is stopped.
    package func sleep(until moment: Int64, _ token: StopToken) async throws(IOFailure) {
        try await LoopClock.system.sleep(until: moment, token)
    }

    // MARK: The thread

    private var mark: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }
    /// Whether the caller runs in the polling thread.
    var isCurrentThread: Bool { csys_thread_mark() == mark }

    private func run() {
        csys_set_thread_mark(mark)
        var now = csys_now()
        var pace = Pace(now: now)
        var work = Work()
        // Timers and jobs need no descriptor.
        while poll.load(ordering: .acquiring) < 0 {
            _ = collect(&work, now)
            sleepsUntil.store(.min, ordering: .releasing)
            if !work.run(self, now) { csys_nap(Self.retryDelay) }
            makeDescriptors()
            now = csys_now()
        }
        let poll = poll.load(ordering: .acquiring)
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
                #if DEBUG
                turns.add(1, ordering: .releasing)
                #endif
                now = csys_now()
                // Jobs on this thread have the effect of a nap: events gather while they run.
                guard !ran else { continue }
                let nap = pace.nap(events: heard.count, waiting: waiting.load(ordering: .relaxed), now: now)
                if nap > 0 { csys_nap(nap) }
            }
        }
    }

    /// Moves the inbox's jobs and due timers into `work`. Returns the moment until which the thread may sleep
    /// afterwards.
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

    /// The polling thread's own copy of jobs and due timers. The arrays are emptied and reused, so they keep their
    /// capacity.
    private struct Work {
        var jobs: [UnownedJob] = []
        var timers: [TimerQueue.Target] = []
        var isEmpty: Bool { jobs.isEmpty && timers.isEmpty }

        /// Runs the collected timers and jobs. Returns whether there were any.
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
        if !isCurrentThread { wakeIfAsleep(beyond: .min) }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoadingCSystem
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

/// The pure parts of the loop, and waits without sockets.
@Suite(.timeLimit(.minutes(4)))
struct LoopTests {
    private final class Target: TimerTarget {
        let number: Int
        private let fired = Lock<[Int64]>([])
        private let slot: PollSlot?
        init(_ number: Int, waking slot: PollSlot? = nil) {
            self.number = number
            self.slot = slot
        }
        var moments: [Int64] { fired.withLock { $0 } }
        func timerFired(now: Int64) {
            fired.withLock { $0.append(now) }
            slot?.wake()
        }
    }

    @Test("Timers fire in order, and none before its time", arguments: 0..<8)
    func timerQueue(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = TimerQueue()
        var waiting: [Int64] = []
        var now: Int64 = 0
        for number in 0..<500 {
            if Int.random(in: 0..<3, using: &random) > 0 {
                let moment = now + Int64.random(in: -5..<200, using: &random)
                queue.add(moment, .object(Target(number)))
                waiting.append(moment)
            } else {
                now += Int64.random(in: 0..<60, using: &random)
                waiting.sort()
                while let next = waiting.first, next <= now {
                    #expect(queue.next == next)
                    #expect(queue.popDue(at: now) != nil)
                    waiting.removeFirst()
                }
                #expect(queue.popDue(at: now) == nil)
            }
            #expect(queue.count == waiting.count)
            #expect(queue.next == waiting.min() ?? .max)
        }
    }

    @Test("The poller does not nap with few tasks or few events, and never naps long")
    func pace() {
        var calm = Pace(now: 0)
        for step in 1...100 { #expect(calm.nap(events: 1, waiting: 1000, now: Int64(step) * 1_000_000) == 0) }
        var few = Pace(now: 0)
        for step in 1...100 { #expect(few.nap(events: 100, waiting: 15, now: Int64(step) * 250_000) == 0) }
        var busy = Pace(now: 0)
        #expect(busy.nap(events: 100, waiting: 64, now: 100_000) == 0, "a period has not passed")
        let nap = busy.nap(events: 100, waiting: 64, now: 250_000)
        #expect(nap == 250_000 / 200 * 32)
        #expect(busy.nap(events: 10, waiting: 100_000, now: 500_000) == 250_000, "the longest")
        #expect(busy.nap(events: 1000, waiting: 16, now: 750_000) == 0, "too short to be worth it")
        #expect(busy.nap(events: 0, waiting: 64, now: 10_000_000) == 0)
    }

    @Test("A token keeps its first reason and wakes all attached slots")
    func stopToken() async throws {
        let token = StopToken()
        #expect(token.stopReason == nil)
        try token.check(.read)
        let slots = (0..<2).map { _ in Poller.shared.borrowSlot() }
        defer { for slot in slots { Poller.shared.returnSlot(slot) } }
        // Not borrowed: a slot may still be woken by an event of its previous user (slot rule 2).
        let detached = PollSlot()
        for slot in slots + [detached] { token.attach(slot) }
        let waiting = slots.map { slot in
            // In a loop for the same reason.
            Task { while token.stopReason == nil { await Poller.shared.park(slot, until: token) } }
        }
        for slot in slots { try await slot.eventuallyParked() }
        token.detach(detached)
        #expect(token.stop(.idle))
        #expect(!token.stop(.cancelled))
        for task in waiting { await task.value }
        #expect(token.stopReason == .idle)
        #expect(!detached.takesRead, "detached")
        let error = #expect(throws: IOFailure.self) { try token.check(.connect) }
        #expect(stopReason(error) == .idle)
        #expect(error?.operation == .connect)
        // A wait that begins after the stop returns at once.
        await Poller.shared.park(detached, until: token)
        await Poller.shared.park(detached, .write, token)
    }

    @Test("The idle clock runs only while waiting for the peer")
    func idleClock() {
        let token = StopToken(idleLimit: 1_000)
        #expect(token.idleDeadline.load(ordering: .relaxed) == .max)
        token.beginIdle()
        #expect(token.idleDeadline.load(ordering: .relaxed) < .max)
        token.endIdle()
        #expect(token.idleDeadline.load(ordering: .relaxed) == .max)
        let patient = StopToken()
        patient.beginIdle()
        #expect(patient.idleDeadline.load(ordering: .relaxed) == .max)
    }

    @Test("A gate remembers one wake-up and no more")
    func gate() async {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        #expect(!slot.takesRead)
        for _ in 1...2 {
            slot.readable.open()
        }
        #expect(slot.takesRead)
        #expect(!slot.takesRead)
        slot.wake()
        await slot.readable.pass()
        await slot.writable.pass()
        #expect(!slot.takesRead)
        slot.wakeWriterForReads(true)
        slot.notify(readable: true, writable: false)
        #expect(slot.takesWrite && slot.takesRead)
        slot.wakeWriterForReads(false)
        slot.notify(readable: true, writable: false)
        #expect(!slot.takesWrite && slot.takesRead)
        // A late notification of a socket that is gone leaves no mark.
        slot.noteInput(isEnd: true)
        #expect(!slot.mayHoldInput)
        slot.brief.descriptor.store(0, ordering: .relaxed)
        slot.noteInput(isEnd: true)
        #expect(slot.mayHoldInput)
        #expect(slot.beginRead() && !slot.mayHoldInput)
        #expect(!slot.beginRead())
    }

    @Test("A sleep ends at its time or when its token is stopped")
    func sleep() async throws {
        let moment = Poller.now() + 5_000_000
        try await Poller.shared.sleep(until: moment, StopToken())
        #expect(Poller.now() >= moment)
        try await Poller.shared.sleep(until: 0, StopToken())
        let token = StopToken()
        let sleeper = Task { try await Poller.shared.sleep(until: Poller.now() + 600_000_000_000, token) }
        token.stop(.deadline)
        let error = await #expect(throws: IOFailure.self) { try await sleeper.value }
        #expect(stopReason(error) == .deadline)
        #expect(error?.operation == .sleep)
    }

    @Test("Many sleepers wake, none before its time")
    func manySleepers() async throws {
        try await withThrowingTaskGroup { group in
            for number in 0..<200 {
                group.addTask {
                    let moment = Poller.now() + Int64(number % 20) * 500_000
                    try await Poller.shared.sleep(until: moment, StopToken())
                    #expect(Poller.now() >= moment)
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("A timer fires once, not before its time; a timer without a time never fires")
    func timerTarget() async throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        let target = Target(1, waking: slot)
        let moment = Poller.now() + 2_000_000
        Poller.shared.schedule(target, at: .max)
        Poller.shared.schedule(target, at: moment)
        while target.moments.isEmpty { await Poller.shared.park(slot, until: StopToken()) }
        #expect(target.moments.count == 1)
        #expect(target.moments.allSatisfy { $0 >= moment })
    }

    @Test("The poller runs tasks that prefer its executor")
    func executor() async {
        let values = await withTaskExecutorPreference(Poller.shared) {
            await withTaskGroup { group in
                for number in 0..<100 {
                    group.addTask {
                        await Task.yield()
                        return number
                    }
                }
                return await group.reduce(0, +)
            }
        }
        #expect(values == 4950)
    }
}

// `#expect` copies its operands, and a gate cannot be copied.
extension PollSlot {
    fileprivate var takesRead: Bool { readable.take() }
    fileprivate var takesWrite: Bool { writable.take() }
}

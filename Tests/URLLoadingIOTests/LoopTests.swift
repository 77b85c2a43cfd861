import Synchronization
import Testing
import URLLoadingCSystem
import URLLoadingTesting

@testable import URLLoadingIO

/// The pure parts of the loop, and the waits that need no socket.
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

    @Test("timers come out in order, and none before its moment", arguments: 0..<8)
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

    @Test("the pace is calm with few tasks or few events, and never naps long")
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

    @Test("a token keeps its first reason, and wakes all that is attached")
    func stopToken() async throws {
        let token = StopToken()
        #expect(token.stopReason == nil)
        try token.check(.read)
        let slots = (0..<3).map { _ in Poller.shared.borrowSlot() }
        defer { for slot in slots { Poller.shared.returnSlot(slot) } }
        for slot in slots { token.attach(slot) }
        let waiting = slots.dropLast().map { slot in
            // In a loop: a slot may still hear of its last borrower (slot rule 2).
            Task { while token.stopReason == nil { await Poller.shared.park(slot, until: token) } }
        }
        for slot in slots.dropLast() { while !slot.hasWaiter { try await Task.sleep(for: .microseconds(200)) } }
        token.detach(slots[2])
        #expect(token.stop(.idle))
        #expect(!token.stop(.cancelled))
        for task in waiting { await task.value }
        #expect(token.stopReason == .idle)
        #expect(!slots[2].takesRead, "detached")
        let error = #expect(throws: IOFailure.self) { try token.check(.connect) }
        #expect(stopReason(error) == .idle)
        #expect(error?.operation == .connect)
        // Who waits after the stop does not wait.
        await Poller.shared.park(slots[2], until: token)
        await Poller.shared.park(slots[2], .write, token)
    }

    @Test("the idle clock runs only during a wait for the peer")
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

    @Test("a gate remembers one opening and no more")
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
        slot.hearReadsWhileWriting(true)
        slot.notify(readable: true, writable: false)
        #expect(slot.takesWrite && slot.takesRead)
        slot.hearReadsWhileWriting(false)
        slot.notify(readable: true, writable: false)
        #expect(!slot.takesWrite && slot.takesRead)
        slot.hearEnd()
        #expect(slot.takeEnd())
        #expect(!slot.takeEnd())
    }

    @Test("sleep lasts until its moment, or until its token is stopped")
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

    @Test("many sleepers wake, each not before its moment")
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

    @Test("a timer calls its target once, not before its moment; one without a moment never")
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

    @Test("the poller runs tasks that prefer it")
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

// `#expect` copies what it looks into, and a gate cannot be.
extension PollSlot {
    fileprivate var takesRead: Bool { readable.take() }
    fileprivate var takesWrite: Bool { writable.take() }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport

struct ManualTimeTests {
    /// Records its firing, and may set other timers then.
    final class Note: TimerTarget {
        let fired = Lock<[(Int, Int64)]>([])
        func timerFired(now: Int64) {}
        func timer(_ number: Int, then: @escaping @Sendable (Int64) -> Void = { _ in }) -> any TimerTarget {
            One(note: self, number: number, then: then)
        }
        final class One: TimerTarget {
            let note: Note, number: Int, then: @Sendable (Int64) -> Void
            init(note: Note, number: Int, then: @escaping @Sendable (Int64) -> Void) {
                (self.note, self.number, self.then) = (note, number, then)
            }
            func timerFired(now: Int64) {
                note.fired.withLock { $0.append((number, now)) }
                then(now)
            }
        }
    }

    @Test("Timers fire by time, then in the order in which they were set, before the advance returns")
    func order() {
        let time = ManualTime()
        let clock = LoopClock(time)
        let note = Note()
        let start = time.now
        for (number, moment) in [(0, 5), (1, 3), (2, 5), (3, 3), (4, 9)] as [(Int, Int64)] {
            clock.schedule(note.timer(number), at: start + moment)
        }
        time.advance(by: 4)
        #expect(note.fired.withLock { $0.map(\.0) } == [1, 3] && clock.now() == start + 4)
        time.advance(by: 1)
        #expect(note.fired.withLock { $0.map(\.0) } == [1, 3, 0, 2])
        #expect(note.fired.withLock { $0.map(\.1) } == [3, 3, 5, 5].map { start + $0 })
        #expect(time.scheduled == 1)
    }

    @Test("A timer set during an advance fires in the same advance if it is due; an overdue timer fires at once")
    func nested() {
        let time = ManualTime()
        let clock = LoopClock(time)
        let note = Note()
        let start = time.now
        clock.schedule(
            note.timer(0) { now in
                clock.schedule(note.timer(1) { _ in clock.schedule(note.timer(3), at: now + 100) }, at: now + 2)
                clock.schedule(note.timer(2), at: now)
            }, at: start + 1)
        time.advance(by: 10)
        #expect(note.fired.withLock { $0.map(\.0) } == [0, 2, 1])
        #expect(clock.now() == start + 10 && time.scheduled == 1)
        time.advance(by: .max)
        #expect(time.scheduled == 0)
        time.advance(by: 5)
        #expect(time.now < .max)
    }

    @Test("A sleeper is woken by an advance and by a stop")
    func sleeping() async throws {
        let time = ManualTime()
        let clock = LoopClock(time)
        let moment = time.now + 1_000_000
        let sleeper = Task { try await clock.sleep(until: moment, StopToken()) }
        try await time.eventuallyTimers { $0 > 0 }
        time.advance(by: 1_000_000)
        try await sleeper.value
        let token = StopToken()
        let stopped = Task { try await clock.sleep(until: moment + 1, token) }
        token.stop(.cancelled)
        await #expect(throws: IOFailure.self) { try await stopped.value }
    }
}

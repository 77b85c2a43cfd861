// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing
import URLLoadingIO

@Suite(.timeLimit(.minutes(4))) struct BlockingThreadsTests {
    private static func wait(for flag: borrowing Atomic<Bool>) async throws {
        while !flag.load(ordering: .acquiring) { try await Task.sleep(for: .microseconds(200)) }
    }

    private final class Flags: Sendable {
        let hasBegun = Atomic(false)
        let ends = Atomic(false)
        let wasRun = Atomic(false)
    }

    @Test func `Work that blocks too long is abandoned, and work queued behind it is skipped`() async throws {
        let (threads, time, flags) = (BlockingThreads(limit: 1), ManualTime(), Flags())
        let token = StopToken(clock: LoopClock(time))
        let first = Task {
            await threads.call(token, until: 1000) { () -> Bool in
                flags.hasBegun.store(true, ordering: .releasing)
                while !flags.ends.load(ordering: .acquiring) { usleep(200) }
                return true
            }
        }
        try await Self.wait(for: flags.hasBegun)
        let isQueued = Task { await threads.call(token, until: 900) { flags.wasRun.store(true, ordering: .releasing) } }
        while time.scheduled < 2 { try await Task.sleep(for: .microseconds(200)) }
        time.advance(by: 2000)
        #expect(await first.value == nil)
        #expect(await isQueued.value == nil)
        flags.ends.store(true, ordering: .releasing)
        // The thread continues with work that came later.
        let last = await threads.call(token) { 3 }
        #expect(last == 3 && !flags.wasRun.load(ordering: .acquiring))
    }
}

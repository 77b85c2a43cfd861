// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport

@Suite(.timeLimit(.minutes(4))) struct BlockingThreadsTests {
    @Test func `Work that blocks too long is abandoned, and work queued behind it is skipped`() async throws {
        let (threads, time) = (BlockingThreads(limit: 1), ManualTime())
        let (hasBegun, ends, wasRun) = (Flag(), Flag(), Flag())
        let token = StopToken(clock: LoopClock(time))
        let first = Task {
            await threads.call(token, until: 1000) { () -> Bool in
                hasBegun.raise()
                ends.waitBlocking()
                return true
            }
        }
        try await hasBegun.wait()
        let isQueued = Task { await threads.call(token, until: 900) { wasRun.raise() } }
        try await time.eventuallyTimers { $0 >= 2 }
        time.advance(by: 2000)
        #expect(await first.value == nil)
        #expect(await isQueued.value == nil)
        ends.raise()
        // The thread continues with work that came later.
        let last = await threads.call(token) { 3 }
        #expect(last == 3 && !wasRun.value)
    }

    @Test func `Threads block the program's signals, but not those of a fault, whose handlers report crashes`() async {
        let token = StopToken()
        let blocked = await BlockingThreads(limit: 1).call(token, until: .max) { () -> [Int32] in
            var mask = sigset_t()
            pthread_sigmask(SIG_SETMASK, nil, &mask)
            return [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGTERM, SIGCHLD].filter {
                sigismember(&mask, $0) == 1
            }
        }
        #expect(blocked == [SIGTERM, SIGCHLD])
    }
}

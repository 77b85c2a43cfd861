// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingTesting

struct StopTokenTests {
    @Test("A token keeps its first reason")
    func first() {
        let token = StopToken()
        let stopped = [token.stop(.deadline), token.stop(.cancelled), token.stop(.idle)]
        #expect(stopped == [true, false, false])
        #expect(token.stopReason == .deadline)
        let isForgiven = token.clearIdleStop()
        #expect(!isForgiven && token.stopReason == .deadline)
    }

    @Test("An idle stop can be revoked, and may come again")
    func forgiving() {
        let token = StopToken()
        for _ in 0..<2 {
            let isStopped = token.stop(.idle)
            #expect(isStopped && token.stopReason == .idle)
            let forgiven = [token.clearIdleStop(), token.clearIdleStop()]
            #expect(forgiven == [true, false] && token.stopReason == nil)
        }
    }

    @Test("A stop that came after the idle stop takes effect when that is revoked")
    func later() {
        let token = StopToken()
        token.stop(.idle)
        let isFirst = token.stop(.cancelled)
        #expect(!isFirst && token.stopReason == .idle)
        _ = token.clearIdleStop()
        #expect(token.stopReason == .cancelled)
    }

    @Test("Revoking an idle stop loses no concurrent stop")
    func race() async {
        for _ in 0..<2000 {
            let token = StopToken()
            token.stop(.idle)
            await withTaskGroup { group in
                group.addTask { _ = token.clearIdleStop() }
                group.addTask { token.stop(.cancelled) }
            }
            if token.stopReason != .cancelled { Issue.record("\(String(describing: token.stopReason))") }
        }
    }

    @Test("An alarm wakes the waiters of its token, and counts as asleep until it ends")
    func alarm() async {
        let time = ManualTime()
        let clock: LoopClock
        clock = LoopClock(time)
        let token = StopToken(clock: clock)
        let slot = Poller.shared.borrowSlot()
        token.attach(slot)
        let alarm = Alarm(clock, at: time.now + 10, token)
        #expect(time.sleeping == 1)
        let waiting = Task { await Poller.shared.park(slot, until: token) }
        time.advance(by: 10)
        await waiting.value
        alarm.off()
        alarm.off()
        #expect(time.sleeping == 0)
        token.detach(slot)
        Poller.shared.returnSlot(slot)
    }
}

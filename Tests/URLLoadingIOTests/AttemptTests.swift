// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTesting

@testable import URLLoadingIO

/// The limit of an attempt ends the attempt but not the work.
@Suite(.timeLimit(.minutes(4)))
struct AttemptTests {
    @Test("An attempt fails after its limit, until it is ended")
    func limit() async {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        let attempt = TimedAttempt(token, timeout: 10)
        #expect(token.attempt == nil && attempt.timeLeft == 10)
        await token.attempting(attempt) {
            #expect(token.attempt === attempt && attempt.timeLeft == 10)
            clock.advance(by: .nanoseconds(9))
            #expect(throws: Never.self) { try token.check(.connect) }
            clock.advance(by: .nanoseconds(1))
            #expect(attempt.timeLeft == 0 && token.stopReason == nil)
            #expect(throws: IOFailure.self) { try token.check(.connect) }
        }
        #expect(throws: Never.self) { try token.check(.connect) }
        #expect(attempt.timeLeft == 0)
    }

    @Test("A resumed attempt has the rest of the limit, and the timer of the first part does not end it")
    func resumed() async {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        let attempt = TimedAttempt(token, timeout: 10)
        await token.attempting(attempt) { clock.advance(by: .nanoseconds(4)) }
        #expect(attempt.timeLeft == 6)
        clock.advance(by: .nanoseconds(100))
        await token.attempting(attempt) {
            clock.advance(by: .nanoseconds(5))
            #expect(throws: Never.self) { try token.check(.connect) }
            clock.advance(by: .nanoseconds(1))
            #expect(throws: IOFailure.self) { try token.check(.connect) }
        }
    }

    @Test("A paused limit continues from its remainder, and has no effect after the attempt has ended")
    func paused() async {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        let attempt = TimedAttempt(token, timeout: 10)
        #expect(attempt.pause() == nil)
        var again: Int64?
        await token.attempting(attempt) {
            clock.advance(by: .nanoseconds(4))
            let paused = attempt.pause()
            #expect(attempt.timeLeft == 6 && attempt.pause() == nil)
            clock.advance(by: .nanoseconds(100))
            attempt.resume(paused)
            clock.advance(by: .nanoseconds(5))
            #expect(throws: Never.self) { try token.check(.connect) }
            again = attempt.pause()
        }
        #expect(attempt.timeLeft == 1)
        attempt.resume(again)
        clock.advance(by: .nanoseconds(100))
        #expect(throws: Never.self) { try token.check(.connect) }
        #expect(attempt.timeLeft == 1)
    }

    @Test("Attempts of two tasks for one token have separate limits")
    func twoAtOnce() async {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        let (short, long) = (TimedAttempt(token, timeout: 10), TimedAttempt(token, timeout: 30))
        await token.attempting(long) {
            async let failure: Bool = token.attempting(short) {
                clock.advance(by: .nanoseconds(10))
                do throws(IOFailure) { try token.check(.connect) } catch { return true }
                return false
            }
            #expect(await failure)
            // The end of the short attempt does not change the limit of the long one.
            #expect(throws: Never.self) { try token.check(.connect) }
            clock.advance(by: .nanoseconds(20))
            #expect(throws: IOFailure.self) { try token.check(.connect) }
        }
    }

    @Test("An attempt for one token does not limit another token")
    func otherToken() async {
        let clock = ManualClock()
        let (token, other) = (StopToken(clock: LoopClock(clock.time)), StopToken(clock: LoopClock(clock.time)))
        await token.attempting(TimedAttempt(token, timeout: 1)) {
            clock.advance(by: .nanoseconds(1))
            #expect(throws: IOFailure.self) { try token.check(.connect) }
            #expect(throws: Never.self) { try other.check(.connect) }
        }
    }

    @Test("A stop has precedence over the limit of an attempt")
    func stopped() async {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        await token.attempting(TimedAttempt(token, timeout: 1)) {
            clock.advance(by: .nanoseconds(1))
            token.stop(.cancelled)
            do throws(IOFailure) {
                try token.check(.connect)
                Issue.record("no error")
            } catch {
                if case .stopped(.cancelled) = error.code {} else { Issue.record("\(error)") }
            }
        }
    }
}

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
        #expect(token.attempt == nil && !attempt.isOver)
        await token.attempting(attempt) {
            #expect(token.attempt === attempt)
            clock.advance(by: .nanoseconds(9))
            #expect(throws: Never.self) { try token.check(.connect) }
            clock.advance(by: .nanoseconds(1))
            #expect(attempt.isOver && token.stopReason == nil)
            #expect(throws: IOFailure.self) { try token.check(.connect) }
        }
        #expect(throws: Never.self) { try token.check(.connect) }
        #expect(attempt.isOver)
    }

    @Test("A resumed attempt has the rest of the limit, and the timer of the first part does not end it")
    func resumed() async {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        let attempt = TimedAttempt(token, timeout: 10)
        await token.attempting(attempt) { clock.advance(by: .nanoseconds(4)) }
        clock.advance(by: .nanoseconds(100))
        await token.attempting(attempt) {
            clock.advance(by: .nanoseconds(5))
            #expect(throws: Never.self) { try token.check(.connect) }
            clock.advance(by: .nanoseconds(1))
            #expect(throws: IOFailure.self) { try token.check(.connect) }
        }
    }

    @Test("A held limit continues from its remainder, and has no effect after the attempt has ended")
    func held() async {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        let attempt = TimedAttempt(token, timeout: 10)
        await token.attempting(attempt) {
            clock.advance(by: .nanoseconds(4))
            attempt.hold()
            attempt.hold()
            clock.advance(by: .nanoseconds(100))
            // Two reasons hold it: the decision of a load that was suspended meanwhile.
            attempt.release()
            clock.advance(by: .nanoseconds(100))
            attempt.release()
            clock.advance(by: .nanoseconds(5))
            #expect(throws: Never.self) { try token.check(.connect) }
            attempt.hold()
        }
        attempt.release()
        clock.advance(by: .nanoseconds(100))
        await token.attempting(attempt) {
            #expect(throws: Never.self) { try token.check(.connect) }
            clock.advance(by: .nanoseconds(1))
            #expect(throws: IOFailure.self) { try token.check(.connect) }
        }
    }

    @Test("The token holds the limits of all its attempts, also of those that begin later, but no other token's")
    func heldByTheToken() async {
        let clock = ManualClock()
        let (token, other) = (StopToken(clock: LoopClock(clock.time)), StopToken(clock: LoopClock(clock.time)))
        let attempts = (0..<3).map { _ in TimedAttempt(token, timeout: 10) }
        let others = TimedAttempt(other, timeout: 10)
        await token.attempting(attempts[0]) {
            await other.attempting(others) {
                clock.advance(by: .nanoseconds(4))
                token.setHoldsAttempts(true)
                await token.attempting(attempts[1]) { clock.advance(by: .nanoseconds(100)) }
                #expect(others.isOver && !attempts[0].isOver && !attempts[1].isOver)
                await token.attempting(attempts[2]) {
                    token.setHoldsAttempts(false)
                    clock.advance(by: .nanoseconds(5))
                    #expect(!attempts[0].isOver && !attempts[2].isOver)
                    clock.advance(by: .nanoseconds(1))
                    #expect(attempts[0].isOver && !attempts[2].isOver)
                    clock.advance(by: .nanoseconds(4))
                    #expect(attempts[2].isOver)
                }
            }
        }
        // It began and ended while the token held it, and has its whole limit.
        await token.attempting(attempts[1]) {
            clock.advance(by: .nanoseconds(9))
            #expect(!attempts[1].isOver)
            clock.advance(by: .nanoseconds(1))
            #expect(attempts[1].isOver)
        }
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

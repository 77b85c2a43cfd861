import Testing
import URLLoadingTesting

@testable import URLLoadingIO

/// An attempt's limit ends the attempt, and not the work.
@Suite(.timeLimit(.minutes(4)))
struct AttemptTests {
    @Test("an attempt fails from its limit on, until it is ended")
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

    @Test("the second part of an attempt has what the first has left, and the first part's timer does not end it")
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

    @Test("a limit that stands still goes on where it was, and not after its attempt has ended")
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
            attempt.go(on: paused)
            clock.advance(by: .nanoseconds(5))
            #expect(throws: Never.self) { try token.check(.connect) }
            again = attempt.pause()
        }
        #expect(attempt.timeLeft == 1)
        attempt.go(on: again)
        clock.advance(by: .nanoseconds(100))
        #expect(throws: Never.self) { try token.check(.connect) }
        #expect(attempt.timeLeft == 1)
    }

    @Test("attempts that two tasks make at once for one token do not share a limit")
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
            // The end of the short attempt has left the long one its limit.
            #expect(throws: Never.self) { try token.check(.connect) }
            clock.advance(by: .nanoseconds(20))
            #expect(throws: IOFailure.self) { try token.check(.connect) }
        }
    }

    @Test("an attempt for one token is none for another")
    func otherToken() async {
        let clock = ManualClock()
        let (token, other) = (StopToken(clock: LoopClock(clock.time)), StopToken(clock: LoopClock(clock.time)))
        await token.attempting(TimedAttempt(token, timeout: 1)) {
            clock.advance(by: .nanoseconds(1))
            #expect(throws: IOFailure.self) { try token.check(.connect) }
            #expect(throws: Never.self) { try other.check(.connect) }
        }
    }

    @Test("a stop goes before the limit of an attempt")
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

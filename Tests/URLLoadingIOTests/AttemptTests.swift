import Testing
import URLLoadingTesting

@testable import URLLoadingIO

/// An attempt's limit ends the attempt, and not the work.
@Suite(.timeLimit(.minutes(4)))
struct AttemptTests {
    @Test("an attempt fails from its limit on, until it is ended")
    func limit() throws {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        #expect(!token.isInAttempt && token.endAttempt() == .max)
        token.beginAttempt(within: 10)
        #expect(token.isInAttempt && token.attemptTimeLeft == 10)
        clock.advance(by: .nanoseconds(9))
        #expect(throws: Never.self) { try token.check(.connect) }
        clock.advance(by: .nanoseconds(1))
        #expect(token.attemptTimeLeft == 0 && token.stopReason == nil)
        #expect(throws: IOFailure.self) { try token.check(.connect) }
        #expect(token.endAttempt() == 0)
        #expect(throws: Never.self) { try token.check(.connect) }
    }

    @Test("an attempt that was ended leaves what is left of its limit, and its timer ends no later one")
    func resumed() throws {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        token.beginAttempt(within: 10)
        clock.advance(by: .nanoseconds(4))
        let left = token.endAttempt()
        #expect(left == 6)
        clock.advance(by: .nanoseconds(100))
        token.beginAttempt(within: left)
        clock.advance(by: .nanoseconds(5))
        #expect(throws: Never.self) { try token.check(.connect) }
        clock.advance(by: .nanoseconds(1))
        #expect(throws: IOFailure.self) { try token.check(.connect) }
    }

    @Test("a limit that stands still goes on where it was, and not after its attempt has ended")
    func paused() throws {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        #expect(token.pauseAttempt() == nil)
        token.beginAttempt(within: 10)
        clock.advance(by: .nanoseconds(4))
        let paused = token.pauseAttempt()
        #expect(token.isInAttempt && token.attemptTimeLeft == 6 && token.pauseAttempt() == nil)
        clock.advance(by: .nanoseconds(100))
        token.continueAttempt(paused)
        clock.advance(by: .nanoseconds(5))
        #expect(throws: Never.self) { try token.check(.connect) }
        let again = token.pauseAttempt()
        #expect(token.endAttempt() == 1)
        token.continueAttempt(again)
        clock.advance(by: .nanoseconds(100))
        #expect(throws: Never.self) { try token.check(.connect) }
        #expect(!token.isInAttempt)
    }

    @Test("an attempt without a limit is none")
    func unlimited() {
        let token = StopToken()
        token.beginAttempt(within: .max)
        #expect(!token.isInAttempt)
    }

    @Test("a stop goes before the limit of an attempt")
    func stopped() {
        let clock = ManualClock()
        let token = StopToken(clock: LoopClock(clock.time))
        token.beginAttempt(within: 1)
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

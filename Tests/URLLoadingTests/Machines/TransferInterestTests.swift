// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

@testable import URLLoading

/// What a program wants of a transfer of the agent.
@Suite struct TransferInterestTests {
    private static let record = TransferRecord(
        id: "a", number: 1, order: TransferOrder(kind: .download, shownURL: "", method: "GET", fields: [], created: 0),
        state: .queued)

    @Test("an event that is passed on before the task waits is kept for it, and is dropped with the task")
    func passedOn() {
        var interest = TransferInterest()
        #expect(interest.isEmpty && interest.takePassedOn() == nil)
        interest.recipient = .adoptedTask
        let event = PendingEvent(sequence: 7, record: Self.record)
        let waits = interest.passOn(event) != nil
        #expect(!waits && !interest.isEmpty && !interest.isAwaited)
        let taken = (interest.takePassedOn()?.sequence, interest.takePassedOn()?.sequence)
        #expect(taken == (7, nil))
        _ = interest.passOn(event)
        interest.abandon()
        #expect(interest.isEmpty)
    }

    @Test("a task that waits gets the event at once") func awaited() async throws {
        let result = await withCheckedContinuation { (waiter: TransferInterest.Waiter) in
            var interest = TransferInterest()
            interest.awaitEnd(waiter)
            #expect(interest.isAwaited)
            let event = PendingEvent(sequence: 8, record: Self.record)
            interest.passOn(event)?.resume(returning: .success(event))
            #expect(interest.isEmpty)
        }
        #expect(try result.get().sequence == 8)
    }

    @Test("challenges are kept until the task answers them; a lost connection forgets those kept") func challenges() {
        let challenge = AgentMessage.Challenge(number: 1, transfer: "a", record: [])
        var interest = TransferInterest()
        interest.keep(challenge)
        interest.keep(challenge)
        let kept = interest.answerChallenges { _ in .undecided }
        #expect(kept.count == 2 && interest.challengeHandler != nil)
        interest.connectionWasLost()
        #expect(interest.challengeHandler != nil)
        interest.endWait()
        #expect(interest.isEmpty)
        interest.keep(challenge)
        interest.connectionWasLost()
        #expect(interest.isEmpty)
    }

    @Test("one task at a time sends the changes of the control, the last one last") func control() {
        var control = ControlState(TransferControl(priority: 1))
        let unchanged = control.begin()
        control.desired.isPaused = true
        let begins = (control.begin(), control.begin())
        #expect(!unchanged && begins == (true, false))
        control.desired.priority = 2
        let change = control.next()
        #expect(change?.desired == TransferControl(isPaused: true, priority: 2) && change?.sent.isPaused == false)
        let last = control.next() == nil
        control.desired.isCancelled = true
        #expect(last && control.begin())
    }
}

// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingAgent

/// What a program that is attached has received, and what had waited for it.
@Suite struct ProgramVisitTests {
    @Test("events are sent to a program that listens, and looked for again when one was recorded meanwhile")
    func delivery() {
        var visit = ProgramVisit()
        let early = (visit.hasEvents(), visit.look())
        #expect(early == (false, nil) && !visit.isListening)
        visit.listen([2, 3])
        var begins = visit.hasEvents()
        #expect(begins && visit.isListening && visit.look() == 0)
        visit.sent(upTo: 3)
        begins = visit.hasEvents()
        // The task that sends looks again.
        #expect(!begins)
        var goesOn = visit.foundNone()
        #expect(goesOn && visit.look() == 3)
        goesOn = visit.foundNone()
        #expect(!goesOn && visit.delivery == .listening(sent: 3))
        begins = visit.hasEvents()
        #expect(begins)
    }

    @Test("a program has caught up once, when it listens and the last event and challenge are handled") func backlog() {
        var visit = ProgramVisit()
        visit.isInBackground = true
        visit.unpark("a")
        visit.unpark("b")
        // It does not listen yet.
        var isOver = [visit.handled(transfer: "a"), visit.handled(transfer: "b")]
        #expect(isOver == [false, false] && visit.isBehind && visit.isInBackground)
        visit.listen([7])
        isOver = [visit.handled(event: 8), visit.handled(event: 7), visit.handled(event: 7), visit.handled()]
        #expect(isOver == [false, true, false, false] && !visit.isBehind && !visit.isInBackground)
    }

    @Test("a program that nothing had waited for is never behind") func nothingWaited() {
        var visit = ProgramVisit()
        visit.listen([])
        let isOver = [visit.handled(event: 1), visit.handled()]
        #expect(isOver == [false, false] && !visit.isBehind)
    }
}

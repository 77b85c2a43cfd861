// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingAgent

/// What a program that is attached has received, and what had waited for it.
@Suite struct ProgramVisitTests {
    @Test("events are taken in order, and only by a program that listens") func delivery() {
        var visit = ProgramVisit()
        visit.add(1)
        let early = visit.takeUnsent()
        #expect(early == nil && !visit.hasUnsent && !visit.isListening)
        visit.listen([2, 3])
        visit.add(4)
        let taken = (0..<4).map { _ in visit.takeUnsent() }
        #expect(taken == [2, 3, 4, nil] && !visit.hasUnsent && visit.isListening)
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
        visit.add(1)
        let isOver = [visit.handled(event: 1), visit.handled()]
        #expect(isOver == [false, false] && !visit.isBehind)
    }
}

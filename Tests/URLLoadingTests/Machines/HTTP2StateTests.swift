// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingWire

@testable import URLLoading

/// Who reads, writes and closes the socket of a shared connection.
@Suite struct HTTP2StateTests {
    private func state() throws -> HTTP2State {
        HTTP2State(try HTTP2Codec(), HTTP2StreamSlots(), HTTP2Windows(.init()), now: 0)
    }

    private func stream() -> HTTP2Stream {
        HTTP2Stream(slot: Poller.shared.borrowSlot(), urgency: 3, window: .init(.init()), hasBody: false)
    }

    @Test("a task that is called to read, but ends its wait, passes the call on") func theCallIsPassedOn() throws {
        var state = try state()
        let (reader, second, third) = (stream(), stream(), stream())
        guard case .read = state.part(of: reader), case .wait = state.part(of: third),
            case .wait = state.part(of: second)
        else { throw Unexpectedly("no reader") }
        let called = state.endReading().next
        #expect(called === second.slot)
        let (goesOn, next) = state.wokeUp(second, isOver: true)
        #expect(!goesOn && next === third.slot)
    }

    @Test("a transport in use is closed by the task that uses it last") func theLastUserCloses() throws {
        var state = try state()
        let begins = (state.beginIdleRead(), state.beginWriting())
        #expect(begins == (true, true))
        let closesAtOnce = state.requestClose()
        let after = state.endReading()
        #expect(!closesAtOnce && !after.closesTransport && !after.setsTimer && !state.mustClose)
        let beginsAgain = state.beginIdleRead()
        state.endWriting()
        #expect(!beginsAgain && state.mustClose)
        let waiting = state.beginClosing()
        #expect(waiting != nil && !state.mustClose)
        // From now on the task that closes is alone.
        let late = (state.beginIdleRead(), state.beginWriting(), state.beginClosing() == nil)
        #expect(late == (false, false, true))
        let writesLast = state.beginWriting(closes: true)
        #expect(writesLast)
        guard case .event = state.part(of: stream()) else { throw Unexpectedly("a reader after the end") }
    }

    @Test("a reader that ends after the writer closes the transport") func theReaderCloses() throws {
        var state = try state()
        let begins = (state.beginWriting(), state.beginIdleRead())
        let closesAtOnce = state.requestClose()
        state.endWriting()
        #expect(begins == (true, true) && !closesAtOnce && !state.mustClose)
        let after = state.endReading()
        let waiting = state.beginClosing()
        #expect(after.closesTransport && waiting != nil)
    }

    @Test("a learned limit of streams holds until a connection takes more than twice as many")
    func learnedLimit() {
        let slots = HTTP2StreamSlots()
        slots.limit(toLearned: 2)
        slots.setLimit(50)
        var taken = [slots.take(), slots.take(), slots.take()]
        #expect(taken == [true, true, false] && slots.takeLesson() == nil)
        for _ in 1...4 { slots.countStream() }
        #expect(!slots.take() && slots.takeLesson() == nil)
        slots.countStream()
        #expect(slots.takeReport() == 48 && slots.takeLesson() == .takesMore && slots.takeLesson() == nil)
        taken = (0..<48).map { _ in slots.take() }
        #expect(taken.allSatisfy { $0 } && !slots.take())
        slots.noteEnd(afterStream: 5)
        #expect(slots.takeLesson() == .endsAfter(3))
    }
}

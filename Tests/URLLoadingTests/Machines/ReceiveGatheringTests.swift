// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading

/// When the data of a fast body gathers: a value without sockets or clocks.
@Suite struct ReceiveGatheringTests {
    private let highest = ReceiveGathering.highestMark
    private let flood = ReceiveGathering.flood

    /// A body of known length of which a first wait has brought a flood.
    private func marked(left: Int64 = 10 << 20) -> ReceiveGathering {
        var gathering = ReceiveGathering()
        gathering.read(flood, left: left, now: 0)
        return gathering
    }

    @Test func `a flood of known length sets the mark, never beyond the body's end`() {
        #expect(marked().mark == highest)
        #expect(marked(left: 1000).mark == 1000)
        #expect(marked(left: 0).mark == 1)
        // More than the message holds: the next message has begun.
        #expect(marked(left: -5).mark == 1)
        var gathering = marked()
        gathering.read(highest, left: 70_000, now: 0)
        #expect(gathering.mark == 70_000)
        gathering.read(0, left: 70_000, now: 0)
        #expect(gathering.mark == 70_000)
        gathering.read(70_000, left: 0, now: 0)
        #expect(gathering.mark == 1 && !gathering.naps)
    }

    @Test func `small reads set nothing`() {
        var gathering = ReceiveGathering()
        for _ in 0..<10 {
            gathering.read(10, left: 1 << 20, now: 0)
            #expect(gathering.mark == 1 && !gathering.naps)
            #expect(gathering.wait(now: 0) == nil)
        }
    }

    @Test func `a wait with a mark ends after its maximum, and little data then removes the mark`() {
        for count in [0, 10, flood - 1] {
            var gathering = marked()
            #expect(gathering.wait(now: 5) == 5 + ReceiveGathering.maximumWait)
            // The timer of the first wait serves those that follow it.
            gathering.read(highest, left: 5 << 20, now: 6)
            #expect(gathering.wait(now: 7) == nil)
            gathering.read(count, left: 5 << 20, now: 5 + ReceiveGathering.maximumWait)
            #expect(gathering.mark == 1, "\(count)")
            #expect(gathering.wait(now: 0) == nil)
        }
    }

    @Test func `a wake-up that came late leaves the mark`() {
        var gathering = marked()
        _ = gathering.wait(now: 0)
        // The notification belonged to data that an earlier read had taken.
        gathering.read(0, left: 5 << 20, now: 1000)
        #expect(gathering.mark == highest)
        #expect(gathering.wait(now: 2000) == nil)
    }

    @Test func `a body of unknown length, and a transport without a mark, let the poller nap`() {
        var gathering = ReceiveGathering()
        gathering.read(flood, left: nil, now: 0)
        #expect(gathering.mark == 1 && gathering.naps)
        // The head was parsed: the length is known.
        gathering.read(flood, left: 5 << 20, now: 0)
        #expect(gathering.mark == highest && !gathering.naps)
        gathering.refuseMark()
        #expect(gathering.mark == 1 && gathering.naps)
        gathering.read(flood, left: 5 << 20, now: 0)
        #expect(gathering.mark == 1 && gathering.naps)
        _ = gathering.wait(now: 0)
        gathering.read(10, left: 5 << 20, now: 0)
        #expect(!gathering.naps)
    }

    @Test func `the end of the body ends gathering`() {
        for left in [nil, 5 << 20] as [Int64?] {
            var gathering = ReceiveGathering()
            gathering.read(highest, left: left, now: 0)
            gathering.end()
            #expect(gathering.mark == 1 && !gathering.naps)
            gathering.read(10, left: 100, now: 0)
            #expect(gathering.mark == 1 && !gathering.naps)
        }
    }
}

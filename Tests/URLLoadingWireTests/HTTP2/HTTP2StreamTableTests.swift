// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// The table of a connection's streams.
@Suite struct HTTP2StreamTableTests {
    private final class Stream {
        let number: Int32
        init(_ number: Int32) { self.number = number }
    }

    @Test("it answers as a dictionary does, for streams that come and go in any order", arguments: 0..<20)
    func likeADictionary(seed: Int) {
        var random = Generator(state: UInt64(seed) &* 0x9E37_79B9 &+ 1)
        var (table, expected) = (HTTP2StreamTable<Stream>(), [Int32: Stream]())
        var next: Int32 = 1
        for step in 0..<4_000 {
            switch random.next() % 8 {
            // As of a client: numbers rise; now and then a gap, as after requests that ended at once.
            case 0, 1, 2, 3:
                let stream = Stream(next)
                (table[next], expected[next]) = (stream, stream)
                next += random.next() % 16 == 0 ? 2 * Int32(random.next() % 200 + 1) : 2
            case 4, 5:
                guard let number = expected.keys.sorted().randomElement(using: &random) else { continue }
                let (removed, other) = (table.remove(number), expected.removeValue(forKey: number))
                #expect(removed === other)
            // A peer's frame may have any number.
            case 6:
                let number = Int32(random.next() % 20_000)
                let (removed, other) = (table.remove(number), expected.removeValue(forKey: number))
                #expect(removed === other)
            default:
                let number = Int32(truncatingIfNeeded: random.next()) & .max
                #expect(table[number] === expected[number])
            }
            if step % 500 == 0 {
                #expect(table.count == expected.count && table.isEmpty == expected.isEmpty)
                #expect(Set(table.numbers) == Set(expected.keys))
                #expect(table.streams.allSatisfy { expected[$0.number] === $0 })
            }
        }
        for number in expected.keys { #expect(table[number] === expected[number]) }
    }

    @Test("a stream that stays does not hide the thousands that come and go beside it")
    func oneThatStays() {
        var table = HTTP2StreamTable<Stream>()
        let staying = Stream(1)
        table[1] = staying
        for number in stride(from: Int32(3), to: 40_000, by: 2) {
            table[number] = Stream(number)
            #expect(table[1] === staying && table[number]?.number == number)
            let removed = table.remove(number)
            #expect(removed?.number == number && table[number] == nil)
        }
        #expect(table.count == 1)
    }

    @Test("no stream has the connection's number, and one that is replaced counts once")
    func edges() {
        var table = HTTP2StreamTable<Stream>()
        table[0] = Stream(0)
        let removed = table.remove(0)
        #expect(table.isEmpty && table[0] == nil && removed == nil)
        (table[7], table[7]) = (Stream(7), Stream(7))
        #expect(table.count == 1 && table.numbers == [7])
        table[7] = nil
        #expect(table.isEmpty)
        table[.max] = Stream(.max)
        #expect(table[.max]?.number == .max && table[-1] == nil)
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state ^ (state >> 33)) &* 0xFF51_AFD7_ED55_8CCD >> 7
        }
    }
}

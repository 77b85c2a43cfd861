// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingTesting

@testable import URLLoading

/// The division of a file into parts, as a value.
@Suite struct RangePlanTests {
    @Test("bytes are merged where ranges touch") func sets() {
        var bytes = ByteRanges()
        for range in [10..<20, 30..<40, 20..<25, 0..<5, 24..<31, 7..<7] as [Range<Int64>] { bytes.insert(range) }
        #expect(bytes.ranges == [0..<5, 10..<40])
        #expect(bytes.total == 35 && bytes.prefix == 5 && !bytes.isPrefix)
        #expect(bytes.gap(before: 50) == 5..<10)
        #expect(bytes.gap(before: 50, from: 12) == 40..<50)
        #expect(bytes.gap(before: 40, from: 12) == nil)
        #expect(ByteRanges(upTo: 0).ranges.isEmpty && ByteRanges(upTo: 7).isPrefix)
    }

    @Test("what is missing is divided by the number of parts, and the last part gets the rest") func division() {
        var plan = RangePlan(length: 1001, count: 4, least: 10)
        let ranges = [plan.first(at: 0, now: 0)?.range] + (0..<3).map { _ in plan.next(now: 0)?.range }
        #expect(ranges == [0..<251, 251..<502, 502..<753, 753..<1001])
    }

    @Test("only gaps between held ranges are handed out") func gaps() {
        var plan = RangePlan(length: 100, held: ByteRanges([0..<10, 40..<60]), count: 2, least: 10)
        let parts = [
            plan.first(at: 20, now: 0), plan.first(at: 40, now: 0), plan.next(now: 0), plan.next(now: 0),
        ]
        #expect(parts.map { $0?.range } == [20..<40, nil, 10..<20, 60..<100])
    }

    /// A plan whose first response covers the whole file.
    private static func begun(count: Int, least: Int64) throws -> (RangePlan, Int) {
        var plan = RangePlan(length: 100, count: count, least: least)
        let first = plan.first(at: 0, now: 5)
        return (plan, try #require(first?.id))
    }

    @Test("the part with most missing bytes is split, but not into parts below the least size") func split() throws {
        var (plan, first) = try Self.begun(count: 1, least: 20)
        let claimed = plan.claim(first, 30)
        let (second, third) = (plan.next(now: 0), plan.next(now: 0))
        #expect(claimed == 0..<30 && second?.range == 65..<100 && third == nil)
        #expect(plan.part(first)?.range == 0..<65)
        let rest = plan.claim(first, 100)
        #expect(rest == 30..<65)
    }

    @Test("a part takes over what follows it until another response delivers that") func takeover() throws {
        var (plan, first) = try Self.begun(count: 2, least: 10)
        let next = plan.next(now: 0)
        let second = try #require(next?.id)
        _ = plan.claim(first, 50)
        var late = plan
        let hasGrown = plan.extend(first)
        let isTakenOver = !plan.confirm(second, reach: 100, now: 0)
        #expect(hasGrown && isTakenOver && plan.part(first)?.range == 0..<100)
        let isConfirmed = late.confirm(second, reach: 100, now: 0)
        let growsLate = late.extend(first)
        #expect(isConfirmed && !growsLate)
        late.leave(second)
        let growsIntoGap = late.extend(first)
        #expect(growsIntoGap && late.part(first)?.range == 0..<100)
    }

    @Test("a part that ends early leaves a gap behind its last written byte") func leaving() throws {
        var (plan, first) = try Self.begun(count: 1, least: 10)
        _ = plan.claim(first, 30)
        plan.wrote(first, upTo: 20, now: 7)
        plan.leave(first)
        #expect(plan.written.ranges == [0..<20] && !plan.isComplete)
        let next = plan.next(now: 0)
        #expect(next?.range == 20..<100)
    }

    @Test("lengths and least sizes up to the greatest are divided", arguments: [1, 64 << 10, 1 << 62, .max] as [Int64])
    func greatest(least: Int64) throws {
        let length = FileRanges.maximumLength
        var plan = RangePlan(length: length, held: ByteRanges([5..<10]), count: 3, least: least)
        let (first, second) = (plan.first(at: 10, now: 0), plan.next(now: 0))
        #expect(first?.range.lowerBound == 10 && second?.range == 0..<5)
        #expect(ParallelRanges(2, minimumPartSize: .max).minimumPartSize == 1 << 62)
    }

    @Test("the part whose peer is silent longest is the slowest, and local waits do not count") func slowest() throws {
        var (plan, first) = try Self.begun(count: 2, least: 10)
        let next = plan.next(now: 7)
        let second = try #require(next?.id)
        let slowest = plan.slowest(now: 8) { _ in true }
        let other = plan.slowest(now: 9) { $0 == second }
        #expect(slowest?.id == first && slowest?.moved == 5 && other?.id == second)
        // The first one waited for something else until 9.
        let later = plan.slowest(now: 20) { _ in true }
        #expect(later?.id == second && plan.part(first)?.moved == 9)
        _ = plan.claim(second, 50)
        let last = plan.slowest(now: 20) { _ in true }
        #expect(last?.id == first)
    }

    @Test("in any order of events every byte is written once", arguments: UInt64(1)...200)
    func schedules(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let length = Int64.random(in: 1...400, using: &random)
        var held = ByteRanges()
        if Bool.random(using: &random), length > 4 {
            held.insert(0..<length / 4)
            held.insert(length / 2..<length / 2 + length / 8)
        }
        var plan = RangePlan(
            length: length, held: held, count: .random(in: 1...6, using: &random),
            least: .random(in: 1...40, using: &random))
        var counts = [Int](repeating: 0, count: Int(length))
        for range in held.ranges { for offset in range { counts[Int(offset)] += 1 } }
        if let gap = held.gap(before: length) { _ = plan.first(at: gap.lowerBound, now: 0) }
        for step in 0..<20_000 where !plan.isComplete {
            let part = plan.parts.randomElement(using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1: if plan.parts.count < 8 { _ = plan.next(now: Int64(step)) }
            case 2:
                if let part, part.reach == nil { _ = plan.confirm(part.id, reach: part.range.upperBound, now: 0) }
            case 3: if let part { plan.leave(part.id) }
            case 4: if let part, part.missing == 0, !plan.extend(part.id) { plan.leave(part.id) }
            default:
                guard let part, part.reach != nil else { break }
                let place = plan.claim(part.id, .random(in: 1...30, using: &random))
                for offset in place { counts[Int(offset)] += 1 }
                plan.wrote(part.id, upTo: place.upperBound, now: 0)
            }
            let ranges = plan.parts.map(\.range).sorted { $0.lowerBound < $1.lowerBound }
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
        }
        #expect(plan.isComplete && plan.written.ranges == [0..<length])
        #expect(counts.allSatisfy { $0 == 1 })
    }
}

// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import urlload

struct ProgressTests {
    @Test(
        "Sizes are formatted with binary units",
        arguments: [
            (Int64(0), "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (10 << 30, "10.0 GiB"),
            (5 << 50, "5120.0 TiB"),
        ])
    func sizes(_ bytes: Int64, _ text: String) { #expect(ProgressLine.size(bytes) == text) }

    @Test(
        "Times are formatted as minutes and hours",
        arguments: [(0.0, "0:00"), (5.2, "0:06"), (61, "1:01"), (3723, "1:02:03"), (1e30, "277777:46:40")])
    func times(_ seconds: Double, _ text: String) { #expect(ProgressLine.time(seconds) == text) }

    @Test("A progress line fits its width") func theLineFitsItsWidth() {
        let line = ProgressLine(bytes: 420 << 20, total: 1 << 30, elapsed: 4, rate: Double(100 << 20))
        #expect(
            line.text(width: 79) == " 41% [==========>               ]  420.0 MiB of 1.0 GiB  100.0 MiB/s  0:07 left")
        for width in 0...120 { #expect(line.text(width: width).count <= width) }
        let unknown = ProgressLine(bytes: 2048, total: nil, elapsed: 61, rate: 1024)
        #expect(unknown.text(width: 79) == "2.0 KiB  1.0 KiB/s  1:01")
    }

    @Test("Extreme numbers do not trap") func oddNumbersDoNoHarm() {
        for (bytes, total) in [(Int64(10), Int64(5)), (0, 0), (.max, .max), (1, .max)] {
            _ = ProgressLine(bytes: bytes, total: total, elapsed: 0, rate: 0.1).text(width: 80)
            _ = ProgressLine(bytes: bytes, total: total, elapsed: 1e18, rate: 1e18).text(width: 80)
        }
    }

    @Test("Short loads have no progress line") func shortLoadsHaveNoProgressLine() {
        var board = ProgressBoard(areNamed: false)
        let load = board.begin("a", now: 100)
        #expect(board.add(1, of: load, now: 100.4, size: Self.size) == nil)
        #expect(board.add(1, of: load, now: 100.6, size: Self.size)?.count == 1)
    }

    @Test("Lines are drawn at most ten times a second") func atMostTenTimesASecond() {
        var board = ProgressBoard(areNamed: true)
        let loads = (0..<3).map { board.begin("\($0)", now: 100) }
        board.expect(1_000_000, of: loads[0])
        let drawn = (0..<3000).count {
            board.add(100, of: loads[$0 % 3], now: 100 + Double($0) / 1000, size: Self.size) != nil
        }
        #expect((20...25).contains(drawn))
    }

    @Test("Each load has a line with its name") func aLinePerLoad() {
        var board = ProgressBoard(areNamed: true)
        let first = board.begin("https://example.org/a/long/path/to/film.mov", now: 0)
        let second = board.begin("b", now: 0)
        board.expect(2048, of: first)
        board.expect(nil, of: second)
        _ = board.add(1024, of: first, now: 0, size: Self.size)
        let lines = board.add(512, of: second, now: 1, size: Self.size) ?? []
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("…/path/to/film.mov  50% [") == true, "\(lines)")
        #expect(lines.last?.hasPrefix("b                  512 B") == true, "\(lines)")
        #expect(lines.allSatisfy { $0.count <= 79 })
        #expect(board.add(0, of: second, now: 2, size: { (79, 1) })?.count == 1)
        board.end(first)
        #expect(board.add(0, of: second, now: 3, size: Self.size)?.count == 1)
        // A removed line is not drawn again.
        #expect(board.add(9, of: first, now: 3.01, size: Self.size) == nil)
    }

    @Test(
        "Wide characters count two columns",
        arguments: ["長い名前の映画.mov", "e\u{301}\u{301}\u{301}", "", String(repeating: "語", count: 50)])
    func wideNamesAreNotWrapped(_ name: String) throws {
        var board = ProgressBoard(areNamed: true)
        let load = board.begin(name, now: 0)
        let line = try #require(board.add(1, of: load, now: 1, size: { (20, 3) })?.first)
        let columns = line.unicodeScalars.reduce(0) { $0 + ($1.value < 0x1100 || $1 == "…" ? 1 : 2) }
        #expect(columns <= 20, "\(line)")
    }

    @Test("The response is counted from zero after the request's body") func theAnswerCountsAnew() {
        var meter = ProgressMeter(now: 0)
        meter.expect(100)
        meter.add(100)
        meter.expect(10)
        meter.add(5)
        let line = meter.line(now: 1)
        #expect(line.bytes == 5 && line.total == 10)
        meter.expect(nil)
        #expect(meter.line(now: 1).total == nil)
    }

    private static func size() -> (width: Int, height: Int) { (79, 23) }
}

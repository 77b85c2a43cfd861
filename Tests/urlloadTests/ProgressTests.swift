import Testing
@testable import urlload

struct ProgressTests {
    @Test(arguments: [
        (Int64(0), "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (10 << 30, "10.0 GiB"), (5 << 50, "5120.0 TiB"),
    ])
    func sizes(_ bytes: Int64, _ text: String) { #expect(ProgressLine.size(bytes) == text) }

    @Test(arguments: [(0.0, "0:00"), (5.2, "0:06"), (61, "1:01"), (3723, "1:02:03"), (1e30, "277777:46:40")])
    func times(_ seconds: Double, _ text: String) { #expect(ProgressLine.time(seconds) == text) }

    @Test func theLineFitsItsWidth() {
        let line = ProgressLine(bytes: 420 << 20, total: 1 << 30, elapsed: 4, rate: Double(100 << 20))
        #expect(line.text(width: 79) == " 41% [==========>               ]  420.0 MiB of 1.0 GiB  100.0 MiB/s  0:07 left")
        for width in 0...120 { #expect(line.text(width: width).count <= width) }
        let unknown = ProgressLine(bytes: 2048, total: nil, elapsed: 61, rate: 1024)
        #expect(unknown.text(width: 79) == "2.0 KiB  1.0 KiB/s  1:01")
    }

    @Test func oddNumbersDoNoHarm() {
        for (bytes, total) in [(Int64(10), Int64(5)), (0, 0), (.max, .max), (1, .max)] {
            _ = ProgressLine(bytes: bytes, total: total, elapsed: 0, rate: 0.1).text(width: 80)
            _ = ProgressLine(bytes: bytes, total: total, elapsed: 1e18, rate: 1e18).text(width: 80)
        }
    }

    @Test func quickLoadsShowNothing() {
        var meter = ProgressMeter(now: 100)
        #expect(meter.add(1, now: 100.4) == nil)
        #expect(meter.isDrawn == false)
    }

    @Test func atMostTenLinesASecond() {
        var meter = ProgressMeter(now: 100)
        meter.expect(1_000_000)
        let drawn = (0..<3000).count { meter.add(100, now: 100 + Double($0) / 1000) != nil }
        #expect((20...25).contains(drawn))
    }

    @Test func theTotalIsKnownOnlyIfAllAre() {
        var meter = ProgressMeter(now: 0)
        meter.expect(10)
        meter.expect(nil)
        #expect(meter.add(5, now: 1)?.total == nil)
    }
}

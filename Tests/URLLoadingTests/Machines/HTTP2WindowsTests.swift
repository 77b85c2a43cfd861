// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading

/// The sizes of receive windows as a function of what readers take, and when.
@Suite struct HTTP2WindowsTests {
    private static let mebibyte = 1 << 20
    private static let initial = 256 << 10

    /// Windows whose peer has answered after a time in milliseconds.
    private func windows(
        roundTrip: Int64?, _ limits: HTTP2Windows.Limits = .init(), _ budget: HTTP2WindowBudget = .init(.max / 2)
    ) -> HTTP2Windows {
        var windows = HTTP2Windows(limits, budget: budget)
        windows.sendsSettings(now: 1_000)
        if let roundTrip { windows.settingsAcknowledged(now: 1_000 + roundTrip * 1_000_000) }
        return windows
    }

    /// Takes the half of a window again and again, in the middle of each round trip. Returns the sizes.
    private func keepUp(
        _ windows: inout HTTP2Windows, _ window: inout HTTP2Windows.Window, rounds: Int, every: Int64,
        from start: Int64 = 0
    ) -> [Int] {
        (0..<rounds).map { round in
            let now = start + Int64(round) * every * 1_000_000
            let count = round == 0 ? window.size : window.size / 2
            _ = windows.take(max(1, count), of: &window, held: 0, streamCount: 1, now: now)
            return window.size
        }
    }

    @Test(
        "the initial window, once it is read, grows to what a path of 1 Gbit/s holds in two round trips",
        arguments: [
            (nil, 256 << 10), (0, 256 << 10), (1, 256 << 10), (10, 2_500_000), (50, 12_500_000), (150, 32 << 20),
        ]
            as [(Int64?, Int)])
    func theFirstBytes(roundTrip: Int64?, size: Int) {
        var windows = windows(roundTrip: roundTrip)
        var window = HTTP2Windows.Window(windows.limits)
        #expect(window.size == Self.initial)
        #expect(windows.take(window.size - 1, of: &window, held: 1, streamCount: 1, now: 0) == nil)
        let changed = windows.take(1, of: &window, held: 1, streamCount: 1, now: 0)
        #expect(window.size == size && changed == (size == Self.initial ? nil : size))
    }

    @Test("a reader that takes half a window in a round trip gets twice the window, up to the limit")
    func growth() {
        var windows = windows(roundTrip: 5)
        var window = HTTP2Windows.Window(windows.limits)
        let sizes = keepUp(&windows, &window, rounds: 8, every: 5)
        let first = 1_250_000
        #expect(sizes == [1, 2, 4, 8, 16, 26, 26, 26].map { $0 == 26 ? 32 << 20 : $0 * first })
    }

    @Test("without a measured round trip, four milliseconds count as one") func nearGrowth() {
        var windows = windows(roundTrip: nil)
        var window = HTTP2Windows.Window(windows.limits)
        let sizes = keepUp(&windows, &window, rounds: 5, every: 4)
        #expect(sizes == [1, 2, 4, 8, 16].map { $0 * Self.initial })
    }

    @Test("a path that carries less than half a window in a round trip leaves the window") func noGrowth() {
        var windows = windows(roundTrip: 50)
        var window = HTTP2Windows.Window(windows.limits)
        // 1 MB in each round trip.
        for round in 0..<100 {
            _ = windows.take(1_000_000, of: &window, held: 0, streamCount: 1, now: Int64(round) * 51_000_000)
        }
        #expect(window.size == 12_500_000)
    }

    @Test("a reader that leaves its window full loses half of it with each slow round trip") func shrinking() {
        var windows = windows(roundTrip: 50)
        var window = HTTP2Windows.Window(windows.limits)
        _ = windows.take(window.size, of: &window, held: 0, streamCount: 1, now: 0)
        var sizes: [Int] = []
        for second in 1...7 {
            let held = window.size
            _ = windows.take(65_536, of: &window, held: held, streamCount: 1, now: Int64(second) * 1_000_000_000)
            sizes.append(window.size)
        }
        #expect(sizes == [6_250_000, 3_125_000, 1_562_500, 781_250, 390_625, Self.initial, Self.initial])
    }

    @Test("streams share the connection's limit equally, and one that has more gives it back") func shares() {
        var windows = windows(roundTrip: 150)
        var alone = HTTP2Windows.Window(windows.limits)
        _ = windows.take(alone.size, of: &alone, held: 0, streamCount: 1, now: 0)
        #expect(alone.size == 32 << 20)
        var others = (0..<63).map { _ in HTTP2Windows.Window(windows.limits) }
        for index in others.indices {
            _ = windows.take(Self.initial, of: &others[index], held: 0, streamCount: 64, now: 0)
            #expect(others[index].size == 1 << 20)
        }
        _ = windows.take(1, of: &alone, held: 0, streamCount: 64, now: 0)
        #expect(alone.size == 2 << 20)
        // With more streams than the limit has initial windows, each keeps the initial one.
        var last = HTTP2Windows.Window(windows.limits)
        _ = windows.take(Self.initial, of: &last, held: 0, streamCount: 1_000, now: 0)
        #expect(last.size == Self.initial)
    }

    @Test("the process has a limit, and a stream returns its part when it ends") func budget() {
        let budget = HTTP2WindowBudget(20 << 20)
        var windows = windows(roundTrip: 50, .init(), budget)
        var (first, second) = (HTTP2Windows.Window(windows.limits), HTTP2Windows.Window(windows.limits))
        _ = windows.take(Self.initial, of: &first, held: 0, streamCount: 2, now: 0)
        let refused = windows.take(Self.initial, of: &second, held: 0, streamCount: 2, now: 0)
        #expect(first.size == 12_500_000 && refused == nil && second.size == Self.initial)
        #expect(budget.inUse == first.size - Self.initial)
        windows.release(first)
        #expect(budget.inUse == 0)
        windows.release(second)
        #expect(budget.inUse == 0)
    }

    @Test("a small limit of a stream is also its initial window") func smallLimits() {
        let limits = HTTP2Windows.Limits(stream: 16 << 10, connection: 16 << 10)
        var windows = windows(roundTrip: 1_000, limits)
        var window = HTTP2Windows.Window(limits)
        #expect(limits.initial == 16 << 10 && window.size == 16 << 10)
        #expect(keepUp(&windows, &window, rounds: 5, every: 1) == Array(repeating: 16 << 10, count: 5))
    }

    @Test("the shortest round trip counts, and no time is too long") func roundTrips() {
        var windows = windows(roundTrip: 80)
        windows.answered(after: 30_000_000)
        windows.answered(after: 90_000_000)
        #expect(windows.roundTrip == 30_000_000)
        windows = self.windows(roundTrip: nil)
        windows.answered(after: .max)
        var window = HTTP2Windows.Window(windows.limits)
        _ = windows.take(window.size, of: &window, held: 0, streamCount: 1, now: .max)
        #expect(window.size == windows.limits.stream)
    }

    @Test("a tunnel's window grows by what its reader takes only") func tunnels() {
        var windows = windows(roundTrip: 150)
        var window = HTTP2Windows.Window(windows.limits)
        _ = windows.take(window.size, of: &window, isTunnel: true, held: 0, streamCount: 1, now: 0)
        #expect(window.size == Self.initial)
        _ = windows.take(window.size, of: &window, isTunnel: true, held: 0, streamCount: 1, now: 100_000_000)
        #expect(window.size == 2 * Self.initial)
    }
}

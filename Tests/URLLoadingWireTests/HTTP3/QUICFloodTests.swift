// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing

@testable import URLLoadingWire

/// Which packets without effect are taken for a flood.
@Suite struct QUICFloodTests {
    /// The number of packets of a size that are permitted, out of 100,000, after a packet with an effect.
    private func permitted(
        received size: UInt64, sent: UInt64 = 0, inFlight: UInt64 = 0, seconds: Int64 = 0,
        _ limits: QUICLimits = QUICLimits()
    ) -> Int {
        var flood = QUICFlood()
        var traffic = QUICTraffic(packets: 5_000, received: 1_000_000, sent: 2_000_000, inFlight: inFlight)
        flood.progressed()
        guard flood.permits(traffic, now: 0, limits) else { return 0 }
        for number in 1...100_000 {
            traffic.packets += 1
            traffic.received += size
            traffic.sent += sent
            let now = seconds * 1_000_000_000 * Int64(number) / 100_000
            guard flood.permits(traffic, now: now, limits) else { return number - 1 }
        }
        return 100_000
    }

    @Test("Small packets are limited, with and without an answer")
    func small() {
        #expect((1_000...1_100).contains(permitted(received: 30)))
        #expect((1_000...1_200).contains(permitted(received: 30, sent: 40)))
    }

    @Test("Full packets behind a lost one are not limited within the window, and beyond it they are")
    func full() {
        #expect(permitted(received: 1_200) == 100_000)
        var limits = QUICLimits()
        limits.connectionWindow = 1 << 20
        #expect((3_000...3_100).contains(permitted(received: 1_200, limits)))
    }

    @Test("Acknowledgements of what is sent, or was on its way, are not limited")
    func acknowledgements() {
        #expect(permitted(received: 40, sent: 1_200) == 100_000)
        #expect(permitted(received: 40, inFlight: 12_000_000) > 20_000)
    }

    @Test("The count begins again after ten seconds and with an effect")
    func again() {
        #expect(permitted(received: 30, seconds: 2_000) == 100_000)
        var flood = QUICFlood()
        var traffic = QUICTraffic()
        for _ in 0..<50 {
            traffic.packets += 900
            let isPermitted = flood.permits(traffic, now: 0, QUICLimits())
            #expect(isPermitted)
            flood.progressed()
        }
    }
}

#endif

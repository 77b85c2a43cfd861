// SPDX-License-Identifier: Apache-2.0

// The progress and the recent rate of one load. A value; the time is an argument.

struct ProgressMeter: Sendable {
    /// The seconds over which the rate is averaged.
    private static let memory = 2.0

    let start: Double
    private var bytes: Int64 = 0
    private var expected: Int64?
    private var rate = 0.0
    private var rateMoment: Double
    private var rateBytes: Int64 = 0

    init(now: Double) {
        start = now
        rateMoment = now
    }

    /// Begins a body of this length; `nil` if the length is unknown. The request's body comes first, then the
    /// response's.
    mutating func expect(_ length: Int64?) {
        expected = length
        (bytes, rateBytes) = (0, 0)
    }

    /// Begins a body whose first bytes are present already.
    mutating func begin(at offset: Int64, of length: Int64?) {
        expected = length ?? expected
        (bytes, rateBytes) = (offset, offset)
    }

    mutating func add(_ count: Int) { bytes += Int64(count) }

    mutating func line(now: Double) -> ProgressLine {
        updateRate(now)
        return ProgressLine(bytes: bytes, total: expected, elapsed: now - start, rate: rate)
    }

    private mutating func updateRate(_ now: Double) {
        let passed = now - rateMoment
        guard passed > 0 else { return }
        let current = Double(bytes - rateBytes) / passed
        let weight = rate == 0 ? 1 : min(1, passed / Self.memory)
        rate += (current - rate) * weight
        rateMoment = now
        rateBytes = bytes
    }
}

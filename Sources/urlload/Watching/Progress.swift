// When the progress line is drawn: not for loads that are over soon, and at most ten times a second.
// Several loads at once share one line. A pure machine: time is passed in.

struct ProgressMeter: Sendable {
    /// Nobody wants a bar that flashes up for the length of a blink.
    static let quiet = 0.5
    static let interval = 0.1
    /// The rate is that of about this many seconds past.
    private static let memory = 2.0

    private let start: Double
    private var lastDrawn: Double?
    private var bytes: Int64 = 0
    private var expected: Int64 = 0
    /// False once a load came whose length nobody knows.
    private var knowsTotal = true
    private var rate = 0.0
    private var rateMoment: Double
    private var rateBytes: Int64 = 0

    init(now: Double) {
        start = now
        rateMoment = now
    }

    var isDrawn: Bool { lastDrawn != nil }

    mutating func expect(_ length: Int64?) {
        if let length { expected += length } else { knowsTotal = false }
    }

    /// Counts bytes; the line to draw now, if any.
    mutating func add(_ count: Int, now: Double) -> ProgressLine? {
        bytes += Int64(count)
        guard now - start >= Self.quiet, now - (lastDrawn ?? 0) >= Self.interval else { return nil }
        lastDrawn = now
        updateRate(now)
        return ProgressLine(
            bytes: bytes, total: knowsTotal ? expected : nil, elapsed: now - start, rate: rate)
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

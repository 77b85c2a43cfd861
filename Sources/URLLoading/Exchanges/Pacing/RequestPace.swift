// SPDX-License-Identifier: Apache-2.0

// The moments at which requests to one server may be sent. Pure: the time is a parameter.

struct RequestPace: Sendable {
    /// Nanoseconds between two requests.
    private let interval: Int64
    /// How far requests may run ahead of the even pace.
    private let tolerance: Int64
    /// The moment at which the next request would be due at an even pace.
    private var due = Int64.min
    /// The end of the pause that the server asked for.
    private(set) var pausedUntil = Int64.min

    /// - Parameters:
    ///   - perSecond: the requests a second, more than zero.
    ///   - burst: how many requests may be sent at once after a pause, at least 1.
    init(perSecond: Double, burst: Int) {
        let interval = perSecond > 0 ? 1_000_000_000 / perSecond : .infinity
        // A year between two requests is as good as never, and leaves room for sums.
        self.interval = Int64(min(max(interval, 1), Self.longest))
        tolerance = Int64(min(Double(self.interval) * Double(max(0, burst - 1)), Self.longest))
    }
    private static let longest = 31_536_000_000_000_000.0

    /// Reserves the next free moment.
    /// - Parameter now: nanoseconds of the session's clock, here as in every method.
    mutating func reserve(now: Int64) -> Int64 {
        let arrival = max(now, due)
        due = arrival + interval
        return max(now, arrival - tolerance, pausedUntil)
    }

    /// The moment that `reserve` would return.
    func next(now: Int64) -> Int64 { max(now, max(now, due) - tolerance, pausedUntil) }

    /// Frees a moment that was reserved, for later requests.
    mutating func giveBack() { if due > .min { due -= interval } }

    /// The server asks for a pause. Afterwards requests are sent at the even pace.
    mutating func pause(until moment: Int64) {
        guard moment > pausedUntil else { return }
        pausedUntil = moment
        due = max(due, moment + tolerance)
    }

    /// Whether nothing would be lost if this pace were forgotten.
    func isAtRest(now: Int64) -> Bool { due <= now && pausedUntil <= now }
}

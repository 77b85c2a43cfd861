// SPDX-License-Identifier: Apache-2.0

// Computes how long the poller naps between two polls. Pure.
//
// A nap lasts as long as half of the waiting tasks need to become ready; they are then resumed together. That pays only
// if many tasks wait and events come fast: with few tasks a nap is mere latency, at a low rate it gathers nothing.

struct Pace {
    /// Events counted in the current period.
    private var events = 0
    private var since: Int64
    /// Nanoseconds between two events, measured over the last period.
    private var interval = Int64.max

    /// How long incoming data of a fast sender gathers before its reader is woken: some hundred KB on a fast network.
    static let gathering: Int64 = 120_000

    private static let period: Int64 = 250_000
    private static let slowest: Int64 = 100_000
    private static let fewest = 16
    private static let shortestNap: Int64 = 15_000
    private static let longestNap: Int64 = 250_000

    init(now: Int64) { since = now }

    /// Returns how long to nap, in nanoseconds; 0 for no nap.
    mutating func nap(events new: Int, waiting: Int, now: Int64) -> Int64 {
        events += new
        let elapsed = now - since
        if elapsed >= Self.period {
            interval = events > 0 ? elapsed / Int64(events) : .max
            since = now
            events = 0
        }
        guard interval <= Self.slowest, waiting >= Self.fewest else { return 0 }
        let nap = min(interval * Int64(waiting / 2), Self.longestNap)
        return nap < Self.shortestNap ? 0 : nap
    }
}

// SPDX-License-Identifier: Apache-2.0

/// Decides when a program is started for its undelivered events. Pure: times are nanoseconds of one clock.
///
/// A program of an identifier is started once at a time; again after 1 s, doubled up to 1 h while it acknowledges
/// nothing.
struct WakePlan: Sendable, Equatable {
    private(set) var starts = 0
    private(set) var next: Int64?
    private var isRunning = false

    static let first: Int64 = 1_000_000_000
    static let longest: Int64 = 3_600_000_000_000

    /// Notes that there are events and no connected program.
    /// - Returns: whether to start the program now.
    mutating func hasEvents(now: Int64) -> Bool {
        guard !isRunning else { return false }
        if let next, now < next { return false }
        isRunning = true
        starts += 1
        let doublings = min(starts - 1, 30)
        next = now + min(Self.first << Int64(doublings), Self.longest)
        return true
    }

    /// The started program has exited, or could not be started.
    mutating func ended() { isRunning = false }

    /// The program has acknowledged an event, so the delays start over.
    mutating func acknowledged() { (starts, next) = (0, nil) }
}

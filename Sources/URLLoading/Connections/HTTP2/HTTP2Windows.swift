// SPDX-License-Identifier: Apache-2.0

// The receive windows of the streams of one connection (RFC 9113 §5.2): how many bytes of a body the peer may send
// before it hears that they were read. A window that is smaller than what the path holds in a round trip holds the body
// back; a window that is larger costs memory once a reader stops. So a window begins small, and grows and shrinks by
// what its reader takes in a round trip:
//
//     a whole initial window is read          to what a path of 1 Gbit/s holds in two round trips
//     half of it or more in a round trip      doubled: the window limits the peer
//     less than an eighth, and it was filled  halved: the reader is slower than the peer
//
// A window is never larger than the stream's limit, and never larger than an equal share of the connection's limit.
// What a window has beyond its initial size also counts against the limit of the process.

import Synchronization

/// A value: each change is computed from the arguments, except for the budget of the process.
struct HTTP2Windows {
    struct Limits: Sendable, Hashable {
        /// The largest window of a stream, in bytes.
        var stream = 32 << 20
        /// The sum of the windows that streams share, in bytes.
        var connection = 64 << 20

        /// The initial size of a window, which is announced in SETTINGS.
        var initial: Int { min(stream, HTTP2Windows.usualInitial) }
    }

    /// The window of a stream.
    struct Window {
        /// In bytes.
        fileprivate(set) var size: Int
        /// The bytes that the reader has taken in this round trip, and when it began; nil before a whole
        /// initial window was taken.
        fileprivate var taken = 0
        fileprivate var roundBegan: Int64?

        init(_ limits: Limits) { size = limits.initial }
    }

    let limits: Limits
    private let budget: HTTP2WindowBudget
    /// The shortest measured time between a frame and the peer's reply, in nanoseconds; nil before the first.
    private(set) var roundTrip: Int64?
    /// When the SETTINGS were sent, until they are acknowledged.
    private var settings = Exchange.unsent

    private enum Exchange {
        case unsent
        case sent(Int64)
        case answered
    }

    fileprivate static let usualInitial = 256 << 10
    /// 1 Gbit/s, in bytes per second.
    private static let presumedRate: Int64 = 125_000_000
    /// The shortest time that counts as a round trip, in nanoseconds: the coarse clock does not measure less, and the
    /// tasks of both ends need time as well.
    private static let shortestRound: Int64 = 4_000_000

    init(_ limits: Limits, budget: HTTP2WindowBudget = .process) {
        self.limits = limits
        self.budget = budget
    }

    // MARK: Round trips

    mutating func sendsSettings(now: @autoclosure () -> Int64) {
        if case .unsent = settings { settings = .sent(now()) }
    }

    mutating func settingsAcknowledged(now: Int64) {
        guard case .sent(let moment) = settings else { return }
        settings = .answered
        answered(after: now - moment)
    }

    /// Notes the reply to a PING.
    mutating func answered(after time: Int64) { roundTrip = min(roundTrip ?? .max, max(0, time)) }

    // MARK: Sizes

    /// Notes bytes that a reader has taken. Returns the new size of its window if it changes.
    /// - Parameters:
    ///   - count: the bytes taken, at least 1.
    ///   - held: the bytes that had arrived and not been read.
    ///   - isTunnel: whether the stream carries messages of another protocol. Its reader may stop at any time, so its
    ///     window only grows with what the reader takes.
    ///   - streamCount: the number of open streams, this one included.
    mutating func take(
        _ count: Int, of window: inout Window, isTunnel: Bool = false, held: Int, streamCount: Int, now: Int64
    ) -> Int? {
        let share = max(limits.initial, min(limits.stream, limits.connection / max(1, streamCount)))
        let wanted = wantedSize(&window, count, isTunnel: isTunnel, held: held, now: now)
        // A window of twice the share is kept: the number of streams changes all the time.
        let size = wanted > window.size ? min(wanted, max(share, window.size)) : min(wanted, 2 * share)
        guard size != window.size, budget.change(window.size - limits.initial, to: size - limits.initial) else {
            return nil
        }
        window.size = size
        return size
    }

    private func wantedSize(
        _ window: inout Window, _ count: Int, isTunnel: Bool, held: Int, now: Int64
    ) -> Int {
        window.taken += count
        guard let began = window.roundBegan else {
            // Less than the whole window may be what a reader takes before it stops.
            guard window.taken >= window.size else { return window.size }
            (window.roundBegan, window.taken) = (now, 0)
            return isTunnel ? window.size : min(max(window.size, pathSize), limits.stream)
        }
        let round = max(roundTrip ?? 0, Self.shortestRound)
        // Half of a window within less than a round trip is enough to know.
        if window.taken >= window.size / 2, now - began <= round {
            (window.roundBegan, window.taken) = (now, 0)
            return min(window.size * 2, limits.stream)
        }
        guard now - began > round else { return window.size }
        let perRound = Double(window.taken) * Double(round) / Double(now - began)
        (window.roundBegan, window.taken) = (now, 0)
        if perRound >= Double(window.size / 2) { return min(window.size * 2, limits.stream) }
        if perRound < Double(window.size / 8), held >= window.size / 2 { return max(window.size / 2, limits.initial) }
        return window.size
    }

    /// What a path of 1 Gbit/s holds in two round trips.
    private var pathSize: Int {
        let onTheWay = (roundTrip ?? 0).multipliedReportingOverflow(by: Self.presumedRate * 2)
        return onTheWay.overflow ? limits.stream : Int(onTheWay.partialValue / 1_000_000_000)
    }

    /// Returns what a window has taken of the budget of the process. Called once, when its stream ends.
    func release(_ window: Window) { _ = budget.change(window.size - limits.initial, to: 0) }
}

/// The bytes that the windows of all connections of the process have beyond their initial sizes.
final class HTTP2WindowBudget: Sendable {
    static let process = HTTP2WindowBudget(512 << 20)

    private let limit: Int
    private let used = Atomic<Int>(0)

    init(_ limit: Int) { self.limit = limit }

    var inUse: Int { used.load(ordering: .relaxed) }

    /// Returns whether there is room for the change; a smaller amount always has room.
    func change(_ old: Int, to new: Int) -> Bool {
        guard new != old else { return true }
        let after = used.wrappingAdd(new - old, ordering: .relaxed).newValue
        if new < old || after <= limit { return true }
        used.wrappingSubtract(new - old, ordering: .relaxed)
        return false
    }
}

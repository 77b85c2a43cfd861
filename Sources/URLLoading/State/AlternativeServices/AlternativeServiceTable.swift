// SPDX-License-Identifier: Apache-2.0

// In this folder: where servers offer HTTP/3

import URLLoadingWire

/// The alternative services of origins (RFC 7838), and how attempts to use HTTP/3 went. A value: the caller passes the
/// time in nanoseconds of a monotonic clock.
struct AlternativeServiceTable: Sendable {
    private struct Entry: Sendable {
        let service: AlternativeService
        /// The moment until which the service may be used (RFC 7838 §3.1).
        let end: Int64
    }

    /// How attempts at an origin went since the last success.
    private struct Health: Sendable {
        var failures = 0
        /// No attempt is made before this moment.
        var restsUntil: Int64 = .min
        /// An attempt took longer than loads wait.
        var isSlow = false
    }

    private var entries: [Origin: Entry] = [:]
    private var health: [Origin: Health] = [:]

    /// The number of origins that are remembered.
    static let most = 1_000
    /// The pause after a failed attempt, which doubles with each further one, up to a day.
    static let shortestRest: Int64 = 300_000_000_000
    static let longestRest: Int64 = 86_400_000_000_000

    /// Where to make a connection for an origin.
    struct Target: Sendable, Equatable {
        /// `nil` for the origin's own host and port.
        var service: AlternativeService?
        /// Loads do not wait for the connection.
        var isSlow = false
    }

    /// Returns where HTTP/3 is to be tried; `nil` for nowhere.
    /// - Parameter isPreferred: whether it is also tried at origins that did not offer it.
    mutating func target(for origin: Origin, isPreferred: Bool, now: Int64) -> Target? {
        if let entry = entries[origin], entry.end <= now { entries[origin] = nil }
        let entry = entries[origin]
        guard entry != nil || isPreferred else { return nil }
        let state = health[origin] ?? Health()
        return state.restsUntil <= now ? Target(service: entry?.service, isSlow: state.isSlow) : nil
    }

    /// Whether the origin has offered HTTP/3.
    func knows(_ origin: Origin) -> Bool { entries[origin] != nil }

    /// Learns the field of a response: the first service of HTTP/3 in it replaces what was known (RFC 7838 §3).
    mutating func learn(_ field: AlternativeServices, from origin: Origin, now: Int64) {
        guard case .services(let all) = field,
            let service = all.first(where: { $0.protocolID == "h3" && $0.maxAge > 0 })
        else {
            entries[origin] = nil
            return
        }
        if entries[origin] == nil, entries.count >= Self.most { dropOne(now) }
        // A year is long enough.
        let end = now + min(service.maxAge, 31_536_000) * 1_000_000_000
        if entries[origin]?.service.isSamePlace(as: service) == false { health[origin] = nil }
        entries[origin] = Entry(service: service, end: end)
    }

    private mutating func dropOne(_ now: Int64) {
        if let first = entries.min(by: { $0.value.end < $1.value.end }) { entries[first.key] = nil }
    }

    /// Notes that loads did not wait for the end of an attempt.
    mutating func isSlow(_ origin: Origin) { change(origin) { $0.isSlow = true } }

    /// Notes a failed attempt.
    mutating func failed(_ origin: Origin, now: Int64) {
        change(origin) { state in
            state.isSlow = true
            state.failures = min(state.failures + 1, 16)
            state.restsUntil = now + min(Self.shortestRest << (state.failures - 1), Self.longestRest)
        }
    }

    mutating func succeeded(_ origin: Origin) { health[origin] = nil }

    private mutating func change(_ origin: Origin, _ body: (inout Health) -> Void) {
        if health[origin] == nil, health.count >= Self.most {
            if let first = health.min(by: { $0.value.restsUntil < $1.value.restsUntil }) { health[first.key] = nil }
        }
        body(&health[origin, default: Health()])
    }
}

// SPDX-License-Identifier: Apache-2.0

// The alternative services of origins (RFC 7838), and how attempts to use HTTP/3 went. A value without a lock, a clock
// or a disk.

import FoundationEssentials
import URLLoadingWire

struct AlternativeServiceTable: Sendable {
    private(set) var records: [Origin: AlternativeServiceRecord] = [:]

    /// The number of origins that are remembered.
    static let most = 1_000

    /// Where to make a connection for an origin.
    struct Target: Sendable, Equatable {
        /// `nil` for the origin's own host and port.
        var service: AlternativeService?
        /// Loads do not wait for the connection.
        var isSlow = false
        var reason = Reason.configured
    }

    /// Why HTTP/3 is tried.
    enum Reason: Sendable, Equatable {
        case configured
        /// A response's Alt-Svc (RFC 7838).
        case response
        /// An HTTPS record (RFC 9460).
        case record

        var words: String {
            switch self {
            case .configured: "as the configuration asks"
            case .response: "offered in a response (Alt-Svc)"
            case .record: "offered in an HTTPS record"
            }
        }
    }

    /// Returns where HTTP/3 is to be tried; `nil` for nowhere.
    /// - Parameter isPreferred: whether it is also tried at origins that did not offer it.
    func target(for origin: Origin, isPreferred: Bool, now: Date) -> Target? {
        let record = records[origin]
        let service = record?.offer(now)
        guard service != nil || isPreferred else { return nil }
        return record?.isResting(now) == true
            ? nil
            : Target(
                service: service, isSlow: record?.isSlow ?? false,
                reason: service == nil ? .configured : .response)
    }

    /// Whether the origin has offered HTTP/3.
    func knows(_ origin: Origin, now: Date) -> Bool { records[origin]?.offer(now) != nil }

    /// Changes what is known of an origin. Returns the record that was evicted.
    mutating func change(
        _ origin: Origin, now: Date, _ body: (inout AlternativeServiceRecord) -> Void
    ) -> AlternativeServiceRecord? {
        var record = records[origin] ?? AlternativeServiceRecord(origin: origin, creationDate: now)
        body(&record)
        guard record.service != nil || record.failures > 0 || record.isSlow else {
            records[origin] = nil
            return nil
        }
        record.creationDate = now
        return set(record)
    }

    private mutating func set(_ record: AlternativeServiceRecord) -> AlternativeServiceRecord? {
        var removed: AlternativeServiceRecord?
        if records[record.origin] == nil, records.count >= Self.most {
            removed = records.values.min { $0.lasts < $1.lasts }
            if let removed { records[removed.origin] = nil }
        }
        records[record.origin] = record
        return removed
    }

    /// Removes and returns the records that were changed at a moment or later.
    mutating func remove(since moment: Date) -> [AlternativeServiceRecord] {
        let removed = records.values.filter { $0.creationDate >= moment }
        for record in removed { records[record.origin] = nil }
        return removed
    }

    var count: Int { records.count }
    var persistentRows: [AlternativeServiceRecord] { Array(records.values) }

    mutating func replacePersistent(
        with rows: [AlternativeServiceRecord], now: Date
    ) -> PersistedReplacement<AlternativeServiceRecord> {
        self = AlternativeServiceTable()
        return PersistedReplacement(removed: rows.filter { !$0.isExpired(now) }.compactMap { set($0) })
    }
}

/// What is known of one origin: its offer, and how attempts went since the last success.
struct AlternativeServiceRecord: Sendable {
    let origin: Origin
    /// `nil` if the origin has not offered HTTP/3.
    var service: AlternativeService?
    /// The moment until which the service may be used (RFC 7838 §3.1).
    var end = Date.distantPast
    var failures = 0
    /// No attempt is made before this moment.
    var restsUntil = Date.distantPast
    /// An attempt took longer than loads wait.
    var isSlow = false
    /// The attempts before are forgotten, also those that only the file has.
    var hasSucceeded = false
    /// When it was last changed.
    var creationDate: Date

    /// The longest that an offer is believed: a year, in seconds.
    static let longestAge: Int64 = 31_536_000
    /// The pause after a failed attempt, which doubles with each further one, up to a day; in seconds.
    static let shortestRest = 300.0
    static let longestRest = 86_400.0

    /// Whether the record says how attempts went; false for an offer alone.
    var saysAttempts: Bool { failures > 0 || isSlow || hasSucceeded }

    func offer(_ now: Date) -> AlternativeService? { end > now ? service : nil }

    /// Whether no attempt is made now. A clock that was set back does not make the pause longer than it can be.
    func isResting(_ now: Date) -> Bool { restsUntil > now && restsUntil <= now + Self.longestRest }

    /// Until when the record is of use: the number of failures is remembered for a day after the pause.
    var lasts: Date { failures > 0 ? max(end, restsUntil + Self.longestRest) : end }

    /// Learns the field of a response: the first service of HTTP/3 in it replaces what was known (RFC 7838 §3).
    mutating func learn(_ field: AlternativeServices, now: Date) {
        guard case .services(let all) = field,
            let new = all.first(where: { $0.protocolID == "h3" && $0.maxAge > 0 })
        else { return forget() }
        if let service, !service.isSamePlace(as: new) { succeeded() }
        (service, end) = (new, now + Double(min(new.maxAge, Self.longestAge)))
    }

    mutating func forget() { (service, end) = (nil, .distantPast) }

    /// Notes a failed attempt.
    mutating func failed(now: Date) {
        isSlow = true
        failures = min(failures + 1, 16)
        restsUntil = now + min(Self.shortestRest * Double(1 << (failures - 1)), Self.longestRest)
    }

    /// Notes a successful attempt, or that there is a new place to try.
    mutating func succeeded() { (failures, restsUntil, isSlow, hasSucceeded) = (0, .distantPast, false, true) }
}

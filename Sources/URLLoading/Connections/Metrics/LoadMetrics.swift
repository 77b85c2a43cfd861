// SPDX-License-Identifier: Apache-2.0

// In this folder: what a load measures of its connections and requests

public import FoundationEssentials

/// The durations and byte counts of a load: one ``Transaction`` for each request it made.
///
/// Delivered as ``LoadEvent/metrics(_:)`` to the observers of the load's events, directly before the last event, and by
/// ``LoadTask/metrics``. A load without a handle, such as ``Session/data(for:decisions:)``, in a session without
/// ``Configuration/observers`` collects none.
///
/// ```swift
/// let metrics = try await task.metrics
/// for transaction in metrics.transactions {
///     print(transaction.request.url, transaction.isReusedConnection, transaction.duration)
/// }
/// ```
/// Moments are read from one monotonic clock, so that their differences are consistent even if the time of day is
/// changed; their dates are computed from one reading of the time of day, when the load was created.
public struct LoadMetrics: Sendable {
    /// The moment the load was created: for a handle, before it was resumed.
    public let start: Moment
    /// The end of the load.
    public let end: Moment
    /// The number of redirects that were followed.
    public let redirectCount: Int
    /// A transaction for each request that was made, redirects and retries included, in the order of their starts.
    /// Empty for a load that ended before its first request.
    public let transactions: [Transaction]

    /// The duration from ``start`` to ``end``.
    public var duration: Duration { end - start }

    init(_ origin: Moment.Origin, end: Int64, redirectCount: Int, _ transactions: [Transaction]) {
        start = Moment(origin, at: origin.nanoseconds)
        self.end = Moment(origin, at: end)
        self.redirectCount = redirectCount
        self.transactions = transactions
    }

    /// Creates the metrics of a load that could not be created: without a transaction, it begins and ends at `date`.
    package init(unsentAt date: Date) {
        self.init(Moment.Origin(nanoseconds: 0, date: date), end: 0, redirectCount: 0, [])
    }

    /// A point in the time of one load. Moments of different loads are not comparable: compare their ``date``.
    public struct Moment: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// The zero of a load's time, on both clocks.
        struct Origin: Sendable, Hashable {
            let nanoseconds: Int64
            let date: Date
        }
        private let origin: Date
        private let nanoseconds: Int64

        init(_ origin: Origin, at moment: Int64) {
            self.origin = origin.date
            nanoseconds = moment - origin.nanoseconds
        }

        /// The time since the load was created.
        public var offset: Duration { .nanoseconds(nanoseconds) }
        /// The moment by the time of day.
        public var date: Date { origin.addingTimeInterval(Double(nanoseconds) / 1e9) }

        public static func < (a: Moment, b: Moment) -> Bool { a.nanoseconds < b.nanoseconds }
        /// The time from one moment to another of the same load.
        public static func - (a: Moment, b: Moment) -> Duration { .nanoseconds(a.nanoseconds - b.nanoseconds) }

        /// The offset from the load's start: `+12.3 ms`.
        public var description: String { "+\(offset.inMilliseconds) ms" }
    }
}

extension LoadMetrics: CustomStringConvertible {
    /// The metrics on one line, without secrets: `34.1 ms, 1 redirect: 302 in 20.0 ms, 200 in 14.0 ms reused`.
    public var description: String {
        let redirects = redirectCount == 0 ? "" : ", \(redirectCount) redirect\(redirectCount == 1 ? "" : "s")"
        let parts = transactions.isEmpty ? "" : ": " + transactions.map(\.description).joined(separator: ", ")
        return "\(duration.inMilliseconds) ms\(redirects)\(parts)"
    }
}

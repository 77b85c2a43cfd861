public import FoundationEssentials

/// What a load did with its time and bytes: one ``Transaction`` for each request it made.
///
/// Given as ``LoadEvent/metrics(_:)`` to whoever hears the load's events, directly before the last, and by
/// ``LoadTask/metrics``. A verb in a session without ``Configuration/observers`` collects none.
///
/// ```swift
/// let metrics = try await task.metrics
/// for transaction in metrics.transactions {
///     print(transaction.request.url, transaction.isReusedConnection, transaction.duration)
/// }
/// ```
/// Moments are taken from one monotonic clock, so that their differences add up whatever happens to the
/// time of day; their dates count from one look at the time of day, when the load was made.
public struct LoadMetrics: Sendable {
    /// When the load was made: for a handle, before it was resumed.
    public let start: Moment
    /// When it was over.
    public let end: Moment
    /// How many redirects were followed.
    public let redirectCount: Int
    /// A transaction for each request that was made, redirects and repeated tries included, in the order in
    /// which they began. Empty for a load that ended before.
    public let transactions: [Transaction]

    /// From ``start`` to ``end``.
    public var duration: Duration { end - start }

    init(_ origin: Moment.Origin, end: Int64, redirectCount: Int, _ transactions: [Transaction]) {
        start = Moment(origin, at: origin.nanoseconds)
        self.end = Moment(origin, at: end)
        self.redirectCount = redirectCount
        self.transactions = transactions
    }

    /// A point in the time of one load. Those of another load do not compare: take their ``date``.
    public struct Moment: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// Where the time of a load begins, on both clocks.
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

        /// Since the load was made.
        public var offset: Duration { .nanoseconds(nanoseconds) }
        /// The same by the time of day.
        public var date: Date { origin.addingTimeInterval(Double(nanoseconds) / 1e9) }

        public static func < (a: Moment, b: Moment) -> Bool { a.nanoseconds < b.nanoseconds }
        /// The time from one moment to another of the same load.
        public static func - (a: Moment, b: Moment) -> Duration { .nanoseconds(a.nanoseconds - b.nanoseconds) }

        /// `+12.3 ms`, from the load's start.
        public var description: String { "+\(offset.inMilliseconds) ms" }
    }
}

extension LoadMetrics: CustomStringConvertible {
    /// One line, without secrets: `34.1 ms, 1 redirect: 302 in 20.0 ms, 200 in 14.0 ms reused`.
    public var description: String {
        let redirects = redirectCount == 0 ? "" : ", \(redirectCount) redirect\(redirectCount == 1 ? "" : "s")"
        let parts = transactions.isEmpty ? "" : ": " + transactions.map(\.description).joined(separator: ", ")
        return "\(duration.inMilliseconds) ms\(redirects)\(parts)"
    }
}

public import Foundation
import URLLoading

/// What a task took: a view of the core's `LoadMetrics`.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    /// Where a response came from.
    public enum ResourceFetchType: Int, Sendable {
        case unknown = 0
        case networkLoad = 1
        /// Servers are never allowed to push.
        @available(*, deprecated, message: "Servers are never allowed to push")
        case serverPush = 2
        case localCache = 3
    }

    /// How a name was looked up.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// The system's resolver does not tell.
        case unknown = 0
        case udp = 1
        case tcp = 2
        case tls = 3
        case https = 4
    }

    private let metrics: LoadMetrics
    private let original: URLRequest
    /// As it was at the end of the task.
    private let path: NetworkPath

    init(_ metrics: LoadMetrics, _ original: URLRequest, _ path: NetworkPath) {
        self.metrics = metrics
        self.original = original
        self.path = path
    }

    /// One for every request that was sent, and every response that came from elsewhere.
    public var transactionMetrics: [URLSessionTaskTransactionMetrics] {
        metrics.transactions.map { URLSessionTaskTransactionMetrics($0, original, path) }
    }

    /// From ``URLSessionTask/resume()`` to the end.
    public var taskInterval: DateInterval {
        DateInterval(start: metrics.start.date, end: max(metrics.start.date, metrics.end.date))
    }

    /// How many redirects were followed.
    public var redirectCount: Int { metrics.redirectCount }

    /// One line.
    open override var description: String { "<URLSessionTaskMetrics \(metrics)>" }
}

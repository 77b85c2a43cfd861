public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

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
    private let path: LatePath

    init(_ metrics: LoadMetrics, _ original: URLRequest, _ path: LatePath) {
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

/// The way to others, looked at when somebody asks: the kernel takes a tenth of a millisecond to tell, and few who hear of
/// metrics want to know.
final class LatePath: Sendable {
    private let monitor: NetworkMonitor
    private let path = Lock<NetworkPath?>(nil)

    init(_ monitor: NetworkMonitor) { self.monitor = monitor }

    var value: NetworkPath {
        if let path = path.withLock({ $0 }) { return path }
        let current = monitor.current
        return path.withLock { path in
            let known = path ?? current
            path = known
            return known
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// In this folder: the metrics of the classic API

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// The metrics of a task: a view of the core's `LoadMetrics`.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// The source of a response.
    public enum ResourceFetchType: Int, Sendable {
        /// The source is unknown: the transaction did not get that far.
        case unknown = 0
        /// From the network.
        case networkLoad = 1
        /// Never reported: HTTP/2 server push is disabled.
        @available(*, deprecated, message: "Servers are never allowed to push")
        case serverPush = 2
        /// From the cache.
        case localCache = 3
    }

    /// How a host name was resolved.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// The system's resolver does not report the protocol.
        case unknown = 0
        /// DNS over UDP.
        case udp = 1
        /// DNS over TCP.
        case tcp = 2
        /// DNS over TLS.
        case tls = 3
        /// DNS over HTTPS.
        case https = 4
    }

    private let metrics: LoadMetrics
    private let original: URLRequest
    private let path: LazyNetworkPath

    init(_ metrics: LoadMetrics, _ original: URLRequest, _ path: LazyNetworkPath) {
        self.metrics = metrics
        self.original = original
        self.path = path
    }

    /// The transactions: one for each request sent, and one for each response from the cache or another local source.
    public var transactionMetrics: [URLSessionTaskTransactionMetrics] {
        metrics.transactions.map { URLSessionTaskTransactionMetrics($0, original, path) }
    }

    /// The interval from ``URLSessionTask/resume()`` to the end of the task.
    public var taskInterval: DateInterval {
        DateInterval(start: metrics.start.date, end: max(metrics.start.date, metrics.end.date))
    }

    /// The number of redirects that were followed.
    public var redirectCount: Int { metrics.redirectCount }

    /// The metrics on one line.
    open override var description: String { "<URLSessionTaskMetrics \(metrics)>" }
}

/// The properties of the network path, read from the kernel at first access: the query takes about 0.1 ms, and few
/// observers of metrics need it.
final class LazyNetworkPath: Sendable {
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

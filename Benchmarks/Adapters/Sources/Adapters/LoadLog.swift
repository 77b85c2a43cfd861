// SPDX-License-Identifier: Apache-2.0

import Logging
import Synchronization
import URLLoading

/// Writes an entry of swift-log for each load that ends.
final class LoadLog: LoadObserver {
    private let logger: Logger
    /// What is known of the loads that have metrics and have not ended.
    private let ending = Mutex<[UInt64: Logger.Metadata]>([:])

    init(_ logger: Logger) { self.logger = logger }

    func observe(_ event: LoadEvent, of load: LoadIdentity) {
        switch event {
        case .metrics(let metrics):
            var attributes = HTTPConventions.attributes(of: load.request)
            if let last = metrics.transactions.last {
                attributes.merge(HTTPConventions.attributes(of: last)) { $1 }
            }
            attributes["url.full"] = load.request.redactedURL
            attributes["http.client.request.duration"] = "\(metrics.duration / .seconds(1))"
            ending.withLock { $0[load.id] = attributes.mapValues { .string($0) } }
        case .completed(let error):
            var metadata = ending.withLock { $0.removeValue(forKey: load.id) } ?? [:]
            if let error { metadata["error.type"] = .string(error.reason.name) }
            let isFailure = error.map { $0.reason != .cancelled } ?? false
            logger.log(level: isFailure ? .error : .info, "\(load)", error: error, metadata: metadata)
        case .retrying(let retry):
            logger.notice("\(load) \(retry)")
        default: break
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Metrics
import URLLoading

/// Records the duration and the size of each exchange with a server by swift-metrics.
struct RequestDurations: LoadObserver {
    var factory: any MetricsFactory = MetricsSystem.factory

    func observe(_ event: LoadEvent, of load: LoadIdentity) {
        guard case .metrics(let metrics) = event else { return }
        for transaction in metrics.transactions where transaction.fetchType == .network {
            var attributes = HTTPConventions.attributes(of: transaction.request)
            attributes.merge(HTTPConventions.attributes(of: transaction)) { $1 }
            let dimensions = attributes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            func record(_ name: String, _ value: Double) {
                Recorder(label: name, dimensions: dimensions, factory: factory).record(value)
            }
            record("http.client.request.duration", transaction.duration / .seconds(1))
            record("http.client.request.body.size", Double(transaction.requestContentBytes))
            record("http.client.response.body.size", Double(transaction.responseBodyBytes))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// The settings that apply to a request which has none of its own, copied out of the configuration. A function that
/// compares an optional setting of `Configuration`, or passes the configuration on, gets a copy of its 1.4 KB in its
/// frame, which a load then holds while it waits. A class, because each load reads it several times and never copies
/// it.
final class RequestDefaults: Sendable {
    /// The timeouts in nanoseconds; `.max` for none.
    let idleLimit, resourceLimit, connectLimit: Int64
    let clock: LoopClock
    let allowsCellularAccess: Bool
    let allowsExpensiveNetworkAccess: Bool
    let allowsConstrainedNetworkAccess: Bool
    let waitsForConnectivity: Bool
    let trafficClass: TrafficClass
    let cachePolicy: Request.CachePolicy
    /// Whether a response is stored that is never fresh and cannot be validated.
    let storesForAnyAge: Bool
    let hasRetryPolicy: Bool
    /// True for a session whose transfers are carried out by the agent.
    let isBackground: Bool

    init(_ configuration: Configuration) {
        idleLimit = LoadHandle.limit(configuration.timeouts.idle)
        resourceLimit = LoadHandle.limit(configuration.timeouts.resource)
        connectLimit = LoadHandle.limit(configuration.timeouts.connect)
        clock = configuration.clock
        allowsCellularAccess = configuration.networks.allowsCellular
        allowsExpensiveNetworkAccess = configuration.networks.allowsExpensive
        allowsConstrainedNetworkAccess = configuration.networks.allowsConstrained
        waitsForConnectivity = configuration.networks.waitsForConnectivity
        trafficClass = configuration.networks.trafficClass
        cachePolicy = configuration.caching.policy
        storesForAnyAge = configuration.caching.storesForAnyAge || cachePolicy.acceptsAnyAge
        hasRetryPolicy = configuration.retries.policy != nil
        isBackground = configuration.background != nil
    }
}

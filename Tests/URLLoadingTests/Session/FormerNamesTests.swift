// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingWire

@testable import URLLoading

/// The names that settings had before they were grouped.
struct FormerNamesTests {
    /// Fails unless both names of a setting read and write the same value.
    /// - Parameters:
    ///   - value: differs from the default.
    ///   - trait: what is compared of a value.
    private func agree<Value>(
        _ old: WritableKeyPath<Configuration, Value>, _ new: WritableKeyPath<Configuration, Value>, _ value: Value,
        by trait: (Value) -> some Equatable
    ) {
        let initial = trait(Configuration.default[keyPath: new])
        #expect(trait(Configuration.default[keyPath: old]) == initial)
        #expect(trait(value) != initial)
        var (byOld, byNew) = (Configuration.default, Configuration.default)
        byOld[keyPath: old] = value
        byNew[keyPath: new] = value
        #expect(trait(byOld[keyPath: new]) == trait(value))
        #expect(trait(byNew[keyPath: old]) == trait(value))
    }

    private func agree<Value: Equatable>(
        _ old: WritableKeyPath<Configuration, Value>, _ new: WritableKeyPath<Configuration, Value>, _ value: Value
    ) {
        agree(old, new, value, by: { $0 })
    }

    @available(*, deprecated)
    @Test("Former names of timeouts and connections forward to the groups")
    func timeoutsAndConnections() {
        agree(\.idleTimeout, \.timeouts.idle, .seconds(1))
        agree(\.resourceTimeout, \.timeouts.resource, .seconds(2))
        agree(\.connectTimeout, \.timeouts.connect, .seconds(3))
        agree(\.expectContinueTimeout, \.timeouts.expectContinue, .seconds(4))
        agree(\.maximumConnectionsPerHost, \.connections.maximumPerHost, 1)
        agree(\.idleConnectionLifetime, \.connections.idleLifetime, .seconds(5))
        agree(\.maximumIdleConnections, \.connections.maximumIdle, 2)
        agree(\.http2PingInterval, \.connections.http2PingInterval, .seconds(6))
        agree(\.http2PingTimeout, \.connections.http2PingTimeout, .seconds(7))
        agree(\.httpVersions, \.connections.httpVersions, .http1Only)
    }

    @available(*, deprecated)
    @Test("Former names of networks forward to the group")
    func networks() throws {
        agree(\.addressPolicy, \.networks.addressPolicy, .publicOnly, by: \.isPublicOnly)
        agree(\.allowsCellularAccess, \.networks.allowsCellular, false)
        agree(\.allowsExpensiveNetworkAccess, \.networks.allowsExpensive, false)
        agree(\.allowsConstrainedNetworkAccess, \.networks.allowsConstrained, false)
        agree(\.waitsForConnectivity, \.networks.waitsForConnectivity, true)
        agree(\.addressOverrides, \.networks.addressOverrides, [try .addresses(["127.0.0.1"], of: "a")])
        agree(\.networkInterface, \.networks.interface, .named("lo"))
        agree(\.nameResolver, \.networks.nameResolver, NameResolver { _ in [] }, by: { $0.resolver is SystemResolver })
        agree(\.proxyPolicy, \.networks.proxyPolicy, .none, by: { "\($0.choice)" })
        agree(\.trafficClass, \.networks.trafficClass, .background)
    }

    @available(*, deprecated)
    @Test("Former names of the cache, of redirects and of retries forward to the groups")
    func cachingRedirectsRetries() {
        let cache = ResponseCache(memoryCapacity: 1 << 20)
        agree(\.cache, \.caching.store, cache, by: { $0.map { ObjectIdentifier($0) } })
        agree(\.cachesInMemory, \.caching.usesMemoryStore, false)
        agree(\.cachePolicy, \.caching.policy, .reload)
        agree(\.coalescesIdenticalRequests, \.caching.coalescesIdenticalRequests, true)
        agree(\.maximumRedirects, \.redirects.maximum, 3)
        agree(\.retryPolicy, \.retries.policy, RetryPolicy())
    }
}

// SPDX-License-Identifier: Apache-2.0

// The former names of settings that are in groups now (docs/decisions/0020-settings-in-groups.md). The next minor
// version removes this file.

extension Configuration {
    /// Renamed ``Timeouts/idle``.
    @available(*, deprecated, renamed: "timeouts.idle")
    public var idleTimeout: Duration? {
        get { timeouts.idle }
        set { timeouts.idle = newValue }
    }
    /// Renamed ``Timeouts/resource``.
    @available(*, deprecated, renamed: "timeouts.resource")
    public var resourceTimeout: Duration? {
        get { timeouts.resource }
        set { timeouts.resource = newValue }
    }
    /// Renamed ``Timeouts/connect``.
    @available(*, deprecated, renamed: "timeouts.connect")
    public var connectTimeout: Duration? {
        get { timeouts.connect }
        set { timeouts.connect = newValue }
    }
    /// Renamed ``Timeouts/expectContinue``.
    @available(*, deprecated, renamed: "timeouts.expectContinue")
    public var expectContinueTimeout: Duration {
        get { timeouts.expectContinue }
        set { timeouts.expectContinue = newValue }
    }
    /// Renamed ``Connections/maximumPerHost``.
    @available(*, deprecated, renamed: "connections.maximumPerHost")
    public var maximumConnectionsPerHost: Int {
        get { connections.maximumPerHost }
        set { connections.maximumPerHost = newValue }
    }
    /// Renamed ``Connections/idleLifetime``.
    @available(*, deprecated, renamed: "connections.idleLifetime")
    public var idleConnectionLifetime: Duration {
        get { connections.idleLifetime }
        set { connections.idleLifetime = newValue }
    }
    /// Renamed ``Connections/maximumIdle``.
    @available(*, deprecated, renamed: "connections.maximumIdle")
    public var maximumIdleConnections: Int {
        get { connections.maximumIdle }
        set { connections.maximumIdle = newValue }
    }
    /// Renamed ``Connections/http2PingInterval``.
    @available(*, deprecated, renamed: "connections.http2PingInterval")
    public var http2PingInterval: Duration? {
        get { connections.http2PingInterval }
        set { connections.http2PingInterval = newValue }
    }
    /// Renamed ``Connections/http2PingTimeout``.
    @available(*, deprecated, renamed: "connections.http2PingTimeout")
    public var http2PingTimeout: Duration {
        get { connections.http2PingTimeout }
        set { connections.http2PingTimeout = newValue }
    }
    /// Renamed ``Connections/httpVersions``.
    @available(*, deprecated, renamed: "connections.httpVersions")
    public var httpVersions: HTTPVersions {
        get { connections.httpVersions }
        set { connections.httpVersions = newValue }
    }
    /// Renamed ``Networks/addressPolicy``.
    @available(*, deprecated, renamed: "networks.addressPolicy")
    public var addressPolicy: AddressPolicy {
        get { networks.addressPolicy }
        set { networks.addressPolicy = newValue }
    }
    /// Renamed ``Networks/allowsCellular``.
    @available(*, deprecated, renamed: "networks.allowsCellular")
    public var allowsCellularAccess: Bool {
        get { networks.allowsCellular }
        set { networks.allowsCellular = newValue }
    }
    /// Renamed ``Networks/allowsExpensive``.
    @available(*, deprecated, renamed: "networks.allowsExpensive")
    public var allowsExpensiveNetworkAccess: Bool {
        get { networks.allowsExpensive }
        set { networks.allowsExpensive = newValue }
    }
    /// Renamed ``Networks/allowsConstrained``.
    @available(*, deprecated, renamed: "networks.allowsConstrained")
    public var allowsConstrainedNetworkAccess: Bool {
        get { networks.allowsConstrained }
        set { networks.allowsConstrained = newValue }
    }
    /// Renamed ``Networks/waitsForConnectivity``.
    @available(*, deprecated, renamed: "networks.waitsForConnectivity")
    public var waitsForConnectivity: Bool {
        get { networks.waitsForConnectivity }
        set { networks.waitsForConnectivity = newValue }
    }
    /// Renamed ``Networks/addressOverrides``.
    @available(*, deprecated, renamed: "networks.addressOverrides")
    public var addressOverrides: AddressOverrides {
        get { networks.addressOverrides }
        set { networks.addressOverrides = newValue }
    }
    /// Renamed ``Networks/interface``.
    @available(*, deprecated, renamed: "networks.interface")
    public var networkInterface: NetworkInterface? {
        get { networks.interface }
        set { networks.interface = newValue }
    }
    /// Renamed ``Networks/nameResolver``.
    @available(*, deprecated, renamed: "networks.nameResolver")
    public var nameResolver: NameResolver {
        get { networks.nameResolver }
        set { networks.nameResolver = newValue }
    }
    /// Renamed ``Networks/proxyPolicy``.
    @available(*, deprecated, renamed: "networks.proxyPolicy")
    public var proxyPolicy: ProxyPolicy {
        get { networks.proxyPolicy }
        set { networks.proxyPolicy = newValue }
    }
    /// Renamed ``Networks/trafficClass``.
    @available(*, deprecated, renamed: "networks.trafficClass")
    public var trafficClass: TrafficClass {
        get { networks.trafficClass }
        set { networks.trafficClass = newValue }
    }
    /// Renamed ``Caching/store``.
    @available(*, deprecated, renamed: "caching.store")
    public var cache: ResponseCache? {
        get { caching.store }
        set { caching.store = newValue }
    }
    /// Renamed ``Caching/usesMemoryStore``.
    @available(*, deprecated, renamed: "caching.usesMemoryStore")
    public var cachesInMemory: Bool {
        get { caching.usesMemoryStore }
        set { caching.usesMemoryStore = newValue }
    }
    /// Renamed ``Caching/policy``.
    @available(*, deprecated, renamed: "caching.policy")
    public var cachePolicy: Request.CachePolicy {
        get { caching.policy }
        set { caching.policy = newValue }
    }
    /// Renamed ``Caching/coalescesIdenticalRequests``.
    @available(*, deprecated, renamed: "caching.coalescesIdenticalRequests")
    public var coalescesIdenticalRequests: Bool {
        get { caching.coalescesIdenticalRequests }
        set { caching.coalescesIdenticalRequests = newValue }
    }
    /// Renamed ``Redirects/maximum``.
    @available(*, deprecated, renamed: "redirects.maximum")
    public var maximumRedirects: Int {
        get { redirects.maximum }
        set { redirects.maximum = newValue }
    }
    /// Renamed ``Retries/policy``.
    @available(*, deprecated, renamed: "retries.policy")
    public var retryPolicy: RetryPolicy? {
        get { retries.policy }
        set { retries.policy = newValue }
    }
}

// SPDX-License-Identifier: Apache-2.0

package import URLLoadingIO

extension Configuration {
    /// The networks of a session's connections, and the way to a host: names, addresses, proxies, interface.
    ///
    /// ```swift
    /// configuration.networks.addressPolicy = .publicOnly
    /// configuration.networks.allowsExpensive = false
    /// ```
    public struct Networks: Sendable {
        /// The addresses that may be connected to; all by default. For servers that load URLs of their users:
        /// ``AddressPolicy/publicOnly``.
        public var addressPolicy = AddressPolicy.any

        /// Whether connections may be made, and reused, over a mobile network (``NetworkPath/usesCellular``); true by
        /// default. If not, the load ends with ``LoadError/Reason/notAllowedOnCellularNetwork``. A request may set its
        /// own. URLSession's `allowsCellularAccess`.
        ///
        /// This and the two settings below are checked when the host's addresses are known, with
        /// ``NetworkMonitor/shared``. Connections to this machine are always allowed, and so are all while the path is
        /// ``NetworkPath/Status/unknown``. Running transfers are not ended.
        public var allowsCellular = true
        /// Whether connections may use a network that charges by volume (``NetworkPath/isExpensive``); true by default.
        /// URLSession's `allowsExpensiveNetworkAccess`.
        public var allowsExpensive = true
        /// Whether connections may use a network while the user wants little traffic (``NetworkPath/isConstrained``);
        /// true by default. URLSession's `allowsConstrainedNetworkAccess`.
        public var allowsConstrained = true

        /// Whether a load without a network waits for one instead of failing; false by default. It waits before it
        /// connects to another machine if ``NetworkMonitor/shared`` knows no route, or only routes that the three
        /// settings above forbid. ``LoadEvent/waitingForConnectivity`` is emitted once for each wait. A request may set
        /// its own.
        ///
        /// The idle timeout is suspended meanwhile, the resource timeout runs on. Connections to this machine never
        /// wait, and an idle connection is used without a check. A network without access to the Internet counts as a
        /// network. If the path is ``NetworkPath/Status/unknown`` the load fails as without this setting.
        public var waitsForConnectivity = false

        /// Addresses to connect to in place of those in URLs; the first match applies. None by default.
        public var addressOverrides: AddressOverrides = []

        /// The local interface or address of connections; `nil` for the one that the routing table chooses.
        public var interface: NetworkInterface?

        /// The resolver of host names; ``NameResolver/system`` by default.
        public var nameResolver: NameResolver {
            get { NameResolver(resolver) }
            set { resolver = newValue.resolver }
        }
        /// The resolver behind ``nameResolver``; tests replace it.
        package var resolver: any Resolver = SystemResolver.shared

        /// The rules that select a proxy for a request; by default the environment's variables.
        public var proxyPolicy = ProxyPolicy.environment

        /// The traffic class of the session's loads, by which networks order packets. A request may set its own.
        public var trafficClass = TrafficClass.default

        /// Creates the default settings.
        public init() {}
    }
}

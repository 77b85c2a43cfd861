// SPDX-License-Identifier: Apache-2.0

/// The network connectivity of this machine at one time: a value.
///
/// ```swift
/// let path = NetworkMonitor.shared.current
/// if path.isSatisfied, !path.isExpensive { prefetch() }
/// ```
/// The path describes the networks that a connection could use, and not whether a server is reachable, which only a
/// connection attempt can show. Attempt requests even if the path is not satisfied.
public struct NetworkPath: Sendable, Hashable, CustomStringConvertible {
    /// Whether other machines can be reached.
    public enum Status: String, Sendable, Hashable {
        /// Other machines may be reachable: there is a default route or a non-local address on an interface that is up
        /// and has a carrier.
        case satisfied
        /// No other machine is reachable.
        case unsatisfied
        /// The system does not allow this process to query the network, as in some sandboxes.
        case unknown
    }

    /// The technology of an interface. More may be added: use `default` in a switch.
    public enum InterfaceType: String, Sendable, Hashable {
        /// Ethernet and its equivalents: bridges, virtual pairs, tethered phones.
        case wired
        /// A wireless LAN, according to its driver.
        case wifi
        /// A modem of a mobile network, according to its driver; also interfaces named `wwan…`, `rmnet…` or `ppp…`.
        case cellular
        /// The loopback interface; never among ``NetworkPath/interfaces``.
        case loopback
        /// Tunnels and all other interfaces.
        case other
    }

    /// An interface that a connection could use.
    public struct Interface: Sendable, Hashable {
        /// The name of the interface, such as `eth0`.
        public var name: String
        /// The system's index of the interface, at least 1.
        public var index: Int
        /// The kind of the interface.
        public var type: InterfaceType
        /// Whether it has a reachable IPv4 address, or an IPv4 default route.
        public var supportsIPv4: Bool
        /// Whether it has a reachable IPv6 address, or an IPv6 default route.
        public var supportsIPv6: Bool
        /// Whether connections to other networks use it: its default route has the lowest metric, or no interface has
        /// one. If a tunnel is preferred, the interface it most probably uses is preferred as well.
        public var isPreferred: Bool

        /// Creates an interface, for tests of programs that depend on the network.
        public init(
            name: String, index: Int, type: InterfaceType, supportsIPv4: Bool = true, supportsIPv6: Bool = true,
            isPreferred: Bool = true
        ) {
            self.name = name
            self.index = index
            self.type = type
            self.supportsIPv4 = supportsIPv4
            self.supportsIPv6 = supportsIPv6
            self.isPreferred = isPreferred
        }
    }

    /// Whether other machines may be reachable.
    public let status: Status
    /// The interfaces that connections could use, the preferred ones first.
    public let interfaces: [Interface]
    /// Whether the network is metered: a preferred interface is ``InterfaceType/cellular``, or ``NetworkMonitor/hints``
    /// say so. NetworkManager's setting for metered networks is not read.
    public let isExpensive: Bool
    /// Whether the user wants little traffic. False unless ``NetworkMonitor/hints`` say so, because Linux has no such
    /// setting.
    public let isConstrained: Bool

    /// Makes a path for a test.
    /// - Parameter isExpensive: `nil` decides by the interfaces.
    public init(_ status: Status, interfaces: [Interface] = [], isExpensive: Bool? = nil, isConstrained: Bool = false) {
        self.status = status
        self.interfaces = interfaces
        self.isExpensive = isExpensive ?? Self.usesCellular(interfaces)
        self.isConstrained = isConstrained
    }

    /// Whether other machines may be reachable.
    public var isSatisfied: Bool { status == .satisfied }
    /// Whether an interface with IPv4 could be used.
    public var supportsIPv4: Bool { interfaces.contains { $0.supportsIPv4 } }
    /// Whether an interface with IPv6 could be used.
    public var supportsIPv6: Bool { interfaces.contains { $0.supportsIPv6 } }
    /// Whether a preferred interface is ``InterfaceType/cellular``.
    public var usesCellular: Bool { Self.usesCellular(interfaces) }

    private static func usesCellular(_ interfaces: [Interface]) -> Bool {
        interfaces.contains { $0.isPreferred && $0.type == .cellular }
    }

    /// The path in one line: `satisfied eth0(wired, 4+6) wwan0(cellular, 4, spare) expensive`.
    public var description: String {
        var words = [status.rawValue] + interfaces.map(\.description)
        if isExpensive { words.append("expensive") }
        if isConstrained { words.append("constrained") }
        return words.joined(separator: " ")
    }
}

extension NetworkPath.Interface: CustomStringConvertible {
    /// The interface in one word: `eth0(wired, 4+6)`.
    public var description: String {
        let families = [supportsIPv4 ? "4" : nil, supportsIPv6 ? "6" : nil].compactMap { $0 }.joined(separator: "+")
        return "\(name)(\(type.rawValue), \(families)\(isPreferred ? "" : ", spare"))"
    }
}

/// How this machine is connected to others, at one moment: a value.
///
/// ```swift
/// let path = NetworkMonitor.shared.current
/// if path.isSatisfied, !path.isExpensive { prefetch() }
/// ```
/// It says what a connection could use, not that a server answers: that is known when it was tried. A path that is not
/// satisfied is no reason not to try.
public struct NetworkPath: Sendable, Hashable, CustomStringConvertible {
    public enum Status: String, Sendable, Hashable {
        /// There is a way to other machines: a default route, or an address that others can reach, through an interface
        /// that is switched on and has a carrier.
        case satisfied
        /// There is none; this machine alone can be reached.
        case unsatisfied
        /// The system does not let this process ask, as in some sandboxes.
        case unknown
    }

    /// What an interface is made of. More may come: use `default` in a switch.
    public enum InterfaceType: String, Sendable, Hashable {
        /// Ethernet, and what looks like it: bridges, virtual pairs, telephones on a cable.
        case wired
        case wifi
        /// A modem of a mobile network, by what its driver says; and whatever is named `wwan…`, `rmnet…` or `ppp…`.
        case cellular
        /// This machine itself; never among ``NetworkPath/interfaces``.
        case loopback
        /// Tunnels, and all else.
        case other
    }

    /// An interface that a connection could use.
    public struct Interface: Sendable, Hashable {
        /// The system's name, such as `eth0`.
        public var name: String
        /// The system's number, at least 1.
        public var index: Int
        public var type: InterfaceType
        /// It has a reachable address, or a default route, of IPv4.
        public var supportsIPv4: Bool
        /// The same of IPv6.
        public var supportsIPv6: Bool
        /// Connections to hosts far away go through it, by the metric of its default route, or because no interface
        /// has one. Where that is a tunnel, so is what it most probably goes through.
        public var isPreferred: Bool

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

    /// Whether there is a way to other machines.
    public let status: Status
    /// The interfaces that connections could use, the preferred ones first.
    public let interfaces: [Interface]
    /// Whether use of it costs by volume: a preferred interface is ``InterfaceType/cellular``, or
    /// ``NetworkMonitor/hints`` say so. What NetworkManager knows of metered networks is not asked.
    public let isExpensive: Bool
    /// Whether the user wants little traffic. False unless ``NetworkMonitor/hints`` say so: Linux has no such setting.
    public let isConstrained: Bool

    /// A path as a test wants it.
    /// - Parameter isExpensive: `nil` judges by the interfaces.
    public init(_ status: Status, interfaces: [Interface] = [], isExpensive: Bool? = nil, isConstrained: Bool = false) {
        self.status = status
        self.interfaces = interfaces
        self.isExpensive = isExpensive ?? Self.usesCellular(interfaces)
        self.isConstrained = isConstrained
    }

    /// Whether there is a way to other machines.
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

    /// One line: `satisfied eth0(wired, 4+6) wwan0(cellular, 4, spare) expensive`.
    public var description: String {
        var words = [status.rawValue] + interfaces.map(\.description)
        if isExpensive { words.append("expensive") }
        if isConstrained { words.append("constrained") }
        return words.joined(separator: " ")
    }
}

extension NetworkPath.Interface: CustomStringConvertible {
    /// `eth0(wired, 4+6)`.
    public var description: String {
        let families = [supportsIPv4 ? "4" : nil, supportsIPv6 ? "6" : nil].compactMap { $0 }.joined(separator: "+")
        return "\(name)(\(type.rawValue), \(families)\(isPreferred ? "" : ", spare"))"
    }
}

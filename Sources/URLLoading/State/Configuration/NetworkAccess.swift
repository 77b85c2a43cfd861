// SPDX-License-Identifier: Apache-2.0

// The networks that a request may use, and the marking of its packets. Pure, except for the query of the network path,
// which only requests with a restriction pay for.

import Synchronization
import URLLoadingIO
import URLLoadingWire

struct NetworkAccess: Sendable {
    var allowsCellular = true
    var allowsExpensive = true
    var allowsConstrained = true
    /// The traffic class that marks the packets.
    var traffic = TrafficClass.default
    /// Set if the load waits for connectivity: without a network, no connection is attempted. `nil` otherwise.
    var pathNote: RecordedPath?
    var needsPath: Bool { pathNote != nil }

    /// Allows every network without a query.
    static let open = NetworkAccess()

    var isOpen: Bool { allowsAll && !needsPath }
    private var allowsAll: Bool { allowsCellular && allowsExpensive && allowsConstrained }

    /// Leaves only the networks that another load may use, too.
    mutating func restrict(to other: NetworkAccess) {
        allowsCellular = allowsCellular && other.allowsCellular
        allowsExpensive = allowsExpensive && other.allowsExpensive
        allowsConstrained = allowsConstrained && other.allowsConstrained
    }

    /// Returns why a path may not be used; `nil` if it may.
    func refusal(of path: NetworkPath) -> LoadError? {
        guard path.status != .unknown else { return nil }
        if needsPath, path.status == .unsatisfied {
            return LoadError(.unreachable, phase: .connecting, party: .system, detail: "there is no network")
        }
        let reason: LoadError.Reason? =
            if !allowsCellular, path.usesCellular {
                .notAllowedOnCellularNetwork
            } else if !allowsExpensive, path.isExpensive {
                .notAllowedOnExpensiveNetwork
            } else if !allowsConstrained, path.isConstrained { .notAllowedOnConstrainedNetwork } else { nil }
        return reason.map { LoadError($0, phase: .connecting, party: .local) }
    }

    /// Returns why an idle connection may not be used now. Whether there is a network is not checked: the connection
    /// may survive a short outage, and most requests reuse one.
    func refusal(of transport: any Transport, _ monitor: @autoclosure () -> NetworkMonitor) -> LoadError? {
        refusal(to: transport.remoteAddress, monitor())
    }

    func refusal(to peer: @autoclosure () -> SocketAddress?, _ monitor: @autoclosure () -> NetworkMonitor) -> LoadError?
    {
        guard !allowsAll, peer()?.isThisMachine != true else { return nil }
        var access = self
        access.pathNote = nil
        return access.refusal(of: monitor().current)
    }
}

/// The network path at the time when a request last began to connect.
final class RecordedPath: Sendable {
    private let path = Lock<NetworkPath?>(nil)
    var noted: NetworkPath? { path.withLock { $0 } }
    func note(_ path: NetworkPath) { self.path.withLock { $0 = path } }
}

extension NetworkAccess {
    /// The networks that a session may use, for connections that belong to no request.
    init(_ configuration: Configuration) {
        self.init(
            allowsCellular: configuration.networks.allowsCellular,
            allowsExpensive: configuration.networks.allowsExpensive,
            allowsConstrained: configuration.networks.allowsConstrained, traffic: configuration.networks.trafficClass)
    }

    /// - Parameter host: the host of a request that is not http.
    init(_ request: Request, _ defaults: RequestDefaults, to host: Origin.Host? = nil) {
        allowsCellular = request.allowsCellularAccess ?? defaults.allowsCellularAccess
        allowsExpensive = request.allowsExpensiveNetworkAccess ?? defaults.allowsExpensiveNetworkAccess
        allowsConstrained = request.allowsConstrainedNetworkAccess ?? defaults.allowsConstrainedNetworkAccess
        traffic = request.trafficClass ?? defaults.trafficClass
        guard request.waitsForConnectivity ?? defaults.waitsForConnectivity else { return }
        guard let host = host ?? (try? request.destination.get())?.route.origin.host else { return }
        pathNote = host.isThisMachine ? nil : RecordedPath()
    }
}

extension Origin.Host {
    /// Whether a connection to the host stays on this machine, whatever a resolver says.
    var isThisMachine: Bool {
        switch kind {
        case .ipv4(let bytes), .ipv6(let bytes, _): AddressKind(bytes).isThisMachine
        // RFC 6761 §6.3.
        case .name(let name):
            name == "localhost" || name.hasSuffix(".localhost") || dnsName == "localhost"
                || dnsName?.hasSuffix(".localhost") == true
        }
    }
}

extension AddressKind {
    fileprivate var isThisMachine: Bool { self == .loopback || self == .unspecified }
}

extension SocketAddress {
    /// Whether a connection to the address stays on this machine.
    var isThisMachine: Bool {
        guard family != .unix else { return true }
        return AddressKind(octets).isThisMachine
    }
}

// Which kinds of networks a request may be sent over, and how. Pure, but for the look at the path, which only who
// forbids something pays for.

import Synchronization
import URLLoadingIO
import URLLoadingWire

struct NetworkAccess: Sendable {
    var allowsCellular = true
    var allowsExpensive = true
    var allowsConstrained = true
    /// How its packets are marked.
    var traffic = TrafficClass.default
    /// Where there is no network nothing is tried, for the load waits for one; `nil` if it does not.
    var pathNote: PathNote?
    var needsPath: Bool { pathNote != nil }

    /// Everything; asks nobody.
    static let open = NetworkAccess()

    var isOpen: Bool { allowsAll && !needsPath }
    private var allowsAll: Bool { allowsCellular && allowsExpensive && allowsConstrained }

    /// Why a path may not be used; `nil` if it may.
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

    /// Why a connection that was kept may not be used now. It is not asked whether there is still a network: it
    /// may outlive the want of one, and most requests find their connection kept.
    func refusal(of transport: any Transport, _ monitor: NetworkMonitor) -> LoadError? {
        guard !allowsAll, transport.remoteAddress?.isThisMachine != true else { return nil }
        var access = self
        access.pathNote = nil
        return access.refusal(of: monitor.current)
    }
}

/// What the networks were when a request last began to connect.
final class PathNote: Sendable {
    private let path = Lock<NetworkPath?>(nil)
    var noted: NetworkPath? { path.withLock { $0 } }
    func note(_ path: NetworkPath) { self.path.withLock { $0 = path } }
}

extension NetworkAccess {
    /// - Parameter host: where an address leads that is none of http.
    init(_ request: Request, _ configuration: Configuration, to host: Origin.Host? = nil) {
        allowsCellular = request.allowsCellularAccess ?? configuration.allowsCellularAccess
        allowsExpensive = request.allowsExpensiveNetworkAccess ?? configuration.allowsExpensiveNetworkAccess
        allowsConstrained = request.allowsConstrainedNetworkAccess ?? configuration.allowsConstrainedNetworkAccess
        traffic = request.trafficClass ?? configuration.trafficClass
        guard request.waitsForConnectivity ?? configuration.waitsForConnectivity else { return }
        guard let host = host ?? (try? request.destination.get())?.route.origin.host else { return }
        pathNote = host.isThisMachine ? nil : PathNote()
    }
}

extension Origin.Host {
    /// Connecting to it leaves this machine by no network, whatever a resolver says.
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
    /// Connecting to it leaves this machine by no network.
    var isThisMachine: Bool {
        guard family != .unix else { return true }
        return AddressKind(octets).isThisMachine
    }
}

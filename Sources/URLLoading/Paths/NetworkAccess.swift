// Which kinds of networks a request may be sent over. Pure, but for the look at the path, which only who
// forbids something pays for.

import URLLoadingIO

struct NetworkAccess: Sendable, Hashable {
    var allowsCellular = true
    var allowsExpensive = true
    var allowsConstrained = true

    /// Everything; asks nobody.
    static let open = NetworkAccess()

    var isOpen: Bool { allowsCellular && allowsExpensive && allowsConstrained }

    /// Why a path may not be used; `nil` if it may.
    func refusal(of path: NetworkPath) -> LoadError? {
        guard path.status != .unknown else { return nil }
        let reason: LoadError.Reason? =
            if !allowsCellular, path.usesCellular { .notAllowedOnCellularNetwork }
            else if !allowsExpensive, path.isExpensive { .notAllowedOnExpensiveNetwork }
            else if !allowsConstrained, path.isConstrained { .notAllowedOnConstrainedNetwork }
            else { nil }
        return reason.map { LoadError($0, phase: .connecting, party: .local) }
    }

    /// Why a connection that was kept may not be used now.
    func refusal(of transport: any Transport, _ monitor: NetworkMonitor) -> LoadError? {
        guard !isOpen, transport.remoteAddress?.isThisMachine != true else { return nil }
        return refusal(of: monitor.current)
    }
}

extension NetworkAccess {
    init(_ request: Request, _ configuration: Configuration) {
        allowsCellular = request.allowsCellularAccess ?? configuration.allowsCellularAccess
        allowsExpensive = request.allowsExpensiveNetworkAccess ?? configuration.allowsExpensiveNetworkAccess
        allowsConstrained = request.allowsConstrainedNetworkAccess ?? configuration.allowsConstrainedNetworkAccess
    }
}

extension SocketAddress {
    /// Connecting to it leaves this machine by no network.
    var isThisMachine: Bool {
        guard family != .unix else { return true }
        let kind = AddressKind(octets)
        return kind == .loopback || kind == .unspecified
    }
}

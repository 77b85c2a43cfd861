// Whether a load that waits for connectivity does so after it could not connect. Pure.

enum ConnectivityPlan {
    /// The network is not what was missing.
    case fail
    /// There was none, and now there is.
    case tryAgain
    /// There is none that the load may use.
    case wait

    /// - Parameter now: the path after it had failed.
    static func make(
        _ error: LoadError, now: NetworkPath, _ access: NetworkAccess
    ) -> ConnectivityPlan {
        guard let note = access.pathNote, mayLackNetwork(error) else { return .fail }
        switch now.status {
        case .unknown: return .fail
        case .unsatisfied: return .wait
        case .satisfied:
            if access.refusal(of: now) != nil { return .wait }
            // It came while we were failing.
            return note.noted.map { $0 != now } ?? false ? .tryAgain : .fail
        }
    }

    /// Without a network nobody knows which hosts there are.
    static func mayLackNetwork(_ error: LoadError) -> Bool {
        switch error.reason {
        case .notAllowedOnCellularNetwork, .notAllowedOnExpensiveNetwork, .notAllowedOnConstrainedNetwork: true
        case .unreachable, .lookupFailed, .hostNotFound, .idleTimeout, .connectTimeout:
            error.phase == .resolving || error.phase == .connecting
        default: false
        }
    }
}

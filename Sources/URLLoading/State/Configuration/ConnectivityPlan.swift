// SPDX-License-Identifier: Apache-2.0

// Decides whether a load that waits for connectivity waits after a failed connection attempt. Pure.

enum ConnectivityPlan {
    /// The failure has another cause than a missing network.
    case fail
    /// There was no network, and now there is one.
    case tryAgain
    /// There is no network that the load may use.
    case wait

    /// - Parameter now: the path after the failure.
    static func make(
        _ error: LoadError, now: NetworkPath, _ access: NetworkAccess
    ) -> ConnectivityPlan {
        guard let note = access.pathNote, mayLackNetwork(error) else { return .fail }
        switch now.status {
        case .unknown: return .fail
        case .unsatisfied: return .wait
        case .satisfied:
            if access.refusal(of: now) != nil { return .wait }
            // The network appeared during the attempt.
            return note.noted.map { $0 != now } ?? false ? .tryAgain : .fail
        }
    }

    /// Whether the error may be due to a missing network. Without a network even known hosts appear to be missing.
    static func mayLackNetwork(_ error: LoadError) -> Bool {
        switch error.reason {
        case .notAllowedOnCellularNetwork, .notAllowedOnExpensiveNetwork, .notAllowedOnConstrainedNetwork: true
        case .unreachable, .lookupFailed, .hostNotFound, .idleTimeout, .connectTimeout:
            error.phase == .resolving || error.phase == .connecting
        default: false
        }
    }
}

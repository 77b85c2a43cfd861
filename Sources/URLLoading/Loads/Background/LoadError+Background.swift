// SPDX-License-Identifier: Apache-2.0

// Failures of background transfers.

import FoundationEssentials

extension LoadError.Reason {
    /// A background session cannot carry this out: the detail names the setting or the kind of task.
    public static let notPossibleInBackground = Self("notPossibleInBackground", -1002)
    /// Another live session, of this process or another, has the identifier; the detail names the process.
    public static let backgroundSessionInUse = Self("backgroundSessionInUse", -996)
    /// The background agent cannot be reached or started, or has refused the request; the detail says why.
    public static let backgroundAgentUnavailable = Self("backgroundAgentUnavailable", -997)
    /// The background agent does not have the transfer: its event was acknowledged, or a damaged journal was set aside.
    public static let unknownTransfer = Self("unknownTransfer", -997)

    /// The folder of a background download's destination is not the one any more that the program named.
    public static let destinationChanged = Self("destinationChanged", -3000)
}

extension LoadError {
    static func notInBackground(_ detail: String, _ url: URL? = nil) -> LoadError {
        LoadError(.notPossibleInBackground, phase: .preparing, party: .local, url: url, detail: detail)
    }

    init(_ failure: AgentFailure) {
        let reason: Reason =
            switch failure.code {
            case .identifierInUse: .backgroundSessionInUse
            case .unknownTransfer: .unknownTransfer
            case .cancelled: .cancelled
            default: .backgroundAgentUnavailable
            }
        let party: Party = failure.code == .identifierInUse || failure.code == .cancelled ? .local : .system
        self.init(reason, phase: .preparing, party: party, detail: failure.detail)
    }
}

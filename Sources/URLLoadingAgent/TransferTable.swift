// SPDX-License-Identifier: Apache-2.0

/// The transfers of the agent by id.
///
/// The transfers that may begin, and those that wait until a time, are also listed apart, and what the agent reports
/// about all of them is counted with each change: no turn of the scheduler looks at thousands of other transfers.
struct TransferTable: Sendable, Sequence {
    private var all: [String: Transfer] = [:]
    /// The ids of the accepted transfers that may begin.
    private(set) var ready: Set<String> = []
    /// The waits of the accepted transfers that wait until a time, by id.
    private(set) var waits: [String: TransferState.Wait] = [:]

    /// The number of transfers that are over, and whose event was not acknowledged.
    private(set) var overCount = 0
    /// The number of transfers for which the agent has something to do without a program.
    private(set) var activeCount = 0

    subscript(id: String) -> Transfer? {
        get { all[id] }
        set {
            count(all[id], -1)
            count(newValue, 1)
            all[id] = newValue
            list(id, newValue)
        }
    }

    private mutating func count(_ transfer: Transfer?, _ step: Int) {
        guard let state = transfer?.state else { return }
        if state.isOver { overCount += step }
        if state.needsAgent { activeCount += step }
    }

    private mutating func list(_ id: String, _ transfer: Transfer?) {
        guard let transfer, transfer.isAccepted else {
            ready.remove(id)
            waits[id] = nil
            return
        }
        if transfer.state.isReady { ready.insert(id) } else { ready.remove(id) }
        if case .waiting(let wait) = transfer.state.phase { waits[id] = wait } else { waits[id] = nil }
    }

    var count: Int { all.count }
    var ids: Dictionary<String, Transfer>.Keys { all.keys }
    var values: Dictionary<String, Transfer>.Values { all.values }

    func makeIterator() -> Dictionary<String, Transfer>.Iterator { all.makeIterator() }
}

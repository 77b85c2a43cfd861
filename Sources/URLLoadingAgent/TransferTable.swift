// SPDX-License-Identifier: Apache-2.0

import URLLoading
import URLLoadingIO

/// The transfers that the agent has claimed, by id.
///
/// The transfers that may begin, and those that wait until a time, are also listed apart, and what the agent reports
/// about all of them is counted with each change: no turn of the scheduler looks at thousands of other transfers.
struct TransferTable: Sendable, Sequence {
    /// Holds a transfer outside of the dictionary, whose unused slots are as large as its used ones.
    private final class Box: Sendable {
        let transfer: Transfer
        init(_ transfer: Transfer) { self.transfer = transfer }
    }
    /// Transfers that may begin and compete for the same room.
    private struct Lane: Sendable, Hashable {
        let identifier: String
        let host: String
        let isDiscretionary: Bool
    }
    private struct Entry: Sendable, Equatable {
        let lane: Lane
        let priority: UInt8
        let number: Int64
        let id: String

        /// Fails for a transfer that may not begin.
        init?(_ transfer: Transfer?) {
            guard let transfer, transfer.state.isReady else { return nil }
            lane = Lane(
                identifier: transfer.identifier, host: transfer.host, isDiscretionary: transfer.order.isDiscretionary)
            (priority, number, id) = (transfer.order.priority, transfer.number, transfer.id)
        }

        func precedes(_ other: Entry) -> Bool { (other.priority, number) < (priority, other.number) }
    }

    private var all: [String: Box] = [:]
    /// The most urgent transfer of a lane is the first, and the older one of two with equal priority.
    private var lanes: [Lane: [Entry]] = [:]
    /// The ends of the waits of the transfers that wait until a time, by id.
    private(set) var waits: [String: TransferState.Wait.End] = [:]
    /// The fields of the transfer that was added last.
    private var lastFields: [[String]] = []
    /// The number of transfers that are over, and whose event is not recorded yet.
    private(set) var overCount = 0
    /// The number of transfers for which the agent has something to do without a program.
    private(set) var activeCount = 0

    subscript(id: String) -> Transfer? {
        get { all[id]?.transfer }
        set {
            let old = all[id]?.transfer
            var newValue = newValue
            if old == nil { newValue?.order.share(&lastFields) }
            all[id] = newValue.map(Box.init)
            count(old, -1)
            count(newValue, 1)
            let (before, after) = (Entry(old), Entry(newValue))
            if before != after {
                if let before { remove(before) }
                if let after { insert(after) }
            }
            if let newValue, let wait = newValue.state.wait {
                waits[newValue.id] = wait.end(SystemBoot.identity)
            } else {
                waits[id] = nil
            }
        }
    }

    private mutating func count(_ transfer: Transfer?, _ step: Int) {
        guard let state = transfer?.state else { return }
        if state.isOver { overCount += step }
        if state.needsAgent { activeCount += step }
    }

    private mutating func insert(_ entry: Entry) {
        let index = index(of: entry)
        lanes[entry.lane, default: []].insert(entry, at: index)
    }

    private mutating func remove(_ entry: Entry) {
        let index = index(of: entry)
        lanes[entry.lane]?.remove(at: index)
        if lanes[entry.lane]?.isEmpty == true { lanes[entry.lane] = nil }
    }

    /// Returns the index of an entry in its lane, or the one at which to insert it.
    private func index(of entry: Entry) -> Int {
        let entries = lanes[entry.lane] ?? []
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].precedes(entry) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the ids of the transfers that may begin, the most urgent ones for each host of an identifier.
    /// - Parameter count: the maximum number for a host; further ones could not begin in the same turn.
    func ready(atMost count: Int) -> [String] { lanes.values.flatMap { $0.prefix(count).map(\.id) } }

    var count: Int { all.count }
    var ids: some Collection<String> { all.keys }

    func makeIterator() -> some IteratorProtocol<Transfer> { all.values.lazy.map(\.transfer).makeIterator() }
}

extension TransferOrder {
    /// Uses the memory of equal fields: those of a program's transfers seldom differ.
    fileprivate mutating func share(_ last: inout [[String]]) {
        if fields == last { fields = last } else { last = fields }
    }
}

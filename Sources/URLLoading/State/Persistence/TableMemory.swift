// SPDX-License-Identifier: Apache-2.0

// A table under its lock, and the changes that its file must still receive.

import FoundationEssentials
import Synchronization
import URLLoadingIO

/// What the lock of a `TableMemory` guards.
struct TableState<Table: PersistedTable>: Sendable {
    var table: Table
    /// The changes that the file must still receive; `nil` without a file.
    var pending: PendingRows<Table.Schema.Key, Table.Schema.Row>?
    /// Set by a change of which observers are notified.
    var hasObservableChange = false
}

final class TableMemory<Table: PersistedTable>: StateMemory {
    typealias Schema = Table.Schema

    private let state: Lock<TableState<Table>>
    /// The number of rows, read without a lock: a request costs no more than this while the table is empty.
    private let held = Atomic<Int>(0)
    private let notify: @Sendable () -> Void

    /// - Parameter notify: called after changes that observers are notified of, without the lock.
    init(_ table: Table, hasFile: Bool, _ notify: @escaping @Sendable () -> Void) {
        state = Lock(TableState(table: table, pending: hasFile ? Pending() : nil))
        self.notify = notify
    }

    var count: Int { held.load(ordering: .relaxed) }
    var hasPending: Bool { state.withLock { $0.pending?.isEmpty == false } }

    func read<R: Sendable>(_ body: (Table) -> R) -> R { state.withLock { body($0.table) } }

    /// Changes the table. Returns the result, and whether the file must be written.
    func change<R: Sendable>(_ body: (inout TableState<Table>) -> R) -> (result: R, isPending: Bool) {
        let (result, isPending, hasObservableChange) = state.withLock { state in
            let result = body(&state)
            held.store(state.table.count, ordering: .relaxed)
            defer { state.hasObservableChange = false }
            return (result, state.pending?.isEmpty == false, state.hasObservableChange)
        }
        if hasObservableChange { notify() }
        return (result, isPending)
    }

    // MARK: The file

    func takePending() -> Pending { state.withLock { $0.pending?.take() } ?? Pending() }
    func restore(_ pending: Pending) { state.withLock { $0.pending?.restore(pending) } }

    func rememberAll() {
        state.withLock { state in
            for row in state.table.persistentRows { state.pending?.set(row, for: row.key) }
        }
    }

    func replace(with rows: [Schema.Row]) {
        let now = Date.now
        _ = change { state in
            var rows = rows
            let pending = state.pending ?? Pending()
            if let moment = pending.clearedSince {
                rows.removeAll { $0.creationDate.timeIntervalSinceReferenceDate >= moment }
            }
            if !pending.rows.isEmpty { rows.removeAll { pending.rows[$0.key] != nil } }
            rows += pending.rows.values.compactMap(\.self)
            let replacement = state.table.replacePersistent(with: rows, now: now)
            for row in replacement.removed { state.pending?.set(nil, for: row.key) }
            state.hasObservableChange = replacement.hasChanged
        }
    }
}

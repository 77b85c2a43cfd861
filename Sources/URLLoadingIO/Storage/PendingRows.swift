// SPDX-License-Identifier: Apache-2.0

/// Changes that are still to be written to a file: the latest state of each row by key, preceded by the removal of all
/// rows since a given moment.
package struct PendingRows<Key: Hashable & Sendable, Row: Sendable>: Sendable {
    /// `nil` for a row to be removed.
    package private(set) var rows: [Key: Row?] = [:]
    /// Updates of rows that are applied only where the row still exists unchanged: a removal or change by another
    /// process wins.
    package private(set) var notes: [Key: Row] = [:]
    /// The moment from which all rows are removed, in the rows' own time; `nil` for none.
    package private(set) var clearedSince: Double?

    package init() {}

    package var isEmpty: Bool { rows.isEmpty && notes.isEmpty && clearedSince == nil }
    /// Whether a row is added or replaced. Without that there is nothing to do in a file that does not exist.
    package var storesRows: Bool { rows.values.contains { $0 != nil } }
    /// Whether nothing but the removal of single rows is pending.
    package var onlyRemovesRows: Bool { !storesRows && notes.isEmpty && clearedSince == nil }

    package mutating func set(_ row: Row?, for key: Key) {
        rows.updateValue(row, forKey: key)
        notes[key] = nil
    }

    package mutating func note(_ row: Row, for key: Key) { notes[key] = row }

    /// Removes all rows created since `moment`, including rows of other processes that are not in memory.
    package mutating func clear(since moment: Double) {
        clearedSince = min(clearedSince ?? moment, moment)
    }

    /// Puts back changes that could not be written; the changes made since then win.
    package mutating func restore(_ earlier: PendingRows) {
        if let moment = earlier.clearedSince { clear(since: moment) }
        for (key, row) in earlier.rows where rows[key] == nil { rows.updateValue(row, forKey: key) }
        for (key, row) in earlier.notes where rows[key] == nil && notes[key] == nil { notes[key] = row }
    }

    package mutating func take() -> PendingRows {
        defer { self = PendingRows() }
        return self
    }
}

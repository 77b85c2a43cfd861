// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoadingIO

/// A row of a table that is kept in a file, such as a cookie.
protocol PersistedRow: Sendable {
    associatedtype Key: Hashable & Sendable
    /// Identifies the row in its table.
    var key: Key { get }
    var creationDate: Date { get }
    func isExpired(_ now: Date) -> Bool
}

/// The content of a store, as a value without a lock, a clock or a disk.
protocol PersistedTable: Sendable {
    associatedtype Schema: StateSchema where Schema.Row: PersistedRow, Schema.Key == Schema.Row.Key
    var count: Int { get }
    /// The rows that belong in the file.
    var persistentRows: [Schema.Row] { get }

    /// Replaces the persistent rows by those of the file; expired ones are left out.
    mutating func replacePersistent(with rows: [Schema.Row], now: Date) -> PersistedReplacement<Schema.Row>
}

/// The effect of replacing the persistent rows of a table.
struct PersistedReplacement<Row: Sendable>: Sendable {
    /// The rows beyond the table's limits, which were not kept: other processes may have added as many as this one.
    var removed: [Row] = []
    var hasChanged = true
}

// Times are seconds since 2001, as in `Date`, so that they are read back bit for bit.

extension DatabaseStatement {
    func date(_ column: Int32) -> Date { Date(timeIntervalSinceReferenceDate: real(column)) }
}

extension Date {
    /// Whether the file need not learn of a later expiry, because servers repeat what they say in every response: the
    /// two are less than a hundredth of the remaining time apart. Compared are the intervals in which they lie, so that
    /// many small extensions are written as often as a large one.
    func isCloseEnough(to later: Date, _ now: Date) -> Bool {
        guard later > self else { return later == self }
        let length = (later.timeIntervalSince(now) / 100).binade
        func interval(_ date: Date) -> Double { (date.timeIntervalSinceReferenceDate / length).rounded(.down) }
        return interval(self) == interval(later)
    }
}

extension DatabaseStatement.Value {
    static func date(_ date: Date) -> Self { .real(date.timeIntervalSinceReferenceDate) }
}

extension StateSchema where Row: PersistedRow {
    static func prepare(_ database: Database) throws(DatabaseFailure) {
        // Removed rows are overwritten: a cookie gives access to an account, and the visited hosts are private.
        try database.execute("PRAGMA secure_delete = ON")
    }

    static func hasExpired(_ rows: [Row]) -> Bool {
        let now = Date.now
        return rows.contains { $0.isExpired(now) }
    }
}

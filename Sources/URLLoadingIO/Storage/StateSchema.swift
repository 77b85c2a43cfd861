// SPDX-License-Identifier: Apache-2.0

/// Defines how one kind of state (cookies, for example) is stored in a ``Database``.
package protocol StateSchema: Sendable {
    associatedtype Key: Hashable & Sendable
    associatedtype Row: Sendable

    static var fileName: String { get }
    static var table: SchemaPart { get }
    /// Sets up one connection; writes nothing to the file.
    static func prepare(_ database: Database) throws(DatabaseFailure)
    static func rows(_ database: Database) throws(DatabaseFailure) -> [Row]
    /// Returns whether some of these rows have expired.
    static func hasExpired(_ rows: [Row]) -> Bool
    static func removeExpired(_ database: Database) throws(DatabaseFailure)
    static func write(_ row: Row, _ database: Database) throws(DatabaseFailure)
    /// Records a row's use if the row is still there unchanged; it does not restore a removed row.
    static func note(_ row: Row, _ database: Database) throws(DatabaseFailure)
    static func remove(_ key: Key, _ database: Database) throws(DatabaseFailure)
    static func contains(_ key: Key, _ database: Database) throws(DatabaseFailure) -> Bool
    /// Removes the rows created at `moment` or later, in the rows' own time.
    static func clear(since moment: Double, _ database: Database) throws(DatabaseFailure)
}

extension StateSchema {
    package static func note(_ row: Row, _ database: Database) throws(DatabaseFailure) {}
}

/// The in-memory side of a ``StateDisk``. Its methods are called from any thread and never wait.
package protocol StateMemory<Schema>: AnyObject, Sendable {
    associatedtype Schema: StateSchema
    typealias Pending = PendingRows<Schema.Key, Schema.Row>

    /// Returns the pending changes, which then count as written.
    func takePending() -> Pending
    var hasPending: Bool { get }
    /// Puts back changes that could not be written. Where the same key was changed meanwhile, the later change stays.
    func restore(_ pending: Pending)
    /// Replaces the memory's content with that of the file; pending changes are applied on top.
    func replace(with rows: [Schema.Row])
    /// Marks everything in memory as pending, because the file was lost.
    func rememberAll()
}

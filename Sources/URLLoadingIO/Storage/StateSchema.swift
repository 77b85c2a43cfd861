/// How some remembered state lies in a ``Database``, and who remembers it.
package protocol StateSchema: Sendable {
    associatedtype Key: Hashable & Sendable
    associatedtype Row: Sendable

    static var fileName: String { get }
    static var table: SchemaPart { get }
    /// Sets what holds for one connection alone, and writes nothing.
    static func prepare(_ database: Database) throws(DatabaseFailure)
    static func rows(_ database: Database) throws(DatabaseFailure) -> [Row]
    /// Whether there are rows among these that have expired.
    static func hasExpired(_ rows: [Row]) -> Bool
    static func removeExpired(_ database: Database) throws(DatabaseFailure)
    static func write(_ row: Row, _ database: Database) throws(DatabaseFailure)
    /// Writes how a row was used, if it is still there and the same: who used it does not bring it back.
    static func note(_ row: Row, _ database: Database) throws(DatabaseFailure)
    static func remove(_ key: Key, _ database: Database) throws(DatabaseFailure)
    /// What was made then or later goes: a moment as the rows have it.
    static func clear(since moment: Double, _ database: Database) throws(DatabaseFailure)
}

extension StateSchema {
    package static func note(_ row: Row, _ database: Database) throws(DatabaseFailure) {}
}

/// The memory before a ``StateDisk``. All calls are from any thread, and none waits.
package protocol StateMemory<Schema>: AnyObject, Sendable {
    associatedtype Schema: StateSchema
    typealias Pending = PendingRows<Schema.Key, Schema.Row>

    /// What is to be written; it counts as written then.
    func takePending() -> Pending
    var hasPending: Bool { get }
    /// It was not.
    func restore(_ pending: Pending)
    /// What is in the file now, in place of what was: what is pending goes on top of it.
    func replace(with rows: [Schema.Row])
    /// What should be in the file, when that is lost.
    func rememberAll()
}

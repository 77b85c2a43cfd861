// One connection to a SQLite file. It knows no table and no lock: whoever owns it sees to it that one thread
// uses it at a time, and that the thread may block.

import URLLoadingCSQLite

/// ```swift
/// let database = try Database(path: folder + "/cookies.sqlite")
/// try database.execute("CREATE TABLE IF NOT EXISTS cookie (name TEXT, value TEXT)")
/// let insert = try database.statement("INSERT INTO cookie VALUES (?, ?)")
/// try insert.run("theme", "dark")
/// ```
package final class Database {
    private let handle: OpaquePointer
    private let patience: Int32
    /// Prepared once. What is prepared is written in the sources, so there are few.
    private var statements: [StaticText: DatabaseStatement] = [:]

    /// Opens a file, or makes it: readable by its owner alone if `umask` lets it. It is written ahead (WAL), so
    /// that readers and one writer do not wait for each other, and what was committed survives the end of the
    /// process; a loss of power may cost the last commits, never the file.
    /// - Parameter patience: milliseconds to wait for other connections to the file.
    package init(path: String, patience: Int32 = 2_000) throws(DatabaseFailure) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &opened, flags, nil)
        guard code == SQLITE_OK, let opened else {
            let failure = DatabaseFailure(code, opened)
            sqlite3_close_v2(opened)
            throw failure
        }
        (handle, self.patience) = (opened, patience)
        sqlite3_busy_timeout(handle, patience)
        try execute("PRAGMA journal_mode = WAL")
        try execute("PRAGMA synchronous = NORMAL")
    }

    deinit { sqlite3_close_v2(handle) }

    /// Runs statements that have no parameters and whose rows nobody wants.
    package func execute(_ text: StaticString) throws(DatabaseFailure) {
        let code = text.withUTF8Buffer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { sqlite3_exec(handle, $0.baseAddress, nil, nil, nil) }
        }
        guard code == SQLITE_OK else { throw DatabaseFailure(code, handle) }
    }

    /// A prepared statement, the same one at each call with the same text.
    package func statement(_ text: StaticString) throws(DatabaseFailure) -> DatabaseStatement {
        let key = StaticText(text)
        if let statement = statements[key] { return statement }
        var prepared: OpaquePointer?
        let code = text.withUTF8Buffer { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_prepare_v3(handle, $0.baseAddress, Int32($0.count), UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
            }
        }
        guard code == SQLITE_OK, let prepared else { throw DatabaseFailure(code, handle) }
        let statement = DatabaseStatement(prepared, of: handle)
        statements[key] = statement
        return statement
    }

    /// All of the work or nothing of it, and nobody else's writing in between.
    package func transaction<R>(_ work: () throws(DatabaseFailure) -> R) throws(DatabaseFailure) -> R {
        try execute("BEGIN IMMEDIATE")
        do throws(DatabaseFailure) {
            let result = try work()
            try execute("COMMIT")
            return result
        } catch {
            try? execute("ROLLBACK")
            throw error
        }
    }

    /// Work that does not wait for other connections: it fails if one writes just then.
    package func withoutPatience(_ work: () throws(DatabaseFailure) -> Void) throws(DatabaseFailure) {
        sqlite3_busy_timeout(handle, 0)
        defer { sqlite3_busy_timeout(handle, patience) }
        try work()
    }

    /// The row id of the last row that was inserted over this connection.
    package var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }
}

/// A literal, told from others by where it lies: it is never copied or compared.
private struct StaticText: Hashable {
    private let start: UInt
    private let count: Int

    init(_ text: StaticString) {
        (start, count) = text.hasPointerRepresentation ? (UInt(bitPattern: text.utf8Start), text.utf8CodeUnitCount) : (0, 0)
    }
}

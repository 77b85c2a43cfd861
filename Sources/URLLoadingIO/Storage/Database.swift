// SPDX-License-Identifier: Apache-2.0

// In this folder: SQLite, a file behind a table in memory, folders of this user alone

// One connection to a SQLite file. It knows no tables and takes no lock: its owner makes sure that one thread uses it
// at a time, and that this thread may block.

import URLLoadingCSQLite

/// ```swift
/// let database = try Database(path: folder + "/cookies.sqlite")
/// try database.execute("CREATE TABLE IF NOT EXISTS cookie (name TEXT, value TEXT)")
/// let insert = try database.statement("INSERT INTO cookie VALUES (?, ?)")
/// try insert.run("theme", "dark")
/// ```
package final class Database {
    private let handle: OpaquePointer
    private let timeout: Int32
    /// Pages in the write-ahead log after the last commit over this connection; updated by SQLite's hook.
    private let logPages: UnsafeMutablePointer<Int32>
    /// Statements are prepared once. Their texts are literals in the sources, so there are few.
    private var statements: [StaticText: DatabaseStatement] = [:]

    /// The durability of commits.
    package enum Durability: Sendable {
        /// Several processes may open the file; a loss of power may cost the last commits.
        case shared
        /// This connection alone has the file, and each commit is on the disk when it returns.
        case exclusive
    }

    /// Opens a file, or creates it; the umask decides whether other users may read a new one. The file uses write-ahead
    /// logging (WAL): readers and one writer do not wait for each other, and committed data survives the death of the
    /// process; a loss of power never corrupts the file. What is deleted is overwritten with zeros.
    ///
    /// SQLite's automatic checkpoints are off: see ``checkpointIfLong()``.
    /// - Parameters:
    ///   - durability: what survives a loss of power, and who else may open the file.
    ///   - timeout: milliseconds to wait for other connections to the file.
    package init(path: String, durability: Durability = .shared, timeout: Int32 = 2_000) throws(DatabaseFailure) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &opened, flags, nil)
        guard code == SQLITE_OK, let opened else {
            let failure = DatabaseFailure(code, opened)
            sqlite3_close_v2(opened)
            throw failure
        }
        (handle, self.timeout) = (opened, timeout)
        logPages = .allocate(capacity: 1)
        logPages.initialize(to: 0)
        sqlite3_busy_timeout(handle, timeout)
        switch durability {
        case .shared:
            try execute("PRAGMA journal_mode = WAL")
            try execute("PRAGMA synchronous = NORMAL")
        case .exclusive:
            // Exclusive before WAL: then the index of the log is memory of this process, and no file.
            try execute("PRAGMA locking_mode = EXCLUSIVE")
            try execute("PRAGMA journal_mode = WAL")
            try execute("PRAGMA synchronous = FULL")
        }
        try execute("PRAGMA secure_delete = ON")
        try execute("PRAGMA wal_autocheckpoint = 0")
        _ = sqlite3_wal_hook(
            handle,
            { pages, _, _, count in
                pages?.assumingMemoryBound(to: Int32.self).pointee = count
                return SQLITE_OK
            }, logPages)
    }

    deinit {
        // Statements may outlive their database, and would then call the hook.
        _ = sqlite3_wal_hook(handle, nil, nil)
        sqlite3_close_v2(handle)
        logPages.deallocate()
    }

    /// Runs statements without parameters and discards their rows.
    package func execute(_ text: StaticString) throws(DatabaseFailure) {
        let code = text.withUTF8Buffer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { sqlite3_exec(handle, $0.baseAddress, nil, nil, nil) }
        }
        guard code == SQLITE_OK else { throw DatabaseFailure(code, handle) }
    }

    /// Returns a prepared statement: the same object at each call with the same text.
    package func statement(_ text: StaticString) throws(DatabaseFailure) -> DatabaseStatement {
        let key = StaticText(text)
        if let statement = statements[key] { return statement }
        var prepared: OpaquePointer?
        let code = text.withUTF8Buffer { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_prepare_v3(
                    handle, $0.baseAddress, Int32($0.count), UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
            }
        }
        guard code == SQLITE_OK, let prepared else { throw DatabaseFailure(code, handle, isOfStatement: true) }
        let statement = DatabaseStatement(prepared, of: handle)
        statements[key] = statement
        return statement
    }

    /// Runs the work in a transaction: all of it takes effect or none, with no writes of other connections in between.
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

    /// Runs work without waiting for other connections: it fails if one of them is writing.
    package func withoutWaitingForLock(_ work: () throws(DatabaseFailure) -> Void) throws(DatabaseFailure) {
        sqlite3_busy_timeout(handle, 0)
        defer { sqlite3_busy_timeout(handle, timeout) }
        try work()
    }

    // MARK: Write-ahead log
    //
    // Releases of SQLite from 3.7.0 to 3.51.2 can lose pages when a checkpoint begins while another connection commits
    // and restarts the log (https://www.sqlite.org/wal.html, "the WAL-reset bug"). Therefore every connection that
    // commits or checkpoints holds a lock on a file beside the database, and SQLite's automatic checkpoints, which
    // follow any commit and do not know that lock, are off. The checkpoint of the last connection that closes is safe,
    // because it holds the database exclusively.

    /// Pages of 4 KiB after which the log is copied to the file, as far as readers permit; SQLite's own default.
    private static let longLog = 1_000
    /// Pages after which a checkpoint waits for readers, so that the log can be restarted: 16 MiB.
    private static let longestLog = 4_000
    /// Pages after which nothing more should be added: 32 MiB.
    private static let fullLog = 8_000

    /// Copies the log to the file if it has grown long. The holder of the lock calls this after each commit.
    package func checkpointIfLong() {
        let pages = Int(logPages.pointee)
        guard pages >= Self.longLog else { return }
        // Pages that are not copied now are copied after a later commit.
        if pages >= Self.longestLog { try? checkpoint() } else { try? execute("PRAGMA wal_checkpoint(PASSIVE)") }
    }

    /// Copies the log to the file and empties it, unless a reader holds that up. Only the holder of the lock may call
    /// this.
    package func checkpoint() throws(DatabaseFailure) {
        let statement = try statement("PRAGMA wal_checkpoint(TRUNCATE)")
        try statement.each { () throws(DatabaseFailure) in
            // The pages that are left; -1 without a log.
            logPages.pointee = Int32(clamping: max(0, statement.integer(1)))
            return true
        }
    }

    /// Whether the log is so long that nothing should be stored before a checkpoint has emptied it.
    package var isLogFull: Bool { Int(logPages.pointee) >= Self.fullLog }

    // MARK: Schema

    /// Returns those of the given tables and indexes that the file lacks, in the given order.
    /// - Throws: a failure of kind `damaged` if one of them is defined differently.
    package func missing(of parts: [SchemaPart]) throws(DatabaseFailure) -> [SchemaPart] {
        var found: [String: String] = [:]
        let statement = try statement("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        try statement.each { () throws(DatabaseFailure) in
            found[statement.text(0)] = statement.text(1)
            return true
        }
        for part in parts {
            guard let text = found[part.name], !part.isDefined(by: text) else { continue }
            throw DatabaseFailure(foreign: part.name)
        }
        return parts.filter { found[$0.name] == nil }
    }

    /// The row id of the last row inserted over this connection.
    package var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }
}

/// A string literal, identified by its address, so that it is never copied or compared.
private struct StaticText: Hashable {
    private let start: UInt
    private let count: Int

    init(_ text: StaticString) {
        (start, count) =
            text.hasPointerRepresentation ? (UInt(bitPattern: text.utf8Start), text.utf8CodeUnitCount) : (0, 0)
    }
}

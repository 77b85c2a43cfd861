// SPDX-License-Identifier: Apache-2.0

import URLLoadingCSQLite

/// A prepared statement of a ``Database``. Parameters and columns are numbered from 0.
package final class DatabaseStatement {
    private let statement: OpaquePointer
    private let database: OpaquePointer
    /// SQLITE_TRANSIENT: SQLite copies the bytes, which may be freed before it has used them.
    private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    init(_ statement: OpaquePointer, of database: OpaquePointer) {
        self.statement = statement
        self.database = database
    }

    // SQLite closes a database whose connection object is gone together with the last of its statements
    // (`sqlite3_close_v2`).
    deinit { sqlite3_finalize(statement) }

    /// A value of a parameter or a column.
    package enum Value: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
        case null
        case integer(Int64)
        case real(Double)
        case text(String)
        case bytes([UInt8])

        package init(stringLiteral value: String) { self = .text(value) }
        package init(integerLiteral value: Int64) { self = .integer(value) }
        package init(nilLiteral: ()) { self = .null }
        package init(_ value: String?) { self = value.map { .text($0) } ?? .null }
        package init(_ value: Bool) { self = .integer(value ? 1 : 0) }
    }

    /// Runs the statement to its end with these parameters.
    package func run(_ values: Value...) throws(DatabaseFailure) {
        try each(values) { () throws(DatabaseFailure) in true }
    }

    /// Calls `row` for each row until it returns false.
    package func each(_ values: [Value] = [], _ row: () throws(DatabaseFailure) -> Bool) throws(DatabaseFailure) {
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index) + 1) }
        while true {
            let code = sqlite3_step(statement)
            guard code == SQLITE_ROW else {
                guard code == SQLITE_DONE else { throw DatabaseFailure(code, database, isOfStatement: true) }
                return
            }
            guard try row() else { return }
        }
    }

    /// Returns what `read` makes of the rows, without those of which it makes `nil`.
    package func rows<R>(_ values: [Value] = [], _ read: (DatabaseStatement) -> R?) throws(DatabaseFailure) -> [R] {
        var found: [R] = []
        try each(values) { () throws(DatabaseFailure) in
            if let row = read(self) { found.append(row) }
            return true
        }
        return found
    }

    /// Returns what `read` makes of the first row; `nil` without rows.
    package func first<R>(_ values: [Value] = [], _ read: (DatabaseStatement) -> R?) throws(DatabaseFailure) -> R? {
        var found: R?
        try each(values) { () throws(DatabaseFailure) in
            found = read(self)
            return false
        }
        return found
    }

    /// Returns whether there is a row.
    package func hasRow(_ values: Value...) throws(DatabaseFailure) -> Bool {
        var hasRow = false
        try each(values) { () throws(DatabaseFailure) in
            hasRow = true
            return false
        }
        return hasRow
    }

    private func bind(_ value: Value, at index: Int32) throws(DatabaseFailure) {
        let code =
            switch value {
            case .null: sqlite3_bind_null(statement, index)
            case .integer(let number): sqlite3_bind_int64(statement, index, number)
            case .real(let number): sqlite3_bind_double(statement, index, number)
            case .text(let text):
                sqlite3_bind_text64(statement, index, text, UInt64(text.utf8.count), Self.copied, UInt8(SQLITE_UTF8))
            case .bytes(let bytes):
                // An empty array may have a null address, which SQLite would take for NULL.
                bytes.isEmpty
                    ? sqlite3_bind_zeroblob(statement, index, 0)
                    : sqlite3_bind_blob64(statement, index, bytes, UInt64(bytes.count), Self.copied)
            }
        guard code == SQLITE_OK else { throw DatabaseFailure(code, database) }
    }

    // MARK: Columns of the current row

    package func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }
    package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
    package func real(_ column: Int32) -> Double { sqlite3_column_double(statement, column) }

    package func text(_ column: Int32) -> String {
        String(
            decoding: bytes(sqlite3_column_text(statement, column).map { UnsafeRawPointer($0) }, column), as: UTF8.self)
    }

    package func blob(_ column: Int32) -> [UInt8] { Array(bytes(sqlite3_column_blob(statement, column), column)) }

    /// Lends a blob until the next row.
    package func withBlob<R>(_ column: Int32, _ use: (UnsafeRawBufferPointer) -> R) -> R {
        use(bytes(sqlite3_column_blob(statement, column), column))
    }

    private func bytes(_ start: UnsafeRawPointer?, _ column: Int32) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(statement, column)))
    }
}

import Glibc
import URLLoadingCSQLite

/// Why SQLite did not do what it was asked.
package struct DatabaseFailure: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// Another connection holds the file for longer than we wait.
        case busy
        /// No room on the disk, or the quota is used up.
        case full
        /// What the file contains is no database, or a broken one.
        case damaged
        /// The file may be read only, or cannot be opened at all.
        case unwritable
        case other
    }
    /// SQLite's extended result code.
    package let code: Int32
    /// SQLite's own words; they quote names of ours, never values.
    package let detail: String
    /// What the system said to SQLite, where it could not open something.
    private let system: Int32

    package var kind: Kind {
        // No descriptor, or no memory, for now.
        if [EMFILE, ENFILE, ENOMEM].contains(system) { return .busy }
        return switch code & 0xff {
        case SQLITE_BUSY, SQLITE_LOCKED: .busy
        case SQLITE_FULL: .full
        case SQLITE_CORRUPT, SQLITE_NOTADB: .damaged
        case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .unwritable
        default: .other
        }
    }

    package var description: String { "SQLite \(code): \(detail)" }

    init(_ code: Int32, _ handle: OpaquePointer?) {
        self.code = handle.map { sqlite3_extended_errcode($0) } ?? code
        system = code & 0xff == SQLITE_CANTOPEN ? handle.map { sqlite3_system_errno($0) } ?? 0 : 0
        detail = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
    }
}

import Glibc
import URLLoadingCSQLite

/// Why SQLite did not do what it was asked.
package struct DatabaseFailure: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// Another connection holds the file for longer than we wait.
        case busy
        /// No room on the disk, or the quota is used up.
        case full
        /// What the file contains is no database, a broken one, or one whose tables are gone or are not ours.
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
    /// Statements are written in the sources: one that SQLite refuses to compile does not fit the tables of the file.
    private let isOfStatement: Bool

    package var kind: Kind {
        // No descriptor, or no memory, for now.
        if [EMFILE, ENFILE, ENOMEM].contains(system) { return .busy }
        return switch code & 0xff {
        case SQLITE_BUSY, SQLITE_LOCKED: .busy
        case SQLITE_FULL: .full
        case SQLITE_CORRUPT, SQLITE_NOTADB: .damaged
        case SQLITE_ERROR where isOfStatement: .damaged
        case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .unwritable
        default: .other
        }
    }

    package var description: String { "SQLite \(code): \(detail)" }

    init(_ code: Int32, _ handle: OpaquePointer?, isOfStatement: Bool = false) {
        self.isOfStatement = isOfStatement
        self.code = handle.map { sqlite3_extended_errcode($0) } ?? code
        system = code & 0xff == SQLITE_CANTOPEN ? handle.map { sqlite3_system_errno($0) } ?? 0 : 0
        detail = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
    }

    /// A table or an index of the file is defined in another way than in the sources.
    init(foreign name: String) {
        (code, detail, system, isOfStatement) = (SQLITE_CORRUPT, "\(name) is defined in another way", 0, false)
    }

    /// A table is gone.
    package init(missing name: String) {
        (code, detail, system, isOfStatement) = (SQLITE_CORRUPT, "there is no \(name)", 0, false)
    }

    /// The lock that all writers of the file hold cannot be had.
    package init(lock failure: IOFailure) {
        code = failure.isPassing ? SQLITE_BUSY : failure.isFull ? SQLITE_FULL : SQLITE_CANTOPEN
        (detail, system, isOfStatement) = ("the lock file cannot be had", 0, false)
    }
}

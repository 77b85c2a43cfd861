// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoadingCSQLite

/// The reason why a SQLite call failed.
package struct DatabaseFailure: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// Another connection held the file for longer than the configured wait.
        case busy
        /// The disk is full, or the quota is used up.
        case full
        /// The file is not a database, is corrupt, or its tables are missing or defined differently.
        case damaged
        /// The file is read-only, or cannot be opened at all.
        case unwritable
        case other
    }
    /// SQLite's extended result code.
    package let code: Int32
    /// SQLite's message; it contains names from the sources, never values.
    package let detail: String
    /// The errno that SQLite received when it could not open, read or write a file; 0 for other failures.
    private let system: Int32
    /// True if SQLite refused to compile a statement. Statements are literals in the sources, so the file's tables do
    /// not fit them.
    private let isOfStatement: Bool

    package var kind: Kind {
        // Temporarily out of descriptors or memory.
        if [EMFILE, ENFILE, ENOMEM].contains(system) { return .busy }
        // A quota or a limit on the size of files; SQLite itself recognises a full file system only.
        if [ENOSPC, EDQUOT, EFBIG].contains(system) { return .full }
        return switch code & 0xff {
        case SQLITE_BUSY, SQLITE_LOCKED: .busy
        case SQLITE_FULL: .full
        case SQLITE_CORRUPT, SQLITE_NOTADB: .damaged
        case SQLITE_ERROR where isOfStatement: .damaged
        case SQLITE_CANTOPEN where IOFailure(.system(system), .open).isUnanswered: .other
        case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .unwritable
        default: .other
        }
    }

    package var description: String { "SQLite \(code): \(detail)" }

    init(_ code: Int32, _ handle: OpaquePointer?, isOfStatement: Bool = false) {
        self.isOfStatement = isOfStatement
        self.code = handle.map { sqlite3_extended_errcode($0) } ?? code
        let isOfSystem = [SQLITE_CANTOPEN, SQLITE_IOERR].contains(code & 0xff)
        system = isOfSystem ? handle.map { sqlite3_system_errno($0) } ?? 0 : 0
        detail = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
    }

    /// A table or an index of the file is defined differently than in the sources.
    init(foreign name: String) {
        (code, detail, system, isOfStatement) = (SQLITE_CORRUPT, "\(name) is defined differently", 0, false)
    }

    /// The path of the file names another file now.
    package static let replaced = DatabaseFailure(lock: IOFailure(.system(EWOULDBLOCK), .open))

    /// A table is missing.
    package init(missing name: String) {
        (code, detail, system, isOfStatement) = (SQLITE_CORRUPT, "there is no \(name)", 0, false)
    }

    /// The lock that all writers of the file share could not be acquired, or its folder or the file itself not be made.
    /// A folder that is gone is made again.
    package init(lock failure: IOFailure) {
        let mayPass = failure.isTemporary || failure.isMissing || failure.isUnanswered
        code = mayPass ? SQLITE_BUSY : failure.isFull ? SQLITE_FULL : SQLITE_CANTOPEN
        (detail, system, isOfStatement) = ("the lock file could not be acquired", 0, false)
    }
}

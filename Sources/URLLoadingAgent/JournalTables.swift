// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// The versions of the journal's tables: each entry has the statements that lead to the next version, from version 0,
/// an empty database. The last statement of an entry records its version.
struct JournalSchema: Sendable {
    var versions: [[StaticString]]

    static let current = JournalSchema(versions: [JournalTables.version1])

    var version: Int64 { Int64(versions.count) }

    /// Returns the statements that lead from a version to the last one.
    func steps(from version: Int64) -> [StaticString] { Array(versions.dropFirst(Int(max(0, version))).joined()) }
}

/// The tables of the journal.
enum JournalTables {
    static let version1: [StaticString] = [
        "CREATE TABLE identifier (name TEXT PRIMARY KEY, settings BLOB NOT NULL) WITHOUT ROWID",
        """
        CREATE TABLE transfer (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, identifier TEXT NOT NULL,
        task BLOB NOT NULL, state BLOB NOT NULL, progress BLOB NOT NULL)
        """,
        "CREATE TABLE secret (owner TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE event (sequence INTEGER PRIMARY KEY, identifier TEXT NOT NULL, transfer TEXT NOT NULL)",
        "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        "PRAGMA user_version = 1",
    ]

    static func apply(_ change: JournalChange, _ database: Database) throws(DatabaseFailure) {
        switch change {
        case .identifier(let name, let settings):
            try database.statement("REPLACE INTO identifier VALUES (?, ?)").run(.text(name), .bytes(settings))
        case .removeIdentifier(let name):
            try database.statement("DELETE FROM identifier WHERE name = ?").run(.text(name))
        case .transfer(let transfer):
            try database.statement(
                """
                INSERT INTO transfer VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(number) DO UPDATE
                SET task = excluded.task, state = excluded.state, progress = excluded.progress
                """
            ).run(
                .integer(transfer.number), .text(transfer.id), .text(transfer.identifier), .bytes(transfer.order),
                .bytes(transfer.state), .bytes(transfer.progress))
            try count(transfer.number, database)
        case .update(let number, let state, let progress):
            try database.statement("UPDATE transfer SET state = ?, progress = ? WHERE number = ?").run(
                .bytes(state), .bytes(progress), .integer(number))
        case .removeTransfer(let id):
            try database.statement("DELETE FROM transfer WHERE id = ?").run(.text(id))
        case .secrets(let owner, let content):
            try database.statement("REPLACE INTO secret VALUES (?, ?)").run(.text(owner), .bytes(content))
        case .removeSecrets(let owner):
            try database.statement("DELETE FROM secret WHERE owner = ?").run(.text(owner))
        case .event(let event):
            try database.statement("REPLACE INTO event VALUES (?, ?, ?)").run(
                .integer(event.sequence), .text(event.identifier), .text(event.transfer))
            try count(event.sequence, database)
        case .removeEvent(let sequence):
            try database.statement("DELETE FROM event WHERE sequence = ?").run(.integer(sequence))
        }
    }

    /// Records the highest number used: numbers are never reused, even after their rows are removed.
    private static func count(_ number: Int64, _ database: Database) throws(DatabaseFailure) {
        try database.statement(
            "INSERT INTO counter VALUES ('number', ?1) ON CONFLICT(name) DO UPDATE SET value = max(value, ?1)"
        ).run(.integer(number))
    }

    static func read(_ database: Database, into content: inout JournalContent) throws(DatabaseFailure) {
        var found = JournalContent()
        let identifiers = try database.statement("SELECT name, settings FROM identifier")
        try identifiers.each { () throws(DatabaseFailure) in
            found.identifiers[identifiers.text(0)] = identifiers.blob(1)
            return true
        }
        let transfers = try database.statement(
            "SELECT number, id, identifier, task, state, progress FROM transfer ORDER BY number")
        try transfers.each { () throws(DatabaseFailure) in
            found.transfers.append(
                JournaledTransfer(
                    id: transfers.text(1), number: transfers.integer(0), identifier: transfers.text(2),
                    order: transfers.blob(3), state: transfers.blob(4), progress: transfers.blob(5)))
            return true
        }
        let secrets = try database.statement("SELECT owner, content FROM secret")
        try secrets.each { () throws(DatabaseFailure) in
            found.secrets[secrets.text(0)] = secrets.blob(1)
            return true
        }
        let events = try database.statement("SELECT sequence, identifier, transfer FROM event ORDER BY sequence")
        try events.each { () throws(DatabaseFailure) in
            found.events.append(
                JournaledEvent(sequence: events.integer(0), identifier: events.text(1), transfer: events.text(2)))
            return true
        }
        let counter = try database.statement("SELECT value FROM counter WHERE name = 'number'")
        try counter.each { () throws(DatabaseFailure) in
            found.nextNumber = counter.integer(0) + 1
            return false
        }
        content = found
    }
}

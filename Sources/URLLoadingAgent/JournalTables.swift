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

/// What a journal contains for its agent when it is opened.
struct JournalContent: Sendable {
    var identifiers: [JournaledIdentifier] = []
    /// The transfers whose event is not recorded.
    var transfers: [JournaledTransfer] = []
    /// Greater than the number of any transfer and the sequence of any event so far, including removed ones.
    var nextNumber: Int64 = 1
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

    /// The epoch of all claims: one agent at a time has the tables.
    static let epoch: Int64 = 1

    // MARK: Writing

    /// - Parameter nextNumber: the next number or sequence to assign.
    static func apply(
        _ change: JournalChange, _ database: Database, nextNumber: inout Int64, _ receipt: inout JournalReceipt
    ) throws(DatabaseFailure) {
        switch change {
        case .identifier(let name, let settings, let secrets):
            try database.statement("REPLACE INTO identifier VALUES (?, ?)").run(.text(name), .bytes(settings))
            try keep(secrets, of: "identifier " + name, database)
        case .leave(let name):
            try forget(name, database)
        case .accept(let transfer):
            receipt.acceptance = try accept(transfer, database, &nextNumber)
        case .order(let claim, let order, _):
            try database.statement("UPDATE transfer SET task = ? WHERE number = ?").run(
                .bytes(order), .integer(claim.number))
        case .update(let claim, let state, let progress, _):
            try database.statement("UPDATE transfer SET state = ?, progress = ? WHERE number = ?").run(
                .bytes(state), .bytes(progress), .integer(claim.number))
        case .event(let claim):
            try database.statement(
                "INSERT INTO event SELECT ?, identifier, id FROM transfer WHERE number = ?"
            ).run(.integer(nextNumber), .integer(claim.number))
            try count(&nextNumber, database)
        case .acknowledge(let sequence, let identifier):
            receipt.removed = try remove(sequence, of: identifier, database)
        // Of agents that share a journal.
        case .pause, .command, .carriedOut: break
        }
    }

    private static func accept(
        _ transfer: JournaledTransfer, _ database: Database, _ nextNumber: inout Int64
    ) throws(DatabaseFailure) -> JournalReceipt.Acceptance {
        let known = try database.statement("SELECT identifier FROM transfer WHERE id = ?")
            .first([.text(transfer.id)]) { $0.text(0) }
        if let known { return .known(identifier: known) }
        let number = nextNumber
        try database.statement("INSERT INTO transfer VALUES (?, ?, ?, ?, ?, ?)").run(
            .integer(number), .text(transfer.id), .text(transfer.identifier), .bytes(transfer.order),
            .bytes(transfer.state), .bytes(transfer.progress))
        if let secrets = transfer.secrets { try keep(secrets, of: "transfer " + transfer.id, database) }
        try count(&nextNumber, database)
        return .claimed(TransferClaim(number: number, epoch: epoch))
    }

    private static func remove(
        _ sequence: Int64, of identifier: String, _ database: Database
    ) throws(DatabaseFailure) -> JournaledTransfer? {
        let found = try events(of: identifier, after: sequence - 1, atMost: 1, database).first
        guard let event = found, event.sequence == sequence else { return nil }
        try database.statement("DELETE FROM event WHERE sequence = ?").run(.integer(sequence))
        try database.statement("DELETE FROM transfer WHERE number = ?").run(.integer(event.transfer.claim.number))
        try removeSecrets(of: "transfer " + event.transfer.id, database)
        return event.transfer
    }

    private static func forget(_ name: String, _ database: Database) throws(DatabaseFailure) {
        let used = try database.statement("SELECT 1 FROM transfer WHERE identifier = ? LIMIT 1")
            .first([.text(name)]) { $0.integer(0) }
        guard used == nil else { return }
        try database.statement("DELETE FROM identifier WHERE name = ?").run(.text(name))
        try removeSecrets(of: "identifier " + name, database)
    }

    private static func keep(_ secrets: [UInt8], of owner: String, _ database: Database) throws(DatabaseFailure) {
        try database.statement("REPLACE INTO secret VALUES (?, ?)").run(.text(owner), .bytes(secrets))
    }

    private static func removeSecrets(of owner: String, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM secret WHERE owner = ?").run(.text(owner))
    }

    /// Records the highest number used: numbers are never reused, even after their rows are removed.
    private static func count(_ nextNumber: inout Int64, _ database: Database) throws(DatabaseFailure) {
        try database.statement(
            "INSERT INTO counter VALUES ('number', ?1) ON CONFLICT(name) DO UPDATE SET value = max(value, ?1)"
        ).run(.integer(nextNumber))
        nextNumber += 1
    }

    // MARK: Reading

    static func content(_ database: Database) throws(DatabaseFailure) -> JournalContent {
        var content = JournalContent()
        var secrets: [String: [UInt8]] = [:]
        let secret = try database.statement("SELECT owner, content FROM secret")
        try secret.each { () throws(DatabaseFailure) in
            secrets[secret.text(0)] = secret.blob(1)
            return true
        }
        content.identifiers = try database.statement(
            """
            SELECT name, settings, (SELECT count(*) FROM event WHERE event.identifier = identifier.name)
            FROM identifier
            """
        ).rows {
            JournaledIdentifier(
                name: $0.text(0), settings: $0.blob(1), secrets: secrets["identifier " + $0.text(0)],
                undelivered: Int($0.integer(2)))
        }
        content.transfers = try database.statement(
            """
            SELECT number, id, identifier, task, state, progress FROM transfer
            WHERE id NOT IN (SELECT transfer FROM event) ORDER BY number
            """
        ).rows {
            var row = transfer($0, from: 0)
            row.secrets = secrets.removeValue(forKey: "transfer " + row.id)
            return row
        }
        let last = try database.statement("SELECT value FROM counter WHERE name = 'number'").first { $0.integer(0) }
        if let last { content.nextNumber = min(last, .max - 1) + 1 }
        return content
    }

    static func transfers(
        of identifier: String, after number: Int64, atMost count: Int, _ database: Database
    ) throws(DatabaseFailure) -> [JournaledTransfer] {
        try database.statement(
            """
            SELECT number, id, identifier, task, state, progress FROM transfer
            WHERE identifier = ? AND number > ? ORDER BY number LIMIT ?
            """
        ).rows([.text(identifier), .integer(number), .integer(Int64(count))]) { transfer($0, from: 0) }
    }

    static func transfer(_ id: String, _ database: Database) throws(DatabaseFailure) -> JournaledTransfer? {
        try database.statement("SELECT number, id, identifier, task, state, progress FROM transfer WHERE id = ?")
            .first([.text(id)]) { transfer($0, from: 0) }
    }

    static func events(
        of identifier: String, after sequence: Int64, atMost count: Int, _ database: Database
    ) throws(DatabaseFailure) -> [JournaledEvent] {
        try database.statement(
            """
            SELECT sequence, number, id, transfer.identifier, task, state, progress
            FROM event JOIN transfer ON transfer.id = event.transfer
            WHERE event.identifier = ? AND sequence > ? ORDER BY sequence LIMIT ?
            """
        ).rows([.text(identifier), .integer(sequence), .integer(Int64(count))]) {
            JournaledEvent(sequence: $0.integer(0), transfer: transfer($0, from: 1))
        }
    }

    static func sequences(of identifier: String, _ database: Database) throws(DatabaseFailure) -> [Int64] {
        try database.statement("SELECT sequence FROM event WHERE identifier = ? ORDER BY sequence")
            .rows([.text(identifier)]) { $0.integer(0) }
    }

    /// Reads a transfer whose columns begin at the given one.
    private static func transfer(_ row: DatabaseStatement, from first: Int32) -> JournaledTransfer {
        JournaledTransfer(
            claim: TransferClaim(number: row.integer(first), epoch: epoch), id: row.text(first + 1),
            identifier: row.text(first + 2), order: row.blob(first + 3), state: row.blob(first + 4),
            progress: row.blob(first + 5))
    }
}

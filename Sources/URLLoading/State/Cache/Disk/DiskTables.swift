// SPDX-License-Identifier: Apache-2.0

// One connection to a cache's database, and all its statements. Used by one thread at a time; all calls block.
//
// `entry` has a row for each response. `seq` grows with every row ever made, which finds new rows; `hash` finds a key;
// `used` and `size` order and measure evictions; `file`, `place` and `length` say which bytes of which file are the
// body. `state` has one row: the total number of bytes, and the number of changes.

import URLLoadingIO

final class DiskTables: @unchecked Sendable {
    // Unchecked: used by one thread at a time.
    private let database: Database
    let identity: PathIdentity
    /// Format 1 had small bodies in rows.
    static let format: Int64 = 2

    /// The columns of a row that a removal needs. No checksum protects them, so what they name and measure is limited.
    struct Row: Sendable {
        let seq: Int64
        let hash: Int64
        /// In bytes; 0 to `largest`.
        let size: Int64
        /// `nil` also for a name that is none of a file of bodies.
        let file: String?
        /// The bytes of the file that are the body.
        let range: Range<Int64>
    }
    /// The largest size or place in a file, in bytes, that is believed: sums of many do not overflow.
    private static let largest: Int64 = 1 << 40
    private static func limited(_ number: Int64) -> Int64 { min(max(0, number), largest) }

    struct State: Sendable, Equatable {
        var total: Int64
        var changes: Int64
    }

    private init(_ database: Database, _ identity: PathIdentity) {
        self.database = database
        self.identity = identity
    }

    // MARK: Opening

    enum Failure: Error {
        case database(DatabaseFailure)
        case folder(IOFailure)
        /// The database has the format of an earlier version.
        case earlier
        /// The database has another format.
        case foreign
    }

    /// Opens the database of a folder, and creates it if it is missing. The caller holds the folder's lock.
    static func open(_ paths: DiskPaths) throws(Failure) -> DiskTables {
        let identity: PathIdentity
        do throws(IOFailure) { identity = try PrivateFolder.makeFile(paths.database) } catch { throw .folder(error) }
        let tables: DiskTables
        let format: Int64
        do throws(DatabaseFailure) {
            tables = DiskTables(try Database(path: paths.database, timeout: 250), identity)
            format = try tables.prepare()
        } catch { throw .database(error) }
        guard format == Self.format else { throw (1..<Self.format).contains(format) ? .earlier : .foreign }
        return tables
    }

    /// Creates or repairs the tables of this format.
    /// - Returns: the format of the database.
    private func prepare() throws(DatabaseFailure) -> Int64 {
        let format = try number("PRAGMA user_version")
        if format == Self.format { try repair() }
        guard format == 0 else { return format }
        // Incremental vacuum must be set in an empty file, which VACUUM makes.
        try database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        try database.execute("VACUUM")
        try database.transaction { () throws(DatabaseFailure) in
            for part in Self.schema { try database.execute(part.text) }
            try database.execute("INSERT INTO state VALUES (1, 0, 0)")
            try database.execute("PRAGMA user_version = 2")
        }
        return Self.format
    }

    private static let schema = [
        SchemaPart(
            table: "entry",
            """
            CREATE TABLE entry (seq INTEGER PRIMARY KEY AUTOINCREMENT, hash INTEGER NOT NULL, id INTEGER NOT NULL,
                variant INTEGER NOT NULL, used INTEGER NOT NULL, size INTEGER NOT NULL, received REAL NOT NULL,
                whole INTEGER NOT NULL, file TEXT, place INTEGER NOT NULL, length INTEGER NOT NULL,
                head BLOB NOT NULL)
            """),
        SchemaPart(index: "entry_hash", "CREATE INDEX entry_hash ON entry (hash)"),
        SchemaPart(index: "entry_used", "CREATE INDEX entry_used ON entry (used, size)"),
        SchemaPart(index: "entry_file", "CREATE INDEX entry_file ON entry (file, place) WHERE file IS NOT NULL"),
        SchemaPart(
            table: "state",
            """
            CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), \
            total INTEGER NOT NULL, changes INTEGER NOT NULL)
            """),
    ]

    /// Creates missing indexes, and a missing row of `state`.
    /// - Throws: a failure of the kind `damaged` if a table is missing or has another definition: the caller makes a
    ///   new database, and copies the readable rows.
    private func repair() throws(DatabaseFailure) {
        let missing = try database.missing(of: Self.schema)
        if let table = missing.first(where: \.isTable) { throw DatabaseFailure(missing: table.name) }
        let hasState = try number("SELECT count(*) FROM state") == 1
        guard !missing.isEmpty || !hasState else { return }
        try database.transaction { () throws(DatabaseFailure) in
            for part in missing { try database.execute(part.text) }
            if !hasState { try database.execute("INSERT INTO state VALUES (1, 0, 0)") }
        }
    }

    private func number(_ text: StaticString) throws(DatabaseFailure) -> Int64 { try integer(text, []) ?? 0 }

    // MARK: Lookup

    func state() throws(DatabaseFailure) -> State {
        try database.statement("SELECT total, changes FROM state").first {
            State(total: min(max(0, $0.integer(0)), .max / 4), changes: $0.integer(1))
        } ?? State(total: 0, changes: 0)
    }

    /// Returns the heads under a hash, the one stored last first. Damaged ones are left out.
    func heads(_ hash: Int64) throws(DatabaseFailure) -> [DiskHead] {
        try database.statement("SELECT head FROM entry WHERE hash = ? ORDER BY seq DESC")
            .rows([.integer(hash)]) { $0.withBlob(0) { DiskHead($0) } }
    }

    /// Returns the head of a response.
    func find(_ id: Int64, _ hash: Int64) throws(DatabaseFailure) -> DiskHead? {
        let statement = try database.statement("SELECT head FROM entry WHERE hash = ? AND id = ?")
        var found: DiskHead?
        try statement.each([.integer(hash), .integer(id)]) { () throws(DatabaseFailure) in
            guard let head = statement.withBlob(0, { DiskHead($0) }), head.response.id == id else { return true }
            found = head
            return false
        }
        return found
    }

    /// Passes on the hashes of all rows after a row number; returns the last row number.
    func hashes(after seq: Int64, _ use: (Int64) -> Void) throws(DatabaseFailure) -> Int64 {
        let statement = try database.statement("SELECT seq, hash FROM entry WHERE seq > ?")
        var last = seq
        try statement.each([.integer(seq)]) { () throws(DatabaseFailure) in
            last = max(last, statement.integer(0))
            use(statement.integer(1))
            return true
        }
        return last
    }

    /// Returns a page of all rows in order, for inspection.
    func page(after seq: Int64, atMost count: Int64) throws(DatabaseFailure) -> (
        rows: [(seq: Int64, head: DiskHead?)], last: Int64
    ) {
        let rows = try database.statement("SELECT seq, head FROM entry WHERE seq > ? ORDER BY seq LIMIT ?")
            .rows([.integer(seq), .integer(count)]) { row in
                (seq: row.integer(0), head: row.withBlob(1) { DiskHead($0) })
            }
        return (rows, rows.last?.seq ?? seq)
    }

    func hasRow(forFile name: String) throws(DatabaseFailure) -> Bool {
        try integer("SELECT 1 FROM entry WHERE file = ?", [.text(name)]) != nil
    }

    func hasRow(forHash hash: Int64) throws(DatabaseFailure) -> Bool {
        try integer("SELECT 1 FROM entry WHERE hash = ? LIMIT 1", [.integer(hash)]) != nil
    }

    // MARK: Changes, inside a transaction

    func transaction<R>(_ work: () throws(DatabaseFailure) -> R) throws(DatabaseFailure) -> R {
        try database.transaction(work)
    }

    func insert(_ head: DiskHead, hash: Int64, used: Int64) throws(DatabaseFailure) -> Row {
        let bytes = head.bytes
        let response = head.response
        let length = response.storedLength
        let size = Self.size(head: bytes.count, body: length, isAlone: head.place == nil)
        try database.statement("INSERT INTO entry VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
            .integer(hash), .integer(response.id), .integer(response.variantHash), .integer(used), .integer(size),
            .real(response.responseTime), .init(response.isWhole), .init(head.file), .integer(head.offset),
            .integer(length), .bytes(bytes))
        return Row(
            seq: database.lastInsertedRow, hash: hash, size: size, file: head.file,
            range: head.offset..<head.offset + length)
    }

    /// The approximate space of a response: rows fill about nine tenths of their pages, files of one body whole blocks.
    private static func size(head: Int, body: Int64, isAlone: Bool) -> Int64 {
        let row = Int64(head) + 200
        return row + row / 8 + (isAlone ? (body + 4095) & ~4095 : body)
    }

    /// - Returns: the difference in size, in bytes.
    func update(_ head: DiskHead, hash: Int64) throws(DatabaseFailure) -> Int64 {
        let response = head.response
        let bytes = head.bytes
        let size = Self.size(head: bytes.count, body: response.storedLength, isAlone: head.place == nil)
        let before = try rows(.one(hash: hash, id: response.id))
        try database.statement("UPDATE entry SET head = ?, received = ?, size = ? WHERE hash = ? AND id = ?")
            .run(
                .bytes(bytes), .real(response.responseTime), .integer(size), .integer(hash), .integer(response.id))
        return before.reduce(0) { $0 + size - $1.size }
    }

    func touch(_ id: Int64, hash: Int64, at moment: Int64) throws(DatabaseFailure) {
        try database.statement("UPDATE entry SET used = ? WHERE hash = ? AND id = ?")
            .run(.integer(moment), .integer(hash), .integer(id))
    }

    enum Selection: Sendable {
        case variant(hash: Int64, variant: Int64)
        case one(hash: Int64, id: Int64)
        case key(Int64)
        case since(Double)
        case all
        /// The least recently used rows, up to a number.
        case oldest(Int64)
    }

    func rows(_ selection: Selection) throws(DatabaseFailure) -> [Row] {
        switch selection {
        case .variant(let hash, let variant):
            try rows(
                "SELECT seq, hash, size, file, place, length FROM entry WHERE hash = ? AND variant = ?",
                [.integer(hash), .integer(variant)])
        case .one(let hash, let id):
            try rows(
                "SELECT seq, hash, size, file, place, length FROM entry WHERE hash = ? AND id = ?",
                [.integer(hash), .integer(id)])
        case .key(let hash):
            try rows("SELECT seq, hash, size, file, place, length FROM entry WHERE hash = ?", [.integer(hash)])
        case .since(let moment):
            try rows("SELECT seq, hash, size, file, place, length FROM entry WHERE received >= ?", [.real(moment)])
        case .all: try rows("SELECT seq, hash, size, file, place, length FROM entry", [])
        case .oldest(let count):
            try rows(
                "SELECT seq, hash, size, file, place, length FROM entry ORDER BY used, seq LIMIT ?", [.integer(count)])
        }
    }

    private func rows(_ text: StaticString, _ values: [DatabaseStatement.Value]) throws(DatabaseFailure) -> [Row] {
        try database.statement(text).rows(values) { row in
            let file = row.isNull(3) ? "" : row.text(3)
            let place = Self.limited(row.integer(4))
            return Row(
                seq: row.integer(0), hash: row.integer(1), size: Self.limited(row.integer(2)),
                file: DiskPaths.isName(file) ? file : nil, range: place..<place + Self.limited(row.integer(5)))
        }
    }

    func hasWhole(hash: Int64, variant: Int64) throws(DatabaseFailure) -> Bool {
        try integer(
            "SELECT 1 FROM entry WHERE hash = ? AND variant = ? AND whole = 1", [.integer(hash), .integer(variant)])
            != nil
    }

    func delete(_ row: Row) throws(DatabaseFailure) {
        try database.statement("DELETE FROM entry WHERE seq = ?").run(.integer(row.seq))
    }

    /// Returns the range between the bodies before and after bytes of a pack that no row refers to any more.
    func gap(around range: Range<Int64>, in pack: String) throws(DatabaseFailure) -> Range<Int64> {
        let before = try integer(
            "SELECT place + length FROM entry WHERE file = ? AND place < ? ORDER BY place DESC LIMIT 1",
            [.text(pack), .integer(range.lowerBound)])
        // Behind the last row there may be a body that another process is about to refer to.
        let after = try integer(
            "SELECT place FROM entry WHERE file = ? AND place >= ? ORDER BY place LIMIT 1",
            [.text(pack), .integer(range.lowerBound)])
        let start = Self.limited(before ?? 0)
        return start..<max(start, after.map(Self.limited) ?? range.upperBound)
    }

    private func integer(_ text: StaticString, _ values: [DatabaseStatement.Value]) throws(DatabaseFailure) -> Int64? {
        try database.statement(text).first(values) { $0.integer(0) }
    }

    /// Recomputes the total size, which may have drifted.
    func recount() throws(DatabaseFailure) {
        try database.statement(
            """
            UPDATE state SET total = (SELECT coalesce(sum(min(max(size, 0), ?)), 0) FROM entry INDEXED BY entry_used)
            """
        ).run(.integer(Self.largest))
    }

    /// Records one change, and its difference in bytes; returns the new state.
    func note(_ difference: Int64) throws(DatabaseFailure) -> State {
        // A number of changes that were the largest would stay the same.
        try database.statement("UPDATE state SET total = max(0, total + ?), changes = (changes & 0xFFFFFFFFFFFF) + 1")
            .run(.integer(difference))
        return try state()
    }

    // MARK: Room

    /// Returns free pages to the file system in steps, if there are many.
    /// - Returns: whether more may be left.
    func giveBack() throws(DatabaseFailure) -> Bool {
        let free = try number("PRAGMA freelist_count")
        guard free > 512, free > (try number("PRAGMA page_count")) / 4 else { return false }
        try database.execute("PRAGMA incremental_vacuum(512)")
        return true
    }

    /// Whether nothing should be stored before a checkpoint has emptied the log.
    var isLogFull: Bool { database.isLogFull }

    /// Moves the log to the database. The caller holds the cache's lock, for this and the next function.
    func checkpoint() throws(DatabaseFailure) { try database.checkpoint() }
    func checkpointIfLong() { database.checkpointIfLong() }
}

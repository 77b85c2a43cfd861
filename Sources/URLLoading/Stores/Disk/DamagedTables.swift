// What can still be had from a database that is damaged somewhere. Each row is looked for by itself: a page that
// cannot be read takes only its own rows along.

import URLLoadingIO

final class DamagedTables {
    private let database: Database

    init(_ database: Database) { self.database = database }

    /// SQLite reads nothing of a file that is shorter than its head says: it gets the length, and no content
    /// (https://www.sqlite.org/fileformat2.html, 1.3).
    static func lengthen(_ path: String) {
        guard let (file, size) = try? FileWriter.reopen(path), let head = try? file.content(upTo: 32) else { return }
        let page = Int64(head[16]) << 8 | Int64(head[17])
        let count = head[28..<32].reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let length = (page == 1 ? 65_536 : page) * count
        // A head that is damaged itself may say anything.
        guard length > size, length < 64 << 30 else { return }
        try? file.truncate(to: length)
    }

    /// 0 if not even that can be read.
    var lastRow: Int64 {
        number("SELECT max(seq) FROM entry") ?? number("SELECT seq FROM sqlite_sequence WHERE name = 'entry'") ?? 0
    }

    private func number(_ text: StaticString) -> Int64? {
        guard let statement = try? database.statement(text) else { return nil }
        var result: Int64?
        try? statement.each { () throws(DatabaseFailure) in
            result = statement.integer(0)
            return false
        }
        return result
    }

    func row(_ seq: Int64) -> (head: DiskHead, body: Chunk?, used: Int64)? {
        guard let statement = try? database.statement("SELECT head, used FROM entry WHERE seq = ?") else { return nil }
        var head: DiskHead?
        var used: Int64 = 0
        try? statement.each([.integer(seq)]) { () throws(DatabaseFailure) in
            head = statement.withBlob(0) { DiskHead($0) }
            used = statement.integer(1)
            return false
        }
        guard let head else { return nil }
        return (head, head.file == nil ? body(seq, head) : nil, used)
    }

    private func body(_ seq: Int64, _ head: DiskHead) -> Chunk? {
        guard let statement = try? database.statement("SELECT data FROM body WHERE seq = ?") else { return nil }
        var body: Chunk?
        try? statement.each([.integer(seq)]) { () throws(DatabaseFailure) in
            body = statement.withBlob(0) { DiskTables.judged($0, head) }
            return false
        }
        return body
    }
}

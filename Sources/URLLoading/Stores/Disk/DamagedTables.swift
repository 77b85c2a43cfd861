// What can still be had from a database that is damaged somewhere. Each row is looked for by itself: a page that
// cannot be read takes only its own rows along.

import URLLoadingIO

final class DamagedTables {
    private let database: Database

    init(_ database: Database) { self.database = database }

    /// 0 if not even that can be read.
    var lastRow: Int64 { number("SELECT max(seq) FROM entry") ?? number("SELECT seq FROM sqlite_sequence WHERE name = 'entry'") ?? 0 }

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

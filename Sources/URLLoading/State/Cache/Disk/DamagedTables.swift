// SPDX-License-Identifier: Apache-2.0

// Reads the undamaged rows of a damaged database. Each row is read separately, so that an unreadable page loses only
// its own rows.

import URLLoadingIO

final class DamagedTables {
    private let database: Database

    init(_ database: Database) { self.database = database }

    /// Extends a truncated file to the length in its header, because SQLite reads nothing from a file that is shorter
    /// (https://www.sqlite.org/fileformat2.html, 1.3).
    static func lengthen(_ path: String) {
        guard let (file, size) = try? FileWriter.reopen(path), let head = try? file.content(upTo: 32) else { return }
        let page = Int64(head[16]) << 8 | Int64(head[17])
        let count = head[28..<32].reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let length = (page == 1 ? 65_536 : page) * count
        // The header may be damaged as well.
        guard length > size, length < 64 << 30 else { return }
        try? file.truncate(to: length)
    }

    /// The last row number; 0 if it cannot be read.
    var lastRow: Int64 {
        number("SELECT max(seq) FROM entry") ?? number("SELECT seq FROM sqlite_sequence WHERE name = 'entry'") ?? 0
    }

    private func number(_ text: StaticString) -> Int64? {
        try? database.statement(text).first { $0.integer(0) }
    }

    func row(_ seq: Int64) -> (head: DiskHead, used: Int64)? {
        try? database.statement("SELECT head, used FROM entry WHERE seq = ?").first([.integer(seq)]) { row in
            row.withBlob(0) { DiskHead($0) }.map { (head: $0, used: row.integer(1)) }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// In this folder: the store of HSTS hosts and its rules

// The file format of HSTS hosts, and the changes of an HSTS store: what each does to the table and to the file.

import FoundationEssentials
import URLLoadingIO

enum HSTSSchema: StateSchema {
    typealias Key = String
    typealias Row = HSTSHost

    static let fileName = "hsts.sqlite"

    static let table = SchemaPart(
        table: "host",
        """
        CREATE TABLE host (
            name TEXT PRIMARY KEY NOT NULL, subdomains INTEGER NOT NULL, expires REAL NOT NULL, creation REAL NOT NULL
        ) WITHOUT ROWID
        """)

    static func rows(_ database: Database) throws(DatabaseFailure) -> [HSTSHost] {
        try database.statement("SELECT name, subdomains, expires, creation FROM host").rows {
            HSTSHost(
                checked: $0.text(0), includesSubdomains: $0.integer(1) != 0, expires: $0.date(2), creation: $0.date(3))
        }
    }

    static func removeExpired(_ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM host WHERE expires < ?").run(.date(.now))
    }

    static func write(_ host: HSTSHost, _ database: Database) throws(DatabaseFailure) {
        try database.statement("INSERT OR REPLACE INTO host VALUES (?, ?, ?, ?)").run(
            .text(host.name), .init(host.includesSubdomains), .date(host.expires), .date(host.creationDate))
    }

    static func remove(_ name: String, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM host WHERE name = ?").run(.text(name))
    }

    static func contains(_ name: String, _ database: Database) throws(DatabaseFailure) -> Bool {
        try database.statement("SELECT 1 FROM host WHERE name = ?").hasRow(.text(name))
    }

    static func clear(since moment: Double, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM host WHERE creation >= ?").run(.real(moment))
    }
}

extension HSTSTable: PersistedTable {
    typealias Schema = HSTSSchema
}

extension HSTSHost: PersistedRow {
    var key: String { name }
    func isExpired(_ now: Date) -> Bool { expires <= now }
}

extension TableState<HSTSTable> {
    mutating func set(_ host: HSTSHost, now: Date) {
        guard !host.isExpired(now) else { return remove(host.name) }
        let known = table.hosts[host.name]
        let removed = table.set(host)
        if let removed { pending?.set(nil, for: removed.name) }
        if known.map({ $0.isCloseEnough(as: host, now) }) != true { pending?.set(host, for: host.name) }
    }

    mutating func remove(_ name: String) {
        // Also without one in memory: another process may have stored it, and this one has not read it yet.
        pending?.set(nil, for: name)
        _ = table.remove(name)
    }

    mutating func removeAll(since moment: Date) {
        for host in table.remove(since: moment) { pending?.set(nil, for: host.name) }
        pending?.clear(since: moment.timeIntervalSinceReferenceDate)
    }
}

extension HSTSHost {
    /// Whether the file's entry is good enough: equal, and expiring about when the other does.
    fileprivate func isCloseEnough(as other: HSTSHost, _ now: Date) -> Bool {
        includesSubdomains == other.includesSubdomains && expires.isCloseEnough(to: other.expires, now)
    }
}

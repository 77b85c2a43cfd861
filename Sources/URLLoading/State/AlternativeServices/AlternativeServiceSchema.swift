// SPDX-License-Identifier: Apache-2.0

// The file format of alternative services, and the changes of their store: what each does to the table and to the file.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

enum AlternativeServiceSchema: StateSchema {
    typealias Key = Origin
    typealias Row = AlternativeServiceRecord

    static let fileName = "alternatives.sqlite"

    /// A port of 0 is an origin without an offer, a host without text the origin's own.
    static let table = SchemaPart(
        table: "origin",
        """
        CREATE TABLE origin (
            scheme TEXT NOT NULL, host TEXT NOT NULL, port INTEGER NOT NULL, service_host TEXT NOT NULL,
            service_port INTEGER NOT NULL, persists INTEGER NOT NULL, end REAL NOT NULL, failures INTEGER NOT NULL,
            rests REAL NOT NULL, slow INTEGER NOT NULL, creation REAL NOT NULL, PRIMARY KEY (scheme, host, port)
        ) WITHOUT ROWID
        """)

    static func rows(_ database: Database) throws(DatabaseFailure) -> [AlternativeServiceRecord] {
        try database.statement(
            """
            SELECT scheme, host, port, service_host, service_port, persists, end, failures, rests, slow, creation
            FROM origin
            """
        ).rows { row($0) }
    }

    /// Returns `nil` for a row that this library has not written.
    private static func row(_ select: DatabaseStatement) -> AlternativeServiceRecord? {
        guard let host = try? Origin.Host(select.text(1)), let port = UInt16(exactly: select.integer(2)),
            let origin = try? Origin(scheme: select.text(0), host: host, port: port), origin.isSecure,
            let servicePort = UInt16(exactly: select.integer(4)), let failures = Int(exactly: select.integer(7))
        else { return nil }
        var row = AlternativeServiceRecord(origin: origin, creationDate: select.date(10))
        if servicePort > 0 {
            let text = select.text(3)
            var service = AlternativeService("h3", port: servicePort)
            if !text.isEmpty {
                guard let other = try? Origin.Host(text) else { return nil }
                service = AlternativeService("h3", host: other, port: servicePort)
            }
            service.persists = select.integer(5) != 0
            row.service = service
        }
        // Its own clock may be wrong now or have been then.
        row.end = min(select.date(6), .now + Double(AlternativeServiceRecord.longestAge))
        (row.failures, row.restsUntil) = (min(max(0, failures), 16), select.date(8))
        row.isSlow = select.integer(9) != 0
        return row
    }

    static func removeExpired(_ database: Database) throws(DatabaseFailure) {
        let now = Date.now
        try database.statement("DELETE FROM origin WHERE end <= ? AND rests <= ?").run(
            .date(now), .date(now - AlternativeServiceRecord.longestRest))
    }

    static func write(_ row: AlternativeServiceRecord, _ database: Database) throws(DatabaseFailure) {
        let (host, port) = (row.service?.host?.description ?? "", Int64(row.service?.port ?? 0))
        // An offer alone leaves what the file has of attempts at its place, which may not have been read.
        if row.saysAttempts {
            try remove(row.origin, database)
        } else {
            try database.statement(
                """
                DELETE FROM origin WHERE scheme = ? AND host = ? AND port = ? \
                AND service_port > 0 AND (service_host <> ? OR service_port <> ?)
                """
            ).run(
                .text(row.origin.scheme), .text(row.origin.host.description), .integer(Int64(row.origin.port)),
                .text(host), .integer(port))
        }
        try database.statement(
            """
            INSERT INTO origin VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (scheme, host, port) DO UPDATE SET
            service_host = excluded.service_host, service_port = excluded.service_port, persists = excluded.persists,
            end = excluded.end, creation = excluded.creation
            """
        ).run(
            .text(row.origin.scheme), .text(row.origin.host.description), .integer(Int64(row.origin.port)),
            .text(host), .integer(port),
            .init(row.service?.persists ?? false), .date(row.end), .integer(Int64(row.failures)),
            .date(row.restsUntil), .init(row.isSlow), .date(row.creationDate))
    }

    static func remove(_ origin: Origin, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM origin WHERE scheme = ? AND host = ? AND port = ?").run(
            .text(origin.scheme), .text(origin.host.description), .integer(Int64(origin.port)))
    }

    static func contains(_ origin: Origin, _ database: Database) throws(DatabaseFailure) -> Bool {
        try database.statement("SELECT 1 FROM origin WHERE scheme = ? AND host = ? AND port = ?").hasRow(
            .text(origin.scheme), .text(origin.host.description), .integer(Int64(origin.port)))
    }

    static func clear(since moment: Double, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM origin WHERE creation >= ?").run(.real(moment))
    }
}

extension AlternativeServiceTable: PersistedTable {
    typealias Schema = AlternativeServiceSchema
}

extension AlternativeServiceRecord: PersistedRow {
    var key: Origin { origin }
    func isExpired(_ now: Date) -> Bool { lasts <= now }

    /// Whether the file's record is good enough: equal, and ending about when the other does.
    fileprivate func isCloseEnough(as other: Self, _ now: Date) -> Bool {
        guard failures == other.failures, restsUntil == other.restsUntil, isSlow == other.isSlow,
            service?.port == other.service?.port, service?.host == other.service?.host,
            service?.persists == other.service?.persists
        else { return false }
        return end.isCloseEnough(to: other.end, now)
    }
}

extension TableState<AlternativeServiceTable> {
    mutating func change(_ origin: Origin, now: Date, _ body: (inout AlternativeServiceRecord) -> Void) {
        let known = table.records[origin]
        let evicted = table.change(origin, now: now, body)
        if let evicted { pending?.set(nil, for: evicted.origin) }
        switch (known, table.records[origin]) {
        case (nil, nil): break
        case (let known?, let new?) where known.isCloseEnough(as: new, now): break
        case (_, let new): pending?.set(new, for: origin)
        }
    }

    /// Learns the field of a response; one without a service of HTTP/3 revokes what there was (RFC 7838 §3).
    mutating func learn(_ field: AlternativeServices, from origin: Origin, now: Date) {
        change(origin, now: now) { $0.learn(field, now: now) }
        // Also without a record in memory before: another process may have stored it, and this one has not read it yet.
        if table.records[origin] == nil { pending?.set(nil, for: origin) }
    }

    mutating func removeAll(since moment: Date) {
        for record in table.remove(since: moment) { pending?.set(nil, for: record.origin) }
        pending?.clear(since: moment.timeIntervalSinceReferenceDate)
    }
}

// SPDX-License-Identifier: Apache-2.0

// The file format of cookies. Session cookies are never written.

import FoundationEssentials
import URLLoadingIO

enum CookieSchema: StateSchema {
    typealias Key = Cookie.Key
    typealias Row = Cookie

    static let fileName = "cookies.sqlite"

    static let table = SchemaPart(
        table: "cookie",
        """
        CREATE TABLE cookie (
            name TEXT NOT NULL, value TEXT NOT NULL, domain TEXT NOT NULL, host_only INTEGER NOT NULL, \
            path TEXT NOT NULL,
            expires REAL NOT NULL, secure INTEGER NOT NULL, http_only INTEGER NOT NULL, same_site TEXT,
            creation REAL NOT NULL, last_access REAL NOT NULL,
            PRIMARY KEY (domain, name, path, host_only)
        ) WITHOUT ROWID
        """)

    static func rows(_ database: Database) throws(DatabaseFailure) -> [Cookie] {
        try database.statement(
            """
            SELECT name, value, domain, host_only, path, expires, secure, http_only, same_site, creation, last_access
            FROM cookie ORDER BY creation
            """
        ).rows {
            Cookie(
                name: $0.text(0), value: $0.text(1), domain: $0.text(2), isHostOnly: $0.integer(3) != 0,
                path: $0.text(4), expires: $0.date(5), isSecure: $0.integer(6) != 0, isHTTPOnly: $0.integer(7) != 0,
                sameSite: $0.isNull(8) ? nil : Cookie.SameSite(rawValue: $0.text(8)), creation: $0.date(9),
                lastAccess: $0.date(10))
        }
    }

    static func removeExpired(_ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM cookie WHERE expires < ?").run(.date(.now))
    }

    static func write(_ cookie: Cookie, _ database: Database) throws(DatabaseFailure) {
        guard let expires = cookie.expires else { return }
        try database.statement("INSERT OR REPLACE INTO cookie VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
            .text(cookie.name), .text(cookie.value), .text(cookie.domain), .init(cookie.isHostOnly), .text(cookie.path),
            .date(expires), .init(cookie.isSecure), .init(cookie.isHTTPOnly), .init(cookie.sameSite?.rawValue),
            .date(cookie.creationDate), .date(cookie.lastAccessDate))
    }

    static func note(_ cookie: Cookie, _ database: Database) throws(DatabaseFailure) {
        try database.statement(
            """
            UPDATE cookie SET last_access = ? \
            WHERE domain = ? AND name = ? AND path = ? AND host_only = ? AND value = ? AND creation = ?
            """
        ).run(
            .date(cookie.lastAccessDate), .text(cookie.domain), .text(cookie.name), .text(cookie.path),
            .init(cookie.isHostOnly), .text(cookie.value), .date(cookie.creationDate))
    }

    static func remove(_ key: Cookie.Key, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM cookie WHERE domain = ? AND name = ? AND path = ? AND host_only = ?").run(
            .text(key.domain), .text(key.name), .text(key.path), .init(key.isHostOnly))
    }

    static func contains(_ key: Cookie.Key, _ database: Database) throws(DatabaseFailure) -> Bool {
        try database.statement("SELECT 1 FROM cookie WHERE domain = ? AND name = ? AND path = ? AND host_only = ?")
            .hasRow(.text(key.domain), .text(key.name), .text(key.path), .init(key.isHostOnly))
    }

    static func clear(since moment: Double, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM cookie WHERE creation >= ?").run(.real(moment))
    }
}

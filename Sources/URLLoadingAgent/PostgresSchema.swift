// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// The tables of a journal in PostgreSQL, in the schema `urlloading`: each entry of `versions` leads to the next
/// version from version 0, a database without them.
///
/// What changes often is in narrow tables: `claim` with each claim and renewal, `progress` with each step of a
/// transfer, `counter` with each event. `transfer` has the orders, which hardly change.
struct PostgresSchema: Sendable {
    var versions: [[String]]

    static let current = PostgresSchema(versions: [version1])

    private static let version1 = [
        """
        CREATE TABLE urlloading.identifier (name text PRIMARY KEY, settings bytea NOT NULL, secrets bytea,
        agent text, lease timestamptz)
        """,
        """
        CREATE TABLE urlloading.transfer (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text NOT NULL UNIQUE, identifier text NOT NULL REFERENCES urlloading.identifier, task bytea NOT NULL,
        secrets bytea)
        """,
        "CREATE INDEX transfer_of_identifier ON urlloading.transfer (identifier, number)",
        """
        CREATE TABLE urlloading.progress (
        number bigint PRIMARY KEY REFERENCES urlloading.transfer ON DELETE CASCADE,
        state bytea NOT NULL, progress bytea NOT NULL) WITH (fillfactor = 70)
        """,
        """
        CREATE TABLE urlloading.claim (
        number bigint PRIMARY KEY REFERENCES urlloading.transfer ON DELETE CASCADE,
        identifier text NOT NULL, host text NOT NULL, priority smallint NOT NULL, discretionary boolean NOT NULL,
        ready boolean NOT NULL, due timestamptz, parked boolean NOT NULL DEFAULT false,
        agent text, lease timestamptz, epoch bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50)
        """,
        """
        CREATE INDEX claim_ready ON urlloading.claim (priority DESC, number) WHERE ready AND agent IS NULL
        """,
        "CREATE INDEX claim_due ON urlloading.claim (due) WHERE due IS NOT NULL",
        "CREATE INDEX claim_parked ON urlloading.claim (identifier) WHERE parked",
        "CREATE INDEX claim_of_agent ON urlloading.claim (agent) WHERE agent IS NOT NULL",
        """
        CREATE TABLE urlloading.counter (identifier text PRIMARY KEY, sequence bigint NOT NULL)
        WITH (fillfactor = 50)
        """,
        """
        CREATE TABLE urlloading.event (identifier text NOT NULL, sequence bigint NOT NULL,
        transfer bigint NOT NULL UNIQUE REFERENCES urlloading.transfer ON DELETE CASCADE,
        PRIMARY KEY (identifier, sequence))
        """,
    ]

    /// A number of this package's, so that agents migrate one after the other.
    private static let lock: Int64 = 0x75726C6C6F6164

    /// Creates the tables, or leads an earlier version to this one, in one transaction.
    /// - Returns: the version of the tables; a later one than this is left as it is.
    func migrate(_ connection: PostgresConnection) async throws(PostgresFailure) -> Int {
        try await connection.run("BEGIN")
        do throws(PostgresFailure) {
            let version = try await steps(connection)
            try await connection.run("COMMIT")
            return version
        } catch {
            if error.kind == .refused { _ = try? await connection.run("ROLLBACK") }
            throw error
        }
    }

    private func steps(_ connection: PostgresConnection) async throws(PostgresFailure) -> Int {
        try await connection.run("SELECT pg_advisory_xact_lock(\(Self.lock))")
        let table = try await connection.run("SELECT to_regclass('urlloading.version') IS NOT NULL")
        if table.rows.first?.flag(0) != true {
            try await connection.run(
                """
                CREATE SCHEMA IF NOT EXISTS urlloading;
                CREATE TABLE urlloading.version (version integer NOT NULL);
                INSERT INTO urlloading.version VALUES (0)
                """)
        }
        let found = try await connection.run("SELECT version FROM urlloading.version")
        let version = Int(found.rows.first?.integer(0) ?? 0)
        guard version < versions.count else { return version }
        for step in versions[version...].joined() { try await connection.run(step) }
        try await connection.run("UPDATE urlloading.version SET version = \(versions.count)")
        return versions.count
    }
}

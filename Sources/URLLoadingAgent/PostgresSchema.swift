// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// The tables of a journal in PostgreSQL, in the schema `urlloading`: each entry of `versions` leads to the next
/// version from version 0, a database without them.
///
/// What changes often is in narrow tables: `claim` with each claim and renewal, `progress` with each step of a
/// transfer, `counter` with each event. `transfer` has the orders, which hardly change.
///
/// Of a host, `places` and `rate` are set by people, as is the row `*` for hosts without values of their own. A host
/// without a row has the usual limit, and has not asked for a pause.
struct PostgresSchema: Sendable {
    var versions: [[String]]

    static let current = PostgresSchema(versions: [version1, version2, version3])

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

    private static let version2 = [
        """
        CREATE TABLE urlloading.agent (name text PRIMARY KEY, began timestamptz NOT NULL, lease timestamptz NOT NULL,
        places integer NOT NULL, draining boolean NOT NULL) WITH (fillfactor = 50)
        """,
        """
        CREATE TABLE urlloading.host (name text PRIMARY KEY, places integer CHECK (places >= 0),
        rate double precision CHECK (rate > 0), paused timestamptz, next timestamptz)
        """,
        """
        CREATE TABLE urlloading.affinity (identifier text NOT NULL, name text NOT NULL, agent text NOT NULL,
        PRIMARY KEY (identifier, name))
        """,
        """
        CREATE TABLE urlloading.command (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        transfer bigint NOT NULL REFERENCES urlloading.transfer ON DELETE CASCADE, verb text NOT NULL,
        argument bytea NOT NULL)
        """,
        "CREATE INDEX command_of_transfer ON urlloading.command (transfer, number)",
        "ALTER TABLE urlloading.claim ADD affinity text, ADD reserved text",
        "DROP INDEX urlloading.claim_ready",
        """
        CREATE INDEX claim_ready ON urlloading.claim (identifier, host, priority DESC, number)
        WHERE ready AND agent IS NULL
        """,
        "CREATE INDEX claim_of_host ON urlloading.claim (host) WHERE agent IS NOT NULL",
        "CREATE INDEX claim_of_affinity ON urlloading.claim (identifier, affinity) WHERE affinity IS NOT NULL",
    ]

    /// Plans are made once, while few transfers are claimed: the planner would take this index for the claims of a
    /// host, too, if its condition followed from that of `claim_of_host`.
    private static let version3 = [
        "DROP INDEX urlloading.claim_of_agent",
        "CREATE INDEX claim_of_agent ON urlloading.claim (agent) WHERE agent <> ''",
    ]

    /// A number of this package's, so that agents migrate one after the other.
    private static let lock: Int64 = 0x75726C6C6F6164
    /// The nanoseconds for which a step of a migration is waited for.
    private static let patience: Int64 = 6 * 3_600_000_000_000

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
        try await connection.run("SET LOCAL lock_timeout = 0")
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
        // Whatever waits for a table in use makes all agents wait behind it: it gives up soon. To build an index takes
        // as long as it takes.
        try await connection.run("SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = 0")
        for step in versions[version...].joined() {
            try await connection.run(step, within: Self.patience)
        }
        try await connection.run("UPDATE urlloading.version SET version = \(versions.count)")
        return versions.count
    }
}

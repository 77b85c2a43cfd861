// SPDX-License-Identifier: Apache-2.0

// The statements of a journal in PostgreSQL. Each is short, and none waits for the bytes of a transfer. Times are those
// of the database's clock.

import URLLoadingIO

/// A connection, and the name under which its agent claims transfers.
struct PostgresStatements: Sendable {
    let connection: PostgresConnection
    let agent: String
    /// The milliseconds after which a claim ends that is not renewed.
    let leaseTime: Int64
    /// The transfers of a host that may run at once, unless the table `host` says otherwise.
    let places: Int
    /// Whether other agents have had the time to renew their claims, after the database was away as well.
    let endsForeignClaims: Bool
    /// Whether the agent takes no more work.
    let isDraining: Bool

    var lease: String { "interval '\(leaseTime) ms'" }

    // MARK: Changes

    /// Makes one change of a group.
    /// - Returns: why the group must change nothing; `nil` if the change was made.
    func apply(_ change: JournalChange, _ receipt: inout JournalReceipt) async throws(PostgresFailure)
        -> JournalFailure?
    {
        switch change {
        case .identifier(let name, let settings, let secrets):
            let taken = try await connection.run(
                "identifier",
                """
                INSERT INTO urlloading.identifier AS known VALUES ($1, $2, $3, $4, clock_timestamp() + \(lease))
                ON CONFLICT (name) DO UPDATE SET settings = $2, secrets = $3, agent = $4, lease = excluded.lease
                WHERE known.agent IS NULL OR known.agent = $4 OR known.lease < statement_timestamp()
                """, [.text(name), .bytes(settings), .bytes(secrets), .text(agent)])
            return taken.changed == 0 ? .elsewhere : nil
        case .leave(let name): return try await leave(name)
        case .accept(let transfer): receipt.acceptance = try await accept(transfer)
        case .order(let claim, let order, let priority):
            let changed = try await connection.run(
                "order",
                """
                WITH held AS (UPDATE urlloading.claim SET priority = $5
                WHERE \(Self.held) RETURNING number)
                UPDATE urlloading.transfer SET task = $4 FROM held WHERE transfer.number = held.number
                """, values(claim) + [.bytes(order), .init(Int(priority))])
            return changed.changed == 0 ? .stale : nil
        case .update(let claim, let state, let progress, let standing):
            return try await update(claim, state, progress, standing)
        case .event(let claim): return try await end(claim)
        case .acknowledge(let sequence, let identifier):
            receipt.removed = try await remove(sequence, of: identifier)
            if receipt.removed == nil, try await isElsewhere(identifier) { return .elsewhere }
        case .pause(let host, let nanoseconds): try await pause(host, for: nanoseconds)
        case .command(let id, let verb, let argument): try await command(id, verb, argument)
        case .carriedOut(let number):
            try await connection.run(
                "carriedOut",
                """
                DELETE FROM urlloading.command AS c WHERE number = $1 AND NOT EXISTS
                (SELECT FROM urlloading.claim WHERE claim.number = c.transfer AND claim.agent <> $2)
                """, [.init(number), .text(agent)])
        }
        return nil
    }

    /// The columns that ``transfer(_:from:hasSecrets:)`` reads, of the tables `claim`, `transfer` and `progress`.
    static let columns = "claim.number, claim.epoch, transfer.id, transfer.identifier, task, state, progress"

    /// Whether the agent has a claim still, of the parameters of ``values(_:)``.
    ///
    /// `agent = $3` would let the planner read the index of all claims from its beginning, with those that have ended:
    /// it takes that for as good as the primary key, since there are few.
    static let held = "number = $1 AND epoch = $2 AND agent IS NOT DISTINCT FROM $3"

    /// The parameters that identify a claim.
    private func values(_ claim: TransferClaim) -> [PostgresValue] {
        [.init(claim.number), .init(claim.epoch), .text(agent)]
    }

    private func leave(_ name: String) async throws(PostgresFailure) -> JournalFailure? {
        try await connection.run(
            "leave", "UPDATE urlloading.identifier SET agent = NULL, lease = NULL WHERE name = $1 AND agent = $2",
            [.text(name), .text(agent)])
        try await connection.run(
            "forget",
            """
            DELETE FROM urlloading.identifier WHERE name = $1 AND agent IS NULL
            AND NOT EXISTS (SELECT FROM urlloading.transfer WHERE identifier = $1)
            """, [.text(name)])
        return nil
    }

    /// Whether a program is attached to another agent with an identifier.
    private func isElsewhere(_ identifier: String) async throws(PostgresFailure) -> Bool {
        let found = try await connection.run(
            "elsewhere", "SELECT FROM urlloading.identifier WHERE name = $1 AND agent <> $2",
            [.text(identifier), .text(agent)])
        return !found.rows.isEmpty
    }

    private func accept(_ transfer: JournaledTransfer) async throws(PostgresFailure) -> JournalReceipt.Acceptance {
        let terms = transfer.terms
        let made = try await connection.run(
            "accept",
            """
            WITH made AS (INSERT INTO urlloading.transfer (id, identifier, task, secrets) VALUES ($1, $2, $3, $4)
            ON CONFLICT (id) DO NOTHING RETURNING number),
            begun AS (INSERT INTO urlloading.progress SELECT number, $5::bytea, $6::bytea FROM made),
            queued AS (INSERT INTO urlloading.claim (number, identifier, host, priority, discretionary, ready, due,
            affinity)
            SELECT number, $2, $7::text, $8::smallint, $9::boolean, $10::boolean,
            clock_timestamp() + $11::bigint * interval '1 microsecond', $12::text FROM made)
            SELECT number FROM made
            """,
            [
                .text(transfer.id), .text(transfer.identifier), .bytes(transfer.order),
                transfer.secrets.map { .bytes($0) } ?? .null, .bytes(transfer.state), .bytes(transfer.progress),
                .text(terms.host), .init(Int(terms.priority)), .init(terms.isDiscretionary),
                .init(terms.standing == .ready), .init(terms.standing.delay), terms.affinity.map { .text($0) } ?? .null,
            ])
        if !made.rows.isEmpty {
            if terms.standing == .ready { try await tell("work") }
            return .queued
        }
        let known = try await connection.run(
            "known", "SELECT identifier FROM urlloading.transfer WHERE id = $1", [.text(transfer.id)])
        return .known(identifier: known.rows.first?.text(0) ?? "")
    }

    private func update(
        _ claim: TransferClaim, _ state: [UInt8], _ progress: [UInt8], _ standing: TransferStanding
    ) async throws(PostgresFailure) -> JournalFailure? {
        let changed = try await connection.run(
            "update",
            """
            WITH held AS (UPDATE urlloading.claim SET ready = $6, parked = $8,
            due = clock_timestamp() + $7::bigint * interval '1 microsecond',
            reserved = CASE WHEN $10 THEN $3 END, agent = CASE WHEN $9 THEN agent END,
            lease = CASE WHEN $9 THEN clock_timestamp() + \(lease) END
            WHERE \(Self.held) RETURNING number)
            UPDATE urlloading.progress SET state = $4, progress = $5 FROM held WHERE progress.number = held.number
            """,
            values(claim) + [
                .bytes(state), .bytes(progress), .init(standing == .ready), .init(standing.delay),
                .init(standing == .none(isParked: true) || standing == .refused), .init(standing == .working),
                .init(standing == .refused),
            ])
        guard changed.changed > 0 else { return .stale }
        if standing == .ready { try await tell("work") }
        if standing == .none(isParked: true) {
            try await connection.run(
                "tellParked",
                """
                SELECT pg_notify('urlloading', 'parked ' || $2 || ' ' || identifier)
                FROM urlloading.claim WHERE number = $1
                """, [.init(claim.number), .text(agent)])
        }
        return nil
    }

    private func end(_ claim: TransferClaim) async throws(PostgresFailure) -> JournalFailure? {
        // The row of the counter is locked until the end of the transaction, so events become visible in the order of
        // their sequence (``lockCounters(of:)``).
        let ended = try await connection.run(
            "event",
            """
            WITH held AS (UPDATE urlloading.claim SET agent = NULL, lease = NULL, ready = false, due = NULL,
            parked = false, affinity = NULL, epoch = epoch + 1
            WHERE \(Self.held) RETURNING number, identifier),
            counted AS (INSERT INTO urlloading.counter AS c SELECT identifier, 1 FROM held
            ON CONFLICT (identifier) DO UPDATE SET sequence = c.sequence + 1 RETURNING identifier, sequence)
            INSERT INTO urlloading.event SELECT held.identifier, counted.sequence, held.number
            FROM held JOIN counted USING (identifier)
            RETURNING pg_notify('urlloading', 'event ' || identifier)
            """, values(claim))
        return ended.rows.isEmpty ? .stale : nil
    }

    /// Locks the counters of events, in the same order for all agents, so that no two wait for each other.
    func lockCounters(of claims: [TransferClaim]) async throws(PostgresFailure) {
        try await connection.run(
            "lockCounters",
            """
            INSERT INTO urlloading.counter AS c SELECT identifier, 0 FROM (
            SELECT DISTINCT identifier FROM urlloading.claim WHERE number = ANY ($1::bigint[])
            ORDER BY identifier OFFSET 0) AS ended
            ON CONFLICT (identifier) DO UPDATE SET sequence = c.sequence
            """, [.init(claims.map(\.number))])
    }

    private func remove(_ sequence: Int64, of identifier: String) async throws(PostgresFailure) -> JournaledTransfer? {
        let found = try await connection.run(
            "acknowledge",
            """
            WITH gone AS (DELETE FROM urlloading.event WHERE identifier = $1 AND sequence = $2 AND NOT EXISTS
            (SELECT FROM urlloading.identifier AS i WHERE i.name = $1 AND i.agent <> $3) RETURNING transfer)
            SELECT \(Self.columns) FROM gone JOIN urlloading.claim ON claim.number = gone.transfer
            JOIN urlloading.transfer USING (number) JOIN urlloading.progress USING (number)
            """, [.text(identifier), .init(sequence), .text(agent)])
        guard let row = found.rows.first else { return nil }
        let transfer = Self.transfer(row, from: 0)
        try await connection.run(
            "remove", "DELETE FROM urlloading.transfer WHERE number = $1", [.init(transfer.claim.number)])
        return transfer
    }

    /// Keeps a command for the agent that has claimed the transfer, or will.
    private func command(_ id: String, _ verb: String, _ argument: [UInt8]) async throws(PostgresFailure) {
        try await connection.run(
            "command",
            """
            WITH made AS (INSERT INTO urlloading.command (transfer, verb, argument)
            SELECT number, $2, $3 FROM urlloading.transfer WHERE id = $1 RETURNING transfer)
            SELECT pg_notify('urlloading', 'command ' || agent) FROM made
            JOIN urlloading.claim ON claim.number = made.transfer WHERE agent IS NOT NULL
            """, [.text(id), .text(verb), .bytes(argument)])
    }

    func commands() async throws(PostgresFailure) -> [JournaledCommand] {
        let found = try await connection.run(
            "commands",
            """
            SELECT c.number, transfer.id, transfer.identifier, c.verb, c.argument FROM urlloading.command AS c
            JOIN urlloading.claim ON claim.number = c.transfer
            JOIN urlloading.transfer ON transfer.number = claim.number
            WHERE claim.agent = $1 OR (claim.agent IS NULL
            AND NOT EXISTS (SELECT FROM urlloading.event WHERE event.transfer = c.transfer))
            ORDER BY c.number LIMIT 1000
            """, [.text(agent)])
        return found.rows.map {
            JournaledCommand(
                number: $0.integer(0), transfer: $0.text(1), identifier: $0.text(2), verb: $0.text(3),
                argument: $0.bytes(4) ?? [])
        }
    }

    /// Wakes the agents that listen.
    func tell(_ words: String) async throws(PostgresFailure) {
        try await connection.run("tell", "SELECT pg_notify('urlloading', $1)", [.text(words)])
    }

    // MARK: Reading

    func identifiers(_ name: String?) async throws(PostgresFailure) -> [JournaledIdentifier] {
        let found = try await connection.run(
            "identifiers",
            "SELECT name, settings, secrets FROM urlloading.identifier WHERE $1::text IS NULL OR name = $1",
            [name.map { .text($0) } ?? .null])
        return found.rows.map {
            JournaledIdentifier(name: $0.text(0), settings: $0.bytes(1) ?? [], secrets: $0.bytes(2))
        }
    }

    func transfers(of identifier: String, after number: Int64, atMost count: Int) async throws(PostgresFailure)
        -> [JournaledTransfer]
    {
        let found = try await connection.run(
            "transfers",
            """
            SELECT \(Self.columns) FROM urlloading.transfer JOIN urlloading.claim USING (number)
            JOIN urlloading.progress USING (number)
            WHERE transfer.identifier = $1 AND transfer.number > $2 ORDER BY transfer.number LIMIT $3
            """, [.text(identifier), .init(number), .init(count)])
        return found.rows.map { Self.transfer($0, from: 0) }
    }

    func transfer(_ id: String) async throws(PostgresFailure) -> JournaledTransfer? {
        let found = try await connection.run(
            "transfer",
            """
            SELECT \(Self.columns) FROM urlloading.transfer JOIN urlloading.claim USING (number)
            JOIN urlloading.progress USING (number) WHERE transfer.id = $1
            """, [.text(id)])
        return found.rows.first.map { Self.transfer($0, from: 0) }
    }

    func events(of identifier: String, after sequence: Int64, atMost count: Int) async throws(PostgresFailure)
        -> [JournaledEvent]
    {
        let found = try await connection.run(
            "events",
            """
            SELECT sequence, \(Self.columns) FROM urlloading.event
            JOIN urlloading.claim ON claim.number = event.transfer JOIN urlloading.transfer USING (number)
            JOIN urlloading.progress USING (number)
            WHERE event.identifier = $1 AND sequence > $2 AND NOT EXISTS
            (SELECT FROM urlloading.identifier AS i WHERE i.name = $1 AND i.agent <> $4) ORDER BY sequence LIMIT $3
            """, [.text(identifier), .init(sequence), .init(count), .text(agent)])
        return found.rows.map { JournaledEvent(sequence: $0.integer(0), transfer: Self.transfer($0, from: 1)) }
    }

    func sequences(of identifier: String) async throws(PostgresFailure) -> [Int64] {
        let found = try await connection.run(
            "sequences", "SELECT sequence FROM urlloading.event WHERE identifier = $1 ORDER BY sequence",
            [.text(identifier)])
        return found.rows.map { $0.integer(0) }
    }

    static func transfer(_ row: PostgresRow, from first: Int, hasSecrets: Bool = false) -> JournaledTransfer {
        JournaledTransfer(
            claim: TransferClaim(number: row.integer(first), epoch: row.integer(first + 1)), id: row.text(first + 2),
            identifier: row.text(first + 3), order: row.bytes(first + 4) ?? [], state: row.bytes(first + 5) ?? [],
            progress: row.bytes(first + 6) ?? [], secrets: hasSecrets ? row.bytes(first + 7) : nil)
    }
}

extension TransferStanding {
    /// The microseconds until a transfer may begin that waits until a time.
    fileprivate var delay: Int64? {
        if case .later(let nanoseconds) = self { max(0, nanoseconds) / 1_000 } else { nil }
    }
}

extension JournalSignal {
    /// Reads what ``PostgresStatements`` has told.
    init?(_ words: String) {
        let parts = words.split(separator: " ", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("work"?, _): self = .work
        case ("command"?, 2): self = .command(agent: parts[1])
        case ("event"?, 2): self = .event(identifier: parts[1])
        case ("parked"?, 2):
            let rest = parts[1].split(separator: " ", maxSplits: 1).map(String.init)
            guard rest.count == 2 else { return nil }
            self = .parked(agent: rest[0], identifier: rest[1])
        default: return nil
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// Claims in PostgreSQL, with the limits that hold for all agents together.
//
// The places of a host are the claims on its transfers: they are counted, so an agent that dies gives its places back
// with its claims. A statement sees what was committed when it began, so who counts first takes the host's lock, a lock
// of the transaction: agents that claim from the same host do so one after the other.

//
// A claim reads few rows, however many wait: the most urgent transfer of each lane, and a few more of the lanes that it
// needs. It passes over hosts from which another agent claims at that moment, unless there are no others.

import URLLoadingIO

/// Transfers of one identifier and one host that may begin.
struct ClaimLane: Hashable, Sendable {
    var identifier: String
    var host: String
    /// Of the most urgent transfer.
    var priority: Int64 = 0
    /// Of the most urgent transfer.
    var number: Int64 = 0

    /// Returns the lanes in which the most urgent transfers of each identifier in turn are, as many as are claimed.
    /// Pure.
    ///
    /// The n most urgent transfers of an identifier are in n of its lanes: those whose first transfers are most urgent.
    /// - Parameter lanes: in the order of the identifiers' turns.
    static func chosen(_ count: Int, of lanes: [ClaimLane]) -> [ClaimLane] {
        guard lanes.count > count else { return lanes }
        var ranked: [(round: Int, turn: Int, lane: ClaimLane)] = []
        var (first, turn) = (0, 0)
        while first < lanes.count {
            let end = lanes[first...].firstIndex { $0.identifier != lanes[first].identifier } ?? lanes.count
            let sorted = lanes[first..<end].sorted { ($1.priority, $0.number) < ($0.priority, $1.number) }
            for (round, lane) in sorted.enumerated() { ranked.append((round, turn, lane)) }
            (first, turn) = (end, turn + 1)
        }
        ranked.sort { ($0.round, $0.turn) < ($1.round, $1.turn) }
        // The order of the turns remains.
        return ranked.prefix(count).sorted { ($0.turn, $0.round) < ($1.turn, $1.round) }.map(\.lane)
    }
}

extension PostgresStatements {
    // MARK: Agents

    /// Records that the agent lives, and whether it takes no more work.
    func live() async throws(PostgresFailure) {
        try await connection.run(
            "live",
            """
            INSERT INTO urlloading.agent AS known (name, began, lease, places, draining)
            VALUES ($1, clock_timestamp(), clock_timestamp() + \(lease), $2, false)
            ON CONFLICT (name) DO UPDATE SET lease = excluded.lease
            """, [.text(agent), .init(SchedulePlan.Limits().agent)])
        if isDraining { try await drain() }
    }

    /// Records that the agent takes no more work, and tells the others if they did not know.
    func drain() async throws(PostgresFailure) {
        let changed = try await connection.run(
            "drain", "UPDATE urlloading.agent SET draining = true WHERE name = $1 AND NOT draining", [.text(agent)])
        if changed.changed > 0 { try await tell("work") }
    }

    /// Removes the agent, and with it its right to the transfers of its affinities.
    func depart() async throws(PostgresFailure) {
        try await connection.run(
            "departIdentifiers", "UPDATE urlloading.identifier SET agent = NULL, lease = NULL WHERE agent = $1",
            [.text(agent)])
        try await connection.run("depart", "DELETE FROM urlloading.agent WHERE name = $1", [.text(agent)])
        try await tell("work")
    }

    /// Prolongs the claims of the agent, and its hold on identifiers.
    /// - Returns: the claims that it has, and the identifiers.
    func renew() async throws(PostgresFailure) -> (claims: Set<TransferClaim>, identifiers: Set<String>) {
        try await live()
        let held = try await connection.run(
            "renew",
            """
            UPDATE urlloading.claim SET lease = clock_timestamp() + \(lease) WHERE agent = $1 AND agent <> ''
            RETURNING number, epoch
            """, [.text(agent)])
        let names = try await connection.run(
            "renewIdentifiers",
            "UPDATE urlloading.identifier SET lease = clock_timestamp() + \(lease) WHERE agent = $1 RETURNING name",
            [.text(agent)])
        return (
            Set(held.rows.map { TransferClaim(number: $0.integer(0), epoch: $0.integer(1)) }),
            Set(names.rows.map { $0.text(0) })
        )
    }

    /// What becomes of a claim's row when its agent gives it up. One that was claimed by name may wait still.
    private static let free = "agent = NULL, lease = NULL, ready = due IS NULL AND NOT parked"

    /// Makes transfers ready whose time has come, and those of agents that have not renewed their claims; forgets what
    /// says nothing any more of agents, hosts and affinities.
    func tidy() async throws(PostgresFailure) {
        var whole = DueLook()
        try await promote(1_000, &whole)
        if endsForeignClaims {
            let freed = try await connection.run(
                "free",
                """
                WITH chosen AS (SELECT number FROM urlloading.claim
                WHERE agent IS NOT NULL AND lease < statement_timestamp() FOR UPDATE SKIP LOCKED)
                UPDATE urlloading.claim SET \(Self.free) FROM chosen WHERE claim.number = chosen.number
                """)
            if freed.changed > 0 { try await tell("work") }
        }
        // Rows that another transaction has are left for the next time: waiting for several could deadlock. An agent
        // looks after its own affinities, and those of agents that have been forgotten: all agents do this often.
        try await connection.run(
            "forgetOld",
            """
            WITH oldAgents AS (SELECT name FROM urlloading.agent
            WHERE lease < statement_timestamp() - interval '1 hour' FOR UPDATE SKIP LOCKED),
            agents AS (DELETE FROM urlloading.agent AS a USING oldAgents WHERE a.name = oldAgents.name),
            oldHosts AS (SELECT name FROM urlloading.host WHERE places IS NULL AND rate IS NULL
            AND coalesce(greatest(paused, next), '-infinity') < statement_timestamp() - interval '1 minute'
            FOR UPDATE SKIP LOCKED),
            hosts AS (DELETE FROM urlloading.host AS h USING oldHosts WHERE h.name = oldHosts.name),
            old AS (SELECT identifier, name FROM urlloading.affinity AS a
            WHERE (a.agent = $1 OR a.agent NOT IN (SELECT name FROM urlloading.agent)) AND NOT EXISTS
            (SELECT FROM urlloading.claim AS c WHERE c.identifier = a.identifier AND c.affinity = a.name)
            LIMIT 1000 FOR UPDATE SKIP LOCKED)
            DELETE FROM urlloading.affinity AS a USING old WHERE a.identifier = old.identifier AND a.name = old.name
            """, [.text(agent)])
    }

    /// The looks of an agent for transfers whose time has come.
    struct DueLook: Sendable {
        /// Where the next one begins, in microseconds since 1970 of the database's clock; `nil` for everything.
        var since: Int64?
        /// Whether the last one has left some.
        var leavesMore = false
    }

    /// How far the times of transfers may lie before the last look, in microseconds: they are seen when their change is
    /// committed.
    private static let lateness: Int64 = 2_000_000

    /// Makes transfers ready whose time has come, the first of them.
    ///
    /// The index has entries of all that have waited since the last vacuum, and of more while a transaction elsewhere
    /// is held open, so a look does not begin at the earliest one.
    /// - Parameters:
    ///   - most: how many. An agent that claims makes few ready: it waits for that, and others for its locks.
    ///   - look: where the look begins, and then where the next one may.
    /// - Returns: whether there were some.
    @discardableResult
    private func promote(_ most: Int, _ look: inout DueLook) async throws(PostgresFailure) -> Bool {
        let promoted = try await connection.run(
            "promote",
            """
            WITH chosen AS (SELECT number, due FROM urlloading.claim
            WHERE due >= coalesce(timestamptz 'epoch' + $1::bigint * interval '1 microsecond', '-infinity')
            AND due <= statement_timestamp() AND agent IS NULL ORDER BY due LIMIT $2::integer FOR UPDATE SKIP LOCKED),
            promoted AS (UPDATE urlloading.claim SET ready = true, due = NULL FROM chosen
            WHERE claim.number = chosen.number RETURNING claim.number)
            SELECT (SELECT count(*) FROM promoted), count(*), (extract(epoch FROM max(due)) * 1e6)::bigint,
            (extract(epoch FROM statement_timestamp()) * 1e6)::bigint FROM chosen
            """, [.init(look.since), .init(most)])
        guard let row = promoted.rows.first else { return false }
        look.leavesMore = row.integer(1) == most
        look.since = row.integer(look.leavesMore ? 2 : 3) - Self.lateness
        return row.integer(0) > 0
    }

    /// Lets no transfer of a host begin for some time.
    func pause(_ host: String, for nanoseconds: Int64) async throws(PostgresFailure) {
        try await connection.run(
            "pause",
            """
            INSERT INTO urlloading.host AS known (name, paused)
            VALUES ($1, clock_timestamp() + $2::bigint * interval '1 microsecond')
            ON CONFLICT (name) DO UPDATE SET paused = greatest(known.paused, excluded.paused)
            """, [.text(host), .init(max(0, nanoseconds) / 1_000)])
    }

    // MARK: Claims

    /// Claims transfers.
    /// - Parameters:
    ///   - promotes: whether transfers whose time has come are made ready first. Otherwise that is done only if the
    ///     last look has left some, or none is ready.
    ///   - look: the look for them. If none is ready, it goes on where it has left some, or begins again at the
    ///     earliest one.
    func claim(
        _ request: ClaimRequest, promotes: Bool, _ look: inout DueLook
    ) async throws(PostgresFailure) -> ClaimedTransfers {
        switch request {
        case .ready(let count, let room, let last, let takesDiscretionary):
            // More than are claimed: what is ready grows, so that priorities and identifiers have their turn.
            let most = max(32, 4 * count)
            let promotesFirst = promotes || look.leavesMore
            let looksAtAll = promotesFirst && look.since == nil
            if promotesFirst { try await promote(most, &look) }
            var (found, begun) = (ClaimedTransfers(), Int64?.none)
            let choice = Choice(count: count, room: room, takesDiscretionary: takesDiscretionary)
            found.transfers = try await claim(choice, after: last, &begun)
            // Those of hosts that take none now may come first. Others are reached by more at a time, and beyond a
            // limit by the next claim.
            var isDone = looksAtAll && !look.leavesMore
            if !isDone, !look.leavesMore { look.since = nil }
            var batch = most
            while found.transfers.isEmpty, !isDone {
                guard try await promote(batch, &look) else { break }
                found.transfers = try await claim(choice, after: last, &begun)
                batch *= 4
                isDone = !look.leavesMore || batch > Self.largestBatch
            }
            if found.transfers.isEmpty { found.next = try await next(since: begun) }
            found.last = found.transfers.last?.identifier
            found.transfers.sort { $0.claim.number < $1.claim.number }
            return found
        case .one(let id): return ClaimedTransfers(try await claim(id: id))
        }
    }

    /// The most transfers that a claim makes ready at once.
    private static let largestBatch = 1_000

    /// The nanoseconds until a transfer or a host has waited until its time; `nil` if none waits.
    ///
    /// The time of a host may have come after it was found to wait, and before this is asked: 0 is returned then.
    /// - Parameter begun: when the hosts were looked at, in microseconds since 1970 of the database's clock.
    private func next(since begun: Int64?) async throws(PostgresFailure) -> Int64? {
        let found = try await connection.run(
            "next",
            """
            SELECT (extract(epoch FROM least((SELECT min(due) FROM urlloading.claim WHERE agent IS NULL),
            (SELECT min(greatest(paused, next)) FROM urlloading.host
            WHERE greatest(paused, next) > coalesce(timestamptz 'epoch' + $1::bigint * interval '1 microsecond',
            statement_timestamp()))) - clock_timestamp()) * 1e9)::bigint
            """, [.init(begun)])
        return found.rows.first.flatMap { $0.isNull(0) ? nil : max(0, $0.integer(0)) }
    }

    private struct Choice {
        let count: Int
        let room: ClaimRequest.Room
        let takesDiscretionary: Bool
    }

    private enum Position {
        case start
        case after(identifier: String)
        case from(ClaimLane)
    }

    /// The lanes that are looked at at once. A priority is compared within as many hosts of an identifier.
    private static let laneCount = 256
    /// The identifiers of which one claim takes transfers: each has all its lanes looked at, and those that remain have
    /// their turn with the next claim.
    private static let identifierCount = 8

    /// Claims transfers of the identifiers after one, which have their turn, or otherwise of any.
    private func claim(_ choice: Choice, after last: String?, _ begun: inout Int64?) async throws(PostgresFailure)
        -> [JournaledTransfer]
    {
        if let last {
            let found = try await claim(choice, .after(identifier: last), &begun)
            if !found.isEmpty { return found }
        }
        return try await claim(choice, .start, &begun)
    }

    /// Claims transfers of the first lanes after a position that have some.
    /// - Parameter begun: the moment of the first look at hosts, which is set if it is `nil`.
    private func claim(_ choice: Choice, _ start: Position, _ begun: inout Int64?) async throws(PostgresFailure)
        -> [JournaledTransfer]
    {
        var position = start
        let nameCount = min(choice.count, Self.identifierCount)
        while true {
            let found = try await lanes(position, nameCount)
            begun = begun ?? found.moment
            var left = found.open.filter(choice.room.allows)
            // After the last identifiers comes the turn of the first ones, in the same claim: otherwise the last ones
            // would get all that is claimed in it.
            let names = Set(left.map(\.identifier))
            if case .after = position, found.last == nil, !names.isEmpty, names.count < nameCount {
                let first = try await lanes(.start, nameCount - names.count).open
                left += first.filter { !names.contains($0.identifier) && choice.room.allows($0) }
            }
            var (busy, count) = ([ClaimLane](), choice.count)
            // Those of the first lanes may belong to other agents, or have been claimed meanwhile.
            while !left.isEmpty {
                let chosen = ClaimLane.chosen(count, of: left)
                let attempt = try await claim(choice, chosen, waits: false)
                if !attempt.transfers.isEmpty { return attempt.transfers }
                busy += attempt.busy
                let tried = Set(chosen)
                left.removeAll { tried.contains($0) }
                count = max(count, min(count * 2, Self.laneCount))
            }
            // Agents that claim there now may leave some.
            if !busy.isEmpty {
                let claimed = try await claim(choice, busy, waits: true).transfers
                if !claimed.isEmpty { return claimed }
            }
            guard let last = found.last else { return [] }
            position = .from(last)
        }
    }

    /// Returns lanes with transfers that are ready, in order, whose hosts have places as far as can be seen without a
    /// lock.
    /// - Parameter count: the number of identifiers with such lanes that are enough.
    /// - Returns: the lanes, the last one that was looked at if there may be more after it, and the moment of the look.
    private func lanes(_ position: Position, _ count: Int) async throws(PostgresFailure)
        -> (open: [ClaimLane], last: ClaimLane?, moment: Int64?)
    {
        let (name, condition, values): (String, String, [PostgresValue]) =
            switch position {
            case .start: ("lanes", "true", [])
            case .after(let identifier): ("lanesAfter", "c.identifier > $3", [.text(identifier)])
            case .from(let lane):
                ("lanesFrom", "(c.identifier, c.host) > ($3, $4)", [.text(lane.identifier), .text(lane.host)])
            }
        // A host is looked up by its name, not compared with all others: the planner does not know how many there are.
        // OFFSET 0: otherwise it would count the claims of a host once for each use of `is_open`.
        func first(_ condition: String) -> String {
            """
            SELECT one.*, one.host = '' OR (coalesce(h.paused <= statement_timestamp(), true)
            AND coalesce(h.next <= statement_timestamp(), true)
            AND (SELECT count(*) FROM urlloading.claim AS busy WHERE busy.agent IS NOT NULL AND busy.host = one.host)
            < coalesce(h.places, (SELECT places FROM urlloading.host WHERE name = '*'), $1::integer)) AS is_open
            FROM (SELECT c.identifier, c.host, c.priority, c.number FROM urlloading.claim AS c
            WHERE c.ready AND c.agent IS NULL AND \(condition)
            ORDER BY c.identifier, c.host, c.priority DESC, c.number LIMIT 1) AS one
            LEFT JOIN LATERAL (SELECT * FROM urlloading.host WHERE name = one.host LIMIT 1) AS h ON true OFFSET 0
            """
        }
        let found = try await connection.run(
            name,
            """
            WITH RECURSIVE lane AS ((SELECT one.*, 1 AS place, is_open::integer AS turn,
            CASE WHEN is_open THEN identifier END AS named FROM (\(first(condition))) AS one)
            UNION ALL SELECT one.*, lane.place + 1,
            lane.turn + (one.is_open AND one.identifier IS DISTINCT FROM lane.named)::integer,
            CASE WHEN one.is_open THEN one.identifier ELSE lane.named END FROM lane CROSS JOIN LATERAL
            (\(first("(c.identifier, c.host) > (lane.identifier, lane.host)"))) AS one
            WHERE lane.place < \(Self.laneCount) AND lane.turn <= $2)
            SELECT identifier, host, priority, number, is_open, turn,
            (extract(epoch FROM statement_timestamp()) * 1e6)::bigint FROM lane ORDER BY place
            """, [.init(places), .init(count)] + values)
        let lanes = found.rows.map {
            (
                lane: ClaimLane(
                    identifier: $0.text(0), host: $0.text(1), priority: $0.integer(2), number: $0.integer(3)),
                isOpen: $0.flag(4), turn: $0.integer(5)
            )
        }
        let isCut = lanes.count == Self.laneCount || lanes.last.map { $0.turn > count } == true
        return (lanes.filter(\.isOpen).map(\.lane), isCut ? lanes.last?.lane : nil, found.rows.first?.integer(6))
    }

    /// Claims transfers of lanes.
    /// - Parameter waits: whether to wait for agents that claim from the same hosts.
    /// - Returns: the transfers, and the lanes from whose hosts another agent claims at the moment.
    private func claim(_ choice: Choice, _ lanes: [ClaimLane], waits: Bool) async throws(PostgresFailure)
        -> (transfers: [JournaledTransfer], busy: [ClaimLane])
    {
        try await connection.run("BEGIN")
        do throws(PostgresFailure) {
            let locked = waits ? try await lockHosts(of: lanes) : try await tryHosts(of: lanes)
            let claimed = locked.isEmpty ? [] : try await claimLocked(choice, locked)
            try await connection.run("COMMIT")
            let own = Set(locked)
            return (claimed, lanes.filter { !own.contains($0) })
        } catch {
            if error.kind == .refused { try await connection.run("ROLLBACK") }
            if error.isConflict, !waits { return ([], lanes) }
            throw error
        }
    }

    /// Locks the hosts of lanes until the end of the transaction, in the same order for all agents, so that no two wait
    /// for each other.
    private func lockHosts(of lanes: [ClaimLane]) async throws(PostgresFailure) -> [ClaimLane] {
        try await connection.run(
            "lockHosts",
            """
            SELECT pg_advisory_xact_lock(key) FROM (
            SELECT DISTINCT hashtextextended('urlloading ' || name, 0) AS key
            FROM unnest($1::text[]) AS name WHERE name <> '' ORDER BY key OFFSET 0) AS hosts
            """, [.init(lanes.map(\.host))])
        return lanes
    }

    /// Locks the hosts of lanes from which no other agent claims, until the end of the transaction.
    /// - Returns: the lanes of these hosts.
    private func tryHosts(of lanes: [ClaimLane]) async throws(PostgresFailure) -> [ClaimLane] {
        let found = try await connection.run(
            "tryHosts",
            """
            SELECT name FROM (SELECT DISTINCT name FROM unnest($1::text[]) AS name OFFSET 0) AS hosts
            WHERE name = '' OR pg_try_advisory_xact_lock(hashtextextended('urlloading ' || name, 0))
            """, [.init(lanes.map(\.host))])
        let locked = Set(found.rows.map { $0.text(0) })
        return lanes.filter { locked.contains($0.host) }
    }

    /// Whether an agent `a` lives, and takes work.
    private static let serves = "a.lease > statement_timestamp() AND NOT a.draining"

    /// Claims the most urgent transfers of each identifier in turn, as many as there are places. The hosts are locked.
    ///
    /// A host with a rate has a moment `next` from which on a transfer may begin; each that begins moves it on. What
    /// was not used in the last second may be used at once.
    ///
    /// Of an identifier no more than its share of the count is looked at: the agent claims again while it has places.
    /// The `CASE` keeps the planner from looking for the chosen rows in the index of all that are ready, which it
    /// expects to be few.
    private func claimLocked(_ choice: Choice, _ lanes: [ClaimLane]) async throws(PostgresFailure)
        -> [JournaledTransfer]
    {
        let room = choice.room
        let places = lanes.map { room.hosts[$0.host, default: room.ofHost] }
        let names = max(1, Set(lanes.map(\.identifier)).count)
        let share = choice.count / names + (choice.count % names).signum()
        let ofIdentifier = lanes.map { min(share, room.identifiers[$0.identifier, default: room.ofIdentifier]) }
        let claimed = try await connection.run(
            "claim",
            """
            WITH lane AS MATERIALIZED (SELECT l.*, pace.rate, pace.base, (CASE WHEN l.host = '' THEN l.of_host
            WHEN pace.paused > statement_timestamp() THEN 0
            ELSE least(l.of_host, pace.places
            - (SELECT count(*) FROM urlloading.claim AS b WHERE b.agent IS NOT NULL AND b.host = l.host),
            floor(extract(epoch FROM statement_timestamp() - pace.base) * pace.rate) + 1) END)::bigint AS places
            FROM unnest($3::text[], $4::text[], $5::integer[], $6::integer[])
            WITH ORDINALITY AS l (identifier, host, of_identifier, of_host, turn)
            LEFT JOIN LATERAL (SELECT * FROM urlloading.host WHERE name = l.host LIMIT 1) AS h ON true
            LEFT JOIN LATERAL (SELECT * FROM urlloading.host WHERE name = '*' LIMIT 1) AS usual ON true
            CROSS JOIN LATERAL (SELECT coalesce(h.rate, usual.rate) AS rate OFFSET 0) AS own
            CROSS JOIN LATERAL (SELECT h.paused, coalesce(h.places, usual.places, $8::integer) AS places, own.rate,
            greatest(coalesce(h.next, statement_timestamp() - interval '1 day'), statement_timestamp()
            - (greatest(1, floor(own.rate)) - 1) / own.rate * interval '1 s') AS base OFFSET 0) AS pace),
            candidate AS (SELECT w.number, w.affinity, l.identifier, l.host, l.turn, l.of_identifier, l.places, l.rate,
            l.base, row_number() OVER (PARTITION BY l.identifier ORDER BY w.priority DESC, w.number) AS round
            FROM lane AS l CROSS JOIN LATERAL (
            SELECT c.number, c.priority, CASE WHEN c.reserved = $1 THEN NULL ELSE c.affinity END AS affinity
            FROM urlloading.claim AS c WHERE c.ready AND c.agent IS NULL AND c.identifier = l.identifier AND c.host = l.host
            AND (NOT c.discretionary OR $7) AND (c.reserved IS NULL OR c.reserved = $1 OR NOT EXISTS (
            SELECT FROM urlloading.agent AS a WHERE a.name = c.reserved AND \(Self.serves)))
            AND (c.affinity IS NULL OR c.reserved = $1 OR NOT EXISTS (SELECT FROM urlloading.affinity AS f
            JOIN urlloading.agent AS a ON a.name = f.agent WHERE f.identifier = c.identifier AND f.name = c.affinity
            AND f.agent <> $1 AND \(Self.serves)))
            ORDER BY c.priority DESC, c.number
            LIMIT greatest(0, least(l.places, $2::integer, l.of_identifier))) AS w),
            chosen AS (SELECT *, row_number() OVER (PARTITION BY host ORDER BY round, turn) AS place
            FROM candidate WHERE round <= of_identifier),
            picked AS (SELECT * FROM chosen WHERE place <= places ORDER BY round, turn LIMIT $2),
            mine AS (INSERT INTO urlloading.affinity AS f SELECT DISTINCT identifier, affinity, $1 FROM picked
            WHERE affinity IS NOT NULL ORDER BY identifier, affinity
            ON CONFLICT (identifier, name) DO UPDATE SET agent = excluded.agent
            WHERE f.agent = excluded.agent OR NOT EXISTS (SELECT FROM urlloading.agent AS a
            WHERE a.name = f.agent AND \(Self.serves)) RETURNING identifier, name),
            claim AS (UPDATE urlloading.claim AS c SET agent = $1, lease = clock_timestamp() + \(lease),
            epoch = c.epoch + 1, due = NULL, parked = false, reserved = NULL
            FROM picked WHERE c.number = picked.number AND CASE WHEN c.agent IS NULL THEN c.ready END
            AND (picked.affinity IS NULL OR EXISTS (SELECT FROM mine
            WHERE mine.identifier = picked.identifier AND mine.name = picked.affinity))
            RETURNING c.number, c.epoch, c.host, picked.rate, picked.base, picked.round, picked.turn),
            paced AS (INSERT INTO urlloading.host AS known (name, next)
            SELECT host, base + count(*) / rate * interval '1 s' FROM claim
            WHERE rate IS NOT NULL AND host <> '' GROUP BY host, base, rate ORDER BY host
            ON CONFLICT (name) DO UPDATE SET next = excluded.next)
            SELECT \(Self.columns), transfer.secrets FROM claim JOIN urlloading.transfer USING (number)
            JOIN urlloading.progress USING (number) ORDER BY claim.round, claim.turn
            """,
            [
                .text(agent), .init(choice.count), .init(lanes.map(\.identifier)), .init(lanes.map(\.host)),
                .init(ofIdentifier.map(Int64.init)), .init(places.map(Int64.init)), .init(choice.takesDiscretionary),
                .init(self.places),
            ])
        return claimed.rows.map { Self.transfer($0, from: 0, hasSecrets: true) }
    }

    /// Claims one transfer. If it waits, the row goes on saying until when: the agent may end before it has.
    private func claim(id: String) async throws(PostgresFailure) -> [JournaledTransfer] {
        let claimed = try await connection.run(
            "claimOne",
            """
            WITH chosen AS (SELECT wanted.number FROM urlloading.claim AS wanted
            JOIN urlloading.transfer AS t USING (number)
            WHERE t.id = $2 AND (wanted.agent IS NULL OR ($3 AND wanted.lease < statement_timestamp()))
            AND NOT EXISTS (SELECT FROM urlloading.event WHERE transfer = wanted.number)
            FOR UPDATE OF wanted SKIP LOCKED),
            claim AS (UPDATE urlloading.claim AS c SET agent = $1, lease = clock_timestamp() + \(lease),
            epoch = c.epoch + 1
            FROM chosen WHERE c.number = chosen.number RETURNING c.number, c.epoch)
            SELECT \(Self.columns), transfer.secrets FROM claim JOIN urlloading.transfer USING (number)
            JOIN urlloading.progress USING (number)
            """, [.text(agent), .text(id), .init(endsForeignClaims)])
        return claimed.rows.map { Self.transfer($0, from: 0, hasSecrets: true) }
    }

    /// Makes the transfers of an identifier ready whose challenges wait, for this agent.
    /// - Parameter again: whether also those whose challenges a program of this agent has refused.
    func unpark(_ identifier: String, again: Bool) async throws(PostgresFailure) {
        try await connection.run(
            "unpark",
            """
            UPDATE urlloading.claim SET ready = true, parked = false, reserved = $1
            WHERE parked AND identifier = $2 AND agent IS NULL AND ($3 OR reserved IS DISTINCT FROM $1)
            """, [.text(agent), .text(identifier), .init(again)])
    }

    func release(_ claims: [TransferClaim]) async throws(PostgresFailure) {
        for claim in claims {
            try await connection.run(
                "release",
                """
                UPDATE urlloading.claim SET \(Self.free)
                WHERE \(Self.held)
                """, [.init(claim.number), .init(claim.epoch), .text(agent)])
        }
        try await tell("work")
    }
}

extension ClaimRequest.Room {
    /// Whether the agent has a place for a transfer of a lane.
    fileprivate func allows(_ lane: ClaimLane) -> Bool {
        hosts[lane.host, default: ofHost] > 0 && identifiers[lane.identifier, default: ofIdentifier] > 0
    }
}

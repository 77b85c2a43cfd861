// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoading
import URLLoadingIO

/// What the agents of a shared journal do, for people. Times are nanoseconds of the database's clock.
struct FleetReport: Sendable, Equatable {
    struct Agent: Sendable, Equatable {
        var name: String
        /// The time until its leases end; negative if they have ended.
        var left: Int64
        var isDraining: Bool
        /// The transfers that it works on, of so many places.
        var transfers: Int64
        var places: Int64
        /// The identifiers whose programs are attached to it.
        var programs: Int64
    }
    /// A host none of whose transfers may begin.
    struct Host: Sendable, Equatable {
        var name: String
        var taken: Int64
        var places: Int64
        /// The time until transfers may begin; `nil` if it is not for a pause or a rate.
        var pause: Int64?
    }

    var agents: [Agent] = []
    var hosts: [Host] = []
    /// The number of transfers that may begin, and for which no agent has had a place; ``mostCounted`` and one if there
    /// are more.
    var waiting: Int64 = 0
    /// The one that was accepted first; `nil` also where that cannot be found out soon.
    var oldest: JournaledTransfer?

    /// To count all that wait may take seconds, in which the agent's connection does nothing else.
    static let mostCounted: Int64 = 10_000

    /// The report as lines of text.
    /// - Parameters:
    ///   - own: the name of the agent that is asked.
    ///   - now: the nanoseconds since 1970.
    func text(of own: String, now: Int64) -> String {
        (agents.map { Self.line($0, own) } + hosts.map(Self.line) + [waitingLine(now)]).joined(separator: "\n")
    }

    private static func seconds(_ nanoseconds: Int64) -> String { "\(max(0, nanoseconds) / 1_000_000_000) s" }

    private static func line(_ agent: Agent, _ own: String) -> String {
        let lease = agent.left > 0 ? "lease \(seconds(agent.left))" : "gone for \(seconds(-agent.left))"
        return
            "agent     \(agent.name)\(agent.name == own ? " (this one)" : "")\(agent.isDraining ? " draining" : "")  "
            + "\(agent.transfers) of \(agent.places) places, \(agent.programs) programs, \(lease)"
    }

    private static func line(_ host: Host) -> String {
        let pause = host.pause.map { ", waits for \(seconds($0))" } ?? ""
        return "host      \(host.name)  \(host.taken) of \(host.places) places\(pause)"
    }

    private func waitingLine(_ now: Int64) -> String {
        let waiting = waiting > Self.mostCounted ? "more than \(Self.mostCounted)" : "\(waiting)"
        guard let oldest, let transfer = Transfer(oldest) else { return "waiting   \(waiting)" }
        let host = URL(string: transfer.order.shownURL)?.host() ?? ""
        return "waiting   \(waiting), the oldest for \(Self.seconds(now.saturatingSubtract(transfer.order.created))): "
            + "\(oldest.id.prefix(8)) of \(host)"
    }
}

extension PostgresStatements {
    func fleet() async throws(PostgresFailure) -> FleetReport {
        var report = FleetReport()
        let agents = try await connection.run(
            "fleetAgents",
            """
            SELECT a.name, (extract(epoch FROM a.lease - clock_timestamp()) * 1e9)::bigint, a.draining,
            (SELECT count(*) FROM urlloading.claim AS c WHERE c.agent = a.name), a.places,
            (SELECT count(*) FROM urlloading.identifier AS i WHERE i.agent = a.name)
            FROM urlloading.agent AS a ORDER BY a.name
            """)
        report.agents = agents.rows.map {
            .init(
                name: $0.text(0), left: $0.integer(1), isDraining: $0.flag(2), transfers: $0.integer(3),
                places: $0.integer(4), programs: $0.integer(5))
        }
        let hosts = try await connection.run(
            "fleetHosts",
            """
            WITH busy AS (SELECT host AS name, count(*) AS taken FROM urlloading.claim
            WHERE agent IS NOT NULL AND host <> '' GROUP BY host),
            known AS (SELECT name FROM busy UNION SELECT name FROM urlloading.host WHERE name <> '*'),
            state AS (SELECT known.name, coalesce(busy.taken, 0) AS taken,
            coalesce(h.places, usual.places, $1::integer) AS places, greatest(h.paused, h.next) AS until
            FROM known LEFT JOIN busy ON busy.name = known.name
            LEFT JOIN urlloading.host AS h ON h.name = known.name
            LEFT JOIN urlloading.host AS usual ON usual.name = '*')
            SELECT name, taken, places, (extract(epoch FROM until - clock_timestamp()) * 1e9)::bigint FROM state
            WHERE taken >= places OR until > clock_timestamp() ORDER BY name LIMIT 100
            """, [.init(places)])
        report.hosts = hosts.rows.map { row in
            let pause = row.isNull(3) || row.integer(3) <= 0 ? nil : row.integer(3)
            return .init(name: row.text(0), taken: row.integer(1), places: row.integer(2), pause: pause)
        }
        let waiting = try await connection.run(
            "fleetWaiting",
            """
            SELECT count(*), min(number) FROM
            (SELECT number FROM urlloading.claim WHERE ready AND agent IS NULL LIMIT $1 + 1) AS counted
            """, [.init(FleetReport.mostCounted)])
        report.waiting = waiting.rows.first?.integer(0) ?? 0
        var first = waiting.rows.first.flatMap { $0.isNull(1) ? nil : $0.integer(1) }
        if report.waiting > FleetReport.mostCounted { first = try await oldestOfMany() }
        guard let number = first else { return report }
        let oldest = try await connection.run(
            "fleetOldest",
            """
            SELECT \(Self.columns) FROM urlloading.claim JOIN urlloading.transfer USING (number)
            JOIN urlloading.progress USING (number) WHERE claim.number = $1
            """, [.init(number)])
        report.oldest = oldest.rows.first.map { Self.transfer($0, from: 0) }
        return report
    }

    /// The piles of one identifier, one host and one priority that are looked at.
    private static let pileCount: Int64 = 1_000

    /// Finds the first of many transfers that wait, without reading all of them: the index has them in piles of one
    /// identifier, host and priority, the first one on top. No index has all of them in their order.
    /// - Returns: its number; `nil` if there are too many piles.
    private func oldestOfMany() async throws(PostgresFailure) -> Int64? {
        func top(_ condition: String, _ turn: Int) -> String {
            """
            (SELECT identifier, host, priority, number, \(turn) AS turn FROM urlloading.claim
            WHERE ready AND agent IS NULL AND \(condition)
            ORDER BY identifier, host, priority DESC, number LIMIT 1)
            """
        }
        let found = try await connection.run(
            "fleetPiles",
            """
            WITH RECURSIVE pile AS (SELECT first.*, 1 AS place FROM \(top("true", 0)) AS first
            UNION ALL SELECT later.*, pile.place + 1 FROM pile CROSS JOIN LATERAL (
            \(top("identifier = pile.identifier AND host = pile.host AND priority < pile.priority", 0))
            UNION ALL \(top("(identifier, host) > (pile.identifier, pile.host)", 1))
            ORDER BY turn LIMIT 1) AS later WHERE pile.place < \(Self.pileCount))
            SELECT min(number), count(*) FROM pile
            """)
        return found.rows.first.flatMap { row in
            row.isNull(0) || row.integer(1) >= Self.pileCount ? nil : row.integer(0)
        }
    }
}

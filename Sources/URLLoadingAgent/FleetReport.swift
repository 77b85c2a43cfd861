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
    /// The number of transfers that may begin, and for which no agent has had a place.
    var waiting: Int64 = 0
    /// The one that was accepted first.
    var oldest: JournaledTransfer?

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
            "fleetWaiting", "SELECT count(*) FROM urlloading.claim WHERE ready AND agent IS NULL")
        report.waiting = waiting.rows.first?.integer(0) ?? 0
        let oldest = try await connection.run(
            "fleetOldest",
            """
            SELECT \(Self.columns) FROM urlloading.claim JOIN urlloading.transfer USING (number)
            JOIN urlloading.progress USING (number) WHERE ready AND agent IS NULL ORDER BY claim.number LIMIT 1
            """)
        report.oldest = oldest.rows.first.map { Self.transfer($0, from: 0) }
        return report
    }
}

// SPDX-License-Identifier: Apache-2.0

// The hosts of an HSTS store, under its lock, and their file format; times as in `CookieSchema`.

import FoundationEssentials
import Synchronization
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

    static func prepare(_ database: Database) throws(DatabaseFailure) {
        // Removed rows are overwritten, so that the visited hosts stay secret.
        try database.execute("PRAGMA secure_delete = ON")
    }

    static func rows(_ database: Database) throws(DatabaseFailure) -> [HSTSHost] {
        let select = try database.statement("SELECT name, subdomains, expires, creation FROM host")
        var rows: [HSTSHost] = []
        try select.each { () throws(DatabaseFailure) in
            rows.append(
                HSTSHost(
                    checked: select.text(0), select.integer(1) != 0,
                    Date(timeIntervalSinceReferenceDate: select.real(2)),
                    creation: Date(timeIntervalSinceReferenceDate: select.real(3))))
            return true
        }
        return rows
    }

    static func hasExpired(_ rows: [HSTSHost]) -> Bool {
        let now = Date.now
        return rows.contains { $0.expires <= now }
    }

    static func removeExpired(_ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM host WHERE expires < ?").run(.real(Date.now.timeIntervalSinceReferenceDate))
    }

    static func write(_ host: HSTSHost, _ database: Database) throws(DatabaseFailure) {
        try database.statement("INSERT OR REPLACE INTO host VALUES (?, ?, ?, ?)").run(
            .text(host.name), .init(host.includesSubdomains), .real(host.expires.timeIntervalSinceReferenceDate),
            .real(host.creationDate.timeIntervalSinceReferenceDate))
    }

    static func remove(_ name: String, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM host WHERE name = ?").run(.text(name))
    }

    static func clear(since moment: Double, _ database: Database) throws(DatabaseFailure) {
        try database.statement("DELETE FROM host WHERE creation >= ?").run(.real(moment))
    }
}

final class HSTSMemory: StateMemory {
    typealias Schema = HSTSSchema

    private struct State: Sendable {
        var table = HSTSTable()
        var pending = Pending()
    }
    private let state = Lock(State())
    private let hasFile: Bool
    private let held = Atomic<Int>(0)

    init(hasFile: Bool) { self.hasFile = hasFile }

    var count: Int { held.load(ordering: .relaxed) }
    var all: [HSTSHost] { state.withLock { Array($0.table.hosts.values) }.sorted { $0.name < $1.name } }
    var hasPending: Bool { state.withLock { !$0.pending.isEmpty } }

    func requiresTLS(_ name: String, now: Date) -> Bool {
        count > 0 && state.withLock { $0.table.requiresTLS(name, now: now) }
    }

    func set(_ host: HSTSHost, now: Date) {
        guard host.expires > now else { return remove(host.name) }
        change { state in
            // Every response repeats the policy: the file is not written for each small extension.
            let known = state.table.hosts[host.name]
            let removed = state.table.set(host)
            guard hasFile else { return }
            if let removed { state.pending.set(nil, for: removed.name) }
            if known.map({ $0.isAsGood(as: host, now) }) != true { state.pending.set(host, for: host.name) }
        }
    }

    func remove(_ name: String) {
        change { state in
            guard state.table.remove(name) != nil, hasFile else { return }
            state.pending.set(nil, for: name)
        }
    }

    func removeAll(since moment: Date) {
        change { state in
            let before = state.table.hosts
            _ = state.table.remove(since: moment)
            guard hasFile else { return }
            for name in before.keys where state.table.hosts[name] == nil { state.pending.set(nil, for: name) }
            state.pending.clear(since: moment.timeIntervalSinceReferenceDate)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            held.store(state.table.hosts.count, ordering: .relaxed)
        }
    }

    // MARK: The file

    func takePending() -> Pending { state.withLock { $0.pending.take() } }
    func restore(_ pending: Pending) { state.withLock { $0.pending.restore(pending) } }
    func rememberAll() {
        change { state in for host in state.table.hosts.values { state.pending.set(host, for: host.name) } }
    }

    func replace(with rows: [HSTSHost]) {
        let now = Date.now
        change { state in
            var table = HSTSTable()
            for host in rows where host.expires > now {
                if let moment = state.pending.clearedSince, host.creationDate.timeIntervalSinceReferenceDate >= moment {
                    continue
                }
                _ = table.set(host)
            }
            for (name, host) in state.pending.rows {
                if let host { _ = table.set(host) } else { _ = table.remove(name) }
            }
            state.table = table
        }
    }
}

extension HSTSHost {
    /// Whether the file's entry is good enough: equal, and expiring within a hundredth of the remaining time.
    fileprivate func isAsGood(as other: HSTSHost, _ now: Date) -> Bool {
        guard includesSubdomains == other.includesSubdomains, other.expires >= expires else { return false }
        return other.expires.timeIntervalSince(expires) < other.expires.timeIntervalSince(now) / 100
    }
}

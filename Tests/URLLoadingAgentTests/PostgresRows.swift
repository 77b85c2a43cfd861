// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Agents that share one journal in PostgreSQL.
@Suite(.postgres, .enabled(if: PostgresServer.isHere, PostgresServer.isMissing), .timeLimit(.minutes(4)))
struct PostgresRows {
    private static func database() async throws -> String {
        try await #require(PostgresServer.current).database()
    }

    private static func close(_ journals: PostgresJournal...) async throws {
        for journal in journals { try await JournalRows.Place.close(journal) }
    }

    // MARK: Claims

    @Test("Two agents claim disjoint sets, together all of them, the most urgent first")
    func disjoint() async throws {
        let address = try await Self.database()
        let one = try await PostgresJournal.open(address) { _ in }
        let other = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], one)
        for number in 0..<200 {
            var transfer = JournalRows.transfer("t\(number)")
            transfer.terms.priority = number == 150 ? 99 : 25
            try await one.write([.accept(transfer)], mayFail: true)
        }
        #expect(try await other.claim(.ready(atMost: 1)).transfers.map(\.id) == ["t150"])
        @Sendable func claimAll(_ journal: PostgresJournal) async throws -> [String] {
            var found: [String] = []
            while case let rows = try await journal.claim(.ready(atMost: 7)).transfers, !rows.isEmpty {
                found += rows.map(\.id)
            }
            return found
        }
        async let first = claimAll(one)
        async let second = claimAll(other)
        let claimed = try await (first, second)
        #expect(Set(claimed.0).isDisjoint(with: claimed.1) && claimed.0.count + claimed.1.count == 199)
        try await Self.close(one, other)
    }

    @Test("An agent claims nothing for hosts and identifiers that are full, and nothing before its time")
    func choices() async throws {
        let journal = try await PostgresJournal.open(try await Self.database()) { _ in }
        try await JournalRows.identify(["a", "b"], journal)
        let terms: [(String, JournaledTerms)] = [
            ("full", JournaledTerms(host: "full.example")), ("free", JournaledTerms(host: "free.example")),
            ("later", JournaledTerms(host: "free.example", standing: .later(3_600_000_000_000))),
            ("leisure", JournaledTerms(host: "free.example", isDiscretionary: true)),
            ("paused", JournaledTerms(host: "free.example", standing: .none(isParked: false))),
        ]
        for (name, terms) in terms {
            var transfer = JournalRows.transfer(name)
            transfer.terms = terms
            try await journal.write([.accept(transfer)], mayFail: true)
        }
        try await journal.write([.accept(JournalRows.transfer("other", of: "b"))], mayFail: true)
        let room = ClaimRequest.Room(hosts: ["full.example": 0], identifiers: ["b": 0])
        #expect(
            try await journal.claim(.ready(atMost: 9, room: room, takesDiscretionary: false)).transfers.map(\.id)
                == ["free"])
        let next = try #require(
            try await journal.claim(.ready(atMost: 9, room: room, takesDiscretionary: false)).next)
        #expect(next > 3_000_000_000_000 && next <= 3_600_000_000_000)
        let rest = try await journal.claim(.ready(atMost: 9)).transfers
        #expect(rest.map(\.id) == ["full", "leisure", "other"])
        // A transfer that waits is claimed by name.
        #expect(try await journal.claim(.one(id: "paused")).transfers.map(\.id) == ["paused"])
        try await Self.close(journal)
    }

    /// The planner, whose statistics are older than what is ready, must not take an index for small.
    @Test("A claim, and a write about one, read a few entries of the indexes, however many transfers are ready")
    func reads() async throws {
        let (journal, admin, _) = try await Self.filled()
        for _ in 0..<2 {
            let claimed = try await journal.claim(.ready(atMost: 8)).transfers.map(\.claim)
            #expect(claimed.count == 8)
            for claim in claimed {
                try await journal.write(
                    [.update(claim, state: [4], progress: [], standing: .working)], mayFail: false)
            }
        }
        let read = try await Self.entriesRead(by: journal, admin)
        #expect(read > 0 && read < 2_000, "\(read) entries")
    }

    @Test("What other agents have claimed from other hosts costs a claim nothing, though its plan is older")
    func readsBesideOthers() async throws {
        let (journal, admin, _) = try await Self.filled()
        #expect(try await journal.claim(.ready(atMost: 8)).transfers.count == 8)
        try await admin.run(
            """
            UPDATE urlloading.claim SET agent = 'other', lease = clock_timestamp() + interval '1 hour'
            WHERE agent IS NULL AND host NOT IN ('host0', 'host1', 'host2')
            """)
        for _ in 0..<3 { #expect(try await journal.claim(.ready(atMost: 4)).transfers.count == 4) }
        let read = try await Self.entriesRead(by: journal, admin, of: "claim_of_agent")
        #expect(read < 100, "\(read) entries")
    }

    @Test("A look for transfers whose time has come passes over those that were made ready long before")
    func readsOfPromotions() async throws {
        let (journal, admin, address) = try await Self.filled(waiting: true)
        let holder = try await PostgresConnection.open(address)
        try await holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM urlloading.claim LIMIT 1")
        for _ in 0..<20 {
            #expect(try await journal.claim(.ready(atMost: 1)).transfers.count == 1)
            try await Task.sleep(for: .milliseconds(260))
        }
        let read = try await Self.entriesRead(by: journal, admin)
        try await holder.run("COMMIT")
        #expect(read > 0 && read < 40_000, "\(read) entries")
    }

    /// Makes 5,000 transfers, which are ready, and the planner does not know it.
    /// - Parameter waiting: whether they wait until a time instead, which was a minute ago.
    private static func filled(
        waiting: Bool = false
    ) async throws -> (PostgresJournal, PostgresConnection, address: String) {
        let address = try await database()
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        let admin = try await PostgresConnection.open(address)
        for text in [
            """
            INSERT INTO urlloading.transfer (id, identifier, task)
            SELECT 't' || n, 'a', '' FROM generate_series(1, 5000) AS n
            """,
            "INSERT INTO urlloading.progress SELECT number, '', '' FROM urlloading.transfer",
            """
            INSERT INTO urlloading.claim (number, identifier, host, priority, discretionary, ready, due)
            SELECT number, identifier, 'host' || number % 50, 100, false, false,
            CASE WHEN \(waiting) THEN clock_timestamp() - interval '1 minute' END FROM urlloading.transfer
            """,
            "ANALYZE", "UPDATE urlloading.claim SET ready = true WHERE due IS NULL",
        ] {
            try await admin.run(text)
        }
        return (journal, admin, address)
    }

    /// Closes a journal. Returns how many entries of the indexes of claims were read: what a session has read is
    /// counted when it ends.
    private static func entriesRead(
        by journal: PostgresJournal, _ admin: PostgresConnection, of index: String = "claim_%"
    ) async throws -> Int64 {
        try await close(journal)
        for _ in 0..<200 {
            try await Task.sleep(for: .milliseconds(50))
            let found = try await admin.run(
                """
                SELECT coalesce(sum(idx_tup_read), 0)::bigint,
                coalesce(sum(idx_tup_read) FILTER (WHERE indexrelname LIKE '\(index)'), 0)::bigint
                FROM pg_stat_user_indexes WHERE schemaname = 'urlloading' AND indexrelname LIKE 'claim_%'
                """)
            if found.rows[0].integer(0) > 0 { return found.rows[0].integer(1) }
        }
        return 0
    }

    @Test("A wait that is over makes a transfer ready, by the clock of the database")
    func due() async throws {
        let journal = try await PostgresJournal.open(try await Self.database()) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        let wait = JournalChange.update(claim, state: [4], progress: [], standing: .later(50_000_000))
        try await journal.write([wait], mayFail: false)
        var rows: [JournaledTransfer] = []
        while rows.isEmpty { rows = try await journal.claim(.ready(atMost: 1)).transfers }
        #expect(rows.first?.state == [4] && rows.first?.claim.epoch == claim.epoch + 1)
        // The claim had ended with the wait.
        await #expect(throws: JournalFailure.stale) { try await journal.write([.event(claim)], mayFail: false) }
        try await Self.close(journal)
    }

    @Test("The work of an agent that does not renew its claims goes to another one, and the first writes nothing more")
    func deadAgent() async throws {
        let address = try await Self.database()
        let dead = try await PostgresJournal.open(address, leaseTime: 300) { _ in }
        let living = try await PostgresJournal.open(address, settling: 0) { _ in }
        try await JournalRows.identify(["a"], dead)
        let lost = try await JournalRows.accept("t1", dead)
        let kept = try await JournalRows.accept("t2", living)
        var claimed: [JournaledTransfer] = []
        while claimed.isEmpty {
            #expect(try await living.renew([kept]).lost.isEmpty)
            claimed = try await living.claim(.ready(atMost: 5)).transfers
        }
        #expect(claimed.map(\.id) == ["t1"])
        #expect(try await dead.renew([lost]).lost == [lost.number])
        for change in [JournalChange.event(lost), .update(lost, state: [6], progress: [], standing: .ready)] {
            await #expect(throws: JournalFailure.stale) { try await dead.write([change], mayFail: false) }
        }
        #expect(try await living.transfer("t1")?.state == [3])
        try await JournalRows.finish(claimed[0].claim, living)
        try await Self.close(dead, living)
    }

    @Test("An identifier belongs to the agent with its program, until the program leaves or the agent is gone")
    func attachedElsewhere() async throws {
        let address = try await Self.database()
        let one = try await PostgresJournal.open(address) { _ in }
        let other = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], one)
        try await JournalRows.accept("t1", one)
        let again = JournalChange.identifier("a", settings: [1], secrets: [])
        await #expect(throws: JournalFailure.elsewhere) { try await other.write([again], mayFail: true) }
        try await one.write([.leave(identifier: "a")], mayFail: false)
        try await other.write([again], mayFail: true)
        #expect(try await one.identifier("a")?.settings == [1])
        try await Self.close(one, other)
    }

    @Test("Agents tell each other of work and of events")
    func signals() async throws {
        let address = try await Self.database()
        let one = try await PostgresJournal.open(address) { _ in }
        let other = try await PostgresJournal.open(address) { _ in }
        var heard = try #require(other.signals).makeAsyncIterator()
        try await JournalRows.identify(["a b"], one)
        let claim = try await JournalRows.accept("t1", of: "a b", one)
        #expect(await heard.next() == .work)
        try await JournalRows.finish(claim, one)
        #expect(await heard.next() == .event(identifier: "a b"))
        let second = try await JournalRows.accept("t2", of: "a b", one)
        #expect(await heard.next() == .work)
        let parked = JournalChange.update(second, state: [4], progress: [], standing: .none(isParked: true))
        try await one.write([parked], mayFail: false)
        #expect(await heard.next() == .parked(agent: one.agent, identifier: "a b"))
        // The agent with the program makes it ready, for itself.
        #expect(try await other.claim(.ready(atMost: 5)).transfers.isEmpty)
        try await other.unpark("a b", again: false)
        #expect(try await one.claim(.ready(atMost: 5)).transfers.isEmpty)
        #expect(try await other.claim(.ready(atMost: 5)).transfers.map(\.id) == ["t2"])
        try await Self.close(one, other)
    }

    // MARK: Failures

    @Test("An agent whose connection is cut comes back, and what it has queued is written")
    func cutConnection() async throws {
        let address = try await Self.database()
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        let admin = try await PostgresConnection.open(address)
        for round in 0..<3 {
            try await Self.cut(address, admin)
            let state = [UInt8(round)]
            try await journal.write([.update(claim, state: state, progress: [], standing: .working)], mayFail: false)
            #expect(try await journal.transfer("t1")?.state == state)
        }
        #expect(try await journal.renew([claim]).lost.isEmpty)
        try await Self.close(journal)
    }

    @Test("A server that is killed and started again: the agent waits, its claims are as before, nothing is lost")
    func killedServer() async throws {
        let server = try await PostgresServer()
        let journal = try await PostgresJournal.open(try await server.database()) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        await server.end(SIGKILL)
        async let written = journal.write(
            [.update(claim, state: [9], progress: [], standing: .working), .event(claim)], mayFail: false)
        // Questions are refused meanwhile.
        var refusal: JournalFailure?
        while refusal == nil {
            do throws(JournalFailure) { _ = try await journal.transfer("t1") } catch { refusal = error }
        }
        try await server.start()
        _ = try await written
        #expect(try await journal.sequences(of: "a").count == 1)
        #expect(try await journal.transfer("t1")?.state == [9])
        try await Self.close(journal)
        await server.end()
    }

    /// Ends all other connections of a database.
    private static func cut(_ address: String, _ admin: PostgresConnection) async throws {
        try await admin.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                + "AND datname = current_database()")
    }

    @Test("Tables that another agent has migrated while the connection was away are left alone, and the agent ends")
    func migratedMeanwhile() async throws {
        let address = try await Self.database()
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        let rig = AgentRig()
        try rig.start(under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"])
        try await rig.link().close()
        let admin = try await PostgresConnection.open(address)
        try await admin.run("UPDATE urlloading.version SET version = 7")
        try await Self.cut(address, admin)
        let queued: [JournalChange] = [.update(claim, state: [9], progress: [], standing: .working)]
        journal.write(queued, mayFail: false) { _ in }
        var heard = try #require(journal.signals).makeAsyncIterator()
        var signal = await heard.next()
        while signal != .outdated { signal = await heard.next() }
        await #expect {
            try await journal.transfer("t1")
        } throws: {
            "\($0)".contains("version 7")
        }
        #expect(await rig.ended() == 0)
        #expect(rig.logText.contains("version 7"))
        #expect(try await admin.run("SELECT state FROM urlloading.progress").rows.first?.bytes(0) == [3])
        try await Self.close(journal)
    }

    @Test("A database that is read-only for a while: nothing is lost, and the agent comes back by itself")
    func readOnly() async throws {
        let address = try await Self.database()
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        let admin = try await PostgresConnection.open(address)
        let name = try #require(try await admin.run("SELECT current_database()").rows.first).text(0)
        try await admin.run("ALTER DATABASE \(name) SET default_transaction_read_only = on")
        try await Self.cut(address, admin)
        let update = JournalChange.update(claim, state: [9], progress: [], standing: .working)
        async let written = journal.write([update], mayFail: false)
        async let accepted = journal.write([.accept(JournalRows.transfer("t2"))], mayFail: true)
        var refusal: JournalFailure?
        while refusal != .failed("the database is read-only") {
            do throws(JournalFailure) { _ = try await journal.transfer("t1") } catch { refusal = error }
        }
        try await admin.run("ALTER DATABASE \(name) RESET default_transaction_read_only")
        _ = try await written
        #expect(try await accepted.acceptance == .queued)
        #expect(try await journal.transfer("t1")?.state == [9])
        try await Self.close(journal)
    }

    @Test("Tables that are locked for longer than the agent waits: submissions are refused, accepted work is not lost")
    func lockedTables() async throws {
        let address = try await Self.database()
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        let admin = try await PostgresConnection.open(address)
        try await admin.run("BEGIN")
        try await admin.run("LOCK TABLE urlloading.claim IN ACCESS EXCLUSIVE MODE")
        let update = JournalChange.update(claim, state: [9], progress: [], standing: .working)
        async let written = journal.write([update], mayFail: false)
        await #expect {
            try await journal.write([.accept(JournalRows.transfer("t2"))], mayFail: true)
        } throws: {
            "\($0)".contains("lock timeout")
        }
        try await admin.run("COMMIT")
        _ = try await written
        #expect(try await journal.transfer("t1")?.state == [9])
        #expect(try await journal.transfer("t2") == nil)
        #expect(try await journal.renew([claim]).lost.isEmpty)
        try await Self.close(journal)
    }

    @Test("Over TLS the server's certificate is verified, and connections that are cut come back")
    func tls() async throws {
        let authority = try TestCertificateAuthority(commonName: "Database CA")
        let server = try await PostgresServer(passwords: true, tls: authority.issue())
        func roots(_ authority: TestCertificateAuthority, _ name: String) throws -> String {
            let path = "\(server.folder)/\(name).pem"
            try Data(authority.pem).write(to: URL(filePath: path))
            return path
        }
        let address = server.secureAddress("postgres", roots: try roots(authority, "roots"))
        let other = try roots(TestCertificateAuthority(commonName: "Other CA"), "other")
        let failure = await #expect(throws: JournalFailure.self) {
            try await PostgresJournal.open(server.secureAddress("postgres", roots: other)) { _ in }
        }
        #expect("\(failure as Any)".contains("certificate") && !"\(failure as Any)".contains("sesame"))
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        let admin = try await PostgresConnection.open(address)
        let secured = try await admin.run(
            "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename = 'fleet' "
                + "AND a.client_addr IS NOT NULL")
        #expect(secured.rows.first?.flag(0) == true)
        // Longer than a record of TLS, both ways.
        let state = [UInt8](repeating: 7, count: 300_000)
        for _ in 0..<3 {
            try await Self.cut(address, admin)
            let update = JournalChange.update(claim, state: state, progress: [], standing: .working)
            try await journal.write([update], mayFail: false)
            #expect(try await journal.transfer("t1")?.state == state)
        }
        try await Self.close(journal)
        await server.end()
    }

    @Test("Roles with databases of their own see nothing of each other, nor a role of another one's tables")
    func roles() async throws {
        let server = try await PostgresServer()
        let admin = try await PostgresConnection.open(server.address("postgres"))
        for name in ["one", "two"] {
            try await admin.run("CREATE ROLE \(name) LOGIN")
            try await admin.run("CREATE DATABASE \(name) OWNER \(name)")
        }
        try await admin.run("REVOKE CONNECT ON DATABASE one FROM PUBLIC")
        let journals = [
            try await PostgresJournal.open(server.address("one", user: "one")) { _ in },
            try await PostgresJournal.open(server.address("two", user: "two")) { _ in },
        ]
        try await JournalRows.identify(["a"], journals[0])
        _ = try await JournalRows.accept("t1", journals[0])
        #expect(try await journals[1].identifiers().isEmpty)
        #expect(try await journals[1].transfer("t1") == nil)
        for (database, user) in [("one", "two"), ("two", "one")] {
            let failure = await #expect(throws: JournalFailure.self) {
                try await PostgresJournal.open(server.address(database, user: user)) { _ in }
            }
            #expect("\(failure as Any)".contains("permission denied"), "\(failure as Any)")
        }
        try await Self.close(journals[0], journals[1])
        await server.end()
    }

    @Test(
        "While the database is away, new work is refused when the waiting changes are large, and none of them is lost")
    func fullBacklog() async throws {
        let server = try await PostgresServer()
        let journal = try await PostgresJournal.open(try await server.database()) { _ in }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        await server.end(SIGKILL)
        while (try? await journal.transfer("t1")) != nil {}
        let results = Lock<[Result<JournalReceipt, JournalFailure>]>([])
        var large = JournalRows.transfer("")
        large.order = [UInt8](repeating: 1, count: 1 << 20)
        for number in 0..<40 {
            large.id = "large\(number)"
            journal.write([.accept(large)], mayFail: true) { result in results.withLock { $0.append(result) } }
        }
        #expect(journal.isFull)
        let update = JournalChange.update(claim, state: [9], progress: [], standing: .working)
        async let written = journal.write([update], mayFail: false)
        try await eventuallyProcess { results.withLock(\.count) == 24 }
        #expect(results.withLock { $0.allSatisfy { "\($0)".contains("no new work") } })
        try await server.start()
        _ = try await written
        try await eventuallyProcess { results.withLock(\.count) == 40 }
        #expect(results.withLock { $0.count { (try? $0.get().acceptance) == .queued } } == 16)
        #expect(!journal.isFull)
        #expect(try await journal.transfer("t1")?.state == [9])
        try await Self.close(journal)
        await server.end()
    }

    @Test("Tables of a later version are left alone, and an earlier version is migrated by one agent")
    func versions() async throws {
        let address = try await Self.database()
        let journals = try await withThrowingTaskGroup(of: PostgresJournal.self) { group in
            for _ in 0..<4 { group.addTask { try await PostgresJournal.open(address) { _ in } } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(journals.count == 4)
        for journal in journals { try await Self.close(journal) }
        let admin = try await PostgresConnection.open(address)
        try await admin.run("UPDATE urlloading.version SET version = 7")
        await #expect(throws: JournalFailure.newer(version: 7)) { try await PostgresJournal.open(address) { _ in } }
        #expect(try await admin.run("SELECT version FROM urlloading.version").rows.first?.integer(0) == 7)
        let rig = AgentRig()
        try rig.start(under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"])
        let failure = await #expect(throws: AgentFailure.self) { try await rig.link() }
        #expect(failure?.code == .version && failure?.detail.contains("version 7") == true)
        await rig.kill()
    }

    @Test("A password is in no message: of a server that refuses it, of an address that cannot be read")
    func passwords() async throws {
        let server = try await PostgresServer(passwords: true)
        let addresses = [
            server.address("postgres", password: "wrong-and-secret"),
            "postgresql://fleet:wrong-and-secret@/postgres?host=/nowhere&nonsense=1",
            "postgresql://fleet:50%-and-secret@localhost/postgres",
            "postgresql://fleet:wrong-and-secret@[::1/postgres", "postgresql://fleet:wrong-and-secret@localhost:1x/a",
        ]
        for address in addresses {
            let failure = await #expect(throws: JournalFailure.self) {
                try await PostgresJournal.open(address) { _ in }
            }
            guard case .failed(let words)? = failure else { return _ = Issue.record("\(failure as Any)") }
            #expect(!words.contains("secret") && !words.isEmpty, "\(words)")
            let rig = AgentRig()
            try rig.start(under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"])
            #expect(await rig.ended() == 70)
            #expect(rig.logText.contains("cannot be opened") && !rig.logText.contains("secret"), "\(rig.logText)")
        }
        let journal = try await PostgresJournal.open(server.address("postgres")) { _ in }
        try await Self.close(journal)
        await server.end()
    }

    @Test("The command line takes no address with a password")
    func commandLine() {
        func parse(_ text: String) -> AgentOptions? { try? AgentOptions.parse(["--journal", text]).get() }
        #expect(parse("postgresql://db.example/queue")?.journal?.text == "postgresql://db.example/queue")
        #expect(parse("postgres:///queue?service=fleet") != nil)
        for text in ["postgresql://a:b@db/q", "postgresql://db/q?user=a&password=b", "mysql://db/q", "queue"] {
            #expect(parse(text) == nil, "\(text)")
        }
    }

    // MARK: Agents

    @Test("Two agents carry out 500 transfers, each once, and the program of one of them gets all events in order")
    func twoAgents() async throws {
        let address = try await Self.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        try await withHTTPTestServer { origin in
            let count = 500
            origin.route("/small") { _ in .ok("small") }
            let program = try await one.rig.attach()
            let folder = one.rig.folder
            for number in 0..<count {
                let url = try #require(URL(string: "?\(number)", relativeTo: origin.url("/small"))).absoluteURL
                #expect(try await program.download(url, id: "t\(number)", to: "\(folder)/f\(number)") == .done)
            }
            #expect(try await program.request(.listen) == .done)
            var (seen, last): (Set<String>, Int64) = ([], 0)
            while seen.count < count {
                let (sequence, record) = try await program.nextEvent()
                #expect(sequence > last && record.outcome != nil)
                if case .failed(let error)? = record.outcome { Issue.record("\(error)") }
                last = sequence
                seen.insert(record.id)
                try await program.acknowledge(sequence)
            }
            let targets = origin.requests.map(\.target)
            #expect(Set(targets).count == count && targets.count == count)
            #expect((0..<count).allSatisfy { Film.of("\(folder)/f\($0)") == Array("small".utf8) })
            #expect(try await program.transfers().isEmpty)
            let shares = [one, other].map { $0.lines.count("is over") }
            #expect(shares.reduce(0, +) == count && shares.allSatisfy { $0 > 0 }, "\(shares)")
            program.close()
        }
        await one.stop()
        await other.stop()
    }

    /// Lets an agent's process begin to download a film to `place`, whose second half never comes. Later requests get
    /// it whole.
    private static func withHalf(
        _ address: String, _ use: (HTTPTestServer, AgentRig, AgentLink, _ place: String) async throws -> Void
    ) async throws {
        let rig = AgentRig()
        try await withHTTPTestServer { origin in
            origin.route("/film", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            try rig.start(under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"])
            let program = try await rig.attach()
            let place = rig.folder + "/film.bin"
            try await program.download(origin.url("/film"), to: place)
            try await origin.wait { $0.stalled == 1 }
            // The start is recorded while the request is under way.
            let admin = try await PostgresConnection.open(address)
            try await eventuallyProcess {
                try await admin.run("SELECT state FROM urlloading.progress").rows.first?.bytes(0).map {
                    String(decoding: $0, as: UTF8.self).contains("running")
                } == true
            }
            origin.route("/film") { Film.answer($0) }
            try await use(origin, rig, program, place)
        }
    }

    @Test("An agent that was stopped for longer than its lease leaves its transfer to the agent that has taken it")
    func stoppedAgent() async throws {
        let address = try await Self.database()
        try await Self.withHalf(address) { origin, rig, program, place in
            #expect(kill(rig.process, SIGSTOP) == 0)
            try await FleetAgent.endLeases(address)
            let other = try await FleetAgent(address)
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
            let admin = try await PostgresConnection.open(address)
            let events = "SELECT count(*) FROM urlloading.event"
            try await eventuallyProcess { try await admin.run(events).rows.first?.integer(0) == 1 }
            #expect(kill(rig.process, SIGCONT) == 0)
            try await eventuallyProcess { rig.logText.contains("is left to it") }
            origin.releaseStalls()
            #expect(try await admin.run(events).rows.first?.integer(0) == 1)
            #expect(Film.of(place) == Film.content)
            program.close()
            await rig.kill(SIGTERM)
            await other.stop()
        }
    }

    @Test("The transfers of an agent that is killed are carried out by another one, and none is lost")
    func killedAgent() async throws {
        let address = try await Self.database()
        try await Self.withHalf(address) { origin, rig, program, place in
            await rig.kill()
            program.close()
            origin.releaseStalls()
            try await FleetAgent.endLeases(address)
            let other = try await FleetAgent(address)
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
            let next = try await other.rig.attach()
            #expect(try await next.request(.listen) == .done)
            let (sequence, record) = try await next.nextEvent()
            #expect(record.id == "t1" && record.attempts == 2)
            try await next.acknowledge(sequence)
            #expect(try await next.transfers().isEmpty)
            next.close()
            await other.stop()
        }
    }

    @Test("Commands of a program reach transfers that wait; an identifier has one live session among all agents")
    func commands() async throws {
        let address = try await Self.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        try await withHTTPTestServer { origin in
            let program = try await one.rig.attach()
            try await program.download(origin.url("/film"), id: "later") {
                $0.earliestBegin = SystemTime.wall + 3_600_000_000_000
            }
            let pause = AgentMessage.command(.init(transfer: "later", verb: "pause"))
            #expect(try await program.request(pause) == .done)
            #expect(try await program.transfers().map(\.state) == [.paused])
            #expect(try await program.request(.command(.init(transfer: "later", verb: "cancel"))) == .done)
            #expect(try await program.request(.listen) == .done)
            let (sequence, record) = try await program.nextEvent()
            guard case .failed(let error)? = record.outcome else { return _ = Issue.record("\(record)") }
            #expect(error.loadError.reason == .cancelled)
            try await program.acknowledge(sequence)
            let failure = await #expect(throws: AgentFailure.self) {
                try await program.request(.command(.init(transfer: "gone", verb: "cancel")))
            }
            #expect(failure?.code == .unknownTransfer)
            // A program with this identifier is attached already, to the other agent.
            let second = await #expect(throws: AgentFailure.self) { try await other.rig.attach() }
            #expect(second?.code == .identifierInUse)
            program.close()
            _ = try await other.rig.attachAgain()
        }
        await one.stop()
        await other.stop()
    }
}

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

/// What goes wrong between agents that share a journal, and between them and the database.
@Suite(.postgres, .enabled(if: PostgresServer.isHere, PostgresServer.isMissing), .timeLimit(.minutes(4)))
struct FleetFaultRows {
    private static func database() async throws -> String {
        try await #require(PostgresServer.current).database()
    }

    /// Opens two journals of one database, the second of which ends claims of others at once.
    private static func withTwo(
        _ use: (PostgresJournal, PostgresJournal, PostgresConnection) async throws -> Void
    ) async throws {
        let address = try await database()
        let one = try await PostgresJournal.open(address) { _ in }
        let other = try await PostgresJournal.open(address, settling: 0) { _ in }
        try await JournalRows.identify(["a", "b"], one)
        try await use(one, other, PostgresConnection.open(address))
        for journal in [one, other] { try await JournalRows.Place.close(journal) }
    }

    private static func submit(_ id: String, _ standing: TransferStanding, _ journal: PostgresJournal) async throws {
        var transfer = JournalRows.transfer(id)
        transfer.terms.standing = standing
        try await journal.write([.accept(transfer)], mayFail: true)
    }

    private static func claim(_ journal: PostgresJournal) async throws -> [String] {
        try await journal.claim(.ready(atMost: 9)).transfers.map(\.id)
    }

    private static func name(_ admin: PostgresConnection) async throws -> String {
        try #require(try await admin.run("SELECT current_database()").rows.first).text(0)
    }

    // MARK: Claims

    @Test("A claim whose answer was lost is free again after two renewals")
    func lostAnswer() async throws {
        try await Self.withTwo { one, other, admin in
            try await Self.submit("t1", .ready, one)
            let kept = try await JournalRows.accept("t2", one)
            // The connection ends after the commit, and before the agent has the answer.
            try await admin.run(
                "UPDATE urlloading.claim SET agent = '\(one.agent)', lease = clock_timestamp() + interval '1 minute', "
                    + "epoch = epoch + 1 WHERE agent IS NULL")
            #expect(try await one.renew([kept]).lost.isEmpty)
            #expect(try await Self.claim(other).isEmpty)
            #expect(try await one.renew([kept]).lost.isEmpty)
            #expect(try await Self.claim(other) == ["t1"])
            #expect(try await one.renew([kept]).lost.isEmpty)
        }
    }

    @Test("After an outage, the first agent that comes back leaves the others the time to renew their claims")
    func outage() async throws {
        let address = try await Self.database()
        let admin = try await PostgresConnection.open(address)
        // The agent that comes back later.
        let role = "late_\(try await Self.name(admin))"
        try await admin.run("CREATE ROLE \(role) LOGIN SUPERUSER")
        let early = try await PostgresJournal.open(address, settling: 3_600_000) { _ in }
        let late = try await PostgresJournal.open(
            address.replacing("fleet:", with: role + ":"), settling: 3_600_000
        ) { _ in }
        try await JournalRows.identify(["a"], late)
        let claim = try await JournalRows.accept("t1", late)
        try await admin.run("ALTER ROLE \(role) NOLOGIN")
        try await admin.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                + "AND datname = current_database()")
        try await FleetAgent.endLeases(address)
        async let written = late.write(
            [.update(claim, state: [5], progress: [], standing: .working), .event(claim)], mayFail: false)
        while (try? await early.renew([])) == nil {}
        #expect(try await early.claim(.one(id: "t1")).transfers.isEmpty)
        #expect(try await Self.claim(early).isEmpty)
        try await admin.run("ALTER ROLE \(role) LOGIN")
        _ = try await written
        #expect(try await early.sequences(of: "a").count == 1)
        for journal in [early, late] { try await JournalRows.Place.close(journal) }
        // Roles are of the whole server.
        try await admin.run("ALTER ROLE \(role) NOLOGIN NOSUPERUSER")
    }

    @Test("A transfer that waits, and was claimed for a command by an agent that dies, goes on waiting")
    func claimedByName() async throws {
        try await Self.withTwo { one, other, admin in
            try await Self.submit("t1", .later(3_600_000_000_000), one)
            #expect(try await one.claim(.one(id: "t1")).transfers.count == 1)
            try await admin.run("UPDATE urlloading.claim SET lease = clock_timestamp()")
            _ = try await other.renew([])
            let found = try await other.claim(.ready(atMost: 9))
            #expect(found.transfers.isEmpty && found.next.map { $0 > 3_000_000_000_000 } == true)
            let claimed = try await other.claim(.one(id: "t1")).transfers
            try await other.release(claimed.map(\.claim))
            #expect(claimed.count == 1)
            #expect(try await Self.claim(other).isEmpty)
        }
    }

    @Test("A command for a transfer that waits for a place of its host lets it not begin without one")
    func commandWithoutPlace() async throws {
        let address = try await Self.database()
        let agent = try await FleetAgent(address)
        let admin = try await PostgresConnection.open(address)
        try await admin.run("INSERT INTO urlloading.host (name, places) VALUES ('*', 0)")
        try await withHTTPTestServer { origin in
            origin.route("/small") { _ in .ok("small") }
            let program = try await agent.rig.attach()
            try await program.download(origin.url("/small"))
            for priority in UInt8(1)...30 {
                let command = AgentMessage.command(.init(transfer: "t1", verb: "prioritize", argument: [priority]))
                #expect(try await program.request(command) == .done)
            }
            #expect(origin.requests.isEmpty)
            #expect(try await admin.run("SELECT priority FROM urlloading.claim").rows.first?.integer(0) == 30)
            try await admin.run("UPDATE urlloading.host SET places = 1")
            try await eventuallyProcess { origin.requests.count == 1 }
            program.close()
        }
        await agent.stop()
    }

    @Test("A command that its agent had not read when it let go of the transfer is carried out by another one")
    func commandWithoutAgent() async throws {
        let address = try await Self.database()
        let agent = try await FleetAgent(address)
        let program = try await agent.rig.attach()
        try await program.download(URL(string: "http://127.0.0.1:1/")!) {
            $0.earliestBegin = SystemTime.wall + 3_600_000_000_000
        }
        try await PostgresConnection.open(address).run(
            "INSERT INTO urlloading.command (transfer, verb, argument) "
                + "SELECT number, 'cancel', ''::bytea FROM urlloading.transfer")
        #expect(try await program.request(.listen) == .done)
        let (sequence, record) = try await program.nextEvent()
        guard case .failed(let error)? = record.outcome else { return _ = Issue.record("\(record)") }
        #expect(error.loadError.reason == .cancelled)
        try await program.acknowledge(sequence)
        program.close()
        await agent.stop()
    }

    // MARK: Programs

    @Test("An agent that was stopped for longer than its leases sends no event, and disconnects the program")
    func stoppedProgram() async throws {
        let address = try await Self.database()
        let rig = AgentRig()
        try rig.start(under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"])
        let first = try await rig.attach()
        #expect(try await first.request(.listen) == .done)
        #expect(kill(rig.process, SIGSTOP) == 0)
        try await FleetAgent.endLeases(address)
        let living = try await FleetAgent(address)
        try await withHTTPTestServer { origin in
            origin.route("/small") { _ in .ok("small") }
            let second = try await living.rig.attach()
            #expect(try await second.request(.listen) == .done)
            try await second.download(origin.url("/small"), to: living.rig.folder + "/small")
            let (sequence, _) = try await second.nextEvent()
            #expect(kill(rig.process, SIGCONT) == 0)
            for await message in first.announcements {
                if case .event = message { Issue.record("the event of the other agent's program") }
            }
            try await second.acknowledge(sequence)
            second.close()
        }
        await rig.kill(SIGTERM)
        await living.stop()
    }

    @Test("A program that another agent's program keeps from attaching may not listen")
    func refusedListener() async throws {
        let address = try await Self.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        let program = try await one.rig.attach()
        let link = try await other.rig.link()
        let attachment = AgentMessage.attach(
            .init(
                identifier: "org.example.sync", settings: TransferCoding.encode(SessionSettings(Configuration.default)),
                secrets: TransferCoding.encode(SessionSecrets())))
        let failure = await #expect(throws: AgentFailure.self) { try await link.request(attachment) }
        #expect(failure?.code == .identifierInUse)
        let refusal = await #expect(throws: AgentFailure.self) { try await link.request(.listen) }
        #expect(refusal?.code == .refused)
        link.close()
        program.close()
        await one.stop()
        await other.stop()
    }

    @Test("A challenge of whose transfer no notification tells is put to the program at the next renewal")
    func lostNotification() async throws {
        let address = try await Self.database()
        let agent = try await FleetAgent(address)
        let admin = try await PostgresConnection.open(address)
        try await withHTTPTestServer { origin in
            ChallengeRows.guarded(origin)
            let asked = ChallengeRows.Asked()
            let session = ChallengeRows.session(
                agent.rig, asked.decisions { _ in .use(ChallengeRows.credential) })
            let place = agent.rig.folder + "/film.bin"
            var options = BackgroundOptions()
            options.earliestBegin = Date(timeIntervalSinceNow: 3_600)
            try await session.background.download(
                Request(url: origin.url("/film")), to: URL(filePath: place), options: options)
            try await admin.run("UPDATE urlloading.claim SET parked = true, due = NULL")
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content && asked.methods == ["Basic"])
            session.invalidateAndCancel()
            await session.invalidated()
        }
        await agent.stop()
    }

    @Test("A challenge that the program has not answered is put to the next one, and not to this one again")
    func refusedChallenge() async throws {
        try await Self.withTwo { one, other, _ in
            let claim = try await JournalRows.accept("t1", one)
            try await one.write([.update(claim, state: [4], progress: [], standing: .refused)], mayFail: false)
            try await one.unpark("a", again: false)
            #expect(try await Self.claim(one).isEmpty)
            try await one.unpark("a", again: true)
            #expect(try await Self.claim(one) == ["t1"])
            let again = try #require(try await one.transfer("t1")).claim
            try await one.write([.update(again, state: [4], progress: [], standing: .refused)], mayFail: false)
            // The program has attached to another agent.
            try await other.unpark("a", again: false)
            #expect(try await Self.claim(other) == ["t1"])
        }
    }

    @Test("A submission that waits for the database is dropped when its program has gone")
    func goneProgram() async throws {
        let server = try await PostgresServer()
        let address = try await server.database()
        let agent = try await FleetAgent(address)
        let program = try await agent.rig.attach()
        await server.end(SIGKILL)
        try await eventuallyProcess { !agent.journal.isReached }
        async let answer = try? program.download(URL(string: "http://127.0.0.1:1/")!)
        try await eventuallyProcess { await !agent.service.submissions.isEmpty }
        program.close()
        #expect(await answer == nil)
        try await eventuallyProcess { await agent.service.clients == 0 }
        try await server.start()
        try await eventuallyProcess { await agent.service.submissions.isEmpty }
        let admin = try await PostgresConnection.open(address)
        #expect(try await admin.run("SELECT FROM urlloading.transfer").rows.isEmpty)
        await agent.stop()
        await server.end()
    }

    @Test("An agent that takes no more work does not wait for a program that does not answer a challenge")
    func drainWithChallenge() async throws {
        let address = try await Self.database()
        let agent = try await FleetAgent(address)
        try await withHTTPTestServer { origin in
            ChallengeRows.guarded(origin)
            let program = try await agent.rig.link()
            let attachment = AgentMessage.attach(
                .init(
                    identifier: "org.example.sync",
                    settings: TransferCoding.encode(SessionSettings(Configuration.default)),
                    secrets: TransferCoding.encode(SessionSecrets()), answers: true))
            #expect(try await program.request(attachment) == .done)
            try await program.download(origin.url("/film")) { ($0.method, $0.challenges) = ("POST", .decision) }
            for await message in program.announcements { if case .challenge = message { break } }
            await agent.service.drain()
            try await eventuallyProcess { await agent.service.alarm.handsOver }
            program.close()
        }
        await agent.stop()
        let admin = try await PostgresConnection.open(address)
        let row = try await admin.run("SELECT parked, agent FROM urlloading.claim").rows.first
        #expect(row?.flag(0) == true && row?.isNull(1) == true)
    }

    // MARK: The database

    @Test("An agent that was drained while the database was away is so for the others when it is back")
    func drainWithoutDatabase() async throws {
        let server = try await PostgresServer()
        let address = try await server.database()
        let one = try await PostgresJournal.open(address) { _ in }
        let other = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], one)
        func submit(_ id: String) async throws {
            var transfer = JournalRows.transfer(id)
            transfer.terms.affinity = "together"
            try await other.write([.accept(transfer)], mayFail: true)
        }
        try await submit("t1")
        #expect(try await Self.claim(one) == ["t1"])
        await server.end(SIGKILL)
        try await eventuallyProcess { !one.isReached && !other.isReached }
        await #expect(throws: JournalFailure.self) { try await one.stopClaiming() }
        try await server.start()
        try await eventuallyProcess { one.isReached && other.isReached }
        try await submit("t2")
        #expect(try await Self.claim(other).isEmpty)
        let claim = try #require(try await one.transfer("t1")).claim
        #expect(try await one.renew([claim]).lost.isEmpty)
        #expect(try await Self.claim(other) == ["t2"])
        // The row of an agent that was away for an hour is removed.
        let admin = try await PostgresConnection.open(address)
        try await admin.run("DELETE FROM urlloading.agent")
        for journal in [one, other] { _ = try await journal.renew([]) }
        let draining = try await admin.run("SELECT name FROM urlloading.agent WHERE draining").rows.map { $0.text(0) }
        #expect(draining == [one.agent])
        for journal in [one, other] { try await JournalRows.Place.close(journal) }
        await server.end()
    }

    @Test("A migration that waits for a table in use gives up soon, and the agents of the earlier version go on")
    func migration() async throws {
        let address = try await Self.database()
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        try await Self.submit("t1", .ready, journal)
        let backup = try await PostgresConnection.open(address)
        try await backup.run("BEGIN; LOCK TABLE urlloading.claim IN ACCESS SHARE MODE")
        let next = ["ALTER TABLE urlloading.claim ADD later text"]
        let schema = PostgresSchema(versions: PostgresSchema.current.versions + [next])
        let failure = await #expect(throws: JournalFailure.self) {
            try await PostgresJournal.open(address, schema: schema) { _ in }
        }
        #expect("\(failure as Any)".contains("55P03"), "\(failure as Any)")
        #expect(try await Self.claim(journal) == ["t1"])
        try await backup.run("COMMIT")
        let newer = try await PostgresJournal.open(address, schema: schema) { _ in }
        for open in [journal, newer] { try await JournalRows.Place.close(open) }
    }

    @Test("PostgreSQL is killed while agents work: what runs ends, submissions wait, nothing is lost or done twice")
    func killedAtWork() async throws {
        let server = try await PostgresServer()
        let address = try await server.database()
        let (one, other) = (try await FleetAgent(address), try await FleetAgent(address))
        try await withHTTPTestServer { origin in
            let gate = Lock(false)
            origin.route("/small") { _ in
                while !gate.withLock(\.self) { try await Task.sleep(for: .milliseconds(5)) }
                return .ok("small")
            }
            let program = try await one.rig.attach()
            let folder = one.rig.folder
            func download(_ number: Int) async throws -> AgentMessage {
                let url = try #require(URL(string: "?\(number)", relativeTo: origin.url("/small"))).absoluteURL
                return try await program.download(url, id: "t\(number)", to: "\(folder)/f\(number)")
            }
            for number in 0..<9 { #expect(try await download(number) == .done) }
            try await eventuallyProcess { origin.requests.count == 6 }
            await server.end(SIGKILL)
            try await eventuallyProcess { !one.journal.isReached && !other.journal.isReached }
            async let late = download(9)
            gate.withLock { $0 = true }
            // The ends of the responses have come, and wait to be recorded.
            try await origin.wait { $0.answered >= 6 }
            try await server.start()
            #expect(try await late == .done)
            #expect(try await program.request(.listen) == .done)
            var ended: Set<String> = []
            while ended.count < 10 {
                let (sequence, record) = try await program.nextEvent()
                if case .failed(let error)? = record.outcome { Issue.record("\(record.id): \(error)") }
                ended.insert(record.id)
                try await program.acknowledge(sequence)
            }
            #expect((0..<10).allSatisfy { Film.of("\(folder)/f\($0)") == Array("small".utf8) })
            #expect(Set(origin.requests.map(\.target)).count == 10 && origin.requests.count == 10)
            #expect(try await program.transfers().isEmpty)
            let lost = [one, other].map { $0.lines.count("was lost") }
            #expect(lost.allSatisfy { $0 > 0 }, "\(lost)")
            program.close()
        }
        await one.stop()
        await other.stop()
        await server.end()
    }

    @Test(
        "A database without room: submissions are refused, accepted work is recorded when there is room again",
        .enabled(if: DiskRows.canMount))
    func fullDatabase() async throws {
        let server = try #require(PostgresServer.current)
        let disk = try #require(server.mountDisk("small", megabytes: 24))
        defer { umount2(disk, Int32(MNT_DETACH)) }
        let address = try await server.database(on: disk)
        let lines = FleetAgent.Lines()
        let journal = try await PostgresJournal.open(address) { lines.add($0) }
        try await JournalRows.identify(["a"], journal)
        let claim = try await JournalRows.accept("t1", journal)
        let admin = try await PostgresConnection.open(address)
        try await admin.run(
            "CREATE TABLE public.filler (text text); ALTER TABLE public.filler ALTER text SET STORAGE PLAIN")
        for length in [7_000, 100] {
            var failure: PostgresFailure?
            while failure == nil {
                do throws(PostgresFailure) {
                    try await admin.run("INSERT INTO public.filler SELECT repeat('x', \(length))")
                } catch { failure = error }
            }
            #expect(failure?.code == "53100", "\(failure as Any)")
        }
        // Pages that are there already may have room for some.
        var refusal: JournalFailure?
        for number in 0..<3_000 where refusal == nil {
            var transfer = JournalRows.transfer("more\(number)")
            transfer.order = Array(repeating: UInt8(truncatingIfNeeded: number), count: 1_500)
            do throws(JournalFailure) { try await journal.write([.accept(transfer)], mayFail: true) } catch {
                refusal = error
            }
        }
        #expect("\(refusal as Any)".contains("53100"), "\(refusal as Any)")
        // What must be recorded waits. Random bytes cannot be compressed.
        let state = (0..<60_000).map { _ in UInt8.random(in: 0...255) }
        async let written = journal.write(
            [.update(claim, state: state, progress: [], standing: .working), .event(claim)], mayFail: false)
        try await eventuallyProcess { lines.count("tried again") > 0 }
        #expect(try await journal.transfer("t1")?.state == [3])
        #expect(try await journal.renew([claim]).lost.isEmpty)
        try await admin.run("DROP TABLE public.filler")
        _ = try await written
        #expect(try await journal.transfer("t1")?.state == state)
        #expect(try await journal.sequences(of: "a").count == 1)
        try await journal.write([.accept(JournalRows.transfer("later"))], mayFail: true)
        try await JournalRows.Place.close(journal)
        // Before the disk goes.
        let name = try await Self.name(admin)
        let other = try await PostgresConnection.open(server.address("postgres"))
        try await other.run("DROP DATABASE \(name) WITH (FORCE)")
        try await other.run("DROP TABLESPACE of_\(name)")
    }

    @Test("Tables that are locked for longer than a statement waits: agents go on with what they have, and come back")
    func lockedAtWork() async throws {
        let address = try await Self.database()
        let agent = try await FleetAgent(address)
        let admin = try await PostgresConnection.open(address)
        try await withHTTPTestServer { origin in
            let gate = Lock(false)
            origin.route("/small") { _ in
                while !gate.withLock(\.self) { try await Task.sleep(for: .milliseconds(5)) }
                return .ok("small")
            }
            let program = try await agent.rig.attach()
            let folder = agent.rig.folder
            for number in 0..<8 {
                let url = try #require(URL(string: "?\(number)", relativeTo: origin.url("/small"))).absoluteURL
                try await program.download(url, id: "t\(number)", to: "\(folder)/f\(number)")
            }
            try await eventuallyProcess { origin.requests.count == 6 }
            try await admin.run("BEGIN; LOCK TABLE urlloading.claim IN ACCESS EXCLUSIVE MODE")
            gate.withLock { $0 = true }
            let seconds = ProcessInfo.processInfo.environment["URLLOADING_LONG"] == nil ? 1 : 30
            try await Task.sleep(for: .seconds(seconds))
            try await eventuallyProcess { agent.lines.count("55P03") > 0 }
            try await admin.run("COMMIT")
            #expect(try await program.request(.listen) == .done)
            var ended: Set<String> = []
            while ended.count < 8 {
                let (sequence, record) = try await program.nextEvent()
                if case .failed(let error)? = record.outcome { Issue.record("\(record.id): \(error)") }
                ended.insert(record.id)
                try await program.acknowledge(sequence)
            }
            #expect(origin.requests.count == 8)
            #expect((0..<8).allSatisfy { Film.of("\(folder)/f\($0)") == Array("small".utf8) })
            program.close()
        }
        await agent.stop()
    }

    @Test("Agents that end transfers of the same identifiers at once do not wait for each other in a circle")
    func circle() async throws {
        let address = try await Self.database()
        let admin = try await PostgresConnection.open(address)
        // A deadlock is not found, and one of the agents would give up.
        try await admin.run("ALTER DATABASE \(try await Self.name(admin)) SET deadlock_timeout = '1h'")
        let lines = FleetAgent.Lines()
        let one = try await PostgresJournal.open(address) { lines.add($0) }
        let other = try await PostgresJournal.open(address) { lines.add($0) }
        try await JournalRows.identify(["a", "b"], one)
        var accepted: [TransferClaim] = []
        for (id, name, journal) in [("a1", "a", one), ("b1", "b", one), ("b2", "b", other), ("a2", "a", other)] {
            accepted.append(try await JournalRows.accept(id, of: name, journal))
        }
        let claims = accepted
        try await admin.run("INSERT INTO urlloading.counter VALUES ('a', 0), ('b', 0)")
        let holder = try await PostgresConnection.open(address)
        try await holder.run("BEGIN; SELECT FROM urlloading.counter WHERE identifier = 'b' FOR UPDATE")
        func wait(for count: Int) async throws {
            let waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            try await eventuallyProcess { try await admin.run(waiting).rows.count == count }
        }
        async let second = other.write([.event(claims[2]), .event(claims[3])], mayFail: false)
        try await wait(for: 1)
        async let first = one.write([.event(claims[0]), .event(claims[1])], mayFail: false)
        try await wait(for: 2)
        try await holder.run("COMMIT")
        _ = try await (first, second)
        #expect(lines.count("tried again") == 0)
        #expect(try await one.sequences(of: "a") == [1, 2])
        #expect(try await one.sequences(of: "b") == [1, 2])
        for journal in [one, other] { try await JournalRows.Place.close(journal) }
    }

    @Test("Pauses are written by their hosts, and events after all other changes of a transaction")
    func order() {
        let claim = TransferClaim(number: 1, epoch: 1)
        let changes: [JournalChange] = [
            .event(claim), .pause(host: "b", nanoseconds: 1), .leave(identifier: "a"), .event(claim),
            .pause(host: "a", nanoseconds: 1), .carriedOut(command: 1),
        ]
        let groups = changes.map { JournalGroup([$0], mayFail: false) { _ in } }
        #expect(JournalGroup.order(of: groups) == [2, 5, 4, 1, 0, 3])
    }

    @Test("A change that the database refuses for good keeps back its own transfer only")
    func refusedChange() async throws {
        try await Self.withTwo { one, _, admin in
            let claims = [try await JournalRows.accept("t1", one), try await JournalRows.accept("t2", one)]
            try await admin.run(
                """
                CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23505'; END $$;
                CREATE TRIGGER refuse BEFORE UPDATE ON urlloading.progress FOR EACH ROW
                WHEN (OLD.number = \(claims[0].number)) EXECUTE FUNCTION public.refuse()
                """)
            let results = Lock<[Result<JournalReceipt, JournalFailure>]>([])
            for state in [UInt8(6), 7] {
                one.write([.update(claims[0], state: [state], progress: [], standing: .working)], mayFail: false) {
                    result in results.withLock { $0.append(result) }
                }
            }
            try await one.write(
                [.update(claims[1], state: [8], progress: [], standing: .working)], mayFail: false)
            #expect(try await one.transfer("t2")?.state == [8])
            #expect(results.withLock(\.count) == 0)
            try await admin.run("DROP TRIGGER refuse ON urlloading.progress")
            try await eventuallyProcess { results.withLock { $0.count { (try? $0.get()) != nil } } == 2 }
            #expect(try await one.transfer("t1")?.state == [7])
        }
    }

    @Test("What a role or a database sets for its sessions changes nothing for an agent")
    func settings() async throws {
        let address = try await Self.database()
        let admin = try await PostgresConnection.open(address)
        let name = try await Self.name(admin)
        for setting in [
            "search_path = public, pg_catalog", "default_transaction_isolation = serializable",
            "synchronous_commit = off",
        ] {
            try await admin.run("ALTER DATABASE \(name) SET \(setting)")
        }
        try await admin.run(
            """
            CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'another function'; END $$
            """)
        let journal = try await PostgresJournal.open(address) { _ in }
        try await JournalRows.identify(["a"], journal)
        try await JournalRows.accept("t1", journal)
        try await JournalRows.Place.close(journal)
        let connection = try await PostgresConnection.open(address)
        try await PostgresJournal.prepare(connection)
        func shown(_ setting: String) async throws -> String? {
            try await connection.run("SHOW \(setting)").rows.first?.text(0)
        }
        #expect(try await shown("search_path") == "pg_catalog, pg_temp")
        #expect(try await shown("transaction_isolation") == "read committed")
        #expect(try await shown("synchronous_commit") == "on")
    }

    @Test("An address of which libpq would take a part of the password for something else is none")
    func ambiguousAddresses() {
        for text in [
            "postgresql://u:pa@ss@db/q", "postgresql://u:se?cret@db/q", "postgresql://u:12/ss@db/q",
            "postgresql://db@x?user=a",
        ] {
            #expect(JournalAddress(text) == nil, "\(text)")
        }
        for text in ["postgresql://u:p%40ss@db/q", "postgresql://db/q?%70assword=x", "postgresql://u:p@db,other:1/q"] {
            #expect(JournalAddress(text)?.hasPassword == true, "\(text)")
        }
        for text in ["postgresql://u@db/q", "postgresql:///q?host=/run/a@b", "postgresql://[::1]:5432/q"] {
            #expect(JournalAddress(text)?.hasPassword == false, "\(text)")
        }
    }

    @Test("A copy of a file to upload is refused where agents share a queue, and no folder for files")
    func copies() async throws {
        let agent = try await FleetAgent(try await Self.database())
        let program = try await agent.rig.attach()
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let error = await #expect(throws: (any Error).self) {
            _ = try await program.download(url) { $0.copiesSource = true }
        }
        #expect("\(error as Any)".contains("--files"), "\(error as Any)")
        program.close()
        await agent.stop()
    }
}

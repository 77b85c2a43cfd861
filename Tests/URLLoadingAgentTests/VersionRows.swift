// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Programs, agents and journals of different versions.
@Suite(.timeLimit(.minutes(2))) struct VersionRows {
    // MARK: Programs and agents

    @Test("A newer program asks an older agent to hand over: it exits, and the next agent continues its transfers")
    func handOver() async throws {
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let place = rig.folder + "/film.bin"
            let program = try await rig.attach()
            try await program.download(origin.url("/film"), to: place)
            try await origin.wait { $0.stalled == 1 }
            _ = try await program.wait { $0.received >= 100_000 }
            let failure = await #expect(throws: AgentFailure.self) {
                try await AgentLink.open(rig.socket, versions: 2...2)
            }
            #expect(failure?.code == .unreachable && failure?.detail.contains("newer url-loading-agent") == true)
            #expect(await rig.ended() == 0)
            origin.route("/film") { Film.answer($0) }
            origin.releaseStalls()
            try rig.start()
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
            #expect(origin.requests.last?.headers[.range]?.hasPrefix("bytes=") == true)
        }
    }

    @Test("A program waits longer for the exit of an older agent than for its first message")
    func slowHandOver() async throws {
        let (rig, token, left, patience) = (AgentRig(), StopToken(), Flag(), Duration.seconds(10))
        let listener = try LocalListener(path: rig.socket)
        let opening = Task { try await AgentLink.open(rig.socket, versions: 2...2, patience: patience) }
        let channel = AgentChannel(try await listener.accept(token))
        let hello = try await channel.receive()
        var refusal = AgentFailure(.version, "an older agent").refusal
        refusal.highest = 1
        channel.send(.refused(refusal), id: hello?.id ?? 0)
        let request = try await channel.receive()
        #expect(request?.message == .handOver)
        let listening = Task {
            _ = try? await channel.receive()
            left.raise()
        }
        // The agent stops its transfers.
        try await Task.sleep(for: patience + .seconds(1))
        #expect(!left.value)
        channel.close()
        await listening.value
        let failure = await #expect(throws: AgentFailure.self) { try await opening.value }
        #expect(failure?.code == .unreachable && failure?.detail.contains("newer url-loading-agent") == true)
        listener.close()
    }

    @Test("A newer program that speaks the agent's version too, and an older one, let the agent run on")
    func otherPrograms() async throws {
        try await SurvivalRows.with { rig, _ in
            try await rig.link().close()
            #expect(try await AgentLink.open(rig.socket, versions: 1...2).welcome.version == 1)
            let failure = await #expect(throws: AgentFailure.self) {
                try await AgentLink.open(rig.socket, versions: 0...0)
            }
            #expect(failure?.code == .version)
            let link = try await rig.link()
            #expect(link.welcome.version == 1 && rig.isRunning)
        }
    }

    @Test("An agent leaves a journal of a later version alone, and tells the programs")
    func newerJournal() async throws {
        let rig = AgentRig()
        try PrivateFolder.make(rig.state)
        let path = rig.state + "/" + SQLiteJournal.fileName
        do { try Database(path: path).execute("PRAGMA user_version = 7") }
        let before = Film.of(path)
        try rig.start()
        let failure = await #expect(throws: AgentFailure.self) { try await rig.link() }
        #expect(failure?.code == .version && failure?.detail.contains("version 7") == true)
        await rig.kill()
        #expect(Film.of(path) == before)
    }

    // MARK: The journal of version 1

    /// The statements that made a journal of version 1, and its rows.
    private static func record(_ path: String, _ url: URL) throws {
        let database = try Database(path: path)
        for statement: StaticString in [
            "CREATE TABLE identifier (name TEXT PRIMARY KEY, settings BLOB NOT NULL) WITHOUT ROWID",
            """
            CREATE TABLE transfer (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, identifier TEXT NOT NULL,
            task BLOB NOT NULL, state BLOB NOT NULL, progress BLOB NOT NULL)
            """,
            "CREATE TABLE secret (owner TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
            "CREATE TABLE event (sequence INTEGER PRIMARY KEY, identifier TEXT NOT NULL, transfer TEXT NOT NULL)",
            "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
            "INSERT INTO counter VALUES ('number', 4)",
            "PRAGMA user_version = 1",
        ] { try database.execute(statement) }
        let settings = #"{"fields":[],"isDiscretionary":false,"maximumConnectionsPerHost":6,"maximumRedirects":20}"#
        try database.statement("INSERT INTO identifier VALUES ('org.example.sync', ?)").run(
            .bytes(Array(settings.utf8)))
        let order = """
            {"created":1790000000000000000,"fields":[["Accept-Encoding","identity"]],"isDiscretionary":false,\
            "kind":"download","label":"film","method":"GET","overrides":{"handlesCookies":true},"priority":25,\
            "replaces":true,"requiresSuccess":false,"shownURL":"http://recorded.example/","userData":"AQI="}
            """
        let state =
            #"{"attempts":1,"failures":0,"firstAttempt":\#(SystemTime.wall),"isPaused":false,"phase":{"running":{}}}"#
        let progress = #"{"received":0,"sent":0}"#
        try database.statement("INSERT INTO transfer VALUES (4, 't4', 'org.example.sync', ?, ?, ?)").run(
            .bytes(Array(order.utf8)), .bytes(Array(state.utf8)), .bytes(Array(progress.utf8)))
        let secrets = #"{"fields":[],"url":"\#(url.absoluteString)"}"#
        try database.statement("INSERT INTO secret VALUES ('transfer t4', ?)").run(.bytes(Array(secrets.utf8)))
    }

    @Test("The transfers of a recorded journal of version 1 are continued")
    func recordedJournal() async throws {
        let rig = AgentRig()
        try PrivateFolder.make(rig.state)
        try await withHTTPTestServer { origin in
            origin.route("/film") { Film.answer($0) }
            try Self.record(rig.state + "/" + SQLiteJournal.fileName, origin.url("/film"))
            try rig.start()
            let program = try await rig.attach()
            let record = try await program.wait("t4") { $0.state == .finished }
            // One attempt of the earlier agent, and one of this.
            #expect(record.label == "film" && record.userData == Data([1, 2]) && record.attempts == 2)
            guard case .file(let path, _, _)? = record.outcome else {
                Issue.record("\(record)")
                return
            }
            #expect(Film.of(path) == Film.content)
            await rig.kill(SIGTERM)
        }
    }

    /// A version that only this test knows.
    private static let version2: [StaticString] = [
        "ALTER TABLE transfer ADD COLUMN note TEXT", "UPDATE transfer SET note = 'migrated'",
        "PRAGMA user_version = 2",
    ]

    @Test("A journal of version 1 is migrated in one transaction, whole or not at all; the older agent then leaves it")
    func migration() async throws {
        let rig = AgentRig()
        try PrivateFolder.make(rig.state)
        try Self.record(rig.state + "/" + SQLiteJournal.fileName, URL(string: "http://127.0.0.1:9/")!)
        let before = try await JournalTests.reopened(rig.state)
        var broken = JournalSchema.current
        broken.versions.append([Self.version2[0], "UPDATE nothing SET note = 1", Self.version2[2]])
        for _ in 0..<2 {
            #expect(throws: JournalFailure.self) { try SQLiteJournal(folder: rig.state, schema: broken) }
        }
        #expect(try await JournalTests.reopened(rig.state) == before)
        var newer = JournalSchema.current
        newer.versions.append(Self.version2)
        do {
            let journal = try SQLiteJournal(folder: rig.state, schema: newer)
            #expect(try await JournalTests.Content(journal) == before)
            journal.finish()
        }
        var failure: (any Error)?
        for _ in 0..<100 where failure as? JournalFailure != .newer(version: 2) {
            do { _ = try SQLiteJournal(folder: rig.state) } catch { failure = error }
            usleep(10_000)
        }
        #expect(failure as? JournalFailure == .newer(version: 2))
    }
}

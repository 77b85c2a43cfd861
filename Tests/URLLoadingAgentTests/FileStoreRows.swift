// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading
@testable import URLLoadingAgent

/// The files of transfers: of one agent, and of agents that share a folder.
@Suite(.timeLimit(.minutes(2)))
struct FileStoreRows {
    enum Kind: CaseIterable { case own, shared }

    private static func with(_ kind: Kind, _ use: (any FileStore, String) throws -> Void) throws {
        var template = Array("/tmp/urlfiles-XXXXXX".utf8CString)
        let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { try? FileManager.default.removeItem(atPath: folder) }
        switch kind {
        case .own: try use(Spool(folder), folder)
        case .shared: try use(FolderStore(folder + "/files"), folder)
        }
    }

    private static func transfer(_ folder: String, epoch: Int64 = 1) -> Transfer {
        let request = Request(url: URL(filePath: "/"))
        var order = TransferOrder(.download, request, created: 0)
        order.destination = folder + "/film"
        return Transfer(
            id: "t1", claim: TransferClaim(number: 1, epoch: epoch), identifier: "a", order: order,
            secrets: TransferSecrets(request))
    }

    private static func write(_ text: String, _ path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
        chmod(path, 0o600)
    }

    @Test("A complete file becomes the destination once, also if that is repeated", arguments: Kind.allCases)
    func placed(_ kind: Kind) throws {
        try Self.with(kind) { store, folder in
            let transfer = Self.transfer(folder)
            let complete = store.complete(transfer)
            try Self.write("film", complete)
            let place = try #require(FilePlace(itself: complete))
            // Another machine numbers its devices in another way.
            let seen = kind == .shared ? FilePlace(device: place.device + 1, inode: place.inode) : place
            let outcome = TransferOutcome.failed(TransferError(LoadError(.cancelled, phase: .waiting, party: .local)))
            let placing = TransferState.Placing(
                from: complete, to: folder + "/film", file: seen, outcome: outcome)
            for _ in 0..<2 { try store.place(placing, transfer.order) }
            #expect(try FileReader.text(folder + "/film") == "film")
            #expect(PathIdentity(complete) == nil)
            // A file that is another one by now is not published.
            try Self.write("other", complete)
            let failed = TransferState.Placing(from: complete, to: folder + "/new", file: seen, outcome: outcome)
            #expect(throws: IOFailure.self) { try store.place(failed, transfer.order) }
            #expect(PathIdentity(folder + "/new") == nil)
        }
    }

    @Test("The destination's folder is the one of the submission", arguments: Kind.allCases)
    func folderOfDestination(_ kind: Kind) throws {
        try Self.with(kind) { store, folder in
            var order = Self.transfer(folder).order
            let place = try #require(FilePlace(folder))
            order.destinationFolder = FilePlace(device: place.device, inode: place.inode + 1)
            #expect(throws: LoadError.self) { try store.checkDestination(order) }
            order.destinationFolder = place
            try store.checkDestination(order)
            order.destinationFolder = FilePlace(device: place.device + 1, inode: place.inode)
            let result = Result { () throws(LoadError) in try store.checkDestination(order) }
            #expect(((try? result.get()) != nil) == (kind == .shared))
        }
    }

    @Test(
        "Claims of a transfer have files of their own in a shared folder, and the next one takes over what is complete")
    func epochs() throws {
        try Self.with(.shared) { store, folder in
            let (first, later) = (Self.transfer(folder), Self.transfer(folder, epoch: 4))
            #expect(store.complete(first) != store.complete(later) && store.answer(first) != store.answer(later))
            try Self.write("film", store.complete(first))
            store.takeOver(later)
            #expect(try FileReader.text(store.complete(later)) == "film")
            #expect(PathIdentity(store.complete(first)) == nil)
            try Self.write("of an agent that is late", store.complete(first))
            store.remove(later)
            #expect(PathIdentity(store.complete(first)) == nil && PathIdentity(store.complete(later)) == nil)
        }
        try Self.with(.own) { store, folder in
            #expect(store.complete(Self.transfer(folder)) == store.complete(Self.transfer(folder, epoch: 4)))
        }
    }
}

/// Agents that share a queue and a folder.
@Suite(.postgres, .enabled(if: PostgresServer.isHere, PostgresServer.isMissing), .timeLimit(.minutes(4)))
struct SharedFolderRows {
    private static func with(_ use: (_ address: String, _ files: String, AgentRig) async throws -> Void) async throws {
        let rig = AgentRig()
        let address = try await #require(PostgresServer.current).database()
        try await use(address, rig.folder + "/files", rig)
    }

    @Test("The part of an agent that is stopped beyond its lease is continued by another one, with its own copy")
    func continued() async throws {
        try await Self.with { address, files, rig in
            try await withHTTPTestServer { origin in
                origin.route("/film", faults: [.init(.responseBody(after: 900_000), .stall)]) { Film.answer($0) }
                try rig.start(
                    under: ["/usr/bin/env", "URLLOADING_JOURNAL=\(address)"], ["--foreground", "--files", files])
                let program = try await rig.attach()
                let place = rig.folder + "/film.bin"
                try await program.download(origin.url("/film"), to: place)
                try await origin.wait { $0.stalled == 1 }
                let admin = try await PostgresConnection.open(address)
                // Its first token is in the journal.
                try await eventuallyProcess {
                    try await admin.run("SELECT progress FROM urlloading.progress").rows.first?.bytes(0).map {
                        String(decoding: $0, as: UTF8.self).contains("resumption")
                    } == true
                }
                #expect(kill(rig.process, SIGSTOP) == 0)
                origin.route("/film") { Film.answer($0) }
                try await FleetAgent.endLeases(address)
                let other = try await FleetAgent(address, files: files)
                try await eventuallyFile(place)
                #expect(Film.of(place) == Film.content)
                let first = origin.requests.last?.headers[.range].flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
                #expect(first > 0, "\(origin.requests)")
                // The agent goes on with its own file, and publishes nothing.
                #expect(kill(rig.process, SIGCONT) == 0)
                try await eventuallyProcess { rig.logText.contains("is left to it") }
                origin.releaseStalls()
                #expect(Film.of(place) == Film.content)
                program.close()
                await rig.kill(SIGTERM)
                await other.stop()
            }
        }
    }

    @Test("A download without a destination is delivered by the agent of its program, whichever agent has loaded it")
    func delivered() async throws {
        try await Self.with { address, files, rig in
            let (one, other) = (
                try await FleetAgent(address, files: files), try await FleetAgent(address, files: files)
            )
            try await withHTTPTestServer { origin in
                origin.route("/film") { Film.answer($0) }
                let session = ChallengeRows.session(one.rig, nil)
                var options = BackgroundOptions()
                (options.affinity, options.earliestBegin) = ("kept", Date(timeIntervalSinceNow: 3_600))
                try await session.background.download(
                    Request(url: origin.url("/film")), to: nil, options: options)
                let admin = try await PostgresConnection.open(address)
                try await admin.run(
                    "INSERT INTO urlloading.affinity VALUES ('org.example.sync', 'kept', '\(other.journal.agent)')")
                try await admin.run("UPDATE urlloading.claim SET due = clock_timestamp()")
                try await session.background.handleEvents { event in
                    guard case .downloaded(let file) = event.result else { return _ = Issue.record("\(event)") }
                    #expect(Film.of(file.url.path(percentEncoded: false)) == Film.content)
                    Task { session.finishTasksAndInvalidate() }
                }
                await session.invalidated()
                #expect(other.lines.count("is over") == 1)
            }
            await one.stop()
            await other.stop()
            #expect(PrivateFolder.names(files).isEmpty)
        }
    }
}

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
@Suite(.postgres, .timeLimit(.minutes(2)))
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

extension FileStoreRows {
    @Test("Files of transfers that the journal does not know are removed when they are old, and no others")
    func orphans() async throws {
        let rig = AgentRig()
        let address = try await #require(PostgresServer.current).database()
        let agent = try await FleetAgent(address, files: rig.folder + "/files")
        let program = try await agent.rig.attach()
        for id in ["kept", "part"] {
            try await program.download(URL(string: "http://127.0.0.1:1/")!, id: id) {
                $0.earliestBegin = SystemTime.wall + 3_600_000_000_000
            }
        }
        let random = String(repeating: "a", count: 24)
        let part = "\(rig.folder)/files/.urlloading-\(random)"
        let admin = try await PostgresConnection.open(address)
        let record = ResumeToken.Record(
            url: "http://127.0.0.1:1/", fields: [], validator: "\"one\"", offset: 4, length: nil, path: part,
            bytes: nil, tail: "", isEarly: false)
        var progress = TransferProgress()
        progress.resumption = ResumeToken(record, nil).data
        let hexadecimal = TransferCoding.encode(progress).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try await admin.run(
            "UPDATE urlloading.progress SET progress = '\\x\(hexadecimal)' WHERE number = "
                + "(SELECT number FROM urlloading.transfer WHERE id = 'part')")
        let other = "\(rig.folder)/files/.urlloading-\(String(repeating: "b", count: 24))"
        let names = [
            "agent-kept-1", "answer-kept-1", "source-kept-x", "agent-gone-1", "answer-gone-2", "source-gone",
            "source-gone-x", "copy-x",
        ]
        let paths = names.map { "\(rig.folder)/files/.urlloading-\($0)" } + [part, other, rig.folder + "/files/mine"]
        for path in paths { try Self.write("film", path) }
        await agent.service.removeOrphans()
        #expect(paths.allSatisfy { PathIdentity($0) != nil })
        let old = timespec(tv_sec: time(nil) - 90_000, tv_nsec: 0)
        for path in paths { #expect(utimensat(AT_FDCWD, path, [old, old], 0) == 0) }
        await agent.service.removeOrphans()
        let left = paths.filter { PathIdentity($0) != nil }
        #expect(left == Array(paths[..<3]) + [part, rig.folder + "/files/mine"])
        program.close()
        await agent.stop()
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

    @Test("An agent that does not know yet that its claim has ended leaves the part to the next one when it cancels")
    func staleCancellation() async throws {
        try await Self.with { address, files, rig in
            // It does not find out by itself.
            let agent = try await FleetAgent(address, files: files, renewingEvery: 3_600_000_000_000)
            try await withHTTPTestServer { origin in
                origin.route("/film", faults: [.init(.responseBody(after: 900_000), .stall)]) { Film.answer($0) }
                let program = try await agent.rig.attach()
                try await program.download(origin.url("/film"), to: rig.folder + "/film.bin")
                try await origin.wait { $0.stalled == 1 }
                let next = try await PostgresJournal.open(address, settling: 0) { _ in }
                func part() async throws -> String? {
                    let row = try #require(try await next.transfer("t1"))
                    let data = TransferCoding.decode(TransferProgress.self, row.progress)?.resumption
                    return data.flatMap { (try? ResumeToken($0))?.heldPath }
                }
                try await eventuallyProcess { try await part() != nil }
                let path = try #require(try await part())
                try await FleetAgent.endLeases(address)
                #expect(try await next.claim(.one(id: "t1")).transfers.count == 1)
                let cancel = AgentMessage.command(.init(transfer: "t1", verb: "cancel"))
                #expect(try await program.request(cancel) == .done)
                try await eventuallyProcess { agent.lines.count("is left to it") == 1 }
                #expect(PathIdentity(path) != nil)
                program.close()
                try await JournalRows.Place.close(next)
            }
            await agent.stop()
        }
    }

    @Test("A submission that is dropped takes no copy with it that another agent has made of the same file")
    func copiedTwice() async throws {
        try await Self.with { address, files, rig in
            let store = try FolderStore(files)
            let path = rig.folder + "/file"
            try Data("film".utf8).write(to: URL(filePath: path))
            let request = Request(url: URL(filePath: "/"))
            var order = TransferOrder(.upload, request, created: 0)
            (order.source, order.sourceStamp, order.copiesSource) = (path, SourceStamp(path: path), true)
            let transfer = Transfer(id: "t1", identifier: "a", order: order, secrets: TransferSecrets(request))
            var (first, second) = (transfer, transfer)
            first.order = try #require(try store.copySource(of: transfer))
            second.order = try #require(try store.copySource(of: transfer))
            store.remove(first)
            #expect(Film.of(try #require(second.order.source)) == Array("film".utf8))
            store.remove(second)
            store.remove(transfer)
            #expect(PrivateFolder.names(files).isEmpty && Film.of(path) == Array("film".utf8))
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

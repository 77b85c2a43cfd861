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

/// Security 80: full disks; the files of uploads.
@Suite(.timeLimit(.minutes(2))) struct DiskRows {
    /// A file system of its own at the agent's folder.
    private static func mountDisk(_ rig: AgentRig, _ options: String, _ flags: UInt = 0) -> Bool {
        mkdir(rig.state, 0o700)
        return mount("tmpfs", rig.state, "tmpfs", flags, options) == 0
    }

    /// Writes a file until its disk has no room.
    private static func fill(_ path: String) {
        let file = open(path, O_WRONLY | O_CREAT, 0o600)
        while write(file, Film.content, 4096) > 0 {}
        close(file)
    }

    /// Whether the tests may mount a disk.
    static let canMount: Bool = {
        let rig = AgentRig()
        guard mountDisk(rig, "size=1m,mode=0700") else { return false }
        return umount(rig.state) == 0
    }()

    @Test(
        "A download without room on the disk waits before it is written, until there is room (security 80)",
        .enabled(if: DiskRows.canMount))
    func fullDisk() async throws {
        let rig = AgentRig()
        #expect(Self.mountDisk(rig, "size=1m,mode=0700"))
        defer { umount2(rig.state, Int32(MNT_DETACH)) }
        try await withHTTPTestServer { origin in
            origin.route("/film") { Film.answer($0) }
            try rig.start()
            let program = try await rig.attach()
            try await program.download(origin.url("/film"))
            let record = try await program.wait { $0.state == .waiting }
            #expect(record.reason?.hasPrefix("disk") == true && record.received == 0)
            #expect(Self.mountDisk(rig, "size=8m,mode=0700", UInt(MS_REMOUNT)))
            #expect(try await program.request(.command(.init(transfer: "t1", verb: "resume"))) == .done)
            let done = try await program.wait { $0.state == .finished }
            guard case .file(let path, _, _)? = done.outcome else {
                Issue.record("\(done)")
                return
            }
            #expect(Film.of(path) == Film.content)
            await rig.kill(SIGTERM)
        }
    }

    @Test("An order whose file system does not answer is refused after a time; other files are written meanwhile")
    func silentFileSystem() async throws {
        let (rig, token, isBack) = (AgentRig(), StopToken(), Flag())
        let service = try TransferService(
            try SQLiteJournal(folder: rig.state), folder: rig.state, patience: 1_000_000_000
        ) { _ in }
        // As many looks as there may be at once find a file system that is away.
        for _ in 0..<64 { await service.looks.run { isBack.waitBlocking() } }
        let listener = try LocalListener(path: rig.socket)
        let server = AgentServer(service, survival: "untilReboot", manner: "test") { _ in }
        let serving = Task { await server.serve(listener, token) }
        await service.start()
        try await withHTTPTestServer { origin in
            origin.route("/film") { Film.answer($0) }
            let (program, url, place) = (try await rig.attach(), origin.url("/film"), rig.folder + "/film.bin")
            let refused = Task { try await program.download(url, id: "t1", to: place) }
            try await program.download(url, id: "t2")
            _ = try await program.wait("t2") { $0.state == .finished }
            await service.drain()
            let failure = await #expect(throws: AgentFailure.self) { try await refused.value }
            #expect(failure?.code == .refused && failure?.detail.contains("does not answer") == true)
            try await eventuallyProcess { await service.alarm.handsOver }
            program.close()
        }
        isBack.raise()
        token.stop(.cancelled)
        await serving.value
        await service.stop()
    }

    @Test(
        "A file that cannot be taken over for a passing reason stays with the agent, and its event comes again",
        .enabled(if: DiskRows.canMount))
    func noRoomForName() async throws {
        let rig = AgentRig()
        #expect(Self.mountDisk(rig, "size=8m,mode=0700"))
        defer { umount2(rig.state, Int32(MNT_DETACH)) }
        try await withHTTPTestServer { origin in
            origin.route("/film") { Film.answer($0) }
            try rig.start()
            let session = BackgroundSessionRows.session(rig)
            let background = session.background
            try await background.download(Request(url: origin.url("/film")))
            try await eventuallyProcess { try await background.transfers.allSatisfy { $0.state == .finished } }
            // No room for another name: the second name of the file counts as a file.
            var disk = statvfs()
            #expect(statvfs(rig.state, &disk) == 0)
            let used = disk.f_files - disk.f_ffree
            #expect(Self.mountDisk(rig, "size=8m,mode=0700,nr_inodes=\(used)", UInt(MS_REMOUNT)))
            let error = await #expect(throws: LoadError.self) {
                try await background.handleEvents { event in
                    Issue.record("\(event)")
                    session.finishTasksAndInvalidate()
                }
            }
            #expect(error?.reason == .cannotReadFile, "\(error as Any)")
            #expect(Self.mountDisk(rig, "size=8m,mode=0700,nr_inodes=1000", UInt(MS_REMOUNT)))
            try await background.handleEvents { event in
                guard case .downloaded(let file) = event.result else { return _ = Issue.record("\(event)") }
                let found = try file.content(upTo: 2_000_000)
                #expect(found.count == Film.content.count)
                Task { session.finishTasksAndInvalidate() }
            }
            await session.invalidated()
            await rig.kill(SIGTERM)
        }
    }

    @Test(
        "On a full disk a program comes back with the settings that the agent has recorded, and with no others",
        .enabled(if: DiskRows.canMount))
    func attachedWithoutRoom() async throws {
        let rig = AgentRig()
        #expect(Self.mountDisk(rig, "size=1m,mode=0700"))
        defer { umount2(rig.state, Int32(MNT_DETACH)) }
        try rig.start()
        let program = try await rig.attach()
        try await program.download(URL(string: "http://127.0.0.1:9/")!) {
            $0.earliestBegin = SystemTime.wall + 3_600_000_000_000
        }
        let filler = rig.state + "/filler"
        Self.fill(filler)
        program.close()
        let next = try await rig.attachAgain()
        #expect(try await next.transfers().map(\.state) == [.waiting])
        next.close()
        // The agent refuses while the first program has not left, too.
        var failure: AgentFailure?
        while failure == nil || failure?.code == .identifierInUse {
            failure = await #expect(throws: AgentFailure.self) { try await rig.attach { $0.maximumRedirects = 1 } }
        }
        #expect(failure?.code == .journal, "\(failure as Any)")
        unlink(filler)
        let last = try await rig.attachAgain { $0.maximumRedirects = 1 }
        #expect(try await last.transfers().map(\.state) == [.waiting])
        last.close()
        await rig.kill(SIGTERM)
    }

    @Test(
        "An agent ends when it is told to, while what an attempt must record has no room on the disk",
        .enabled(if: DiskRows.canMount))
    func endsWithoutRoom() async throws {
        let rig = AgentRig()
        #expect(Self.mountDisk(rig, "size=1m,mode=0700"))
        defer { umount2(rig.state, Int32(MNT_DETACH)) }
        let mayAnswer = Lock(false)
        try await withHTTPTestServer { origin in
            origin.route("/film") { request in
                while !mayAnswer.withLock(\.self) { try? await Task.sleep(for: .milliseconds(5)) }
                return Film.answer(request)
            }
            try rig.start()
            let program = try await rig.attach()
            try await program.download(origin.url("/film"), to: rig.folder + "/film.bin")
            try await origin.wait { $0.requests == 1 }
            Self.fill(rig.state + "/filler")
            // The journal records where the complete file will be before it is renamed.
            mayAnswer.withLock { $0 = true }
            _ = try await program.wait { $0.state == .placing }
            program.close()
            await rig.kill(SIGTERM)
            unlink(rig.state + "/filler")
            // The next agent goes on.
            try rig.start()
            let next = try await rig.attachAgain()
            _ = try await next.wait { $0.state == .finished }
            #expect(Film.of(rig.folder + "/film.bin") == Film.content)
            next.close()
            await rig.kill(SIGTERM)
        }
    }

    @Test("A complete file with the permissions of its destination is placed: an agent was killed before the rename")
    func placedAfterKill() throws {
        let rig = AgentRig()
        let spool = try Spool(rig.state)
        let request = Request(url: URL(string: "http://127.0.0.1/")!)
        var order = TransferOrder(.download, request, created: 0)
        order.destination = rig.folder + "/film.bin"
        let transfer = Transfer(
            id: "t", identifier: "a", order: order, secrets: TransferSecrets(request))
        let path = spool.complete(transfer)
        try Data(Film.content).write(to: URL(filePath: path))
        #expect(chmod(path, 0o664) == 0)
        let place = try #require(FilePlace(itself: path))
        try spool.place(
            .init(from: path, to: rig.folder + "/film.bin", file: place, outcome: AgentPlanTests.failed), order)
        #expect(Film.of(rig.folder + "/film.bin") == Film.content)
        // Such a file is removed with its transfer, too.
        try Data(Film.content).write(to: URL(filePath: path))
        #expect(chmod(path, 0o664) == 0)
        spool.remove(transfer)
        #expect(access(path, F_OK) != 0)
    }

    @Test("A new file has the permissions that the program gives to new files; a replaced one keeps those it had")
    func permissions() throws {
        let rig = AgentRig()
        let spool = try Spool(rig.state)
        let request = Request(url: URL(string: "http://127.0.0.1/")!)
        var order = TransferOrder(.download, request, created: 0)
        let destination = rig.folder + "/film.bin"
        (order.destination, order.permissionsOfNewFiles) = (destination, 0o640)
        let transfer = Transfer(
            id: "t", identifier: "a", order: order, secrets: TransferSecrets(request))
        func placed() throws -> UInt16? {
            let path = spool.complete(transfer)
            try Data(Film.content).write(to: URL(filePath: path))
            let place = try #require(FilePlace(itself: path))
            try spool.place(.init(from: path, to: destination, file: place, outcome: AgentPlanTests.failed), order)
            return FileWriter.permissions(at: destination)
        }
        let new = try placed()
        #expect(new == 0o640)
        #expect(chmod(destination, 0o604) == 0)
        order.permissionsOfNewFiles = 0o600
        let replaced = try placed()
        #expect(replaced == 0o604)
        order.permissions = 0o400
        let chosen = try placed()
        #expect(chosen == 0o400)
    }

    @Test("An upload of a copy sends what the file was when the transfer was accepted")
    func copied() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/put") { request in .ok("got \(request.bodyCount)") }
            let session = BackgroundSessionRows.session(rig)
            let source = rig.folder + "/source.bin"
            try Data(Film.content).write(to: URL(filePath: source))
            var options = BackgroundOptions(label: "copy")
            options.copiesFile = true
            options.earliestBegin = Date(timeIntervalSinceNow: 3600)
            let request = Request(url: origin.url("/put"), method: .put)
            try await session.background.upload(request, fromFile: URL(filePath: source), options: options)
            unlink(source)
            // The copy is found by the next agent, too.
            await rig.kill()
            try rig.start()
            options.earliestBegin = nil
            options.copiesFile = false
            await #expect(throws: LoadError.self) {
                try await session.background.upload(request, fromFile: URL(filePath: source), options: options)
            }
            #expect(rig.spool.count == 1)
            for transfer in try await session.background.transfers { try await transfer.cancel() }
            try await session.background.handleEvents { _ in Task { session.finishTasksAndInvalidate() } }
            await session.invalidated()
            try await eventuallyProcess { rig.spool.isEmpty }
        }
    }

    @Test("The files of a transfer that an agent cannot decode stay")
    func undecoded() async throws {
        try await SurvivalRows.with { rig, origin in
            let session = BackgroundSessionRows.session(rig)
            let source = rig.folder + "/source.bin"
            try Data(Film.content).write(to: URL(filePath: source))
            var options = BackgroundOptions(label: "copy")
            options.copiesFile = true
            options.earliestBegin = Date(timeIntervalSinceNow: 3600)
            try await session.background.upload(
                Request(url: origin.url("/put"), method: .put), fromFile: URL(filePath: source), options: options)
            await rig.kill()
            let journal = rig.state + "/" + SQLiteJournal.fileName
            // As an agent of a later version writes it.
            let state = try Self.state(journal)
            try Self.setState([0x31], journal)
            try rig.start()
            try await rig.link().close()
            #expect(rig.spool.count == 1, "\(rig.logText)")
            await rig.kill()
            try Self.setState(state, journal)
            try rig.start()
            #expect(rig.spool.count == 1)
            for transfer in try await session.background.transfers { try await transfer.cancel() }
            try await session.background.handleEvents { _ in Task { session.finishTasksAndInvalidate() } }
            await session.invalidated()
            try await eventuallyProcess { rig.spool.isEmpty }
        }
    }

    /// The recorded state of the only transfer.
    private static func state(_ journal: String) throws -> [UInt8] {
        try Database(path: journal).statement("SELECT state FROM transfer").first { $0.blob(0) } ?? []
    }

    private static func setState(_ value: [UInt8], _ journal: String) throws {
        try Database(path: journal).statement("UPDATE transfer SET state = ?").run(.bytes(value))
    }

    @Test("The content of a copy arrives, and the copy is removed with the transfer")
    func copySent() async throws {
        try await SurvivalRows.with { rig, origin in
            let session = BackgroundSessionRows.session(rig)
            let source = rig.folder + "/source.bin"
            try Data(Film.content).write(to: URL(filePath: source))
            origin.route("/put") { request in
                unlink(source)
                let isWhole = request.bodyCount == Film.content.count && Film.content.starts(with: request.body)
                return .ok(isWhole ? "whole" : "torn")
            }
            var options = BackgroundOptions(label: "copy")
            options.copiesFile = true
            try await session.background.upload(
                Request(url: origin.url("/put"), method: .put), fromFile: URL(filePath: source), options: options)
            try Data("other".utf8).write(to: URL(filePath: source))
            try await session.background.handleEvents { event in
                guard case .uploaded(let data, _) = event.result else { return _ = Issue.record("\(event)") }
                #expect(String(decoding: data, as: UTF8.self) == "whole")
                Task { session.finishTasksAndInvalidate() }
            }
            await session.invalidated()
            try await eventuallyProcess { rig.spool.isEmpty }
        }
    }

    @Test("A file that changed after the transfer was accepted is not sent: uploadSourceChanged")
    func changed() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/put") { _ in .status(.serviceUnavailable, headers: [.retryAfter: "1"]) }
            let session = BackgroundSessionRows.session(rig)
            let source = rig.folder + "/source.bin"
            try Data(Film.content).write(to: URL(filePath: source))
            try await session.background.upload(
                Request(url: origin.url("/put"), method: .put), fromFile: URL(filePath: source))
            try await origin.wait { $0.answered == 1 }
            try Data("other".utf8).write(to: URL(filePath: source))
            try await session.background.handleEvents { event in
                guard case .failed(let error) = event.result else { return _ = Issue.record("\(event)") }
                #expect(error.reason == .uploadSourceChanged)
                let words = "/source.bin is not what it was when the upload began"
                #expect(error.detail?.hasSuffix(words) == true, "\(error)")
                Task { session.finishTasksAndInvalidate() }
            }
            await session.invalidated()
            #expect(origin.requests.count == 1)
        }
    }
}

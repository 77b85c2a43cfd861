// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
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

    private static let canMount: Bool = {
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
            while !rig.spool.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        }
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
            while !rig.spool.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
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
                Task { session.finishTasksAndInvalidate() }
            }
            await session.invalidated()
            #expect(origin.requests.count == 1)
        }
    }
}

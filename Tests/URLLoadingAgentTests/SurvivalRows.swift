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

/// Checklist 5, 137, 138, 142, 149 and security 75, 80: transfers that outlive the program and the agent.
@Suite(.timeLimit(.minutes(2))) struct SurvivalRows {
    static func with(
        stallsAfter: Int64? = nil, _ use: (AgentRig, HTTPTestServer) async throws -> Void
    ) async throws {
        let rig = AgentRig()
        try await withHTTPTestServer { origin in
            origin.route("/film", faults: stallsAfter.map { [.init(.responseBody(after: $0), .stall)] } ?? []) {
                Film.answer($0)
            }
            try rig.start()
            try await use(rig, origin)
            await rig.kill(SIGTERM)
            origin.releaseStalls()
        }
    }

    @Test(
        "A download outlives its program and is delivered to the next one with its identifier (checklist 5, 137, 142)"
    )
    func programGone() async throws {
        try await Self.with(stallsAfter: 300_000) { rig, origin in
            let place = rig.folder + "/film.bin"
            // A released stall lasts until the client leaves, which the agent does after the idle timeout.
            let program = try await rig.attach { $0.idleTimeout = .seconds(1) }
            try await program.download(origin.url("/film"), to: place) { $0.label = "film" }
            try await origin.wait { $0.stalled == 1 }
            program.close()
            origin.route("/film") { Film.answer($0) }
            origin.releaseStalls()
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
            let next = try await rig.attachAgain()
            let found = try await next.wait { $0.state == .finished }
            #expect(found.label == "film" && found.received == Int64(Film.content.count))
            #expect(try await next.request(.listen) == .done)
            let (sequence, record) = try await next.nextEvent()
            guard case .file(place, Int64(Film.content.count), let response)? = record.outcome else {
                Issue.record("\(record)")
                return
            }
            // A download that lost its connection was completed by a range request.
            #expect([200, 206].contains(response.status))
            try await next.acknowledge(sequence)
            #expect(try await next.transfers().isEmpty)
            next.close()
            let last = try await rig.attachAgain()
            #expect(try await last.transfers().isEmpty)
            #expect(rig.spool.isEmpty)
        }
    }

    @Test("A killed agent resumes a download from the bytes on the disk when it is started again (checklist 137, 149)")
    func agentKilled() async throws {
        try await Self.with(stallsAfter: 300_000) { rig, origin in
            let place = rig.folder + "/film.bin"
            let program = try await rig.attach()
            try await program.download(origin.url("/film"), to: place)
            _ = try await program.wait { $0.received >= 100_000 }
            try await origin.wait { $0.stalled == 1 }
            try await Task.sleep(for: .milliseconds(50))
            await rig.kill()
            origin.releaseStalls()
            origin.route("/film") { Film.answer($0) }
            try rig.start()
            let next = try await rig.attachAgain()
            #expect(try await next.request(.listen) == .done)
            let (sequence, record) = try await next.nextEvent()
            guard case .file? = record.outcome else {
                Issue.record("\(record)")
                return
            }
            #expect(Film.of(place) == Film.content)
            let range = try #require(origin.requests.last?.headers[.range])
            #expect(Int(range.dropFirst(6).dropLast()).map { $0 > 0 } == true, "\(range)")
            try await next.acknowledge(sequence)
            #expect(rig.spool.isEmpty)
            let left = PrivateFolder.names(rig.folder).filter { $0.hasPrefix(".urlloading") }
            #expect(left.isEmpty, "\(left)")
        }
    }

    @Test(
        "A second live session is refused, and the error names the process of the first (checklist 138, 141)"
    )
    func inUse() async throws {
        try await Self.with { rig, _ in
            let program = try await rig.attach()
            let error = await #expect(throws: AgentFailure.self) { _ = try await rig.attach() }
            #expect(error?.code == .identifierInUse && error?.process == Int64(getpid()))
            _ = try await rig.attach("org.example.other")
            withExtendedLifetime(program) {}
        }
    }

    @Test("A repeated submission is accepted once, also after the agent was killed")
    func submittedTwice() async throws {
        try await Self.with { rig, origin in
            let program = try await rig.attach()
            try await program.download(origin.url("/film"))
            try await program.download(origin.url("/film"))
            _ = try await program.wait { $0.state == .finished }
            await rig.kill()
            try rig.start()
            let next = try await rig.attachAgain()
            try await next.download(origin.url("/film"))
            #expect(try await next.transfers().count == 1)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Transfers accepted before the agent was killed are there afterwards, in order (checklist 138)")
    func accepted() async throws {
        try await Self.with { rig, origin in
            let program = try await rig.attach()
            let later = SystemTime.wall + 3_600_000_000_000
            for number in 0..<20 {
                try await program.download(origin.url("/film"), id: "t\(number)") {
                    ($0.earliestBegin, $0.userData) = (later, Data([UInt8(number)]))
                }
            }
            await rig.kill()
            try rig.start()
            let found = try await rig.attach().transfers()
            #expect(found.map(\.id) == (0..<20).map { "t\($0)" })
            #expect(found.map(\.userData) == (0..<20).map { Data([UInt8($0)]) })
            #expect(found.allSatisfy { $0.state == .waiting && $0.until == later })
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("A damaged journal is set aside and reported, and the agent works (security 80)")
    func damaged() async throws {
        try await Self.with { rig, origin in
            let program = try await rig.attach()
            try await program.download(origin.url("/film"))
            _ = try await program.wait { $0.state == .finished }
            await rig.kill()
            let path = rig.state + "/" + SQLiteJournal.fileName
            for name in ["", "-wal"] { try Data(repeating: 0x5A, count: 20_000).write(to: URL(filePath: path + name)) }
            try rig.start()
            let next = try await rig.attachAgain()
            #expect(try await next.transfers().isEmpty)
            #expect(rig.logText.contains("is set aside"))
            #expect(PrivateFolder.names(rig.state).contains { $0.hasPrefix("journal.sqlite.damaged-") })
            let kept = try #require(PrivateFolder.names(rig.state).first { $0.hasPrefix("spool.damaged-") })
            let file = try #require(PrivateFolder.names(rig.state + "/" + kept).first)
            #expect(Film.of("\(rig.state)/\(kept)/\(file)") == Film.content)
            try await next.download(origin.url("/film"), id: "t2")
            _ = try await next.wait("t2") { $0.state == .finished }
        }
    }

    @Test("A cancelled transfer ends at once and leaves no files")
    func cancelled() async throws {
        try await Self.with(stallsAfter: 300_000) { rig, origin in
            let place = rig.folder + "/film.bin"
            let program = try await rig.attach()
            #expect(try await program.request(.listen) == .done)
            try await program.download(origin.url("/film"), to: place)
            try await origin.wait { $0.stalled == 1 }
            #expect(try await program.request(.command(.init(transfer: "t1", verb: "cancel"))) == .done)
            let (sequence, record) = try await program.nextEvent()
            guard case .failed(let error)? = record.outcome else {
                Issue.record("\(record)")
                return
            }
            #expect(error.loadError.reason == .cancelled)
            try await program.acknowledge(sequence)
            try await origin.wait { $0.open == 0 }
            #expect(access(place, F_OK) != 0)
            try await eventuallyFiles(PrivateFolder.names(rig.folder)) { !$0.contains { $0.hasPrefix(".urlloading") } }
        }
    }

    @Test("A paused transfer holds no connection, also across restarts of the agent, and resumes from its bytes")
    func paused() async throws {
        try await Self.with(stallsAfter: 300_000) { rig, origin in
            let program = try await rig.attach()
            try await program.download(origin.url("/film"))
            _ = try await program.wait { $0.received >= 100_000 }
            try await origin.wait { $0.stalled == 1 }
            #expect(try await program.request(.command(.init(transfer: "t1", verb: "pause"))) == .done)
            try await origin.wait { $0.open == 0 }
            origin.route("/film") { Film.answer($0) }
            // A killed agent would continue from its last recorded point, which a slow machine may not have reached.
            await rig.kill(SIGTERM)
            try rig.start()
            let next = try await rig.attachAgain()
            #expect(try await next.transfers().map(\.state) == [.paused])
            #expect(try await next.request(.command(.init(transfer: "t1", verb: "resume"))) == .done)
            let record = try await next.wait { $0.state == .finished }
            guard case .file(let path, _, _)? = record.outcome else {
                Issue.record("\(record)")
                return
            }
            #expect(Film.of(path) == Film.content)
            #expect(origin.requests.last?.headers[.range]?.hasPrefix("bytes=") == true)
        }
    }
}

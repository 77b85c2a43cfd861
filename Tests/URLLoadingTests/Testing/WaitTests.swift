// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// Waits of the test library end at their limit, and report the actual state.
@Suite(.timeLimit(.minutes(4)))
struct WaitTests {
    /// The error of a wait; its words name this file and hold the given ones.
    private func expectTimeOut(
        _ words: String..., sourceLocation: SourceLocation = #_sourceLocation, _ wait: () async throws -> Void
    ) async {
        do {
            try await wait()
            Issue.record("the wait has ended well", sourceLocation: sourceLocation)
        } catch let error as WaitTimedOut {
            let text = "\(error)"
            for word in words + ["WaitTests.swift:", "waited \(error.limit) for "] {
                #expect(text.contains(word), "\(text)", sourceLocation: sourceLocation)
            }
        } catch {
            Issue.record(error, sourceLocation: sourceLocation)
        }
    }

    private static let short = Duration.milliseconds(20)

    @Test("an origin's wait shows its counts and requests")
    func origin() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/page") { _ in .ok("here") }
            _ = try await Session(.ephemeral).data(from: origin.url("/page"))
            await expectTimeOut("the counts of the origin", "requests: 1", "GET /page HTTP/1.1") {
                try await origin.wait(timeout: Self.short) { $0.requests == 2 }
            }
            await expectTimeOut("requests: 1") { try await origin.wait(timeout: .zero) { $0.requests == 2 } }
            // A condition that holds needs no time.
            try await origin.wait(timeout: .zero) { $0.requests == 1 }
        }
    }

    @Test("the error of an HTTP/2 server's wait shows its counts and frames, and that of a script the received frame")
    func http2() async throws {
        try await withHTTP2TestServer { server in
            server.script { peer in
                let request = try await peer.acceptRequest()
                try await peer.send(.ping())
                _ = try await peer.expect(.ping, isAck: true)
                _ = try await peer.expect(.resetStream, stream: request.stream, timeout: Self.short)
            }
            let session = Session(.ephemeral.with { $0.connections.httpVersions = .http2PriorKnowledge })
            _ = try? await session.data(from: server.url("/page"))
            await expectTimeOut("the counts of the server", "accepted: ", "HEADERS") {
                try await server.wait(timeout: .zero) { $0.accepted == 9 }
            }
            await expectTimeOut("a frame PUSH_PROMISE on connection 1") {
                _ = try await server.wait(for: .pushPromise, onConnection: 1, timeout: Self.short)
            }
            let complaint = server.failures.first ?? ""
            #expect(complaint.hasPrefix("connection 1: expected RST_STREAM within 0.02 seconds, got: "), "\(complaint)")
        }
    }

    @Test("the error of an ftp server's wait shows its counts and commands, without a password")
    func ftp() async throws {
        try await withFTPTestServer { server in
            server.put("a.txt", Data("hello".utf8))
            _ = try await Session(.ephemeral).data(from: server.url("/a.txt"))
            var words = ""
            do { try await server.wait(timeout: Self.short) { $0.transfers == 2 } } catch { words = "\(error)" }
            #expect(words.contains("the counts of the ftp server") && words.contains("RETR"), "\(words)")
            let password = server.commands.first { $0.hasPrefix("PASS ") }?.dropFirst(5) ?? ""
            #expect(!password.isEmpty && !words.contains(password), "\(words)")
        }
    }

    @Test("a proxy's waits show its connections and requests")
    func proxy() async throws {
        try await withTestProxy(.init(.http)) { proxy in
            await expectTimeOut("a stalled connection of the proxy", "0 of 0 connections open", "requests: none") {
                try await proxy.untilStalled(timeout: Self.short)
            }
            try await proxy.untilEmpty(timeout: .zero)
        }
    }

    @Test("a clock's waits show how many tasks sleep and how many loads wait")
    func clock() async throws {
        let clock = ManualClock()
        await expectTimeOut("a task that sleeps", "0 tasks asleep, 0 loads waiting") {
            try await clock.untilSleeping(timeout: Self.short)
        }
        await expectTimeOut("2 loads that wait for their peers", "0 loads waiting") {
            try await clock.untilWaiting(2, timeout: Self.short)
        }
    }

    @Test("the error of a scripted peer's wait shows its connections and their errors")
    func scriptedPeer() async throws {
        let peer = ScriptedPeer([.takeUntil("\r\n\r\n"), .hold, .end])
        await expectTimeOut("a hold of connection 1", "0 connections made", "1 connections not made") {
            try await peer.untilHeld(timeout: Self.short)
        }
    }

    @Test("a recorder's waits show the loads and exchanges so far")
    func recorders() async throws {
        let recorder = EventRecorder()
        let recording = RecordingHandler()
        var configuration = Configuration.ephemeral
        configuration.observers = [recorder]
        configuration.handlers = [recording]
        let session = Session(configuration)
        try await withHTTPTestServer { origin in
            origin.route("/stalls", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            origin.route("/page") { _ in .ok("here") }
            _ = try await session.data(from: origin.url("/page"))
            let task = session.dataTask(from: origin.url("/stalls")).resumed()
            try await origin.wait { $0.stalled == 1 }
            await expectTimeOut("2 events completed", "/page", "200, 4 bytes") {
                try await recorder.wait(for: .completed, count: 2, timeout: Self.short)
            }
            await expectTimeOut("the recorded loads", "/page") {
                try await recorder.wait(timeout: Self.short) { loads in loads.count == 3 ? loads : nil }
            }
            await expectTimeOut("the end of what is recorded", "open exchanges: GET ", "/stalls") {
                _ = try await recording.finished(timeout: Self.short)
            }
            task.cancel()
            _ = try await recording.finished()
        }
    }

    @Test("cancelling the waiting task ends a wait before its limit")
    func cancellation() async throws {
        try await withHTTPTestServer { origin in
            let waiter = Task { try await origin.wait { $0.requests == 1 } }
            waiter.cancel()
            await #expect(throws: CancellationError.self) { try await waiter.value }
        }
    }
}

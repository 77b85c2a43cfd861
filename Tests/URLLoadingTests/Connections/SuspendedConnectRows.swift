// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// A task that is suspended while its connection is being made: as for every timeout of a suspended task, the time of
/// the suspension does not count towards the connect timeout.
@Suite(.timeLimit(.minutes(4)))
struct SuspendedConnectRows {
    private static let limit = UnansweredConnection.limit

    /// The calls of a data task or a stream task.
    private struct Calls: Sendable {
        let resume: @Sendable () -> Void
        let suspend: @Sendable () -> Void
        let end: @Sendable () async throws -> Void

        static func load(_ session: Session, _ url: URL) -> Calls {
            let task = session.dataTask(from: url)
            return Calls(resume: { task.resume() }, suspend: { task.suspend() }, end: { _ = try await task.value })
        }

        static func stream(_ session: Session, _ port: UInt16) -> Calls {
            let task = session.streamTask(host: "127.0.0.1", port: Int(port), secure: true)
            return Calls(
                resume: { task.resume() }, suspend: { task.suspend() },
                end: { if let error = await task.ended() { throw error } })
        }
    }

    /// Suspends a task for an hour, 2 s after its connection was begun, and expects that the remaining 3 s of its
    /// connect timeout pass afterwards.
    private func expectHeld(
        _ clock: ManualClock, _ session: Session, _ phase: LoadError.Phase, _ task: Calls,
        when isUnderWay: () async throws -> Void = {}, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        task.resume()
        try await expectConnectTimeout(
            clock, session, phase, at: Self.limit - .seconds(2),
            when: {
                try await isUnderWay()
                try await clock.untilWaiting()
                clock.advance(by: .seconds(2))
                task.suspend()
                clock.advance(by: .seconds(3600))
                task.resume()
            }, sourceLocation: sourceLocation
        ) { _ in try await task.end() }
    }

    private func expectHeld(_ connection: UnansweredConnection) async throws {
        try await expectHeld(
            connection.clock, connection.session, connection.phase, .load(connection.session, connection.url),
            when: connection.isUnderWay)
    }

    @Test("while a socket is being connected, to one or several addresses", arguments: [false, true])
    func connecting(_ hasTwoAddresses: Bool) async throws {
        try await UnansweredConnection.connecting(twoAddresses: hasTwoAddresses) { try await expectHeld($0) }
    }

    @Test("during a TLS handshake of a load or of a stream", arguments: [false, true])
    func securing(_ isStream: Bool) async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(UnansweredConnection.configuration(clock))
        let task: Calls =
            isStream
            ? .stream(session, host.port) : .load(session, try url("https://127.0.0.1:\(host.port)/"))
        try await expectHeld(clock, session, .securing, task, when: { try await host.acceptFirstByte() })
    }

    @Test("while a proxy opens a tunnel", arguments: [TestProxy.Configuration.Kind.http, .socks])
    func tunnelling(_ kind: TestProxy.Configuration.Kind) async throws {
        try await UnansweredConnection.tunnelling(kind) { tunnel, _ in try await expectHeld(tunnel) }
    }

    @Test("before and during the login of an FTP server", arguments: ["", "USER", "PASS"])
    func ftpLogin(_ verb: String) async throws {
        try await UnansweredConnection.ftpLogin(verb) { try await expectHeld($0) }
    }

    @Test("while an FTP data connection is being opened")
    func ftpData() async throws { try await UnansweredConnection.ftpData { try await expectHeld($0) } }

    @Test("while the caller's resolver is asked: its answer is used after the suspension")
    func resolving() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            let clock = ManualClock()
            let (isAsked, mayAnswer) = (Latch(), Latch())
            let session = Session(
                UnansweredConnection.configuration(clock) { $0.networks.nameResolver = .waiting(isAsked, mayAnswer) })
            let task = session.dataTask(from: try url("http://slow.example:\(origin.port)/")).resumed()
            await isAsked.wait()
            clock.advance(by: .seconds(2))
            task.suspend()
            clock.advance(by: .seconds(3600))
            task.resume()
            clock.advance(by: Self.limit - .seconds(2) - .nanoseconds(1))
            mayAnswer.open()
            let body = try await task.value
            #expect(body == Data("here".utf8))
            await expectEmpty(session)
        }
    }
}

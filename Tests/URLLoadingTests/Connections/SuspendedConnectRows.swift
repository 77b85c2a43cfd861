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
    private static let limit = ConnectTimeoutRows.limit

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
        let ended = Flag()
        task.resume()
        let failing = Task {
            defer { ended.raise() }
            return await failure(.connectTimeout, .system, phase, sourceLocation: sourceLocation) {
                try await task.end()
            }
        }
        try await isUnderWay()
        try await clock.untilWaiting()
        clock.advance(by: .seconds(2))
        task.suspend()
        clock.advance(by: .seconds(3600))
        task.resume()
        try await clock.untilWaiting()
        clock.advance(by: Self.limit - .seconds(2) - .nanoseconds(1))
        try await clock.untilWaiting()
        #expect(!ended.value, sourceLocation: sourceLocation)
        clock.advance(by: .nanoseconds(1))
        _ = await failing.value
        await expectEmpty(session, sourceLocation: sourceLocation)
    }

    @Test("while a socket is being connected, to one or several addresses", arguments: [false, true])
    func connecting(_ hasTwoAddresses: Bool) async throws {
        let clock = ManualClock()
        let host = try await FullHost()
        defer { host.close() }
        let other = hasTwoAddresses ? try await FullHost((127, 0, 0, 2), port: host.port) : nil
        defer { other?.close() }
        var addresses: [SocketAddress] = [.ipv4((127, 0, 0, 1), port: 0)]
        if hasTwoAddresses { addresses.append(.ipv4((127, 0, 0, 2), port: 0)) }
        let session = Session(
            ConnectTimeoutRows.configuration(clock) { [addresses] in
                $0.resolver = RecordingResolver(.success(addresses))
            })
        let address = try url("http://silent.example:\(host.port)/")
        try await expectHeld(clock, session, .connecting, .load(session, address))
    }

    @Test("during a TLS handshake of a load or of a stream", arguments: [false, true])
    func securing(_ isStream: Bool) async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(ConnectTimeoutRows.configuration(clock))
        let task: Calls =
            isStream
            ? .stream(session, host.port) : .load(session, try url("https://127.0.0.1:\(host.port)/"))
        try await expectHeld(clock, session, .securing, task, when: { try await host.acceptFirstByte() })
    }

    @Test("while a proxy opens a tunnel", arguments: [TestProxy.Configuration.Kind.http, .socks])
    func tunnelling(_ kind: TestProxy.Configuration.Kind) async throws {
        try await withTestProxy(.init(kind, fault: .stall(.greeting))) { proxy in
            let clock = ManualClock()
            let way = try proxy.address()
            let session = Session(ConnectTimeoutRows.configuration(clock) { $0.proxyPolicy = .fixed([way]) })
            try await expectHeld(
                clock, session, .connecting, .load(session, try url("https://origin.test/")),
                when: { try await proxy.untilStalled() })
        }
    }

    @Test("before and during the login of an FTP server", arguments: ["", "USER", "PASS"])
    func ftpLogin(_ verb: String) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            server.inject(.stall(at: verb))
            let clock = ManualClock()
            let session = Session(ConnectTimeoutRows.configuration(clock))
            try await expectHeld(clock, session, .connecting, .load(session, server.url("/a")))
        }
    }

    @Test("while an FTP data connection is being opened")
    func ftpData() async throws {
        let host = try await FullHost()
        defer { host.close() }
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            let clock = ManualClock()
            let dialled = Lock(0)
            let isDialled = Flag()
            let port = try #require(server.url("/").port)
            let session = Session(
                ConnectTimeoutRows.configuration(clock) {
                    $0.dial = { [full = host.port] (_, token) async throws(IOFailure) -> any Transport in
                        let isData = dialled.withLock { count in
                            count += 1
                            return count == 2
                        }
                        if isData { isDialled.raise() }
                        let place = SocketAddress.ipv4((127, 0, 0, 1), port: isData ? full : UInt16(port))
                        return try await SocketTransport.connect(to: place, token)
                    }
                })
            try await expectHeld(
                clock, session, .connecting, .load(session, server.url("/a")), when: { try await isDialled.wait() })
        }
    }

    @Test("while the caller's resolver is asked: its answer is used after the suspension")
    func resolving() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("here") }
            let clock = ManualClock()
            let (isAsked, mayAnswer) = (Latch(), Latch())
            let session = Session(
                ConnectTimeoutRows.configuration(clock) {
                    $0.nameResolver = NameResolver { _ in
                        isAsked.open()
                        await mayAnswer.wait()
                        return ["127.0.0.1"]
                    }
                })
            let task = session.dataTask(from: try url("http://slow.example:\(origin.port)/"))
            task.resume()
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

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// A load whose connection cannot be completed, because one step of connecting has no answer. Its connect timeout is
/// 5 s on a manual clock.
struct UnansweredConnection: Sendable {
    static let limit = Duration.seconds(5)

    let clock: ManualClock
    let session: Session
    let url: URL
    /// The phase in which the load stays.
    let phase: LoadError.Phase
    /// Returns once the load has reached the step without an answer.
    var isUnderWay: @Sendable () async throws -> Void = {}

    static func configuration(
        _ clock: ManualClock, _ change: (inout Configuration) -> Void = { _ in }
    ) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.use(clock)
        configuration.timeouts.connect = limit
        configuration.networks.proxyPolicy = .none
        change(&configuration)
        return configuration
    }

    /// To a host of one or two addresses that neither accept nor refuse.
    static func connecting(twoAddresses: Bool, _ use: (Self) async throws -> Void) async throws {
        let clock = ManualClock()
        let host = try await FullHost()
        defer { host.close() }
        let other = twoAddresses ? try await FullHost((127, 0, 0, 2), port: host.port) : nil
        defer { other?.close() }
        var addresses: [SocketAddress] = [.ipv4((127, 0, 0, 1), port: 0)]
        if twoAddresses { addresses.append(.ipv4((127, 0, 0, 2), port: 0)) }
        let session = Session(
            configuration(clock) { [addresses] in $0.networks.resolver = RecordingResolver(.success(addresses)) })
        let address = try URLLoadingTests.url("http://silent.example:\(host.port)/")
        try await use(Self(clock: clock, session: session, url: address, phase: .connecting))
    }

    /// Through a proxy that does not answer.
    static func tunnelling(
        _ kind: TestProxy.Configuration.Kind, _ use: (Self, Proxy) async throws -> Void
    ) async throws {
        try await withTestProxy(.init(kind, fault: .stall(.greeting))) { proxy in
            let clock = ManualClock()
            let address = try proxy.address()
            let session = Session(configuration(clock) { $0.networks.proxyPolicy = .fixed([address]) })
            let tunnel = Self(
                clock: clock, session: session, url: try URLLoadingTests.url("https://origin.test/"),
                phase: .connecting, isUnderWay: { try await proxy.untilStalled() })
            try await use(tunnel, address)
        }
    }

    /// To an FTP server that does not answer a command of the login; an empty verb is the greeting.
    static func ftpLogin(_ verb: String, _ use: (Self) async throws -> Void) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            server.inject(.stall(at: verb))
            let clock = ManualClock()
            let session = Session(configuration(clock))
            try await use(Self(clock: clock, session: session, url: server.url("/a"), phase: .connecting))
        }
    }

    /// To the data port of an FTP server, which neither accepts nor refuses.
    static func ftpData(_ use: (Self) async throws -> Void) async throws {
        let host = try await FullHost()
        defer { host.close() }
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            let clock = ManualClock()
            let dialled = Watched(0)
            let (control, data) = (server.port, host.port)
            let session = Session(
                configuration(clock) {
                    $0.dial = { (_, token) async throws(IOFailure) -> any Transport in
                        let port = dialled.add() == 2 ? data : control
                        return try await SocketTransport.connect(to: .ipv4((127, 0, 0, 1), port: port), token)
                    }
                })
            try await use(
                Self(
                    clock: clock, session: session, url: server.url("/a"), phase: .connecting,
                    isUnderWay: { try await dialled.wait { $0 == 2 } }))
        }
    }
}

extension NameResolver {
    /// Announces each question, and answers it with this machine once the second latch is open.
    static func waiting(_ isAsked: Latch, _ mayAnswer: Latch) -> NameResolver {
        NameResolver { _ in
            isAsked.open()
            await mayAnswer.wait()
            return ["127.0.0.1"]
        }
    }
}

/// Expects that a load fails with the connect timeout, at the last nanosecond of what remains of it.
/// - Parameters:
///   - remaining: of the connect timeout, once `isWaiting` has returned.
///   - isWaiting: returns once the load waits for the answer.
@discardableResult
func expectConnectTimeout(
    _ clock: ManualClock, _ session: Session, _ phase: LoadError.Phase,
    at remaining: Duration = UnansweredConnection.limit, when isWaiting: () async throws -> Void = {},
    sourceLocation: SourceLocation = #_sourceLocation, _ load: @escaping @Sendable (Session) async throws -> Void
) async throws -> LoadError? {
    let ended = Flag()
    let running = Task {
        defer { ended.raise() }
        return await failure(.connectTimeout, .system, phase, sourceLocation: sourceLocation) {
            try await load(session)
        }
    }
    try await isWaiting()
    try await clock.untilWaiting()
    clock.advance(by: remaining - .nanoseconds(1))
    try await clock.untilWaiting()
    #expect(!ended.value, sourceLocation: sourceLocation)
    clock.advance(by: .nanoseconds(1))
    let error = await running.value
    #expect(error?.code == -1001, sourceLocation: sourceLocation)
    await expectEmpty(session, sourceLocation: sourceLocation)
    return error
}

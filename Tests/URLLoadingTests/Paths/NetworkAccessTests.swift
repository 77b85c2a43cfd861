// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Networks excluded by a session or a request.
@Suite(.timeLimit(.minutes(4)))
struct NetworkAccessTests {
    typealias Reason = LoadError.Reason
    private static let modem = ScriptedPaths.Tables(
        links: [RouteBytes.link(2, "wwan0")], addresses: [], routes: [RouteBytes.defaultRoute(through: [2])])
    private static let cable = NetworkMonitorTests.home

    private func configuration(_ kernel: ScriptedPaths, hints: NetworkMonitor.Hints = .init()) -> Configuration {
        let monitor = NetworkMonitorTests.monitor(kernel)
        monitor.hints = hints
        var configuration = Configuration.ephemeral
        configuration.networkMonitor = monitor
        // Not this machine, and nothing is sent there: the system refuses to connect to a broadcast address.
        configuration.networks.resolver = RecordingResolver(.success([.ipv4((255, 255, 255, 255), port: 0)]))
        return configuration
    }

    private static let refusals:
        [(
            any WritableKeyPath<Configuration, Bool> & Sendable, any WritableKeyPath<Request, Bool?> & Sendable, Reason,
            NetworkMonitor.Hints
        )] = [
            (\.networks.allowsCellular, \.allowsCellularAccess, .notAllowedOnCellularNetwork, .init()),
            (
                \.networks.allowsExpensive, \.allowsExpensiveNetworkAccess, .notAllowedOnExpensiveNetwork,
                .init(isExpensive: true)
            ),
            (
                \.networks.allowsConstrained, \.allowsConstrainedNetworkAccess, .notAllowedOnConstrainedNetwork,
                .init(isConstrained: true)
            ),
        ]

    @Test("a forbidden network is not used, by session and by request (checklist 27)", arguments: 0..<3)
    func refused(_ number: Int) async throws {
        let (ofSession, ofRequest, reason, hints) = Self.refusals[number]
        var configuration = configuration(ScriptedPaths(Self.modem), hints: hints)
        let target = try url("http://name.example/")
        var request = Request(url: target)
        request[keyPath: ofRequest] = false
        let byRequest = await failure(reason, .local, .connecting) {
            try await Session(configuration).data(for: request)
        }
        #expect(byRequest?.code == -1020 && byRequest?.url == target)

        configuration[keyPath: ofSession] = false
        await expectFailure(reason) { try await Session(configuration).data(from: target) }
        await expectFailure(reason) { try await Session(configuration).data(from: url("http://[2001:db8::1]/")) }

        // A request that allows a network overrides nothing that its session forbids, and is not refused for that.
        request[keyPath: ofRequest] = true
        configuration.networks.addressPolicy = .publicOnly
        await expectFailure(.addressRefused) { try await Session(configuration).data(for: request) }
    }

    @Test("this machine is reached regardless of the network", arguments: ["127.0.0.1", "localhost", "name.example"])
    func thisMachine(_ host: String) async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            var configuration = configuration(ScriptedPaths(Self.modem), hints: .init(isConstrained: true))
            configuration.networks.resolver = RecordingResolver()
            configuration.networks.allowsCellular = false
            configuration.networks.allowsExpensive = false
            configuration.networks.allowsConstrained = false
            let session = Session(configuration)
            for _ in 0..<2 { try await session.expect(url("http://\(host):\(origin.port)/"), "hello") }
        }
    }

    @Test("for a host with local and remote addresses, the local ones are used")
    func hereAndElsewhere() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            var configuration = configuration(ScriptedPaths(Self.modem))
            configuration.networks.resolver = RecordingResolver(
                .success([.ipv4((255, 255, 255, 255), port: 0), .ipv4((127, 0, 0, 1), port: 0)]))
            configuration.networks.allowsCellular = false
            try await Session(configuration).expect(url("http://name.example:\(origin.port)/"), "hello")
        }
    }

    @Test("if all networks are allowed, or the destination is local, the path is not queried")
    func noCost() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let kernel = ScriptedPaths(Self.modem)
            var configuration = configuration(kernel)
            configuration.networks.resolver = RecordingResolver()
            try await Session(configuration).expect(url("http://name.example:\(origin.port)/"), "hello")
            configuration.networks.allowsCellular = false
            try await Session(configuration).expect(url("http://name.example:\(origin.port)/"), "hello")
            #expect(kernel.opened == 0)
        }
    }

    @Test("an idle connection is checked against the current networks, and kept")
    func keptConnection() async throws {
        let answer = ScriptedPeer.Step.give("HTTP/1.1 204 No Content\r\n\r\n")
        let peer = ScriptedPeer([
            .takeUntil("\r\n\r\n"), answer, .takeUntil("\r\n\r\n"), answer, .takeUntil("\r\n\r\n"), answer,
        ])
        let kernel = ScriptedPaths(Self.cable)
        var configuration = configuration(kernel)
        configuration.connect(to: peer)
        configuration.networks.allowsCellular = false
        let session = Session(configuration)
        let target = try url("http://name.example/")
        for _ in 0..<2 { try await session.expect(target, "") }
        kernel.change { $0 = Self.modem }
        await expectFailure(.notAllowedOnCellularNetwork, .local) { try await session.data(from: target) }
        kernel.change { $0 = Self.cable }
        try await session.expect(target, "")
        #expect(peer.connections == 1 && peer.failures.isEmpty)
    }

    @Test("a connection whose load sent nothing is checked for the next load, as any idle connection")
    func unusedConnection() async throws {
        let peer = ScriptedPeer([.takeUntil("\r\n\r\n"), .give("HTTP/1.1 204 No Content\r\n\r\n")])
        var configuration = configuration(ScriptedPaths(Self.modem))
        configuration.connect(to: peer)
        let session = Session(configuration)
        var request = Request(url: try url("http://name.example/"))
        var decisions = Decisions()
        decisions.sign = Decision { _ in throw CancellationError() }
        await expectFailure(.decisionFailed) { try await session.data(for: request, decisions: decisions) }
        request.allowsCellularAccess = false
        await expectFailure(.notAllowedOnCellularNetwork, .local) { try await session.data(for: request) }
        request.allowsCellularAccess = nil
        try await session.expect(request, "")
        #expect(peer.connections == 1 && peer.failures.isEmpty)
    }

    @Test("with an unknown path no request is refused")
    func unknown() async throws {
        let kernel = ScriptedPaths(Self.modem)
        kernel.refuse(EPERM)
        var configuration = configuration(kernel, hints: .init(isExpensive: true, isConstrained: true))
        configuration.networks.allowsCellular = false
        configuration.networks.allowsExpensive = false
        do {
            _ = try await Session(configuration).data(from: url("http://name.example/"))
        } catch let error as LoadError {
            #expect(error.code == LoadError.Reason.cannotConnect.code, "\(error)")
        }
    }
}

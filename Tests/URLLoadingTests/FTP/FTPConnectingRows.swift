// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The features that ftp shares with http before a response: retries, waiting for a network, proxies with
/// authentication.
@Suite(.timeLimit(.minutes(4)))
struct FTPConnectingRows {
    // MARK: Retries (checklist 162)

    @Test("a retry policy applies to ftp", arguments: ["USER", "EPSV", "RETR"])
    func tries(_ verb: String) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            server.inject(.closeOnce(at: verb), .closeOnce(at: verb))
            let rig = RetryRows.Rig { $0.maximumAttempts = 3 }
            async let text = rig.session.text(server.url("/a"))
            try await rig.passWaits(2)
            let got = try await text
            #expect(got == "hello" && rig.retries.map(\.attempt) == [2, 3])
            #expect(server.counts.accepted == 3)
            await expectEmpty(rig.session)
        }
    }

    @Test("421 is a transient failure; after the last attempt it is the error")
    func busy() async throws {
        try await withFTPTestServer { server in
            server.inject(.reply(to: "USER", "421 too many\r\n"))
            let rig = RetryRows.Rig { $0.maximumAttempts = 2 }
            async let error = failure(.ftpServiceUnavailable) { try await rig.session.data(from: server.url("/a")) }
            try await rig.passWaits(1)
            _ = await error
            #expect(rig.retries.count == 1)
            await expectEmpty(rig.session)
        }
    }

    @Test("a permanent failure has one attempt, as has everything without a policy")
    func once() async throws {
        try await withFTPTestServer { server in
            let rig = RetryRows.Rig()
            await expectFailure(.fileNotFound) { try await rig.session.data(from: server.url("/none")) }
            #expect(rig.retries.isEmpty)
            await expectEmpty(rig.session)
            server.inject(.closeOnce(at: "RETR"))
            server.put("a", Data("hello".utf8))
            let session = Session(.patient)
            await expectFailure(.connectionLost) { try await session.data(from: server.url("/a")) }
            await expectEmpty(session)
        }
    }

    @Test("a body that can be created anew is sent again")
    func stores() async throws {
        try await withFTPTestServer { server in
            server.inject(.closeOnce(at: "STOR"))
            let rig = RetryRows.Rig()
            async let stored = rig.session.data(
                for: Request(url: server.url("/b"), method: .put, body: .data(Data("there".utf8))))
            try await rig.passWaits(1)
            _ = try await stored
            #expect(server.file("b")?.content == Data("there".utf8))
            await expectEmpty(rig.session)
        }
    }

    @Test("PASV is tried where the port of the reply to EPSV cannot be reached, and used from then on")
    func closedPort() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            // No program listens on this port.
            server.inject(.reply(to: "EPSV", "229 (|||1|)\r\n"))
            let session = Session(.patient)
            for _ in 0..<2 { try await session.expect(server.url("/a"), "hello") }
            let commands = server.commands.filter { ["EPSV", "PASV"].contains($0) }
            #expect(commands == ["EPSV", "PASV", "PASV"] && server.counts.accepted == 1)
            await expectEmpty(session)
        }
    }

    // MARK: The time of the whole

    @Test(
        "the resource timeout ends a load at any step, without another attempt",
        arguments: [
            FTPFault.stall(at: "USER"), .stall(at: "RETR"), .ignoresData, .stallsData(after: 3), .neverCompletes,
        ])
    func wholeTime(_ fault: FTPFault) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            server.inject(fault)
            let rig = RetryRows.Rig(configure: {
                $0.timeouts.resource = .seconds(100)
                $0.timeouts.idle = nil
            })
            async let error = failure(.resourceTimeout) { try await rig.session.data(from: server.url("/a")) }
            try await server.wait { $0.stalled == 1 }
            rig.clock.advance(by: .seconds(101))
            _ = await error
            #expect(rig.retries.isEmpty)
            await expectEmpty(rig.session)
        }
    }

    // MARK: Waiting for a network (checklist 162)

    @Test("without a network a load waits, reports it once, and continues")
    func waits() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            let rig = ConnectivityRows.Rig()
            let target = try url("ftp://name.example:\(server.port)/a")
            async let text = rig.session.text(target)
            try await rig.untilWaiting()
            #expect(server.counts.accepted == 0)
            rig.network.goUp()
            let got = try await text
            #expect(got == "hello")
            #expect(
                rig.recorder.loads.flatMap(\.events).count { "\($0)" == "\(LoadEvent.waitingForConnectivity)" } == 1)
            await expectEmpty(rig.session)
        }
    }

    // MARK: Proxies that ask (checklist 88; security 5)

    @Test(
        "a proxy's challenge is answered once, as for http; the server sees no credentials",
        arguments: [false, true])
    func asks(isWrongFirst: Bool) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                var configuration = Configuration.patient
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                let log = ChallengeLog()
                let session = Session(
                    configuration,
                    decisions: .challenged(log) { challenge in
                        guard challenge.protectionSpace.isProxy, challenge.protectionSpace.method == .basic else {
                            return .performDefaultHandling
                        }
                        let isWrong = isWrongFirst && challenge.previousFailureCount == 0
                        return .use(Credential(user: "u", password: isWrong ? "no" : "pw"))
                    })
                for _ in 0..<2 { try await session.expect(server.url("/a"), "hello") }
                #expect(log.withLock { $0.map(\.previousFailureCount) } == (isWrongFirst ? [0, 1] : [0]))
                let space = try #require(log.withLock { $0.first?.protectionSpace })
                #expect(space.isProxy && space.port == Int(proxy.port))
                #expect(!server.commands.contains { $0.contains("pw") })
                await expectEmpty(session)
            }
        }
    }

    @Test("a proxy's challenge without an answer fails the load")
    func refused() async throws {
        try await withFTPTestServer { server in
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                let session = try Session(.patient.with { $0.networks.proxyPolicy = .fixed([try proxy.address()]) })
                await expectFailure(.proxyAuthenticationRequired) { try await session.data(from: server.url("/a")) }
                #expect(server.counts.accepted == 0)
                await expectEmpty(session)
            }
        }
    }

    @Test(
        "a proxy with connection-level authentication authenticates each connection; for one load as well",
        arguments: [Credential.Persistence.session, .none])
    func proves(_ persistence: Credential.Persistence) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            try await withNTLMProxy { gate, proxy, configuration in
                let session = Session(
                    configuration,
                    decisions: .challenged(ChallengeLog()) { challenge in
                        challenge.protectionSpace.isProxy
                            ? .use(Credential(user: "ada", password: "s3cret", persistence: persistence))
                            : .performDefaultHandling
                    })
                try await session.expect(server.url("/a"), "hello")
                // The challenged control connection, and one for the data.
                #expect(gate.seen == ["1 -", "1 negotiate", "1 authenticate ada", "2 negotiate", "2 authenticate ada"])
                await expectEmpty(session)
                try await proxy.untilEmpty()
            }
        }
    }

    @Test("a proxy whose nonces are valid for one tunnel is answered for each")
    func nonces() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            let used = Lock<Set<String>>([])
            var setup = TestProxy.Configuration(.http)
            setup.authorize = { asked in
                let said = asked.headers[.proxyAuthorization].flatMap { AuthenticationChallenge.parse([$0]).first }
                let nonce = said?["nonce"] ?? ""
                if said != nil, used.withLock({ $0.insert(nonce).inserted }) { return .allow() }
                let stale = said == nil ? "" : ", stale=true"
                return .refuse([
                    .proxyAuthenticate:
                        "Digest realm=p, nonce=\"\(UInt64.random(in: 0 ... .max))\", "
                        + "algorithm=SHA-256, qop=\"auth\"\(stale)"
                ])
            }
            try await withTestProxy(setup) { proxy in
                var configuration = Configuration.patient
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                let log = ChallengeLog()
                let session = Session(
                    configuration, decisions: .challenged(log) { _ in .use(Credential(user: "u", password: "pw")) })
                for _ in 0..<2 { try await session.expect(server.url("/a"), "hello") }
                #expect(log.withLock { $0.count { $0.protectionSpace.isProxy } } == 1)
                await expectEmpty(session)
            }
        }
    }
}

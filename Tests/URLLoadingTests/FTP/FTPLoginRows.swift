// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// The login of an ftp load.
@Suite(.timeLimit(.minutes(4)))
struct FTPLoginRows {
    static func with(
        _ decisions: Decisions? = nil, change: (inout Configuration, FTPTestServer) -> Void = { _, _ in },
        server: (inout FTPTestServer.Configuration) -> Void = { _ in },
        _ use: (FTPTestServer, Session) async throws -> Void
    ) async throws {
        var setting = FTPTestServer.Configuration()
        setting.users = ["ada": "secret", "bob": "other"]
        setting.allowsAnonymous = false
        server(&setting)
        try await withFTPTestServer(setting) { server in
            server.put("a", Data("hello".utf8))
            var configuration = Configuration.ephemeral
            change(&configuration, server)
            let session = Session(configuration, decisions: decisions)
            try await use(server, session)
            await expectEmpty(session)
            try await server.wait { $0.open == 0 }
        }
    }

    @Test("the URL's user logs in; another user gets another connection, though both are idle (security 62)")
    func ofURL() async throws {
        try await Self.with { server, session in
            for _ in 0..<2 {
                try await session.expect(server.url("/a", user: "ada:secret"), "hello")
                try await session.expect(server.url("/a", user: "bob:other"), "hello")
            }
            #expect(server.counts.accepted == 2)
            // A wrong password does not lead to another user's connection.
            let error = await failure(.userAuthenticationRequired, .remote) {
                try await session.data(from: server.url("/a", user: "ada:wrong"))
            }
            #expect(error.map { !"\($0)".contains("wrong") && $0.code == -1013 } == true)
            await expectFailure(.userAuthenticationRequired, .remote) { try await session.data(from: server.url("/a")) }
        }
    }

    @Test("a decision is called until it gives up, with the refused credential; an accepted one is stored")
    func decision() async throws {
        let heard = Lock<[String]>([])
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            let count = heard.withLock { heard in
                heard.append(
                    "\(challenge.protectionSpace.method) \(challenge.previousFailureCount) "
                        + "\(challenge.proposedCredential?.user ?? "-")"
                )
                return heard.count
            }
            #expect(challenge.error?.reason == .userAuthenticationRequired && challenge.protectionSpace.scheme == "ftp")
            return switch count {
            case 1: .use(Credential(user: "ada", password: "wrong"))
            case 2: .use(Credential(user: "ada", password: "secret"))
            default: .performDefaultHandling
            }
        }
        try await Self.with(decisions) { server, session in
            try await session.expect(server.url("/a"), "hello")
            #expect(heard.withLock { $0 } == ["Default 0 -", "Default 1 ada"])
            try await session.expect(server.url("/a"), "hello")
            #expect(heard.withLock { $0.count } == 2 && server.commands.filter { $0.hasPrefix("USER") }.count == 3)
        }
    }

    @Test("the store, netrc and an account provide the login")
    func others() async throws {
        let store = CredentialStore()
        try await Self.with(change: { configuration, server in
            store.set(
                Credential(user: "ada", password: "secret"),
                for: ProtectionSpace(
                    host: "127.0.0.1", port: Int(server.port), scheme: "ftp", method: .default))
            configuration.authentication.credentialStore = store
        }) { server, session in try await session.expect(server.url("/a"), "hello") }
        let place = temporaryURL("netrc")
        try Data("machine 127.0.0.1 login bob password other\n".utf8).write(to: place)
        defer { try? FileManager.default.removeItem(at: place) }
        try await Self.with(change: { configuration, _ in configuration.authentication.netrc = .file(place) }) {
            server, session in
            try await session.expect(server.url("/a"), "hello")
            try await session.expect(server.url("/a", user: "bob"), "hello")
            #expect(server.counts.accepted == 1)
        }
        try await Self.with(
            change: { configuration, _ in configuration.ftp.account = "house" }, server: { $0.account = "house" }
        ) {
            try await $1.expect($0.url("/a", user: "ada:secret"), "hello")
            #expect($0.commands.contains("ACCT house"))
        }
        try await Self.with(server: { $0.account = "house" }) { server, session in
            await expectFailure(.userAuthenticationRequired) {
                try await session.data(from: server.url("/a", user: "ada:secret"))
            }
        }
    }

    @Test("the number of connections is limited: further loads wait")
    func limit() async throws {
        try await Self.with(change: { configuration, _ in configuration.connections.maximumPerHost = 2 }) {
            server, session in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<12 {
                    group.addTask { try await session.expect(server.url("/a", user: "ada:secret"), "hello") }
                }
                try await group.waitForAll()
            }
            #expect(server.counts.accepted <= 2 && server.counts.transfers == 12)
        }
    }

    @Test("a connection is kept no longer than the idle limit")
    func idle() async throws {
        let clock = ManualClock()
        try await Self.with(change: { configuration, _ in configuration.use(clock) }) { server, session in
            try await session.expect(server.url("/a", user: "ada:secret"), "hello")
            #expect(server.counts.open == 1)
            clock.advance(by: .seconds(120))
            try await server.wait { $0.open == 0 }
            #expect(session.connectionsDescription == "empty")
        }
    }
}

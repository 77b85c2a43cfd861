// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// ftp over TLS, explicit and implicit.
@Suite(.timeLimit(.minutes(4)))
struct FTPSecurityRows {
    static func with(
        _ security: FTPTestServer.Configuration.Security, change: (inout Configuration) -> Void = { _ in },
        tls: (inout HTTPTestServer.TLS) -> Void = { _ in }, decisions: Decisions? = nil,
        _ use: (FTPTestServer, Session) async throws -> Void
    ) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var side = HTTPTestServer.TLS(try authority.issue())
        side.applicationProtocols = []
        tls(&side)
        try await withFTPTestServer(.init(tls: side, security: security)) { server in
            server.put("a", Data("hello".utf8))
            var configuration = Configuration.ephemeral
            configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
            configuration.ftp.security = .explicit
            change(&configuration)
            let session = Session(configuration, decisions: decisions)
            try await use(server, session)
            await expectEmpty(session)
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
        }
    }

    @Test(
        "the data connection resumes the TLS session of the control connection",
        arguments: [
            FTPTestServer.Configuration.Security.requiresExplicit, .implicit,
        ], [URLLoading.Configuration.TLS.Version.tls12, .tls13])
    func both(_ security: FTPTestServer.Configuration.Security, _ version: URLLoading.Configuration.TLS.Version)
        async throws
    {
        try await Self.with(security, change: { $0.tls.maximumVersion = version }) { server, session in
            try await session.expect(server.url("/a"), "hello")
            try await session.expect(server.url("/a"), "hello")
            _ = try await session.upload(
                Request(url: server.url("/up"), method: .put), from: .data(Data(count: 1_000_000)))
            #expect(server.file("up")?.content.count == 1_000_000)
            #expect(server.counts.accepted == 1 && server.counts.transfers == 3 && server.counts.resumed == 3)
            let says = server.commands.prefix(2)
            #expect(security == .implicit ? says.first == "USER anonymous" : says.first == "AUTH TLS")
            #expect(server.commands.contains("PROT P"))
        }
    }

    @Test("without tickets the data connection presents the same certificate")
    func withoutSessions() async throws {
        try await Self.with(.requiresExplicit, tls: { $0.issuesSessionTickets = false }) { server, session in
            try await session.expect(server.url("/a"), "hello")
            #expect(server.counts.transfers == 1)
        }
    }

    @Test("plain ftp uses TLS only if configured; without support the load ends")
    func refused() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            try await withSession(.ephemeral.with { $0.ftp.security = .explicit }) { session in
                await expectFailure(.secureConnectionFailed, .remote, .securing) {
                    try await session.data(from: server.url("/a"))
                }
                #expect(server.commands == ["AUTH TLS"])
            }
        }
    }

    @Test("plain replies before the handshake are discarded (CVE-2011-0411)")
    func injected() async throws {
        try await Self.with(.requiresExplicit) { server, session in
            server.inject(.injectsBeforeTLS)
            await expectFailure(.unexpectedPlaintext, .remote) { try await session.data(from: server.url("/a")) }
        }
    }

    @Test("an untrusted certificate is refused; a decision that accepts it is called once for both connections")
    func untrusted() async throws {
        try await Self.with(.requiresExplicit, change: { $0.tls.trustRoots = .pem("") }) { server, session in
            do {
                _ = try await session.data(from: server.url("/a"))
                Issue.record("no error")
            } catch { #expect(server.commands.filter { $0.hasPrefix("PASS") }.isEmpty) }
        }
        let other = try TestCertificateAuthority(commonName: "Other root")
        let asked = Lock<[String]>([])
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            asked.withLock { $0.append("\(challenge.protectionSpace.scheme) \(challenge.protectionSpace.method)") }
            guard let trust = challenge.serverTrust else { return .performDefaultHandling }
            return .accept(trust)
        }
        for gives in [true, false] {
            asked.withLock { $0 = [] }
            try await Self.with(
                .requiresExplicit, change: { $0.tls.trustRoots = .pem(String(decoding: other.pem, as: UTF8.self)) },
                tls: { $0.issuesSessionTickets = gives }, decisions: decisions
            ) { server, session in
                try await session.expect(server.url("/a"), "hello")
                #expect(asked.withLock { $0 } == ["ftp ServerTrust"], "\(gives)")
            }
        }
    }

    @Test("an end without close_notify is accepted only if the length is known")
    func withoutNotice() async throws {
        try await Self.with(.implicit) { server, session in
            server.inject(.omitsCloseNotify)
            try await session.expect(server.url("/a"), "hello")
            await expectFailure(.truncated) { try await session.data(from: server.url("/")) }
        }
    }
}

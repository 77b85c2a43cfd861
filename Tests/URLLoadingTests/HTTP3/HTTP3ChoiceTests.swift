// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Glibc
import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The choice between HTTP/3 and TCP: a server of HTTP/2 and one of HTTP/3, with one authority.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3ChoiceTests {
    @Test("Where a server has offered HTTP/3, later loads use it; a server that has not is not asked")
    func offered() async throws {
        try await withBoth { server, http3, configuration in
            server.route("/") { _ in .ok("two", headers: ["Alt-Svc": "h3=\":\(http3.port)\"; ma=60"]) }
            server.route("/plain") { _ in .ok("two") }
            try await withSession(configuration) { session in
                try await expect(session, server.url("/plain"), .http2)
                try await expect(session, server.url("/plain"), .http2)
                try await expect(session, server.url("/"), .http2)
                try await untilHTTP3(session, server.url("/"))
                try await expect(session, server.url("/plain"), .http3)
            }
            #expect(http3.counts.accepted == 1)
        }
    }

    @Test("An offer is there for the next session of the same directory, and not for one in memory only")
    func kept() async throws {
        try await withBoth { server, http3, configuration in
            server.route("/") { _ in .ok("two", headers: ["Alt-Svc": "h3=\":\(http3.port)\"; ma=1000"]) }
            server.route("/plain") { _ in .ok("two") }
            let folder = try TemporaryFolder()
            var kept = Configuration.default
            (kept.tls, kept.networks) = (configuration.tls, configuration.networks)
            kept.connections = configuration.connections
            kept.storageDirectory = folder.url("s")
            try await withSession(kept) { session in
                try await expect(session, server.url("/"), .http2)
                await session.hsts?.flush()
            }
            // Not the store that the first session had in memory.
            let store = HSTSStore(directory: folder.url("s"))
            var later = configuration
            later.hsts.storage = .store(store)
            try await withSession(later) { session in try await untilHTTP3(session, server.url("/plain")) }
            try await withSession(configuration) { session in
                for _ in 0..<3 { try await expect(session, server.url("/plain"), .http2) }
            }
            store.removeAll()
            try await withSession(later) { session in try await expect(session, server.url("/plain"), .http2) }
        }
    }

    @Test("An offer over http is not believed") func clear() async throws {
        try await withHTTPTestServer { server in
            server.route("/") { _ in .ok("one", headers: ["Alt-Svc": "h3=\":443\"; ma=1000"]) }
            try await withSession(Configuration.ephemeral) { session in
                _ = try await session.data(from: server.url("/"))
                let store = try #require(session.hsts?.alternatives)
                let port = UInt16(try #require(server.url("/").port))
                for scheme in ["http", "https"] {
                    let host = try Origin.Host(try #require(server.url("/").host()))
                    #expect(!store.knows(try Origin(scheme: scheme, host: host, port: port)))
                }
            }
        }
    }

    @Test("Where HTTP/3 is preferred, loads use it without an offer") func preferred() async throws {
        try await withBoth(samePort: true) { server, _, configuration in
            server.route("/") { _ in .ok("two") }
            var configuration = configuration
            configuration.connections.httpVersions = .http3Preferred
            try await withSession(configuration) { session in
                try await untilPreferred(session, server.url("/"))
                try await expect(session, server.url("/"), .http3)
            }
        }
    }

    @Test(
        "An offer that lies fails no load: no server, one that does not answer, one with a wrong certificate",
        arguments: Lie.allCases)
    func lies(lie: Lie) async throws {
        try await withBoth { server, http3, configuration in
            let silent = try Unanswered()
            let strange = try HTTP3TestServer(.init(TestCertificateAuthority(commonName: "Elsewhere").issue()))
            strange.start()
            let port =
                switch lie {
                case .noServer: try Unanswered.freePort()
                case .silence: silent.port
                case .strangeCertificate: strange.port
                }
            server.route("/") { _ in .ok("two", headers: ["Alt-Svc": "h3=\":\(port)\""]) }
            try await withSession(configuration) { session in
                for _ in 0..<5 { try await expect(session, server.url("/"), .http2) }
            }
            await strange.stop()
            #expect(http3.counts.accepted == 0)
        }
    }
    enum Lie: CaseIterable { case noServer, silence, strangeCertificate }

    @Test("A load with a decision about challenges takes TCP, and the trace says so") func decision() async throws {
        try await withBoth(samePort: true) { server, http3, configuration in
            server.route("/") { _ in .ok("two") }
            var configuration = configuration
            configuration.connections.httpVersions = .http3Preferred
            let reasons = Watched<[String]>([])
            configuration.wireTap = { event in
                if case .tookTCP(let reason) = event { reasons.change { $0.append(reason) } }
            }
            try await withSession(configuration) { session in
                var decisions = Decisions()
                decisions.challenge = Decision { _ in .performDefaultHandling }
                let (_, response) = try await session.data(for: Request(url: server.url("/")), decisions: decisions)
                #expect(response.http?.version == .http2)
            }
            #expect(reasons.value.count == 1 && http3.counts.accepted == 0)
        }
    }

    @Test("Loads that were begun at once share the connection over HTTP/3") func together() async throws {
        try await withBoth(samePort: true) { server, http3, configuration in
            server.route("/") { _ in .ok("two") }
            var configuration = configuration
            configuration.connections.httpVersions = .http3Preferred
            try await withSession(configuration) { session in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<50 {
                        // On a busy machine the handshake may take longer than loads wait.
                        group.addTask { _ = try await session.data(from: server.url("/")) }
                    }
                    try await group.waitForAll()
                }
            }
            #expect(http3.counts.accepted == 1)
        }
    }

    /// As `untilHTTP3`, also where a handshake takes so long that the attempt fails, after which the origin would rest.
    private func untilPreferred(_ session: Session, _ url: URL) async throws {
        while try await session.data(from: url).1.http?.version != .http3 { session.hsts?.removeAll() }
    }

    /// Loads until a connection over HTTP/3 is made: on a busy machine the handshake takes longer than loads wait.
    private func untilHTTP3(_ session: Session, _ url: URL) async throws {
        while try await session.data(from: url).1.http?.version != .http3 { await Task.yield() }
    }

    private func expect(_ session: Session, _ url: URL, _ version: HTTPVersion) async throws {
        let (_, response) = try await session.data(from: url)
        #expect(response.http?.version == version)
    }
}

/// A port of the loopback address whose datagrams are not read.
private final class Unanswered {
    let port: UInt16
    private let descriptor: Int32

    init() throws { (descriptor, port) = try DatagramSockets.bound() }

    deinit { close(descriptor) }

    static func freePort() throws -> UInt16 { try Unanswered().port }
}

#endif

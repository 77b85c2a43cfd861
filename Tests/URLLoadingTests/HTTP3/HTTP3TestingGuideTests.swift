// SPDX-License-Identifier: Apache-2.0

// The examples of "A server of HTTP/3" in docs/guides/testing.md, compiled and run. A change of one is repeated here.

#if HTTP3

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HTTP3TestingGuideTests {
    @Test("The example of routes and scripts") func routes() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        configuration.connections.httpVersions = .http3PriorKnowledge
        try await withHTTP3TestServer(.init(try authority.issue())) { server in
            server.route("/hello") { request in .ok("Hello, \(request.headers[.userAgent] ?? "you")") }
            server.script(onConnection: 2) { peer in
                try await peer.start()  // the streams of a server, and SETTINGS
                let request = try await peer.expectRequest()
                try await peer.respond(to: request.stream, .ok, body: Array("half".utf8), endStream: false)
                peer.reset(request.stream, .internalError)
                await peer.untilClosed()
            }
            try await withSession(configuration) { session in
                let (_, response) = try await session.data(from: server.url("/hello"))
                #expect(response.http?.version == .http3)
                server.close()  // the next load needs another connection
                try await server.wait { $0.open == 0 }
                await #expect(throws: LoadError.self) { try await session.data(from: server.url("/hello")) }
            }
            #expect(server.failures.isEmpty)  // the client kept the rules
        }
    }

    @Test("The examples of faults and of a relay") func faults() async throws {
        try await withHTTP3 { server, session in
            func use(_ url: URL) async throws -> String {
                session.closeIdleConnections()
                return String(decoding: try await session.data(from: url).0, as: UTF8.self)
            }
            for fault in HTTP3Fault.oddities where fault.outcome == .succeeds {
                server.inject(fault)
                let text = try await use(server.url())
                #expect(text == "ok" || fault.outcome != .succeeds, "\(fault)")
            }
            server.removeScripts()
            var network = DatagramFaults(seed: 1)
            (network.loss, network.reordering) = (0.05, 0.05)
            let relay = try DatagramRelay(to: server.port, client: network, server: network)
            defer { relay.stop() }
            let url = try #require(URL(string: "https://localhost:\(relay.port)/"))
            let text = try await use(url)
            #expect(text == "hello")
        }
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

/// HTTP/2 with nginx, Apache and nghttpd, over TLS and with prior knowledge.
@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct HTTP2Tests {
    private static let servers = ["NGINX_H2", "APACHE_H2", "NGHTTPD", "NGINX_H2C", "APACHE_H2C", "NGHTTPD_H2C"]

    private func configuration(_ server: String) -> Configuration {
        var configuration = Servers.configuration
        if server.hasSuffix("C") { configuration.connections.httpVersions = .http2PriorKnowledge }
        return configuration
    }

    @Test("A body is loaded", arguments: servers)
    func get(_ server: String) async throws {
        try await withSession(configuration(server)) { session in
            for _ in 0..<3 {
                let (data, response) = try await session.data(from: Servers.url(server, "/1k.txt"))
                #expect(response.http?.status == .ok && response.http?.version == .http2)
                #expect(data == Servers.numbers(128))
            }
            let (large, _) = try await session.data(from: Servers.url(server, "/1m.bin"))
            #expect(large.count == 1_000_000)
            let (_, missing) = try await session.data(from: Servers.url(server, "/nope"))
            #expect(missing.http?.status.code == 404)
            #expect(session.connectionsDescription.contains("h2 "))
        }
    }

    @Test("Many concurrent loads share a connection", arguments: servers)
    func manyAtOnce(_ server: String) async throws {
        var configuration = configuration(server)
        // The idle time of a load runs while the others receive: on a busy machine 60 MB take long.
        configuration.timeouts.idle = .seconds(120)
        try await withSession(configuration) { session in
            let url = try Servers.url(server, "/1m.bin")
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<60 { group.addTask { try await session.data(from: url).0.count } }
                for try await count in group { #expect(count == 1_000_000) }
            }
        }
    }

    @Test("A server that ends each connection after three requests serves 500, 50 at a time")
    func shortConnections() async throws {
        try await withSession(configuration("NGINX_H2_THREE")) { session in
            let url = try Servers.url("NGINX_H2_THREE", "/1k.txt")
            var connections: Set<String> = []
            try await withThrowingTaskGroup(of: String?.self) { group in
                for number in 0..<500 {
                    if number >= 50, let connection = try await group.next() { connections.insert(connection ?? "") }
                    group.addTask {
                        let (data, response) = try await session.data(from: url)
                        #expect(data.count == 1024)
                        return response.http?.headers["X-Connection"]
                    }
                }
                for try await connection in group { connections.insert(connection ?? "") }
            }
            // 500 requests of three fill 167; the most is one for each request.
            #expect((167...500).contains(connections.count))
        }
    }

    @Test("A request that needed HTTP/1.1 does not keep later ones from sharing a connection")
    func afterUpgrade() async throws {
        try await withSession(configuration("NGINX_H2")) { session in
            let url = try Servers.url("NGINX_H2", "/1k.txt")
            var old = Request(url: url)
            (old.headers["Upgrade"], old.headers[.connection]) = ("chat", "Upgrade")
            #expect(try await session.data(for: old).1.http?.version == .http11)
            let count = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<20 { group.addTask { try await session.data(from: url).1.http?.version == .http2 } }
                var count = 0
                for try await isHTTP2 in group where isHTTP2 { count += 1 }
                return count
            }
            // Some may have used the connection that was there, one after the other, until there was another.
            #expect(count > 0)
            let shown = session.connectionsDescription
            #expect(shown.ranges(of: "h2 ").count == 1, "\(shown)")
        }
    }

    @Test("HEAD has no body", arguments: servers)
    func head(_ server: String) async throws {
        try await withSession(configuration(server)) { session in
            let request = Request(url: try Servers.url(server, "/1m.bin"), method: .head)
            let (data, response) = try await session.data(for: request)
            #expect(data.isEmpty && response.http?.headers[.contentLength] == "1000000")
        }
    }

    @Test("A body is sent and returned", arguments: ["NGHTTPD", "NGHTTPD_H2C"])
    func echo(_ server: String) async throws {
        try await withSession(configuration(server)) { session in
            let body = Servers.numbers(100_000)
            let request = Request(url: try Servers.url(server, "/"), method: .post, body: .data(body))
            let (data, _) = try await session.data(for: request)
            #expect(data == body)
        }
    }

    @Test("Servers without HTTP/2 are used with HTTP/1.1") func serversWithoutItAreSpokenToAsBefore() async throws {
        try await withSession(Servers.configuration) { session in
            let (_, response) = try await session.data(from: Servers.url("NGINX_TLS", "/1k.txt"))
            #expect(response.http?.version == .http11)
        }
        var only = Servers.configuration
        only.connections.httpVersions = .http1Only
        try await withSession(only) { session in
            let (_, response) = try await session.data(from: Servers.url("NGINX_H2", "/1k.txt"))
            #expect(response.http?.version == .http11)
        }
    }

    @Test("Prior knowledge of HTTP/2 fails with a server of HTTP/1.1")
    func priorKnowledgeOfOthers() async throws {
        var configuration = Servers.configuration
        configuration.connections.httpVersions = .http2PriorKnowledge
        try await withSession(configuration) { session in
            let error = try await failure(session, Request(url: try Servers.url("NGINX", "/1k.txt")))
            #expect(error.reason == .notHTTP2 || error.reason == .connectionLost, "\(error)")
        }
    }
}

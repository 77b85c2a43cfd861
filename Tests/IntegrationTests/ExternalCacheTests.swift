// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// The example of docs/guides/external-cache.md with a Redis server.
@Suite(.enabled(if: Servers.variable("REDIS") != nil, Servers.areMissing), .timeLimit(.minutes(4)))
struct ExternalCacheTests {
    /// A busy machine is no silent server, and no slow store.
    private static let patience = Duration.seconds(120)

    private func store(
        _ prefix: String = "\(UInt64.random(in: 0 ... .max)):", of server: String = "REDIS"
    ) throws -> RedisResponseStore {
        let port = try #require(Servers.variable(server).flatMap { Int($0) })
        return RedisResponseStore(host: "127.0.0.1", port: port, prefix: prefix, patience: Self.patience)
    }

    private func configuration(_ store: RedisResponseStore) -> Configuration {
        var configuration = Servers.configuration
        configuration.caching.external = ExternalCache(store)
        configuration.caching.external?.timeout = Self.patience
        // A look-up waits no longer than for the idle timeout either. After eight that are late, nothing is stored for
        // two seconds.
        configuration.timeouts.idle = Self.patience
        return configuration
    }

    private func metrics(_ session: Session, _ kind: String) -> Int {
        let line = session.openMetrics().split(separator: "\n").first { $0.contains("\"\(kind)\"}") }
        return line.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) } ?? -1
    }

    private func settled(_ session: Session) async throws {
        // Nothing notifies of a change that has been made.
        try await eventually(session.openMetrics()) { $0.contains("\nurlloading_loads 0\n") }
    }

    @Test("The guide has the code that this test runs")
    func code() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let code = try String(contentsOf: folder.appending(path: "RedisResponseStore.swift"), encoding: .utf8)
        let guide = try String(
            contentsOf: folder.appending(path: "../../docs/guides/external-cache.md"), encoding: .utf8)
        let shown = try #require(code.firstRange(of: "/// Keeps responses in Redis"))
        #expect(guide.contains(code[shown.lowerBound...]))
    }

    @Test("A response is kept in Redis for as long as it is of use, and found by another session and connection")
    func kept() async throws {
        try await withHTTPTestServer { origin in
            let body = [UInt8]((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
            origin.route("/") { _ in .ok(.bytes(body), headers: [.cacheControl: "max-age=60"]) }
            let prefix = "\(UInt64.random(in: 0 ... .max)):"
            let first = try store(prefix)
            try await withSession(configuration(first)) { session in
                let (data, _) = try await session.data(from: origin.url())
                #expect(data == Data(body))
                try await settled(session)
            }
            let keys = try await first.send("EVAL", "return redis.call('KEYS', ARGV[1])[1]", "0", prefix + "*")
            let key = try #require(keys.map { String(decoding: $0, as: UTF8.self) })
            let expiry = try await first.send("EVAL", "return tostring(redis.call('TTL', ARGV[1]))", "0", key)
            let seconds = try #require(expiry.flatMap { Int(String(decoding: $0, as: UTF8.self)) })
            #expect((1...60).contains(seconds))
            try await withSession(configuration(try store(prefix))) { session in
                let (data, _) = try await session.data(from: origin.url())
                #expect(data == Data(body))
                _ = try await session.data(for: Request(url: origin.url(), method: .post))
                try await settled(session)
            }
            #expect(origin.requests.count == 2)
            let removed = try await first.send("GET", key)
            #expect(removed == nil)
        }
    }

    @Test("Many loads share one connection, and each gets its own response")
    func pipelined() async throws {
        try await withHTTPTestServer { origin in
            // The time for which a load has waited on a busy machine counts as age (RFC 9111 §4.2.3).
            origin.route("/*") { .ok($0.path, headers: [.cacheControl: "max-age=6000"]) }
            let prefix = "\(UInt64.random(in: 0 ... .max)):"
            for round in 0..<2 {
                try await withSession(configuration(try store(prefix))) { session in
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for number in 0..<200 {
                            group.addTask {
                                let data = try await session.data(from: origin.url("/\(number)")).0
                                #expect(data == Data("/\(number)".utf8))
                            }
                        }
                        try await group.waitForAll()
                    }
                    try await settled(session)
                    let counts = session.openMetrics().split(separator: "\n").filter { $0.contains("external") }
                    #expect(metrics(session, round == 0 ? "stored" : "found") == 200, "\(counts)")
                }
            }
            #expect(origin.requests.count == 200)
        }
    }

    @Test("A connection that Redis closes is made anew, and the loads meanwhile go to the server")
    func reconnected() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok($0.path, headers: [.cacheControl: "max-age=60"]) }
            let store = try store()
            try await withSession(configuration(store)) { session in
                for number in 0..<5 {
                    let (data, _) = try await session.data(from: origin.url("/\(number)"))
                    #expect(data == Data("/\(number)".utf8))
                    try await settled(session)
                    // Redis closes the connection after its reply. The next command fails, or has a new connection.
                    _ = try? await store.send("QUIT")
                    _ = try? await store.send("PING")
                }
                for number in 0..<5 {
                    let (data, _) = try await session.data(from: origin.url("/\(number)"))
                    #expect(data == Data("/\(number)".utf8))
                }
                #expect(origin.requests.count == 5 && metrics(session, "found") == 5)
            }
        }
    }

    @Test("With a server that is full, loads go to the network")
    func full() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok($0.path, headers: [.cacheControl: "max-age=60"]) }
            try await withSession(configuration(try store(of: "REDIS_FULL"))) { session in
                for number in 0..<20 {
                    let (data, _) = try await session.data(from: origin.url("/\(number)"))
                    #expect(data == Data("/\(number)".utf8))
                }
                try await settled(session)
                #expect(metrics(session, "stored") == 0 && metrics(session, "failed") >= 4)
            }
        }
    }

    @Test("Without a server loads go to the network")
    func missing() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok($0.path, headers: [.cacheControl: "max-age=60"]) }
            let none = RedisResponseStore(host: "127.0.0.1", port: 1)
            try await withSession(configuration(none)) { session in
                for number in 0..<20 {
                    let (data, _) = try await session.data(from: origin.url("/\(number)"))
                    #expect(data == Data("/\(number)".utf8))
                }
                #expect(metrics(session, "found") == 0 && metrics(session, "failed") >= 4)
            }
        }
    }

    @Test("A body of 1 GiB is not stored, and does not stay in memory")
    func large() async throws {
        let store = try store()
        try await withSession(configuration(store)) { session in
            var count = 0
            try await session.load(Request(url: try Servers.url("NGINX", "/1g.bin"))) { response, body in
                #expect(response.headers[.lastModified] != nil)
                for try await chunk in body { count += chunk.count }
            }
            #expect(count == 1 << 30)
            #expect(metrics(session, "too_large") == 1 && metrics(session, "stored") == 0)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// Waterfalls of real loads, and of rows that were made.

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct WaterfallTests {
    /// Collects the metrics of a session's loads.
    private final class Collector: LoadObserver {
        private let all = Lock<[LoadMetrics]>([])
        var metrics: [LoadMetrics] { all.withLock { $0 } }
        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            if case .metrics(let metrics) = event { all.withLock { $0.append(metrics) } }
        }
    }

    /// Loads in a session of its own, and returns what came of it.
    private func waterfall(
        _ change: (inout Configuration) -> Void = { _ in },
        _ load: nonisolated(nonsending) (Session) async throws -> Void
    ) async throws -> Waterfall {
        let collector = Collector()
        var configuration = Configuration.ephemeral
        change(&configuration)
        configuration.observers = [collector]
        try await withSession(configuration) { try await load($0) }
        let waterfall = Waterfall(collector.metrics)
        for row in waterfall.rows {
            #expect(!row.spans.isEmpty && row.duration >= .zero, "\(row)")
            #expect(zip(row.spans, row.spans.dropFirst()).allSatisfy { $0.end <= $1.start }, "\(row.spans)")
            #expect(row.end <= waterfall.duration)
        }
        return waterfall
    }

    @Test("a redirect is followed in a row of its own, on the same connection")
    func redirect() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            origin.route("/next") { _ in .ok("hello") }
            let waterfall = try await waterfall { _ = try await $0.data(from: origin.url()) }
            #expect(waterfall.rows.map(\.marks) == [[], [.redirect]])
            #expect(waterfall.rows.map { $0.status?.code } == [302, 200])
            #expect(waterfall.rows.map(\.transaction) == [0, 1] && waterfall.rows.map(\.load) == [0, 0])
            #expect(waterfall.connections.count == 1 && waterfall.connections.first?.laneCount == 1)
            #expect(waterfall.rows[0].spans.contains { $0.stage == .connect })
            #expect(!waterfall.rows[1].spans.contains { $0.stage == .connect })
            #expect(waterfall.rows[1].bytes == 5 && waterfall.rows[1].protocolName == "http/1.1")
        }
    }

    @Test("the answer to a challenge is marked, and hides its credential")
    func challenge() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                request.headers[.authorization] == nil
                    ? .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=x"]) : .ok("in")
            }
            let url = try #require(
                URL(string: origin.url("/?token=s3cret").absoluteString.replacing("://", with: "://ada:s3cret@")))
            let waterfall = try await waterfall { _ = try await $0.data(from: url) }
            #expect(waterfall.rows.map(\.marks) == [[], [.challenge]])
            #expect(waterfall.rows.last?.requestHeaders[.authorization] == "(removed)")
            #expect(!"\(waterfall)".contains("s3cret"), "\(waterfall)")
        }
    }

    @Test("a retry is marked")
    func retry() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { $0.exchange == 1 ? .status(.serviceUnavailable) : .ok("now") }
            let waterfall = try await waterfall {
                var policy = RetryPolicy()
                policy.statuses = RetryPolicy.transientStatuses
                policy.backoff = .constant(.zero)
                $0.retries.policy = policy
            } _: {
                _ = try await $0.data(from: origin.url())
            }
            #expect(waterfall.rows.map(\.marks).last == [.retry], "\(waterfall.rows.map(\.marks))")
        }
    }

    @Test("a response from the cache has no connection; a validation is not a retry")
    func cache() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/fresh") { _ in .ok("fresh", headers: [.cacheControl: "max-age=60"]) }
            origin.route("/stale") { request in
                request.headers[.ifNoneMatch] == nil
                    ? .ok("stale", headers: [.cacheControl: "no-cache", .etag: "\"1\""])
                    : .status(.notModified, headers: [.etag: "\"1\""])
            }
            let waterfall = try await waterfall {
                $0.caching.store = ResponseCache(memoryCapacity: 1 << 20)
            } _: { session in
                for _ in 0..<2 {
                    for path in ["/fresh", "/stale"] { _ = try await session.data(from: origin.url(path)) }
                }
            }
            #expect(waterfall.rows.map(\.marks) == [[], [], [.cache], [], [.cache]])
            #expect(waterfall.rows.map { $0.connection == nil } == [false, false, true, false, true])
            #expect(waterfall.rows.map { $0.status?.code } == [200, 200, 200, 304, 200])
            #expect(waterfall.rows[2].spans.map(\.stage) == [.receiving])
        }
    }

    @Test("a failure names its reason, and the stage it happened in lasts to the end")
    func failure() async throws {
        let waterfall = try await waterfall {
            $0.networks.resolver = RecordingResolver(.failure(IOFailure(.hostNotFound("nowhere.example"), .resolve)))
        } _: { session in
            _ = try? await session.data(from: URL(string: "http://nowhere.example/")!)
        }
        let row = try #require(waterfall.rows.first)
        #expect(row.marks == [.failure] && row.error == "hostNotFound" && row.status == nil && row.connection == nil)
        #expect(row.spans.last?.stage == .lookup)
    }

    @Test("streams that share a connection at one time have lanes of their own")
    func streams() async throws {
        try await withHTTP2TestServer { server in
            server.route("/*") { _ in .ok(.chunks([.pause(.milliseconds(50)), "done"])) }
            let waterfall = try await waterfall {
                $0.connections.httpVersions = .http2PriorKnowledge
            } _: { session in
                try await session.expect(server.url("/0"), "done")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 1...3 { group.addTask { try await session.expect(server.url("/\(number)"), "done") } }
                    try await group.waitForAll()
                }
            }
            #expect(waterfall.connections.count == 1)
            #expect(waterfall.connections.first?.protocolName == "h2" && waterfall.connections.first?.laneCount == 3)
            #expect(waterfall.rows.map(\.lane) == [0, 0, 1, 2])
        }
    }

    // MARK: Made rows

    private func row(_ url: String, _ spans: (Waterfall.Stage, Int, Int)..., connection: Int? = 1) -> Waterfall.Row {
        Waterfall.Row(
            .get, url, connection: connection,
            spans: spans.map { .init($0.0, from: .milliseconds($0.1), to: .milliseconds($0.2)) })
    }

    @Test("rows are ordered by their starts, connections by their first use; the slowest is named")
    func order() {
        let waterfall = Waterfall(rows: [
            row("/c", (.waiting, 30, 40), connection: 1), row("/a", (.waiting, 0, 10), connection: 2),
            row("/b", (.waiting, 10, 35), connection: nil),
        ])
        #expect(waterfall.rows.map(\.url) == ["/a", "/b", "/c"])
        #expect(waterfall.connections.map(\.id) == [2, nil, 1])
        #expect(waterfall.slowest?.url == "/b" && waterfall.duration == .milliseconds(40))
        #expect(Waterfall(rows: []).slowest == nil && Waterfall(rows: []).duration == .zero)
    }

    @Test("a request that waits for the connection of another is in the same lane, and frees it for the next")
    func lanes() {
        let waterfall = Waterfall(rows: [
            row("/first", (.waiting, 0, 20)), row("/queued", (.queued, 5, 20), (.waiting, 20, 30)),
            row("/beside", (.waiting, 6, 8)), row("/later", (.waiting, 9, 12)),
        ])
        #expect(waterfall.rows.map { "\($0.url) \($0.lane)" } == ["/first 0", "/queued 0", "/beside 1", "/later 1"])
        #expect(waterfall.connections.first?.laneCount == 2)
    }

    @Test("a row without stages, and fields with secrets of other programs")
    func made() {
        let row = Waterfall.Row(
            .get, "/", spans: [],
            requestHeaders: ["Cookie": "a=s3cret", "X-Api-Key": "s3cret", "Referer": "http://a/?token=s3cret"])
        #expect(row.start == .zero && row.duration == .zero)
        #expect(!"\(Waterfall(rows: [row]))".contains("s3cret"))
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Idle connections: their reuse, their end, and a peer that has closed one first.
@Suite(.timeLimit(.minutes(4)))
struct ReuseRows {
    @Test("a connection is kept after a body of any framing")
    func keepAlive() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/bytes") { _ in .ok("x") }
            origin.route("/chunks") { _ in .ok(.chunks(["x", "y"], trailers: ["A": "b"])) }
            origin.route("/none") { _ in .status(.noContent) }
            origin.route("/304") { _ in .status(.notModified) }
            origin.route("/hint") { _ in .ok("x").after(.init(.earlyHints)) }
            origin.route("/large") { _ in .ok(.repeated(count: 1 << 20)) }
            try await withSession(.ephemeral) { session in
                for path in ["/bytes", "/chunks", "/none", "/304", "/hint", "/large", "/404"] {
                    for method in [Method.get, .head, .post, "PURGE"] {
                        _ = try await session.data(for: Request(url: origin.url(path), method: method))
                    }
                }
                #expect(
                    session.connectionsDescription
                        == "http://127.0.0.1:\(origin.port) 0 connecting 0 leased 1 idle 0 waiting")
            }
            #expect(origin.counts.accepted == 1)
            #expect(origin.requests.last?.exchange == 28)
        }
    }

    @Test("a connection that either side wants to close is not kept")
    func close() async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            origin.route("/close") { _ in .ok("x", headers: [.connection: "keep-alive, Close"]) }
            origin.route("/old") { _ in .raw(["HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"], then: .next) }
            origin.route("/oldkept") { _ in
                .raw(["HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx"], then: .next)
            }
            try await withSession(.ephemeral) { session in
                try await session.expect(origin.url("/close"), "x")
                try await session.expect(origin.url("/old"), "x")
                try await session.expect(Request(url: origin.url(), headers: [.connection: "close"]), "x")
                try await session.expect(origin.url("/oldkept"), "x")
                try await session.expect(origin.url(), "x")
            }
            #expect(origin.requests.map(\.connection) == [1, 2, 3, 4, 4])
            try await withSession(.ephemeral.with { $0.connections.idleLifetime = .zero }) { session in
                try await session.expect(origin.url(), "x")
                try await session.expect(origin.url(), "x")
                #expect(session.connectionsDescription == "empty")
            }
            #expect(origin.counts.accepted == 6)
        }
    }

    @Test("idle connections are closed when their time is over, and when there are too many")
    func reaping() async throws {
        try await withHTTPTestServer(answering: "x") { first in
            try await withHTTPTestServer(answering: "x") { second in
                var configuration = Configuration.ephemeral
                configuration.connections.idleLifetime = .milliseconds(30)
                try await withSession(configuration) { session in
                    try await session.expect(first.url(), "x")
                    try await first.wait { $0.open == 0 }
                    #expect(session.connectionsDescription == "empty")
                    try await session.expect(first.url(), "x")
                    try await first.wait { $0.open == 0 }
                    #expect(first.counts.accepted == 2)
                }
                configuration = .ephemeral
                configuration.connections.maximumIdle = 1
                try await withSession(configuration) { session in
                    try await session.expect(first.url(), "x")
                    try await session.expect(second.url(), "x")
                    try await first.wait { $0.open == 0 }
                    #expect(second.counts.open == 1)
                }
            }
        }
    }

    @Test(
        "a connection that the peer closed between two exchanges is noticed without a retry",
        arguments: [HTTPTestServer.Fault.Effect.close, .reset, .cut])
    func closedBetween(_ effect: HTTPTestServer.Fault.Effect) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.connection)") }
            origin.inject(.init(.idle, effect))
            try await withSession(.ephemeral) { session in
                for number in 1...3 {
                    // A POST is not retried, so its arrival shows that no attempt preceded it.
                    try await session.expect(Request(url: origin.url(), method: .post), "\(number)")
                    try await origin.wait { $0.open == 0 }
                    try await pollerHasRun()
                }
            }
            #expect(origin.counts.requests == 3)
        }
    }

    /// The server reads the second request of a connection and closes.
    private func withStaleOrigin(_ use: nonisolated(nonsending) (HTTPTestServer, Session) async throws -> Void)
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.connection)") }
            origin.route("/stale") { request in
                request.exchange == 1 ? .ok("\(request.connection)") : .raw([], then: .reset)
            }
            try await withSession(.ephemeral) { try await use(origin, $0) }
        }
    }

    @Test(
        "an idempotent request that met a stale connection is retried once, on a new one",
        arguments: [Method.get, .head, .put, .delete, .options])
    func retried(_ method: Method) async throws {
        try await withStaleOrigin { origin, session in
            try await session.expect(origin.url(), "1")
            let body: RequestBody? =
                method == .put
                ? .stream {
                    AsyncStream<[UInt8]> {
                        $0.yield([1, 2, 3])
                        $0.finish()
                    }
                } : nil
            let (data, _) = try await session.data(for: Request(url: origin.url("/stale"), method: method, body: body))
            #expect(data == Data((method == .head ? "" : "2").utf8))
            #expect(origin.requests.map(\.path) == ["/", "/stale", "/stale"])
            #expect(origin.requests.last?.bodyCount == (method == .put ? 3 : 0))
        }
    }

    @Test("a load that has replaced a stale connection repeats its request on the new one")
    func repeatedOnNewConnection() async throws {
        try await withStaleOrigin { origin, session in
            origin.route("/stale") { request in
                request.exchange > 1 && request.connection == 1
                    ? .raw([], then: .reset)
                    : request.headers.contains(.authorization)
                        ? .ok("\(request.connection)")
                        : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"a\""])
            }
            try await session.expect(origin.url(), "1")
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "secret")) }
            let (data, _) = try await session.data(for: Request(url: origin.url("/stale")), decisions: decisions)
            #expect(String(decoding: data, as: UTF8.self) == "2")
            #expect(origin.counts.accepted == 2)
        }
    }

    @Test("a connection whose load sent nothing is replaced for the next load, as any other that turns out to be stale")
    func staleWithoutUse() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { $0.connection == 1 ? .raw([], then: .reset) : .ok("\($0.connection)") }
            try await withSession(.ephemeral) { session in
                var decisions = Decisions()
                decisions.sign = Decision { _ in throw CancellationError() }
                await expectFailure(.decisionFailed) {
                    try await session.data(for: Request(url: origin.url()), decisions: decisions)
                }
                try await session.expect(origin.url(), "2")
            }
            #expect(origin.requests.map(\.connection) == [1, 2])
        }
    }

    @Test(
        "a request that is not idempotent is not retried on a stale connection",
        arguments: [Method.post, .patch, "LOCK"])
    func notRetried(_ method: Method) async throws {
        try await withStaleOrigin { origin, session in
            try await session.expect(origin.url(), "1")
            await expectFailure(.connectionLost, .remote) {
                try await session.data(for: Request(url: origin.url("/stale"), method: method))
            }
            #expect(origin.requests.map(\.path) == ["/", "/stale"])
        }
    }

    @Test("a stale connection causes one retry, none on a new connection and none after a byte of a response")
    func onlyOnce() async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            origin.route("/never") { _ in .raw([], then: .close) }
            origin.route("/begun") { $0.exchange == 1 ? .ok("x") : .raw(["HTTP/1.1 2"], then: .close) }
            try await withSession(.ephemeral) { session in
                try await session.expect(origin.url(), "x")
                await expectFailure(.connectionLost, .remote, .waiting) {
                    try await session.data(from: origin.url("/never"))
                }
                #expect(origin.requests.count { $0.path == "/never" } == 2)
                await expectFailure(.connectionLost, .remote, .waiting) {
                    try await session.data(from: origin.url("/never"))
                }
                #expect(origin.requests.count { $0.path == "/never" } == 3)
                try await session.expect(origin.url(), "x")
                await expectFailure(.truncated, .remote, .waiting) {
                    try await session.data(from: origin.url("/begun"))
                }
                #expect(origin.requests.count { $0.path == "/begun" } == 1)
            }
        }
    }

    @Test(
        "an early response to a large upload is delivered, and the upload aborted",
        arguments: [HTTPTestServer.Response.Script.Ending.close, .reset, .stall])
    func earlyAnswer(_ ending: HTTPTestServer.Response.Script.Ending) async throws {
        try await withHTTPTestServer { origin in
            let answer: HTTPTestServer.Response.Piece = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"
            // Time for the response to arrive before the reset, which discards bytes that are not sent yet.
            origin.route("/", readsBody: false) { _ in
                .raw([answer, .pause(.milliseconds(ending == .reset ? 20 : 0))], then: ending)
            }
            let bodies: [RequestBody] = [
                .data(Data(count: 32 << 20)),
                .stream { AsyncStream<[UInt8]>(unfolding: { [UInt8](repeating: 1, count: 100_000) }) },
            ]
            for body in bodies {
                try await withSession(.ephemeral) { session in
                    let (data, response) = try await session.data(
                        for: Request(url: origin.url(), method: .post, body: body))
                    #expect(response.http?.status == .contentTooLarge)
                    #expect(data == Data("big".utf8))
                    // Half a request was sent on the connection, so no other may follow.
                    #expect(session.connectionsDescription == "empty")
                }
            }
            #expect(origin.counts.accepted == 2)
            origin.releaseStalls()
        }
    }

    @Test("an unread body closes its connection, unless the rest has arrived already")
    func unread() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/large") { _ in .ok(.repeated(count: 8 << 20)) }
            origin.route("/small") { _ in .ok("small") }
            origin.route("/waiting", faults: [.init(.responseBody(after: 2), .stall)]) { _ in .ok("small") }
            try await withSession(.ephemeral) { session in
                for path in ["/small", "/small"] { try await session.load(Request(url: origin.url(path))) { _, _ in } }
                #expect(origin.counts.accepted == 1)
                try await session.load(Request(url: origin.url("/large"))) { _, body in
                    for try await _ in body { break }
                }
                #expect(session.connectionsDescription == "empty")
                try await origin.wait { $0.open == 0 }
                try await session.load(Request(url: origin.url("/waiting"))) { _, _ in }
                try await origin.wait { $0.open == 0 }
                try await session.expect(origin.url("/small"), "small")
            }
            #expect(origin.counts.accepted == 3)
        }
    }

    @Test("a body follows the 100 that its Expect field asks for")
    func expectContinue() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.bodyCount)") }
            try await withSession(.ephemeral) { session in
                for _ in 1...2 {
                    try await session.expect(
                        Request(
                            url: origin.url(), method: .put, headers: [.expect: "100-continue"],
                            body: .data(Data(count: 100_000))), "100000")
                }
            }
            #expect(origin.counts.accepted == 1)
        }
    }
}

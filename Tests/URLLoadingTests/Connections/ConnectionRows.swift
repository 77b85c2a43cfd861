// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Checklist 21 and 22: the number of connections, and their timeouts.
@Suite(.timeLimit(.minutes(4)))
struct ConnectionRows {
    @Test("there are never more connections to one host than the maximum (checklist 21)", arguments: [1, 3])
    func maximumConnections(_ maximum: Int) async throws {
        try await withHTTPTestServer { origin in
            let latch = Latch()
            origin.route("/*") { request in
                await latch.wait()
                return request.path.hasSuffix("7") ? .ok("x", headers: [.connection: "close"]) : .ok("x")
            }
            try await withSession(.ephemeral.with { $0.connections.maximumPerHost = maximum }) { session in
                try await withThrowingTaskGroup { group in
                    for number in 0..<30 { group.addTask { try await session.text(origin.url("/\(number % 6)")) } }
                    try await origin.wait { $0.requests == maximum }
                    latch.open()
                    try await group.waitForAll()
                }
                #expect(origin.counts.mostOpen == maximum)
                #expect(origin.counts.accepted == maximum)
                #expect(origin.counts.requests == 30)
                // Closed connections make room for waiters.
                try await withThrowingTaskGroup { group in
                    for _ in 0..<10 { group.addTask { try await session.text(origin.url("/7")) } }
                    try await group.waitForAll()
                }
                #expect(origin.counts.requests == 40)
            }
        }
    }

    @Test("a waiting load that is cancelled passes its turn to the next waiter (checklist 21)")
    func cancelledWaiter() async throws {
        try await withHTTPTestServer { origin in
            let latch = Latch()
            origin.route("/") { _ in
                await latch.wait()
                return .ok("x")
            }
            try await withSession(.ephemeral.with { $0.connections.maximumPerHost = 1 }) { session in
                let loads = (0..<5).map { _ in Task { try await session.text(origin.url()) } }
                try await origin.wait { $0.requests == 1 }
                try await session.eventuallyConnections { $0.contains("4 waiting") }
                let waiting = loads.filter { _ in true }
                var cancelled = 0
                for load in waiting.prefix(3) {
                    load.cancel()
                    cancelled += 1
                }
                latch.open()
                var finished = 0
                for load in loads { if (try? await load.value) == "x" { finished += 1 } }
                #expect(finished == loads.count - cancelled)
            }
        }
    }

    @Test("the resource timeout ends a load despite its activity (checklist 22)")
    func resourceTimeout() async throws {
        try await withHTTPTestServer { origin in
            let drip: [HTTPTestServer.Response.Piece] = (0..<4000).flatMap { _ in
                ["x", .pause(.milliseconds(5))] as [HTTPTestServer.Response.Piece]
            }
            origin.route("/body") { _ in .ok(.chunks(drip)) }
            origin.route("/head") { _ in
                .raw(
                    ["HTTP/1.1 200 OK\r\n"]
                        + (0..<4000).flatMap { _ in
                            ["A: b\r\n", .pause(.milliseconds(5))] as [HTTPTestServer.Response.Piece]
                        })
            }
            origin.route("/loop") { _ in .redirect("/loop") }
            var configuration = Configuration.ephemeral
            configuration.timeouts.resource = .milliseconds(60)
            configuration.redirects.maximum = .max
            configuration.limits.fieldCount = 100_000
            try await withSession(configuration) { session in
                for path in ["/body", "/head", "/loop"] {
                    await expectFailure(.resourceTimeout, .local, nil, path) {
                        try await session.data(from: origin.url(path))
                    }
                }
                await expectFailure(.resourceTimeout, .local) {
                    try await session.load(Request(url: origin.url("/body"))) { _, body in
                        for try await _ in body {}
                    }
                }
            }
        }
    }

    @Test("the time spent waiting for a connection counts towards the resource timeout (checklist 22)")
    func resourceTimeoutWhileWaiting() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/stall", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            let clock = ManualClock()
            var configuration = Configuration.ephemeral
            configuration.connections.maximumPerHost = 1
            configuration.use(clock)
            try await withSession(configuration) { session in
                let first = Task { try await session.data(from: origin.url("/stall")) }
                try await origin.wait { $0.stalled == 1 }
                var request = Request(url: origin.url("/stall"))
                request.resourceTimeout = .seconds(30)
                let limited = request
                async let ended: Void = expectFailure(.resourceTimeout, .local, .connecting) {
                    try await session.data(for: limited)
                }
                try await session.eventuallyConnections { $0.hasSuffix("1 waiting") }
                clock.advance(by: .seconds(30))
                await ended
                first.cancel()
                await expectFailure(.cancelled) { try await first.value }
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import FoundationEssentials
import Testing
@testable import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The rows of HTTP/2 about ends of loads, streams and connections, once more over HTTP/3.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3EndingTests {
    private static let large = [UInt8](repeating: 7, count: 1_000_000)

    @Test("Thousands of loads that are cancelled at random leave the others and the connection alone", arguments: 0..<4)
    func cancellations(_ part: Int) async throws {
        let count = HTTP3NetworkTests.isLong ? 10_000 : 600
        let seed = UInt64.random(in: 0 ... .max)
        try await withHTTP3 { server, session in
            let body = Array(Self.large.prefix(40_000))
            server.route("/") { _ in .ok(.bytes(body)) }
            server.route("/slow") { _ in .ok(.chunks([.bytes(body), .pause(.milliseconds(1)), "end"])) }
            server.route("/echo") { request in .ok("\(request.bodyCount)") }
            try await session.expect(server.url("/hello"), "hello")
            let (succeeded, cancelled) = (Watched(0), Watched(0))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<16 {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &+ UInt64(worker))
                        for number in 0..<count / 16 {
                            let kind = (number + part) % 3
                            let task = Task {
                                switch kind {
                                case 0:
                                    let (data, _) = try await session.data(
                                        for: Request(url: server.url("/echo"), method: .post, body: .data(Data(body))))
                                    #expect(data.elementsEqual("40000".utf8), "seed \(seed)")
                                case 1:
                                    let (data, _) = try await session.data(from: server.url("/slow"))
                                    #expect(data.count == 40_003, "seed \(seed)")
                                default:
                                    let (data, _) = try await session.data(from: server.url("/"))
                                    #expect(data.count == 40_000, "seed \(seed)")
                                }
                            }
                            if (worker + number) % 4 != 0 {
                                for _ in 0..<Int.random(in: 0..<60, using: &random) { await Task.yield() }
                                task.cancel()
                            }
                            do {
                                try await task.value
                                succeeded.change { $0 += 1 }
                            } catch let error as LoadError {
                                #expect(error.reason == .cancelled, "seed \(seed): \(error)")
                                cancelled.change { $0 += 1 }
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(succeeded.value > 0 && succeeded.value + cancelled.value == count / 16 * 16, "seed \(seed)")
            try await session.expect(server.url("/hello"), "hello")
            #expect(server.counts.accepted == 1, "seed \(seed)")
            #expect(session.core.pool.http3.connections.allSatisfy { $0.streamCount == 0 }, "seed \(seed)")
            // The server hears of each of them, and answers none without an end.
            try await server.wait { $0.openStreams == 0 }
        }
    }

    @Test("A session that ends closes its connections with H3_NO_ERROR") func session() async throws {
        try await withHTTP3 { server, session in
            try await session.expect(server.url("/"), "hello")
            session.finishTasksAndInvalidate()
            await session.invalidated()
            #expect(try await server.waitForEnding() { $0.stream == nil }.code == .noError)
            try await server.wait { $0.open == 0 }
        }
    }

    @Test("Invalidating a session cancels its streams") func invalidation() async throws {
        try await withHTTP3 { server, session in
            server.script { peer in
                try await peer.start()
                while true {
                    let request = try await peer.expectRequest()
                    try await peer.respond(to: request.stream, body: [1], endStream: false)
                }
            }
            let tasks = (0..<5).map { number in Task { try await session.data(from: server.url("/\(number)")) } }
            try await server.wait { $0.frames >= 6 }
            session.invalidateAndCancel()
            for task in tasks {
                let error = await #expect(throws: LoadError.self) { try await task.value }
                #expect(error?.reason == .cancelled)
            }
            await expectEmpty(session)
            try await server.wait { $0.open == 0 }
        }
    }

    @Test("An unread body resets its stream and keeps the connection") func unread() async throws {
        try await withHTTP3 { server, session in
            server.route("/large") { _ in .ok(.bytes(Self.large)) }
            for _ in 0..<20 {
                let first = try await session.load(Request(url: server.url("/large"))) { _, body in
                    for try await chunk in body { return chunk.count }
                    return 0
                }
                #expect(first > 0)
                try await session.expect(server.url("/"), "hello")
            }
            #expect(server.counts.accepted == 1)
            #expect(try await server.waitForEnding().code == .requestCancelled)
        }
    }

    @Test("A response has trailers, and its body can be read in a scope") func trailers() async throws {
        try await withHTTP3 { server, session in
            server.route("/t") { _ in .ok(.chunks(["a", "b"], trailers: ["sum": "2"])) }
            let (text, trailers) = try await session.load(Request(url: server.url("/t"))) { _, body in
                var text = ""
                for try await chunk in body { text += String(decoding: [UInt8](chunk), as: UTF8.self) }
                return (text, body.trailers)
            }
            #expect(text == "ab" && trailers["sum"] == "2")
        }
    }

    @Test("A body waits for a 100, and a refusal saves it") func expectation() async throws {
        try await withHTTP3 { server, session in
            server.script { peer in
                try await peer.start()
                let first = try await peer.expectRequest()
                try await peer.send(.headers(HTTP2Fields(.continue)), on: first.stream)
                let body = try await peer.expectBody(of: first.stream)
                try await peer.respond(to: first.stream, body: Array("\(body.count)".utf8))
                let second = try await peer.expectRequest()
                try await peer.respond(to: second.stream, .contentTooLarge, body: Array("no".utf8))
                peer.stopReceiving(second.stream, .noError)
                await peer.untilClosed()
            }
            var request = Request(url: server.url("/"), method: .post, body: .data(Data(count: 300_000)))
            request.headers[.expect] = "100-continue"
            try await session.expect(request, "300000")
            let (data, response) = try await session.data(for: request)
            #expect(response.http?.status == .contentTooLarge && data.elementsEqual("no".utf8))
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("A response may begin before the request has ended") func beside() async throws {
        try await withHTTP3 { server, session in
            server.script { peer in
                try await peer.start()
                let request = try await peer.expectRequest()
                try await peer.respond(to: request.stream, body: Array("early ".utf8), endStream: false)
                let body = try await peer.expectBody(of: request.stream)
                try await peer.data(request.stream, Array("\(body.count)".utf8), endStream: true)
                await peer.untilClosed()
            }
            try await session.expect(
                Request(url: server.url("/"), method: .post, body: .data(Data(Self.large))), "early 1000000")
        }
    }

    // MARK: Early answers

    enum Ending: String, Sendable, CaseIterable { case stop, reset, goAway, close }

    private static func act(_ ending: Ending, _ peer: HTTP3Peer, _ stream: Int) async throws {
        switch ending {
        case .stop: peer.stopReceiving(stream, .noError)
        case .reset:
            await peer.drain()
            peer.stopReceiving(stream, .noError)
            peer.reset(stream, .requestCancelled)
        case .goAway: try await peer.send(.goAway(from: UInt64(stream) + 4), on: try await peer.control())
        case .close:
            await peer.drain()
            peer.close()
        }
    }

    @Test("An early response is delivered whole, whatever ends the stream then", arguments: Ending.allCases)
    func whole(_ ending: Ending) async throws {
        try await withHTTP3 { server, session in
            server.route("*") { _ in .ok("next") }
            server.script(onConnection: 1) { peer in
                try await peer.start()
                let first = try await peer.expectRequest()
                _ = try await peer.expect(.data)
                try await peer.respond(to: first.stream, .contentTooLarge, body: Array("early".utf8))
                try await Self.act(ending, peer, first.stream)
                while true {
                    try await peer.respond(to: try await peer.expectRequest().stream, body: Array("next".utf8))
                }
            }
            let body = RequestBody.stream { AsyncStream<[UInt8]>(unfolding: { [UInt8](repeating: 1, count: 10_000) }) }
            let (data, response) = try await session.data(for: Request(url: server.url("/"), method: .post, body: body))
            #expect(data.elementsEqual("early".utf8) && response.http?.status == .contentTooLarge)
            for _ in 0..<2 { try await session.expect(server.url("/next"), "next") }
            #expect(server.counts.accepted == (ending == .stop || ending == .reset ? 1 : 2))
        }
    }

    @Test("A truncated early response fails once, without a retry", arguments: [Ending.reset, .close])
    func cut(_ ending: Ending) async throws {
        try await withHTTP3 { server, session in
            server.route("*") { _ in .ok("next") }
            server.script(onConnection: 1) { peer in
                try await peer.start()
                let first = try await peer.expectRequest()
                _ = try await peer.expect(.data)
                try await peer.respond(to: first.stream, body: Array("ear".utf8), endStream: false)
                try await Self.act(ending, peer, first.stream)
                while true {
                    try await peer.respond(to: try await peer.expectRequest().stream, body: Array("next".utf8))
                }
            }
            let error = await #expect(throws: LoadError.self) {
                try await session.data(for: Request(url: server.url("/"), method: .post, body: .data(Data(Self.large))))
            }
            #expect(error?.party == .remote && error?.phase == .receiving, "\(String(describing: error))")
            try await session.expect(server.url("/next"), "next")
            #expect(server.counts.accepted == (ending == .reset ? 1 : 2))
        }
    }

    // MARK: Retries

    @Test("A stream reset by its server is retried under a policy, on the same connection") func again() async throws {
        var policy = RetryPolicy()
        policy.backoff = .constant(.zero)
        try await withHTTP3(change: { $0.retries.policy = policy }) { server, session in
            server.inject(try #require(HTTP3Fault.named("H3_INTERNAL_ERROR")))
            try await session.expect(server.url("/"), "ok")
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("Requests that a GOAWAY has refused are sent again as long as others are answered")
    func manyRefusals() async throws {
        try await withHTTP3 { server, session in
            server.script { peer in
                try await peer.start()
                var last = 0
                for _ in 0..<3 {
                    let request = try await peer.expectRequest()
                    last = max(last, request.stream)
                    try await peer.respond(to: request.stream, body: Array("ok".utf8))
                }
                try await peer.send(.goAway(from: UInt64(last) + 4), on: try await peer.control())
                await peer.untilClosed()
            }
            let count = 60
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    if number >= 30 { try await group.next() }
                    group.addTask { try await session.expect(server.url("/\(number)"), "ok") }
                }
                try await group.waitForAll()
            }
            #expect(server.counts.accepted >= count / 3)
        }
    }

    @Test("A request that is refused while none is answered is not sent without an end") func refusedAlone()
        async throws
    {
        try await withHTTP3 { server, session in
            server.script { peer in
                try await peer.start()
                _ = try await peer.expectRequest()
                try await peer.send(.goAway(from: 0), on: try await peer.control())
                await peer.untilClosed()
            }
            await expectFailure(.connectionLost, .remote) { try await session.data(from: server.url("/")) }
            #expect(server.counts.accepted == 4)
        }
    }

    // MARK: Limits

    @Test("Limits of a session hold over HTTP/3") func limits() async throws {
        func change(_ configuration: inout Configuration) { configuration.limits.headSize = 2_000 }
        try await withHTTP3(change: change) { server, session in
            server.route("/large") { _ in .ok("x", headers: ["X-Large": String(repeating: "a", count: 4_000)]) }
            let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/large")) }
            #expect(error?.reason != .idleTimeout, "\(String(describing: error))")
            try await session.expect(server.url("/"), "hello")
        }
    }

    @Test("Of thirty bodies the unread one costs its window, and the others are not affected") func slow() async throws
    {
        try await withHTTP3 { server, session in
            server.route("/large") { _ in .ok(.repeated(count: 30_000_000)) }
            server.route("/small") { _ in .ok(.repeated(count: 60_000)) }
            try await session.load(Request(url: server.url("/large"))) { _, body in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<30 {
                        group.addTask {
                            let (data, _) = try await session.data(from: server.url("/small"))
                            #expect(data.count == 60_000)
                        }
                    }
                    try await group.waitForAll()
                }
                var count = 0
                for try await chunk in body { count += chunk.count }
                #expect(count == 30_000_000)
            }
            #expect(server.counts.accepted == 1)
        }
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

private final class Tally: Sendable {
    private let value = Atomic<Int>(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
}

/// Loads and sessions that end early, and idle connections.
@Suite(.timeLimit(.minutes(3)))
struct HTTP2EndingTests {
    private static let isLong = getenv("URLLOADING_LONG") != nil

    @Test("loads cancelled at random do not affect other loads and the connection")
    func randomCancels() async throws {
        let count = Self.isLong ? 10_000 : 500
        try await withHTTP2 { server, session in
            let body = bytes(40_000)
            server.route("/") { _ in .ok(.bytes(body)) }
            server.route("/echo") { request in .ok("\(request.bodyCount)") }
            let succeeded = Tally()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<32 {
                    group.addTask {
                        var random = SeededGenerator(seed: UInt64(worker))
                        for number in 0..<count / 32 {
                            let task = Task {
                                if number % 3 == 0 {
                                    let (data, _) = try await session.data(
                                        for: Request(
                                            url: server.url("/echo"), method: .post, body: .data(Data(body))))
                                    #expect(data == Data("40000".utf8))
                                } else {
                                    let (data, _) = try await session.data(from: server.url("/"))
                                    #expect(data.count == 40_000)
                                }
                            }
                            if (worker + number) % 4 != 0 {
                                for _ in 0..<Int.random(in: 0..<40, using: &random) { await Task.yield() }
                                task.cancel()
                            }
                            do {
                                try await task.value
                                succeeded.add()
                            } catch let error as LoadError { #expect(error.reason == .cancelled) }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(succeeded.count > 0)
            for _ in 0..<10 {
                let (data, _) = try await session.data(from: server.url("/"))
                #expect(data.count == 40_000)
            }
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("a session ends with its connections") func theSessionEndsWithItsConnections() async throws {
        try await withHTTP2TestServer { server in
            server.route("/") { _ in .ok("ok") }
            let session = Session(.http2)
            _ = try await session.data(from: server.url("/"))
            #expect(session.connectionsDescription.contains("h2 0 streams"))
            session.finishTasksAndInvalidate()
            await session.invalidated()
            #expect(session.connectionsDescription == "empty")
            try await server.wait { $0.open == 0 }
            #expect(try await server.wait(for: .goAway).frame.errorCode == .noError)
        }
    }

    @Test("invalidating a session cancels its streams") func invalidatingCancelsStreams() async throws {
        try await withHTTP2TestServer { server in
            server.script { peer in
                try await peer.start()
                while true { _ = try await peer.expectRequest() }
            }
            let session = Session(.http2)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask { await expectFailure(.cancelled) { try await session.data(from: server.url("/")) } }
                }
                await #expect(throws: Never.self) { try await server.wait(for: .headers, count: 20) }
                session.invalidateAndCancel()
            }
            await session.invalidated()
            #expect(session.connectionsDescription == "empty")
        }
    }

    @Test("an idle connection answers PINGs, and closes after a GOAWAY")
    func keeper() async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock) { server, session in
            server.route("/") { _ in .ok("ok") }
            try await session.expect(server.url("/"), "ok")
            server.send(.ping(Array("resting!".utf8)))
            try await clock.advance(by: .seconds(1)) {
                server.frames.contains { $0.frame.kind == .ping && $0.frame.isAck }
            }
            server.send(.goAway(last: 1))
            try await pollerHasRun()
            try await session.expect(server.url("/"), "ok")
            #expect(server.counts.accepted == 2)
        }
    }

    @Test("a connection idle for long on a dead path is closed")
    func probe() async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock, { $0.connections.http2PingInterval = .seconds(15) }) { server, session in
            server.route("/") { _ in .ok("ok") }
            server.script(onConnection: 1) { peer in
                let request = try await peer.acceptRequest()
                try await peer.respond(to: request.stream, body: Array("ok".utf8))
                // The server does not respond from now on.
                while true { _ = try await peer.receive() }
            }
            try await session.expect(server.url("/"), "ok")
            clock.advance(by: .seconds(20))
            async let again: Void = session.expect(server.url("/"), "ok")
            _ = try await server.wait(for: .ping, onConnection: 1)
            try await clock.untilWaiting()
            // Each waiting reader is woken to check its state.
            try await clock.advance(by: .seconds(1)) { server.counts.accepted == 2 }
            try await again
            #expect(server.counts.accepted == 2)
        }
    }

    @Test("idle connections are closed after their timeout") func idleConnectionsAreClosed() async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock) { server, session in
            server.route("/") { _ in .ok("ok") }
            try await session.expect(server.url("/"), "ok")
            clock.advance(by: .seconds(56))
            #expect(session.connectionsDescription == "empty")
            try await server.wait { $0.open == 0 }
        }
    }

    @Test("a POST that was not processed is retried, one that may have been is not")
    func retries() async throws {
        try await withHTTP2 { server, session in
            server.route("/") { request in .ok("\(request.bodyCount)") }
            server.script(onConnection: 1) { peer in
                _ = try await peer.acceptRequest()
                try await peer.goAway(last: 0)
                await peer.untilClosed()
            }
            let post = Request(url: server.url("/"), method: .post, body: .data(Data(bytes(5000))))
            try await session.expect(post, "5000")
            #expect(server.counts.accepted == 2)
        }
        try await withHTTP2 { server, session in
            server.script(onConnection: 1) { peer in
                _ = try await peer.acceptRequest()
                peer.finish()
            }
            let post = Request(url: server.url("/"), method: .post, body: .data(Data(bytes(10))))
            await expectFailure(.connectionLost) { try await session.data(for: post) }
        }
    }

    @Test("a suspended task does not block the other streams of its connection")
    func aSuspendedTaskDoesNotBlockTheOtherStreamsOfItsConnection()
        async throws
    {
        try await withHTTP2 { server, session in
            let body = bytes(2_000_000)
            server.route("/") { _ in .ok(.bytes(body)) }
            let tasks = (0..<30).map { _ in session.dataTask(from: server.url("/")) }
            for task in tasks {
                task.resume()
                _ = try await task.response
                task.suspend()
            }
            let (data, _) = try await session.data(from: server.url("/"))
            #expect(data.count == body.count)
            for task in tasks { task.resume() }
            for task in tasks {
                let value = try await task.value
                #expect(value.count == body.count)
            }
            #expect(server.counts.accepted == 1)
        }
    }
}

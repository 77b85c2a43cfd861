// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Loads that wait for a stream slot continue when one becomes available for any reason.
@Suite(.timeLimit(.minutes(4)))
struct HTTP2StreamSlotsTests {
    private func waiting(_ session: Session, _ server: HTTP2TestServer, _ count: Int) -> [LoadTask<Data>] {
        (0..<count).map { _ in
            let task = session.dataTask(from: server.url("/")).resumed()
            return task
        }
    }

    @Test("a connection that received GOAWAY occupies no slot", arguments: [true, false])
    func retired(hasStream: Bool) async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock, { $0.connections.maximumPerHost = 1 }) { server, session in
            server.route("/") { _ in .ok("ok") }
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.respond(to: first.stream, body: Array("ok".utf8), endStream: !hasStream)
                if hasStream { try await peer.goAway(last: first.stream) } else { try await peer.hold() }
                await peer.untilClosed()
            }
            let first = session.dataTask(from: server.url("/")).resumed()
            if hasStream {
                _ = try await first.response
            } else {
                _ = try await first.value
                server.send(.goAway(last: 1))
                try await pollerHasRun()
            }
            try await clock.advance(by: .seconds(1)) { session.connectionsDescription == "empty" }
            try await session.expect(server.url("/"), "ok")
            #expect(server.counts.accepted == 2)
            first.cancel()
        }
    }

    @Test("loads that wait for a slot continue when their connection receives GOAWAY")
    func retiredWhileOthersWait() async throws {
        try await withHTTP2(.init(), { $0.connections.maximumPerHost = 1 }) { server, session in
            server.route("/") { _ in .ok("ok") }
            server.script(onConnection: 1) { peer in
                try await peer.start(.maxConcurrentStreams(1))
                let first = try await peer.expectRequest()
                _ = try await peer.expect(.settings, isAck: true)
                try await peer.respond(to: first.stream, endStream: false)
                try await peer.hold()
                try await peer.goAway(last: first.stream)
                await peer.untilClosed()
            }
            let first = session.dataTask(from: server.url("/")).resumed()
            _ = try await first.response
            let others = waiting(session, server, 5)
            server.release()
            for other in others { #expect(try await other.value == Data("ok".utf8)) }
            #expect(server.counts.accepted == 2)
            first.cancel()
        }
    }

    @Test("a limit of streams that rises lets in as many")
    func raisedLimit() async throws {
        try await withHTTP2(.init(), { $0.connections.maximumPerHost = 1 }) { server, session in
            server.script { peer in
                try await peer.start(.maxConcurrentStreams(1))
                let first = try await peer.expectRequest()
                // The limit is known there before the others come.
                _ = try await peer.expect(.settings, isAck: true)
                try await peer.hold()
                try await peer.settings(.maxConcurrentStreams(100))
                // All are here before one is answered.
                var streams = [first.stream]
                while streams.count < 11 { streams.append(try await peer.expectRequest().stream) }
                for stream in streams { try await peer.respond(to: stream, body: Array("ok".utf8)) }
                await peer.untilClosed()
            }
            let first = waiting(session, server, 1)
            try await server.wait { $0.held == 1 }
            let others = waiting(session, server, 10)
            server.release()
            for task in first + others { #expect(try await task.value == Data("ok".utf8)) }
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("a stream limit of zero may rise while no load uses the connection")
    func aStreamLimitOfZeroMayRiseWhileNoLoadUsesTheConnection() async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock, { $0.connections.maximumPerHost = 1 }) { server, session in
            server.script { peer in
                let first = try await peer.acceptRequest()
                try await peer.send(.settings(.maxConcurrentStreams(0)))
                try await peer.respond(to: first.stream, body: Array("ok".utf8))
                try await peer.hold()
                try await peer.send(.settings(.maxConcurrentStreams(100)))
                for _ in 0..<3 {
                    try await peer.respond(to: try await peer.expectRequest().stream, body: Array("ok".utf8))
                }
                await peer.untilClosed()
            }
            try await session.expect(server.url("/"), "ok")
            let others = waiting(session, server, 3)
            server.release()
            let isOver = Flag()
            async let values: Void = {
                for other in others { _ = try await other.value }
                isOver.raise()
            }()
            try await clock.advance(by: .milliseconds(100)) { isOver.value }
            try await values
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("waiting for a slot ends by cancellation and by the resource timeout")
    func waitsEnd() async throws {
        let clock = ManualClock()
        try await withHTTP2(
            clock: clock,
            {
                $0.connections.maximumPerHost = 1
                $0.timeouts.resource = .seconds(100)
                $0.timeouts.idle = nil
            }
        ) { server, session in
            server.script { peer in
                try await peer.start(.maxConcurrentStreams(1))
                _ = try await peer.expectRequest()
                _ = try await peer.expect(.settings, isAck: true)
                try await peer.hold()
            }
            let holder = waiting(session, server, 1)
            try await server.wait { $0.held == 1 }
            let cancelled = Task { await expectFailure(.cancelled) { try await session.data(from: server.url("/")) } }
            let timed = Task { await expectFailure(.resourceTimeout) { try await session.data(from: server.url("/")) } }
            try await clock.untilWaiting()
            cancelled.cancel()
            await cancelled.value
            let isOver = Flag()
            async let end: Void = {
                await timed.value
                isOver.raise()
            }()
            try await clock.advance(by: .seconds(1)) { isOver.value }
            await end
            holder[0].cancel()
        }
    }

    private struct Gone: Error {}

    @Test("after a failure the number of connections stays within the limit")
    func failure() async throws {
        let calls = Atomic<Int>(0)
        let gate = Latch()
        try await withHTTP2(
            .init(),
            {
                $0.networks.nameResolver = NameResolver { _ in
                    guard calls.add(1, ordering: .relaxed).oldValue == 0 else { return ["127.0.0.1"] }
                    await gate.wait()
                    throw Gone()
                }
            }
        ) { server, session in
            server.route("/") { _ in .ok("ok") }
            let tasks = try (0..<60).map { _ in
                let task = session.dataTask(from: try url("http://origin.test:\(server.port)/")).resumed()
                return task
            }
            try await pollerHasRun()
            gate.open()
            var failures = 0
            for task in tasks { if (try? await task.value) == nil { failures += 1 } }
            #expect(failures == 1 && server.counts.accepted <= 6)
        }
    }

    @Test("a retry after a stale connection does not use another connection of the same age")
    func fresh() async throws {
        try await withHTTP2 { server, session in
            server.route("/") { _ in .ok("ok") }
            for number in 1...2 {
                server.script(onConnection: number) { peer in
                    try await peer.start(.maxConcurrentStreams(1))
                    let first = try await peer.expectRequest()
                    _ = try await peer.expect(.settings, isAck: true)
                    try await peer.hold()
                    try await peer.respond(to: first.stream, body: Array("ok".utf8))
                    // One of the two is pinged and lost. The other is notified in the end that it is not needed.
                    while try await peer.receive().kind != .headers {}
                    peer.abort()
                }
            }
            let one = waiting(session, server, 1)
            try await server.wait { $0.held == 1 }
            let two = waiting(session, server, 1)
            try await server.wait { $0.held == 2 }
            server.release()
            for task in one + two { _ = try await task.value }
            #expect(server.counts.accepted == 2)
            try await session.expect(server.url("/"), "ok")
            // Two at first, one that was lost, and one on a connection made since.
            let asked = server.frames.filter { $0.frame.kind == .headers }.map(\.connection)
            #expect(asked.count == 4 && asked.last == 3 && server.counts.accepted == 3)
        }
    }

    @Test("idle connections of both versions are kept up to the limit")
    func idleLimit() async throws {
        try await withHTTP2TestServer { one in
            one.route("/") { _ in .ok("ok") }
            try await withHTTP2TestServer { two in
                two.route("/") { _ in .ok("ok") }
                try await withSession(.http2.with { $0.connections.maximumIdle = 1 }) { session in
                    try await session.expect(one.url("/"), "ok")
                    try await session.expect(two.url("/"), "ok")
                    try await one.wait { $0.open == 0 }
                    #expect(two.counts.open == 1)
                }
            }
        }
    }
}

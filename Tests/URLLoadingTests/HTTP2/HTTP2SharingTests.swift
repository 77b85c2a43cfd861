// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The costs that streams of one connection impose on each other: memory, time, turns.
@Suite(.timeLimit(.minutes(4)))
struct HTTP2SharingTests {
    @Test("a connection that is closed is freed long before its timers fire")
    func aClosedConnectionIsFreed() async throws {
        let change: (inout Configuration) -> Void = {
            $0.connections.http2PingInterval = .seconds(3_600)
            $0.connections.http2PingTimeout = .seconds(3_600)
        }
        // No timer fires while the clock stands still, also the one that reads a connection without loads.
        try await withHTTP2(clock: ManualClock(), change) { server, session in
            server.route("/") { _ in .ok("two") }
            _ = try await session.data(from: server.url("/"))
            weak let connection = session.core.pool.withSharing { $0.connections.first }
            #expect(connection != nil)
            session.core.pool.closeIdle()
            try await eventually(connection == nil) { $0 }
        }
    }

    @Test("a connection on which others were faster than the load that made it counts as used for that load")
    func othersWereFaster() async throws {
        try await withHTTP2 { server, session in
            server.route("/") { _ in .ok("two") }
            try await session.expect(server.url("/"), "two")
            let connection = try #require(session.core.pool.withSharing { $0.connections.first })
            let request = Request(url: server.url("/"))
            let load = LoadContext(session.core, request, nil, consumer: .collector)
            let prepared = try PreparedRequest.make(request, session.core.defaultFields, isForeign: false)
            #expect(connection.places.take())
            let exchange = HTTP2Exchange(connection, isReused: false, load, prepared, over: connection.route, nil)
            #expect(exchange.isReused)
            exchange.release()
            try await session.expect(server.url("/"), "two")
        }
    }

    @Test("small unread pieces do not retain whole buffers")
    func unreadPieces() async throws {
        try await withHTTP2 { server, session in
            let streams = 20
            let rounds = 30
            server.script { peer in
                try await peer.start(.maxConcurrentStreams(200))
                var held: [Int] = []
                for _ in 0..<streams {
                    let stream = try await peer.expectRequest().stream
                    try await peer.respond(to: stream, body: [1], endStream: false)
                    held.append(stream)
                }
                let fast = try await peer.expectRequest().stream
                try await peer.respond(to: fast, body: [1], endStream: false)
                let small = [UInt8](repeating: 2, count: 5000)
                let large = [UInt8](repeating: 3, count: 240_000)
                for _ in 0..<rounds {
                    for stream in held { try await peer.data(stream, small) }
                    try await peer.data(fast, large)
                }
                try await peer.data(fast, [4], endStream: true)
                await peer.untilClosed()
            }
            var tasks: [LoadTask<Data>] = []
            for _ in 0..<streams {
                let task = session.dataTask(from: server.url("/"))
                task.resume()
                _ = try await task.response
                task.suspend()
                tasks.append(task)
            }
            let total = try await session.load(Request(url: server.url("/"))) { _, body in
                var total = 0
                for try await chunk in body { total += chunk.count }
                return total
            }
            #expect(total == rounds * 240_000 + 2)
            // Three million bytes lie here; in buffers of their own they took fifty times that.
            #expect(session.heldInInboxes < 8_000_000, "\(session.heldInInboxes)")
            for task in tasks { task.cancel() }
        }
    }

    @Test("of a hundred bodies the unread one costs its window, and the others are not affected")
    func slowReaderCostsItsWindow() async throws {
        try await withHTTP2 { server, session in
            let megabyte = bytes(1 << 20)
            server.route("/m") { _ in .ok(.bytes(megabyte)) }
            try await session.load(Request(url: server.url("/m"))) { _, body in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<99 {
                        group.addTask {
                            let count = try await session.data(from: server.url("/m")).0.count
                            #expect(count == megabyte.count)
                        }
                    }
                    try await group.waitForAll()
                }
                // A window of 256 KiB, and no more than as much again of buffers that are not full.
                #expect(session.heldInInboxes <= 512 * 1024, "\(session.heldInInboxes)")
                var count = 0
                for try await chunk in body { count += chunk.count }
                #expect(count == megabyte.count)
            }
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("the load that reads for all loads keeps its idle timeout despite the others' frames")
    func idleTimeoutOfTheReader() async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock, { $0.timeouts.idle = .seconds(5) }) { server, session in
            let isOver = Atomic<Bool>(false)
            server.script { peer in
                _ = try await peer.acceptRequest()
                let other = try await peer.expectRequest().stream
                try await peer.respond(to: other, body: [1], endStream: false)
                while !isOver.load(ordering: .acquiring) {
                    try await peer.ping()
                    clock.advance(by: .milliseconds(100))
                }
                try await peer.data(other, [2], endStream: true)
                await peer.untilClosed()
            }
            async let mute: Void = expectFailure(.idleTimeout) { try await session.data(from: server.url("/mute")) }
            try await clock.untilWaiting()
            var request = Request(url: server.url("/other"))
            request.idleTimeout = .seconds(10_000)
            async let other = session.data(for: request).0
            await mute
            isOver.store(true, ordering: .releasing)
            let data = try await other
            #expect(data == Data([1, 2]))
        }
    }

    @Test(
        "what arrived in time ends no load as idle if the task that reads for all runs late",
        arguments: [true, false])
    func arrivedBeforeTheReaderRuns(isReader: Bool) async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock) { server, session in
            let (asked, answers) = (Flag(), Flag())
            server.script { peer in
                let requests = [try await peer.acceptRequest(), try await peer.expectRequest()]
                asked.raise()
                try await answers.wait()
                for request in requests.sorted(by: { $0.path < $1.path }) {
                    try await peer.respond(to: request.stream, body: Array(request.path.utf8))
                }
                await peer.untilClosed()
            }
            var brief = Request(url: server.url("/brief"))
            brief.idleTimeout = .seconds(5)
            var patient = Request(url: server.url("/patient"))
            patient.idleTimeout = .seconds(10_000)
            // The first load that waits reads for both.
            let (one, two) = isReader ? (brief, patient) : (patient, brief)
            let threads = HeldExecutor()
            let first = Task(executorPreference: threads) { [one] in try await session.data(for: one).0 }
            try await clock.untilWaiting()
            let second = Task(executorPreference: threads) { [two] in try await session.data(for: two).0 }
            try await asked.wait()
            try await clock.untilWaiting(2)
            let connections = session.core.pool.withSharing { $0.connections }
            let slot = try #require(connections.first?.transport.slot)
            threads.close()
            answers.raise()
            try await eventually(!slot.hasWaiter && slot.mayHoldInput) { $0 }
            clock.advance(by: .seconds(6))
            threads.open()
            let (firstBody, secondBody) = try await (first.value, second.value)
            #expect(firstBody == Data(one.url.path().utf8))
            #expect(secondBody == Data(two.url.path().utf8))
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("GOAWAY with ENHANCE_YOUR_CALM causes no immediate retry", arguments: [false, true])
    func calm(closes: Bool) async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock) { server, session in
            server.route("/") { _ in .ok("ok") }
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.respond(to: first.stream, body: Array("ok".utf8))
                let second = try await peer.expectRequest()
                try await peer.goAway(last: closes ? second.stream : first.stream, .enhanceYourCalm)
                if !closes { await peer.untilClosed() }
            }
            try await session.expect(server.url("/"), "ok")
            let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/")) }
            #expect(
                error?.reason == .connectionLost && error?.detail?.contains("ENHANCE_YOUR_CALM") == true,
                "\(String(describing: error))")
            #expect(server.counts.accepted == 1)
        }
        // A policy waits first.
        try await withHTTP2(
            clock: clock,
            {
                $0.retries.policy = RetryPolicy()
                $0.retries.policy?.backoff = .constant(.seconds(3))
            }
        ) { server, session in
            server.route("/") { _ in .ok("ok") }
            server.script(onConnection: 1) { peer in
                _ = try await peer.acceptRequest()
                try await peer.goAway(last: 0, .enhanceYourCalm)
                await peer.untilClosed()
            }
            async let again: Void = session.expect(server.url("/"), "ok")
            try await server.wait { $0.open == 0 && $0.accepted == 1 }
            try await clock.advance(by: .milliseconds(100)) { server.counts.accepted == 2 }
            try await again
            #expect(server.counts.accepted == 2)
        }
    }
}

extension Session {
    /// The bytes of all buffers that hold unread data.
    fileprivate nonisolated var heldInInboxes: Int {
        var held: [ObjectIdentifier: Int] = [:]
        for connection in core.pool.withSharing({ $0.connections }) {
            let chunks = connection.state.withLock { $0.streams.values.flatMap(\.inbox.chunks.chunks) }
            for chunk in chunks { held[ObjectIdentifier(chunk.storage)] = chunk.storage.capacity }
        }
        return held.values.reduce(0, +)
    }
}

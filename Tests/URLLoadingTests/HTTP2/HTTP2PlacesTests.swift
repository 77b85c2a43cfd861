import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Loads that wait for a place go on when there is one, however it came.
@Suite(.timeLimit(.minutes(4)))
struct HTTP2PlacesTests {
    private func waiting(_ session: Session, _ server: HTTP2TestServer, _ count: Int) -> [LoadTask<Data>] {
        (0..<count).map { _ in
            let task = session.dataTask(from: server.url("/"))
            task.resume()
            return task
        }
    }

    @Test("a connection that was told to go keeps no place", arguments: [true, false])
    func retired(hasStream: Bool) async throws {
        let clock = ManualClock()
        try await withHTTP2(
            .init(),
            {
                $0.use(clock)
                $0.maximumConnectionsPerHost = 1
            }
        ) { server, session in
            server.route("/") { _ in .ok("ok") }
            server.script(onConnection: 1) { peer in
                try await peer.start()
                let first = try await peer.expectRequest()
                try await peer.respond(to: first.stream, body: Array("ok".utf8), endStream: !hasStream)
                if hasStream { try await peer.goAway(last: first.stream) } else { try await peer.hold() }
                await peer.untilClosed()
            }
            let first = session.dataTask(from: server.url("/"))
            first.resume()
            if hasStream {
                _ = try await first.response
            } else {
                _ = try await first.value
                server.send(.goAway(last: 1))
                try await pollerHasLooked()
            }
            while session.connectionsDescription != "empty" {
                clock.advance(by: .seconds(1))
                try await Task.sleep(for: .microseconds(200))
            }
            try await session.expect(server.url("/"), "ok")
            #expect(server.counts.accepted == 2)
            first.cancel()
        }
    }

    @Test("loads that wait for a place go on when their connection is told to go")
    func retiredWhileOthersWait() async throws {
        try await withHTTP2(.init(), { $0.maximumConnectionsPerHost = 1 }) { server, session in
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
            let first = session.dataTask(from: server.url("/"))
            first.resume()
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
        try await withHTTP2(.init(), { $0.maximumConnectionsPerHost = 1 }) { server, session in
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

    @Test("a limit of no streams that rises while nobody has one")
    func raisedFromNothing() async throws {
        let clock = ManualClock()
        try await withHTTP2(
            .init(),
            {
                $0.use(clock)
                $0.maximumConnectionsPerHost = 1
            }
        ) { server, session in
            server.script { peer in
                try await peer.start()
                let first = try await peer.expectRequest()
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
            let isOver = Atomic<Bool>(false)
            async let values: Void = {
                for other in others { _ = try await other.value }
                isOver.store(true, ordering: .releasing)
            }()
            while !isOver.load(ordering: .acquiring) {
                clock.advance(by: .milliseconds(100))
                try await Task.sleep(for: .microseconds(200))
            }
            try await values
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("who waits for a place ends by cancellation and by the time of the whole load")
    func waitsEnd() async throws {
        let clock = ManualClock()
        try await withHTTP2(
            .init(),
            {
                $0.use(clock)
                $0.maximumConnectionsPerHost = 1
                $0.resourceTimeout = .seconds(100)
                $0.idleTimeout = nil
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
            let isOver = Atomic<Bool>(false)
            async let end: Void = {
                await timed.value
                isOver.store(true, ordering: .releasing)
            }()
            while !isOver.load(ordering: .acquiring) {
                clock.advance(by: .seconds(1))
                try await Task.sleep(for: .microseconds(200))
            }
            await end
            holder[0].cancel()
        }
    }

    private struct Gone: Error {}

    @Test("after a failure no more connections are made than may be")
    func failure() async throws {
        let calls = Atomic<Int>(0)
        let gate = Latch()
        try await withHTTP2(
            .init(),
            {
                $0.nameResolver = NameResolver { _ in
                    guard calls.add(1, ordering: .relaxed).oldValue == 0 else { return ["127.0.0.1"] }
                    await gate.wait()
                    throw Gone()
                }
            }
        ) { server, session in
            server.route("/") { _ in .ok("ok") }
            let tasks = try (0..<60).map { _ in
                let task = session.dataTask(from: try url("http://origin.test:\(server.port)/"))
                task.resume()
                return task
            }
            try await pollerHasLooked()
            gate.open()
            var failures = 0
            for task in tasks { if (try? await task.value) == nil { failures += 1 } }
            #expect(failures == 1 && server.counts.accepted <= 6)
        }
    }

    @Test("who asks again after a stale connection gets none that was kept as long")
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
                    // One of the two is asked, and lost. The other hears in the end that nobody needs it.
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

    @Test("connections that rest are kept up to the number, of either version")
    func idleLimit() async throws {
        try await withHTTP2TestServer { one in
            one.route("/") { _ in .ok("ok") }
            try await withHTTP2TestServer { two in
                two.route("/") { _ in .ok("ok") }
                var configuration = Configuration.http2
                configuration.maximumIdleConnections = 1
                try await withSession(configuration) { session in
                    try await session.expect(one.url("/"), "ok")
                    try await session.expect(two.url("/"), "ok")
                    try await one.wait { $0.open == 0 }
                    #expect(two.counts.open == 1)
                }
            }
        }
    }
}

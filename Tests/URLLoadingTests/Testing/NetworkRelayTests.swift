// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// The relay between raw sockets: each of its conditions, and what it does with the ends of connections.
@Suite(.timeLimit(.minutes(4)))
struct NetworkRelayTests {
    /// A client and a server that are connected through a relay.
    private func withPeers<R>(
        _ conditions: NetworkConditions = .none, clock: ManualClock? = nil,
        _ use: (NetworkRelay, _ client: StreamPeer, _ server: StreamPeer) async throws -> R
    ) async throws -> R {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        return try await withNetworkRelay(toPort: listener.address.port, conditions, clock: clock) { relay in
            let client = try await Self.connect(to: relay.port)
            let server = try await StreamPeer(listener)
            defer {
                client.close()
                server.close()
            }
            return try await use(relay, client, server)
        }
    }

    private static func connect(to port: UInt16) async throws -> StreamPeer {
        StreamPeer(try await SocketTransport.connect(to: .ipv4((127, 0, 0, 1), port: port), StopToken()))
    }

    // MARK: Bytes

    @Test("bytes pass in both directions, and are counted")
    func passes() async throws {
        try await withPeers { relay, client, server in
            try await client.send("hello")
            try await expect({ try await server.text(5) }, "hello")
            try await server.send("world!")
            try await expect({ try await client.text(6) }, "world!")
            let counts = relay.counts
            #expect(counts.accepted == 1 && counts.open == 1 && counts.mostOpen == 1 && counts.unreachable == 0)
            #expect(counts.toServer.received == 5 && counts.toServer.delivered == 5 && counts.toServer.queued == 0)
            #expect(counts[.toClient].delivered == 6 && counts.toClient.segments == 1)
            let connection = try #require(relay.connections.first)
            #expect(connection.isOpen && connection.roundTrips == 2)
            #expect(connection.flights.map(\.description) == ["1 to server: 5 bytes", "1 to client: 6 bytes"])
            #expect("\(counts)" == "accepted: 1, open: 1, to server: 5 of 5 bytes, to client: 6 of 6 bytes")
        }
    }

    @Test("the order is kept under segments of random sizes and jitter", arguments: [1...1, 1...3, 1...2_000])
    func order(sizes: ClosedRange<Int>) async throws {
        let conditions = NetworkConditions(
            delay: .microseconds(100), jitter: .milliseconds(1), segmentSize: sizes, seed: 5)
        try await withPeers(conditions) { relay, client, server in
            let (up, down) = (bytes(30_000), bytes(40_000).reversed() as [UInt8])
            async let sent: Void = client.send(up)
            async let answered: Void = server.send(down)
            let received = try await (server.receive(up.count), client.receive(down.count))
            _ = try await (sent, answered)
            #expect(received.0 == up && received.1 == down)
            #expect(relay.counts.toServer.segments >= up.count / sizes.upperBound)
            if sizes == 1...1 { #expect(relay.counts.toClient.segments == down.count) }
        }
    }

    @Test("a large body passes fast, with the ends of both directions")
    func large() async throws {
        try await withPeers { relay, client, server in
            let body = [[UInt8]](repeating: bytes(100_000), count: 100).flatMap { $0 }
            async let echoed: Void = server.echo()
            async let sent: Void = {
                try await client.send(body)
                client.finish()
            }()
            let received = try await client.receive()
            _ = try await (sent, echoed)
            #expect(received == body)
            try await relay.wait { $0.open == 0 }
            #expect(relay.counts.toServer.mostQueued <= NetworkConditions.Link.defaultQueueLimit)
        }
    }

    @Test("the same seed cuts the same segments, another seed others")
    func seeds() async throws {
        func segments(_ seed: UInt64) async throws -> [Int] {
            try await withPeers(.init(segmentSize: 1...1_000, seed: seed)) { relay, client, server in
                // Sent at once, and read by the relay in one piece, because a socket takes that much.
                try await client.send(bytes(20_000))
                _ = try await server.receive(20_000)
                try await server.send(bytes(20_000))
                _ = try await client.receive(20_000)
                return [relay.counts.toServer.segments, relay.counts.toClient.segments]
            }
        }
        let first = try await segments(1)
        let (again, other) = try await (segments(1), segments(2))
        #expect(again == first && other != first)
        #expect(first[0] != first[1])
    }

    // MARK: Time

    @Test("by a manual clock nothing is delivered before its moment, and everything at it")
    func manualClock() async throws {
        let clock = ManualClock()
        let conditions = NetworkConditions(toServer: .init(delay: .seconds(30)), toClient: .init(delay: .seconds(10)))
        try await withPeers(conditions, clock: clock) { relay, client, server in
            // The connect takes 40 seconds, and the way of the bytes 30.
            try await client.send("hello")
            try await relay.wait { $0.toServer.received == 5 }
            try await clock.untilSleeping()
            clock.advance(by: .seconds(70) - .nanoseconds(1))
            try await pollerHasRun()
            #expect(relay.counts.toServer.delivered == 0 && relay.counts.toServer.queued == 5)
            clock.advance(by: .nanoseconds(1))
            try await expect({ try await server.text(5) }, "hello")

            // From now on the delay is all.
            try await server.send("world!")
            try await relay.wait { $0.toClient.received == 6 }
            clock.advance(by: .seconds(10) - .nanoseconds(1))
            try await pollerHasRun()
            #expect(relay.counts.toClient.delivered == 0)
            clock.advance(by: .nanoseconds(1))
            try await expect({ try await client.text(6) }, "world!")
            client.finish()
            try await clock.untilSleeping()
            clock.advance(by: .seconds(30))
            try await expect({ try await server.text() }, "")
            #expect(clock.elapsed == .seconds(110))
        }
    }

    @Test("a rate delivers so many bytes in a second, in each direction its own")
    func rate() async throws {
        let clock = ManualClock()
        var conditions = NetworkConditions(segmentSize: 10...10)
        (conditions.toServer.rate, conditions.toClient.rate) = (10, 100)
        try await withPeers(conditions, clock: clock) { relay, client, server in
            try await client.send(bytes(100))
            try await server.send(bytes(1_000))
            try await relay.wait { $0.toServer.received == 100 && $0.toClient.received == 1_000 }
            for second in 1...10 {
                try await clock.untilSleeping()
                for _ in 1...10 {
                    clock.advance(by: .milliseconds(100))
                    let due = Int64(clock.elapsed / .milliseconds(100)) * 10
                    try await relay.wait { $0.toClient.delivered == due }
                }
                try await relay.wait { $0.toServer.delivered == 10 * Int64(second) }
            }
        }
    }

    @Test("conditions change while a connection is open")
    func changes() async throws {
        let clock = ManualClock()
        try await withPeers(.init(delay: .seconds(3_600)), clock: clock) { relay, client, server in
            try await client.send("hello")
            try await relay.wait { $0.toServer.received == 5 }
            relay.conditions = .none
            // The time of the connect was chosen at its beginning.
            clock.advance(by: .seconds(10_800))
            try await expect({ try await server.text(5) }, "hello")
            relay.conditions.toClient.segmentSize = 1...1
            try await server.send("world!")
            try await expect({ try await client.text(6) }, "world!")
            #expect(relay.counts.toClient.segments == 6)
        }
    }

    // MARK: Silence and queues

    @Test("a link is silent after so many bytes, while the other goes on")
    func silenceAfterBytes() async throws {
        var conditions = NetworkConditions()
        conditions.toClient.silence = .after(bytes: 3)
        try await withPeers(conditions) { relay, client, server in
            try await server.send("hello")
            try await expect({ try await client.text(3) }, "hel")
            server.finish()
            try await client.send("still here")
            try await expect({ try await server.text(10) }, "still here")
            #expect(relay.counts.toClient.delivered == 3 && relay.counts.toClient.queued == 2)
            // Both sides leave; the client is not told of the server's end, and the relay keeps nothing for it.
            client.close()
            server.close()
            try await relay.wait { $0.open == 0 && $0.toClient.queued == 0 }
        }
    }

    @Test("a link is silent from a moment on")
    func silenceFromMoment() async throws {
        let clock = ManualClock()
        var conditions = NetworkConditions()
        conditions.toServer.silence = .from(.seconds(10))
        try await withPeers(conditions, clock: clock) { relay, client, server in
            try await client.send("hello")
            try await expect({ try await server.text(5) }, "hello")
            clock.advance(by: .seconds(10))
            try await client.send("world!")
            try await relay.wait { $0.toServer.received == 11 }
            try await server.send("!")
            try await expect({ try await client.text(1) }, "!")
            #expect(relay.counts.toServer.delivered == 5)
        }
    }

    @Test("a relay falls silent, and other conditions end the silence")
    func fallsSilent() async throws {
        try await withPeers { relay, client, server in
            relay.fallSilent(.toServer)
            #expect(relay.conditions.toClient.silence == nil)
            relay.fallSilent()
            try await client.send("hello")
            try await server.send("world!")
            try await relay.wait { $0.toServer.received == 5 && $0.toClient.received == 6 }
            #expect(relay.counts.toServer.delivered == 0 && relay.counts.toClient.delivered == 0)
            relay.conditions = .none
            try await expect({ try await server.text(5) }, "hello")
            try await expect({ try await client.text(6) }, "world!")
        }
    }

    @Test("a full queue stops the sender, and what was sent arrives when there is room again")
    func queueLimit() async throws {
        var conditions = NetworkConditions()
        conditions.toClient.queueLimit = 10_000
        try await withPeers(conditions) { relay, client, server in
            relay.fallSilent(.toClient)
            // All that the buffers of both sockets hold, and no more.
            let piece = bytes(100_000)
            var sent = 0
            var blocked = 0
            while blocked < 3 {
                let progress = try piece.withUnsafeBytes { try server.transport.write($0) }
                if case .moved(let count) = progress {
                    (sent, blocked) = (sent + count, 0)
                } else {
                    blocked += 1
                    try await pollerHasRun()
                }
            }
            let counts = relay.counts.toClient
            #expect(counts.received == 10_000 && counts.queued == 10_000 && counts.mostQueued == 10_000)
            #expect(sent > 10_000 && sent < 50_000_000)
            relay.conditions.toClient.silence = nil
            let received = try await client.receive(sent)
            #expect(received.count == sent)
            #expect(relay.counts.toClient.mostQueued == 10_000 && relay.counts.toClient.queued == 0)
        }
    }

    // MARK: Ends

    @Test("a cut by FIN ends the stream behind its byte; the other direction goes on", arguments: [0, 1, 100])
    func cutByFinish(count: Int64) async throws {
        var conditions = NetworkConditions()
        conditions.toClient.cut = .init(.finish, after: count)
        try await withPeers(conditions) { relay, client, server in
            try await server.send(bytes(1_000))
            try await expect({ try await client.receive() }, Array(bytes(1_000)[..<Int(count)]))
            try await client.send("hello")
            try await expect({ try await server.text(5) }, "hello")
            #expect(relay.counts.toClient.delivered == count && relay.counts.open == 1)
            client.close()
            try await expect({ try await server.text() }, "")
            try await relay.wait { $0.open == 0 }
        }
    }

    @Test("a cut by RST resets both sides behind its byte", arguments: [0, 1, 100])
    func cutByReset(count: Int64) async throws {
        let clock = ManualClock()
        let conditions = NetworkConditions(
            toServer: .init(delay: .seconds(1), cut: .init(.reset, after: count)), toClient: .init())
        try await withPeers(conditions, clock: clock) { relay, client, server in
            if count > 0 {
                try await client.send(bytes(1_000))
                try await relay.wait { $0.toServer.received == 1_000 }
            }
            try await clock.untilSleeping()
            clock.advance(by: .seconds(2))
            await #expect(throws: IOFailure.self) { _ = try await client.receive() }
            // The bytes before the reset were delivered.
            if count > 0 {
                let received = try await server.receive(Int(count))
                #expect(received == Array(bytes(1_000)[..<Int(count)]))
            }
            await #expect(throws: IOFailure.self) { _ = try await server.receive() }
            try await relay.wait { $0.open == 0 }
            #expect(relay.counts.toServer.delivered == count)
        }
    }

    @Test(
        "all connections are cut at once, and later ones are relayed",
        arguments: [NetworkConditions.Cut.finish, .reset])
    func cutAll(by cut: NetworkConditions.Cut) async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        try await withNetworkRelay(toPort: listener.address.port, .init(delay: .seconds(3_600))) { relay in
            var peers: [StreamPeer] = []
            for _ in 0..<3 {
                peers.append(try await Self.connect(to: relay.port))
                peers.append(try await StreamPeer(listener))
            }
            try await peers[0].send("never delivered")
            try await relay.wait { $0.toServer.received == 15 }
            relay.cutAll(cut)
            for peer in peers {
                switch cut {
                case .finish: try await expect({ try await peer.text() }, "")
                case .reset: await #expect(throws: IOFailure.self) { _ = try await peer.receive() }
                }
                peer.close()
            }
            try await relay.wait { $0.open == 0 }
            #expect(relay.counts.toServer.queued == 0 && relay.counts.toServer.delivered == 0)
            relay.conditions = .none
            let client = try await Self.connect(to: relay.port)
            let server = try await StreamPeer(listener)
            try await client.send("hello")
            try await expect({ try await server.text(5) }, "hello")
            client.close()
            server.close()
        }
    }

    @Test("a reset is passed on as a reset, a FIN as a FIN, and neither before the bytes")
    func endsArePassedOn() async throws {
        let clock = ManualClock()
        try await withPeers(.init(delay: .seconds(1)), clock: clock) { relay, client, server in
            clock.advance(by: .seconds(4))
            try await client.send("hello")
            client.finish()
            try await relay.wait { $0.toServer.received == 5 }
            try await clock.untilSleeping()
            clock.advance(by: .seconds(1))
            try await expect({ try await server.text() }, "hello")
            try await server.send("world!")
            try await relay.wait { $0.toClient.received == 6 }
            server.reset()
            // The relay must have read the reset before the time moves; it notifies of bytes only.
            try await pollerHasRun()
            clock.advance(by: .seconds(1))
            try await expect({ try await client.text(6) }, "world!")
            clock.advance(by: .seconds(1))
            await #expect(throws: IOFailure.self) { _ = try await client.receive() }
            try await relay.wait { $0.open == 0 }
        }
    }

    @Test("what a server has sent is passed on even if it resets the connection while the client sends")
    func responseBeforeReset() async throws {
        try await withPeers(.init(delay: .milliseconds(5))) { relay, client, server in
            let sending = Task { while true { try await client.send(bytes(50_000)) } }
            try await relay.wait { $0.toServer.delivered > 0 }
            try await server.send("no thanks")
            // The server's socket has unread bytes, so its close is a reset.
            server.close()
            try await expect({ try await client.text(9) }, "no thanks")
            await #expect(throws: IOFailure.self) { try await sending.value }
            try await relay.wait { $0.open == 0 }
        }
    }

    @Test("a server that cannot be reached resets the client")
    func unreachable() async throws {
        let port = try closedPort()
        try await withNetworkRelay(toPort: port, .init(delay: .milliseconds(1))) { relay in
            await expectFailure(.connectionLost) { try await Session(.ephemeral).data(from: relay.url()) }
            #expect(relay.counts.unreachable >= 1)
            try await relay.wait { $0.open == 0 }
        }
    }

    @Test("leaving the scope closes everything")
    func scope() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let (client, server, port) = try await withNetworkRelay(
            toPort: listener.address.port, .init(delay: .seconds(3_600))
        ) { relay in
            let client = try await Self.connect(to: relay.port)
            let server = try await StreamPeer(listener)
            try await client.send("never delivered")
            try await relay.wait { $0.toServer.received == 15 }
            return (client, server, relay.port)
        }
        try await expect({ try await server.text() }, "")
        try await expect({ try await client.text() }, "")
        await #expect(throws: IOFailure.self) { _ = try await Self.connect(to: port) }
        client.close()
        server.close()
    }

    // MARK: Values

    @Test("URLs keep scheme, userinfo, path and query, and get the port of the relay")
    func urls() async throws {
        let relay = try NetworkRelay(to: url("https://localhost:8443/base?x=1#f"))
        let port = relay.port
        #expect(relay.url().absoluteString == "https://localhost:\(port)/")
        #expect(relay.url("/a%20b?b=c").absoluteString == "https://localhost:\(port)/a%20b?b=c")
        let other = try url("ftp://ada:pw@[::1]:2121/dir/a.txt")
        #expect(relay.url(other).absoluteString == "ftp://ada:pw@127.0.0.1:\(port)/dir/a.txt")
        #expect(relay.url(try url("wss://origin.test/x")).absoluteString == "wss://127.0.0.1:\(port)/x")
        #expect(try NetworkRelay(toPort: 80).url("/x").absoluteString.hasPrefix("http://127.0.0.1:"))
        for text in ["file:///tmp/x", "gopher://host/"] {
            #expect(throws: HTTPTestServerError.self) { try NetworkRelay(to: url(text)) }
        }
    }

    @Test("presets have a delay and a rate in both directions, and take a seed")
    func presets() {
        #expect(NetworkConditions.none == NetworkConditions() && NetworkConditions.none.roundTripTime == .zero)
        let presets: [NetworkConditions] = [.sameCity, .transatlantic, .mobile, .satellite]
        for preset in presets {
            for link in NetworkConditions.Direction.allCases.map({ preset[$0] }) {
                #expect(link.delay > link.jitter && link.jitter > .zero && link.rate ?? 0 > 0)
                #expect(link.silence == nil && link.cut == nil)
            }
            #expect(preset.seeded(7).seed == 7 && preset.seeded(7).toServer == preset.toServer && preset.seed == 0)
        }
        #expect(NetworkConditions.satellite.roundTripTime == .milliseconds(600))
    }

    @Test("the error of a relay's wait shows its counts and flights")
    func waitTimesOut() async throws {
        try await withPeers { relay, client, server in
            try await client.send("hello")
            try await expect({ try await server.text(5) }, "hello")
            var words = ""
            do { try await relay.wait(timeout: .milliseconds(20)) { $0.open == 0 } } catch { words = "\(error)" }
            #expect(words.contains("the counts of the relay (URLLoadingTests/NetworkRelayTests.swift:"), "\(words)")
            #expect(words.contains("to server: 5 of 5 bytes") && words.contains("1 to server: 5 bytes"), "\(words)")
        }
    }
}

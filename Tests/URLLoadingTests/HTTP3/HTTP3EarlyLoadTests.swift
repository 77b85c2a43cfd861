// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Which requests of a session go as early data, shown by the packets that pass a relay.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3EarlyLoadTests {
    /// A session with tickets of a server behind a relay, and without a connection to it.
    private struct Way {
        let server: HTTP3TestServer
        let session: Session
        let relay: DatagramRelay
        /// The datagrams of the connections so far.
        let before: Int

        func url(_ path: String = "/") -> URL {
            URL(string: "https://localhost:\(relay.port)\(path)") ?? URL(filePath: "/")
        }
        /// The kinds of the packets in the first two datagrams of the next connection.
        var first: [QUICPacketKind] {
            relay.fromClients.dropFirst(before).prefix(2).flatMap { QUICPacketKind.all(in: $0) }
        }
        var isEarly: Bool { first.contains(.early) }
        func requests(_ path: String) -> Int { server.requests.count { $0.path == path } }
    }

    /// - Parameter faults: what happens to the datagrams of each client.
    private func with(
        _ faults: DatagramFaults = DatagramFaults(), change: (inout Configuration) -> Void = { _ in },
        visit: String = "/first", _ use: (Way) async throws -> Void
    ) async throws {
        try await withHTTP3(
            change: {
                $0.connections.sendsEarlyData = true
                $0.networks.resolver = RecordingResolver()
                change(&$0)
            }
        ) { server, session in
            server.acceptsEarlyData = true
            server.route("/cookie") { _ in .ok("hello", headers: ["Set-Cookie": "a=b"]) }
            let relay = try DatagramRelay(to: server.port, client: faults, server: DatagramFaults())
            defer { relay.stop() }
            let way = Way(server: server, session: session, relay: relay, before: 0)
            try await session.expect(way.url(visit), "hello")
            #expect(!way.isEarly)
            // Both tickets, and with the second response also the settings.
            try await eventually(try session.core.pool.connector.secure.context().sessions.count) { $0 == 2 }
            try await session.expect(way.url(), "hello")
            session.core.pool.http3.closeIdle()
            try await server.wait { $0.open == 0 }
            let before = relay.fromClients.count
            try await use(Way(server: server, session: session, relay: relay, before: before))
        }
    }

    // MARK: Which requests

    enum Sent: String, CaseIterable {
        case get, head, query, range
        case post, delete, body, field, storedCookie, ownCookie, login, key, parameter, setting

        var isEarly: Bool { [.get, .head, .query, .range].contains(self) }
    }

    @Test(
        "Only a GET or HEAD without a body or credentials goes with the first datagrams (security 87)",
        arguments: Sent.allCases)
    func sent(sent: Sent) async throws {
        try await with(
            change: { $0.connections.sendsEarlyData = sent != .setting },
            visit: sent == .storedCookie ? "/cookie" : "/first"
        ) { way in
            var request = Request(url: way.url(sent == .query ? "/it?q=1" : sent == .parameter ? "/it?token=1" : "/it"))
            switch sent {
            case .get, .query, .parameter, .storedCookie, .setting: break
            case .head: request.method = .head
            case .range: request.headers[.range] = "bytes=0-9"
            case .post: (request.method, request.body) = (.post, .data(Data([1])))
            case .delete: request.method = .delete
            case .body: request.body = .data(Data([1]))
            case .field: request.headers[.authorization] = "Bearer x"
            case .ownCookie: request.headers[.cookie] = "c=d"
            case .key: request.headers["X-Api-Key"] = "x"
            case .login:
                request = Request(
                    url: URL(string: "https://user:pass@localhost:\(way.relay.port)/it") ?? way.url())
            }
            let (_, response) = try await way.session.data(for: request)
            #expect(response.http?.status == .ok && response.http?.version == .http3)
            #expect(way.isEarly == sent.isEarly, "\(way.first)")
            #expect(way.requests("/it") == 1 && way.server.counts.accepted == 2)
        }
    }

    @Test("What may be sent early, as a table")
    func plan() {
        let rows: [(EarlyDataPlan, EarlyDataPlan.Obstacle?)] = [
            (.init(), nil), (.init(method: .head), nil),
            (.init(isFirst: false), .repeated),
            (.init(method: .post), .method), (.init(method: .options), .method), (.init(method: "QUERY"), .method),
            (.init(hasBody: true), .body), (.init(opensWebSocket: true), .webSocket),
            (.init(hasCredential: true), .credential), (.init(asksCaller: true), .decision),
        ]
        for (plan, obstacle) in rows { #expect(plan.obstacle == obstacle, "\(plan)") }
        #expect(Set(rows.compactMap(\.1)) == Set(EarlyDataPlan.Obstacle.allCases))
        #expect(!Configuration.ephemeral.connections.sendsEarlyData)
    }

    @Test("Loads that wait for the connection of another one are sent after the handshake") func others() async throws {
        try await with { way in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask { try await way.session.expect(way.url("/\(number)"), "hello") }
                }
                try await group.waitForAll()
            }
            #expect(way.isEarly)
            for number in 0..<20 { #expect(way.requests("/\(number)") == 1) }
        }
    }

    @Test("Where the first address of a server refuses, the next one gets the early data")
    func addresses() async throws {
        let places: [SocketAddress] = [.ipv4((127, 0, 0, 2), port: 0), .ipv4((127, 0, 0, 1), port: 0)]
        let change: @Sendable (inout Configuration) -> Void = {
            $0.networks.resolver = RecordingResolver(.success(places))
        }
        try await with(change: change) { way in
            try await way.session.expect(way.url("/it"), "hello")
            #expect(way.isEarly && way.requests("/it") == 1)
        }
    }

    @Test("The trace says what became of early data", arguments: [true, false])
    func trace(accepts: Bool) async throws {
        let events = Watched<[WireTapEvent]>([])
        try await with(change: { $0.wireTap = { event in events.change { $0.append(event) } } }) { way in
            way.server.acceptsEarlyData = accepts
            try await way.session.expect(way.url("/it"), "hello")
            let lines = events.value.compactMap { event -> String? in
                switch event {
                case .connected(let line, _): line
                case .frame(let line, true, _) where line.hasPrefix("QUIC 0RTT"): line
                default: nil
                }
            }
            #expect(lines.contains { $0.contains("early data \(accepts ? "accepted" : "rejected")") }, "\(lines)")
            #expect(lines.contains { $0.hasPrefix("QUIC 0RTT") && $0.contains("stream 0 ") }, "\(lines)")
        }
    }

    // MARK: Servers that take none, or not this request

    @Test("The load notices nothing of early data that is rejected") func rejected() async throws {
        try await with { way in
            way.server.acceptsEarlyData = false
            try await way.session.expect(way.url("/it"), "hello")
            #expect(way.isEarly)
            #expect(way.requests("/it") == 1 && way.server.counts.accepted == 2)
            try await way.session.expect(way.url("/next"), "hello")
            #expect(way.server.counts.accepted == 2)
        }
    }

    @Test("425 is repeated once, after the handshake and on the same connection", arguments: [1, 2])
    func tooEarly(count: Int) async throws {
        try await with { way in
            let left = Watched(count)
            way.server.route("/it") { _ in
                let isLate = left.change { left -> Bool in
                    left -= 1
                    return left < 0
                }
                return isLate ? .ok("late") : .status(.tooEarly)
            }
            let (data, response) = try await way.session.data(for: Request(url: way.url("/it")))
            #expect(response.http?.status == (count == 1 ? .ok : .tooEarly))
            #expect(count == 2 || Array(data) == Array("late".utf8))
            #expect(way.isEarly)
            #expect(way.requests("/it") == 2 && way.server.counts.accepted == 2)
        }
    }

    @Test("425 to a request that was not sent early is delivered") func notEarly() async throws {
        try await with { way in
            way.server.route("/it") { _ in .status(.tooEarly) }
            try await way.session.expect(way.url(), "hello")
            let (_, response) = try await way.session.data(for: Request(url: way.url("/it")))
            #expect(response.http?.status == .tooEarly && way.requests("/it") == 1)
        }
    }

    @Test("A request that the server refuses unprocessed is sent again") func refused() async throws {
        try await with { way in
            way.server.script(onConnection: 2) { peer in
                try await peer.start()
                let request = try await peer.expectRequest()
                peer.reset(request.stream, .requestRejected)
                let again = try await peer.expectRequest()
                try await peer.respond(to: again.stream, .ok, body: Array("again".utf8))
                await peer.untilClosed()
            }
            try await way.session.expect(way.url("/it"), "again")
            #expect(way.isEarly && way.server.counts.accepted == 2)
        }
    }

    // MARK: The network, and loads that end

    @Test("A lost datagram delays the load, and changes nothing else", arguments: [0, 1, 2], [true, false])
    func lost(number: Int, accepts: Bool) async throws {
        var faults = DatagramFaults()
        faults.singles = [number: .lose]
        try await with(faults) { way in
            way.server.acceptsEarlyData = accepts
            try await way.session.expect(way.url("/it"), "hello")
            #expect(way.isEarly)
            #expect(way.requests("/it") == 1)
        }
    }

    @Test("A load that is cancelled before the handshake ends at once") func cancelledBefore() async throws {
        try await with { way in
            way.relay.cut(alsoOthers: true)
            let load = Task { try await way.session.data(from: way.url("/it")) }
            try await eventually(way.isEarly) { $0 }
            load.cancel()
            let error = await #expect(throws: LoadError.self) { try await load.value }
            #expect(error?.reason == .cancelled)
            try await eventually(way.session.core.pool.http3.isEmpty) { $0 }
            #expect(way.requests("/it") == 0)
        }
    }

    @Test("A load that is cancelled after the handshake ends its stream, and not the connection")
    func cancelledAfter() async throws {
        try await with { way in
            way.server.route("/it") { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("late")
            }
            let load = Task { try await way.session.data(from: way.url("/it")) }
            try await eventually(way.requests("/it")) { $0 == 1 }
            try await eventually(way.session.core.pool.http3.connections.count) { $0 == 1 }
            load.cancel()
            let error = await #expect(throws: LoadError.self) { try await load.value }
            #expect(error?.reason == .cancelled && way.isEarly)
            let ended = try await way.server.waitForEnding { $0.connection == 2 }
            #expect(ended.stream == 0 && ended.code == .requestCancelled)
            try await way.session.expect(way.url("/next"), "hello")
            #expect(way.server.counts.accepted == 2)
        }
    }

    @Test("A load that has left for TCP leaves nothing open on the connection that comes too late")
    func left() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        configuration.connections.httpVersions = .http3Preferred
        configuration.connections.sendsEarlyData = true
        configuration.networks.resolver = RecordingResolver()
        try await withHTTP3TestServer(.init(try authority.issue())) { server in
            server.acceptsEarlyData = true
            server.route("*") { _ in .ok("hello") }
            var slow = DatagramFaults()
            slow.delay = .milliseconds(250)
            // There is no server of TCP.
            let relay = try DatagramRelay(to: server.port, client: slow, server: slow)
            defer { relay.stop() }
            try await withSession(configuration) { session in
                let way = Way(server: server, session: session, relay: relay, before: 0)
                let pool = session.core.pool
                await #expect(throws: LoadError.self) { try await session.data(from: way.url("/none")) }
                try await eventually(pool.http3.connections.count) { $0 == 1 }
                try await session.expect(way.url("/first"), "hello")
                try await session.expect(way.url("/first"), "hello")
                #expect(try pool.connector.secure.context().sessions.count > 0)
                pool.http3.closeIdle()
                let before = relay.fromClients.count
                await #expect(throws: LoadError.self) { try await session.data(from: way.url("/left")) }
                let ended = try await server.waitForEnding { $0.connection == 2 && $0.stream != nil }
                #expect(ended.stream == 0 && ended.code == .requestCancelled)
                let next = Way(server: server, session: session, relay: relay, before: before)
                #expect(next.isEarly)
                try await session.expect(way.url("/next"), "hello")
                #expect(server.counts.accepted == 2)
            }
        }
    }
}

#endif

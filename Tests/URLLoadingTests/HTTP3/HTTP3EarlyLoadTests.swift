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
    private struct KnownServer {
        let server: HTTP3TestServer
        let session: Session
        let relay: DatagramRelay
        /// The datagrams of the connections so far.
        let before: Int

        func url(_ path: String = "/", user: String = "") -> URL {
            URL(string: "https://\(user)localhost:\(relay.port)\(path)") ?? URL(filePath: "/")
        }
        /// The kinds of the packets in the first two datagrams of the next connection.
        var first: [QUICPacketKind] {
            relay.fromClients.dropFirst(before).prefix(2).flatMap { QUICPacketKind.all(in: $0) }
        }
        var isEarly: Bool { first.contains(.early) }
        func requests(_ path: String) -> Int { server.requests.count { $0.path == path } }
    }

    /// - Parameters:
    ///   - faults: what happens to the datagrams of each client.
    ///   - addresses: those of the server. By its name it has one of IPv6, too, where no server is.
    private func with(
        _ faults: DatagramFaults = DatagramFaults(), change: (inout Configuration) -> Void = { _ in },
        addresses: [String] = ["127.0.0.1"], visit: String = "/first", user: String = "",
        _ use: (KnownServer) async throws -> Void
    ) async throws {
        let override = try AddressOverride.addresses(addresses, of: nil)
        try await withHTTP3(
            change: {
                $0.connections.sendsEarlyData = true
                $0.networks.addressOverrides = [override]
                change(&$0)
            }
        ) { server, session in
            server.acceptsEarlyData = true
            server.route("/cookie") { _ in .ok("hello", headers: ["Set-Cookie": "a=b"]) }
            server.route("/login") { request in
                guard request.headers[.authorization] == nil else { return .ok("hello") }
                return .status(.unauthorized, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            }
            let relay = try DatagramRelay(to: server.port, client: faults, server: DatagramFaults())
            defer { relay.stop() }
            let known = KnownServer(server: server, session: session, relay: relay, before: 0)
            try await session.expect(known.url(visit, user: user), "hello")
            #expect(!known.isEarly)
            // Both tickets, and with the second response also the settings.
            try await eventually(try session.core.pool.connector.secure.context().sessions.count) { $0 == 2 }
            try await session.expect(known.url(), "hello")
            session.core.pool.http3.closeIdle()
            try await server.wait { $0.open == 0 }
            let before = relay.fromClients.count
            try await use(KnownServer(server: server, session: session, relay: relay, before: before))
        }
    }

    // MARK: Which requests

    enum Sent: String, CaseIterable {
        case get, head, query, range
        case post, delete, body, field, storedCookie, ownCookie, login, key, parameter, decision, setting

        var isEarly: Bool { [.get, .head, .query, .range].contains(self) }
    }

    @Test(
        "Only a GET or HEAD without a body or credentials goes with the first datagrams (security 87)",
        arguments: Sent.allCases)
    func sent(sent: Sent) async throws {
        try await with(
            change: {
                // The default.
                if sent == .setting { $0.connections.sendsEarlyData = Configuration.Connections().sendsEarlyData }
            },
            visit: sent == .storedCookie ? "/cookie" : sent == .login ? "/login" : "/first",
            user: sent == .login ? "user:pass@" : ""
        ) { known in
            var decisions = Decisions()
            var request = Request(url: known.url("/it"))
            switch sent {
            case .get, .storedCookie, .setting: break
            case .query: request.url = known.url("/it?q=1")
            case .parameter: request.url = known.url("/it?token=1")
            case .decision: decisions.sign = Decision { _ in .none }
            case .head: request.method = .head
            case .range: request.headers[.range] = "bytes=0-9"
            case .post: (request.method, request.body) = (.post, .data(Data([1])))
            case .delete: request.method = .delete
            case .body: request.body = .data(Data([1]))
            case .field: request.headers[.authorization] = "Bearer x"
            case .ownCookie: request.headers[.cookie] = "c=d"
            case .key: request.headers["X-Api-Key"] = "x"
            case .login: request.url = known.url("/it", user: "user:pass@")
            }
            let (_, response) = try await known.session.data(for: request, decisions: decisions)
            #expect(response.http?.status == .ok && response.http?.version == .http3)
            #expect(known.isEarly == sent.isEarly, "\(known.first)")
            #expect(known.requests("/it") == 1 && known.server.counts.accepted == 2)
        }
    }

    @Test("Loads that wait for the connection of another one are sent after the handshake") func others() async throws {
        try await with { known in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask { try await known.session.expect(known.url("/\(number)"), "hello") }
                }
                try await group.waitForAll()
            }
            #expect(known.isEarly)
            for number in 0..<20 { #expect(known.requests("/\(number)") == 1) }
        }
    }

    @Test("Where the first address of a server refuses, the next one gets the early data")
    func addresses() async throws {
        try await with(addresses: ["127.0.0.2", "127.0.0.1"]) { known in
            try await known.session.expect(known.url("/it"), "hello")
            #expect(known.isEarly && known.requests("/it") == 1)
        }
    }

    @Test("The trace says what became of early data", arguments: [true, false])
    func trace(accepts: Bool) async throws {
        let events = Watched<[WireTapEvent]>([])
        try await with(change: { $0.wireTap = { event in events.change { $0.append(event) } } }) { known in
            known.server.acceptsEarlyData = accepts
            try await known.session.expect(known.url("/it"), "hello")
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
        try await with { known in
            known.server.acceptsEarlyData = false
            try await known.session.expect(known.url("/it"), "hello")
            #expect(known.isEarly)
            #expect(known.requests("/it") == 1 && known.server.counts.accepted == 2)
            try await known.session.expect(known.url("/next"), "hello")
            #expect(known.server.counts.accepted == 2)
        }
    }

    @Test("425 is repeated once, after the handshake and on the same connection", arguments: [1, 2])
    func tooEarly(count: Int) async throws {
        try await with { known in
            let left = Watched(count)
            known.server.route("/it") { _ in
                let isLate = left.change { left -> Bool in
                    left -= 1
                    return left < 0
                }
                return isLate ? .ok("late") : .status(.tooEarly)
            }
            let (data, response) = try await known.session.data(for: Request(url: known.url("/it")))
            #expect(response.http?.status == (count == 1 ? .ok : .tooEarly))
            #expect(count == 2 || Array(data) == Array("late".utf8))
            #expect(known.isEarly)
            #expect(known.requests("/it") == 2 && known.server.counts.accepted == 2)
        }
    }

    @Test("425 to a request that was not sent early is delivered") func notEarly() async throws {
        try await with { known in
            known.server.route("/it") { _ in .status(.tooEarly) }
            try await known.session.expect(known.url(), "hello")
            let (_, response) = try await known.session.data(for: Request(url: known.url("/it")))
            #expect(response.http?.status == .tooEarly && known.requests("/it") == 1)
        }
    }

    @Test("A request that the server refuses unprocessed is sent again") func refused() async throws {
        try await with { known in
            known.server.script(onConnection: 2) { peer in
                try await peer.start()
                let request = try await peer.expectRequest()
                peer.reset(request.stream, .requestRejected)
                let again = try await peer.expectRequest()
                try await peer.respond(to: again.stream, .ok, body: Array("again".utf8))
                await peer.untilClosed()
            }
            try await known.session.expect(known.url("/it"), "again")
            #expect(known.isEarly && known.server.counts.accepted == 2)
        }
    }

    // MARK: Loads that leave for TCP

    @Test("A load whose early data has no answer takes TCP, and its request reaches each server at most once")
    func leavesForTCP() async throws {
        try await withBoth { server, http3, configuration in
            let relay = try DatagramRelay(to: http3.port, client: DatagramFaults(), server: DatagramFaults())
            defer { relay.stop() }
            http3.acceptsEarlyData = true
            server.route("*") { _ in .ok("two", headers: ["Alt-Svc": "h3=\":\(relay.port)\"; ma=1000"]) }
            var configuration = configuration
            configuration.connections.sendsEarlyData = true
            try await withSession(configuration) { session in
                for _ in 0..<1000 {
                    let (_, response) = try await session.data(from: server.url("/"))
                    if response.http?.version == .http3 { break }
                }
                let sessions = try session.core.pool.connector.secure.context().sessions
                try await eventually(sessions.count) { $0 >= 2 }
                // With it come the settings of the server, which early data needs too.
                try await session.expect(server.url("/"), "hello")
                session.core.pool.closeIdle()
                try await http3.wait { $0.open == 0 }
                let before = relay.fromClients.count
                relay.cut(alsoOthers: true)
                try await session.expect(server.url("/it"), "two")
                let kinds = relay.fromClients.dropFirst(before).flatMap { QUICPacketKind.all(in: $0) }
                #expect(kinds.contains(.early), "\(kinds)")
            }
            #expect(server.requests.count { $0.path == "/it" } == 1)
            #expect(!http3.requests.contains { $0.path == "/it" })
        }
    }

    // MARK: The network, and loads that end

    @Test("A lost datagram delays the load, and changes nothing else", arguments: [0, 1, 2], [true, false])
    func lost(number: Int, accepts: Bool) async throws {
        var faults = DatagramFaults()
        faults.singles = [number: .lose]
        // Beside all other tests, the retransmission of a handshake may wait for long.
        try await with(faults, change: { $0.timeouts.connect = .seconds(200) }) { known in
            known.server.acceptsEarlyData = accepts
            try await known.session.expect(known.url("/it"), "hello")
            #expect(known.isEarly)
            #expect(known.requests("/it") == 1)
        }
    }

    @Test("A load that is cancelled before the handshake ends at once") func cancelledBefore() async throws {
        try await with { known in
            known.relay.cut(alsoOthers: true)
            let load = Task { try await known.session.data(from: known.url("/it")) }
            try await eventually(known.isEarly) { $0 }
            load.cancel()
            let error = await #expect(throws: LoadError.self) { try await load.value }
            #expect(error?.reason == .cancelled)
            try await eventually(known.session.core.pool.http3.isEmpty) { $0 }
            #expect(known.requests("/it") == 0)
        }
    }

    @Test("A load that is cancelled after the handshake ends its stream, and not the connection")
    func cancelledAfter() async throws {
        try await with { known in
            known.server.route("/it") { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("late")
            }
            let load = Task { try await known.session.data(from: known.url("/it")) }
            try await eventually(known.requests("/it")) { $0 == 1 }
            let pool = known.session.core.pool.http3
            try await eventually(pool.connections.first?.places.streamsBegun) { $0 == 1 }
            load.cancel()
            let error = await #expect(throws: LoadError.self) { try await load.value }
            #expect(error?.reason == .cancelled && known.isEarly)
            let ended = try await known.server.waitForEnding { $0.connection == 2 }
            #expect(ended.stream == 0 && ended.code == .requestCancelled)
            try await known.session.expect(known.url("/next"), "hello")
            #expect(known.server.counts.accepted == 2)
        }
    }

    @Test("A request whose load has left before the end of the handshake is reset after it") func left() async throws {
        var slow = DatagramFaults()
        slow.delay = .milliseconds(100)
        try await with(slow, change: { $0.timeouts.connect = .seconds(200) }) { known in
            known.server.route("/left") { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("late")
            }
            let destination = try Request(url: known.url("/left")).destination.get()
            var early: EarlyRequest? = EarlyRequest(
                HTTP2Request(
                    method: .get, scheme: "https", authority: destination.target.hostField,
                    path: destination.target.originForm))
            let core = known.session.core
            let opening = HTTP3Opening(
                connector: core.pool.connector, route: destination.route, target: .init(), access: .open,
                news: PathNews(core.configuration.networkMonitor.source), early: early, handshakeTimeout: nil
            ) { _, _ in }
            let opened = Task { try await opening.run(StopToken(), nil) }
            try await eventually(known.isEarly) { $0 }
            early = nil
            let connection = try await opened.value
            // On a busy machine the handshake may be over before.
            connection.flushIfNeeded()
            let ended = try await known.server.waitForEnding { $0.connection == 2 }
            #expect(ended.stream == 0 && ended.code == .requestCancelled)
            #expect(known.requests("/left") == 1)
            connection.close()
        }
    }
}

#endif

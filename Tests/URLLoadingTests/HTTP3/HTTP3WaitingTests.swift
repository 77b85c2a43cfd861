// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Testing
@testable import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// What loads over HTTP/3 wait for, and that each such wait ends: streams, windows, servers that have gone.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3WaitingTests {
    @Test("A load that waits for a stream is sent elsewhere when its connection ends, whatever its method")
    func withoutStream() async throws {
        try await withHTTP3(serve: {
            $0.maximumStreams = 1
            $0.idleTimeout = .seconds(2)
        }) { server, session in
            server.leaves(after: "/first")
            _ = try await session.data(from: server.url("/first"))
            // The next request needs a permission, which does not come.
            let post = Request(url: server.url("/"), method: .post, body: .data(Data([1])))
            let (second, _) = try await session.data(for: post)
            #expect(second.elementsEqual("hello".utf8))
        }
    }

    @Test("A load whose new connection turns silent before the load has a thread takes another one")
    func silentBeforeItsLoad() async throws {
        let override = try AddressOverride.addresses(["127.0.0.1"], of: nil)
        try await withHTTP3(change: {
            $0.networks.addressOverrides = [override]
            $0.timeouts.connect = .seconds(100)
        }) { server, session in
            // Slow, so that the threads are held before the handshake is over.
            var network = DatagramFaults()
            network.delay = .milliseconds(100)
            let relay = try DatagramRelay(to: server.port, client: network, server: network)
            defer { relay.stop() }
            let url = try #require(URL(string: "https://localhost:\(relay.port)/"))
            let threads = HeldExecutor()
            let load = Task(executorPreference: threads) { try await session.data(from: url).0 }
            try await eventually(relay.fromClients.count) { $0 > 0 }
            threads.close()
            // Such a packet is sent when the handshake is over.
            try await eventually(relay.fromClients) { sent in
                sent.contains { QUICPacketKind.all(in: $0).contains(.short) }
            }
            relay.cut()
            // Longer than a server may be silent before requests go elsewhere.
            try await Task.sleep(for: .seconds(5))
            threads.open()
            let data = try await load.value
            #expect(data.elementsEqual("hello".utf8))
        }
    }

    @Test("A body comes through the smallest windows", arguments: [16 << 10, 32 << 10, 40_000])
    func smallWindow(window: Int) async throws {
        let body = (0..<500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
        try await withHTTP3(change: { $0.limits.http2StreamWindow = window }) { server, session in
            server.route("*") { _ in .ok(.bytes(body)) }
            let (data, _) = try await session.data(from: server.url("/"))
            #expect(Array(data) == body)
        }
    }

    @Test("A server that has gone while its connection was idle is left after the time of a PING")
    func gone() async throws {
        try await withHTTP3(change: {
            $0.connections.http2PingInterval = .milliseconds(50)
            $0.connections.http2PingTimeout = .seconds(2)
        }) { server, session in
            server.leaves(after: "/first")
            _ = try await session.data(from: server.url("/first"))
            try await Task.sleep(for: .milliseconds(100))
            var request = Request(url: server.url("/"))
            // Less than the idle timeout of the connection.
            request.idleTimeout = .seconds(20)
            let (data, _) = try await session.data(for: request)
            #expect(data.elementsEqual("hello".utf8))
        }
    }

    @Test(
        "A response may take longer than the idle timeout that the server has stated",
        arguments: [Duration.seconds(15), nil])
    func slowResponse(interval: Duration?) async throws {
        try await withHTTP3(
            serve: { $0.idleTimeout = .seconds(1) }, change: { $0.connections.http2PingInterval = interval }
        ) { server, session in
            server.route("*") { _ in
                try await Task.sleep(for: .milliseconds(2_500))
                return .ok("late")
            }
            let (data, _) = try await session.data(from: server.url("/"))
            #expect(data.elementsEqual("late".utf8))
            #expect(server.counts.requests == 1)
        }
    }

    @Test("A program's own resolver is asked for HTTP/3 too, and its failures say nothing of the server")
    func ownResolver() async throws {
        try await withBoth(samePort: true, names: ["site.test"]) { server, _, configuration in
            server.route("/") { _ in .ok("two") }
            let isReady = Watched(false)
            var configuration = configuration
            configuration.connections.httpVersions = .http3Preferred
            configuration.networks.nameResolver = NameResolver { _ in
                struct Offline: Error {}
                guard isReady.value else { throw Offline() }
                return ["127.0.0.1"]
            }
            let url = try #require(URL(string: "https://site.test:\(server.url("/").port ?? 0)/"))
            try await withSession(configuration) { session in
                let error = await #expect(throws: LoadError.self) { try await session.data(from: url) }
                #expect(error?.reason == .lookupFailed)
                isReady.change { $0 = true }
                // On a busy machine the handshake takes longer than loads wait.
                let origin = try Self.origin(of: url)
                #expect(session.hsts?.alternatives.target(for: origin, isPreferred: true) != nil)
                while try await session.data(from: url).1.http?.version != .http3 { session.hsts?.removeAll() }
            }
        }
    }

    @Test("What a server offers does not lead away from where the configuration leads its origin")
    func overridden() async throws {
        try await withBoth(names: ["site.test"]) { server, http3, configuration in
            server.route("/") { _ in .ok("two", headers: ["Alt-Svc": "h3=\":\(http3.port)\"; ma=60"]) }
            var configuration = configuration
            configuration.networks.addressOverrides = [
                try .connect("site.test", to: "127.0.0.1", onPort: server.url("/").port.map { UInt16($0) })
            ]
            let url = try #require(URL(string: "https://site.test/"))
            try await withSession(configuration) { session in
                for _ in 0..<3 {
                    let (_, response) = try await session.data(from: url)
                    #expect(response.http?.version == .http2)
                }
                let origin = try Self.origin(of: url)
                #expect(session.hsts?.alternatives.knows(origin) == false)
            }
            #expect(http3.counts.accepted == 0)
        }
    }

    @Test("An answer of a server that is none of the origin's offers nothing") func misdirected() async throws {
        try await withBoth { server, http3, configuration in
            server.route("/") { _ in
                .status(.misdirectedRequest, headers: ["Alt-Svc": "h3=\":\(http3.port)\"; ma=60"])
            }
            try await withSession(configuration) { session in
                let (_, response) = try await session.data(from: server.url("/"))
                #expect(response.http?.status == .misdirectedRequest)
                let origin = try Self.origin(of: server.url("/"))
                #expect(session.hsts?.alternatives.knows(origin) == false)
            }
        }
    }

    private static func origin(of url: URL) throws -> Origin {
        try Origin(
            scheme: "https", host: try Origin.Host(try #require(url.host())), port: url.port.map { UInt16($0) })
    }
}

extension HTTP3TestServer {
    /// Answers requests, and does so no more on a connection on which it has answered one for a path.
    fileprivate func leaves(after path: String) {
        script { peer in
            try await peer.start()
            while true {
                let request = try await peer.expectRequest()
                try await peer.respond(to: request.stream, body: Array("hello".utf8))
                guard request.path == path else { continue }
                await peer.drain()
                peer.fallSilent()
                await peer.untilClosed()
            }
        }
    }
}

#endif

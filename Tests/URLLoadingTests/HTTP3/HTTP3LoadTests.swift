// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Loads of a session over HTTP/3, with a server of the same libraries.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3LoadTests {
    private static let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    @Test("A connection carries consecutive loads, and the metrics say h3") func getAndReuse() async throws {
        try await withHTTP3 { server, session in
            for _ in 0..<3 {
                let task = session.dataTask(Request(url: server.url("/a?b"))).resumed()
                let (data, response) = try await (task.value, task.response)
                #expect(Array(data) == Array("hello".utf8))
                #expect(response.http?.version == .http3)
                let transaction = try #require(try await task.metrics.transactions.last)
                #expect(transaction.protocolName == "h3")
                #expect(transaction.tlsVersion == .tls13)
                #expect(transaction.remotePort == Int(server.port))
                #expect(transaction.secureStart != nil || transaction.isReusedConnection)
            }
            #expect(server.counts.accepted == 1 && server.counts.requests == 3)
            #expect(server.requests.allSatisfy { $0.target == "/a?b" && $0.tls?.version == "TLSv1.3" })
        }
    }

    @Test("Bodies of any size go to the server and come back", arguments: [0, 1, 65_536, 3_000_000])
    func echo(count: Int) async throws {
        try await withHTTP3 { server, session in
            server.echo()
            let body = Data(Self.large[..<count])
            let request = Request(url: server.url("/"), method: .post, body: .data(body))
            let (data, _) = try await session.data(for: request)
            #expect(data == body)
        }
    }

    @Test("A streamed body and its trailers are sent; interim responses and trailers are received")
    func streamed() async throws {
        try await withHTTP3 { server, session in
            server.route("*") { request in
                .ok(.chunks([.bytes(request.body)], trailers: request.trailers)).after(.init(.earlyHints))
            }
            let body = RequestBody.stream(trailers: { ["sum": "1"] }) {
                AsyncStream { stream in
                    for piece in 0..<50 { stream.yield([UInt8](repeating: UInt8(piece), count: 3_000)) }
                    stream.finish()
                }
            }
            let task = session.dataTask(Request(url: server.url("/"), method: .post, body: body))
            let events = task.events
            // The body is read beside the events, which end with it.
            async let value = task.resumed().value
            var interim: [Int] = []
            for await event in events {
                if case .informational(let head) = event { interim.append(head.status.code) }
            }
            let data = try await value
            #expect(data.count == 150_000)
            #expect(interim == [103])
            #expect(server.requests.first?.trailers["sum"] == "1")
        }
    }

    @Test("Many loads share one connection, more than the server permits at a time") func many() async throws {
        try await withHTTP3 { server, session in
            server.route("*") { request in .ok(request.path) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask {
                        let (data, _) = try await session.data(from: server.url("/\(number)"))
                        #expect(String(decoding: data, as: UTF8.self) == "/\(number)")
                    }
                }
                try await group.waitForAll()
            }
            #expect(server.counts.accepted <= 6 && server.counts.requests == 300)
        }
    }

    @Test("A reader that takes nothing holds the body back, and other loads go on") func unread() async throws {
        try await withHTTP3 { server, session in
            server.route("/large") { _ in .ok(.bytes(Self.large)) }
            server.route("*") { _ in .ok(.bytes([1])) }
            try await session.load(Request(url: server.url("/large"))) { _, body in
                let (data, _) = try await session.data(from: server.url("/"))
                #expect(Array(data) == [1])
                var received: [UInt8] = []
                for try await chunk in body { received += Array(chunk) }
                #expect(received == Self.large)
            }
            #expect(server.counts.accepted == 1)
        }
    }

    // MARK: Failures

    @Test("A request that the server has rejected is sent again, whatever its method") func rejected() async throws {
        try await withHTTP3 { server, session in
            server.inject(try #require(HTTP3Fault.named("H3_REQUEST_REJECTED")), onConnection: 1)
            let (data, _) = try await session.data(
                for: Request(url: server.url("/"), method: .post, body: .data(Data([1]))))
            #expect(data.elementsEqual("ok".utf8) || data.elementsEqual("hello".utf8))
        }
    }

    @Test("A reset ends its load, and no other") func reset() async throws {
        try await withHTTP3 { server, session in
            server.script { peer in
                try await peer.start()
                while true {
                    let request = try await peer.expectRequest()
                    let isBroken = request.path == "/broken"
                    try await peer.respond(
                        to: request.stream, body: Self.large.dropLast(isBroken ? 1 : 0), endStream: !isBroken)
                    if isBroken { peer.reset(request.stream, .internalError) }
                }
            }
            let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/broken")) }
            #expect(error?.reason == .streamReset)
            let (data, _) = try await session.data(from: server.url("/"))
            #expect(data.count == Self.large.count)
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("After a GOAWAY, loads use a new connection") func goAway() async throws {
        try await withHTTP3 { server, session in
            _ = try await session.data(from: server.url("/"))
            server.goAway()
            // The client hears of it with no event.
            try await eventually(session.core.pool.http3.connections.count) { $0 == 0 }
            _ = try await session.data(from: server.url("/"))
            #expect(server.counts.accepted >= 2)
        }
    }

    @Test("A connection that the server has closed while idle is replaced") func closed() async throws {
        try await withHTTP3 { server, session in
            _ = try await session.data(from: server.url("/"))
            server.close()
            try await eventually(session.core.pool.http3.connections.count) { $0 == 0 }
            _ = try await session.data(from: server.url("/"))
            // More than one new one if the machine is so busy that a handshake is begun again.
            #expect(server.counts.accepted >= 2)
        }
    }

    @Test("A certificate that fails its checks fails a load as over TCP") func trust() async throws {
        let cases: [(TestCertificateOptions, LoadError.Reason)] = [
            (.init(validity: .past), .certificateExpired), (.init(isSelfSigned: true), .certificateSelfSigned),
            (.init(names: ["example.org"], addresses: []), .certificateNameMismatch),
        ]
        for (options, reason) in cases {
            try await withHTTP3(options) { server, session in
                let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/")) }
                #expect(error?.reason == reason && error?.phase == .securing, "\(error as Any)")
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test("A server's refusal of a client certificate has the reason and the words that it has over TCP")
    func identity() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var own = HTTP3TestServer.Configuration(try authority.issue())
        own.tls.clientRootsPEM = authority.pem
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        configuration.connections.httpVersions = .http3PriorKnowledge
        let stranger = try TestCertificateAuthority(commonName: "Elsewhere").issue(
            .init(names: [], commonName: "eve", isForServers: false))
        let identity = try ClientIdentity(certificatePEM: stranger.certificatePEM, keyPEM: stranger.keyPEM)
        for (identities, reason, words) in [
            ([try .init("*", identity)], .clientCertificateRefused, "the server sent the alert unknown_ca (48)"),
            ([], .clientCertificateRequired, "certificate_required (116)"),
        ] as [([Configuration.TLS.HostIdentity], LoadError.Reason, String)] {
            configuration.tls.clientIdentities = identities
            try await withHTTP3TestServer(own) { server in
                try await withSession(configuration) { session in
                    let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/")) }
                    #expect(error?.reason == reason && error?.detail?.contains(words) == true, "\(error as Any)")
                }
            }
        }
    }

    @Test("A load that ends early ends its stream, and not the connection", arguments: [Ending.task, .idleTimeout])
    func ends(ending: Ending) async throws {
        try await withHTTP3 { server, session in
            server.route("/silent") { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("late")
            }
            // So that the timeout cannot come before the request is sent.
            _ = try await session.data(from: server.url("/"))
            let request = ending.applied(to: Request(url: server.url("/silent")))
            let load = Task { try await session.data(for: request) }
            if !ending.isTimeout {
                try await server.wait { $0.requests == 2 }
                load.cancel()
            }
            let error = await #expect(throws: LoadError.self) { try await load.value }
            #expect(error?.reason == ending.reason)
            let ended = try await server.waitForEnding()
            #expect(ended.stream == 4 && ended.code == .requestCancelled)
            _ = try await session.data(from: server.url("/"))
            #expect(server.counts.accepted == 1)
        }
    }

    // MARK: Only HTTP/3

    @Test("Where only HTTP/3 is allowed, loads that cannot use it fail with the reason") func onlyHTTP3() async throws {
        try await withHTTP3 { server, session in
            let clear = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
            let plain = await #expect(throws: LoadError.self) { try await session.data(from: clear) }
            #expect(plain?.reason == .notHTTP3)
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .performDefaultHandling }
            let decided = await #expect(throws: LoadError.self) {
                try await session.data(for: Request(url: server.url("/")), decisions: decisions)
            }
            #expect(decided?.reason == .notHTTP3)
            #expect(server.counts.accepted == 0)
        }
    }

    @Test("No server at all is a refused connection") func refused() async throws {
        try await withHTTP3 { server, session in
            await server.stop()
            let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/")) }
            #expect(error?.reason == .connectionRefused || error?.reason == .connectTimeout, "\(error as Any)")
        }
    }
}

#endif

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
            #expect(server.connections == 1 && server.requests == 3)
        }
    }

    @Test("Bodies of any size go to the server and come back", arguments: [0, 1, 65_536, 3_000_000])
    func echo(count: Int) async throws {
        try await withHTTP3(answer: { HTTP3Answer(body: $0.body) }) { server, session in
            let body = Data(Self.large[..<count])
            let request = Request(url: server.url("/"), method: .post, body: .data(body))
            let (data, _) = try await session.data(for: request)
            #expect(data == body)
        }
    }

    @Test("A streamed body and its trailers are sent; interim responses and trailers are received")
    func streamed() async throws {
        try await withHTTP3(
            answer: { HTTP3Answer(interim: [103], body: $0.body, trailers: $0.trailers) }
        ) { server, session in
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
        }
    }

    @Test("Many loads share one connection, more than the server permits at a time") func many() async throws {
        try await withHTTP3(answer: { HTTP3Answer(body: Array(($0[":path"] ?? "").utf8)) }) { server, session in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask {
                        let (data, _) = try await session.data(from: server.url("/\(number)"))
                        #expect(String(decoding: data, as: UTF8.self) == "/\(number)")
                    }
                }
                try await group.waitForAll()
            }
            #expect(server.connections <= 6 && server.requests == 300)
        }
    }

    @Test("A reader that takes nothing holds the body back, and other loads go on") func unread() async throws {
        try await withHTTP3(
            answer: { HTTP3Answer(body: $0[":path"] == "/large" ? Self.large : [1]) }
        ) { server, session in
            try await session.load(Request(url: server.url("/large"))) { _, body in
                let (data, _) = try await session.data(from: server.url("/"))
                #expect(Array(data) == [1])
                var received: [UInt8] = []
                for try await chunk in body { received += Array(chunk) }
                #expect(received == Self.large)
            }
            #expect(server.connections == 1)
        }
    }

    // MARK: Failures

    @Test("A request that the server has rejected is sent again, whatever its method") func rejected() async throws {
        let count = Watched(0)
        try await withHTTP3(
            answer: { _ in
                count.change { $0 += 1 }
                return count.value == 1 ? HTTP3Answer(reset: .requestRejected) : HTTP3Answer(body: [2])
            }
        ) { server, session in
            let (data, _) = try await session.data(
                for: Request(url: server.url("/"), method: .post, body: .data(Data([1]))))
            #expect(Array(data) == [2])
            #expect(server.requests == 2)
        }
    }

    @Test("A reset ends its load, and no other") func reset() async throws {
        try await withHTTP3(
            answer: { HTTP3Answer(body: Self.large, reset: $0[":path"] == "/broken" ? .internalError : nil) }
        ) { server, session in
            let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/broken")) }
            #expect(error?.reason == .streamReset)
            let (data, _) = try await session.data(from: server.url("/"))
            #expect(data.count == Self.large.count)
            #expect(server.connections == 1)
        }
    }

    @Test("After a GOAWAY, loads use a new connection") func goAway() async throws {
        try await withHTTP3 { server, session in
            _ = try await session.data(from: server.url("/"))
            server.order { $0.goAway() }
            // The client hears of it with no event.
            try await eventually(session.core.pool.http3.connections.count) { $0 == 0 }
            _ = try await session.data(from: server.url("/"))
            #expect(server.connections >= 2)
        }
    }

    @Test("A connection that the server has closed while idle is replaced") func closed() async throws {
        try await withHTTP3 { server, session in
            _ = try await session.data(from: server.url("/"))
            server.order { $0.quic?.close(.application(0x100)) }
            try await eventually(session.core.pool.http3.connections.count) { $0 == 0 }
            _ = try await session.data(from: server.url("/"))
            // More than one new one if the machine is so busy that a handshake is begun again.
            #expect(server.connections >= 2)
        }
    }

    @Test("A certificate that fails its checks fails a load as over TCP") func trust() async throws {
        let cases: [(TestCertificateOptions, String, LoadError.Reason)] = [
            (.init(validity: .past), "localhost", .certificateExpired),
            (.init(isSelfSigned: true), "localhost", .certificateSelfSigned),
            (.init(names: ["example.org"], addresses: []), "localhost", .certificateNameMismatch),
        ]
        for (options, host, reason) in cases {
            try await withHTTP3(options) { server, session in
                let error = await #expect(throws: LoadError.self) {
                    try await session.data(from: server.url("/", host: host))
                }
                #expect(error?.reason == reason && error?.phase == .securing, "\(error as Any)")
            }
        }
    }

    @Test("A server's refusal of a client certificate has the reason and the words that it has over TCP")
    func identity() async throws {
        let server = try HTTP3Server(asksIdentity: true)
        defer { server.stop() }
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(server.roots)
        configuration.connections.httpVersions = .http3PriorKnowledge
        let stranger = try TestCertificateAuthority(commonName: "Elsewhere").issue(
            .init(names: [], commonName: "eve", isForServers: false))
        let identity = try ClientIdentity(certificatePEM: stranger.certificatePEM, keyPEM: stranger.keyPEM)
        for (identities, reason, words) in [
            ([try .init("*", identity)], .clientCertificateRefused, "the server sent the alert unknown_ca (48)"),
            ([], .clientCertificateRequired, "certificate_required (116)"),
        ] as [([Configuration.TLS.HostIdentity], LoadError.Reason, String)] {
            configuration.tls.clientIdentities = identities
            let session = Session(configuration)
            defer { session.invalidateAndCancel() }
            let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/")) }
            #expect(error?.reason == reason && error?.detail?.contains(words) == true, "\(error as Any)")
        }
    }

    @Test("A load that ends early ends its stream, and not the connection", arguments: [Ending.task, .idleTimeout])
    func ends(ending: Ending) async throws {
        try await withHTTP3(answer: { HTTP3Answer(isSilent: $0[":path"] == "/silent") }) { server, session in
            // So that the timeout cannot come before the request is sent.
            _ = try await session.data(from: server.url("/"))
            let request = ending.applied(to: Request(url: server.url("/silent")))
            let load = Task { try await session.data(for: request) }
            if !ending.isTimeout {
                // The server's thread counts requests without an event.
                try await eventually(server.requests) { $0 == 2 }
                load.cancel()
            }
            let error = await #expect(throws: LoadError.self) { try await load.value }
            #expect(error?.reason == ending.reason)
            try await eventually(server.stops) { $0 == [HTTP3ErrorCode.requestCancelled.rawValue] }
            _ = try await session.data(from: server.url("/"))
            #expect(server.connections == 1)
        }
    }

    @Test("Loads that are cancelled at any moment leave the connection usable") func cancellations() async throws {
        try await withHTTP3(answer: { HTTP3Answer(body: $0.body + Self.large[..<20_000]) }) { server, session in
            for round in 0..<200 {
                let load = Task {
                    try await session.data(
                        for: Request(url: server.url("/"), method: .post, body: .data(Data(Self.large[..<5_000]))))
                }
                for _ in 0..<round % 40 { await Task.yield() }
                load.cancel()
                _ = await load.result
            }
            let (data, _) = try await session.data(from: server.url("/"))
            #expect(data.count == 20_000)
            #expect(session.core.pool.http3.connections.allSatisfy { $0.streamCount == 0 })
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
            #expect(server.connections == 0)
        }
    }

    @Test("No server at all is a refused connection") func refused() async throws {
        try await withHTTP3 { server, session in
            server.stop()
            try await Task.sleep(for: .milliseconds(20))
            let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/")) }
            #expect(error?.reason == .connectionRefused || error?.reason == .connectTimeout, "\(error as Any)")
        }
    }
}

/// Runs a test with a server and a session that speaks HTTP/3 only, unless `change` says otherwise.
func withHTTP3(
    _ options: TestCertificateOptions = .init(), limits: QUICLimits = .forServers,
    host: UInt32 = DatagramSockets.loopback, change: (inout Configuration) -> Void = { _ in },
    answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Array("hello".utf8)) },
    _ body: (HTTP3Server, Session) async throws -> Void
) async throws {
    let server = try HTTP3Server(options, limits: limits, host: host, answer: answer)
    defer { server.stop() }
    var configuration = Configuration.ephemeral
    configuration.tls.trustRoots = .pem(server.roots)
    configuration.connections.httpVersions = .http3PriorKnowledge
    change(&configuration)
    let session = Session(configuration)
    defer { session.invalidateAndCancel() }
    try await body(server, session)
}

extension HTTP3Server {
    func url(_ path: String, host: String = "localhost") -> URL {
        URL(string: "https://\(host):\(port)\(path)") ?? URL(filePath: "/")
    }
}

#endif

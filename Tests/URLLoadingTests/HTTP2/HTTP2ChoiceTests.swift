// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The choice of the HTTP version, and of the number of connections.
@Suite(.timeLimit(.minutes(4)))
struct HTTP2ChoiceTests {
    /// An HTTP/2 server over TLS, and a configuration that trusts it and finds every name here.
    nonisolated(nonsending) private func withSecureHTTP2<R>(
        _ options: TestCertificateOptions = .init(), protocols: [String] = ["h2"],
        _ use: nonisolated(nonsending) (HTTP2TestServer, Configuration) async throws -> R
    ) async throws -> R {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue(options)
        var tls = HTTPTestServer.TLS(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
        tls.applicationProtocols = protocols
        var client = Configuration.ephemeral
        client.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        client.networks.resolver = RecordingResolver()
        // As in `Configuration.http2`.
        client.connections.http2PingInterval = nil
        return try await withHTTP2TestServer(.init(tls: tls)) { try await use($0, client) }
    }

    @Test("h2 is spoken where it was chosen (security 56)")
    func chosen() async throws {
        try await withSecureHTTP2 { server, configuration in
            server.route("/") { _ in .ok("two") }
            try await withSession(configuration) { session in
                let task = session.dataTask(from: server.url("/")).resumed()
                let (data, response) = try await (task.value, task.response)
                #expect(response.http?.version == .http2 && data == Data("two".utf8))
                let metrics = try await task.metrics
                #expect(metrics.transactions.first?.protocolName == "h2")
            }
        }
    }

    @Test("loads wait for the first handshake, and share its connection") func loadsWaitForTheFirstHandshake()
        async throws
    {
        try await withSecureHTTP2 { server, configuration in
            server.route("/") { _ in .ok("two") }
            try await withSession(configuration) { session in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<50 { group.addTask { try await session.expect(server.url("/"), "two") } }
                    try await group.waitForAll()
                }
            }
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("a server of HTTP/1.1 gets as many connections as the limit allows")
    func http1ServersGetAsManyConnectionsAsBefore() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/") { _ in .ok("one") }
            try await withSession(configuration) { session in
                for _ in 0..<2 {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<20 { group.addTask { try await session.expect(origin.url("/"), "one") } }
                        try await group.waitForAll()
                    }
                }
                let (_, response) = try await session.data(from: origin.url("/"))
                #expect(response.http?.version == .http11)
            }
            #expect(origin.counts.mostOpen > 1 && origin.counts.mostOpen <= 6)
        }
    }

    @Test(
        "loads through one tunnel share its connection, and other routes have connections of their own",
        arguments: [Proxy.Kind.http, .socks5])
    func tunnelled(_ kind: Proxy.Kind) async throws {
        try await withSecureHTTP2 { server, configuration in
            server.route("/*") { _ in .ok("two") }
            try await withTestProxy(.init(kind == .http ? .http : .socks)) { proxy in
                var configuration = configuration
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                try await withSession(configuration) { session in
                    for number in 0..<3 {
                        let (data, response) = try await session.data(from: server.url("/\(number)"))
                        #expect(response.http?.version == .http2 && data == Data("two".utf8))
                    }
                    #expect(proxy.connections == 1 && server.counts.accepted == 1)
                }
                configuration.networks.proxyPolicy = .none
                try await withSession(configuration) { session in
                    _ = try await session.data(from: server.url("/"))
                    #expect(proxy.connections == 1)
                }
            }
        }
    }

    @Test("with HTTP/1.1 only, no other protocol is offered") func http1OnlyDoesNotOfferMore() async throws {
        try await withSecureHTTP2(protocols: ["h2", "http/1.1"]) { server, configuration in
            var configuration = configuration
            configuration.connections.httpVersions = .http1Only
            configuration.timeouts.idle = .seconds(50)
            server.script { peer in #expect(peer.tls?.applicationProtocol == "http/1.1") }
            try await withSession(configuration) { session in
                _ = try? await session.data(from: server.url("/"))
            }
            #expect(server.counts.accepted >= 1)
        }
    }

    @Test("a request with Upgrade goes out in HTTP/1.1, beside the others")
    func upgradeTakesHTTP1() async throws {
        try await withSecureHTTP2(protocols: ["h2", "http/1.1"]) { server, configuration in
            server.route("/") { _ in .ok("two") }
            server.script(onConnection: 2) { peer in #expect(peer.tls?.applicationProtocol == "http/1.1") }
            try await withSession(configuration) { session in
                try await session.expect(server.url("/"), "two")
                let request = Request(url: server.url("/"), headers: ["Connection": "Upgrade", "Upgrade": "chat"])
                // The server does not speak HTTP/1.1: the connection is closed.
                await expectFailure(.connectionLost) { try await session.data(for: request) }
                try await session.expect(server.url("/"), "two")
            }
            #expect(server.counts.accepted == 2)
        }
    }

    @Test("a data task over HTTP/2 cannot become a stream, and the error says why")
    func becomesNoStream() async throws {
        try await withHTTP2 { server, session in
            server.route("/") { _ in .ok("two") }
            var decisions = Decisions()
            decisions.response = Decision { _ in .becomeStream }
            let task = session.dataTask(Request(url: server.url("/")), decisions: decisions).resumed()
            let error = await #expect(throws: LoadError.self) { try await task.value }
            #expect(error?.reason == .badDecision && error?.detail?.contains("HTTP/2") == true)
            try await session.expect(server.url("/"), "two")
            #expect(server.counts.accepted == 1)
        }
    }

    @Test(
        "a changed priority is sent while the stream is open, if the server supports it (RFC 9218 7.1)",
        arguments: [true, false])
    func priorityUpdate(understands: Bool) async throws {
        try await withHTTP2 { server, session in
            server.script { peer in
                if understands { try await peer.start(.noPriorities(1)) } else { try await peer.start() }
                let request = try await peer.expectRequest()
                _ = try await peer.expect(.settings, isAck: true)
                try await peer.headers(request.stream, HTTP2Fields(.ok))
                if understands {
                    let update = try await peer.expect(HTTP2Frame.Kind(rawValue: 16))
                    #expect(
                        update.stream == 0 && update.payload == [0, 0, 0, UInt8(request.stream)] + Array("u=1".utf8))
                }
                // The update would come before this.
                try await peer.ping()
                try await peer.data(request.stream, Array("ok".utf8), endStream: true)
                await peer.untilClosed()
            }
            let task = session.dataTask(from: server.url("/"))
            task.prioritize(.background)
            task.resume()
            _ = try await task.response
            task.prioritize(.high)
            #expect(try await task.value == Data("ok".utf8) && task.snapshot.priority == .high)
            task.prioritize(.low)
            #expect(server.frames.count { $0.frame.kind.rawValue == 16 } == (understands ? 1 : 0))
        }
    }

    @Test("HTTP/1.1 chosen and HTTP/2 spoken is an error (security 56)")
    func otherThanChosen() async throws {
        try await withSecureHTTP2(protocols: ["http/1.1"]) { server, configuration in
            server.route("/") { _ in .ok("two") }
            try await withSession(configuration) { session in
                // The server sends its SETTINGS, and closes the connection on invalid bytes: whichever is seen first.
                let error = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/")) }
                #expect(error?.reason == .connectionLost || error?.reason == .notHTTP)
            }
        }
    }

    @Test("a connection serves another host if its certificate and its address do (security 55)")
    func coalescing() async throws {
        let names = TestCertificateOptions(names: ["localhost", "*.host.test"])
        try await withSecureHTTP2(names) { server, configuration in
            server.route("/") { request in .ok(request.headers[.host] ?? "-") }
            try await withSession(configuration) { session in
                for host in ["a.host.test", "b.host.test", "localhost", "a.host.test"] {
                    try await session.expect(url("https://\(host):\(server.port)/"), "\(host):\(server.port)")
                }
                #expect(server.counts.accepted == 1)
                await expectFailure(.certificateNameMismatch) {
                    try await session.data(from: url("https://other.example:\(server.port)/"))
                }
            }
        }
    }

    @Test("a host with pins shares no connection that was not checked against them (security 37, 55)")
    func pinsPart() async throws {
        let names = TestCertificateOptions(names: ["localhost", "*.host.test"])
        let unmatched = Configuration.TLS.Pin.publicKey(sha256: Data(repeating: 7, count: 32))
        try await withSecureHTTP2(names) { server, configuration in
            server.route("/") { request in .ok(request.headers[.host] ?? "-") }
            var configuration = configuration
            configuration.tls.pins = [try .init("b.host.test", [unmatched])]
            try await withSession(configuration) { session in
                try await session.expect(url("https://a.host.test:\(server.port)/"), "a.host.test:\(server.port)")
                await expectFailure(.certificatePinMismatch) {
                    try await session.data(from: url("https://b.host.test:\(server.port)/"))
                }
                // A host without pins is not affected.
                try await session.expect(url("https://c.host.test:\(server.port)/"), "c.host.test:\(server.port)")
            }
            #expect(
                server.requests.allSatisfy { $0.headers[.host]?.hasPrefix("b.") == false }
                    && server.counts.accepted == 2)
        }
    }

    @Test("a 421 is retried on a connection of its own (security 55)")
    func misdirected() async throws {
        let names = TestCertificateOptions(names: ["localhost", "*.host.test"])
        try await withSecureHTTP2(names) { server, configuration in
            server.route("/") { request in
                request.connection == 1 && request.headers[.host]?.hasPrefix("b.") == true
                    ? .init(status: .misdirectedRequest) : .ok("\(request.connection)")
            }
            try await withSession(configuration) { session in
                try await session.expect(url("https://a.host.test:\(server.port)/"), "1")
                try await session.expect(url("https://b.host.test:\(server.port)/"), "2")
                try await session.expect(url("https://a.host.test:\(server.port)/"), "1")
                try await session.expect(url("https://b.host.test:\(server.port)/"), "2")
            }
            #expect(server.counts.accepted == 2)
        }
    }

    @Test("HTTP_1_1_REQUIRED: the request is retried over HTTP/1.1, as are later ones")
    func http1Required() async throws {
        try await withSecureHTTP2(protocols: ["h2", "http/1.1"]) { server, configuration in
            server.script { peer in
                guard peer.tls?.applicationProtocol == "h2" else { return }
                let request = try await peer.acceptRequest()
                try await peer.reset(request.stream, .http11Required)
                await peer.untilClosed()
            }
            try await withSession(configuration) { session in
                // The server does not speak HTTP/1.1: the connection is closed.
                for _ in 0..<2 {
                    await expectFailure(.connectionLost) { try await session.data(from: server.url("/")) }
                }
            }
            #expect(server.counts.accepted == 3)
        }
    }

    @Test("events and metrics name the protocol and the connection") func eventsAndMetrics() async throws {
        let recorder = EventRecorder()
        try await withHTTP2(.init(), { $0.observers = [recorder] }) { server, session in
            server.route("/") { _ in .ok(.bytes(bytes(70_000)), headers: ["X-A": "1"]).after(.init(.earlyHints)) }
            let request = Request(url: server.url("/"), method: .post, body: .data(Data(bytes(300_000))))
            for _ in 0..<2 { _ = try await session.data(for: request) }
            let transactions = recorder.loads.compactMap { $0.metrics?.transactions.first }
            #expect(
                transactions.map(\.protocolName) == ["h2", "h2"]
                    && transactions.map(\.isReusedConnection) == [false, true])
            for transaction in transactions {
                #expect(transaction.requestContentBytes == 300_000 && transaction.responseBodyBytes == 70_000)
                #expect(
                    transaction.requestHeaders["host"] == nil
                        && transaction.requestHeaders["content-length"] == "300000")
                #expect(
                    transaction.requestEnd != nil && transaction.responseStart != nil && transaction.responseEnd != nil)
            }
        }
    }

    @Test("a first connection that fails takes only the load with it that it was made for")
    func aFailedFirstConnectionFailsOnlyItsOwnLoad() async throws {
        try await withSecureHTTP2 { server, configuration in
            server.route("/") { _ in .ok("two") }
            server.script(onConnection: 1) { peer in peer.abort() }
            try await withSession(configuration) { session in
                let outcomes = await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<10 { group.addTask { (try? await session.data(from: server.url("/"))) != nil } }
                    return await group.reduce(into: [Bool]()) { $0.append($1) }
                }
                // Others that have a place by then send their requests again; that one only if it has not sent it.
                #expect(outcomes.count { $0 } >= 9)
            }
        }
    }

    @Test("cancelling the load that connects does not cancel the waiting loads")
    func cancellingTheFirstLeavesTheOthers() async throws {
        try await withSecureHTTP2 { server, configuration in
            server.route("/") { _ in .ok("two") }
            try await withSession(configuration) { session in
                let first = Task { try await session.data(from: server.url("/")) }
                first.cancel()
                _ = try? await first.value
                try await session.expect(server.url("/"), "two")
            }
        }
    }
}

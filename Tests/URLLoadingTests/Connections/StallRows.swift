// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Security 83: wherever a peer stalls, the load ends within its limit, and its socket is closed.
@Suite(.timeLimit(.minutes(4)))
struct StallRows {
    struct Stall: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let phase: LoadError.Phase
        let fault: HTTPTestServer.Fault?
        let answer: HTTPTestServer.Response
        init(
            _ name: String, _ phase: LoadError.Phase, _ fault: HTTPTestServer.Fault? = nil,
            _ answer: HTTPTestServer.Response = .ok("0123456789")
        ) {
            testDescription = name
            self.phase = phase
            self.fault = fault
            self.answer = answer
        }
        init(_ name: String, sending text: HTTPTestServer.Response.Piece, _ phase: LoadError.Phase = .receiving) {
            self.init(name, phase, nil, .raw([text], then: .stall))
        }
    }

    static let stalls: [Stall] = [
        Stall("nothing read", .waiting, .init(.accept, .stall)),
        Stall("no answer", .waiting, .init(.requestHead, .stall)),
        Stall("half a status line", .waiting, .init(.responseHead(after: 9), .stall)),
        Stall("half a head", .waiting, .init(.responseHead(after: 30), .stall)),
        Stall("no body", .receiving, .init(.responseHead(after: 9999), .stall)),
        Stall("half a body", .receiving, .init(.responseBody(after: 5), .stall)),
        Stall("no chunk", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Stall("half a chunk size", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5"),
        Stall("half a chunk", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
        Stall("no last chunk", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
        Stall("half a trailer", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b"),
        Stall("no end of trailers", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n"),
        Stall("only a hint", sending: "HTTP/1.1 103 Early Hints\r\n\r\n", .waiting),
        Stall("until close", sending: "HTTP/1.1 200 OK\r\n\r\nab"),
        Stall(
            "half of gzip",
            sending: .bytes(Array("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".utf8) + [0x1F, 0x8B, 8])),
    ]

    @Test(
        "a silent peer ends a load by the idle timeout, a slow one by the resource timeout (security 83)",
        arguments: stalls)
    func stall(_ stall: Stall) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in stall.answer }
            if let fault = stall.fault { origin.inject(fault) }
            for isIdle in [true, false] {
                let reason: LoadError.Reason = isIdle ? .idleTimeout : .resourceTimeout
                let error = try await patiently(stall.phase) { limit in
                    var configuration = Configuration.ephemeral
                    if isIdle { configuration.timeouts.idle = limit } else { configuration.timeouts.resource = limit }
                    return try await withSession(configuration) { session in
                        await failure(reason, isIdle ? .remote : .local, nil, stall.testDescription) {
                            try await session.data(from: origin.url())
                        }
                    }
                }
                #expect(error?.url == origin.url())
                #expect(error?.code == -1001)
                try await origin.wait { $0.open == 0 }
            }
        }
    }

    /// On a busy machine a short limit may pass before the peer has reached the point of its stall; then it gets more
    /// time, and must reach that point in the end.
    private func patiently(
        _ phase: LoadError.Phase, _ load: nonisolated(nonsending) (Duration) async throws -> LoadError?
    ) async throws -> LoadError? {
        var limit = Duration.milliseconds(40)
        var error = try await load(limit)
        while let early = error, early.phase != phase, limit < .seconds(5) {
            limit *= 4
            error = try await load(limit)
        }
        #expect(error?.phase == phase)
        return error
    }

    @Test(
        "a peer that stalls in the handshake ends the load (security 83)",
        arguments: [HTTPTestServer.Fault.Point.accept, .handshake])
    func handshake(_ point: HTTPTestServer.Fault.Point) async throws {
        try await withSecureOrigin { origin, configuration in
            origin.inject(.init(point, .stall))
            _ = try await patiently(.securing) { limit in
                var configuration = configuration
                configuration.timeouts.idle = limit
                return try await withSession(configuration) { session in
                    await failure(.idleTimeout, .remote) { try await session.data(from: origin.url()) }
                }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a peer that does not read the body ends the load (security 83)")
    func sending() async throws {
        let large = Data(count: 32 << 20)
        let endless = RequestBody.stream { AsyncStream<[UInt8]>(unfolding: { [UInt8](repeating: 1, count: 100_000) }) }
        try await withHTTPTestServer { origin in
            origin.inject(.init(.requestHead, .stall))
            for body in [.data(large), endless] {
                _ = try await patiently(.sending) { limit in
                    var configuration = Configuration.ephemeral
                    configuration.timeouts.idle = limit
                    return try await withSession(configuration) { session in
                        await failure(.idleTimeout, .remote) {
                            try await session.data(for: Request(url: origin.url(), method: .put, body: body))
                        }
                    }
                }
            }
            // The bytes of the body in the kernel's buffers arrive before the end of the connection.
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a host that accepts no connection ends the load (security 83)")
    func connecting() async throws {
        let host = try await FullHost()
        defer { host.close() }
        let target = try url("http://127.0.0.1:\(host.port)/")
        try await bothTimeouts(.connecting) { _ in
        } of: { session in
            try await session.data(from: target)
        }
    }

    /// A wait for the peer, in each phase, is ended by either limit.
    private func bothTimeouts(
        _ phase: LoadError.Phase, _ change: (inout Configuration) -> Void,
        of load: @escaping @Sendable (Session) async throws -> (Data, Response)
    ) async throws {
        for (reason, party) in [(LoadError.Reason.idleTimeout, LoadError.Party.remote), (.resourceTimeout, .local)] {
            let clock = ManualClock()
            var configuration = Configuration.ephemeral
            change(&configuration)
            configuration.use(clock)
            configuration.timeouts.idle = reason == .idleTimeout ? .seconds(60) : nil
            configuration.timeouts.resource = reason == .resourceTimeout ? .seconds(60) : nil
            try await withSession(configuration) { session in
                async let ended: Void = expectFailure(reason, party, phase) { try await load(session) }
                try await clock.untilWaiting()
                clock.advance(by: .seconds(60))
                await ended
            }
        }
    }

    @Test("a resolver without an answer ends the load (security 83)")
    func resolving() async throws {
        let gate = Flag()
        defer { gate.raise() }
        var configuration = Configuration.ephemeral
        configuration.networks.resolver = SystemResolver(threads: BlockingThreads(limit: 1)) { name in
            gate.waitBlocking()
            return .failure(IOFailure(.hostNotFound(name), .resolve))
        }
        let resolver = configuration.networks.resolver
        try await bothTimeouts(.resolving) {
            $0.networks.resolver = resolver
        } of: { session in
            try await session.data(from: url("http://slow.example/"))
        }
    }

    @Test("an endless response ends with the resource timeout (security 83)")
    func endless() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: .max, chunked: true)) }
            _ = try await patiently(.receiving) { limit in
                var configuration = Configuration.ephemeral
                configuration.timeouts.resource = limit
                return try await withSession(configuration) { session in
                    await failure(.resourceTimeout, .local) {
                        try await session.load(Request(url: origin.url())) { _, body in for try await _ in body {} }
                    }
                }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("the idle clock does not run while the caller processes the body")
    func slowConsumer() async throws {
        let clock = ManualClock()
        var configuration = Configuration.ephemeral
        configuration.use(clock)
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 2 << 20)) }
            let count = try await withSession(configuration) { session in
                try await session.load(Request(url: origin.url())) { _, body in
                    var count = 0
                    for try await chunk in body {
                        if count == 0 { clock.advance(by: .seconds(600)) }
                        count += chunk.count
                    }
                    return count
                }
            }
            #expect(count == 2 << 20)
        }
    }
}

/// The caller's code cannot exceed a limit as long as it responds to its cancellation.
@Suite(.timeLimit(.minutes(4)))
struct CallersCodeRows {
    private func endsInTime(
        _ reason: LoadError.Reason, _ change: (inout Configuration) -> Void, _ request: (HTTPTestServer) -> Request,
        _ decisions: Decisions? = nil, then act: ((Session) -> Void)? = nil
    ) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            var configuration = Configuration.ephemeral
            change(&configuration)
            let session = Session(configuration, decisions: decisions)
            let request = request(origin)
            async let error = failure(reason, .local) { try await session.data(for: request) }
            if let act {
                try await origin.wait { $0.open == 1 }
                act(session)
            }
            _ = await error
            await expectEmpty(session)
        }
    }

    private func silent(_ origin: HTTPTestServer) -> Request {
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
        continuation.yield([1])
        // The continuation lives as long as the closure, and never finishes the stream.
        return Request(
            url: origin.url(), method: .post,
            body: .stream {
                withExtendedLifetime(continuation) { stream }
            })
    }

    @Test("the resource timeout ends a load whose body sequence produces nothing (checklist 22)")
    func silentSequence() async throws {
        try await endsInTime(.resourceTimeout, { $0.timeouts.resource = .milliseconds(50) }, silent)
    }

    @Test("invalidation ends a load whose body sequence produces nothing (checklist 14)")
    func invalidatedSequence() async throws {
        try await endsInTime(.cancelled, { _ in }, silent) { $0.invalidateAndCancel() }
    }

    @Test("the resource timeout ends a load whose decision takes too long (checklist 22)")
    func slowDecision() async throws {
        var decisions = Decisions()
        decisions.redirect = Decision { _ in
            try await Task.sleep(for: .seconds(3600))
            return .follow
        }
        try await endsInTime(
            .resourceTimeout, { $0.timeouts.resource = .milliseconds(50) }, { Request(url: $0.url()) }, decisions)
    }

    @Test("a redirect that must not be followed can be taken as the response")
    func deliverRefused() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/file") { _ in .redirect("file:///etc/hostname") }
            origin.route("/loop") { _ in .redirect("/loop") }
            var configuration = Configuration.ephemeral
            configuration.redirects.maximum = 0
            var decisions = Decisions()
            decisions.redirect = Decision { _ in .doNotFollow }
            try await withSession(configuration, decisions: decisions) { session in
                for path in ["/file", "/loop"] {
                    let (_, response) = try await session.data(from: origin.url(path))
                    #expect(response.http?.status == .found)
                }
            }
            decisions.redirect = Decision { _ in .instead(Request(url: origin.url("/loop"))) }
            try await withSession(configuration, decisions: decisions) { session in
                _ = await failure(.tooManyRedirects, .remote) { try await session.data(from: origin.url("/loop")) }
            }
        }
    }
}

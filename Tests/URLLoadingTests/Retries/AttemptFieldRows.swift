// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Fields that handlers make anew for each attempt: a server that knows a nonce already refuses it.
@Suite(.timeLimit(.minutes(4)))
struct AttemptFieldRows {
    /// Signs each attempt with another nonce.
    private struct Signer: ProtocolHandler {
        let name: FieldName
        var failsFrom = Int.max
        let count = Watched(0)

        struct NoKey: Error {}

        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            try await client.next.load(request) { request in
                let number = count.change { count in
                    count += 1
                    return count
                }
                guard number < failsFrom else { throw NoKey() }
                var headers = request.headers
                headers[name] = "\(number)"
                // A field of an outer handler precedes those of the handlers after it.
                headers[FieldName("Seen-By-\(name)")] = request.headers["Outer"] ?? "none"
                return headers
            }
        }
    }

    /// Adds a field without asking for later attempts.
    private struct Marker: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            var request = request
            request.headers["Marked"] = "yes"
            return try await client.next.load(request)
        }
    }

    private func nonces(_ origin: HTTPTestServer, _ name: FieldName = "Nonce") -> [String] {
        origin.requests.map { $0.headers[name] ?? "none" }
    }

    @Test("a retry under a policy, after a status or an error, has new fields")
    func policy() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { [weak origin] _ in
                switch origin?.requests.count {
                case 1: .status(.serviceUnavailable)
                case 2: .raw([], then: .reset)
                default: .ok("in")
                }
            }
            var policy = RetryPolicy()
            policy.backoff = .constant(.zero)
            policy.statuses = RetryPolicy.transientStatuses
            try await withSession(
                .ephemeral.with {
                    $0.handlers = [Signer(name: "Nonce"), Marker()]
                    $0.retries.policy = policy
                }
            ) { session in
                try await session.expect(origin.url(), "in")
            }
            #expect(nonces(origin) == ["1", "2", "3"])
            #expect(origin.requests.allSatisfy { $0.headers["Marked"] == "yes" })
        }
    }

    @Test("a request that met a stale connection has new fields on the next one", arguments: [Method.get, .put])
    func staleConnection(_ method: Method) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.connection)") }
            origin.route("/stale") { $0.exchange == 1 ? .ok("\($0.connection)") : .raw([], then: .reset) }
            try await withSession(.ephemeral.with { $0.handlers = [Signer(name: "Nonce")] }) { session in
                try await session.expect(origin.url(), "1")
                let body: RequestBody? = method == .put ? .data(Data("body".utf8)) : nil
                try await session.expect(Request(url: origin.url("/stale"), method: method, body: body), "2")
            }
            #expect(nonces(origin) == ["1", "2", "3"])
        }
    }

    @Test("a request that was misdirected has new fields on the next connection")
    func misdirected() async throws {
        try await withHTTP2(.init(), { $0.handlers = [Signer(name: "Nonce"), Marker()] }) { server, session in
            server.route("/") { $0.connection == 1 ? .status(.misdirectedRequest) : .ok("in") }
            try await session.expect(server.url("/"), "in")
            #expect(server.requests.map { $0.headers["Nonce"] } == ["1", "2"])
            #expect(server.requests.allSatisfy { $0.headers["Marked"] == "yes" })
        }
    }

    @Test("a request whose expectation the server refuses has new fields, without the expectation")
    func expectation() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { $0.headers[.expect] == nil ? .ok("in") : .status(.expectationFailed) }
            try await withSession(.ephemeral.with { $0.handlers = [Signer(name: "Nonce"), Marker()] }) { session in
                var request = Request(url: origin.url(), method: .put, body: .data(Data("body".utf8)))
                request.headers[.expect] = "100-continue"
                try await session.expect(request, "in")
            }
            #expect(nonces(origin) == ["1", "2"])
            #expect(origin.requests.map { $0.headers[.expect] } == ["100-continue", nil])
            #expect(origin.requests.allSatisfy { $0.headers["Marked"] == "yes" && $0.body == Array("body".utf8) })
        }
    }

    /// What a server of HTTP/2 refuses without processing it.
    enum Refused: CaseIterable, Sendable { case stream, connection }

    @Test("a request that HTTP/2 refuses, alone or with its connection, has new fields", arguments: Refused.allCases)
    func refused(_ refused: Refused) async throws {
        let seen = Watched<[String]>([])
        try await withHTTP2(.init(), { $0.handlers = [Signer(name: "Nonce"), Marker()] }) { server, session in
            server.script { peer in
                try await peer.start()
                var request = try await peer.expectRequest()
                let isFirst = seen.change { seen in
                    seen.append(request.fields["nonce"] ?? "none")
                    return seen.count == 1
                }
                if isFirst, refused == .connection {
                    try await peer.goAway(last: 0)
                    _ = await peer.untilClosed()
                    return
                }
                if isFirst {
                    try await peer.reset(request.stream, .refusedStream)
                    request = try await peer.expectRequest()
                    let nonce = request.fields["nonce"] ?? "none"
                    seen.change { $0.append(nonce) }
                }
                try await peer.respond(to: request.stream, body: Array("in".utf8))
                _ = await peer.untilClosed()
            }
            // Refused requests are repeated whatever their method is.
            try await session.expect(Request(url: server.url("/"), method: .post), "in")
        }
        #expect(seen.value == ["1", "2"])
    }

    @Test("a request that answers a challenge has new fields, those of an outer handler first")
    func challenge() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                guard request.headers[.authorization] == nil else { return .ok("in") }
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=r"])
            }
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "s3cret")) }
            // The last handler is asked first.
            let session = Session(
                .ephemeral.with { $0.handlers = [Signer(name: "Inner"), Signer(name: "Outer")] }, decisions: decisions)
            try await session.expect(origin.url(), "in")
            #expect(nonces(origin, "Outer") == ["1", "2"] && nonces(origin, "Inner") == ["1", "2"])
            #expect(nonces(origin, "Seen-By-Inner") == ["1", "2"])
            session.invalidateAndCancel()
        }
    }

    @Test("an error while the fields of a repetition are made ends the load, and names its cause")
    func failure() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.serviceUnavailable) }
            var policy = RetryPolicy()
            policy.backoff = .constant(.zero)
            policy.statuses = RetryPolicy.transientStatuses
            let session = Session(
                .ephemeral.with {
                    $0.handlers = [Signer(name: "Nonce", failsFrom: 2)]
                    $0.retries.policy = policy
                })
            await expectFailure(.handlerFailed) { try await session.data(from: origin.url()) }
            #expect(nonces(origin) == ["1"])
            session.invalidateAndCancel()
        }
    }
}

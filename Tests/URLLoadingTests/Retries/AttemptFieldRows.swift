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

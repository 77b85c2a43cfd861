// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// NTLM authenticates a connection, for one user: checklist 66-69; security 12, 64.
@Suite(.timeLimit(.minutes(4))) struct NTLMRows {
    static let ada = Credential(user: "ada", password: "s3cret")
    static let bob = Credential(user: "bob", password: "pw")

    @Test func `three messages authenticate a connection, which is then reused; only the last carries a body`()
        async throws
    {
        let gate = NTLMGate()
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .use(Self.ada) })
            try await session.expect(
                Request(url: origin.url("/a"), method: .post, body: .data(Data("text".utf8))), "ada 4")
            try await session.expect(origin.url("/b"), "ada 0")
            try await session.expect(
                Request(url: origin.url("/c"), method: .post, body: .data(Data("more!".utf8))), "ada 5")
            #expect(gate.seen == ["1 -", "2 negotiate", "2 authenticate ada", "2 -", "2 -"])
            #expect(log.withLock { $0.map(\.protectionSpace.method) } == [.ntlm])
            // RFC 9110 §8.6: a message without Content-Length announces none.
            #expect(origin.requests[1].headers[.contentLength] == "0" && origin.requests[1].method == .post)
            #expect(origin.requests.dropFirst(3).allSatisfy { $0.headers[.authorization] == nil })
            await expectEmpty(session)
        }
    }

    @Test func `the session's decision is called first, the load's if there is none (checklist 66-69)`() async throws {
        let gate = NTLMGate()
        try await withGate(gate) { origin in
            let (own, shared) = (ChallengeLog(), ChallengeLog())
            let decisions = Decisions.challenged(own) { _ in .use(Self.ada) }
            let session = Session(.ephemeral, decisions: .challenged(shared) { _ in .use(Self.bob) })
            let (body, _) = try await session.data(for: Request(url: origin.url()), decisions: decisions)
            #expect(String(decoding: body, as: UTF8.self) == "bob 0")
            #expect(own.withLock { $0.count } == 0 && shared.withLock { $0.count } == 1)
            let other = Session(.ephemeral)
            let (second, _) = try await other.data(for: Request(url: origin.url()), decisions: decisions)
            #expect(String(decoding: second, as: UTF8.self) == "ada 0" && own.withLock { $0.count } == 1)
            await expectEmpty(session)
            await expectEmpty(other)
        }
    }

    @Test func `through a forwarding proxy no load uses a connection authenticated for another (security 12, 13)`()
        async throws
    {
        let gate = NTLMGate()
        try await withHTTPTestServer { origin in
            for path in ["/*", "http://origin.test/*", "http://other.test/*"] { origin.route(path) { gate.answer($0) } }
            let session = try Session(
                .ephemeral.with {
                    $0.networks.proxyPolicy = .fixed([try Proxy(.http, host: "127.0.0.1", port: origin.port)])
                })
            for text in [
                "http://ada:s3cret@origin.test/", "http://origin.test/", "http://bob:pw@origin.test/",
                "http://other.test/",
            ] {
                let (_, response) = try await session.data(from: try url(text))
                #expect(response.http?.status == .unauthorized, "\(text)")
            }
            // No NTLM message goes to a proxy that may forward it over a shared connection.
            #expect(!gate.seen.contains { $0.contains("authenticate") })
            await expectEmpty(session)
        }
    }

    @Test func `a connection serves only the user for whom it was authenticated (security 12)`() async throws {
        let gate = NTLMGate()
        try await withGate(gate) { origin in
            let session = Session(.ephemeral)
            let (ada, bob) = (
                try url("http://ada:s3cret@127.0.0.1:\(origin.port)/"),
                try url("http://bob:pw@127.0.0.1:\(origin.port)/")
            )
            try await session.expect(ada, "ada 0")
            try await session.expect(bob, "bob 0")
            for _ in 0..<2 {
                try await session.expect(ada, "ada 0")
                try await session.expect(bob, "bob 0")
                // A load without a user gets neither connection.
                try await session.expect(origin.url(), "refused")
            }
            let opened = gate.state.withLock { $0.opened }
            #expect(Set(opened.values) == ["ada", "bob"] && opened.count == 2 && origin.counts.accepted == 3)
            await expectEmpty(session)
        }
    }

    @Test func `connections authenticated with a ticket have a route of their own (security 13)`() throws {
        let origin = try Target("https://a.test/").origin
        let space = ProtectionSpace(host: "a.test", port: 443, scheme: "https", method: .negotiate)
        let routes = try (0..<2).map { _ in
            let login = try #require(
                Login(.negotiate, space, Credential(user: "", password: ""), path: "/"))
            var route = Route(origin: origin)
            route.identity = .init(login: login, speaksHTTP1: false)
            return route
        }
        #expect(Set(routes + [Route(origin: origin)]).count == 3)
    }

    @Test func `a wrong password is refused once for each credential supplied`() async throws {
        let gate = NTLMGate()
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(
                .ephemeral,
                decisions: .challenged(log) { challenge in
                    challenge.previousFailureCount < 2
                        ? .use(Credential(user: "ada", password: "no\(challenge.previousFailureCount)"))
                        : .use(Self.ada)
                })
            try await session.expect(origin.url(), "ada 0")
            #expect(log.withLock { $0.map(\.previousFailureCount) } == [0, 1, 2])
            #expect(gate.seen.filter { $0.hasSuffix("authenticate ada") }.count == 3)
            let stubborn = Session(
                .ephemeral,
                decisions: .challenged(ChallengeLog()) { _ in .use(Credential(user: "ada", password: "no")) })
            try await stubborn.expect(origin.url(), "refused")
            await expectEmpty(session)
            await expectEmpty(stubborn)
        }
    }

    @Test func `a server that forgets an authenticated connection is authenticated to again`() async throws {
        let gate = NTLMGate()
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .use(Self.ada) })
            try await session.expect(origin.url(), "ada 0")
            gate.forget()
            try await session.expect(Request(url: origin.url(), method: .put, body: .data(Data("text".utf8))), "ada 4")
            #expect(log.withLock { $0.count } == 1)
            await expectEmpty(session)
        }
    }

    @Test func `each of many concurrent connections is authenticated with its own three messages`() async throws {
        let gate = NTLMGate()
        try await withGate(gate) { origin in
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.ada) })
            try await session.expect(origin.url(), "ada 0")
            try await withThrowingTaskGroup { group in
                for _ in 0..<24 { group.addTask { try await session.expect(origin.url(), "ada 0") } }
                try await group.waitForAll()
            }
            await expectEmpty(session)
        }
    }

    @Test func `an invalid NTLM challenge ends the load, and the error says so (security 64)`() async throws {
        for words in [
            [], [1, 2, 3], NTLMNegotiate.bytes, Array(NTLMVectorTests.challenge.dropLast(4)),
            [UInt8](repeating: 0, count: 4000),
        ] {
            let gate = NTLMGate(words: words)
            try await withGate(gate) { origin in
                let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.ada) })
                if words.isEmpty {
                    try await session.expect(origin.url(), "refused")
                } else {
                    await expectFailure(.authenticationFailed, .remote) { try await session.data(from: origin.url()) }
                }
                await expectEmpty(session)
            }
        }
    }

    @Test func `a challenge with faults in its head ends the login, and the error names the rule`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                guard let field = request.headers[.authorization], field.hasPrefix("NTLM TlRMTVNTUAABAAAA") else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "NTLM"])
                }
                let words = Base64.encode(NTLMVectorTests.challenge)
                return .raw([
                    .bytes(
                        Array(
                            "HTTP/1.1 401 Unauthorized\nWWW-Authenticate: NTLM \(words)\nContent-Length: 0\n\n".utf8))
                ])
            }
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.ada) })
            await expectFailure(.bareLineFeed, .remote) { try await session.data(from: origin.url()) }
            #expect(origin.requests.count == 2, "the first without a login, and one message of it")
            await expectEmpty(session)
        }
    }

    @Test func `Digest is preferred to NTLM, NTLM to Basic (security 65)`() async throws {
        let gate = NTLMGate(others: ["Basic realm=\"b\"", "Digest realm=\"d\", nonce=\"n\", qop=\"auth\""])
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .rejectProtectionSpace })
            try await session.expect(origin.url(), "refused")
            #expect(log.withLock { $0.map(\.protectionSpace.method) } == [.digest, .ntlm, .basic])
            var configuration = Configuration.ephemeral
            configuration.authentication.methods = [.ntlm]
            let other = Session(configuration, decisions: .challenged(ChallengeLog()) { _ in .use(Self.ada) })
            try await other.expect(origin.url(), "ada 0")
            await expectEmpty(session)
            await expectEmpty(other)
        }
    }

    @Test func `an NTLM challenge over HTTP 2 is answered over HTTP 1.1`() async throws {
        let gate = NTLMGate()
        try await withSecureOrigin(.init(names: ["localhost"]), name: "localhost") { origin, base in
            origin.route("/*") { gate.answer($0) }
            let session = Session(
                base,
                decisions: .challenged(ChallengeLog()) { challenge in
                    challenge.protectionSpace.method == .ntlm ? .use(Self.ada) : .performDefaultHandling
                })
            try await session.expect(origin.url(), "ada 0")
            await expectEmpty(session)
        }
    }

    /// The server depends on whether the client offers h2.
    @Test func `a server that chose HTTP 2 is authenticated to on an HTTP 1.1 connection`() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue(.init(names: ["localhost"]))
        var tls = HTTPTestServer.TLS(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
        var client = Configuration.ephemeral
        client.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        client.networks.resolver = RecordingResolver()
        let gate = NTLMGate()
        try await withHTTPTestServer(.init(tls: tls)) { [client] one in
            one.route("/*") { gate.answer($0) }
            tls.applicationProtocols = ["h2"]
            try await withHTTP2TestServer(.init(tls: tls)) { two in
                two.route("/*") { gate.answer($0) }
                let relay = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
                let token = StopToken()
                let (ports, isOver) = ((one.port, two.port), token)
                async let relaying: Void = relayConnections(relay, isOver) {
                    $0.contains([2, 0x68, 0x32]) ? ports.1 : ports.0
                }
                let session = Session(
                    client,
                    decisions: .challenged(ChallengeLog()) { challenge in
                        challenge.protectionSpace.method == .ntlm ? .use(Self.ada) : .performDefaultHandling
                    })
                let target = try url("https://localhost:\(relay.address.port)/")
                for count in 0..<2 {
                    let request = Request(url: target, method: .post, body: .data(Data(count: count)))
                    let (body, response) = try await session.data(for: request)
                    #expect(
                        String(decoding: body, as: UTF8.self) == "ada \(count)" && response.http?.version == .http11)
                }
                // Only the first request used HTTP/2; the authenticated connection serves the second.
                #expect(two.requests.count == 1 && one.requests.count == 3)
                await expectEmpty(session)
                token.stop(.cancelled)
                await relaying
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Proxies with connection-level authentication: checklist 66, 67, 88; security 5, 7, 12, 13, 17, 66.
@Suite(.timeLimit(.minutes(4))) struct ProxyProofRows {
    static let ada = Credential(user: "ada", password: "s3cret")

    private static func answering(_ log: ChallengeLog, _ answer: @escaping @Sendable (Challenge) -> ChallengeDecision)
        -> Decisions
    {
        .challenged(log) { $0.protectionSpace.isProxy ? answer($0) : .performDefaultHandling }
    }

    @Test func `a tunnel takes three messages on one connection, and is then reused`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test", "other.test"]), name: "origin.test") { origin, base in
            origin.route("/*") { _ in .ok("here") }
            for isSecure in [false, true] {
                let gate = NTLMGate()
                let tls =
                    isSecure
                    ? try HTTPTestServer.TLS(
                        TestCertificateAuthority(commonName: "Proxy root").issue(.init(names: ["localhost"]))) : nil
                try await withTestProxy(.authenticating(gate, tls: tls)) { proxy in
                    var (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]), base)
                    configuration.tls.unsafelySkipsVerification = isSecure
                    let log = ChallengeLog()
                    let session = Session(configuration, decisions: Self.answering(log) { _ in .use(Self.ada) })
                    for _ in 0..<2 { try await session.expect(origin.url(), "here") }
                    // The same connection from the first challenge on.
                    #expect(gate.seen == ["1 -", "1 negotiate", "1 authenticate ada"])
                    #expect(
                        proxy.requests.allSatisfy {
                            $0.method == "CONNECT" && $0.target == "origin.test:\(origin.port)"
                        })
                    try await session.expect(try url("https://other.test:\(origin.port)/"), "here")
                    #expect(gate.seen.suffix(2) == ["2 negotiate", "2 authenticate ada"] && proxy.connections == 2)
                    let spaces = log.withLock { $0.filter { $0.protectionSpace.isProxy }.map(\.protectionSpace) }
                    #expect(spaces.count == 1 && spaces.first?.method == .ntlm && spaces.first?.port == Int(proxy.port))
                    // Security 5: no proxy credential reaches an origin.
                    for request in origin.requests {
                        #expect(request.headers[.proxyAuthorization] == nil && request.headers[.authorization] == nil)
                    }
                    await expectEmpty(session)
                }
            }
        }
    }

    @Test func `an authenticated proxy connection whose tunnel was refused is not kept`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/*") { _ in .ok("here") }
            let gate = NTLMGate()
            try await withTestProxy(.authenticating(gate)) { proxy in
                let log = ChallengeLog()
                let (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]), base)
                let session = Session(
                    configuration,
                    decisions: Self.answering(log) { challenge in
                        challenge.previousFailureCount < 2
                            ? .use(Credential(user: "ada", password: "no\(challenge.previousFailureCount)"))
                            : .use(Self.ada)
                    })
                try await session.expect(origin.url(), "here")
                #expect(
                    gate.seen == [
                        "1 -", "1 negotiate", "1 authenticate ada", "2 negotiate", "2 authenticate ada", "3 negotiate",
                        "3 authenticate ada",
                    ])
                #expect(
                    log.withLock { $0.filter { $0.protectionSpace.isProxy }.map(\.previousFailureCount) } == [0, 1, 2])
                await expectEmpty(session)
                let stubborn = Session(
                    configuration,
                    decisions: Self.answering(ChallengeLog()) { _ in .use(Credential(user: "ada", password: "no")) })
                await expectFailure(.proxyAuthenticationRequired) { try await stubborn.data(from: origin.url()) }
                await expectEmpty(stubborn)
                try await proxy.untilEmpty()
            }
        }
    }

    @Test func `bodies are sent with the last message, and the connection carries requests to every origin`()
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok("\($0.bodyCount)") }
            let gate = NTLMGate()
            try await withTestProxy(.authenticating(gate)) { proxy in
                let log = ChallengeLog()
                let session = Session(
                    ProxyRows.client(.fixed([try proxy.address()])).0,
                    decisions: Self.answering(log) { _ in .use(Self.ada) })
                let (one, two) = (
                    try url("http://one.test:\(origin.port)/"), try url("http://two.test:\(origin.port)/")
                )
                try await session.expect(Request(url: one, method: .post, body: .data(Data("text".utf8))), "4")
                try await session.expect(two, "0")
                try await session.expect(Request(url: one, method: .put, body: .data(Data("more!".utf8))), "5")
                // The first connection was refused together with its body, so another one follows.
                let seen = gate.seen.map { $0.dropFirst(2) }
                #expect(
                    seen == ["-", "negotiate", "authenticate ada", "-", "-"]
                        && Set(gate.state.withLock { $0.opened.values }) == ["ada"])
                // Security 5: the proxy consumes its credentials, once for each message, and no origin sees them.
                #expect(
                    origin.requests.count == 3 && proxy.requests.count { $0.headers[.proxyAuthorization] != nil } == 2)
                #expect(log.withLock { $0.count } == 1)
                // The proxy forgets the authentication.
                gate.forget()
                try await session.expect(Request(url: one, method: .put, body: .data(Data("text".utf8))), "4")
                #expect(log.withLock { $0.count } == 1)
                await expectEmpty(session)
            }
        }
    }

    @Test func `an authenticated proxy connection serves its user only (security 12, 17)`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("here") }
            let gate = NTLMGate()
            try await withTestProxy(.authenticating(gate)) { proxy in
                let session = Session(ProxyRows.client(.fixed([try proxy.address()])).0)
                let target = try url("http://one.test:\(origin.port)/")
                for user in ["ada", "bob", "ada", "bob"] {
                    // For one load only.
                    let credential = Credential(user: user, password: gate.passwords[user] ?? "", persistence: .none)
                    let before = proxy.requests.count
                    _ = try await session.data(
                        for: Request(url: target), decisions: .challenged(ChallengeLog()) { _ in .use(credential) })
                    let last = try #require(proxy.requests.last)
                    #expect(
                        gate.state.withLock { $0.opened[last.connection] } == user && proxy.requests.count > before + 1)
                }
                let (_, response) = try await session.data(from: target)
                #expect(
                    response.http?.status == .proxyAuthenticationRequired
                        && session.connectionsDescription.contains("idle"))
                await expectEmpty(session)
            }
        }
    }

    @Test func `the user and password of a proxy's URL answer NTLM, too`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/*") { _ in .ok("here") }
            let gate = NTLMGate()
            try await withTestProxy(.authenticating(gate)) { proxy in
                let (configuration, _) = ProxyRows.client(
                    .fixed([try proxy.address(user: "ada", password: "s3cret")]), base)
                let session = Session(configuration)
                for _ in 0..<2 { try await session.expect(origin.url(), "here") }
                #expect(gate.seen == ["1 ?", "1 negotiate", "1 authenticate ada"])
                await expectEmpty(session)
            }
        }
    }

    @Test func `two chained proxies with challenges are answered, each for one load`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/*") { _ in .ok("here") }
            let gate = NTLMGate()
            try await withTestProxy(.authenticating(gate)) { first in
                try await withTestProxy(.init(.http, user: "bob", password: "pw")) { second in
                    let (configuration, _) = ProxyRows.client(
                        .fixed([try first.address(), try second.address()]), base)
                    let log = ChallengeLog()
                    let session = Session(
                        configuration,
                        decisions: Self.answering(log) { challenge in
                            challenge.protectionSpace.method == .ntlm
                                ? .use(Credential(user: "ada", password: "s3cret", persistence: .none))
                                : .use(Credential(user: "bob", password: "pw", persistence: .none))
                        })
                    try await session.expect(origin.url(), "here")
                    #expect(
                        log.withLock { $0.filter { $0.protectionSpace.isProxy }.map(\.protectionSpace.port) } == [
                            Int(first.port), Int(second.port),
                        ])
                    await expectEmpty(session)
                }
            }
        }
    }

    @Test func `a credential for one load is requested once by each challenger`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                request.headers[.authorization] == nil
                    ? .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"o\""]) : .ok("in")
            }
            for user in ["u", nil] {
                let gate = NTLMGate(["u": "pw"])
                try await withTestProxy(user == nil ? .authenticating(gate) : .init(.http, user: user, password: "pw"))
                { proxy in
                    let log = ChallengeLog()
                    let session = Session(
                        ProxyRows.client(.fixed([try proxy.address()])).0,
                        decisions: .challenged(log) { challenge in
                            .use(
                                challenge.protectionSpace.isProxy
                                    ? Credential(user: "u", password: "pw", persistence: .none)
                                    : Credential(user: "a", password: "b", persistence: .none))
                        })
                    try await session.expect(try url("http://origin.test:\(origin.port)/"), "in")
                    #expect(
                        log.withLock { $0.map(\.protectionSpace.isProxy) } == [true, false]
                            && log.withLock { $0.map(\.previousFailureCount) } == [0, 0])
                    await expectEmpty(session)
                }
            }
        }
    }

    /// RFC 4559 §6: a proxy may announce that it keeps authenticated connections separate.
    @Test func `an origin's NTLM works through a proxy that keeps its clients separate (security 12, 13)`() async throws
    {
        let gate = NTLMGate()
        try await withHTTPTestServer { origin in
            for path in ["http://origin.test/*", "http://other.test/*"] {
                origin.route(path) { request in
                    var answer = gate.answer(request)
                    if answer.status == .unauthorized {
                        answer.headers.append("Proxy-Support", "Session-Based-Authentication")
                    }
                    return answer
                }
            }
            let session = try Session(
                .ephemeral.with {
                    $0.networks.proxyPolicy = .fixed([try Proxy(.http, host: "127.0.0.1", port: origin.port)])
                })
            for _ in 0..<2 {
                for (text, body) in [
                    ("http://ada:s3cret@origin.test/", "ada 0"), ("http://origin.test/", "refused"),
                    ("http://bob:pw@origin.test/", "bob 0"),
                    ("http://other.test/", "refused"),
                ] { try await session.expect(try url(text), body) }
            }
            #expect(
                Set(gate.state.withLock { $0.opened.values }) == ["ada", "bob"]
                    && gate.state.withLock { $0.opened.count } == 2)
            await expectEmpty(session)
        }
    }

    @Test func `NTLM is not used with an origin through a proxy that shares connections (security 12)`()
        async throws
    {
        let gate = NTLMGate()
        try await withHTTPTestServer { origin in
            origin.route("*") { gate.answer($0) }
            let chains = Lock<[ProxyChain]>([.direct])
            let (configuration, _) = ProxyRows.client(.custom { _ in chains.withLock { $0 } })
            let log = ChallengeLog()
            let session = Session(configuration, decisions: .challenged(log) { _ in .use(Self.ada) })
            try await session.expect(origin.url(), "ada 0")
            let proxy = try Proxy(.http, host: "127.0.0.1", port: origin.port)
            chains.withLock { $0 = [[proxy]] }
            try await session.expect(origin.url(), "refused")
            #expect(gate.seen.last?.hasSuffix(" -") == true)
            // A credential that was not sent was not refused.
            chains.withLock { $0 = [.direct] }
            try await session.expect(origin.url(), "ada 0")
            #expect(log.withLock { $0.map(\.previousFailureCount) } == [0])
            await expectEmpty(session)
        }
    }

    @Test func `an invalid proxy challenge ends the load and closes the tunnel (security 64)`() async throws {
        for words in [[1, 2, 3], NTLMNegotiate.bytes, [UInt8](repeating: 0, count: 4000)] as [[UInt8]] {
            let gate = NTLMGate(words: words)
            try await withTestProxy(.authenticating(gate)) { proxy in
                let session = Session(
                    ProxyRows.client(.fixed([try proxy.address()])).0,
                    decisions: .challenged(ChallengeLog()) { _ in .use(Self.ada) })
                await expectFailure(.authenticationFailed, .remote) {
                    try await session.data(from: try url("https://origin.test/"))
                }
                try await proxy.untilEmpty()
                await expectEmpty(session)
            }
        }
    }

    // MARK: Digest

    /// A proxy that returns Authentication-Info, correct or wrong.
    private func digest(_ qop: String, knows password: String) -> TestProxy.Configuration {
        var configuration = TestProxy.Configuration(.http)
        configuration.authorize = { asked in
            guard let said = asked.headers[.proxyAuthorization].flatMap({ AuthenticationChallenge.parse([$0]).first }),
                said.isOf("Digest")
            else {
                return .refuse([
                    .proxyAuthenticate: "Digest realm=\"p\", nonce=\"n\", algorithm=SHA-256, qop=\"\(qop)\""
                ])
            }
            let h = { (text: String) in DigestHash.sha256.hex(Array(text.utf8)) ?? "" }
            let body = qop == "auth-int" ? ":" + h(asked.method == "CONNECT" ? "" : "here") : ""
            let middle = "n:\(said["nc"] ?? ""):\(said["cnonce"] ?? ""):\(qop)"
            let proof = h("\(h("u:p:\(password)")):\(middle):\(h(":" + asked.target + body))")
            return .allow([.proxyAuthenticationInfo: "rspauth=\"\(proof)\", qop=\(qop)"])
        }
        return configuration
    }

    @Test func `a proxy's Authentication-Info in Digest is verified (security 66)`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] { origin.route("/*") { _ in .ok("here") } }
                let targets = [try url("http://origin.test:\(plain.port)/"), secure.url()]
                for (qop, password) in [("auth", "pw"), ("auth-int", "pw"), ("auth", "no"), ("auth-int", "no")] {
                    try await withTestProxy(digest(qop, knows: password)) { proxy in
                        let (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]), base)
                        let session = Session(
                            configuration,
                            decisions: Self.answering(ChallengeLog()) { _ in .use(Credential(user: "u", password: "pw"))
                            })
                        for target in targets {
                            if password == "pw" {
                                try await session.expect(target, "here")
                            } else {
                                await expectFailure(.authenticationFailed, .remote) {
                                    try await session.data(from: target)
                                }
                            }
                        }
                        await expectEmpty(session)
                    }
                }
            }
        }
    }

    /// A connection authenticated for one load ends with that load, whatever protocol runs through it.
    @Test func `an HTTP 2 tunnel authenticated for one load is closed with it (security 12)`() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue(.init(names: ["origin.test"]))
        var tls = HTTPTestServer.TLS(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
        tls.applicationProtocols = ["h2"]
        try await withHTTP2TestServer(.init(tls: tls)) { server in
            server.route("/") { _ in .ok("here") }
            let gate = NTLMGate()
            try await withTestProxy(.authenticating(gate)) { proxy in
                var (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]))
                configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
                configuration.connections.http2PingInterval = nil
                let session = Session(configuration)
                let target = try url("https://origin.test:\(server.port)/")
                let (_, response) = try await session.data(
                    for: Request(url: target),
                    decisions: Self.answering(ChallengeLog()) { _ in
                        .use(Credential(user: "ada", password: "s3cret", persistence: .none))
                    })
                #expect(response.http?.version == .http2 && gate.seen.last == "1 authenticate ada")
                #expect(session.connectionsDescription == "empty")
                try await proxy.untilEmpty()
                await expectEmpty(session)
            }
        }
    }

    @Test func `an HTTP 1.1 tunnel authenticated for one load is closed with it (security 12)`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/") { _ in .ok("here") }
            let gate = NTLMGate()
            try await withTestProxy(.authenticating(gate)) { proxy in
                let (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]), base)
                let session = Session(configuration)
                let (body, _) = try await session.data(
                    for: Request(url: origin.url()),
                    decisions: Self.answering(ChallengeLog()) { _ in
                        .use(Credential(user: "ada", password: "s3cret", persistence: .none))
                    })
                #expect(body == Data("here".utf8) && session.connectionsDescription == "empty")
                try await proxy.untilEmpty()
                await expectEmpty(session)
            }
        }
    }

    // MARK: Streams

    /// Returns an origin's answer to a request written by hand.
    private func talk(_ session: Session, _ port: UInt16, secure: Bool = false) async throws -> String {
        let task = session.streamTask(host: "origin.test", port: Int(port), secure: secure).resumed()
        try await task.write(Data("GET / HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n".utf8))
        var answer = Data()
        for try await chunk in task.input { answer.append(Data(chunk)) }
        task.cancel()
        return String(decoding: answer.suffix(4), as: UTF8.self)
    }

    @Test(arguments: ["Basic", "Digest", "NTLM"])
    func `a stream's proxies call the session's decision, and their logins are remembered`(
        _ scheme: String
    ) async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] { origin.route("/*") { _ in .ok("here") } }
                let gate = NTLMGate()
                let user = scheme == "NTLM" ? Self.ada : Credential(user: "u", password: "pw")
                let proxies = [
                    "Basic": TestProxy.Configuration(.http, user: "u", password: "pw"),
                    "Digest": digest("auth", knows: "pw"), "NTLM": .authenticating(gate),
                ]
                try await withTestProxy(try #require(proxies[scheme])) { proxy in
                    let (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]), base)
                    let log = ChallengeLog()
                    let session = Session(configuration, decisions: Self.answering(log) { _ in .use(user) })
                    for (port, isSecure) in [(plain.port, false), (secure.port, true), (plain.port, false)] {
                        let answer = try await talk(session, port, secure: isSecure)
                        #expect(answer == "here")
                    }
                    #expect(
                        log.withLock { $0.filter { $0.protectionSpace.isProxy }.map(\.protectionSpace.method.name) }
                            == [scheme])
                    // The connection of the first challenge continues.
                    #expect(proxy.connections == 3)
                    await expectEmpty(session)
                    try await proxy.untilEmpty()
                }
            }
        }
    }

    @Test func `a stream ends without a decision, with one that cancels, and with one that never answers`() async throws
    {
        let gate = NTLMGate()
        try await withTestProxy(.authenticating(gate)) { proxy in
            let (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]))
            let silent = Session(configuration)
            await expectFailure(.proxyAuthenticationRequired) { try await talk(silent, 80) }
            await expectEmpty(silent)
            let cancelling = Session(configuration, decisions: Self.answering(ChallengeLog()) { _ in .cancel })
            await expectFailure(.cancelled) { try await talk(cancelling, 80) }
            await expectEmpty(cancelling)
            let (isAsked, latch) = (Latch(), Latch())
            var decisions = Decisions()
            decisions.challenge = Decision { _ in
                isAsked.open()
                await latch.wait()
                return .use(Self.ada)
            }
            let waiting = Session(configuration, decisions: decisions)
            let task = waiting.streamTask(host: "origin.test", port: 80).resumed()
            await isAsked.wait()
            task.cancel()
            await expectFailure(.cancelled) { try await task.write(Data("x".utf8)) }
            await expectEmpty(waiting)
            try await proxy.untilEmpty()
        }
    }
}

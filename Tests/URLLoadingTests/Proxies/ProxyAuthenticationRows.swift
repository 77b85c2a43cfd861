// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Proxies with authentication: checklist 88; security 5, 7, 17.
@Suite(.timeLimit(.minutes(4))) struct ProxyAuthenticationRows {
    @Test func `requests and tunnels answer the first challenge, then authenticate preemptively`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] { origin.route("/*") { _ in .ok("here") } }
                try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                    for isSecure in [false, true] {
                        let (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]), base)
                        let log = ChallengeLog()
                        let session = Session(
                            configuration,
                            decisions: .challenged(log) { challenge in
                                guard challenge.protectionSpace.method == .basic else { return .performDefaultHandling }
                                return .use(
                                    Credential(user: "u", password: challenge.previousFailureCount == 0 ? "no" : "pw"))
                            })
                        let target =
                            isSecure ? "https://origin.test:\(secure.port)/" : "http://plain.test:\(plain.port)/"
                        for _ in 0..<2 { try await session.expect(try url(target), "here") }
                        // The decision is also called about the origin's certificate.
                        #expect(
                            log.withLock { $0.filter { $0.protectionSpace.isProxy }.map(\.previousFailureCount) } == [
                                0, 1,
                            ])
                        let space = try #require(log.withLock { $0.first?.protectionSpace })
                        #expect(
                            space.isProxy && space.realm == "test" && space.method == .basic
                                && space.port == Int(proxy.port))
                        // Security 5: no proxy credential reaches an origin.
                        for request in plain.requests + secure.requests {
                            #expect(
                                request.headers[.proxyAuthorization] == nil && request.headers[.authorization] == nil)
                        }
                        await expectEmpty(session)
                    }
                }
            }
        }
    }

    @Test func `another proxy gets no credentials of the previous one (security 7, 17)`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { first in
                try await withTestProxy(.init(.http, user: "u", password: "pw")) { second in
                    let way = Lock(try first.address())
                    let (configuration, _) = ProxyRows.client(.custom { _ in [ProxyChain([way.withLock { $0 }])] })
                    let session = Session(configuration)
                    let target = try url("http://plain.test:\(origin.port)/")
                    let (_, response) = try await session.data(
                        for: Request(url: target),
                        decisions: .challenged(ChallengeLog()) { _ in .use(Credential(user: "u", password: "pw")) })
                    #expect(response.http?.status == .ok)
                    let other = try second.address()
                    way.withLock { $0 = other }
                    let (_, refused) = try await session.data(from: target)
                    #expect(refused.http?.status == .proxyAuthenticationRequired)
                    #expect(second.requests.allSatisfy { $0.headers[.proxyAuthorization] == nil })
                    await expectEmpty(session)
                }
            }
        }
    }

    @Test func `a challenge is answered on the same connection if the proxy keeps it open, otherwise on another`()
        async throws
    {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/") { _ in .ok("here") }
            for (fault, connections) in [(nil, 1), (.closeAfterRefusal, 3)] as [(TestProxy.Fault?, Int)] {
                for tls in [
                    nil,
                    try HTTPTestServer.TLS(
                        TestCertificateAuthority(commonName: "Proxy root").issue(.init(names: ["localhost"]))),
                ] {
                    try await withTestProxy(.init(.http, tls: tls, user: "u", password: "pw", fault: fault)) { proxy in
                        var (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]), base)
                        if tls != nil { configuration.tls.unsafelySkipsVerification = true }
                        let session = Session(
                            configuration,
                            decisions: .challenged(ChallengeLog()) { challenge in
                                guard challenge.protectionSpace.isProxy, challenge.protectionSpace.method == .basic
                                else {
                                    return .performDefaultHandling
                                }
                                return .use(
                                    Credential(user: "u", password: challenge.previousFailureCount == 0 ? "no" : "pw"))
                            })
                        try await session.expect(origin.url(), "here")
                        #expect(
                            proxy.connections == connections
                                && proxy.requests.map(\.method) == ["CONNECT", "CONNECT", "CONNECT"])
                        await expectEmpty(session)
                        try await proxy.untilEmpty()
                    }
                }
            }
        }
    }

    @Test(
        "user and password of a proxy's URL wait for its challenge if configured so", arguments: [false, true])
    func waiting(isSecure: Bool) async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] {
                    origin.route("/*") { request in .ok(String(decoding: request.body, as: UTF8.self)) }
                }
                try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                    var (configuration, _) = ProxyRows.client(
                        .fixed([try proxy.address(user: "u", password: "pw")]), base)
                    configuration.authentication.waitsForProxyChallenge = true
                    let session = Session(configuration)
                    let target = isSecure ? "https://origin.test:\(secure.port)/" : "http://plain.test:\(plain.port)/"
                    for text in ["one", "two"] {
                        let request = Request(url: try url(target), method: .post, body: .data(Data(text.utf8)))
                        try await session.expect(request, text)
                    }
                    let said = proxy.requests.map { $0.headers[.proxyAuthorization] != nil }
                    // A tunnel stays open; a request to a forwarding proxy carries the credentials again.
                    #expect(said == (isSecure ? [false, true] : [false, true, true]))
                    for request in plain.requests + secure.requests {
                        #expect(request.headers[.proxyAuthorization] == nil)
                    }
                    await expectEmpty(session)
                }
            }
        }
    }

    @Test("a proxy that offers Digest never sees the password if it waits for the challenge")
    func waitingForDigest() async throws {
        try await withHTTPTestServer { proxy in
            let gate = Gate(
                [.digest("SHA-256", qop: "auth"), .basic], user: "u", password: "pw", field: .proxyAuthorization)
            proxy.route("*") { gate.answerAsProxy($0) }
            var configuration = ProxyRows.client(.fixed([try Proxy("http://u:pw@127.0.0.1:\(proxy.port)")])).0
            configuration.authentication.waitsForProxyChallenge = true
            let session = Session(configuration)
            try await session.expect(try url("http://origin.test/a"), "in")
            #expect(gate.seen.first == "-" && gate.seen.allSatisfy { !$0.hasPrefix("Basic") })
            await expectEmpty(session)
        }
    }

    /// A connection kept for a retry is closed if there is no retry.
    @Test func `a refused tunnel does not leak`() async throws {
        try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
            let session = Session(ProxyRows.client(.fixed([try proxy.address()])).0)
            for decision in [ChallengeDecision.cancel, .rejectProtectionSpace] {
                _ = try? await session.data(
                    for: Request(url: try url("https://origin.test/")),
                    decisions: .challenged(ChallengeLog()) { _ in decision })
                try await proxy.untilEmpty()
            }
            let (isAsked, latch) = (Flag(), Latch())
            var decisions = Decisions()
            decisions.challenge = Decision { _ in
                isAsked.raise()
                await latch.wait()
                return .cancel
            }
            let load = Task { [decisions] in
                try await session.data(for: Request(url: try url("https://origin.test/")), decisions: decisions)
            }
            try await isAsked.wait()
            load.cancel()
            _ = await load.result
            try await proxy.untilEmpty()
            await expectEmpty(session)
        }
    }

    @Test func `a decision may cancel the challenge, or reject it`() async throws {
        try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
            let session = Session(ProxyRows.client(.fixed([try proxy.address()])).0)
            for target in ["http://origin.test/", "https://origin.test/"] {
                await expectFailure(.cancelled, .local, .deciding) {
                    try await session.data(
                        for: Request(url: try url(target)), decisions: .challenged(ChallengeLog()) { _ in .cancel })
                }
            }
            await expectFailure(.proxyAuthenticationRequired) {
                try await session.data(
                    for: Request(url: try url("https://origin.test/")),
                    decisions: .challenged(ChallengeLog()) { _ in .rejectProtectionSpace })
            }
            await expectEmpty(session)
        }
    }

    /// An origin in the role of a proxy: Digest, with the credentials of the proxy's URL.
    @Test func `a proxy with Digest gets the credentials of its URL`() async throws {
        try await withHTTPTestServer { proxy in
            let gate = Gate(
                [.digest("MD5", qop: "auth"), .basic], user: "u", password: "pw", field: .proxyAuthorization)
            proxy.route("*") { gate.answerAsProxy($0) }
            let address = try Proxy("http://u:wrong@127.0.0.1:\(proxy.port)")
            let right = try Proxy("http://u:pw@127.0.0.1:\(proxy.port)")
            let digestOnly = Session(ProxyRows.client(.fixed([right])).0)
            // Basic is sent preemptively, and accepted.
            try await digestOnly.expect(try url("http://origin.test/a"), "in")
            let wrong = Session(ProxyRows.client(.fixed([address])).0)
            let log = ChallengeLog()
            let (_, response) = try await wrong.data(
                for: Request(url: try url("http://origin.test/b")),
                decisions: .challenged(log) { challenge in
                    challenge.previousFailureCount < 1
                        ? .performDefaultHandling : .use(Credential(user: "u", password: "pw"))
                })
            #expect(response.http?.status == .ok && gate.seen.last?.hasPrefix("Digest") == true)
            // The refusal as Basic is one of another protection space.
            #expect(log.withLock { $0.map(\.previousFailureCount) } == [0, 1])
            await expectEmpty(digestOnly)
            await expectEmpty(wrong)
        }
    }

    @Test func `a 407 from an origin is a response, whatever decisions exist`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .status(
                    .proxyAuthenticationRequired,
                    headers: [.proxyAuthenticate: "Basic realm=x", .wwwAuthenticate: "Basic realm=x"])
            }
            let log = ChallengeLog()
            let session = Session(
                .ephemeral, decisions: .challenged(log) { _ in .use(Credential(user: "u", password: "pw")) })
            let (_, response) = try await session.data(from: origin.url())
            #expect(response.http?.status == .proxyAuthenticationRequired && log.withLock { $0.isEmpty })
            await expectEmpty(session)
        }
    }

    /// A credential from a decision belongs to one user of a proxy; another user's requests do not use it.
    @Test func `a credential found for one user of a proxy is not sent for another (security 17)`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy(.init(.http, user: "carol", password: "pw")) { proxy in
                let way = Lock(try proxy.address(user: "alice", password: "no"))
                let session = Session(ProxyRows.client(.custom { _ in [ProxyChain([way.withLock { $0 }])] }).0)
                let target = try url("http://plain.test:\(origin.port)/")
                let (_, response) = try await session.data(
                    for: Request(url: target),
                    decisions: .challenged(ChallengeLog()) { _ in .use(Credential(user: "carol", password: "pw")) })
                #expect(response.http?.status == .ok)
                try await session.expect(target, "here")
                let said = { proxy.requests.last?.headers[.proxyAuthorization] }
                let other = try proxy.address(user: "bob", password: "pw")
                way.withLock { $0 = other }
                let (_, refused) = try await session.data(from: target)
                #expect(refused.http?.status == .proxyAuthenticationRequired && said() == other.authorizationField)
                let first = try proxy.address(user: "alice", password: "no")
                way.withLock { $0 = first }
                try await session.expect(target, "here")
                await expectEmpty(session)
            }
        }
    }

    /// The load took another route in the end, so the proxy never accepted the credential.
    @Test func `a login is remembered only where it was accepted`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy { spare in
                try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                    let (first, second) = (try proxy.address(), try spare.address())
                    let session = Session(
                        ProxyRows.client(.custom { _ in [ProxyChain([first]), ProxyChain([second])] }).0)
                    var decisions = Decisions()
                    decisions.challenge = Decision { _ in
                        await proxy.stop()
                        return .use(Credential(user: "u", password: "never heard"))
                    }
                    let (_, response) = try await session.data(
                        for: Request(url: try url("http://plain.test:\(origin.port)/")), decisions: decisions)
                    #expect(response.http?.status == .ok)
                    #expect(session.core.authenticator.opened(ProxyChain([first])).proxies.first?.login == nil)
                    await expectEmpty(session)
                }
            }
        }
    }

    /// A session that allows Digest only must not send a password in the clear to a proxy, either.
    @Test func `a proxy's password is sent with allowed schemes only`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/") { _ in .ok("here") }
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                var (configuration, _) = ProxyRows.client(.fixed([try proxy.address(user: "u", password: "pw")]), base)
                configuration.authentication.methods = [.digest]
                let session = Session(configuration)
                await expectFailure(.proxyAuthenticationRequired) { try await session.data(from: origin.url()) }
                let (_, response) = try await session.data(from: try url("http://plain.test:1/"))
                #expect(response.http?.status == .proxyAuthenticationRequired)
                #expect(
                    proxy.requests.count == 2 && proxy.requests.allSatisfy { $0.headers[.proxyAuthorization] == nil })
                await expectEmpty(session)
            }
        }
    }
}

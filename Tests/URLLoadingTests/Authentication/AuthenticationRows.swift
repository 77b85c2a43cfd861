// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Challenges and their answers: checklist 71-79, 83-87; security 8, 14, 65, 66.
@Suite(.timeLimit(.minutes(4))) struct AuthenticationRows {
    static let right = Credential(user: "ada", password: "s3cret")
    static let wrong = Credential(user: "ada", password: "wr0ng")

    private static let schemes: [Gate.Kind] = [
        .basic, .digest("MD5", qop: "auth"), .digest("MD5", qop: nil), .digest("MD5-sess", qop: "auth"),
        .digest("SHA-256", qop: "auth,auth-int"),
        .digest("SHA-256-sess", qop: "auth"), .digest("SHA-512-256", qop: "auth"), .digest("SHA-256", qop: "auth-int"),
    ]

    @Test(arguments: 0..<8)
    func `every scheme answers its challenge, then is sent preemptively on one connection (checklist 74, 78, 79)`(
        _ index: Int
    )
        async throws
    {
        let gate = Gate([Self.schemes[index]])
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .use(Self.right) })
            try await session.expect(
                Request(url: origin.url("/dir/a?b=c"), method: .post, body: .data(Data("text".utf8))), "in")
            try await session.expect(origin.url("/dir/b"), "in")
            try await session.expect(origin.url("/dir/c/d"), "in")
            #expect(log.withLock { $0.count } == 1 && gate.seen.count == 4 && gate.seen[0] == "-")
            #expect(origin.counts.accepted == 1)
            let challenge = try #require(log.withLock { $0.first })
            #expect(
                challenge.protectionSpace.realm == "zone" && challenge.protectionSpace.port == Int(origin.port)
                    && challenge.protectionSpace.scheme == "http")
            #expect(challenge.failureResponse?.http?.status == .unauthorized && challenge.previousFailureCount == 0)
            #expect(!challenge.protectionSpace.isProxy && challenge.proposedCredential == nil)
            await expectEmpty(session)
        }
    }

    @Test func `a Basic challenge whose realm lacks its quotes is answered`() async throws {
        let right = "Basic " + Data("ada:s3cret".utf8).base64EncodedString()
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                guard request.headers[.authorization] != right else { return .ok("in") }
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=My Router"])
            }
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .use(Self.right) })
            try await session.expect(origin.url(), "in")
            #expect(log.withLock { $0.first?.protectionSpace.realm } == "My Router")
            await expectEmpty(session)
        }
    }

    @Test func `without a decision, or with default handling, the 401 is the response (checklist 83, 84, 75)`()
        async throws
    {
        let gate = Gate([.basic])
        try await withGate(gate) { origin in
            for decisions in [nil, Decisions.challenged(ChallengeLog()) { _ in .performDefaultHandling }] {
                let session = Session(.ephemeral, decisions: decisions)
                let (body, response) = try await session.data(from: origin.url())
                #expect(response.http?.status == .unauthorized && String(decoding: body, as: UTF8.self) == "refused")
                await expectEmpty(session)
            }
        }
    }

    @Test func `user and password of a URL apply to that URL only (checklist 83)`() async throws {
        for kind in [Gate.Kind.basic, .digest("SHA-256", qop: "auth")] {
            let gate = Gate([kind], user: "a@b", password: "p:w é")
            try await withGate(gate) { origin in
                let session = Session(.ephemeral)
                let named = try url("http://a%40b:p%3Aw%20%C3%A9@127.0.0.1:\(origin.port)/x")
                for _ in 0..<2 { try await session.expect(named, "in") }
                #expect(gate.seen.count == 3)
                // Security 14: the same connection, without that user.
                let (_, response) = try await session.data(from: origin.url("/x"))
                #expect(response.http?.status == .unauthorized && gate.seen.count == 4 && gate.seen[3] == "-")
                await expectEmpty(session)
            }
        }
    }

    @Test func `failures are counted; a refused credential is proposed, and not used by itself (checklist 72, 73)`()
        async throws
    {
        let gate = Gate([.basic])
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(
                .ephemeral,
                decisions: .challenged(log) { challenge in
                    challenge.previousFailureCount < 3
                        ? (challenge.previousFailureCount == 0 ? .performDefaultHandling : .use(Self.wrong))
                        : .use(Self.right)
                })
            try await session.expect(try url("http://ada:wr0ng@127.0.0.1:\(origin.port)/"), "in")
            #expect(log.withLock { $0.map(\.previousFailureCount) } == [0, 1, 2, 3])
            #expect(
                log.withLock { $0.map { $0.proposedCredential?.password } } == ["wr0ng", "wr0ng", "wr0ng", "wr0ng"])
            // A decision that always answers is not called forever.
            let stubborn = ChallengeLog()
            let (_, response) = try await session.data(
                for: Request(url: origin.url("/else")), decisions: .challenged(stubborn) { _ in .use(Self.wrong) })
            #expect(response.http?.status == .ok)
            let other = Session(.ephemeral)
            let (_, refused) = try await other.data(
                for: Request(url: origin.url()), decisions: .challenged(stubborn) { _ in .use(Self.wrong) })
            #expect(refused.http?.status == .unauthorized && stubborn.withLock { $0.count } == 12)
            await expectEmpty(session)
            await expectEmpty(other)
        }
    }

    @Test func `rejected protection spaces lead to the next scheme, the strongest first (checklist 76)`() async throws {
        let gate = Gate([.basic, .digest("MD5", qop: "auth"), .bearer, .digest("SHA-256", qop: "auth")])
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral)
            try await session.expect(origin.url(), "refused")
            let (_, response) = try await session.data(
                for: Request(url: origin.url()), decisions: .challenged(log) { _ in .rejectProtectionSpace })
            #expect(response.http?.status == .unauthorized)
            #expect(log.withLock { $0.map(\.protectionSpace.method) } == [.digest, .digest, .basic, .bearer])
            let (_, second) = try await session.data(
                for: Request(url: origin.url()),
                decisions: .challenged(log) {
                    $0.protectionSpace.method == .basic ? .use(Self.right) : .rejectProtectionSpace
                })
            #expect(second.http?.status == .ok && gate.seen.last?.hasPrefix("Basic") == true)
            await expectEmpty(session)
        }
    }

    @Test(arguments: Verb.allCases) func `cancelling a challenge ends the load (checklist 77)`(_ verb: Verb)
        async throws
    {
        try await withGate(Gate([.basic])) { origin in
            let session = Session(.ephemeral)
            await expectFailure(.cancelled, .local, .deciding) {
                try await verb.run(session, Request(url: origin.url()), .challenged(ChallengeLog()) { _ in .cancel })
            }
            await expectEmpty(session)
        }
    }

    @Test(arguments: [Ending.task, .invalidation, .resourceTimeout])
    func `a load that ends during its decision releases its socket`(_ ending: Ending) async throws {
        try await withGate(Gate([.basic])) { origin in
            let session = Session(.patient)
            let isAsked = Flag()
            var decisions = Decisions()
            decisions.challenge = Decision { _ in
                isAsked.raise()
                try await Task.sleep(for: .seconds(3600))
                return .cancel
            }
            let load = RunningLoad(session, ending.applied(to: Request(url: origin.url())), decisions: decisions)
            // The load may end before it reaches the decision.
            if !ending.isTimeout { try await isAsked.wait() }
            ending.apply(load, session)
            #expect(await load.reason == ending.reason)
            try await origin.wait { $0.open == 0 }
            await expectEmpty(session)
        }
    }

    @Test func `a credential that cannot be encoded is requested again, with the error`() async throws {
        try await withGate(Gate([.basic])) { origin in
            let log = ChallengeLog()
            let session = Session(
                .ephemeral,
                decisions: .challenged(log) { challenge in
                    challenge.error == nil ? .use(Credential(user: "a:b", password: "")) : .use(Self.right)
                })
            try await session.expect(origin.url(), "in")
            #expect(log.withLock { $0.map { $0.error?.reason } } == [nil, .badDecision])
            #expect(!"\(Self.right) \(String(reflecting: Self.right))".contains("s3cret"))
            var text = ""
            dump(Self.right, to: &text)
            #expect(!text.contains("s3cret"))
            await expectEmpty(session)
        }
    }

    @Test func `a credential that cannot be encoded, given again, ends the load with the reason`() async throws {
        try await withGate(Gate([.basic])) { origin in
            let log = ChallengeLog()
            let session = Session(
                .ephemeral, decisions: .challenged(log) { _ in .use(Credential(user: "a:b", password: "")) })
            let error = await failure(.badDecision, .local, .deciding) {
                try await session.data(from: origin.url())
            }
            #expect(log.withLock { $0.count } == 2 && error?.detail?.contains("colon") == true)
            await expectEmpty(session)
        }
    }

    @Test func `a stale nonce is no failure, and nextnonce is used`() async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth")])
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .use(Self.right) })
            try await session.expect(origin.url(), "in")
            gate.newNonce("n1")
            try await session.expect(origin.url(), "in")
            try await session.expect(origin.url(), "in")
            #expect(log.withLock { $0.count } == 1 && gate.seen.count == 5)
            #expect(gate.seen[4].contains("nonce=\"n1.") && gate.seen[4].contains("nc=00000002"))
            await expectEmpty(session)
        }
        let next = Gate([.digest("MD5", qop: "auth")], sendsNext: true)
        try await withGate(next) { origin in
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.right) })
            for _ in 0..<3 { try await session.expect(origin.url(), "in") }
            #expect(
                next.seen.map { $0.contains("nonce=\"n3\", ") } == [false, false, false, true]
                    && next.seen[3].contains("nc=00000001"))
            await expectEmpty(session)
        }
    }

    @Test func `parallel loads share the count of one nonce`() async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth")])
        try await withGate(gate) { origin in
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.right) })
            try await session.expect(origin.url(), "in")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<64 { group.addTask { try await session.expect(origin.url(), "in") } }
                try await group.waitForAll()
            }
            #expect(gate.seen.count == 66)
            await expectEmpty(session)
        }
    }

    @Test func `bodies are created anew for each sending (checklist 85)`() async throws {
        let gate = Gate([.digest("MD5", qop: "auth")])
        try await withGate(gate) { origin in
            let session = Session(.ephemeral)
            let made = Lock(0)
            let causes = Lock<[BodyProviderContext.Cause]>([])
            func decisions() -> Decisions {
                var decisions = Decisions.challenged(ChallengeLog()) { _ in
                    .use(Credential(user: "ada", password: "s3cret", persistence: .none))
                }
                decisions.bodyProvider = Decision { demand in
                    causes.withLock { $0.append(demand.cause) }
                    return .data(Data("demanded".utf8))
                }
                return decisions
            }
            let stream = RequestBody.stream {
                made.withLock { $0 += 1 }
                return AsyncStream<[UInt8]> {
                    $0.yield(Array("streamed".utf8))
                    $0.finish()
                }
            }
            for body in [stream, .provided] {
                let (_, response) = try await session.data(
                    for: Request(url: origin.url(), method: .post, body: body), decisions: decisions())
                #expect(response.http?.status == .ok)
            }
            #expect(made.withLock { $0 } == 2 && causes.withLock { $0 } == [.first, .challenge])
            #expect(
                origin.requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                    "streamed", "streamed", "demanded", "demanded",
                ])
            await expectEmpty(session)
        }
    }

    @Test func `an upload challenged halfway is created anew and sent again (checklist 85)`() async throws {
        let gate = Gate([.basic])
        try await withHTTPTestServer { origin in
            // Answers as soon as it has the head.
            origin.route("/*", readsBody: false) { gate.answer($0) }
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.right) })
            let made = Lock(0)
            let body = RequestBody.stream { () -> AsyncStream<[UInt8]> in
                let attempt = made.withLock { made in
                    made += 1
                    return made
                }
                // The first body has no end, so the client has to stop sending it.
                return AsyncStream { attempt == 1 ? [UInt8](repeating: 0x61, count: 16 * 1024) : nil }
            }
            let (data, response) = try await session.data(for: Request(url: origin.url(), method: .post, body: body))
            #expect(
                response.http?.status == .ok && String(decoding: data, as: UTF8.self) == "in"
                    && made.withLock { $0 } == 2)
            await expectEmpty(session)
        }
    }

    @Test func `challenges appear among the events (checklist 45)`() async throws {
        let gate = Gate([.basic])
        try await withSecureOrigin(.init(names: ["localhost"]), name: "localhost") { origin, base in
            origin.route("/*") { gate.answer($0) }
            let session = Session(
                base,
                decisions: .challenged(ChallengeLog()) { challenge in
                    challenge.protectionSpace.method == .basic ? .use(Self.right) : .performDefaultHandling
                })
            let task = session.dataTask(Request(url: origin.url(), method: .post, body: .data(Data("text".utf8))))
            let events = task.events
            task.resume()
            var order = LoadEventOrder()
            var words: [String] = []
            for await event in events {
                let isLegal = order.accept(event)
                #expect(isLegal, "\(order)")
                switch event {
                case .challenged(let challenge): words.append(challenge.protectionSpace.method.name)
                case .bodySent: words.append("sent")
                case .responded: words.append("responded")
                default: break
                }
            }
            #expect(words == ["ServerTrust", "sent", "Basic", "sent", "responded"], "\(order)")
            await expectEmpty(session)
        }
    }

    @Test func `a body that auth-int needs is requested again, and no weaker scheme is used`() async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth-int"), .basic])
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let causes = Lock<[BodyProviderContext.Cause]>([])
            var decisions = Decisions.challenged(log) { _ in .use(Self.right) }
            decisions.bodyProvider = Decision { demand in
                causes.withLock { $0.append(demand.cause) }
                // Can be read once.
                let pieces = AsyncStream<[UInt8]> { stream in
                    stream.yield([1])
                    stream.finish()
                }
                return .stream { pieces }
            }
            let session = Session(.ephemeral, decisions: decisions)
            try await session.expect(Request(url: origin.url(), method: .post, body: .provided), "in")
            #expect(
                log.withLock { $0.map(\.protectionSpace.method) } == [.digest]
                    && causes.withLock { $0 } == [.first, .challenge, .challenge])
            await expectEmpty(session)
        }
    }

    @Test func `a credential for one load is not stored (checklist 86)`() async throws {
        let gate = Gate([.basic])
        try await withGate(gate) { origin in
            let session = Session(.ephemeral)
            let once = Decisions.challenged(ChallengeLog()) { _ in
                .use(Credential(user: "ada", password: "s3cret", persistence: .none))
            }
            _ = try await session.data(for: Request(url: origin.url()), decisions: once)
            try await session.expect(origin.url(), "refused")
            await expectEmpty(session)
        }
    }

    @Test func `the store is searched by protection space, then for any method, then for the server (checklist 87)`()
        async throws
    {
        let gate = Gate([.digest("MD5", qop: "auth"), .basic])
        try await withGate(gate) { origin in
            func space(_ realm: String?, _ method: Challenge.Method) -> ProtectionSpace {
                ProtectionSpace(host: "127.0.0.1", port: Int(origin.port), scheme: "http", realm: realm, method: method)
            }
            for (spaces, isIn) in [
                ([space("zone", .digest)], true), ([space("zone", .any)], true), ([space(nil, .any)], true),
                ([space("other", .digest)], false),
            ] {
                var configuration = Configuration.ephemeral
                let store = CredentialStore()
                for space in spaces { store.set(Self.right, for: space) }
                configuration.authentication.credentialStore = store
                let session = Session(configuration)
                try await session.expect(origin.url(), isIn ? "in" : "refused")
                await expectEmpty(session)
            }
        }
    }

    @Test func `without a decision there is no downgrade (security 65)`() async throws {
        let strong = Gate([.digest("SHA-256", qop: "auth")])
        let weak = Gate([.basic])
        let isWeak = Lock(false)
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in isWeak.withLock { $0 } ? weak.answer(request) : strong.answer(request) }
            let session = Session(.ephemeral)
            let named = try url("http://ada:s3cret@127.0.0.1:\(origin.port)/")
            try await session.expect(named, "in")
            isWeak.withLock { $0 = true }
            try await session.expect(named, "refused")
            #expect(weak.seen.allSatisfy { !$0.hasPrefix("Basic") })
            let log = ChallengeLog()
            let (_, response) = try await session.data(
                for: Request(url: named), decisions: .challenged(log) { _ in .use(Self.right) })
            #expect(response.http?.status == .ok && log.withLock { $0.count } == 1)
            await expectEmpty(session)
        }
    }

    /// Without a refused credential, only the memory of the stronger scheme prevents the weaker one.
    @Test
    func `a password that Digest has accepted is not sent as Basic on any path of its realm (security 65)`()
        async throws
    {
        let strong = Gate([.digest("SHA-256", qop: "auth")])
        let weak = Gate([.basic])
        strong.extraText.withLock { $0 = ", domain=\"/a\"" }
        try await withHTTPTestServer { origin in
            origin.route("/*") { $0.path.hasPrefix("/a") ? strong.answer($0) : weak.answer($0) }
            let space = ProtectionSpace(host: "127.0.0.1", port: Int(origin.port), scheme: "http", method: .any)
            for isOfURL in [true, false] {
                var configuration = Configuration.ephemeral
                let store = CredentialStore()
                if !isOfURL { store.set(Self.right, for: space) }
                configuration.authentication.credentialStore = store
                let session = Session(configuration)
                let user = isOfURL ? "ada:s3cret@" : ""
                try await session.expect(try url("http://\(user)127.0.0.1:\(origin.port)/a/1"), "in")
                try await session.expect(try url("http://\(user)127.0.0.1:\(origin.port)/b"), "refused")
                await expectEmpty(session)
            }
            #expect(weak.seen == ["-", "-"])
        }
    }

    @Test func `domain names paths of its own server only (security 8)`() throws {
        let text =
            "Digest realm=r, nonce=n, "
            + "domain=\"/a http://a.test/b http://b.test/c https://a.test/d http://a.test:81/e //b.test/f\""
        let challenge = try #require(AuthenticationChallenge.parse([text]).first.flatMap { DigestChallenge($0) })
        let space = ProtectionSpace(host: "a.test", port: 80, scheme: "http", realm: "r", method: .digest)
        let login = try #require(Login(.digest(challenge), space, Self.right, path: "/"))
        #expect(["/a", "/a/1", "/b/2"].allSatisfy { login.coverage(of: $0) != nil })
        #expect(["/", "/ab", "/c", "/d", "/e", "/f", "/b.test/f"].allSatisfy { login.coverage(of: $0) == nil })
    }

    @Test func `only allowed schemes are used`() async throws {
        try await withGate(Gate([.basic, .bearer])) { origin in
            var configuration = Configuration.ephemeral
            configuration.authentication.methods = [.digest]
            let log = ChallengeLog()
            let session = Session(configuration, decisions: .challenged(log) { _ in .use(Self.right) })
            try await session.expect(origin.url(), "refused")
            #expect(log.withLock { $0.isEmpty })
            await expectEmpty(session)
        }
    }

    @Test func `an Authorization field of the caller is sent unchanged`() async throws {
        try await withGate(Gate([.basic])) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .use(Self.right) })
            try await session.expect(origin.url(), "in")
            try await session.expect(Request(url: origin.url(), headers: [.authorization: "Basic eDp5"]), "refused")
            #expect(log.withLock { $0.count } == 1)
            await expectEmpty(session)
        }
    }

    @Test func `a login belongs to its origin (security 1, 8)`() async throws {
        let first = Gate([.digest("MD5", qop: "auth")])
        let second = Gate([.digest("MD5", qop: "auth")])
        try await withHTTPTestServer { b in
            b.route("/*") { second.answer($0) }
            try await withHTTPTestServer { a in
                a.route("/*") { first.answer($0) }
                a.route("/away") { _ in .redirect(b.url("/").absoluteString) }
                a.route("/near") { _ in .redirect("/in") }
                first.extraText.withLock { $0 = ", domain=\"/ \(b.url("/").absoluteString)\"" }
                let session = Session(.ephemeral)
                let named = "http://ada:s3cret@127.0.0.1:\(a.port)"
                try await session.expect(try url(named + "/"), "in")
                try await session.expect(try url(named + "/near"), "in")
                try await session.expect(try url(named + "/away"), "refused")
                #expect(second.seen == ["-"])
                // Another server does not choose the login, either.
                a.route("/set") { _ in .redirect("http://ada:s3cret@127.0.0.1:\(b.port)/") }
                try await session.expect(a.url("/set"), "refused")
                #expect(second.seen == ["-", "-"])
                await expectEmpty(session)
            }
        }
    }

    @Test func `RFC 7617 2.2: Basic is sent preemptively below its path only`() async throws {
        let gate = Gate([.basic])
        try await withGate(gate) { origin in
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.right) })
            for path in ["/a/b", "/a/c/d", "/other"] { try await session.expect(origin.url(path), "in") }
            #expect(gate.seen.map { $0 == "-" } == [true, false, false, true, false])
            await expectEmpty(session)
        }
    }

    @Test func `a long 401 body, or one that ends its connection, costs the connection and nothing else`() async throws
    {
        try await withHTTPTestServer { origin in
            let gate = Gate([.basic])
            for (path, body) in [
                ("/long/", HTTPTestServer.Response.Body.repeated(count: 1 << 20)),
                ("/close/", .untilClose(["refused"])),
            ] {
                origin.route(path) { request in
                    var answer = gate.answer(request)
                    if answer.status == .unauthorized { answer.body = body }
                    return answer
                }
                let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(Self.right) })
                try await session.expect(origin.url(path), "in")
                await expectEmpty(session)
            }
        }
    }

    /// An older nonce must not weaken the response: without a quality of protection it contains no client nonce (RFC
    /// 7616 §3.4.1, RFC 2069).
    @Test func `a stale nonce does not lead to a weaker Digest response (security 66)`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                let said = request.headers[.authorization] ?? ""
                if said.contains("nonce=\"n1\""), said.contains("nc=00000001") { return .ok("in") }
                let isStale = said.contains("nonce=\"n1\"")
                let challenge =
                    isStale ? "Digest realm=zone, nonce=n2, stale=true" : "Digest realm=zone, nonce=n1, qop=\"auth\""
                return .status(.unauthorized, headers: [.wwwAuthenticate: challenge])
            }
            let session = Session(.ephemeral)
            let named = try url("http://ada:s3cret@127.0.0.1:\(origin.port)/")
            try await session.expect(named, "in")
            let (_, response) = try await session.data(from: named)
            #expect(response.http?.status == .unauthorized)
            #expect(origin.requests.compactMap { $0.headers[.authorization] }.allSatisfy { $0.contains("qop=auth") })
            await expectEmpty(session)
        }
    }

    /// A server that names a new protection space in every response must fill neither memory nor file.
    @Test func `the number of remembered protection spaces is limited`() throws {
        let store = CredentialStore()
        var configuration = Configuration.ephemeral
        configuration.authentication.credentialStore = store
        let authenticator = Authenticator(configuration)
        let hosts = 5000
        for index in 0..<(hosts + 200) {
            let isOne = index >= hosts
            let space = ProtectionSpace(
                host: isOne ? "one.test" : "h\(index).test", port: 80, scheme: "http", realm: "r\(index)",
                method: .basic)
            let login = try #require(
                Login(.basic(realm: "r\(index)"), space, Self.right, from: isOne ? .decision : .url, path: "/"))
            _ = authenticator.remember(login, since: authenticator.removals)
            if isOne { authenticator.keep(login.credential, for: space) }
        }
        #expect(authenticator.rememberedServers <= 1024 && store.all.count <= 32)
        // The newest entry is present.
        let space = ProtectionSpace(host: "one.test", port: 80, scheme: "http", method: .basic)
        #expect(authenticator.login(at: .init(space), path: "/", url: nil) != nil)
    }
}

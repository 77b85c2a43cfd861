// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The decision that signs requests: what it sees, when it is asked, and what becomes of its answer.
@Suite(.timeLimit(.minutes(4))) struct SigningRows {
    static let key = SigningKey.hmacSHA256(Array("s3cret".utf8))

    /// Answers with the number of the question, and keeps the questions.
    final class Notary: Sendable {
        let asked = Watched<[SigningRequest]>([])

        var decisions: Decisions {
            var decisions = Decisions()
            decisions.sign = Decision { request in
                let count = self.asked.change { asked in
                    asked.append(request)
                    return asked.count
                }
                return RequestSignature(headers: ["Proof": "\(count)"])
            }
            return decisions
        }
    }

    static func proofs(_ requests: [HTTPTestServer.RecordedRequest]) -> [String] {
        requests.map { $0.headers["Proof"] ?? "none" }
    }

    /// Checks the signatures of a received request as its server would.
    static func expect(
        _ request: HTTPTestServer.RecordedRequest?, isSignedWith key: SigningKey = key, covering components: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let request = try #require(request, sourceLocation: sourceLocation)
        let entries = try #require(
            StructuredField.dictionary(request.headers[.signatureInput] ?? ""), sourceLocation: sourceLocation)
        let signatures = StructuredField.byteSequences(request.headers[.signature] ?? "") ?? [:]
        let message = SignatureMessage.Request(
            method: request.method.rawValue, scheme: "http", authority: request.headers[.host] ?? "",
            target: request.target, headers: request.headers)
        let entry = try #require(entries.first, sourceLocation: sourceLocation)
        guard case .list(let input) = entry.member else {
            Issue.record("no list", sourceLocation: sourceLocation)
            return
        }
        #expect(input.items.map(\.value) == components.map { .string($0) }, sourceLocation: sourceLocation)
        let base = try SignatureBase.make(input, of: SignatureMessage(message))
        #expect(
            key.key.verifies(signatures[entry.key] ?? [], of: Array(base.utf8)), "\(base)",
            sourceLocation: sourceLocation)
    }

    // MARK: What is seen

    @Test("every field is known, the same over HTTP/1.1 and HTTP/2, and is what the server gets")
    func fields() async throws {
        let first = try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("in", headers: [.setCookie: "a=b"]) }
            return try await self.seen(origin.url(), .ephemeral) { origin.requests.last }
        }
        let second = try await withHTTP2TestServer { server in
            server.route("/*") { _ in .ok("in", headers: [.setCookie: "a=b"]) }
            return try await self.seen(server.url(), .http2) { server.requests.last }
        }
        #expect(first.headers == second.headers && first.target == second.target)
        #expect(first.headers[.host] == nil && first.headers[.transferEncoding] == nil)
    }

    private func seen(
        _ base: URL, _ configuration: Configuration, _ received: () -> HTTPTestServer.RecordedRequest?
    ) async throws -> SigningRequest {
        var configuration = configuration
        configuration.headers = [.acceptLanguage: "de"]
        configuration.wallClock = { 1_800_000_000 }
        let notary = Notary()
        return try await withSession(configuration, decisions: notary.decisions) { session in
            try await session.expect(base, "in")
            var request = Request(url: try url("\(base)a%20b?c=d#e"), method: .post, body: .data(Data("12345".utf8)))
            request.headers = ["X-Own": "1", .connection: "X-Hop", "X-Hop": "2", .te: "trailers"]
            try request.authorize(Credential(user: "ada", password: "pw"))
            try await session.expect(request, "in")
            let question = try #require(notary.asked.value.last)
            let server = try #require(received())
            #expect(question.method == .post && question.target == "/a%20b?c=d" && question.target == server.target)
            #expect(question.url.absoluteString == "\(base)a%20b?c=d" && question.authority == server.headers[.host])
            #expect(question.bodyLength == 5 && question.date == Date(timeIntervalSince1970: 1_800_000_000))
            #expect(question.cause == .first && !question.isForeign)
            for name in [
                "X-Own", .acceptLanguage, .cookie, .authorization, .contentLength, .contentType, .userAgent, .accept,
                .acceptEncoding,
            ] as [FieldName] {
                #expect(question.headers[name] != nil && question.headers[name] == server.headers[name], "\(name)")
            }
            for name in ["X-Hop", .connection, .te] as [FieldName] { #expect(!question.headers.contains(name)) }
            #expect(server.headers["Proof"] == "2")
            return question
        }
    }

    @Test("a caller's Host field is the authority") func authority() async throws {
        let notary = Notary()
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            try await withSession(.ephemeral, decisions: notary.decisions) { session in
                try await session.expect(
                    Request(url: origin.url(), headers: [.host: "Virtual.test"]), "in")
                #expect(notary.asked.value.first?.authority == "Virtual.test")
                #expect(origin.requests.first?.headers[.host] == "Virtual.test")
            }
        }
    }

    @Test("the digest of bytes, of a file, of a provided body and of none; a sequence has none") func digests()
        async throws
    {
        let file = FileManager.default.temporaryDirectory.appending(path: "urlloading-\(UUID())")
        try Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) }).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        func hex(_ data: Data) -> String? { DigestHash.sha256.hex(Array(data)) }
        let whole = try Data(contentsOf: file)
        let notary = Watched<[String]>([])
        var decisions = Decisions()
        decisions.sign = Decision { request in
            let digest = try await request.bodyDigest(.sha256)
            #expect(try await request.bodyDigest(.sha512).bytes.count == 64)
            notary.append("\(digest)")
            return .none
        }
        decisions.bodyProvider = Decision { _ in .data(Data("provided".utf8)) }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            try await withSession(.ephemeral, decisions: decisions) { session in
                let bodies: [(RequestBody?, Data)] = [
                    (nil, Data()), (.data(Data()), Data()), (.data(Data("abc".utf8)), Data("abc".utf8)),
                    (.file(file), whole), (.file(file, range: 5..<70_000), whole[5..<70_000]),
                    (.provided, Data("provided".utf8)),
                ]
                for (body, data) in bodies {
                    try await session.expect(Request(url: origin.url(), method: .post, body: body), "in")
                    #expect(notary.value.last == hex(data).map { "sha-256=\($0)" })
                }
                let count = origin.counts.requests
                let sequence = RequestBody.stream { AsyncStream<[UInt8]> { $0.finish() } }
                let error = await failure(.cannotSign, .local, .preparing) {
                    try await session.data(for: Request(url: origin.url(), method: .post, body: sequence))
                }
                #expect(error?.detail?.contains("sequence") == true && origin.counts.requests == count)
                await expectEmpty(session)
            }
        }
    }

    // MARK: When it is asked

    @Test("each sending has a signature of its own: retries, stale connections, challenges, redirects")
    func sendings() async throws {
        let notary = Notary()
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            origin.route("/busy") { [weak origin] _ in
                origin?.requests.count == 1 ? .status(.serviceUnavailable) : .redirect("/login")
            }
            origin.route("/login") {
                $0.headers[.authorization] != nil
                    ? .ok("in") : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=r"])
            }
            origin.route("/stale") { $0.exchange == 1 ? .ok("in") : .raw([], then: .reset) }
            var policy = RetryPolicy()
            (policy.backoff, policy.statuses) = (.constant(.zero), RetryPolicy.transientStatuses)
            var decisions = notary.decisions
            decisions.challenge = Decision { _ in
                .use(Credential(user: "ada", password: "s3cret", persistence: .none))
            }
            try await withSession(.ephemeral.with { $0.retries.policy = policy }, decisions: decisions) { session in
                try await session.expect(origin.url("/busy"), "in")
                try await session.expect(origin.url("/stale"), "in")
            }
            #expect(Self.proofs(origin.requests) == ["1", "2", "3", "4", "5", "6"])
            #expect(
                notary.asked.value.map(\.cause) == [.first, .retry, .redirect, .challenge, .first, .staleConnection])
            #expect(notary.asked.value[3].headers[.authorization]?.hasPrefix("Basic ") == true)
            #expect(notary.asked.value.allSatisfy { !$0.headers.contains("Proof") })
        }
    }

    @Test("a new connection that its server closes while the signer works is replaced once, for GET") func slow()
        async throws
    {
        let notary = Notary()
        try await withHTTPTestServer { origin in
            origin.route("/") { [weak origin] _ in
                origin?.requests.count == 1 ? .raw([], then: .close) : .ok("in")
            }
            origin.route("/never") { _ in .raw([], then: .close) }
            try await withSession(.ephemeral, decisions: notary.decisions) { session in
                try await session.expect(origin.url(), "in")
                #expect(notary.asked.value.map(\.cause) == [.first, .staleConnection])
                await expectFailure(.connectionLost) {
                    try await session.data(for: Request(url: origin.url("/never"), method: .post))
                }
                #expect(Self.proofs(origin.requests) == ["1", "2", "3"])
            }
            try await withSession(.ephemeral, decisions: notary.decisions) { session in
                await expectFailure(.connectionLost) { try await session.data(from: origin.url("/never")) }
                #expect(origin.requests.count == 5)
            }
        }
    }

    @Test("a load's own decision precedes its session's; no signature changes nothing") func precedence() async throws {
        let (first, second) = (Notary(), Notary())
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            try await withSession(.ephemeral, decisions: first.decisions) { session in
                _ = try await session.data(for: Request(url: origin.url()), decisions: second.decisions)
                var none = Decisions()
                none.sign = Decision { _ in .none }
                _ = try await session.data(for: Request(url: origin.url()), decisions: none)
                #expect(first.asked.value.isEmpty && second.asked.value.count == 1)
                #expect(Self.proofs(origin.requests) == ["1", "none"])
            }
        }
    }

    @Test("an error, a deadline and a cancellation end the load, and give the connection back") func failures()
        async throws
    {
        struct NoKey: Error {}
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            let request = Request(url: origin.url())
            let session = Session(.ephemeral)
            var decisions = Decisions()
            decisions.sign = Decision { _ in throw NoKey() }
            let error = await failure(.decisionFailed, .local) {
                try await session.data(for: request, decisions: decisions)
            }
            #expect(error?.underlying is NoKey && error?.url == request.url)
            decisions.sign = Decision(timeout: .milliseconds(1)) { _ in
                try await Task.sleep(for: .seconds(3600))
                return .none
            }
            await expectFailure(.decisionTimeout, .local) {
                try await session.data(for: request, decisions: decisions)
            }
            let isAsked = Flag()
            decisions.sign = Decision { _ in
                isAsked.raise()
                try await Task.sleep(for: .seconds(3600))
                return .none
            }
            let load = Task { [decisions] in try await session.data(for: request, decisions: decisions) }
            try await isAsked.wait()
            load.cancel()
            await expectFailure(.cancelled) { try await load.value }
            #expect(origin.counts.requests == 0)
            await expectEmpty(session)
        }
    }

    // MARK: Origins

    @Test("another origin gets no signature of the first, and is signed for only if all are listed") func origins()
        async throws
    {
        try await withHTTPTestServer { first in
            try await withHTTPTestServer { second in
                first.route("/") { _ in .redirect(second.url("/there").absoluteString) }
                first.route("/back") { _ in .ok("in") }
                second.route("/there") { _ in .redirect(first.url("/back").absoluteString) }
                func signed(_ signer: Decision<SigningRequest, RequestSignature>) async throws -> [Bool] {
                    let (before, beforeThere) = (first.requests.count, second.requests.count)
                    var decisions = Decisions()
                    decisions.sign = signer
                    try await withSession(.ephemeral, decisions: decisions) { try await $0.expect(first.url(), "in") }
                    let received = [first.requests[before], second.requests[beforeThere], first.requests[before + 1]]
                    return received.map { $0.headers.contains(.signature) || $0.headers.contains(.authorization) }
                }
                let credentials = AWSCredentials(accessKey: "a", secretKey: "s3cret")
                #expect(try await signed(MessageSigner(key: Self.key, keyID: "k").decision) == [true, false, false])
                #expect(
                    try await signed(AWSSigner(credentials: credentials, region: "r", service: "s").decision)
                        == [true, false, false])
                // Listed is not enough after a redirect from an origin that is not: it has chosen what is asked for.
                let both = [first, second].map { $0.url().absoluteString }
                for (listed, isSigned) in [
                    (both, [true, true, true]), ([both[1]], [false, false, false]), ([both[0]], [true, false, false]),
                ] {
                    #expect(
                        try await signed(MessageSigner(key: Self.key, keyID: "k", origins: listed).decision) == isSigned
                    )
                    #expect(
                        try await signed(
                            AWSSigner(region: "r", service: "s", origins: listed) { credentials }.decision) == isSigned)
                }
                // A closure of the program is asked for each, and told.
                let notary = Notary()
                try await withSession(.ephemeral, decisions: notary.decisions) {
                    try await $0.expect(first.url(), "in")
                }
                #expect(notary.asked.value.map(\.isForeign) == [false, true, true])
                #expect(notary.asked.value.map(\.authority).last == notary.asked.value.map(\.authority).first)
                #expect(notary.asked.value[1].authority == "127.0.0.1:\(second.port)")
                #expect(notary.asked.value.map(\.cause) == [.first, .redirect, .redirect])
            }
        }
    }

    // MARK: What it may add

    @Test(
        "fields that frame, route or change the message are refused, and those that are there",
        arguments: [
            "Host", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade",
            "Proxy-Authorization", "Proxy-Connection", ":authority", "Expect", "Range", "Cookie", "Accept-Encoding",
            "Content-Type", "X-Own", "User-Agent",
        ])
    func refusedFields(_ name: String) async throws {
        var decisions = Decisions()
        decisions.sign = Decision { _ in RequestSignature(headers: [FieldName(name): "x"]) }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            try await withSession(.ephemeral, decisions: decisions) { session in
                let error = await failure(.cannotSign, .local, .preparing) {
                    try await session.data(for: Request(url: origin.url(), headers: ["x-own": "1"]))
                }
                #expect(error?.detail?.lowercased().contains(name.lowercased()) == true)
                #expect(origin.counts.requests == 0)
                await expectEmpty(session)
            }
        }
    }

    @Test("a line end in a value is refused, and nothing is sent") func injection() async throws {
        var decisions = Decisions()
        decisions.sign = Decision { _ in RequestSignature(headers: ["Proof": "a\r\nHost: evil"]) }
        try await withHTTPTestServer { origin in
            await expectFailure(.malformedFieldValue) {
                try await withSession(.ephemeral, decisions: decisions) { try await $0.data(from: origin.url()) }
            }
            #expect(origin.counts.requests == 0)
        }
        try await withHTTP2TestServer { server in
            await expectFailure(.malformedFieldValue) {
                try await withSession(.http2, decisions: decisions) { try await $0.data(from: server.url()) }
            }
            #expect(server.counts.requests == 0)
        }
    }

    @Test("no other Authorization stands beside a signature with one") func authorization() async throws {
        let credentials = AWSCredentials(accessKey: "a", secretKey: "s3cret")
        var decisions = Decisions()
        decisions.sign = AWSSigner(credentials: credentials, region: "r", service: "s").decision
        let log = Watched<[String]>([])
        decisions.challenge = Decision { challenge in
            log.append("\(challenge.protectionSpace.method)")
            return .use(Credential(user: "ada", password: "pw"))
        }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .status(
                    .unauthorized, headers: [.wwwAuthenticate: "Basic realm=r"], body: .bytes(Array("refused".utf8)))
            }
            try await withSession(.ephemeral, decisions: decisions) { session in
                // A refused signature is the result; no password follows it.
                let (data, response) = try await session.data(from: origin.url())
                #expect(response.status == .unauthorized && data == Data("refused".utf8) && log.value.isEmpty)
                #expect(origin.counts.requests == 1)
                var request = Request(url: origin.url())
                try request.authorize(.bearer("own"))
                await expectFailure(.cannotSign, .local) { try await session.data(for: request) }
                #expect(origin.counts.requests == 1)
            }
            var configuration = Configuration.ephemeral
            configuration.authentication.bearer = try BearerTokens(for: [origin.url().absoluteString], token: "t")
            try await withSession(configuration, decisions: decisions) { session in
                await expectFailure(.cannotSign, .local) { try await session.data(from: origin.url()) }
            }
        }
    }

    @Test("query items are appended to the target, and not to the URL of the response") func query() async throws {
        var decisions = Decisions()
        decisions.sign = Decision { _ in
            RequestSignature(queryItems: [
                URLQueryItem(name: "sig n", value: "a+b/c&=ü"), URLQueryItem(name: "x", value: nil),
            ])
        }
        let query = "sig%20n=a%2Bb%2Fc%26%3D%C3%BC&x"
        try await withHTTPTestServer { origin in
            origin.route("/*") { $0.path == "/to" ? .redirect("there?y=1") : .ok($0.target) }
            try await withSession(.ephemeral, decisions: decisions) { session in
                for (path, target) in [
                    ("/a", "/a?"), ("/a?", "/a?"), ("/a?b=1", "/a?b=1&"), ("/a?b=1#c?d", "/a?b=1&"),
                    ("/to", "/there?y=1&"),
                ] {
                    let (data, response) = try await session.data(from: origin.url(path))
                    #expect(String(decoding: data, as: UTF8.self) == target + query)
                    #expect(!response.url.absoluteString.contains("sig"))
                }
            }
        }
        try await withHTTP2TestServer { server in
            server.route("/*") { .ok($0.target) }
            try await withSession(.http2, decisions: decisions) { session in
                let (data, response) = try await session.data(from: server.url("/a?b"))
                #expect(String(decoding: data, as: UTF8.self) == "/a?b&\(query)" && response.url == server.url("/a?b"))
            }
        }
    }

    // MARK: Other ways

    @Test("a proxy that forwards gets the signature too; its own credentials are not seen") func proxy() async throws {
        let notary = Notary()
        try await withHTTPTestServer { origin in
            origin.route("/a") { _ in .ok("here") }
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                let (configuration, _) = ProxyRows.client(.fixed([try proxy.address(user: "u", password: "pw")]))
                try await withSession(configuration, decisions: notary.decisions) { session in
                    try await session.expect(url("http://origin.test:\(origin.port)/a?b"), "here")
                }
                let question = try #require(notary.asked.value.first)
                #expect(question.target == "/a?b" && question.authority == "origin.test:\(origin.port)")
                #expect(!question.headers.contains(.proxyAuthorization))
                #expect(proxy.requests.first?.headers["Proof"] == "1" && Self.proofs(origin.requests) == ["1"])
            }
        }
    }

    @Test("a WebSocket's opening is signed, over HTTP/1.1 and HTTP/2") func webSocket() async throws {
        let notary = Notary()
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            try await withSession(.ephemeral, decisions: notary.decisions) { session in
                let socket = session.webSocketTask(origin.url("/")).resumed()
                try await socket.expectEcho(.text("a"))
                socket.cancel()
            }
            #expect(Self.proofs(origin.requests) == ["1"])
        }
        let question = try #require(notary.asked.value.first)
        #expect(question.method == .get && !question.headers.contains(.secWebSocketKey))
        #expect(!question.headers.contains(.upgrade) && question.headers.contains(.secWebSocketVersion))
        var settings = HTTP2TestServer.Configuration()
        settings.settings.append(.enableConnectProtocol(1))
        try await withHTTP2TestServer(settings) { server in
            server.webSocket("/", .echo)
            try await withSession(.http2, decisions: notary.decisions) { session in
                let socket = session.webSocketTask(server.url("/")).resumed()
                try await socket.expectEcho(.text("a"))
                socket.cancel()
            }
            #expect(Self.proofs(server.requests) == ["2"] && notary.asked.value.last?.method == .connect)
        }
    }

    @Test("a proxy's challenge leads to a new signature, and one of NTLM ends the load") func laterChallenges()
        async throws
    {
        let notary = Notary()
        var decisions = notary.decisions
        decisions.challenge = Decision { challenge in
            challenge.protectionSpace.isProxy ? .use(Credential(user: "u", password: "pw")) : .use(NTLMRows.ada)
        }
        try await withHTTPTestServer { origin in
            origin.route("/a") { _ in .ok("here") }
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                let (configuration, _) = ProxyRows.client(.fixed([try proxy.address()]))
                try await withSession(configuration, decisions: decisions) { session in
                    try await session.expect(url("http://origin.test:\(origin.port)/a"), "here")
                }
                #expect(
                    proxy.requests.map { $0.headers["Proof"] } == ["1", "2"] && Self.proofs(origin.requests) == ["2"])
            }
        }
        let gate = NTLMGate()
        try await withHTTPTestServer { origin in
            origin.route("/*") { gate.answer($0) }
            try await withSession(.ephemeral, decisions: decisions) { session in
                await expectFailure(.cannotSign, .local) { try await session.data(from: origin.url()) }
                await expectEmpty(session)
            }
            // No message of NTLM carries a signature.
            #expect(origin.requests.map { $0.headers[.authorization] } == [nil])
        }
    }

    @Test("a range is seen, and a download is signed") func range() async throws {
        let notary = Notary()
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("12345") }
            try await withSession(.ephemeral, decisions: notary.decisions) { session in
                _ = try await session.data(for: Request(url: origin.url(), headers: [.range: "bytes=0-1"]))
                let place = FileManager.default.temporaryDirectory.appending(path: "urlloading-\(UUID())")
                defer { try? FileManager.default.removeItem(at: place) }
                _ = try await session.download(Request(url: origin.url()), to: place)
            }
            #expect(notary.asked.value.first?.headers[.range] == "bytes=0-1")
            #expect(Self.proofs(origin.requests) == ["1", "2"])
        }
    }

    @Test("what a signed request got is stored for the same signer alone") func cache() async throws {
        let cache = ResponseCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        var configuration = Configuration.ephemeral
        configuration.caching.store = cache
        try await withHTTPTestServer { origin in
            let counter = Counter()
            origin.route("/") { _ in .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"]) }
            let (first, second) = (Notary(), Notary())
            let session = Session(configuration, decisions: first.decisions)
            try await session.expect(origin.url(), "a1")
            // The signature is no part of the key, though each has another.
            try await session.expect(origin.url(), "a1")
            let (data, _) = try await session.data(for: Request(url: origin.url()), decisions: second.decisions)
            #expect(data == Data("a2".utf8))
            try await withSession(configuration) { try await $0.expect(origin.url(), "a3") }
            session.invalidateAndCancel()
        }
    }

    @Test("fields that a caller has signed with do not follow a redirect to another origin, nor digests a removed body")
    func callersFields() async throws {
        let own: [FieldName] = [.signature, .signatureInput, "X-Amz-Security-Token"]
        let digests: [FieldName] = [.contentDigest, .reprDigest]
        func has(_ request: HTTPTestServer.RecordedRequest?, _ names: [FieldName]) -> [Bool] {
            names.map { request?.headers.contains($0) == true }
        }
        try await withHTTPTestServer { first in
            try await withHTTPTestServer { second in
                second.route("/") { _ in .ok("in") }
                first.route("/there") { _ in .redirect(second.url().absoluteString, status: .temporaryRedirect) }
                first.route("/here") { _ in .redirect("/", status: .temporaryRedirect) }
                first.route("/see") { _ in .redirect("/", status: .seeOther) }
                first.route("/") { _ in .ok("in") }
                try await withSession(.ephemeral) { session in
                    for path in ["/here", "/there", "/see"] {
                        var request = Request(url: first.url(path), method: .put, body: .data(Data("x".utf8)))
                        for name in own { request.headers[name] = "x" }
                        for name in digests { request.headers[name] = "md5=:AA==:" }
                        try await session.expect(request, "in")
                        let last = path == "/there" ? second.requests.last : first.requests.last
                        #expect(has(last, own) == own.map { _ in path != "/there" })
                        #expect(has(last, digests) == digests.map { _ in path != "/see" })
                    }
                }
            }
        }
    }

    @Test("a server that a redirect has led to does not choose the place of an upload at the caller's") func uploads()
        throws
    {
        let request = Request(url: try url("https://a.test/up"), method: .put)
        let place = "https://a.test/other"
        #expect(request.uploadPlace(place, from: try url("https://a.test/b"))?.absoluteString == place)
        #expect(request.uploadPlace(place, from: try url("https://b.test/")) == nil)
        let exchange = UploadExchange(creating: request, 0..<1)
        for text in ["https://a.test/b", "https://b.test/c", "https://a.test/d"] {
            exchange.note(
                Redirect(
                    response: Response(url: request.url), request: Request(url: try url(text), method: .put), count: 0))
        }
        #expect(exchange.url.absoluteString == "https://b.test/c")
    }

    @Test("a server verifies what the signer signed", arguments: [false, true]) func verified(_ isHTTP2: Bool)
        async throws
    {
        let usual = ["@method", "@target-uri"]
        func check(_ base: URL, _ configuration: Configuration, _ last: () -> HTTPTestServer.RecordedRequest?)
            async throws
        {
            var decisions = Decisions()
            decisions.sign = try MessageSigner(key: Self.key, keyID: "k").decision
            try await withSession(configuration, decisions: decisions) { session in
                try await session.expect(try url("\(base)a?b=c"), "in")
                try Self.expect(last(), covering: usual)
                try await session.expect(Request(url: base, method: .put, body: .data(Data("x".utf8))), "in")
                try Self.expect(last(), covering: usual + ["content-type", "content-digest"])
                #expect(last()?.headers[.contentDigest] == "sha-256=:LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=:")
                // A sequence has no digest, and its content is not covered.
                let sequence = RequestBody.stream { AsyncStream<[UInt8]> { $0.finish() } }
                var request = Request(url: base, method: .put, body: sequence)
                try request.authorize(.bearer("t"))
                try await session.expect(request, "in")
                try Self.expect(last(), covering: usual + ["authorization"])
            }
        }
        if isHTTP2 {
            try await withHTTP2TestServer { server in
                server.route("/*") { _ in .ok("in") }
                try await check(server.url(), .http2) { server.requests.last }
            }
        } else {
            try await withHTTPTestServer { origin in
                origin.route("/*") { _ in .ok("in") }
                try await check(origin.url(), .ephemeral) { origin.requests.last }
            }
        }
    }

    @Test("an upload that is signed chunk by chunk continues the signature of each sending", arguments: [3000, 20_000])
    func streaming(_ piece: Int) async throws {
        let content = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let signer = AWSSigner(
            credentials: AWSCredentials(accessKey: "AK", secretKey: "s3cret"), region: "r", service: "s3")
        try await withHTTPTestServer { origin in
            origin.route("/") { [weak origin] _ in
                origin?.requests.count == 1 ? .redirect("/", status: .temporaryRedirect) : .ok("in")
            }
            let upload = signer.streaming(
                Request(url: origin.url(), method: .put), length: Int64(content.count), chunkSize: 8192
            ) {
                AsyncStream<[UInt8]> { sequence in
                    for start in stride(from: 0, to: content.count, by: piece) {
                        sequence.yield(Array(content[start..<min(start + piece, content.count)]))
                    }
                    sequence.finish()
                }
            }
            try await withSession(.ephemeral) { session in
                let (data, _) = try await session.data(for: upload.request, decisions: upload.decisions)
                #expect(data == Data("in".utf8))
                await expectFailure(.requestBodyFailed) { try await session.data(for: upload.request) }
            }
            for request in origin.requests.prefix(2) {
                #expect(request.headers[.contentEncoding] == "aws-chunked")
                #expect(request.headers["X-Amz-Decoded-Content-Length"] == "20000")
                #expect(request.headers["X-Amz-Content-SHA256"] == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
                let seed = try #require(request.headers[.authorization]?.split(separator: "Signature=").last)
                let time = try #require(request.headers["X-Amz-Date"])
                var key = Array("AWS4s3cret".utf8)
                for part in [String(time.prefix(8)), "r", "s3", "aws4_request"] {
                    key = try #require(MessageKey.hmac(key, Array(part.utf8)))
                }
                let chain = AWSChunkChain(
                    algorithm: "AWS4-HMAC-SHA256", time: time, scope: "\(time.prefix(8))/r/s3/aws4_request", key: key,
                    previous: String(seed))
                let writer = AWSChunkWriter(AWSChunkForm(signer, chunkSize: 8192, nil), chain)
                let expected =
                    try writer.encode(Array(content[..<8192])) + writer.encode(Array(content[8192..<16384]))
                    + writer.encode(Array(content[16384...])) + writer.encode([])
                #expect(Array(request.body) == expected)
            }
        }
    }

    @Test(
        "an upload has a checksum as its trailer, signed or not", arguments: [true, false], AWSSigner.Checksum.allCases)
    func checksums(isSigned: Bool, _ checksum: AWSSigner.Checksum) async throws {
        var signer = AWSSigner(
            credentials: AWSCredentials(accessKey: "AK", secretKey: "s3cret"), region: "r", service: "s3")
        if !isSigned { signer.payload = .unsigned }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            let upload = signer.streaming(Request(url: origin.url(), method: .put), length: 5, checksum: checksum) {
                AsyncStream<[UInt8]> { sequence in
                    sequence.yield(Array("hello".utf8))
                    sequence.finish()
                }
            }
            try await withSession(.ephemeral) { session in
                _ = try await session.data(for: upload.request, decisions: upload.decisions)
            }
            let request = try #require(origin.requests.first)
            let name = "x-amz-checksum-\(checksum.rawValue)"
            // Of `hello`, as other tools print them.
            let value =
                switch checksum {
                case .crc32: "NhCmhg=="
                case .crc32c: "mnG7TA=="
                case .crc64NVME: "M3eFcAZSQlc="
                case .sha1: "qvTGHdzF6KLavt4PO0gs2a6pQ00="
                case .sha256: "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="
                }
            #expect(request.headers["X-Amz-Trailer"] == name)
            #expect(request.headers[.authorization]?.contains("x-amz-trailer") == true)
            #expect(
                request.headers["X-Amz-Content-SHA256"]
                    == "STREAMING-\(isSigned ? "AWS4-HMAC-SHA256" : "UNSIGNED")-PAYLOAD-TRAILER")
            let text = String(decoding: request.body, as: UTF8.self)
            if isSigned {
                #expect(text.contains("\r\n0;chunk-signature=") && text.contains("\r\n\(name):\(value)\r\n"))
                #expect(text.split(separator: "\r\n").last?.hasPrefix("x-amz-trailer-signature:") == true)
                #expect(text.hasSuffix("\r\n\r\n"))
            } else {
                #expect(text == "5\r\nhello\r\n0\r\n\(name):\(value)\r\n\r\n")
            }
        }
    }

    @Test("the SHA-256 of a body is stated as a checksum if the signer is asked to") func statedChecksum() async throws
    {
        var signer = AWSSigner(
            credentials: AWSCredentials(accessKey: "AK", secretKey: "s3cret"), region: "r", service: "s3")
        signer.statesChecksum = true
        try await withHTTPTestServer(answering: "in") { origin in
            var decisions = Decisions()
            decisions.sign = signer.decision
            try await withSession(.ephemeral) { session in
                let put = Request(url: origin.url(), method: .put, body: .data(Data("hello".utf8)))
                _ = try await session.data(for: put, decisions: decisions)
                _ = try await session.data(for: Request(url: origin.url()), decisions: decisions)
            }
            let fields = origin.requests.map { $0.headers["X-Amz-Checksum-SHA256"] }
            #expect(fields == ["LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=", nil])
            #expect(origin.requests.first?.headers[.authorization]?.contains("x-amz-checksum-sha256") == true)
        }
    }

    @Test("a background session refuses the decision in words") func background() throws {
        #expect(BackgroundCrossing.problem(Notary().decisions)?.hasPrefix("Decisions.sign is a closure") == true)
    }

    @Test("credentials of a profile, and what is missing") func profiles() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url("credentials")
        let key = "aws_access_key_id=AK\naws_secret_access_key=s3cret\n"
        let others = ["role_arn", "sso_session", "credential_process", "web_identity_token_file", "source_profile"]
        try Data(
            ("[a]\n\(key)aws_session_token=t\n[b]\n[default]\n\(key)"
                + others.map { "[\($0)]\n\(key)\($0) = x\n" }.joined()).utf8
        ).write(to: file)
        let found = try await AWSCredentials.profile("a", file: file)
        #expect(found == AWSCredentials(accessKey: "AK", secretKey: "s3cret", sessionToken: "t"))
        for (name, place) in [("b", file), ("c", file), ("a", file.appending(path: "none")), ("a", folder.url("."))] {
            await expectFailure(.noCredentials) { try await AWSCredentials.profile(name, file: place) }
        }
        for (place, words) in [
            (file.appending(path: "none"), "cannot be read: Not a directory"),
            (folder.url("."), "is no regular file, or"),
        ] {
            let error = await failure(.noCredentials) { try await AWSCredentials.profile("a", file: place) }
            #expect(error?.detail?.contains(words) == true, "\(String(describing: error))")
        }
        // A key beside a role would be another identity than the profile's.
        for name in others {
            let error = await failure(.noCredentials) { try await AWSCredentials.profile(name, file: file) }
            #expect(error?.detail?.contains("has \(name), which is not supported") == true)
        }
        let large = folder.url("large")
        try Data(repeating: UInt8(ascii: "\n"), count: 1 << 20 + 1).write(to: large)
        await expectFailure(.noCredentials) { try await AWSCredentials.profile("a", file: large) }
        // A file server that is away holds up no task that was cancelled.
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await expectFailure(.cancelled) { try await AWSCredentials.profile("a", file: large) }
        }.value
    }

    @Test("credentials of the environment: half a key is refused, and an empty variable is none") func environment()
        async throws
    {
        let folder = try TemporaryFolder()
        try Data("[default]\naws_access_key_id=FILE\naws_secret_access_key=s3cret\n".utf8)
            .write(to: folder.url("credentials"))
        func find(_ values: [String: String]) async throws -> String {
            var values = values
            values["HOME"] = folder.url(".").path(percentEncoded: false)
            values["AWS_SHARED_CREDENTIALS_FILE"] = "~/credentials"
            return try await AWSCredentials.find(AWSEnvironment { [values] in values[$0] }).accessKey
        }
        #expect(try await find(["AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "s3cret"]) == "AK")
        #expect(try await find([:]) == "FILE")
        #expect(
            try await find(["AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": ""]) == "FILE")
        for half in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
            await expectFailure(.noCredentials, .local, .preparing, "\(half)") { try await find([half: "s3cret"]) }
        }
        #expect(AWSEnvironment { ["HOME": "/h", "AWS_SHARED_CREDENTIALS_FILE": ""][$0] }.file == "/h/.aws/credentials")
    }

    @Test("neither keys nor signatures are in descriptions") func secrets() async throws {
        let credentials = AWSCredentials(accessKey: "AK", secretKey: "s3cret", sessionToken: "s3cret")
        let aws = AWSSigner(credentials: credentials, region: "r", service: "s3")
        let line = SigningRequest.Line(
            method: .get, url: try url("http://a:s3cret@b/?token=s3cret"), authority: "b", target: "/?token=s3cret")
        let request = SigningRequest(line, headers: [.authorization: "Bearer s3cret"], date: .now)
        for value in [
            Self.key, try MessageSigner(key: Self.key, keyID: "k"),
            MessageVerifier(keys: ["k": Self.key], covering: []),
            credentials, aws,
            RequestSignature(headers: ["Proof": "s3cret"], queryItems: [.init(name: "a", value: "s3cret")]),
            request,
        ] as [any Sendable] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in [dumped, String(describing: value), String(reflecting: value)] {
                #expect(!text.contains("s3cret"), "\(text)")
                #expect(!text.contains("115, 51"), "\(text)")
            }
        }
    }
}

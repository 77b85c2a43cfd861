// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Digest in both directions: the server's Authentication-Info (RFC 7616 §3.5), and bodies hashed before they are sent
/// (auth-int).
@Suite(.timeLimit(.minutes(4))) struct DigestProofRows {
    private static func h(_ text: String) -> String { DigestHash.sha256.hex(Array(text.utf8)) ?? "" }

    /// The fields of a server that knows this password; implemented independently of the client.
    private static func proof(_ request: HTTPTestServer.RecordedRequest, password: String = "s3cret") -> String? {
        guard let field = request.headers[.authorization], let said = AuthenticationChallenge.parse([field]).first,
            let nonce = said["nonce"], let cnonce = said["cnonce"], let count = said["nc"], let uri = said["uri"]
        else { return nil }
        let response = h("\(h("ada:zone:\(password)")):\(nonce):\(count):\(cnonce):auth:\(h(":" + uri))")
        return "rspauth=\"\(response)\", qop=auth, nc=\(count), cnonce=\"\(cnonce)\""
    }

    private func withProof(
        _ change: @escaping @Sendable (String) -> String, _ use: (HTTPTestServer, Session) async throws -> Void
    ) async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth")])
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                var answer = gate.answer(request)
                if answer.status == .ok, let proof = Self.proof(request) {
                    answer.headers.append(.authenticationInfo, change(proof))
                }
                return answer
            }
            let session = Session(
                .ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
            try await use(origin, session)
            await expectEmpty(session)
        }
    }

    @Test func `a server's correct Authentication-Info is accepted`() async throws {
        for change: @Sendable (String) -> String in [
            { $0 }, { $0.replacing("qop=auth, ", with: "") }, { $0 + ", nextnonce=\"n0\"" },
            { _ in "nextnonce=\"n0\"" },
        ] {
            try await withProof(change) { origin, session in
                for _ in 0..<2 { try await session.expect(origin.url("/a?b=c"), "in") }
            }
        }
    }

    @Test func `a wrong Authentication-Info, or one for another request, fails the load`() async throws {
        for change: @Sendable (String) -> String in [
            { $0.replacing("rspauth=\"", with: "rspauth=\"0") }, { $0.replacing("nc=00000001", with: "nc=00000002") },
            { $0.replacing("qop=auth", with: "qop=none") }, { $0.replacing("cnonce=\"", with: "cnonce=\"x") },
            { _ in "rspauth=\"\"" },
        ] {
            try await withProof(change) { origin, session in
                await expectFailure(.authenticationFailed, .remote) { try await session.data(from: origin.url()) }
            }
        }
    }

    @Test func `auth-int hashes files before sending them`() async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth-int")])
        let path = FileManager.default.temporaryDirectory.path + "/urlloading-\(UUID())"
        try Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        var setup = HTTPTestServer.Configuration()
        setup.recordedBodySize = 1 << 20
        try await withHTTPTestServer(setup) { origin in
            origin.route("/*") { gate.answer($0) }
            let session = Session(
                .ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
            for body in [RequestBody.file(URL(filePath: path)), .file(URL(filePath: path), range: 3..<500_000)] {
                try await session.expect(Request(url: origin.url(), method: .put, body: body), "in")
            }
            #expect(gate.seen.last?.contains("qop=auth-int") == true && origin.requests.last?.bodyCount == 499_997)
            await expectEmpty(session)
        }
        #expect(gate.faults == [])
    }

    @Test func `auth-int requests a stream a second time, to hash it first`() async throws {
        for protection in ["auth-int", "auth-int, auth"] {
            let gate = Gate([.digest("SHA-256", qop: protection)])
            try await withGate(gate) { origin in
                let session = Session(
                    .ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
                let made = Lock(0)
                let body = RequestBody.stream {
                    made.withLock { $0 += 1 }
                    return AsyncStream<[UInt8]> { stream in
                        for piece in ["one", "two"] { stream.yield(Array(piece.utf8)) }
                        stream.finish()
                    }
                }
                try await session.expect(Request(url: origin.url(), method: .put, body: body), "in")
                #expect(
                    origin.requests.last?.bodyCount == 6 && made.withLock { $0 } == (protection == "auth-int" ? 3 : 2))
                await expectEmpty(session)
            }
            #expect(gate.faults == [])
        }
    }

    @Test func `auth-int with a stream that fails or never ends: the load ends`() async throws {
        struct Broken: Error {}
        let gate = Gate([.digest("SHA-256", qop: "auth-int")])
        try await withGate(gate) { origin in
            let session = Session(
                .ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
            let made = Lock(0)
            let isHashing = Latch()
            let body = { (isEndless: Bool) in
                RequestBody.stream { () -> AsyncThrowingStream<[UInt8], any Error> in
                    let count = made.withLock { made in
                        made += 1
                        return made
                    }
                    return AsyncThrowingStream { stream in
                        if count == 1 { return stream.finish() }
                        if !isEndless { return stream.finish(throwing: Broken()) }
                        isHashing.open()
                    }
                }
            }
            // A body that cannot be hashed is not sent.
            let broken = await failure(.requestBodyFailed) {
                try await session.data(for: Request(url: origin.url(), method: .put, body: body(false)))
            }
            #expect(broken?.underlying is Broken)
            made.withLock { $0 = 0 }
            let load = Task { try await session.data(for: Request(url: origin.url(), method: .put, body: body(true))) }
            await isHashing.wait()
            load.cancel()
            await expectFailure(.cancelled) { try await load.value }
            await expectEmpty(session)
        }
    }

    @Test func `auth-int alone, with every kind of body from a decision, requests each body twice`() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/urlloading-\(UUID())"
        try Data("from a file".utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let bodies: [@Sendable () -> RequestBody] = [
            { .data(Data("from memory".utf8)) }, { .file(URL(filePath: path)) },
            {
                let pieces = AsyncStream<[UInt8]> { stream in
                    stream.yield(Array("from a sequence".utf8))
                    stream.finish()
                }
                return .stream { pieces }
            },
        ]
        for (index, body) in bodies.enumerated() {
            let gate = Gate([.digest("SHA-256", qop: "auth-int")])
            try await withGate(gate) { origin in
                let count = Lock(0)
                var decisions = Decisions.challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) }
                decisions.bodyProvider = Decision { _ in
                    count.withLock { $0 += 1 }
                    return body()
                }
                let session = Session(.ephemeral, decisions: decisions)
                try await session.expect(Request(url: origin.url(), method: .put, body: .provided), "in")
                #expect(count.withLock { $0 } == (index == 2 ? 3 : 2) && origin.requests.last?.bodyCount ?? 0 > 0)
                await expectEmpty(session)
            }
            #expect(gate.faults == [])
        }
    }

    /// An origin in the role of the proxy.
    @Test func `auth-int works at a proxy with every kind of body`() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/urlloading-\(UUID())"
        try Data("from a file".utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let gate = Gate([.digest("SHA-256", qop: "auth-int")], field: .proxyAuthorization)
        try await withHTTPTestServer { proxy in
            proxy.route("*") { gate.answerAsProxy($0) }
            let (configuration, _) = ProxyRows.client(.fixed([try Proxy("http://ada:s3cret@127.0.0.1:\(proxy.port)")]))
            var decisions = Decisions()
            decisions.bodyProvider = Decision { _ in
                let pieces = AsyncStream<[UInt8]> { stream in
                    stream.yield(Array("demanded".utf8))
                    stream.finish()
                }
                return .stream { pieces }
            }
            let session = Session(configuration, decisions: decisions)
            let stream = RequestBody.stream {
                AsyncStream<[UInt8]> { stream in
                    stream.yield(Array("sequence".utf8))
                    stream.finish()
                }
            }
            for body in [
                nil, RequestBody.data(Data("memory".utf8)), .file(URL(filePath: path)),
                .file(URL(filePath: path), range: 2..<5), stream, .provided,
            ] {
                try await session.expect(
                    Request(url: try url("http://origin.test/a?b"), method: body == nil ? .get : .put, body: body), "in"
                )
            }
            #expect(gate.seen.last?.contains("qop=auth-int") == true)
            await expectEmpty(session)
        }
        #expect(gate.faults == [])
    }

    // MARK: The server's proof of a body

    /// The hash covers the response's body as transmitted.
    private static func proof(_ request: HTTPTestServer.RecordedRequest, _ body: String) -> String? {
        guard let field = request.headers[.authorization], let said = AuthenticationChallenge.parse([field]).first,
            let nonce = said["nonce"], let cnonce = said["cnonce"], let count = said["nc"], let uri = said["uri"]
        else { return nil }
        let response = h("\(h("ada:zone:s3cret")):\(nonce):\(count):\(cnonce):auth-int:\(h(":\(uri):\(h(body))"))")
        return "rspauth=\"\(response)\", qop=auth-int, nc=\(count), cnonce=\"\(cnonce)\""
    }

    @Test(arguments: ["in", "im"]) func `a response body that was changed in transit is detected`(
        _ body: String
    ) async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth-int")])
        let answer: @Sendable (HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response = { request in
            var answer = gate.answer(request, body)
            if answer.status == .ok, let proof = Self.proof(request, "in") {
                answer.headers.append(.authenticationInfo, proof)
            }
            return answer
        }
        try await withHTTPTestServer { origin in
            origin.route("/*", answer)
            let session = Session(
                .ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
            for _ in 0..<2 {
                if body == "in" {
                    try await session.expect(origin.url(), "in")
                } else {
                    await expectFailure(.authenticationFailed, .remote) { try await session.data(from: origin.url()) }
                }
            }
            await expectEmpty(session)
        }
    }

    // MARK: RFC 2069

    @Test func `a server without a quality of protection is answered`() async throws {
        let gate = Gate([.digest("MD5", qop: nil)])
        try await withGate(gate) { origin in
            let log = ChallengeLog()
            let session = Session(.ephemeral, decisions: .challenged(log) { _ in .use(AuthenticationRows.right) })
            try await session.expect(
                Request(url: origin.url("/a?b"), method: .post, body: .data(Data("text".utf8))), "in")
            try await session.expect(origin.url("/c"), "in")
            #expect(log.withLock { $0.count } == 1)
            #expect(
                gate.seen.dropFirst().allSatisfy {
                    !$0.contains("qop=") && !$0.contains("nc=") && !$0.contains("cnonce=")
                })
            await expectEmpty(session)
        }
    }
}

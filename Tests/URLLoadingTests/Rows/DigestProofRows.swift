import FoundationEssentials
import Synchronization
import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Digest both ways: the server's own proof (RFC 7616 §3.5), and bodies that are proved before they are sent.
@Suite(.timeLimit(.minutes(1))) struct DigestProofRows {
    private static func h(_ text: String) -> String { DigestHash.sha256.hex(Array(text.utf8)) ?? "" }

    /// What a server says that knows this password; written apart from the client's.
    private static func proof(_ request: TestOrigin.RecordedRequest, password: String = "s3cret") -> String? {
        guard let field = request.headers[.authorization], let said = AuthenticationChallenge.parse([field]).first,
            let nonce = said["nonce"], let cnonce = said["cnonce"], let count = said["nc"], let uri = said["uri"]
        else { return nil }
        let response = h("\(h("ada:zone:\(password)")):\(nonce):\(count):\(cnonce):auth:\(h(":" + uri))")
        return "rspauth=\"\(response)\", qop=auth, nc=\(count), cnonce=\"\(cnonce)\""
    }

    private func withProof(_ change: @escaping @Sendable (String) -> String, _ use: (TestOrigin, Session) async throws -> Void) async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth")])
        try await withTestOrigin { origin in
            origin.route("/*") { request in
                var answer = gate.answer(request)
                if answer.status == .ok, let proof = Self.proof(request) { answer.headers.append(.authenticationInfo, change(proof)) }
                return answer
            }
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
            try await use(origin, session)
            await expectEmpty(session)
        }
    }

    @Test func `a server that proves itself`() async throws {
        for change: @Sendable (String) -> String in [{ $0 }, { $0.replacing("qop=auth, ", with: "") }, { $0 + ", nextnonce=\"n0\"" }, { _ in "nextnonce=\"n0\"" }] {
            try await withProof(change) { origin, session in
                for _ in 0..<2 { try await session.expect(origin.url("/a?b=c"), "in") }
            }
        }
    }

    @Test func `one that does not know the password, or answers another request`() async throws {
        for change: @Sendable (String) -> String in [
            { $0.replacing("rspauth=\"", with: "rspauth=\"0") }, { $0.replacing("nc=00000001", with: "nc=00000002") },
            { $0.replacing("qop=auth", with: "qop=none") }, { $0.replacing("cnonce=\"", with: "cnonce=\"x") }, { _ in "rspauth=\"\"" },
        ] {
            try await withProof(change) { origin, session in
                await expectFailure(.authenticationFailed, .peer) { try await session.data(from: origin.url()) }
            }
        }
    }

    @Test func `auth-int: files are hashed first`() async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth-int")])
        let path = FileManager.default.temporaryDirectory.path + "/urlloading-\(UUID())"
        try Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        var setup = TestOrigin.Configuration()
        setup.recordedBodySize = 1 << 20
        try await withTestOrigin(setup) { origin in
            origin.route("/*") { gate.answer($0) }
            let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
            for body in [RequestBody.file(URL(filePath: path)), .file(URL(filePath: path), range: 3..<500_000)] {
                try await session.expect(Request(url: origin.url(), method: .put, body: body), "in")
            }
            #expect(gate.seen.last?.contains("qop=auth-int") == true && origin.requests.last?.bodyCount == 499_997)
            await expectEmpty(session)
        }
        #expect(gate.faults == [])
    }

    @Test func `auth-int alone, and a stream: said why it cannot be; with auth beside it, auth`() async throws {
        for (protection, isPossible) in [("auth-int", false), ("auth-int, auth", true)] {
            let gate = Gate([.digest("SHA-256", qop: protection)])
            try await withTestOrigin { origin in
                origin.route("/*") { gate.answer($0) }
                let session = Session(.ephemeral, decisions: .challenged(ChallengeLog()) { _ in .use(AuthenticationRows.right) })
                let request = Request(url: origin.url(), method: .put, body: .stream { AsyncStream<Chunk> { $0.finish() } })
                if isPossible { try await session.expect(request, "in") } else {
                    let error = await failure(.authenticationFailed, .local) { try await session.data(for: request) }
                    #expect(error?.detail?.contains("auth-int") == true)
                }
                // Who has nothing to say hears what the server says.
                let silent = Session(.ephemeral)
                try await silent.expect(request, "refused")
                await expectEmpty(silent)
                await expectEmpty(session)
            }
        }
    }
}

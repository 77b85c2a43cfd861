// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/signing.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct SigningGuideTests {
    private let key = SigningKey.hmacSHA256(Array("a secret of 32 bytes at the least".utf8))

    @Test("a message signature, and a verified response") func messages() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("unsigned") }
            var signer = try MessageSigner(key: key, keyID: "client-7", origins: [origin.url().absoluteString])
            signer.components = [.method, .targetURI, .field("Content-Digest"), .field("Content-Type")]
            signer.tag = "orders"
            signer.addsNonce = true
            var decisions = Decisions()
            decisions.sign = signer.decision
            let request = Request(url: origin.url(), method: .post, body: .data(Data("12345".utf8)))
            let verifier = MessageVerifier(keys: ["server-1": key], covering: [.status, .field("Content-Digest")])
            try await withSession(.ephemeral) { session in
                _ = try await session.data(for: request, decisions: decisions)
                decisions.response = Decision { response in
                    try verifier.verify(response)
                    return .allow
                }
                do throws(LoadError) {
                    _ = try await session.data(for: request, decisions: decisions)
                    Issue.record("the response is not signed")
                } catch {
                    #expect(error.reason == .decisionFailed)
                    #expect((error.underlying as? LoadError)?.reason == .badSignature)
                }
            }
            #expect(origin.requests.first?.headers["Signature-Input"]?.contains("tag=\"orders\"") == true)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("a signature of the program's own") func own() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            var decisions = Decisions()
            decisions.sign = Decision { request in
                let digest = try await request.bodyDigest(.sha256)
                return RequestSignature(headers: ["X-Proof": "\(request.target) \(digest.bytes.count)"])
            }
            try await withSession(.ephemeral, decisions: decisions) { _ = try await $0.data(from: origin.url("/?a")) }
            #expect(origin.requests.first?.headers["X-Proof"] == "/?a 32")
        }
    }
}

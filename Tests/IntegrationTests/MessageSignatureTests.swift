// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

/// HTTP Message Signatures (RFC 9421), verified and made by http-message-signatures, an independent implementation.
@Suite(
    .enabled(if: Servers.areHere, Servers.areMissing),
    .enabled(
        if: Servers.variable("SIGNATURES") != nil, "http-message-signatures is not installed: script/setup --tests"),
    .timeLimit(.minutes(4)))
struct MessageSignatureTests {
    private static func key(_ algorithm: SigningKey.Algorithm) throws -> SigningKey {
        let folder = URL(filePath: try #require(Servers.variable("SIGNATURE_KEYS")))
        let text = try Data(contentsOf: folder.appending(path: algorithm.rawValue + ".pem"))
        guard algorithm != .hmacSHA256 else { return .hmacSHA256(text) }
        return try SigningKey(pem: text, algorithm: algorithm)
    }

    private static func decisions(_ signer: MessageSigner) -> Decisions {
        var decisions = Decisions()
        decisions.sign = signer.decision
        return decisions
    }

    @Test("Requests are verified, and signed responses, with each algorithm", arguments: SigningKey.Algorithm.allCases)
    func both(_ algorithm: SigningKey.Algorithm) async throws {
        let key = try Self.key(algorithm)
        var signer = try MessageSigner(key: key, keyID: algorithm.rawValue)
        (signer.lifetime, signer.addsNonce, signer.namesAlgorithm) = (.seconds(60), true, true)
        let verifier = MessageVerifier(
            keys: [algorithm.rawValue: key], covering: [.status, .field("Content-Type"), .field("Content-Digest")])
        var decisions = Self.decisions(signer)
        decisions.response = Decision { response in
            try verifier.verify(response)
            return .allow
        }
        let session = Session(Servers.configuration, decisions: decisions)
        let target = try Servers.url("SIGNATURES", "/\(algorithm.rawValue)?a=b&c=%C3%BC")
        let (data, _) = try await session.data(from: target)
        #expect(String(decoding: data, as: UTF8.self) == "\(algorithm.rawValue) verified \"@method\" \"@target-uri\"\n")
        let post = Request(url: target, method: .post, body: .data(Data(repeating: 7, count: 100_000)))
        let (answer, _) = try await session.data(for: post)
        #expect(String(decoding: answer, as: UTF8.self).contains("\"content-digest\""))
    }

    @Test("Derived components and members of fields are the same text on both sides") func components() async throws {
        var signer = try MessageSigner(key: try Self.key(.ed25519), keyID: "ed25519")
        signer.components = [
            .method, .authority, .scheme, .path, .query, .requestTarget, .queryParameter("a"), .field("X-Two"),
        ]
        let session = Session(Servers.configuration, decisions: Self.decisions(signer))
        var request = Request(url: try Servers.url("SIGNATURES", "/ed25519?a=b%20c&d"))
        request.headers.append("X-Two", "one,  two")
        let (data, response) = try await session.data(for: request)
        #expect(response.status == .ok, "\(String(decoding: data, as: UTF8.self))")
    }

    @Test("A signature with another key is refused", arguments: SigningKey.Algorithm.allCases)
    func refused(_ algorithm: SigningKey.Algorithm) async throws {
        let other = try SigningKey.generate(algorithm == .ecdsaP256 ? .ecdsaP256 : .ed25519)
        let signer = try MessageSigner(key: other, keyID: algorithm.rawValue)
        let session = Session(Servers.configuration, decisions: Self.decisions(signer))
        let (_, response) = try await session.data(from: try Servers.url("SIGNATURES", "/\(algorithm.rawValue)"))
        #expect(response.status == .unauthorized)
    }
}

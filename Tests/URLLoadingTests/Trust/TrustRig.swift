// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

/// An origin, a client that does not trust it, and the recorded challenges.
struct TrustRig {
    let authority: TestCertificateAuthority
    let identity: TestIdentity
    let origin: HTTPTestServer
    /// Trusts no certificate of the tests.
    let strict: Configuration
    /// Trusts the authority.
    let trusting: Configuration
    let asked = Asked()

    var leaf: Certificate {
        get throws { try #require(Certificate(pem: identity.certificatePEM)) }
    }

    /// A decision that records every challenge and answers server trust as configured.
    func decision(
        timeout deadline: Duration? = nil, fallback: ChallengeDecision? = nil,
        _ answer: @escaping @Sendable (ServerTrust) async throws -> ChallengeDecision
    ) -> Decisions {
        let asked = asked
        var decisions = Decisions()
        decisions.challenge = Decision(timeout: deadline, fallback: fallback) { challenge in
            guard let trust = challenge.serverTrust else { return .performDefaultHandling }
            asked.add(challenge)
            return try await answer(trust)
        }
        return decisions
    }

    var accepting: Decisions { decision { .accept($0) } }
}

/// The challenges that were put.
final class Asked: Sendable {
    private let challenges = Lock<[Challenge]>([])
    func add(_ challenge: Challenge) { challenges.withLock { $0.append(challenge) } }
    var all: [Challenge] { challenges.withLock { $0 } }
    var trusts: [ServerTrust] { all.compactMap(\.serverTrust) }
}

extension Certificate {
    /// The first of a text.
    init?(pem: [UInt8]) {
        let text = String(decoding: pem, as: UTF8.self)
        let lines = text.split(separator: "\n").drop { !$0.hasPrefix("-----BEGIN CERT") }.dropFirst().prefix {
            !$0.hasPrefix("-----")
        }
        guard let der = Data(base64Encoded: lines.joined()) else { return nil }
        self.init(der: der)
    }
}

nonisolated(nonsending) func withTrust<R>(
    _ options: TestCertificateOptions = .init(), name: String? = nil,
    through intermediate: (TestCertificateAuthority) throws -> TestCertificateAuthority = { $0 },
    server: (inout HTTPTestServer.TLS, TestCertificateAuthority, TestIdentity) throws -> Void = { _, _, _ in },
    _ use: nonisolated(nonsending) (TrustRig) async throws -> R
) async throws -> R {
    let authority = try TestCertificateAuthority(commonName: "Test root")
    let issuer = try intermediate(authority)
    let identity = try issuer.issue(options)
    var tls = HTTPTestServer.TLS(identity)
    try server(&tls, issuer, identity)
    var strict = Configuration.ephemeral
    strict.tls.trustRoots = .pem(
        String(decoding: try TestCertificateAuthority(commonName: "Another root").pem, as: UTF8.self))
    strict.networks.resolver = RecordingResolver()
    var trusting = strict
    trusting.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
    var configuration = HTTPTestServer.Configuration(tls: tls)
    configuration.name = name
    return try await withHTTPTestServer(configuration) { origin in
        origin.route("/") { request in
            .ok(request.tls?.clientSubject ?? (request.tls?.isResumed == true ? "resumed" : "full"))
        }
        return try await use(
            TrustRig(
                authority: authority, identity: identity, origin: origin, strict: strict, trusting: trusting))
    }
}

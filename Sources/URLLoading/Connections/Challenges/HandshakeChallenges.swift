// SPDX-License-Identifier: Apache-2.0

// In this folder: what a connection asks its load: questions of TLS handshakes become challenges, logins of
//     connections, proofs

// Turns the questions of a TLS handshake into challenges, and answers them by the decision.

import URLLoadingIO

struct HandshakeChallenges {
    let transport: TLSTransport
    let peer: TLSPeer
    let client: any ConnectionClient
    var scheme = "https"

    func answer(_ question: TLSQuestion, _ asking: HandshakeDecision?) async throws(LoadError) {
        guard let asking else {
            throw LoadError(
                .certificateRefused, phase: .securing, party: .local, detail: "no challenge decision is set")
        }
        switch question {
        case .trust(let found): try await trust(found, asking)
        case .identity(let issuers): try await identify(issuers, asking)
        // The handshake's own loop answers it (`SecureContext`).
        case .issuer: transport.answer(issuers: .none("it is not fetched here"))
        }
    }

    private func trust(_ found: TLSTrust, _ asking: HandshakeDecision) async throws(LoadError) {
        let trust = ServerTrust(found)
        var challenge = Challenge(protectionSpace: space(.serverTrust))
        challenge.serverTrust = trust
        client.challenged(challenge)
        switch try await client.ask(asking.decision, challenge) {
        case .accept(trust):
            if !trust.isTrusted, peer.role != .proxy, await client.forbidsTrust(in: trust.host) {
                throw strictRefusal(found)
            }
            client.trusted(found, peer)
            transport.answer(trusts: true, isForced: !trust.isTrusted)
        // A password is no answer to a question about trust: default handling.
        case .performDefaultHandling, .use:
            guard trust.isTrusted || !trust.isResumed else { throw refusal(found) }
            if trust.isTrusted { client.trusted(found, peer) }
            transport.answer(trusts: trust.isTrusted)
        case .rejectProtectionSpace, .continueWithoutCredential:
            throw LoadError(
                .certificateRefused, phase: .securing, party: .local, detail: trust.host,
                underlying: TrustFailure(trust: trust))
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        case .accept: throw .badAnswer("the answer accepts the trust of another challenge")
        case .present: throw .badAnswer("an identity cannot answer a server trust challenge")
        }
    }

    /// The error for a server with HSTS whose certificate is not trusted: no decision may override that (RFC 6797
    /// §8.4).
    private func strictRefusal(_ found: TLSTrust) -> LoadError {
        let trust = ServerTrust(found)
        return LoadError(
            .strictTransportSecurity, phase: .securing, party: .local, detail: "\(trust); HSTS allows no decision",
            underlying: TrustFailure(trust: trust))
    }

    /// The error with which the first, not resumed, handshake would have failed.
    private func refusal(_ found: TLSTrust) -> LoadError {
        let first = found.failures.first
        let failure = TLSFailure(
            first?.kind ?? .refused, name: found.name, detail: first?.words ?? "", chain: found.shown.map(\.der),
            trust: found)
        return LoadError(IOFailure(.tls(failure), .handshake))
    }

    private func identify(_ issuers: [[UInt8]], _ asking: HandshakeDecision) async throws(LoadError) {
        let proposed = transport.proposedIdentity
        var challenge = Challenge(protectionSpace: space(.clientCertificate))
        challenge.clientCertificate = ClientCertificateRequest(
            issuers: issuers, proposed: proposed.map { ClientIdentity($0) })
        client.challenged(challenge)
        switch try await client.ask(asking.decision, challenge) {
        case .present(let identity): transport.answer(identity: identity.identity)
        case .performDefaultHandling, .use: transport.answer(identity: proposed)
        // The server may accept a client without a certificate.
        case .rejectProtectionSpace, .continueWithoutCredential: transport.answer(identity: nil)
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        case .accept: throw .badAnswer("acceptance cannot answer a client certificate challenge")
        }
    }

    private func space(_ method: Challenge.Method) -> ProtectionSpace {
        ProtectionSpace(
            host: peer.name.description, port: Int(peer.port), scheme: scheme, method: method,
            isProxy: peer.role == .proxy)
    }
}

extension LoadError {
    fileprivate static func badAnswer(_ words: String) -> LoadError {
        LoadError(.badDecision, phase: .deciding, party: .local, detail: words)
    }
}

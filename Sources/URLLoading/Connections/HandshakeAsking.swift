// The questions of a handshake, as challenges, and the answers to them.

import URLLoadingIO

struct HandshakeAsking {
    let transport: TLSTransport
    let peer: TLSPeer
    let client: any ConnectionClient
    var scheme = "https"

    func answer(_ question: TLSQuestion, _ asking: HandshakeDecision?) async throws(LoadError) {
        guard let asking else {
            throw LoadError(.certificateRefused, phase: .securing, party: .local, detail: "nobody to decide")
        }
        switch question {
        case .trust(let found): try await trust(found, asking)
        case .identity(let issuers): try await identify(issuers, asking)
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
        // A password proves nothing of a server.
        case .performDefaultHandling, .use:
            guard trust.isTrusted || !trust.isResumed else { throw refusal(found) }
            if trust.isTrusted { client.trusted(found, peer) }
            transport.answer(trusts: trust.isTrusted)
        case .rejectProtectionSpace, .continueWithoutCredential:
            throw LoadError(
                .certificateRefused, phase: .securing, party: .local, detail: trust.host,
                underlying: TrustFailure(trust: trust))
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        case .accept: throw .badAnswer("the trust of another challenge")
        case .present: throw .badAnswer("an identity, where a server is to be trusted or not")
        }
    }

    /// A server that is known to want TLS alone wants it proven too: nobody may wave it through (RFC 6797 §8.4).
    private func strictRefusal(_ found: TLSTrust) -> LoadError {
        let trust = ServerTrust(found)
        return LoadError(
            .strictTransportSecurity, phase: .securing, party: .local, detail: "\(trust), and no decision may trust it",
            underlying: TrustFailure(trust: trust))
    }

    /// What the first handshake would have failed with.
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
        // The server may do without.
        case .rejectProtectionSpace, .continueWithoutCredential: transport.answer(identity: nil)
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        case .accept: throw .badAnswer("trust, where an identity is wanted")
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

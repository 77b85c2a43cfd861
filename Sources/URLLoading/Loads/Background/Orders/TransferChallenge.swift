// SPDX-License-Identifier: Apache-2.0

// Challenges of transfers, which the agent puts to the program, and their answers.

import FoundationEssentials
import URLLoadingIO

/// What of a program decides about the challenges of a transfer.
package enum ChallengeAuthority: String, Codable, Sendable {
    /// A decision, of the task or of the session.
    case decision
    /// A delegate of the classic API, which may turn out to have no method for challenges.
    case delegate
}

/// The serialised form of a ``Challenge``.
package struct TransferChallenge: Codable, Sendable, Equatable {
    struct Failure: Codable, Sendable, Equatable {
        var reason: String
        var code: Int
        var depth: Int
        var detail: String
    }
    struct Trust: Codable, Sendable, Equatable {
        var host: String
        var certificates: [Data]
        var chain: [Data]
        var failures: [Failure]
        var isResumed: Bool
    }
    var host: String
    var port: Int
    var scheme: String
    var realm: String?
    var method: String
    var isProxy: Bool
    var proposed: TransferCredential?
    var failureCount: Int
    var response: TransferResponse?
    var error: TransferError?
    var trust: Trust?
    /// The issuers that a request for a client certificate names.
    var issuers: [Data]?

    package init(_ challenge: Challenge) {
        let space = challenge.protectionSpace
        (host, port, scheme, realm) = (space.host, space.port, space.scheme, space.realm)
        (method, isProxy) = (space.method.name, space.isProxy)
        proposed = challenge.proposedCredential.map { TransferCredential($0) }
        failureCount = challenge.previousFailureCount
        response = challenge.failureResponse.map { TransferResponse($0) }
        error = challenge.error.map { TransferError($0) }
        trust = challenge.serverTrust.map { Trust($0) }
        issuers = challenge.clientCertificate?.issuers.map { Data($0) }
    }

    /// The challenge as a value of the API; `nil` if a certificate in it cannot be read.
    package var challenge: Challenge? {
        var made = Challenge(
            protectionSpace: ProtectionSpace(
                host: host, port: port, scheme: scheme, realm: realm, method: Challenge.Method(method),
                isProxy: isProxy),
            proposedCredential: proposed?.credential, previousFailureCount: failureCount,
            failureResponse: response?.response, error: error?.loadError)
        if let trust {
            guard let known = trust.serverTrust else { return nil }
            made.serverTrust = known
        }
        made.clientCertificate = issuers.map {
            ClientCertificateRequest(issuers: $0.map { [UInt8]($0) }, proposed: nil)
        }
        return made
    }
}

extension TransferChallenge.Trust {
    init(_ trust: ServerTrust) {
        (host, isResumed) = (trust.host, trust.isResumed)
        (certificates, chain) = (trust.certificates.map(\.der), trust.chain.map(\.der))
        failures = trust.failures.map {
            .init(reason: $0.reason.name, code: $0.reason.code, depth: $0.depth, detail: $0.detail)
        }
    }

    var serverTrust: ServerTrust? {
        let (read, built) = (
            certificates.compactMap { Certificate(der: $0) }, chain.compactMap { Certificate(der: $0) }
        )
        guard read.count == certificates.count, built.count == chain.count else { return nil }
        return ServerTrust(
            host: host, certificates: read, chain: built,
            failures: failures.map {
                .init(reason: LoadError.Reason($0.reason, $0.code), depth: $0.depth, detail: $0.detail)
            }, isResumed: isResumed)
    }
}

/// The serialised form of a ``Credential``.
package struct TransferCredential: Codable, Sendable, Equatable {
    private var user: String
    private var password: String
    private var token: String?
    private var persistence: String

    init(_ credential: Credential) {
        (user, password, token) = (credential.user, credential.password, credential.token)
        persistence = credential.persistence.rawValue
    }

    var credential: Credential {
        let kept = Credential.Persistence(rawValue: persistence) ?? .none
        return token.map { .bearer($0, persistence: kept) }
            ?? Credential(user: user, password: password, persistence: kept)
    }
}

/// The serialised form of a ``ClientIdentity``, with its private key. It is sent to the agent and never stored.
package struct TransferIdentity: Codable, Sendable, Equatable {
    private var certificates: [Data]
    private var key: Data

    /// Fails for a key that cannot be exported.
    init?(_ identity: ClientIdentity) {
        let bytes = identity.identity.derKey
        guard !bytes.isEmpty else { return nil }
        (certificates, key) = (identity.identity.certificates.map { Data($0) }, Data(bytes))
    }

    /// The identity as a value of the API; `nil` if it cannot be read.
    var identity: ClientIdentity? {
        (try? TLSIdentity(certificates: certificates.map { [UInt8]($0) }, derKey: [UInt8](key)))
            .map { ClientIdentity($0) }
    }
}

/// The program's answer to a challenge.
package enum TransferAnswer: Codable, Sendable, Equatable {
    case use(TransferCredential)
    /// Trust this server.
    case accept
    /// Present this client certificate.
    case present(TransferIdentity)
    case performDefaultHandling
    case rejectProtectionSpace
    case continueWithoutCredential
    case cancel
    /// The decision failed, or its answer cannot be passed on.
    case failed(TransferError)
    /// The delegate has no method for challenges: default handling, also for the other transfers whose authority is
    /// ``ChallengeAuthority/delegate``.
    case noMethod
    /// Nothing in the program decides about this transfer: it stays parked.
    case undecided

    /// - Parameter challenge: the challenge that the decision concerns.
    package init(_ decision: ChallengeDecision, to challenge: Challenge) {
        switch decision {
        case .use(let credential): self = .use(TransferCredential(credential))
        case .accept(let trust) where trust == challenge.serverTrust: self = .accept
        case .accept: self = .bad("the trust of another challenge")
        case .present(let identity):
            self =
                TransferIdentity(identity).map { .present($0) } ?? .bad("a client identity without an exportable key")
        case .performDefaultHandling: self = .performDefaultHandling
        case .rejectProtectionSpace: self = .rejectProtectionSpace
        case .continueWithoutCredential: self = .continueWithoutCredential
        case .cancel: self = .cancel
        }
    }

    private static func bad(_ detail: String) -> TransferAnswer {
        .failed(TransferError(LoadError(.badDecision, phase: .deciding, party: .local, detail: detail)))
    }

    /// The answer to a challenge of this process; `nil` without one.
    package func decision(on challenge: Challenge) -> ChallengeDecision? {
        switch self {
        case .use(let credential): .use(credential.credential)
        case .accept: challenge.serverTrust.map { .accept($0) }
        case .present(let identity): identity.identity.map { .present($0) }
        case .performDefaultHandling, .noMethod: .performDefaultHandling
        case .rejectProtectionSpace: .rejectProtectionSpace
        case .continueWithoutCredential: .continueWithoutCredential
        case .cancel, .failed, .undecided: nil
        }
    }
}

/// An answer as it is sent to the agent.
package struct NumberedAnswer: Codable, Sendable, Equatable {
    /// The number of the challenge (``AgentMessage/Challenge/number``).
    package var number: Int64
    package var answer: TransferAnswer

    package init(_ number: Int64, _ answer: TransferAnswer) { (self.number, self.answer) = (number, answer) }
}

// SPDX-License-Identifier: Apache-2.0

// The login of a load: from its URL, from a store or netrc, from a decision, or else anonymous.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct FTPLogin {
    private let load: LoadContext
    private let space: ProtectionSpace
    private let user: String?
    /// The current credential.
    private(set) var credential: Credential
    private var isAnswer = false
    private var refused: [Credential] = []
    private var rounds = 0
    /// The limit of attempts, whatever a decision answers.
    private static let maximumRounds = 20

    /// RFC 1635 §3: the password is a kind of mail address.
    private static let anonymous = Credential(user: "anonymous", password: "urlload@", persistence: .none)

    init(_ target: FTPTarget, _ load: LoadContext) async throws(LoadError) {
        self.load = load
        let origin = target.origin
        space = ProtectionSpace(host: "\(origin.host)", port: Int(origin.port), scheme: origin.scheme, method: .default)
        user = target.user
        if let user, let password = target.password {
            credential = Credential(user: user, password: password, persistence: .none)
            return
        }
        let (space, user, authenticator) = (space, user, load.core.authenticator)
        let found = await BlockingThreads.files.call(load.handle) { () -> Credential? in
            if let stored = authenticator.credential(for: space), stored.token == nil,
                user == nil || stored.user == user
            {
                return stored
            }
            return authenticator.netrcCredential(space.host, user)
        }
        guard let found else { throw LoadError(load.stopReason ?? .cancelled, phase: .preparing) }
        credential = found ?? user.map { Credential(user: $0, password: "", persistence: .none) } ?? Self.anonymous
    }

    /// Stores the credential after the server has accepted it, if a decision supplied it.
    mutating func accepted() async {
        guard isAnswer, credential.persistence != .none else { return }
        isAnswer = false
        let (authenticator, credential, space) = (load.core.authenticator, credential, space)
        _ = await BlockingThreads.files.call(load.handle) { authenticator.keep(credential, for: space) }
    }

    /// Asks for another credential after a refusal; throws the refusal if there is none.
    mutating func change(after refusal: LoadError) async throws(LoadError) {
        rounds += 1
        guard rounds < Self.maximumRounds else { throw refusal }
        let wasAnonymous = credential == Self.anonymous
        if !wasAnonymous { refused.append(credential) }
        let decision = try await load.decide(
            Challenge(
                protectionSpace: space, proposedCredential: wasAnonymous ? nil : credential,
                previousFailureCount: refused.count,
                error: refusal))
        switch decision {
        case .use(let answer):
            guard answer.token == nil else { throw Self.badAnswer("FTP does not support bearer tokens") }
            (credential, isAnswer) = (answer, true)
        case .performDefaultHandling, .rejectProtectionSpace, .continueWithoutCredential: throw refusal
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        case .accept, .present: throw Self.badAnswer("no credential was supplied")
        }
    }

    private static func badAnswer(_ words: String) -> LoadError {
        LoadError(.badDecision, phase: .deciding, party: .local, detail: words)
    }
}

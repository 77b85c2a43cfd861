// Negotiate (RFC 4559). A ticket in this user's cache is used without asking anybody (checklist 70). Where there is none, or
// it was refused, the session's decision is asked who it is, the load's if there is none (66, 67): a password gets a ticket
// from the KDC of the realm that the user names, and is said to nobody else.

import URLLoadingIO
import URLLoadingWire

extension AuthenticationTalk {
    /// `nil` if the next way is to be gone.
    func negotiate(
        _ space: ProtectionSpace, _ side: inout Side, _ response: Response, _ asks: Bool, instead own: Credential?
    ) async throws(LoadError) -> Login? {
        if !side.hasTriedTicket {
            side.hasTriedTicket = true
            if let login = try await ticket(
                Login(.negotiate, space, Credential(user: "", password: ""), isOfURL: false, path: path, instead: own))
            {
                return login
            }
        }
        guard asks else { return nil }
        let stored = try await stored(space).flatMap { stored in
            side.forbids(stored, in: space, strength: AuthenticationOffer.negotiate.strength) ? nil : stored
        }
        let decision = try await load.decide(
            Challenge(
                protectionSpace: space, proposedCredential: stored,
                previousFailureCount: side.failures[space.realm] ?? 0,
                failureResponse: response))
        switch decision {
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        case .accept, .present:
            throw LoadError(.badDecision, phase: .deciding, party: .local, detail: "a credential is wanted")
        case .rejectProtectionSpace: return nil
        case .continueWithoutCredential:
            side.goesOnWithout = true
            return nil
        // Without a decision the next way would follow, and so it does: with a question of its own.
        case .performDefaultHandling: return try await ticket(stored, space, &side, isAnswer: false, instead: own)
        case .use(let credential): return try await ticket(credential, space, &side, isAnswer: true, instead: own)
        }
    }

    private func ticket(
        _ credential: Credential?, _ space: ProtectionSpace, _ side: inout Side, isAnswer: Bool,
        instead own: Credential?
    ) async throws(LoadError) -> Login? {
        // Only who names his realm: the system's own is often nobody's choice, and would hear of every user.
        guard let credential, credential.user.contains("@"),
            !side.unknownUsers.contains(where: { $0.proves(sameAs: credential) })
        else { return nil }
        let login = Login(.negotiate, space, credential, isOfURL: false, path: path, isAnswer: isAnswer, instead: own)
        if let login = try await ticket(login) { return login }
        // Whoever asks has heard nothing of it: no failure there.
        side.unknownUsers.append(credential)
        return nil
    }

    /// Whether there is a ticket: the first token is made, and kept for the connection that it is bound to.
    private func ticket(_ login: Login?) async throws(LoadError) -> Login? {
        guard let login else { return nil }
        let begun = await TicketProof.begin(
            login.space.host, login.ticketCredential, channel.binding, timeout: authenticator.settings.kerberosTimeout,
            load.handle)
        if let reason = load.stopReason { throw LoadError(reason, phase: .deciding) }
        guard let begun else { return nil }
        login.keep(begun)
        return login
    }

    /// What is stored for this way alone: passwords for any way are not shown to a KDC unasked.
    private func stored(_ space: ProtectionSpace) async throws(LoadError) -> Credential? {
        let authenticator = authenticator
        guard let found = await BlockingThreads.files.call(load.handle, { authenticator.ownCredential(for: space) })
        else {
            throw LoadError(load.stopReason ?? .cancelled, phase: .deciding)
        }
        return found
    }
}

// SPDX-License-Identifier: Apache-2.0

// Negotiate (RFC 4559). A ticket in this user's cache is used without asking a decision. If there is none, or it is
// refused, the challenge decision is asked for a credential. Its password obtains a ticket from the KDC of the realm in
// the user name, and is sent to no other party.

import URLLoadingIO

extension RequestAuthentication {
    /// Returns `nil` if the next offered scheme must be tried.
    func negotiate(
        _ space: ProtectionSpace, _ side: inout Side, _ response: Response, asks: Bool, instead own: Credential?
    ) async throws(LoadError) -> Login? {
        if !side.hasTriedTicket {
            side.hasTriedTicket = true
            if let login = try await ticket(
                Login(.negotiate, space, Credential(user: "", password: ""), path: path, instead: own))
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
                previousFailureCount: side.failures[space] ?? 0,
                failureResponse: response))
        switch decision {
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        case .accept, .present:
            throw LoadError(.badDecision, phase: .deciding, party: .local, detail: "no credential was supplied")
        case .rejectProtectionSpace: return nil
        case .continueWithoutCredential:
            side.continuesWithoutCredential = true
            return nil
        // Default handling uses the stored credential; the next scheme asks its own question.
        case .performDefaultHandling: return try await ticket(stored, space, &side, from: .store, instead: own)
        case .use(let credential): return try await ticket(credential, space, &side, from: .decision, instead: own)
        }
    }

    private func ticket(
        _ credential: Credential?, _ space: ProtectionSpace, _ side: inout Side, from source: Login.Source,
        instead own: Credential?
    ) async throws(LoadError) -> Login? {
        // Only a user name with a realm is used: the system's default realm is often unintended, and its KDC would
        // learn every user name.
        guard let credential, credential.user.contains("@"),
            !side.unknownUsers.contains(where: { $0.proves(sameAs: credential) })
        else { return nil }
        let login = Login(.negotiate, space, credential, from: source, path: path, instead: own)
        if let login = try await ticket(login) { return login }
        // The server was sent nothing, so this does not count as a failure there.
        side.unknownUsers.append(credential)
        return nil
    }

    /// Obtains a ticket by making the first token; the login keeps the token for the connection that it is bound to.
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

    /// The credential stored for exactly this scheme: passwords stored for any scheme are not shown to a KDC without a
    /// decision.
    private func stored(_ space: ProtectionSpace) async throws(LoadError) -> Credential? {
        let authenticator = authenticator
        guard let found = await BlockingThreads.files.call(load.handle, { authenticator.ownCredential(for: space) })
        else {
            throw LoadError(load.stopReason ?? .cancelled, phase: .deciding)
        }
        return found
    }
}

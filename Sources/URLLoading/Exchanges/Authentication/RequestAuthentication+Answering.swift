// SPDX-License-Identifier: Apache-2.0

// Chooses the answer to a challenge: a new bearer token, a login that another load has found, or the first offered
// scheme for which there is a ticket, a stored credential or a decision of the caller.

import URLLoadingIO

extension RequestAuthentication {
    /// Returns whether a new token was obtained; `nil` if the refused credential was no bearer token.
    func renewToken(_ response: Response) async throws(LoadError) -> Bool? {
        guard let issue = origin.issue, let bearer = authenticator.bearer else { return nil }
        guard !origin.hasRenewedToken else { return false }
        origin.hasRenewedToken = true
        calls?.renewed(.refused(response, token: issue))
        let next = try await bearer.token(
            after: issue, since: origin.failedRefreshes, refusal: response, for: load.handle)
        try take(next)
        if next != nil { calls?.renewed(.sentAgain) }
        return next != nil
    }

    /// Returns the login to send next; `nil` if the response is the result.
    func answer(
        _ before: Side, _ server: Authenticator.Server, _ head: HTTPHead, _ response: Response, _ own: Credential? = nil
    ) async throws(LoadError) -> Login? {
        guard rounds < Self.maximumRounds else { return nil }
        rounds += 1
        let all = AuthenticationOffer.make(
            head, isProxy: server.isProxy, allowed: authenticator.settings.methods(isProxy: server.isProxy))
        let offers = all.filter { mayUse($0, at: server) }
        guard !offers.isEmpty else { return nil }
        if !server.isProxy { try await completeGiven() }
        var side = before
        defer { if server.isProxy { proxies[server] = side } else { origin = side } }
        if let used = side.login {
            if used.renew(from: offers) { return used }
            side.login = nil
            let wasSent = server.isProxy || authenticationHandshake?.hasSentMessage ?? true
            if wasSent { side.refuse(used.credential, in: used.space, strength: used.strength) }
            if used.usesTickets { side.hasTriedTicket = true }
            // A login that was not sent, because the connection is shared, may still be valid elsewhere; an expired
            // ticket may not. A challenge of another protection space on the same path says nothing about this login.
            let isSameSpace = all.contains { $0.opens(used.space) }
            if wasSent && isSameSpace || used.usesTickets { authenticator.forget(used) }
        } else if let own = basicRefused {
            basicRefused = nil
            if case .basic? = offers.first {
                for offer in offers where offer.method == .basic {
                    side.refuse(own, in: server.space(offer), strength: offer.strength)
                }
            } else {
                for space in Set(offers.filter { $0.method == .basic }.map(server.space)) {
                    side.failures[space, default: 0] += 1
                }
            }
        }
        // Another load may have logged in since.
        let newer = authenticator.login(
            at: server, path: server.isProxy ? "/" : path, url: server.isProxy ? own : given
        ) {
            login in
            offers.contains { $0.opens(login.space) }
                && !side.forbids(login.credential, in: login.space, strength: login.strength)
        }
        if let newer { return newer }
        return try await choose(offers, &side, server, response, own ?? (server.isProxy ? nil : given))
    }

    /// Whether a scheme may be used here. NTLM and Negotiate authenticate a connection, which must be HTTP/1.1 and must
    /// not be shared with other clients by a proxy.
    private func mayUse(_ offer: AuthenticationOffer, at server: Authenticator.Server) -> Bool {
        switch offer {
        case .basic, .digest, .bearer: true
        case .negotiate: channel.mayBeOpened && TicketLibrary.shared != nil && server.hasName
        case .ntlm:
            channel.mayBeOpened
                && (server.isProxy || core.configuration.connections.httpVersions != .http2PriorKnowledge)
        }
    }

    private func choose(
        _ offers: [AuthenticationOffer], _ side: inout Side, _ server: Authenticator.Server, _ response: Response,
        _ given: Credential?
    ) async throws(LoadError) -> Login? {
        var asks = true
        let own = server.isProxy ? given : nil
        for offer in offers {
            let space = server.space(offer)
            if case .negotiate = offer {
                if let login = try await negotiate(space, &side, response, asks: asks, instead: own) {
                    return noted(login)
                }
                if side.continuesWithoutCredential { return nil }
                continue
            }
            let question = Question(offer: offer, space: space, server: server, response: response, given: given)
            switch try await credential(for: question, &side, &asks) {
            case .login(let login): return noted(login)
            case .withoutCredential: return nil
            case .nextOffer: continue
            }
        }
        return nil
    }

    /// One offer of a challenge.
    private struct Question {
        let offer: AuthenticationOffer
        let space: ProtectionSpace
        let server: Authenticator.Server
        let response: Response
        /// The credential of the URL, or of the proxy's address.
        let given: Credential?

        func login(_ credential: Credential, path: String, isAnswer: Bool) -> Login? {
            Login(
                offer, space, credential, from: isAnswer ? .decision : credential == given ? .url : .store, path: path,
                instead: server.isProxy ? given : nil)
        }
    }

    private enum Choice {
        case login(Login)
        case withoutCredential
        case nextOffer
    }

    /// Asks the decision, until it gives a credential that the scheme can carry.
    /// - Parameter asks: false once the decision has left the choice to the stored credentials.
    private func credential(
        for question: Question, _ side: inout Side, _ asks: inout Bool
    ) async throws(LoadError) -> Choice {
        let (offer, space) = (question.offer, question.space)
        var failure: LoadError?
        var unusable: Credential?
        while true {
            let proposed = try await propose(offer, space, question.given)
            var decision = ChallengeDecision.performDefaultHandling
            if asks {
                decision = try await load.decide(
                    Challenge(
                        protectionSpace: space, proposedCredential: proposed,
                        previousFailureCount: side.failures[space] ?? 0,
                        failureResponse: question.response, error: failure))
            }
            switch decision {
            case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
            case .rejectProtectionSpace: return .nextOffer
            case .continueWithoutCredential: return .withoutCredential
            case .accept, .present:
                throw LoadError(.badDecision, phase: .deciding, party: .local, detail: "no credential was supplied")
            case .performDefaultHandling:
                asks = false
                guard let proposed else { return .nextOffer }
                guard !side.forbids(proposed, in: space, strength: offer.strength),
                    !authenticator.isWeaker(offer, at: question.server)
                else { return .withoutCredential }
                return question.login(proposed, path: path, isAnswer: false).map(Choice.login) ?? .nextOffer
            case .use(let credential):
                if let login = question.login(credential, path: path, isAnswer: true) { return .login(login) }
                let error = LoadError(
                    .badDecision, phase: .deciding, party: .local, detail: offer.obstacle(to: credential))
                // The decision was told why the scheme cannot send this credential, and gives the same one.
                if credential == unusable { throw error }
                rounds += 1
                guard rounds < Self.maximumRounds else { return .withoutCredential }
                side.failures[space, default: 0] += 1
                (failure, unusable) = (error, credential)
            }
        }
    }

    private func noted(_ login: Login) -> Login {
        if channel.keepsClientsApart { login.passForwarders() }
        return login
    }

    private func propose(
        _ offer: AuthenticationOffer, _ space: ProtectionSpace, _ given: Credential?
    ) async throws(LoadError) -> Credential? {
        if let given, given.token == nil { if case .bearer = offer { return nil } else { return given } }
        let authenticator = authenticator
        let found = await BlockingThreads.files.call(load.handle) { () -> Credential? in
            if let stored = authenticator.credential(for: space) { return stored }
            if space.isProxy || space.method == .bearer { return nil }
            return authenticator.netrcCredential(space.host, nil)
        }
        guard let found else { throw LoadError(load.stopReason ?? .cancelled, phase: .deciding) }
        return found
    }
}

extension AuthenticationOffer {
    /// Returns why the scheme cannot send a credential, for the errors of decisions.
    fileprivate func obstacle(to credential: Credential) -> String {
        guard case .basic = self, credential.token == nil else {
            return "the \(method) scheme cannot send this kind of credential"
        }
        return credential.user.contains(":")
            ? "the basic scheme cannot send a user name with a colon (RFC 7617 2)"
            : "the basic scheme cannot send a control character in a user name or password (RFC 7617 2)"
    }
}

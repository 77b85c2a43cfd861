// What is said next to whoever asks: the token after the refused one, a login that another load has found meanwhile, or
// the first of the ways offered that a ticket, what is known, or the caller's decision has something for.

import URLLoadingIO
import URLLoadingWire

extension AuthenticationTalk {
    /// `nil` if it was no token that was refused.
    func renewToken(_ response: Response) async throws(LoadError) -> Bool? {
        guard let issue = origin.issue, let bearer = authenticator.bearer else { return nil }
        guard !origin.hasRenewedToken else { return false }
        origin.hasRenewedToken = true
        let next = try await bearer.token(after: issue, refusal: response, for: load)
        take(next)
        return next != nil
    }

    /// The login to try next; `nil` if the response is the result.
    func answer(
        _ before: Side, _ place: Authenticator.Place, _ head: HTTPHead, _ response: Response, _ own: Credential? = nil
    ) async throws(LoadError) -> Login? {
        guard rounds < Self.mostRounds else { return nil }
        rounds += 1
        let known = AuthenticationOffer.make(head, isProxy: place.isProxy, allowed: authenticator.settings.methods)
            .filter { mayTake($0, at: place) }
        let offers = known.filter { !$0.needsBody || (place.isProxy ? knowsBytes : knowsBody) }
        guard !offers.isEmpty else {
            // Whoever has something to say is told why it is not said.
            guard !known.isEmpty, given != nil || load.decisions?.challenge != nil || load.core.decisions?.challenge != nil else { return nil }
            throw LoadError(
                .authenticationFailed, phase: .deciding, party: .local, detail: "auth-int needs the whole body before it is sent, and a stream's is not known")
        }
        var side = before
        defer { if place.isProxy { proxy = side } else { origin = side } }
        if let used = side.login {
            if used.renew(from: offers) { return used }
            side.login = nil
            side.failures += 1
            side.refused.append(used.credential)
            if used.isTicket { hasTriedTicket = true }
            authenticator.forget(used)
        } else if let own = basicRefused {
            basicRefused = nil
            side.failures += 1
            if case .basic? = offers.first { side.refused.append(own) }
        }
        // Another load may have found out meanwhile.
        if let newer = authenticator.login(at: place, path: place.isProxy ? "/" : path, url: place.isProxy ? own : given),
            offers.contains(where: { $0.method == newer.space.method && $0.realm == newer.space.realm }),
            !side.refused.contains(where: { $0.proves(sameAs: newer.credential) })
        { return newer }
        return try await choose(offers, &side, place, response, own ?? (place.isProxy ? nil : given))
    }

    private func mayTake(_ offer: AuthenticationOffer, at place: Authenticator.Place) -> Bool {
        guard case .ntlm = offer else { return true }
        // It opens a connection of HTTP/1.1 with nobody in between: a proxy that forwards may send others' requests over
        // the one that was opened.
        return !place.isProxy && !hasForwarder && load.core.configuration.httpVersions != .http2PriorKnowledge
    }

    private func choose(
        _ offers: [AuthenticationOffer], _ side: inout Side, _ place: Authenticator.Place, _ response: Response,
        _ given: Credential?
    ) async throws(LoadError) -> Login? {
        var asks = true
        for offer in offers {
            let space = place.space(offer)
            if case .negotiate = offer {
                if let login = await ticket(space) { return login }
                continue
            }
            var failure: LoadError?
            asking: while true {
                let proposed = try await propose(offer, space, given)
                let isRefused = proposed.map { proposed in side.refused.contains { $0.proves(sameAs: proposed) } } ?? false
                var decision = ChallengeDecision.performDefaultHandling
                if asks {
                    decision = try await load.decide(Challenge(
                        space: space, proposedCredential: proposed, previousFailureCount: side.failures,
                        failureResponse: response, error: failure))
                }
                switch decision {
                case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
                case .rejectProtectionSpace: break asking
                case .goOnWithout: return nil
                case .accept, .present:
                    throw LoadError(.badDecision, phase: .deciding, party: .local, detail: "a credential is wanted")
                case .performDefaultHandling:
                    asks = false
                    guard let proposed else { break asking }
                    guard !isRefused, !authenticator.isWeaker(offer, at: place) else { return nil }
                    if let login = Login(offer, space, proposed, isOfURL: proposed == given, path: path) { return login }
                    break asking
                case .use(let credential):
                    if let login = Login(offer, space, credential, isOfURL: false, path: path, isAnswer: true) { return login }
                    rounds += 1
                    guard rounds < Self.mostRounds else { return nil }
                    side.failures += 1
                    failure = LoadError(
                        .badDecision, phase: .deciding, party: .local, detail: "\(space.method) cannot say this credential")
                }
            }
        }
        return nil
    }

    private func propose(
        _ offer: AuthenticationOffer, _ space: ProtectionSpace, _ given: Credential?
    ) async throws(LoadError) -> Credential? {
        if let given, given.token == nil { if case .bearer = offer { return nil } else { return given } }
        let authenticator = authenticator
        let found = await BlockingThreads.files.call(load) { () -> Credential? in
            if let stored = authenticator.credential(for: space) { return stored }
            if space.isProxy || space.method == .bearer { return nil }
            return authenticator.netrcCredential(space.host, nil)
        }
        guard let found else { throw LoadError(load.stopReason ?? .cancelled, phase: .deciding) }
        return found
    }
}

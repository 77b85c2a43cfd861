// SPDX-License-Identifier: Apache-2.0

// The signature of a request: asked for when its connection and every field of it are known, before it is sent. Apart
// from `HTTPHandler`, so that loads without signatures do not pay for it.

import FoundationEssentials
import URLLoadingIO

extension HTTPHandler {
    /// Adds the signature of the decision to a copy of a request, sends it, and waits for the response's head. Each
    /// sending has a signature of its own, because the prepared request is made anew for each.
    /// - Returns: the failure; `nil` if the head was received.
    @inline(never)
    static func failure(
        of exchange: any NetworkExchange, signing request: PreparedRequest, _ hop: Hop,
        _ cause: BodyProviderContext.Cause?, for load: LoadContext
    ) async -> LoadError? {
        var request = request
        do throws(LoadError) {
            try await sign(&request, over: exchange, hop, cause, for: load)
            try await exchange.start(request)
        } catch {
            return error
        }
        return nil
    }

    private static func sign(
        _ request: inout PreparedRequest, over exchange: any NetworkExchange, _ hop: Hop,
        _ cause: BodyProviderContext.Cause?, for load: LoadContext
    ) async throws(LoadError) {
        guard let decision = load.signDecision else { return }
        exchange.setUnread(true)
        defer { exchange.setUnread(false) }
        do throws(LoadError) {
            try checkIsSentOnce(request, over: exchange)
            let line = request.signedLine(isTunnel: request.webSocket != nil && exchange.isShared)
            let question = SigningRequest(
                line, headers: request.signedFields, cause: cause ?? (hop.followed > 0 ? .redirect : .first),
                left: hop.left, body: body(of: request, load), date: load.wallTime)
            try request.add(try await load.ask(decision, question))
        } catch {
            throw ofSigner(error)
        }
    }

    /// Throws for a request whose connection is authenticated by several messages, each with the request's fields: the
    /// server would see one signature several times.
    private static func checkIsSentOnce(
        _ request: PreparedRequest, over exchange: any NetworkExchange
    ) throws(LoadError) {
        guard request.authenticationHandshake == nil, exchange.forwarder?.login?.opensConnections != true else {
            throw .cannotSign("NTLM and Negotiate send a request several times, and add fields after its signature")
        }
    }

    /// An error that a signer of this library names itself, in place of the decision that threw it.
    private static func ofSigner(_ error: LoadError) -> LoadError {
        guard let own = error.underlying as? LoadError, own.reason == .cannotSign || own.reason == .noCredentials else {
            return error
        }
        return own
    }

    private static func body(of request: PreparedRequest, _ load: LoadContext) -> SigningRequest.Body {
        guard let body = request.body else { return .none }
        if case .stream(let length, _, _) = body {
            return SigningRequest.Body(length: length, isRepeatable: false) { (_) throws(LoadError) in
                throw .cannotSign("the body is a sequence, which is read while it is sent: it has no digest before")
            }
        }
        // Weak, because the program may keep the question.
        return SigningRequest.Body(length: body.length, isRepeatable: true) { [weak load] (kind) throws(LoadError) in
            guard let load, load.stopReason == nil else {
                throw LoadError(load?.stopReason ?? .cancelled, phase: .preparing)
            }
            let parts: [OutgoingBody.Part]
            switch body {
            case .data(let data): parts = [.data(data)]
            case .parts(let several): parts = several
            case .stream: return nil
            }
            return await BlockingThreads.files.call(load.handle) { OutgoingBody.hash(of: parts, kind, load.handle) }
                ?? nil
        }
    }
}

extension LoadContext {
    /// The decision that signs the load's requests.
    var signDecision: Decision<SigningRequest, RequestSignature>? { decisions?.sign ?? core.decisions?.sign }
    /// Whether the load's requests are signed, without a copy of the decision.
    var signs: Bool { decisions?.signs == true || core.decisions?.signs == true }

    /// The time of day by the session's clock.
    fileprivate var wallTime: Date {
        core.configuration.wallClock.map { Date(timeIntervalSince1970: $0()) } ?? .now
    }
}

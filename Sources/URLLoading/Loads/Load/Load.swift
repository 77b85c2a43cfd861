// SPDX-License-Identifier: Apache-2.0

// In this folder: the story of a load, and the plan for redirects

// The steps of a load and their order, top to bottom. Each step's decision is a plan, made elsewhere as a value;
// sockets and bytes belong to the exchanges. Facts about a response are returned with its exchange.

import FoundationEssentials
import URLLoadingWire

/// One load, run by its driver: a session method such as `data(for:)` in its caller's task, or the driver of a task.
struct Load: Sendable {
    let context: LoadContext
    var purpose = RequestPurpose.plain

    /// The response that is the result of a load.
    struct Result: Sendable {
        let exchange: any Exchange
        /// The last request: the one that the response answers.
        let hop: Hop
        /// The caller's decision about the response. Never `cancel`, which is thrown.
        let disposition: ResponseDisposition
    }

    // MARK: The steps

    /// Runs the load to the head of its response.
    @inline(never)
    func run(_ first: Request) async throws(LoadError) -> Result {
        guard !context.core.requestDefaults.isBackground else {
            throw .notInBackground("a background session has downloads and uploads of files only", first.url)
        }
        var hop = Hop(request: first, purpose: purpose)
        while true {
            let exchange = try await answer(&hop)
            // Checked before the calls, because an async function has a frame of its own, and theirs are large.
            if mayBeFollowed(exchange), try await advance(&hop, after: exchange) {
                exchange.release()
                continue
            }
            if mayBeRefused(hop) { return try await judged(exchange, hop) }
            return Result(exchange: exchange, hop: consume hop, disposition: .allow)
        }
    }

    /// Answers one request: prepares it, applies HSTS, and passes it to the first handler that can handle it.
    func answer(_ hop: inout Hop) async throws(LoadError) -> any Exchange {
        context.events?.prepare(&hop.request)
        let core = context.core
        if let rules = core.strictTransport, rules.mayConcern(hop.request),
            let secure = await rules.upgrade(hop.request, context.handle)
        {
            context.events?.canonicalized(secure)
            hop.request = secure
        }
        // Without custom handlers, http and https go straight to the cache and the network.
        guard core.handlers.isPlain, hop.request.hasDestination else {
            return try await HandlerChain.answer(&hop, for: context)
        }
        if let cache = core.cache { return try await CacheFetch.answer(hop, for: context, cache) }
        try CacheFetch.checkWithout(hop, core)
        return try await HTTPHandler.exchange(hop, for: context)
    }

    /// Sends another request for a load that has its result already. Redirects are not followed.
    func answer(again hop: Hop) async throws(LoadError) -> any Exchange {
        var hop = hop
        return try await answer(&hop)
    }

    // MARK: The next request

    /// Whether another request may follow a response: the target of a redirect, or the next step of an upload.
    @inline(never)
    private func mayBeFollowed(_ exchange: any Exchange) -> Bool {
        if case .resumableUpload = purpose { return true }
        return isRedirect(exchange)
    }

    private func isRedirect(_ exchange: any Exchange) -> Bool {
        exchange.status?.kind == .redirection || exchange.redirect != nil
    }

    /// Advances to the request that follows a response. Returns false if the response is the result.
    @inline(never)
    private func advance(_ hop: inout Hop, after exchange: any Exchange) async throws(LoadError) -> Bool {
        if isRedirect(exchange), let next = try await redirect(after: exchange, hop) {
            hop = next
            return true
        }
        guard let next = try uploadStep(after: exchange, hop) else { return false }
        hop = next
        return true
    }

    /// Returns the next hop; nil if the response is the result.
    private func redirect(after exchange: any Exchange, _ hop: Hop) async throws(LoadError) -> Hop? {
        do throws(LoadError) {
            let maximum = context.core.configuration.redirects.maximum
            switch RedirectPlan.make(exchange, hop.request, followed: hop.followed, maximum: maximum) {
            case .deliver: return nil
            case .refuse(let error, let proposed):
                // A decision that names another request does not lift the maximum.
                let next = try await decide(exchange, proposed, hop, refusal: error)
                guard next != nil, error.reason == .tooManyRedirects else { return next }
                throw error
            case .follow(let proposed): return try await decide(exchange, proposed, hop, refusal: nil)
            }
        } catch {
            exchange.release()
            throw error.at(hop.request.url)
        }
    }

    /// - Parameter refusal: thrown if the decision is to follow a redirect that must not be followed.
    @inline(never)  // One frame less in the common case.
    private func decide(
        _ exchange: any Exchange, _ proposed: Request, _ hop: Hop, refusal: LoadError?
    ) async throws(LoadError) -> Hop? {
        let redirect = Redirect(response: exchange.response, request: proposed, count: hop.followed)
        var answer = RedirectDecision.follow
        if let decision = context.redirectDecision { answer = try await context.ask(decision, redirect) }
        switch answer {
        case .follow:
            if let refusal { throw refusal }
            context.emit(.redirected(redirect))
            return hop.next(proposed)
        case .instead(let request):
            context.emit(.redirected(redirect.to(request)))
            return hop.next(request)
        case .doNotFollow: return nil
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        }
    }

    // MARK: The result

    /// Whether a decision of the caller or a digest that the request expects may refuse a response.
    @inline(never)
    private func mayBeRefused(_ hop: Hop) -> Bool {
        context.responseDecision != nil || hop.request.properties.count > 0
    }

    /// The result, as the caller decides. Its body is checked if the request expects a digest; a download checks its
    /// file itself.
    @inline(never)
    private func judged(_ exchange: any Exchange, _ hop: Hop) async throws(LoadError) -> Result {
        let disposition = try await disposition(of: exchange, hop)
        guard let digest = hop.request.expectedDigest, hop.request.method != .head, context.consumer != .file,
            case .allow = disposition
        else {
            return Result(exchange: exchange, hop: hop, disposition: disposition)
        }
        let checked = try DigestedExchange(exchange, digest) { [context] in context.forgetStored(hop.request) }
        return Result(exchange: checked, hop: hop, disposition: disposition)
    }

    /// The next request of a resumable upload; nil if the response is the result.
    private func uploadStep(after exchange: any Exchange, _ hop: Hop) throws(LoadError) -> Hop? {
        guard case .resumableUpload(let steps) = purpose else { return nil }
        do throws(LoadError) {
            let next = try steps.next(after: exchange.head, to: hop.request)
            return next.map { Hop(request: $0, purpose: purpose, left: hop.left) }
        } catch {
            throw exchange.failed(error).at(hop.request.url)
        }
    }

    /// Calls the response decision of the caller. Before it, the body is not read and no event of the body is emitted.
    @inline(never)
    private func disposition(of exchange: any Exchange, _ hop: Hop) async throws(LoadError) -> ResponseDisposition {
        guard let decision = context.responseDecision else { return .allow }
        do throws(LoadError) {
            let disposition = try await context.ask(decision, exchange.response)
            switch disposition {
            case .allow where exchange.head?.status == .switchingProtocols && !hop.purpose.opensWebSocket:
                // The bytes that follow a 101 are not a body (RFC 9110 §15.2.2).
                throw LoadError(.unexpectedUpgrade, phase: .deciding, party: .local)
            case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
            case .allow, .becomeDownload, .becomeStream: return disposition
            }
        } catch {
            throw exchange.failed(error)
        }
    }
}

extension Redirect {
    fileprivate func to(_ request: Request) -> Redirect { Redirect(response: response, request: request, count: count) }
}

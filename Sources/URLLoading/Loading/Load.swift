// The story of a load, top to bottom. This file orders the steps and knows nothing of sockets or
// bytes; what each step decides is a plan, made elsewhere as a value.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct Load: Sendable {
    let core: Core
    let control: LoadControl
    private let original: Request
    private let decisions: Decisions

    init(_ core: Core, _ request: Request, _ decisions: Decisions) throws(LoadError) {
        self.core = core
        original = request
        self.decisions = decisions
        control = try core.begin(request)
    }

    /// What a load has when its head is here.
    struct Answer: Sendable {
        let response: Response
        let body: BodySource
    }

    // MARK: The line

    func run() async throws(LoadError) -> Answer {
        var request = original
        var followed = 0
        while true {
            let answer = try await throughCache(request)
            guard let next = try await redirect(after: answer, from: request, followed) else { return answer }
            answer.body.close()
            request = next
            followed += 1
        }
    }

    /// No responses are stored yet: the one policy that forbids the network finds nothing.
    private func throughCache(_ request: Request) async throws(LoadError) -> Answer {
        guard request.cachePolicy != .storedOnly else {
            throw LoadError(.notInCache, phase: .preparing, party: .local, url: request.url)
        }
        return try await exchange(request)
    }

    /// One request, answered; sent again on a fresh connection if an idle one turned out to be stale.
    private func exchange(_ request: Request) async throws(LoadError) -> Answer {
        do throws(LoadError) {
            let prepared = try PreparedRequest(request, core.defaultFields)
            var retries = RetryPlan(prepared)
            while true {
                let connection = try await core.pool.lease(prepared.route, control, fresh: retries.wantsFresh)
                let exchange = HTTPExchange(connection, core.pool, control, core.configuration.limits, request.url)
                do throws(LoadError) {
                    let response = try await exchange.start(prepared)
                    return Answer(response: response, body: BodySource(exchange, response, control))
                } catch {
                    let isStale = exchange.failedStale
                    exchange.release()
                    guard retries.retry(after: error, isStale: isStale) else { throw error }
                }
            }
        } catch {
            throw error.at(request.url)
        }
    }

    private func redirect(after answer: Answer, from request: Request, _ followed: Int) async throws(LoadError) -> Request? {
        guard let head = answer.response.http else { return nil }
        switch RedirectPlan.make(head, request, followed: followed, maximum: core.configuration.maximumRedirects) {
        case .deliver: return nil
        case .refuse(let error):
            answer.body.close()
            throw error.at(request.url)
        case .follow(let next):
            return try await decide(Redirect(response: answer.response, request: next, count: followed), answer)
        }
    }

    private func decide(_ redirect: Redirect, _ answer: Answer) async throws(LoadError) -> Request? {
        guard let decision = decisions.redirect ?? core.decisions.redirect else { return redirect.request }
        do {
            switch try await decision.decide(redirect) {
            case .follow: return redirect.request
            case .instead(let request): return request
            case .deliver: return nil
            case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
            }
        } catch {
            answer.body.close()
            if let reason = control.stopReason { throw LoadError(reason, phase: .deciding).at(redirect.response.url) }
            if let error = error as? LoadError { throw error.at(redirect.response.url) }
            throw LoadError(.decisionFailed, phase: .deciding, party: .local, url: redirect.response.url, underlying: error)
        }
    }

    // MARK: Its two endings

    /// Runs the load to its end and collects the body.
    func collecting() async -> Result<(Data, Response), LoadError> {
        defer { core.end(control) }
        do throws(LoadError) {
            let answer = try await run()
            let data = try await answer.body.collect(upTo: core.configuration.limits.collectedBodySize)
            return .success((data, answer.response))
        } catch {
            return .failure(error)
        }
    }

    /// Runs the load to its head, off the caller's actor. `finish` must follow.
    @concurrent func head() async throws(LoadError) -> Answer {
        try await run()
    }

    func finish(_ answer: Answer?) {
        answer?.body.close()
        core.end(control)
    }
}

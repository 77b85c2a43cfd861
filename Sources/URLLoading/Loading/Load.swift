// The story of a load, top to bottom. This file orders the steps and knows nothing of sockets or
// bytes; what each step decides is a plan, made elsewhere as a value.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// One load: its request, and by inheritance the handle that ends it from outside.
final class Load: LoadControl, @unchecked Sendable {
    let core: Core
    private let original: Request
    private let decisions: Decisions?

    /// Enters the load, or says that the session takes none any more.
    init(_ core: Core, _ request: Request, _ decisions: Decisions?) throws(LoadError) {
        self.core = core
        original = request
        self.decisions = decisions
        let configuration = core.configuration
        super.init(
            idle: request.idleTimeout ?? configuration.idleTimeout,
            resource: request.resourceTimeout ?? configuration.resourceTimeout,
            collectsTimeline: configuration.timeline != nil)
        guard core.registry.enter(self) else {
            throw LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: request.url)
        }
    }

    /// One of the requests a load sends: its own, or one that a redirect led to.
    private struct Hop {
        var request: Request
        var followed = 0
        /// Once away from the caller's origin, what was meant for it stays behind.
        var isForeign = false

        func next(_ request: Request) -> Hop {
            Hop(request: request, followed: followed + 1, isForeign: isForeign || !request.goes(where: self.request))
        }
    }

    // MARK: The line

    /// Runs the load to the head of its answer.
    func run() async throws(LoadError) -> HTTPExchange {
        var hop = Hop(request: original)
        while true {
            try checkCache(hop.request)
            let exchange = try await exchange(hop)
            guard let next = try await redirect(after: exchange, hop) else { return exchange }
            exchange.release()
            hop = next
        }
    }

    /// No responses are stored yet: the one policy that forbids the network finds nothing.
    private func checkCache(_ request: Request) throws(LoadError) {
        guard request.cachePolicy == .storedOnly else { return }
        throw LoadError(.notInCache, phase: .preparing, party: .local, url: request.url)
    }

    /// One request, answered; sent again on a fresh connection if an idle one turned out to be stale.
    private func exchange(_ hop: Hop) async throws(LoadError) -> HTTPExchange {
        let request = hop.request
        do throws(LoadError) {
            let prepared = try PreparedRequest(request, core.defaultFields, isForeign: hop.isForeign)
            var retries = RetryPlan(request)
            while true {
                let connection = try await core.pool.lease(prepared.destination.route, self, fresh: retries.wantsFresh)
                let exchange = HTTPExchange(connection, self, request.url)
                do throws(LoadError) {
                    try await exchange.start(prepared)
                    return exchange
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

    /// The next hop; `nil` if the response is the result.
    private func redirect(after exchange: HTTPExchange, _ hop: Hop) async throws(LoadError) -> Hop? {
        guard let head = exchange.head else { return nil }
        do throws(LoadError) {
            let maximum = core.configuration.maximumRedirects
            switch RedirectPlan.make(head, hop.request, followed: hop.followed, maximum: maximum) {
            case .deliver: return nil
            case .refuse(let error, nil): throw error
            case .refuse(let error, let proposed?):
                // Somebody else's request is no way around the maximum.
                let next = try await decide(exchange, proposed, hop, else: error)
                guard next != nil, error.reason == .tooManyRedirects else { return next }
                throw error
            case .follow(let proposed): return try await decide(exchange, proposed, hop, else: nil)
            }
        } catch {
            exchange.release()
            throw error.at(hop.request.url)
        }
    }

    private func decide(
        _ exchange: HTTPExchange, _ proposed: Request, _ hop: Hop, else refusal: LoadError?
    ) async throws(LoadError) -> Hop? {
        var answer = RedirectDecision.follow
        if let decision = decisions?.redirect ?? core.decisions?.redirect {
            answer = try await ask(
                decision, Redirect(response: exchange.response, request: proposed, count: hop.followed))
        }
        switch answer {
        case .follow:
            if let refusal { throw refusal }
            return hop.next(proposed)
        case .instead(let request): return hop.next(request)
        case .deliver: return nil
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        }
    }

    private func ask<Question: Sendable, Answer: Sendable>(
        _ decision: Decision<Question, Answer>, _ question: Question
    ) async throws(LoadError) -> Answer {
        let result: Result<Answer, any Error>? = await Interruption.run(self) {
            do { return .success(try await decision.decide(question)) } catch { return .failure(error) }
        }
        // Stopped meanwhile: the answer comes too late, whatever it is.
        guard stopReason == nil, let result else { throw LoadError(stopReason ?? .cancelled, phase: .deciding) }
        do { return try result.get() } catch {
            throw LoadError(.decisionFailed, phase: .deciding, party: .local, underlying: error)
        }
    }

    // MARK: Its two endings

    /// Runs the load to its end and collects the body.
    func collect() async -> Result<(Data, Response), LoadError> {
        defer { end() }
        do throws(LoadError) {
            let exchange = try await run()
            let data = try await exchange.collect(upTo: core.configuration.limits.collectedBodySize)
            return .success((data, exchange.response))
        } catch {
            return .failure(error)
        }
    }

    /// Runs the load to its head, off the caller's actor. `finish` must follow, whatever comes of it.
    @concurrent func head() async throws(LoadError) -> BodySource {
        BodySource(try await run())
    }

    func finish(_ body: BodySource?) {
        if body?.close() ?? true { end() }
    }

    /// Leaves the session: nothing of the load is left.
    func end() {
        if let timeline {
            timeline.mark(.finished)
            core.configuration.timeline?(timeline)
        }
        core.registry.leave(self)
    }
}

// The story of a load, top to bottom. This file orders the steps and knows nothing of sockets or
// bytes; what each step decides is a plan, made elsewhere as a value.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// One load: its request, and by inheritance the handle that ends it from outside.
class Load: LoadControl, @unchecked Sendable {
    final let core: Core
    final let original: Request
    final private(set) var decisions: Decisions?
    /// Who wants to hear of the load; `nil` if nobody does.
    final let emission: Emission?
    /// Our own code in the tasks of handlers; `nil` until one is asked.
    final private(set) var insiders: Insiders?
    /// What became of what it has loaded, in the cache. Bodies of a handler's requests may end at once.
    private final let storing = Atomic(Storing.nothing.rawValue)
    /// The library itself reads its body, to the end, and waits for nobody meanwhile.
    var readsToEnd: Bool { isCollecting }
    /// Nobody is given a byte of its body before the last is here.
    final var collects: Bool { isCollecting }
    final private var isCollecting = false
    /// Whether a decision about its challenges may have something to say about servers.
    var judgesServers: Bool { true }
    /// Others wait for what it fetches.
    func lead(_ fetch: SharedFetch) {}

    /// - Parameter isHandle: somebody holds a handle to it, and may listen.
    init(_ core: Core, _ request: Request, _ decisions: Decisions?, isHandle: Bool) {
        self.core = core
        original = request
        self.decisions = decisions
        let configuration = core.configuration
        emission = Emission.make(request, configuration.observers, isNeeded: isHandle)
        super.init(
            idle: request.idleTimeout ?? configuration.idleTimeout,
            resource: request.resourceTimeout ?? configuration.resourceTimeout,
            connect: request.connectTimeout ?? configuration.connectTimeout,
            clock: configuration.clock)
    }

    /// Others decide. By whoever is about to begin it, and before.
    final func decide(by decisions: Decisions) { self.decisions = decisions }

    /// The load of a verb, whose time runs from now; an error if the session takes none any more.
    static func begin(_ core: Core, _ request: Request, _ decisions: Decisions?) throws(LoadError) -> Load {
        let load = Load(core, request, decisions, isHandle: false)
        load.startClock()
        guard core.registry.enter(load) else { throw .sessionInvalidated(request.url) }
        return load
    }

    /// One of the requests a load sends: its own, or one that a redirect led to.
    struct Hop {
        var request: Request
        var followed = 0
        /// Once away from the caller's origin, what was meant for it stays behind.
        var isForeign = false
        /// Told of each bearer token that is renewed for this request; nil unless a handler asks for it.
        var renewals: (@Sendable (TokenRenewal) -> Void)?

        func next(_ request: Request) -> Hop {
            Hop(request: request, followed: followed + 1, isForeign: isForeign || !request.goes(where: self.request))
        }
    }

    // MARK: The line

    /// Runs the load to the head of its answer.
    @inline(never)
    final func run(_ first: Request? = nil) async throws(LoadError) -> any Exchange {
        var hop = Hop(request: first ?? original)
        while true {
            emission?.prepare(&hop.request)
            if let rules = core.strictTransport, rules.mayConcern(hop.request),
                let secure = await rules.upgrade(hop.request, self)
            {
                emission?.emit(.canonicalized(secure), self)
                hop.request = secure
            }
            let exchange = try await answer(&hop)
            // Asked first: what waits has a frame of its own, and these are large.
            if mayRedirect(exchange), let next = try await redirect(after: exchange, hop) {
                exchange.release()
                hop = next
                continue
            }
            if let other = try next(after: exchange, hop) {
                exchange.release()
                hop = Hop(request: other)
                continue
            }
            if let decision = decisions?.response ?? core.decisions?.response { try await judge(exchange, decision) }
            emission?.emit(.responded(exchange.response), self)
            return exchange
        }
    }

    /// Whoever can handle the request answers it. Where nobody is registered, http asks nobody.
    private func answer(_ hop: inout Hop) async throws(LoadError) -> any Exchange {
        if core.handlers.isPlain, case .success = hop.request.destination {
            if let cache = core.cache { return try await CacheLine.answer(hop, for: self, cache) }
            try CacheLine.checkWithout(hop, core)
            return try await HTTPHandler.exchange(hop, for: self)
        }
        let line = core.handlers.inOrder
        if let canonical = line.first(where: { $0.canHandle(hop.request) })?.canonical(hop.request) {
            emission?.emit(.canonicalized(canonical), self)
            hop.request = canonical
        }
        emission?.beginLocal(hop.request)
        let gathered = GatheredMarks()
        do throws(LoadError) {
            let exchange = try await answer(hop, from: line, after: -1, gathered)
            (exchange as? HandlerExchange)?.isOutermost = true
            emission?.answeredLocally(exchange)
            guard exchange is HandlerExchange, core.cache != nil else { return exchange }
            return CacheLine.keepHandled(exchange, hop, for: self, gathered)
        } catch {
            emission?.failedLocally(error)
            throw error
        }
    }

    /// The first behind a place in the line that can handle the request.
    /// - Parameter gathered: notes whose the answers are that handlers are given.
    final func answer(
        _ hop: Hop, from line: [any ProtocolHandler], after place: Int, _ gathered: GatheredMarks
    ) async throws(LoadError) -> any Exchange {
        guard let next = line.indices.dropFirst(place + 1).first(where: { line[$0].canHandle(hop.request) }) else {
            throw LoadError(.unsupportedScheme, phase: .preparing, party: .local, url: hop.request.url)
        }
        if let direct = line[next] as? any DirectHandler { return try await direct.exchange(hop, for: self) }
        return try await handled(
            by: line[next],
            ProtocolClient(
                load: self, hop: hop, line: line, position: next, isOutermost: place < 0, gathered: gathered))
    }

    private func handled(by handler: any ProtocolHandler, _ client: ProtocolClient) async throws(LoadError)
        -> any Exchange
    {
        let request = client.hop.request
        // Those behind others are called by several tasks, perhaps at once.
        if client.isOutermost, insiders == nil { insiders = Insiders() }
        let ending = await Interruption.run(self) { () -> Result<ProtocolAnswer, any Error> in
            do { return .success(try await handler.load(request, client: client)) } catch { return .failure(error) }
        }
        switch ending {
        case .answered(.success(let answer)):
            (answer.exchange as? HandlerExchange)?.taken(by: self)
            return answer.exchange
        case .answered(.failure(let error)):
            throw LoadError(stopReason, or: LoadError(handler: error, phase: .waiting)).at(request.url)
        case .stopped, .late:
            // A handler behind another is itself inside, and is waited for there.
            if client.isOutermost { await insiders?.close() }
            throw LoadError(stopReason ?? .cancelled, phase: .waiting).at(request.url)
        }
    }

    private func mayRedirect(_ exchange: any Exchange) -> Bool {
        exchange.head?.status.kind == .redirection || exchange.redirect != nil
    }

    /// The next hop; `nil` if the response is the result.
    private func redirect(after exchange: any Exchange, _ hop: Hop) async throws(LoadError) -> Hop? {
        do throws(LoadError) {
            let maximum = core.configuration.maximumRedirects
            switch RedirectPlan.make(exchange, hop.request, followed: hop.followed, maximum: maximum) {
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

    @inline(never)  // One frame less in the common case.
    private func decide(
        _ exchange: any Exchange, _ proposed: Request, _ hop: Hop, else refusal: LoadError?
    ) async throws(LoadError) -> Hop? {
        let redirect = Redirect(response: exchange.response, request: proposed, count: hop.followed)
        var answer = RedirectDecision.follow
        if let decision = decisions?.redirect ?? core.decisions?.redirect { answer = try await ask(decision, redirect) }
        switch answer {
        case .follow:
            if let refusal { throw refusal }
            emission?.emit(.redirected(redirect), self)
            return hop.next(proposed)
        case .instead(let request):
            emission?.emit(.redirected(redirect.to(request)), self)
            return hop.next(request)
        case .deliver: return nil
        case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
        }
    }

    /// The last word on a response is the caller's: before it no event of the body, and no byte of it
    /// is read (checklist 48).
    private func judge(
        _ exchange: any Exchange, _ decision: Decision<Response, ResponseDisposition>
    ) async throws(LoadError) {
        do throws(LoadError) {
            switch try await ask(decision, exchange.response) {
            case .allow:
                // What follows a 101 is no body (RFC 9110 §15.2.2).
                if exchange.head?.status == .switchingProtocols, !takesUpgrade {
                    throw LoadError(.unexpectedUpgrade, phase: .deciding, party: .local)
                }
            case .cancel: throw LoadError(.cancelled, phase: .deciding, party: .local)
            case .becomeDownload(let options): try becomeDownload(options)
            case .becomeStream: try becomeStream(exchange)
            }
        } catch {
            throw exchange.failed(error)
        }
    }

    @inline(never)  // One frame less in the common case.
    private func next(after exchange: any Exchange, _ hop: Hop) throws(LoadError) -> Request? {
        do throws(LoadError) { return try another(after: exchange, hop) } catch {
            throw exchange.failed(error).at(hop.request.url)
        }
    }

    /// What is asked for instead if an answer is of no use, or not the last.
    func another(after exchange: any Exchange, _ hop: Hop) throws(LoadError) -> Request? { nil }

    /// A request with a body is about to go out.
    func willSend(_ request: inout PreparedRequest) throws(LoadError) {}

    /// One more answer to a load that has its response already. Redirects are not followed.
    final func ask(again hop: Hop) async throws(LoadError) -> any Exchange {
        var hop = hop
        emission?.prepare(&hop.request)
        return try await answer(&hop)
    }

    /// What a request must have that is new each time it is sent. Asked of those that take an upgrade.
    func complete(_ request: inout PreparedRequest, isHTTP2: Bool) throws(LoadError) {}

    func becomeDownload(_ options: DownloadOptions) throws(LoadError) {
        throw LoadError(.badDecision, phase: .deciding, party: .local, detail: "only a data task can become a download")
    }

    func becomeStream(_ exchange: any Exchange) throws(LoadError) {
        throw LoadError(
            .badDecision, phase: .deciding, party: .local, detail: "only a data task of http can become a stream")
    }

    /// Who decides what is kept of the answer.
    var cacheDecision: Decision<CachedResponse, CacheDecision>? { decisions?.cache ?? core.decisions?.cache }
    /// Somebody may be waited for with the response in hand.
    final var mayWaitForOthers: Bool {
        decisions?.response != nil || core.decisions?.response != nil || cacheDecision != nil
    }

    final override var decidesChallenges: Bool { decisions?.challenge != nil || core.decisions?.challenge != nil }

    final override func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision {
        let (own, shared) = (decisions?.challenge, core.decisions?.challenge)
        guard let decision = challenge.space.method.isForSession ? shared ?? own : own ?? shared
        else { return .performDefaultHandling }
        challenged(challenge)
        return try await ask(decision, challenge)
    }

    /// The body of a request that has none of its own.
    @inline(never)
    final func demandBody(_ hop: Hop, _ cause: BodyDemand.Cause?) async throws(LoadError) -> RequestBody {
        guard let decision = decisions?.newBody ?? core.decisions?.newBody else { throw .noBody(hop.request.url) }
        let demand = BodyDemand(request: hop.request, cause: cause ?? (hop.followed > 0 ? .redirect : .first))
        return try await ask(decision, demand)
    }

    // MARK: Its two endings

    /// Runs the load to its end and collects the body.
    final func collect() async -> Result<(Data, Response), LoadError> {
        do throws(LoadError) {
            isCollecting = true
            let exchange = try await run()
            let data = try await collect(exchange)
            end(nil)
            return .success((data, exchange.response))
        } catch {
            end(error)
            return .failure(error)
        }
    }

    /// Collects a body in the load's own task: what is here already costs no wait.
    @inline(never)
    private func collect(_ exchange: any Exchange) async throws(LoadError) -> Data {
        let limit = core.configuration.limits.collectedBodySize
        var data = Data()
        do throws(LoadError) {
            while true {
                switch try exchange.buffered(atMost: .max) {
                case .chunk(let chunk)?:
                    try data.collect(chunk, exchange.expectedLength, limit)
                    received(chunk.count)
                case .end?:
                    exchange.release()
                    return data
                case nil: try await exchange.fill(atMost: .max)
                }
            }
        } catch {
            throw exchange.failed(error)
        }
    }

    /// Runs the load to its head, off the caller's actor. `finish` must follow, whatever comes of it.
    @concurrent final func head() async throws(LoadError) -> ScopedBody {
        ScopedBody(try await run())
    }

    final func finish(_ body: ScopedBody?, _ error: LoadError?) {
        if body?.close() ?? true { end(error) }
    }

    /// Leaves the session: nothing of the load is left.
    final func end(_ error: LoadError?) {
        insiders?.end()
        if let emission {
            if error == nil { tell(of: storing.load(ordering: .relaxed), emission) }
            emission.complete(error, self)
        }
        core.registry.leave(self)
    }

    // MARK: What becomes of it in the cache

    /// In this order the last one counts.
    private enum Storing: UInt8 { case nothing, refused, stored }

    final func noteStored() { _ = storing.max(Storing.stored.rawValue, ordering: .relaxed) }

    /// A storage has not taken what it would take of others.
    final func noteRefusal(of response: StoredResponse, by storage: any CacheStorage) {
        guard response.knownRules.isOfUse, storage.refusal(of: response) != nil else { return }
        _ = storing.max(Storing.refused.rawValue, ordering: .relaxed)
    }

    private func tell(of storing: UInt8, _ emission: Emission) {
        switch Storing(rawValue: storing) {
        case .stored?: emission.emit(.stored, self)
        case .refused?: emission.emit(.notStored(.notHeldInMemory), self)
        case .nothing?, nil: break
        }
    }

    // MARK: What is heard of it

    /// So many bytes of the body have reached their reader.
    final func received(_ count: Int) { emission?.received(count, self) }

    final override func sent(_ bytes: ByteCount) { emission?.emit(.bodySent(bytes), self) }

    final override func challenged(_ challenge: Challenge) { emission?.emit(.challenged(challenge), self) }

    final override func informed(_ head: HTTP1ResponseHead) {
        guard let emission else { return }
        emission.emit(.informational(HTTPHead(head)), self)
    }

    final override func setResting(_ isResting: Bool, _ route: Route) { core.pool.setResting(isResting, route) }

    final override var handshakeDecision: HandshakeDecision? {
        HandshakeDecision(session: core.decisions, load: decisions)
    }

    final override func passed(_ trust: TLSTrust, _ peer: TLSPeer) {
        guard peer.role == .origin, let leaf = trust.shown.first, let group = handshakeDecision?.group else { return }
        core.cache?.believe(Digest.hex(leaf.der), of: peer, by: group)
    }

    final override func forbidsTrust(in host: String) async -> Bool {
        await core.strictTransport?.forbidsTrust(in: host, self) ?? false
    }

    final override var abandoned: AbandonedCount { core.abandoned }

    /// Hears each event after the observers did.
    func hear(_ event: LoadEvent) {}
}

extension LoadError {
    static func noBody(_ url: URL) -> LoadError {
        LoadError(
            .badRequest, phase: .preparing, party: .local, url: url,
            detail: "its body is demanded, and no decision newBody gives one")
    }
}

extension Data {
    /// Appends a chunk of a body that may have so many bytes; the first makes room for what the peer
    /// announced, which is believed only so far.
    fileprivate mutating func collect(_ chunk: Chunk, _ expectedLength: Int64?, _ limit: Int) throws(LoadError) {
        guard chunk.count <= limit - count else { throw .tooLarge(limit) }
        if isEmpty {
            let expected = Int(Swift.min(expectedLength ?? 0, Int64(limit), 4 << 20))
            guard expected > chunk.count else {
                self = Data(chunk)
                return
            }
            reserveCapacity(expected)
        }
        append(chunk)
    }
}

extension Redirect {
    fileprivate func to(_ request: Request) -> Redirect { Redirect(response: response, request: request, count: count) }
}

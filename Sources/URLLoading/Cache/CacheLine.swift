// What a plan says, done: the way of a load through the cache, in front of http. What is in memory and fresh answers
// without a wait; all else has a function of its own, for a frame that a hit does not need would cost it.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct CacheLine: Sendable {
    let hop: Load.Hop
    let load: Load
    let cache: SessionCache
    let key: CacheKey
    let query: CacheQuery

    /// Sessions that keep nothing find nothing.
    static func checkWithout(_ hop: Load.Hop, _ core: Core) throws(LoadError) {
        guard (hop.request.cachePolicy ?? core.configuration.cachePolicy) == .storedOnly else { return }
        throw .notInCache(hop.request, "no cache")
    }

    static func answer(_ hop: Load.Hop, for load: Load, _ cache: SessionCache) async throws(LoadError) -> any Exchange {
        if let foreign = cache.foreign { return try await answer(hop, for: load, try await cache.asked(for: hop, load, foreign)) }
        let line = try CacheLine(hop, load, cache)
        // Whatever cannot be answered goes straight on.
        if hop.request.method != .get || hop.request.body != nil { return try await line.other() }
        guard let variants = cache.storage.variantsNow(line.key) else { return try await line.look() }
        let plan = line.plan(variants)
        if case .stored(let stored, _) = plan, cache.storage.isInMemory(stored), let body = cache.storage.body(stored) {
            return line.serve(stored, body)
        }
        if case .network(_, nil) = plan, !cache.sharesEqualFetches, line.query.policy != .reloadIgnoringCaches {
            let begun = cache.now()
            let exchange = try await HTTPHandler.exchange(hop, for: load)
            guard let tee = line.tee(exchange, begun, nil) else { return exchange }
            return exchange.isRedirect ? try await line.readAhead(tee) : tee
        }
        return try await line.act(plan)
    }

    init(_ hop: Load.Hop, _ load: Load, _ cache: SessionCache) throws(LoadError) {
        switch hop.request.destination {
        case .success(let destination): key = CacheKey(destination.target)
        case .failure(let violation): throw LoadError(violation, .preparing).at(hop.request.url)
        }
        (self.hop, self.load, self.cache) = (hop, load, cache)
        query = CacheQuery(hop, load.core)
    }

    private func plan(_ variants: [StoredResponse]) -> CachePlan {
        let plan = CachePlan.make(query, variants, now: cache.now())
        if let tap = load.core.configuration.cacheTap { tap("\(plan)") }
        return plan
    }

    // MARK: What may block

    @inline(never)
    private func look() async throws(LoadError) -> any Exchange {
        try await act(plan(try await variants()))
    }

    private func variants() async throws(LoadError) -> [StoredResponse] {
        if let now = cache.storage.variantsNow(key) { return now }
        let found = await BlockingThreads.files.call(load) { [storage = cache.storage, key] in storage.variants(key) }
        guard let found else { throw stopped }
        return found
    }

    private func open(_ stored: StoredResponse) async throws(LoadError) -> (any StoredBody)? {
        if cache.storage.isInMemory(stored) { return cache.storage.body(stored) }
        let opened = await BlockingThreads.files.call(load) { [storage = cache.storage] in Opened(body: storage.body(stored)) }
        guard let opened else { throw stopped }
        return opened.body
    }

    private struct Opened: Sendable { let body: (any StoredBody)? }

    private var stopped: LoadError { LoadError(load.stopReason ?? .cancelled, phase: .preparing).at(hop.request.url) }

    // MARK: What the plan says

    @inline(never)
    private func act(_ plan: CachePlan) async throws(LoadError) -> any Exchange {
        switch plan {
        case .stored(let stored, _):
            guard let body = try await open(stored) else { return try await gone() }
            return serve(stored, body)
        case .storedAndRefresh(let stored, _):
            guard let body = try await open(stored) else { return try await gone() }
            refresh()
            return serve(stored, body)
        case .refused(let reason): throw .notInCache(hop.request, "\(reason)")
        case .network, .validate, .complete:
            if cache.sharesEqualFetches, !query.isHead { return try await share(plan) }
            return try await fetch(plan, nil)
        }
    }

    /// It was there a moment ago.
    private func gone() async throws(LoadError) -> any Exchange {
        if query.policy == .storedOnly || query.control.flags.contains(.onlyIfCached) { throw .notInCache(hop.request, "it is gone") }
        return try await fetch(.network(.gone), nil)
    }

    @inline(never)
    func fetch(_ plan: CachePlan, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        do throws(LoadError) {
            let exchange = try await fetched(plan, shared)
            // Who stores it says what came of that; of what nobody stores nothing comes.
            if let shared, !(exchange is CacheTee), !(exchange is JoinedExchange) { shared.settle(.unstorable) }
            return exchange
        } catch {
            shared?.settle(.failed)
            throw error
        }
    }

    private func fetched(_ plan: CachePlan, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        switch plan {
        case .validate(let stored, _): return try await validate(stored, shared)
        case .complete(let stored, _) where load.cacheDecision == nil: return try await complete(stored, shared)
        case .network(_, let stale?) where CachePlan.standsIn(stale, query, now: cache.now()): return try await tryFor(stale, shared)
        default: return try await load(hop, shared)
        }
    }

    /// From the server, all of it.
    private func load(_ asked: Load.Hop, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        var asked = asked
        if query.policy == .reloadIgnoringCaches {
            if !asked.request.headers.contains(.cacheControl) { asked.request.headers[.cacheControl] = "no-cache" }
            if !asked.request.headers.contains(.pragma) { asked.request.headers[.pragma] = "no-cache" }
        }
        let begun = cache.now()
        let exchange = try await HTTPHandler.exchange(asked, for: load)
        return try await keep(exchange, begun, shared)
    }

    /// Stores what may be stored, while it is read.
    private func keep(_ exchange: any NetworkExchange, _ begun: Double, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        guard let tee = tee(exchange, begun, shared) else { return exchange }
        return exchange.isRedirect ? try await readAhead(tee) : tee
    }

    /// Who follows a redirect reads nothing of it.
    @inline(never)
    private func readAhead(_ tee: CacheTee) async throws(LoadError) -> CacheTee {
        do throws(LoadError) { try await tee.readAhead(upTo: Self.mostOfRedirect) } catch { throw tee.failed(error) }
        return tee
    }

    private static let mostOfRedirect = 16 * 1024

    private func tee(_ exchange: any NetworkExchange, _ begun: Double, _ shared: SharedFetch?) -> CacheTee? {
        guard let head = exchange.head else { return nil }
        let facts = StoringPlan.Facts(
            requestTime: begun, responseTime: cache.now(), isDecoded: exchange.isDecoding,
            isAuthorized: load.isAuthorized || !load.core.configuration.tls.identities.isEmpty)
        guard let stored = StoringPlan.make(query, key, head, facts) else {
            // What must not be stored any more is not answered any more either.
            if head.status == .ok, !query.isConditional, CacheControl(head.headers).flags.contains(.noStore) { forget() }
            return nil
        }
        var length = exchange.expectedLength
        if case .beginning(_, let whole) = stored.extent { length = whole }
        if let decision = load.cacheDecision, stored.isWhole {
            return CacheTee(exchange, load, stored, cache, writer: nil, decision: decision, shared: shared)
        }
        guard let writer = cache.storage.write(stored, length: length) else { return nil }
        return CacheTee(exchange, load, stored, cache, writer: writer, decision: nil, shared: shared)
    }

    /// What was stored of the same is of no use any more.
    private func forget() {
        for variant in cache.storage.variantsNow(key) ?? [] where Varying.mismatch(variant, query) == nil { cache.storage.remove(variant) }
    }

    // MARK: What is given

    func serve(_ stored: StoredResponse, _ body: any StoredBody) -> CachedExchange {
        var headers = stored.headers
        // RFC 9111 §5.1: in place of what others have said of its age.
        let age = min(stored.knownRules.age(cache.now()), Double(CacheControl.mostSeconds))
        headers[.age] = "\(Int64(max(0, age)))"
        if query.isHead { return exchange(HTTPHead(stored, headers), EmptyBody.shared, 0..<0) }
        guard hop.request.headers.contains(.range), let part = stored.part(hop.request.headers) else {
            return exchange(HTTPHead(stored, headers), body, 0..<body.length)
        }
        // RFC 9110 §15.3.7.
        headers[.contentRange] = "\(ContentRange.part(part, of: body.length))"
        headers[.contentLength] = "\(part.count)"
        return exchange(HTTPHead(status: .partialContent, version: stored.version, headers: headers), body, part)
    }

    private func exchange(_ head: HTTPHead, _ body: any StoredBody, _ part: Range<Int64>) -> CachedExchange {
        CachedExchange(head, body, part: part, hop.request, load)
    }
}

extension CacheLine {
    // MARK: Conditions (RFC 9111 §4.3)

    private func validate(_ stored: StoredResponse, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        // Held from here on, whatever is removed meanwhile.
        guard let body = try await open(stored) else { return try await load(hop, shared) }
        var asked = hop
        asked.request.addCondition(of: stored)
        let begun = cache.now()
        let exchange: any NetworkExchange
        do throws(LoadError) { exchange = try await HTTPHandler.exchange(asked, for: load) } catch {
            guard standsIn(stored, for: error) else { throw error }
            return serve(stored, body)
        }
        guard let head = exchange.head else { return exchange }
        if head.status == .notModified {
            exchange.release()
            guard stored.isMeant(by: head) else {
                // It speaks of something else that we do not have.
                cache.storage.remove(stored)
                return try await load(hop, shared)
            }
            let updated = stored.updated(by: head, requestTime: begun, responseTime: cache.now())
            cache.storage.update(updated)
            shared?.settle(.stored)
            return serve(updated, body)
        }
        if head.status.isFailure, CachePlan.standsIn(stored, query, now: cache.now()) {
            exchange.release()
            return serve(stored, body)
        }
        if query.isHead { return headed(exchange, stored, begun) }
        return try await keep(exchange, begun, shared)
    }

    /// RFC 5861 §4 for what has no validator.
    private func tryFor(_ stored: StoredResponse, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        let begun = cache.now()
        let exchange: any NetworkExchange
        do throws(LoadError) { exchange = try await HTTPHandler.exchange(hop, for: load) } catch {
            guard standsIn(stored, for: error), let body = try await open(stored) else { throw error }
            return serve(stored, body)
        }
        if exchange.head?.status.isFailure == true, let body = try await open(stored) {
            exchange.release()
            return serve(stored, body)
        }
        if query.isHead { return headed(exchange, stored, begun) }
        return try await keep(exchange, begun, shared)
    }

    private func standsIn(_ stored: StoredResponse, for error: LoadError) -> Bool {
        guard load.stopReason == nil, error.party != .local, [.resolving, .connecting, .sending, .waiting].contains(error.phase)
        else { return false }
        return CachePlan.standsIn(stored, query, now: cache.now())
    }

    // MARK: What is only begun (RFC 9111 §3.4)

    private func complete(_ stored: StoredResponse, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        guard let tag = stored.strongTag, let body = try await open(stored), body.length > 0 else { return try await load(hop, shared) }
        var asked = hop
        asked.request.headers[.range] = "bytes=\(body.length)-"
        tag.append(to: &asked.request.headers, as: .ifRange)
        let begun = cache.now()
        let exchange = try await HTTPHandler.exchange(asked, for: load)
        guard let head = exchange.head else { return exchange }
        switch head.status {
        case .partialContent:
            let updated = stored.updated(by: head, requestTime: begun, responseTime: cache.now())
            guard let whole = stored.completed(by: head, at: body.length),
                let writer = cache.storage.append(to: updated)
            else { break }
            var complete = stored
            complete.extent = .beginning(body.length, of: whole)
            let tee = CacheTee(exchange, load, complete, cache, writer: writer, decision: nil, shared: shared)
            let answer = HTTPHead(updated, updated.headers)
            let first = CachedExchange(answer, body, part: 0..<body.length, hop.request, load, length: whole)
            return JoinedExchange(answer, first, tee, length: whole)
        case .rangeNotSatisfiable: break
        default: return try await keep(exchange, begun, shared)
        }
        // Another state, or one that cannot be put together: all of it, then.
        exchange.release()
        cache.storage.remove(stored)
        return try await load(hop, shared)
    }

    // MARK: Other methods

    @inline(never)
    func other() async throws(LoadError) -> any Exchange {
        guard query.isHead, query.request.body == nil else { return try await passing() }
        let plan = plan(try await variants())
        switch plan {
        case .network(_, let stale):
            let begun = cache.now()
            let exchange = try await HTTPHandler.exchange(hop, for: load)
            var known = stale
            if known == nil, case .success(let found)? = cache.storage.variantsNow(key).map({ CachePlan.select(query, $0) }) { known = found }
            return known.map { headed(exchange, $0, begun) } ?? exchange
        case .complete(let stored, _):
            // Whoever wants the head alone has all of it with a beginning, and asks for no rest.
            let begun = cache.now()
            return headed(try await HTTPHandler.exchange(hop, for: load), stored, begun)
        default: return try await act(plan)
        }
    }

    /// RFC 9111 §4.3.5: what a HEAD says of the stored answer to GET.
    private func headed(_ exchange: any NetworkExchange, _ stored: StoredResponse, _ begun: Double) -> any Exchange {
        guard let head = exchange.head, head.status == .ok, !query.isConditional else { return exchange }
        let length = head.headers[.contentLength]
        let isSame = stored.isMeant(by: head) && (length == nil || length == stored.headers[.contentLength])
            && (!stored.headers.contains(.etag) || head.headers.contains(.etag))
            && (!stored.headers.contains(.lastModified) || head.headers.contains(.lastModified))
        if isSame {
            cache.storage.update(stored.updated(by: head, requestTime: begun, responseTime: cache.now()))
        } else {
            cache.storage.remove(stored)
        }
        return exchange
    }

    /// What is not answered from a cache, and may make worthless what is there (RFC 9111 §4.4).
    private func passing() async throws(LoadError) -> any Exchange {
        if case .refused(let reason) = plan([]) { throw .notInCache(hop.request, "\(reason)") }
        let exchange = try await HTTPHandler.exchange(hop, for: load)
        if let head = exchange.head {
            for key in StoringPlan.invalidated(hop.request, head) { cache.storage.remove(key) }
        }
        return exchange
    }

    // MARK: Others who ask for the same

    /// Waits for who asked first, or is that one.
    @inline(never)
    private func share(_ first: CachePlan) async throws(LoadError) -> any Exchange {
        let question = SharedFetch.Question(
            key: key, headers: hop.request.headers, identity: query.identity, policy: query.policy, isForeign: hop.isForeign)
        var plan = first
        while true {
            // A stored response is what is waited for: who would not take it waits for nothing.
            if query.policy == .reload || query.policy == .reloadIgnoringCaches { return try await fetch(plan, nil) }
            switch cache.enter(question, mayLead: load.readsToEnd && !load.mayWaitForOthers) {
            case nil: return try await fetch(plan, nil)
            case .leader(let shared)?: return try await fetch(plan, shared)
            case .follower(let shared)?:
                guard let outcome = await shared.outcome(for: load) else { throw stopped }
                if case .unstorable = outcome { return try await fetch(plan, nil) }
                plan = self.plan(try await variants())
                switch plan {
                case .network, .validate, .complete: if case .stored = outcome { return try await fetch(plan, nil) }
                case .stored, .storedAndRefresh, .refused: return try await act(plan)
                }
            }
        }
    }

    // MARK: Refreshes (RFC 5861 §3)

    /// A load of its own: the session waits for it, or ends it.
    private func refresh() {
        guard cache.beginRefresh(key) else { return }
        var request = hop.request
        request.cachePolicy = .revalidate
        var asked = hop
        asked.request = request
        let refresh = RefreshLoad(load.core, request, nil, isHandle: false)
        refresh.startClock()
        guard load.core.registry.enter(refresh) else { return cache.endRefresh(key) }
        Task(priority: .utility) { [cache, key, asked] in
            await refresh.refresh(asked, cache)
            cache.endRefresh(key)
        }
    }
}

/// Fetches anew what has just been given out stale.
final class RefreshLoad: Load, @unchecked Sendable {
    override var cacheDecision: Decision<CachedResponse, CacheDecision>? { nil }

    func refresh(_ hop: Hop, _ cache: SessionCache) async {
        do throws(LoadError) {
            let exchange = try await CacheLine.answer(hop, for: self, cache)
            while try await exchange.next() != nil {}
            end(nil)
        } catch {
            end(error)
        }
    }
}

extension Request {
    /// RFC 9111 §4.3.1: by its tag, and by its date for those who know no tags.
    fileprivate mutating func addCondition(of stored: StoredResponse) {
        if let tag = EntityTag(in: stored.headers) { tag.append(to: &headers, as: .ifNoneMatch) }
        if stored.headers.date(.lastModified) != nil, let text = stored.headers.values(of: .lastModified).first {
            headers[.ifModifiedSince] = text
        }
    }
}

extension StoredResponse {
    /// How long all of it is, if an answer goes on where the beginning ends: the same state, and all the rest.
    fileprivate func completed(by head: HTTPHead, at offset: Int64) -> Int64? {
        guard head.headers.count(of: .contentRange) == 1, let text = head.headers[.contentRange],
            case .part(let range, let whole?)? = ContentRange(text), range.lowerBound == offset, range.upperBound == whole,
            !head.headers.contains(.contentEncoding), EntityTag(in: head.headers)?.matchesStrongly(strongTag) == true
        else { return nil }
        if case .beginning(_, let known?) = extent, known != whole { return nil }
        return whole
    }
}

extension NetworkExchange {
    fileprivate var isRedirect: Bool { head.map { $0.status.kind == .redirection && $0.headers.contains(.location) } ?? false }
}

extension HTTPHead {
    init(_ stored: StoredResponse, _ headers: Headers) {
        self.init(status: stored.status, version: stored.version, headers: headers)
    }
}

extension Status {
    /// What RFC 5861 §4 calls an error.
    fileprivate var isFailure: Bool { [500, 502, 503, 504].contains(code) }
}

extension LoadError {
    fileprivate static func notInCache(_ request: Request, _ why: String) -> LoadError {
        LoadError(.notInCache, phase: .preparing, party: .local, url: request.url, detail: why)
    }
}

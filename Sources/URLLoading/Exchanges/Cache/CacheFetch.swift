// SPDX-License-Identifier: Apache-2.0

// In this folder: the way of a load through the cache

// Carries out a cache plan: the path of a load through the cache, in front of HTTP. A fresh response in memory is
// served without suspension, and so is a small one that the kernel has in memory; every other case has its own
// function, whose frame would otherwise slow down the hit.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct CacheFetch: Sendable {
    let hop: Hop
    let load: LoadContext
    let cache: SessionCache
    let key: CacheKey
    let query: CacheQuery

    /// Without a cache, `.onlyIfCached` fails.
    @inline(never)
    static func checkWithout(_ hop: Hop, _ core: Core) throws(LoadError) {
        guard (hop.request.cachePolicy ?? core.requestDefaults.cachePolicy) == .onlyIfCached else { return }
        throw .notInCache(hop.request, "no cache")
    }

    static func answer(_ hop: Hop, for load: LoadContext, _ cache: SessionCache) async throws(LoadError) -> any Exchange
    {
        // A stored response cannot open a WebSocket, and the answer that opens one is never stored.
        if hop.purpose.skipsCache { return try await HTTPHandler.exchange(hop, for: load) }
        let cacheFetch = try CacheFetch(hop, load, cache)
        let cache = cacheFetch.cache
        // Requests that a cache cannot answer skip the lookup.
        if hop.request.method != .get || hop.request.body != nil { return try await cacheFetch.other() }
        guard let variants = cache.storage.variantsNow(cacheFetch.key) else { return try await cacheFetch.lookUp() }
        let plan = cacheFetch.plan(variants)
        if case .stored(let stored, _) = plan, let body = cache.storage.bodyNow(stored) {
            return cacheFetch.serve(stored, body)
        }
        if case .network(_, let stale) = plan, !cache.coalescesIdenticalRequests,
            !cacheFetch.mayServe(stale)
        {
            let removals = cache.storage.removals.count(cacheFetch.key)
            let exchange = try await HTTPHandler.exchange(hop, for: load)
            return cacheFetch.keep(exchange, removals, nil)
        }
        return try await cacheFetch.act(plan)
    }

    @inline(never)
    init(_ hop: Hop, _ load: LoadContext, _ cache: SessionCache) throws(LoadError) {
        switch hop.request.destination {
        case .success(let destination): key = destination.cacheKey
        case .failure(let violation): throw LoadError(violation, .preparing).at(hop.request.url)
        }
        query = CacheQuery(hop, load)
        (self.hop, self.load, self.cache) = (hop, load, cache.cache(for: query, load))
    }

    func plan(_ variants: [StoredResponse]) -> CachePlan {
        let plan = CachePlan.make(query, variants, now: cache.now())
        if let tap = load.core.configuration.cacheTap { tap("\(plan)") }
        return plan
    }

    // MARK: Steps that may block

    @inline(never)
    private func lookUp() async throws(LoadError) -> any Exchange {
        try await act(plan(try await variants()))
    }

    /// - Parameter again: another load may have stored a response since the last look-up.
    func variants(again: Bool = false) async throws(LoadError) -> [StoredResponse] {
        if let asked = cache.asked { return try await asked.find(key, again: again) }
        if let now = cache.storage.variantsNow(key) { return now }
        let found = await BlockingThreads.files.call(load.handle) { [storage = cache.storage, key] in
            storage.variants(key)
        }
        guard let found else { throw stopped }
        return found
    }

    func open(_ stored: StoredResponse) async throws(LoadError) -> (any StoredBody)? {
        if let body = cache.storage.bodyNow(stored) { return body }
        let start = query.isHead ? nil : stored.part(hop.request.headers)?.lowerBound ?? 0
        let most = load.consumer == .collector ? Self.maximumCollectedSize : 0
        let opened = await BlockingThreads.files.call(load.handle) { [storage = cache.storage] in
            let body = storage.body(stored)
            guard let start else { return Opened(body: body) }
            return Opened(body: body?.begun(at: start, wholeUpTo: most))
        }
        guard let opened else { throw stopped }
        return opened.body
    }

    /// A collected body up to this length is read completely before the response is delivered, so that any damage leads
    /// to a new load.
    private static let maximumCollectedSize: Int64 = 16 << 20

    private struct Opened: Sendable { let body: (any StoredBody)? }

    var stopped: LoadError { LoadError(load.stopReason ?? .cancelled, phase: .preparing).at(hop.request.url) }

    // MARK: Carrying out the plan

    @inline(never)
    func act(_ plan: CachePlan) async throws(LoadError) -> any Exchange {
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
            if cache.coalescesIdenticalRequests, !query.isHead { return try await share(plan) }
            return try await fetch(plan, nil)
        }
    }

    /// Handles a stored response that was removed after the plan was made.
    private func gone() async throws(LoadError) -> any Exchange {
        if query.policy == .onlyIfCached || query.control.flags.contains(.onlyIfCached) {
            throw .notInCache(hop.request, "the stored response was removed")
        }
        return try await fetch(.network(.gone), nil)
    }

    @inline(never)
    func fetch(_ plan: CachePlan, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        do throws(LoadError) {
            let exchange = try await fetched(plan, shared)
            // A tee settles the shared fetch itself; any other exchange stores nothing.
            if let shared, !(exchange is CacheTee), !(exchange is ConcatenatedExchange) { shared.settle(.unstorable) }
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
        case .network(_, let stale?) where mayServe(stale): return try await loadOrServeStale(stale, shared)
        default: return try await load(hop, shared)
        }
    }

    /// Whether a stale response may stand in if the server fails.
    private func mayServe(_ stale: StoredResponse?) -> Bool {
        stale.map { CachePlan.mayServeStale($0, query, now: cache.now()) } ?? false
    }

    /// Loads the complete response from the server.
    func load(_ asked: Hop, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        let removals = cache.storage.removals.count(key)
        let exchange = try await HTTPHandler.exchange(asked, for: load)
        return keep(exchange, removals, shared)
    }

    /// Stores a storable response while the caller reads it.
    /// - Parameter removals: the number of removals of the key before the request.
    func keep(_ exchange: any NetworkExchange, _ removals: Int, _ shared: SharedFetch?) -> any Exchange {
        tee(exchange, removals, shared) ?? exchange
    }

    /// The digest of the certificate by which an https server was trusted; nil for http.
    func server(of exchange: any NetworkExchange) -> String? {
        key.text.hasPrefix("https:") ? exchange.serverDigest : nil
    }

    /// Whether an exchange's server has the certificate that the stored response came with; true for responses that a
    /// program stored itself.
    func isServer(of stored: StoredResponse, _ exchange: any NetworkExchange) -> Bool {
        guard let known = stored.varying[CacheOwner.server] ?? nil else { return true }
        return known == server(of: exchange)
    }

    @inline(never)
    private func tee(_ exchange: any NetworkExchange, _ removals: Int, _ shared: SharedFetch?) -> CacheTee? {
        // Do not store the response if its key was invalidated while it was in flight.
        guard let head = exchange.head, removals == cache.storage.removals.count(key) else { return nil }
        guard StoringPlan.isUsable(head, for: query) || load.cacheDecision != nil else {
            // A head with faults may lack a field that could not be read.
            if head.tolerated.isEmpty, !exchange.isForced, StoringPlan.endsUse(head, for: query) { forget(after: head) }
            return nil
        }
        let provenance = exchange.provenance
        guard !provenance.isForced, !query.mayBeCut(provenance) else { return nil }
        let facts = StoringPlan.Facts(
            requestTime: exchange.requestTime, responseTime: cache.now(), isDecoded: exchange.isDecoding,
            provenance: provenance)
        guard var stored = StoringPlan.make(query, key, head, facts) else {
            if StoringPlan.endsUse(head, for: query) { forget(after: head) }
            return nil
        }
        if let asked = cache.asked {
            guard let admitted = asked.admitted(stored, head, since: removals) else { return nil }
            stored = admitted
        }
        var length = exchange.expectedLength
        if case .beginning(_, let whole) = stored.extent { length = whole }
        if let decision = load.cacheDecision {
            // A decision is not asked about partial responses, so none is stored.
            guard stored.isWhole else { return nil }
            return CacheTee(
                exchange, for: load, .init(stored: stored, cache: cache, decision: decision, shared: shared))
        }
        guard let writer = cache.storage.write(stored, length: length) else {
            load.noteRefusal(of: stored, by: cache.storage)
            return nil
        }
        return CacheTee(exchange, for: load, .init(stored: stored, cache: cache, writer: writer, shared: shared))
    }

    /// Stores the response of a custom handler if the handler allows it (``Response/storagePolicy``). A stored response
    /// does not bypass the handler: the handler is asked first and may serve it.
    /// - Parameter gathered: the marks of every answer that the handlers of this request received; a response made of
    ///   those answers has the same owners.
    static func storeHandlerResponse(
        _ exchange: any Exchange, _ hop: Hop, for load: LoadContext, _ gathered: CollectedMarks
    ) -> any Exchange {
        let response = exchange.response
        guard let policy = response.storagePolicy, policy != .notAllowed, exchange.redirect == nil,
            let head = exchange.head, head.status.kind != .redirection, let whole = load.core.cache,
            let cacheFetch = try? CacheFetch(hop, load, whole)
        else { return exchange }
        let cache = cacheFetch.cache
        let (now, removals) = (cache.now(), cache.storage.removals.count(cacheFetch.key))
        let given = gathered.marks
        var marks = given
        marks.unite(AnswerMarks(response))
        let facts = StoringPlan.Facts(requestTime: now, responseTime: now)
        guard var stored = StoringPlan.make(cacheFetch.query, cacheFetch.key, head, facts), stored.isWhole,
            stored.addOwner(marks)
        else { return exchange }
        if let asked = cache.asked {
            guard let admitted = asked.admitted(stored, head, since: removals) else { return exchange }
            stored = admitted
        }
        if policy == .allowedInMemoryOnly { stored.isMemoryOnly = true }
        let decision = load.cacheDecision
        let writer = decision == nil ? cache.storage.write(stored, length: exchange.expectedLength) : nil
        guard writer != nil || decision != nil else {
            load.noteRefusal(of: stored, by: cache.storage)
            return exchange
        }
        return CacheTee(
            exchange, for: load,
            .init(
                stored: stored, cache: cache, writer: writer, decision: decision,
                isStillMarked: { gathered.marks == given }))
    }

    /// Removes the stored variants that this request matches.
    private func forget(after head: HTTPHead) {
        guard let variants = cache.storage.variantsNow(key) else {
            // Finding the variant would need a disk access, so all variants of the key are removed; each can be loaded
            // again. What lies outside was not found, or not asked: it is removed only for what all users get.
            let isForAll = query.identity == nil && CacheControl(head.headers).flags.contains(.noStore)
            return cache.asked == nil || isForAll ? cache.storage.remove(key) : ()
        }
        for variant in variants where Varying.mismatch(variant, query) == nil { cache.storage.remove(variant) }
    }

    // MARK: Serving

    /// Serves a stored response, or the requested part of it.
    /// - Parameters:
    ///   - newer: the owner of an answer that updated the fields, if that owner may be another.
    ///   - violations: the faults of that answer.
    func serve(
        _ stored: StoredResponse, _ body: any StoredBody, besides newer: AnswerMarks? = nil,
        _ violations: WireViolations = WireViolations()
    ) -> CachedExchange {
        // RFC 9111 §5.1: replaces the Age values of other caches.
        let age = min(stored.age(cache.now()), Double(CacheControl.maximumSeconds))
        var headers = stored.headers.replacing(.age, with: Int64(max(0, age)))
        func exchange(_ head: HTTPHead, _ body: any StoredBody, _ part: Range<Int64>) -> CachedExchange {
            CachedExchange(
                .init(head: head, body: body, stored: stored, newer: newer, part: part), to: hop.request, for: load)
        }
        if query.isHead { return exchange(HTTPHead(stored, headers, violations), EmptyBody.shared, 0..<0) }
        guard query.hasFields, hop.request.headers.contains(.range), let part = stored.part(hop.request.headers) else {
            return exchange(HTTPHead(stored, headers, violations), body, 0..<body.length)
        }
        // RFC 9110 §15.3.7.
        headers[.contentRange] = "\(ContentRange.part(part, of: body.length))"
        headers[.contentLength] = "\(part.count)"
        // RFC 9530 §2: it is the digest of the whole content.
        headers.remove(.contentDigest)
        let head = HTTPHead(
            status: .partialContent, version: stored.version, headers: headers, tolerated: violations)
        return exchange(head, body, part)
    }
}

extension HTTPHead {
    init(_ stored: StoredResponse, _ headers: Headers, _ violations: WireViolations = WireViolations()) {
        self.init(status: stored.status, version: stored.version, headers: headers, tolerated: violations)
    }
}

extension LoadError {
    static func notInCache(_ request: Request, _ why: String) -> LoadError {
        LoadError(.notInCache, phase: .preparing, party: .local, url: request.url, detail: why)
    }
}

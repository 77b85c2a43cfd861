// http and https: a request made ready, one exchange on a connection, sent again on a fresh connection
// if an idle one turned out to be stale.

import URLLoadingWire

struct HTTPHandler: DirectHandler {
    /// The last in the line: what it cannot load it refuses in its own words.
    func canHandle(_ request: Request) -> Bool { true }

    func exchange(_ hop: Load.Hop, for load: Load) async throws(LoadError) -> any Exchange {
        if let cache = load.core.cache { return try await CacheLine.answer(hop, for: load, cache) }
        try CacheLine.checkWithout(hop, load.core)
        return try await Self.exchange(hop, for: load)
    }

    /// - Parameter attempt: which of the tries that a policy wants; 0 asks whether there is one.
    static func exchange(_ hop: Load.Hop, for load: Load, attempt: Int = 0) async throws(LoadError)
        -> any NetworkExchange
    {
        if attempt == 0, hop.request.hasRetryPolicy || load.core.configuration.retryPolicy != nil {
            return try await tries(hop, for: load)
        }
        // Of a transaction that has no exchange yet.
        var record: TransactionRecord?
        do throws(LoadError) {
            var retries = RetryPlan(hop.request, isRepeated: attempt > 1)
            var prepared = try await prepare(hop, for: load, retries)
            var talk = load.core.authenticator.isInUse ? try await talk(hop, for: load, prepared) : nil
            // The least number of a connection made since this request had its last.
            var firstFresh = Int.min
            while true {
                if let talk { try await talk.authorize(&prepared, load) }
                if let cookies = load.core.cookies {
                    if !cookies.store.isReady { await cookies.store.load(for: load) }
                    cookies.attach(to: &prepared)
                }
                record = load.emission?.begin(prepared)
                let least = retries.wantsFresh ? firstFresh : nil
                let exchange = try await lease(prepared, for: load, since: least, record, hop, &talk)
                if !retries.wantsFresh { firstFresh = Connector.next }
                record = nil
                if let error = await failure(of: exchange, prepared) {
                    let isStale = exchange.failedStale
                    let isUnprocessed = exchange.failedUnprocessed || exchange.fallsBack()
                    exchange.note(error)
                    exchange.release()
                    guard retries.retry(after: error, isStale: isStale, isUnprocessed: isUnprocessed) else {
                        throw error
                    }
                } else {
                    let status = exchange.head?.status
                    if let head = exchange.head { remember(head, of: exchange, to: prepared, for: load) }
                    if !retries.retry(after: status, prepared, isShared: exchange.isShared) {
                        guard talk != nil || exchange.isChallenge,
                            try await answers(exchange, prepared, hop, for: load, &talk)
                        else { return exchange }
                        retries.isChallenged = true
                    }
                    // Before its place is given back.
                    if status == .misdirectedRequest { exchange.leaveConnection() }
                    exchange.release()
                }
                if hop.request.body != nil { prepared = try await prepare(hop, for: load, retries) }
            }
        } catch {
            if let record { load.emission?.add(record, error) }
            throw error.at(hop.request.url)
        }
    }

    /// Keeps what an answer wants kept, be it the last or one on the way there.
    private static func remember(
        _ head: HTTPHead, of exchange: any NetworkExchange, to request: PreparedRequest, for load: Load
    ) {
        load.core.cookies?.receive(head, to: request)
        load.core.strictTransport?.receive(head, from: request.destination, isForced: exchange.isForced)
    }

    /// What is sent once. A body is made anew each time.
    private static func prepare(_ hop: Load.Hop, for load: Load, _ retries: RetryPlan) async throws(LoadError)
        -> PreparedRequest
    {
        let defaults = load.core.defaultFields
        guard let body = hop.request.body else {
            return try PreparedRequest(
                hop.request, defaults, isForeign: hop.isForeign, cachePolicy: cachePolicy(hop, load))
        }
        return try await prepare(body, hop, for: load, retries)
    }

    /// The policy that caches on the way are told. A background refresh (RFC 5861 §3) tells them nothing: the caller
    /// did not ask for its revalidation.
    private static func cachePolicy(_ hop: Load.Hop, _ load: Load) -> Request.CachePolicy {
        let policy = hop.request.cachePolicy ?? load.core.configuration.cachePolicy
        return policy == .revalidate && load is RefreshLoad ? .useProtocol : policy
    }

    @inline(never)
    private static func prepare(
        _ body: RequestBody, _ hop: Load.Hop, for load: Load, _ retries: RetryPlan
    ) async throws(LoadError) -> PreparedRequest {
        var body = body
        if case .demanded = body.content {
            try await connect(hop, for: load)
            body = try await load.demandBody(hop, retries.cause)
        }
        var prepared = try PreparedRequest(
            hop.request, load.core.defaultFields, isForeign: hop.isForeign, contentType: body.contentType,
            cachePolicy: cachePolicy(hop, load))
        if retries.dropsExpectation { prepared.dropExpectation() }
        prepared.body = try await OutgoingBody.open(body, load)
        try load.willSend(&prepared)
        return prepared
    }

    /// Whom to trust is asked before what to send (checklist 45): the connection is made first, and lies in the pool meanwhile.
    private static func connect(_ hop: Load.Hop, for load: Load) async throws(LoadError) {
        guard load.handshakeDecision != nil, !load.takesUpgrade,
            case .success(let destination) = hop.request.destination, destination.target.origin.isSecure
        else { return }
        var request = hop.request
        request.body = nil
        let prepared = try PreparedRequest(request, load.core.defaultFields, isForeign: hop.isForeign)
        var talk = load.core.authenticator.isInUse ? try await talk(hop, for: load, prepared) : nil
        try await lease(prepared, for: load, since: nil, nil, hop, &talk).release()
    }

    /// - Parameter first: the least number that the connection may have, after an idle one turned out to be stale.
    @inline(never)
    private static func lease(
        _ request: PreparedRequest, for load: Load, since first: Int?, _ record: TransactionRecord?, _ hop: Load.Hop,
        _ talk: inout AuthenticationTalk?
    ) async throws(LoadError) -> any NetworkExchange {
        let proxies = load.core.proxies
        let route = request.destination.route
        guard !proxies.isDirect else { return try await lease(request, over: route, for: load, since: first, record) }
        return try await proxies.first(to: route.origin, request.request.url, for: load) { (way) throws(LoadError) in
            let way = way.authorized(by: request.proxyAuthorization)
            return try await lease(request, route.origin, through: way, for: load, since: first, record, hop, &talk)
        }
    }

    private static func lease(
        _ request: PreparedRequest, over route: Route, for load: Load, since first: Int?, _ record: TransactionRecord?
    ) async throws(LoadError) -> any NetworkExchange {
        let pool = load.core.pool
        let configuration = load.core.configuration
        var route = route
        if load.takesUpgrade { route.isTunneled = route.way.forwards && !route.origin.isSecure }
        if route.isProven {
            route.trust = Route.Trust(
                generation: pool.connector.secure.generation, group: load.handshakeDecision?.group ?? 0)
        }
        // What opens a connection opens none that a proxy shares among its clients (RFC 4559 §6).
        if let identity = request.identity, identity.login.mayPass(route.forwarder) { route.identity = identity }
        let access = NetworkAccess(request.request, configuration)
        route.traffic = access.traffic
        let leased: LeasedConnection
        if load.takesUpgrade, first == nil, let tunnel = pool.leaseForTunnel(route) {
            leased = tunnel
        } else if access.needsPath {
            leased = try await leaseWaiting(
                route, for: load, since: first, over: access, record, inHTTP1: request.asksUpgrade)
        } else {
            leased = try await pool.lease(route, load, since: first, over: access, record, inHTTP1: request.asksUpgrade)
        }
        // One that was kept is judged by what holds now; a new one was, when it was made.
        switch leased {
        case .own(let connection):
            if connection.exchanges > 0,
                let refusal = access.refusal(of: connection.transport, configuration.networkMonitor)
            {
                pool.giveBack(connection, reusable: connection.isReusable)
                throw refusal
            }
            return HTTPExchange(connection, load, request.request.url, record)
        case .shared(let connection):
            if connection.places.streamsBegun > 0,
                let refusal = access.refusal(of: connection.transport, configuration.networkMonitor)
            {
                pool.leave(connection)
                throw refusal
            }
            return HTTP2Exchange(connection, load, request, over: route, record)
        }
    }

    /// One that a caller's decision may open goes on from there; see `HTTPHandler+Authentication`.
    static func lease(
        _ request: PreparedRequest, _ origin: Origin, through way: ProxyChain, for load: Load, since first: Int?,
        _ record: TransactionRecord?, _ hop: Load.Hop, _ talk: inout AuthenticationTalk?
    ) async throws(LoadError) -> any NetworkExchange {
        defer { load.forgetRefusedTunnel() }
        let isMoved = load.core.configuration.addressOverrides.moves(origin)
        while true {
            let way = talk?.opened(way) ?? way
            do throws(LoadError) {
                return try await lease(
                    request, over: Route(origin: origin, way: way, isMoved: isMoved), for: load, since: first, record)
            } catch {
                guard try await answers(error, way, request, hop, for: load, &talk) else { throw error }
            }
        }
    }

    /// Sends the request and waits for the head of its answer; `nil` if it came.
    @inline(never)
    private static func failure(of exchange: any NetworkExchange, _ request: PreparedRequest) async -> LoadError? {
        do throws(LoadError) { try await exchange.start(request) } catch { return error }
        return nil
    }
}

// http and https: a request made ready, one exchange on a connection, sent again on a fresh connection
// if an idle one turned out to be stale.

import URLLoadingWire

struct HTTPHandler: DirectHandler {
    /// The last in the line: what it cannot load it refuses in its own words.
    func canHandle(_ request: Request) -> Bool { true }

    func exchange(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        if let cache = load.core.cache { return try await CacheLine.answer(hop, for: load, cache) }
        try CacheLine.checkWithout(hop, load.core)
        return try await Self.exchange(hop, for: load)
    }

    /// - Parameter attempt: which of the tries that a policy wants; 0 asks whether there is one.
    static func exchange(_ hop: Hop, for load: LoadContext, attempt: Int = 0) async throws(LoadError)
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
                    if !cookies.store.isReady { await cookies.store.load(for: load.handle) }
                    cookies.attach(to: &prepared)
                }
                record = load.events?.begin(prepared)
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
            if let record { load.events?.add(record, error) }
            throw error.at(hop.request.url)
        }
    }

    /// Keeps what an answer wants kept, be it the last or one on the way there.
    private static func remember(
        _ head: HTTPHead, of exchange: any NetworkExchange, to request: PreparedRequest, for load: LoadContext
    ) {
        load.core.cookies?.receive(head, to: request)
        load.core.strictTransport?.receive(head, from: request.destination, isForced: exchange.isForced)
    }

    /// What is sent once. A body is made anew each time.
    private static func prepare(_ hop: Hop, for load: LoadContext, _ retries: RetryPlan) async throws(LoadError)
        -> PreparedRequest
    {
        let defaults = load.core.defaultFields
        guard let body = hop.request.body else {
            var prepared = try PreparedRequest(
                hop.request, defaults, isForeign: hop.isForeign, cachePolicy: cachePolicy(hop, load))
            prepared.webSocket = hop.purpose.webSocketOffer
            return prepared
        }
        return try await prepare(body, hop, for: load, retries)
    }

    /// The policy that caches on the way are told. A background refresh (RFC 5861 §3) tells them nothing: the caller
    /// did not ask for its revalidation.
    private static func cachePolicy(_ hop: Hop, _ load: LoadContext) -> Request.CachePolicy {
        let policy = hop.request.cachePolicy ?? load.core.configuration.cachePolicy
        return policy == .revalidate && hop.purpose.isRefresh ? .useProtocol : policy
    }

    @inline(never)
    private static func prepare(
        _ body: RequestBody, _ hop: Hop, for load: LoadContext, _ retries: RetryPlan
    ) async throws(LoadError) -> PreparedRequest {
        var body = body
        if case .provided = body.content {
            try await connect(hop, for: load)
            body = try await load.demandBody(hop, retries.cause)
        }
        var prepared = try PreparedRequest(
            hop.request, load.core.defaultFields, isForeign: hop.isForeign, contentType: body.contentType,
            cachePolicy: cachePolicy(hop, load))
        if retries.dropsExpectation { prepared.dropExpectation() }
        prepared.body = try await OutgoingBody.open(body, load.handle)
        if case .resumableUpload(let steps) = hop.purpose { try steps.complete(&prepared) }
        return prepared
    }

    /// Whom to trust is asked before what to send (checklist 45): the connection is made first, and lies in the pool meanwhile.
    private static func connect(_ hop: Hop, for load: LoadContext) async throws(LoadError) {
        guard load.handshakeDecision != nil, !hop.purpose.opensWebSocket,
            case .success(let destination) = hop.request.destination, destination.target.origin.isSecure
        else { return }
        var request = hop.request
        request.body = nil
        let prepared = try PreparedRequest(request, load.core.defaultFields, isForeign: hop.isForeign)
        var talk = load.core.authenticator.isInUse ? try await talk(hop, for: load, prepared) : nil
        try await lease(prepared, for: load, since: nil, nil, hop, &talk).release()
    }

    /// Leases a connection over the first usable way.
    /// - Parameter first: the least number that the connection may have, after an idle one turned out to be stale.
    @inline(never)
    private static func lease(
        _ request: PreparedRequest, for load: LoadContext, since first: Int?, _ record: TransactionRecord?, _ hop: Hop,
        _ talk: inout AuthenticationTalk?
    ) async throws(LoadError) -> any NetworkExchange {
        let proxies = load.core.proxies
        let route = request.destination.route
        let access = NetworkAccess(request.request, load.core.configuration)
        var wanted = ConnectionRequest(client: load, access: access, record: record)
        guard !proxies.isDirect else { return try await lease(request, over: route, wanted, since: first, for: load) }
        wanted.refused = RefusedTunnels()
        return try await proxies.first(to: route.origin, request.request.url, for: load.handle) {
            (way) throws(LoadError) in
            let way = way.authorized(by: request.proxyAuthorization)
            return try await lease(request, through: way, wanted, since: first, for: load, hop, &talk)
        }
    }

    private static func lease(
        _ request: PreparedRequest, over route: Route, _ wanted: ConnectionRequest, since first: Int?,
        for load: LoadContext
    ) async throws(LoadError) -> any NetworkExchange {
        let pool = load.core.pool
        let route = complete(route, for: request, load, wanted.access)
        let leased: LeasedConnection
        if request.webSocket != nil, first == nil, let tunnel = pool.leaseForTunnel(route) {
            leased = tunnel
        } else if wanted.access.needsPath {
            leased = try await leaseWaiting(route, wanted, since: first, for: load, inHTTP1: request.asksUpgrade)
        } else {
            leased = try await pool.lease(route, for: wanted, since: first, inHTTP1: request.asksUpgrade)
        }
        let monitor = load.core.configuration.networkMonitor
        // A kept connection is judged by what holds now; a new one was judged when it was made.
        switch leased {
        case .own(let connection):
            if connection.exchanges > 0, let refusal = wanted.access.refusal(of: connection.transport, monitor) {
                pool.giveBack(connection, reusable: connection.isReusable)
                throw refusal
            }
            return HTTPExchange(connection, load, request.request.url, wanted.record)
        case .shared(let connection):
            if connection.places.streamsBegun > 0,
                let refusal = wanted.access.refusal(of: connection.transport, monitor)
            {
                pool.leave(connection)
                throw refusal
            }
            return HTTP2Exchange(connection, load, request, over: route, wanted.record)
        }
    }

    /// The route with everything that tells apart whose connections may be used.
    private static func complete(
        _ route: Route, for request: PreparedRequest, _ load: LoadContext, _ access: NetworkAccess
    ) -> Route {
        var route = route
        if request.webSocket != nil { route.isTunneled = route.way.forwards && !route.origin.isSecure }
        if route.isProven {
            route.trust = Route.Trust(
                generation: load.core.pool.connector.secure.generation, group: load.handshakeDecision?.group ?? 0)
        }
        // A login that opens a connection opens none that a proxy shares among its clients (RFC 4559 §6).
        if let identity = request.identity, identity.login.mayPass(route.forwarder) { route.identity = identity }
        route.traffic = access.traffic
        return route
    }

    /// Over proxies. An attempt that a proxy refuses is repeated with the credentials of a decision; see
    /// `HTTPHandler+Authentication`.
    private static func lease(
        _ request: PreparedRequest, through way: ProxyChain, _ wanted: ConnectionRequest, since first: Int?,
        for load: LoadContext, _ hop: Hop, _ talk: inout AuthenticationTalk?
    ) async throws(LoadError) -> any NetworkExchange {
        defer { wanted.refused?.forget() }
        let origin = request.destination.route.origin
        let isMoved = load.core.configuration.addressOverrides.moves(origin)
        while true {
            let way = talk?.opened(way) ?? way
            do throws(LoadError) {
                let route = Route(origin: origin, way: way, isMoved: isMoved)
                return try await lease(request, over: route, wanted, since: first, for: load)
            } catch {
                let refusal = ProxyRefusal(error: error, way: way, binding: wanted.refused?.binding)
                guard try await answers(refusal, request, hop, for: load, &talk) else { throw error }
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

// SPDX-License-Identifier: Apache-2.0

// In this folder: one request over HTTP/1.1 or HTTP/2, repeated where it may be

// Loads http and https: prepares the request, runs one exchange on a connection, and repeats it on a fresh connection
// if an idle one was stale.

import URLLoadingIO
import URLLoadingWire

struct HTTPHandler: Sendable {
    /// - Parameter attempt: the number of the attempt under a retry policy; 0 if the policy was not consulted yet.
    static func exchange(_ hop: Hop, for load: LoadContext, attempt: Int = 0) async throws(LoadError)
        -> any NetworkExchange
    {
        if attempt == 0, hop.request.hasRetryPolicy || load.core.requestDefaults.hasRetryPolicy {
            return try await runAttempts(hop, for: load)
        }
        var hop = hop
        // The record of a transaction that has no exchange yet.
        var record: TransactionRecord?
        do throws(LoadError) {
            var retries = RetryPlan(hop.request, isRepeated: attempt > 1)
            var authentication: RequestAuthentication?
            // Lowest connection id that counts as fresh after a stale-connection retry.
            var firstFreshID = Int.min
            while true {
                if hop.calls?.makesFields == true, retries.cause != nil { try await renewFields(of: &hop, for: load) }
                let request = try await prepare(hop, for: load, retries, &authentication)
                record = load.events?.begin(request)
                let exchange: any NetworkExchange
                if !retries.wantsFresh, let idle = try leaseIdle(request, for: load, record) {
                    exchange = idle
                } else {
                    let least = retries.wantsFresh ? firstFreshID : nil
                    exchange = try await lease(request, for: load, since: least, record, hop, &authentication)
                }
                if !retries.wantsFresh { firstFreshID = ConnectionIdentifier.next }
                record = nil
                if let error = await failure(of: exchange, request, hop, retries.cause, for: load) {
                    try release(exchange, after: error, &retries)
                    if retries.pause > 0 { try await pause(retries, for: load) }
                } else {
                    let mustRepeat = answered(exchange, request, load, &retries)
                    if !mustRepeat {
                        guard authentication != nil || exchange.isChallenge,
                            try await answers(exchange, request, hop, for: load, &authentication)
                        else { return exchange }
                        retries.isChallenged = true
                    }
                    leave(exchange)
                }
            }
        } catch {
            if let record { load.events?.add(record, error) }
            throw explained(error, hop, load)
        }
    }

    /// Makes the fields of a repeated request anew, as a handler asks for.
    @inline(never)  // One frame less in the common case.
    private static func renewFields(of hop: inout Hop, for load: LoadContext) async throws(LoadError) {
        guard let calls = hop.calls else { return }
        let request = hop.request
        let ending = await CallbackOutcome.run(load.handle) { () -> Result<Headers, any Error> in
            do { return .success(try await calls.fields(for: request)) } catch { return .failure(error) }
        }
        switch ending {
        case .answered(.success(let fields)): hop.request.headers = fields
        case .answered(.failure(let error)): throw LoadError(handler: error, phase: .preparing)
        case .stopped, .late: throw LoadError(load.stopReason ?? .cancelled, phase: .preparing)
        }
    }

    // The functions below that do not wait are not inlined, because whatever an async function calls in place becomes a
    // part of its frame, and a load keeps its frames while it waits (docs/internals/scale.md).

    /// Notes what a response reveals of its server. Returns whether its status demands that the request is repeated.
    @inline(never)
    private static func answered(
        _ exchange: any NetworkExchange, _ request: PreparedRequest, _ load: LoadContext, _ retries: inout RetryPlan
    ) -> Bool {
        let head = exchange.head
        if let head { remember(head, of: exchange, to: request, for: load) }
        return retries.retry(after: head?.status, request, isShared: exchange.isShared, wasEarly: exchange.wasEarly)
    }

    /// Releases the exchange of a request that failed.
    /// - Throws: the error, unless the request is to be repeated.
    @inline(never)
    private static func release(
        _ exchange: any NetworkExchange, after error: LoadError, _ retries: inout RetryPlan
    ) throws(LoadError) {
        let isStale = exchange.failedStale
        let refusal = exchange.refusal ?? (exchange.fallsBack() ? .alone : nil)
        exchange.note(error)
        exchange.release()
        guard retries.retry(after: error, isStale: isStale, refusal: refusal) else { throw error }
    }

    /// Waits before a request is repeated that the server has refused repeatedly.
    @inline(never)  // One frame less in the common case.
    private static func pause(_ retries: RetryPlan, for load: LoadContext) async throws(LoadError) {
        // A random half, so that requests that were refused together do not come back together.
        let wait = Int64.random(in: retries.pause / 2...retries.pause)
        do throws(IOFailure) { try await load.clock.sleep(until: load.clock.now() &+ wait, load.handle) } catch {
            throw LoadError(error, .waiting)
        }
    }

    /// Releases the exchange of a response after which the request is repeated.
    @inline(never)
    private static func leave(_ exchange: any NetworkExchange) {
        // Before the release, which would offer the connection to the next request.
        if exchange.status == .misdirectedRequest { exchange.leaveConnection() }
        exchange.release()
    }

    /// Stores the cookies of a response, be it final or a challenge or redirect.
    private static func remember(
        _ head: HTTPHead, of exchange: any NetworkExchange, to request: PreparedRequest, for load: LoadContext
    ) {
        load.core.cookies?.receive(head, to: request)
        load.core.strictTransport?.receive(
            head, from: request.destination,
            isProven: exchange.isProven && head.tolerated.isEmpty)
        #if HTTP3
        load.core.pool.http3.learn(head, from: request.destination.target.origin, isProven: exchange.isProven)
        #endif
    }

    /// Prepares the request for one attempt: with a body that is opened anew, credentials and cookies. Returns without
    /// suspending if the request has no body, the session has no credentials, and the cookie store is loaded.
    @inline(never)
    private static func prepare(
        _ hop: Hop, for load: LoadContext, _ retries: RetryPlan, _ authentication: inout RequestAuthentication?
    ) async throws(LoadError) -> PreparedRequest {
        let core = load.core
        guard hop.request.body == nil, authentication == nil, !core.authenticator.isInUse,
            core.cookies?.store.isReady != false
        else { return try await prepareWaiting(hop, for: load, retries, &authentication) }
        return try prepareAtOnce(hop, for: load, isFirst: retries.cause == nil)
    }

    /// Prepares a request that has no body and no credentials, with the cookies of a store that is loaded.
    @inline(never)
    private static func prepareAtOnce(
        _ hop: Hop, for load: LoadContext, isFirst: Bool
    ) throws(LoadError) -> PreparedRequest {
        var prepared = try prepareWithoutBody(hop, for: load)
        prepared.isFirst = isFirst
        attach(load.core.cookies, to: &prepared)
        return prepared
    }

    /// Prepares a request that waits before it is sent: for its body, its credentials, or the cookie store. A repeated
    /// request does not begin to use credentials that another load has added to the session since its first sending.
    @inline(never)
    private static func prepareWaiting(
        _ hop: Hop, for load: LoadContext, _ retries: RetryPlan, _ authentication: inout RequestAuthentication?
    ) async throws(LoadError) -> PreparedRequest {
        var prepared: PreparedRequest
        if let body = hop.request.body {
            prepared = try await prepare(body, hop, for: load, retries)
        } else {
            prepared = try prepareWithoutBody(hop, for: load)
        }
        if authentication == nil, retries.isFirst, load.core.authenticator.isInUse {
            authentication = try await self.authentication(hop, for: load, prepared)
        }
        if let authentication { try await authentication.authorize(&prepared, load) }
        if let store = load.core.cookies?.store, !store.isReady { await store.load(for: load.handle) }
        attach(load.core.cookies, to: &prepared)
        return prepared
    }

    @inline(never)
    private static func attach(_ cookies: CookieJar?, to prepared: inout PreparedRequest) {
        cookies?.attach(to: &prepared)
    }

    @inline(never)
    private static func prepareWithoutBody(_ hop: Hop, for load: LoadContext) throws(LoadError) -> PreparedRequest {
        try PreparedRequest.make(
            hop.request, load.core.defaultFields, isForeign: hop.isForeign, cachePolicy: cachePolicy(hop, load),
            webSocket: hop.purpose.webSocketOffer)
    }

    /// The cache policy that is announced to intermediate caches. A background refresh (RFC 5861 §3) announces none,
    /// because the caller did not ask for its revalidation.
    private static func cachePolicy(_ hop: Hop, _ load: LoadContext) -> Request.CachePolicy {
        let policy = hop.request.cachePolicy ?? load.core.requestDefaults.cachePolicy
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
        var prepared = try PreparedRequest.make(
            hop.request, load.core.defaultFields, isForeign: hop.isForeign, contentType: body.contentType,
            cachePolicy: cachePolicy(hop, load))
        if retries.dropsExpectation { prepared.dropExpectation() }
        prepared.body = try await OutgoingBody.open(body, load.handle)
        if case .resumableUpload(let steps) = hop.purpose { try steps.complete(&prepared) }
        return prepared
    }

    /// Makes the connection before the body is prepared, so that the decision about the server's trust precedes the
    /// decision about the body. The connection waits in the pool.
    private static func connect(_ hop: Hop, for load: LoadContext) async throws(LoadError) {
        guard load.handshakeDecision != nil, !hop.purpose.opensWebSocket,
            case .success(let destination) = hop.request.destination, destination.target.origin.isSecure
        else { return }
        var request = hop.request
        request.body = nil
        let prepared = try PreparedRequest.make(request, load.core.defaultFields, isForeign: hop.isForeign)
        var authentication = load.core.authenticator.isInUse ? try await authentication(hop, for: load, prepared) : nil
        try await lease(prepared, for: load, since: nil, nil, hop, &authentication).release()
    }

    /// Leases an idle connection without a wait, the usual case; nil if there is none, or if the lease must be decided
    /// by `lease`.
    @inline(never)
    private static func leaseIdle(
        _ request: PreparedRequest, for load: LoadContext, _ record: TransactionRecord?
    ) throws(LoadError) -> (any NetworkExchange)? {
        guard load.core.proxies.isDirect, request.webSocket == nil else { return nil }
        let wanted = wanted(request, load, since: nil, record, connects: false)
        let route = complete(request.destination.route, for: request, load, wanted.access)
        guard let connection = load.core.pool.leaseIdle(route, inHTTP1: request.asksUpgrade) else { return nil }
        return try exchange(on: .own(connection, isNew: false), request, over: route, wanted, load)
    }

    /// Leases a connection over the first usable proxy or directly. A load that connects directly does not hold the
    /// frames of the proxies.
    @inline(never)
    private static func lease(
        _ request: PreparedRequest, for load: LoadContext, since first: Int?, _ record: TransactionRecord?, _ hop: Hop,
        _ authentication: inout RequestAuthentication?
    ) async throws(LoadError) -> any NetworkExchange {
        let wanted = wanted(request, load, since: first, record, connects: true)
        guard load.core.proxies.isDirect else {
            return try await leaseThroughProxies(request, wanted, for: load, hop, &authentication)
        }
        return try await lease(request, over: request.destination.route, wanted, for: load)
    }

    /// - Parameter connects: whether a connection may be made, which may send the request as early data.
    @inline(never)
    private static func wanted(
        _ request: PreparedRequest, _ load: LoadContext, since first: Int?, _ record: TransactionRecord?, connects: Bool
    ) -> ConnectionRequest {
        let access = NetworkAccess(request.request, load.core.requestDefaults)
        #if HTTP3
        // A load with a decision about challenges takes TCP.
        let sendsEarlyData = load.core.configuration.connections.sendsEarlyData
        let mayBeEarly = connects && sendsEarlyData && !load.signs && request.mayBeEarly
        let early = mayBeEarly ? EarlyRequest(HTTP2Request(request, urgency: Task.currentPriority.urgency)) : nil
        return ConnectionRequest(client: load, access: access, record: record, since: first, early: early)
        #else
        return ConnectionRequest(client: load, access: access, record: record, since: first)
        #endif
    }

    @inline(never)
    private static func lease(
        _ request: PreparedRequest, over route: Route, _ wanted: ConnectionRequest, for load: LoadContext
    ) async throws(LoadError) -> any NetworkExchange {
        let pool = load.core.pool
        let route = complete(route, for: request, load, wanted.access)
        let leased: LeasedConnection
        if request.webSocket != nil, wanted.since == nil, let tunnel = pool.leaseForTunnel(route) {
            leased = tunnel
        } else if wanted.access.needsPath {
            leased = try await leaseWaiting(route, wanted, for: load, inHTTP1: request.asksUpgrade)
        } else {
            leased = try await pool.lease(route, for: wanted, inHTTP1: request.asksUpgrade)
        }
        return try exchange(on: leased, request, over: route, wanted, load)
    }

    /// Begins the exchange on a leased connection. A reused connection is checked against the current network
    /// restrictions; a new one was checked when it was made.
    @inline(never)
    private static func exchange(
        on leased: LeasedConnection, _ request: PreparedRequest, over route: Route, _ wanted: ConnectionRequest,
        _ load: LoadContext
    ) throws(LoadError) -> any NetworkExchange {
        switch leased {
        case .own(let connection, let isNew):
            if !isNew, let refusal = refusal(of: connection.transport, wanted, load) {
                load.core.pool.giveBack(connection, reusable: connection.isReusable)
                throw refusal
            }
            return HTTPExchange(connection, isReused: !isNew, load, request.request.url, wanted.record)
        case .shared(let connection, let isNew):
            if !isNew, let refusal = refusal(of: connection.transport, wanted, load) {
                load.core.pool.leave(connection)
                throw refusal
            }
            return HTTP2Exchange(connection, isReused: !isNew, load, request, over: route, wanted.record)
        #if HTTP3
        case .http3(let connection, let isNew):
            if !isNew,
                let refusal = wanted.access.refusal(to: connection.remote, load.core.configuration.networkMonitor)
            {
                load.core.pool.http3.leave(connection)
                throw refusal
            }
            connection.admit(wanted.access)
            return HTTP3Exchange(
                connection, isReused: !isNew, load, request, over: route, early: wanted.early, wanted.record)
        #endif
        }
    }

    private static func refusal(
        of transport: any Transport, _ wanted: ConnectionRequest, _ load: LoadContext
    ) -> LoadError? {
        wanted.access.refusal(of: transport, load.core.configuration.networkMonitor)
    }

    /// Completes the route by everything that must keep connections apart: tunnel, trust, login and traffic class.
    @inline(never)
    private static func complete(
        _ route: Route, for request: PreparedRequest, _ load: LoadContext, _ access: NetworkAccess
    ) -> Route {
        var route = route
        if request.webSocket != nil { route.isTunneled = route.proxyChain.forwards && !route.origin.isSecure }
        if route.isProven {
            route.trust = Route.Trust(
                generation: load.core.pool.connector.secure.generation, group: load.handshakeDecision?.group ?? 0)
        }
        // A login that authenticates connections must not be used on a connection that a proxy shares among its clients
        // (RFC 4559 §6).
        if let identity = request.identity, identity.login.mayPass(route.forwarder) { route.identity = identity }
        route.traffic = access.traffic
        return route
    }

    /// Leases a connection over the first proxy chain that can be reached.
    @inline(never)
    private static func leaseThroughProxies(
        _ request: PreparedRequest, _ wanted: ConnectionRequest, for load: LoadContext, _ hop: Hop,
        _ authentication: inout RequestAuthentication?
    ) async throws(LoadError) -> any NetworkExchange {
        var wanted = wanted
        wanted.refused = RefusedTunnels()
        let origin = request.destination.route.origin
        return try await load.core.proxies.first(to: origin, request.request.url, for: load.handle) {
            (proxyChain) throws(LoadError) in
            let proxyChain = proxyChain.authorized(by: request.proxyAuthorization)
            return try await lease(request, through: proxyChain, wanted, for: load, hop, &authentication)
        }
    }

    /// Leases a connection over proxies. A tunnel that a proxy refused is requested again with the credentials of a
    /// decision; see `HTTPHandler+Authentication`.
    @inline(never)
    private static func lease(
        _ request: PreparedRequest, through proxyChain: ProxyChain, _ wanted: ConnectionRequest, for load: LoadContext,
        _ hop: Hop, _ authentication: inout RequestAuthentication?
    ) async throws(LoadError) -> any NetworkExchange {
        defer { wanted.refused?.forget() }
        let origin = request.destination.route.origin
        let isMoved = load.core.configuration.networks.addressOverrides.moves(origin)
        while true {
            let proxyChain = authentication?.opened(proxyChain) ?? proxyChain
            do throws(LoadError) {
                let route = Route(
                    origin: request.destination.origin, proxyChain: proxyChain, isMoved: isMoved)
                return try await lease(request, over: route, wanted, for: load)
            } catch {
                let refusal = ProxyRefusal(error: error, proxyChain: proxyChain, binding: wanted.refused?.binding)
                guard try await answers(refusal, request, hop, for: load, &authentication) else { throw error }
            }
        }
    }

    /// Sends the request and waits for the response's head. Returns the failure; `nil` if the head was received.
    @inline(never)
    private static func failure(
        of exchange: any NetworkExchange, _ request: PreparedRequest, _ hop: Hop,
        _ cause: BodyProviderContext.Cause?, for load: LoadContext
    ) async -> LoadError? {
        if load.signs { return await failure(of: exchange, signing: request, hop, cause, for: load) }
        do throws(LoadError) { try await exchange.start(request) } catch { return error }
        return nil
    }

    @inline(never)
    private static func explained(_ error: LoadError, _ hop: Hop, _ load: LoadContext) -> LoadError {
        error.at(hop.request.url).explained(by: hop.request, load.core.configuration)
    }
}

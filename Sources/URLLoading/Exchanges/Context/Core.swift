// SPDX-License-Identifier: Apache-2.0

// The state that all loads of a session share: configuration, pool, registry. It is not an actor, because all of it
// must be reachable synchronously; mutable state is under locks, and no task waits while holding one.

import URLLoadingIO

final class Core: Sendable {
    let configuration: Configuration
    let requestDefaults: RequestDefaults
    let decisions: Decisions?
    let pool: ConnectionPool
    let registry: LoadRegistry
    private let anchors: (Anchor<ConnectionPool>, Anchor<LoadRegistry>)
    /// True for the shared session, which cannot be invalidated.
    let isShared: Bool
    /// The configured fields, merged once for all requests.
    let defaultFields: DefaultFields
    let leaked = LeakCount()
    let handlers: HandlerChain
    /// Makes the event sink of a load; nil for a load without observers and without a driver (`isObserved`).
    let makeEvents: @Sendable (_ request: Request, _ isObserved: Bool) -> (any EventSink)?
    let proxies: ProxyPlan
    /// True if a configured resolver replaces the system's.
    let hasOwnResolver: Bool
    let authenticator: Authenticator
    let cookies: CookieJar?
    let strictTransport: StrictTransportRules?
    /// The retries of the session's loads; `nil` without a budget.
    let retries: RetryAccount?
    /// The cache of the session's loads; `nil` without one.
    let cache: SessionCache?
    /// The stores of the configured directory, kept alive for the session.
    private let stores: SharedStores?
    /// Marks cached responses that only this session may reuse, because its own login or certificate obtained them.
    let cacheMark = "\(UInt64.random(in: 0 ... .max))"

    /// The parts of a session that belong to layers above its loads.
    struct Parts: Sendable {
        let handlers: HandlerChain
        let makeEvents: @Sendable (_ request: Request, _ isObserved: Bool) -> (any EventSink)?
        /// Called when the session has ended.
        let ended: @Sendable () -> Void
    }

    init(
        _ configuration: Configuration, _ decisions: Decisions?, isShared: Bool,
        _ makeParts: (Configuration) -> Parts
    ) {
        let stores = SharedStores.of(configuration)
        let configuration = stores.map { configuration.keeping(in: $0) } ?? configuration
        self.stores = stores
        self.configuration = configuration
        requestDefaults = RequestDefaults(configuration)
        self.decisions = decisions
        self.isShared = isShared
        defaultFields = DefaultFields(configuration)
        let parts = makeParts(configuration)
        (handlers, makeEvents) = (parts.handlers, parts.makeEvents)
        proxies = ProxyPlan(
            configuration.networks.proxyPolicy, configuration.networks.addressOverrides,
            waitsForQuestions: configuration.authentication.waitsForProxyChallenge
                || configuration.authentication.methods(isProxy: true)?.contains(.basic) == false)
        hasOwnResolver = !(configuration.networks.resolver is SystemResolver)
        authenticator = Authenticator(configuration)
        cache = SessionCache.make(configuration)
        let cookies = CookieJar(configuration)
        let strictTransport = StrictTransportRules(configuration)
        (self.cookies, self.strictTransport) = (cookies, strictTransport)
        retries = configuration.retries.budget.map { RetryAccount($0) }
        let pool = ConnectionPool(configuration, services: strictTransport?.store.alternatives)
        self.pool = pool
        registry = LoadRegistry(configuration.clock, isInPool: !configuration.loadsOnLoop) {
            [cache, authenticator, ended = parts.ended] in
            ended()
            cache?.invalidate()
            pool.drain()
            authenticator.end()
            // The cookies and HSTS hosts of an ephemeral session end with it.
            if let cookies, cookies.isOwn { cookies.store.removeAll() }
            if let strictTransport, strictTransport.isOwn { strictTransport.store.removeAll() }
        }
        anchors = (Anchor(pool), Anchor(registry))
        pool.anchor.set(anchors.0)
        registry.anchor.set(anchors.1)
    }

    /// Returns whether a configured resolver or proxy leads to the origin. Proxies of the environment do not count,
    /// because all programs use them.
    func routesPrivately(_ route: Route) -> Bool {
        guard route.proxyChain.isDirect else { return proxies.isConfigured || hasOwnResolver }
        guard hasOwnResolver, case .name = route.origin.host.kind else { return false }
        return !route.origin.host.isThisMachine
    }

    func finishTasksAndInvalidate() {
        guard !isShared else { return }
        registry.close(stopping: nil)
    }

    func invalidateAndCancel() {
        guard !isShared else { return }
        registry.close(stopping: .invalidated)
    }
}

extension DefaultFields {
    convenience init(_ configuration: Configuration) {
        self.init(
            configuration.headers, accept: configuration.accept, acceptEncoding: configuration.acceptEncoding,
            userAgent: configuration.userAgent, cookieDigest: { Varying.ownCookie($0) })
    }
}

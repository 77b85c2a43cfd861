// What all loads of a session share: configuration, pool, registry. It is no actor, because all of it
// must be reachable synchronously; what changes lies under a lock, and nothing waits while holding one.

import URLLoadingIO

final class Core: Sendable {
    let configuration: Configuration
    let decisions: Decisions?
    let pool: ConnectionPool
    let registry: LoadRegistry
    private let anchors: (Anchor<ConnectionPool>, Anchor<LoadRegistry>)
    /// The shared session cannot be invalidated.
    let isShared: Bool
    /// Configured headers as every request gets them, worked out once.
    let defaultFields: DefaultFields
    let leaked = LeakCount()
    let handlers: HandlerLine
    /// Makes the event sink of a load; nil for a load that no observer and no driver (`isHeard`) is told of.
    let makeEvents: @Sendable (_ request: Request, _ isHeard: Bool) -> (any EventSink)?
    let proxies: ProxyPlan
    /// Names are looked up by other means than the system's.
    let hasOwnResolver: Bool
    let authenticator: Authenticator
    let cookies: CookieJar?
    let strictTransport: StrictTransportRules?
    /// What its loads may be answered from; `nil` if nothing is kept.
    let cache: SessionCache?
    /// Of the configuration's directory, for as long as the session is.
    private let stores: SharedStores?
    /// In the marks of what only this session may have: it was got by a login or a certificate of its own.
    let cacheMark = "\(UInt64.random(in: 0 ... .max))"

    /// The parts that stand above a session's loads.
    struct Parts: Sendable {
        let handlers: HandlerLine
        let makeEvents: @Sendable (_ request: Request, _ isHeard: Bool) -> (any EventSink)?
    }

    init(
        _ configuration: Configuration, _ decisions: Decisions?, isShared: Bool,
        _ makeParts: (Configuration) -> Parts
    ) {
        let stores = SharedStores.of(configuration)
        let configuration = stores.map { configuration.keeping(in: $0) } ?? configuration
        self.stores = stores
        self.configuration = configuration
        self.decisions = decisions
        self.isShared = isShared
        defaultFields = DefaultFields(configuration)
        let parts = makeParts(configuration)
        (handlers, makeEvents) = (parts.handlers, parts.makeEvents)
        proxies = ProxyPlan(
            configuration.proxyPolicy, configuration.addressOverrides,
            waitsForQuestions: configuration.authentication.waitsForProxyChallenge
                || configuration.authentication.methods(isProxy: true)?.contains(.basic) == false)
        hasOwnResolver = !(configuration.resolver is SystemResolver)
        authenticator = Authenticator(configuration)
        cache = SessionCache.make(configuration)
        let cookies = CookieJar(configuration)
        let strictTransport = StrictTransportRules(configuration)
        (self.cookies, self.strictTransport) = (cookies, strictTransport)
        let pool = ConnectionPool(configuration)
        self.pool = pool
        registry = LoadRegistry(configuration.clock) { [cache, authenticator] in
            cache?.invalidate()
            pool.drain()
            authenticator.end()
            // What an ephemeral session knew ends with it (checklist 4).
            if let cookies, cookies.isOwn { cookies.store.removeAll() }
            if let strictTransport, strictTransport.isOwn { strictTransport.store.removeAll() }
        }
        anchors = (Anchor(pool), Anchor(registry))
        pool.anchor.set(anchors.0)
        registry.anchor.set(anchors.1)
    }

    /// Whether a resolver or a proxy of the configuration's own leads to an origin. The environment's proxies are
    /// everybody's.
    func routesPrivately(_ route: Route) -> Bool {
        guard route.way.isDirect else { return proxies.isConfigured || hasOwnResolver }
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
            configuration.headers, acceptEncoding: configuration.acceptEncoding, userAgent: configuration.userAgent,
            cookieDigest: { Varying.ownCookie($0) })
    }
}

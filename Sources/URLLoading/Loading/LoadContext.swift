// What a load passes down to everything that works for it: the handle that ends it, what its session shares, the
// decisions, and the events. Nothing that one request finds out is kept here: that comes back with its exchange.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Who takes the body of a load's response.
enum BodyConsumer: Sendable {
    /// The library collects all of it before the caller gets a byte.
    case collector
    /// A closure of the caller's reads it (``Session/load(_:decisions:_:)``).
    case scope
    /// The holder of a task's handle, if anything.
    case reader
    /// The classic layer: the load pushes the body.
    case sink
    /// A download: the library writes it into a file.
    case file

    /// The library reads the body to its end, and waits for no caller meanwhile.
    var readsToEnd: Bool {
        switch self {
        case .collector, .sink, .file: true
        case .scope, .reader: false
        }
    }
}

final class LoadContext: ConnectionClient {
    let handle: LoadHandle
    let core: Core
    /// The request as the caller made it.
    let original: Request
    /// Event sink; nil when the load has no observers and no handle.
    let events: (any EventSink)?
    let consumer: BodyConsumer
    /// The classic task that calls decisions; nil outside the classic layer.
    let asker: (any DecisionCaller)?
    private let given: Decisions?
    /// In place of `given`: the decisions of a classic task are known when it is resumed.
    private let replaced = AtomicLazyReference<Replacement>()
    private let scope = AtomicLazyReference<HandlerScope>()

    private final class Replacement: Sendable {
        let decisions: Decisions
        init(_ decisions: Decisions) { self.decisions = decisions }
    }

    /// - Parameter isHeard: whether a driver will be told of the events, besides the observers.
    init(
        _ core: Core, _ request: Request, _ decisions: Decisions?, consumer: BodyConsumer, isHeard: Bool = false,
        asker: (any DecisionCaller)? = nil, holdsSession: Bool = true
    ) {
        self.core = core
        original = request
        self.consumer = consumer
        self.asker = asker
        given = decisions
        let configuration = core.configuration
        handle = LoadHandle(
            idle: request.idleTimeout ?? configuration.idleTimeout,
            resource: request.resourceTimeout ?? configuration.resourceTimeout,
            connect: request.connectTimeout ?? configuration.connectTimeout,
            clock: configuration.clock, holdsSession: holdsSession, leaked: core.leaked)
        events = core.makeEvents(request, isHeard)
    }

    /// Replaces the load's decisions. Called at most once, before the load begins.
    func decide(by decisions: Decisions) { _ = replaced.storeIfNil(Replacement(decisions)) }

    // MARK: The handle

    var clock: LoopClock { handle.clock }
    var stopReason: StopReason? { handle.stopReason }
    var isSuspended: Bool { handle.isSuspended }
    func stop(_ reason: StopReason) { handle.stop(reason) }

    /// The load has ended: it leaves its session, and its observers are told.
    func end(_ error: LoadError?) {
        handlerScope?.end()
        events?.complete(error)
        core.registry.leave(handle)
        handle.forgetListener()
    }

    // MARK: Custom handlers

    /// Tracks library code that runs inside the tasks of custom handlers; nil until the first handler is called.
    var handlerScope: HandlerScope? { scope.load() }
    func beginHandlerScope() -> HandlerScope { scope.load() ?? scope.storeIfNil(HandlerScope()) }

    /// Begins library code inside a handler's task; false once the load is over. `leave` must follow.
    func enter(_ scope: HandlerScope) -> Bool {
        guard scope.enter() else { return false }
        if scope.haveOverlapped { events?.allowOverlap() }
        return true
    }

    // MARK: Decisions

    /// The load's own decisions.
    var decisions: Decisions? { replaced.load()?.decisions ?? given }
    var responseDecision: Decision<Response, ResponseDisposition>? { decisions?.response ?? core.decisions?.response }
    var redirectDecision: Decision<Redirect, RedirectDecision>? { decisions?.redirect ?? core.decisions?.redirect }
    var bodyDecision: Decision<BodyProviderContext, RequestBody>? {
        decisions?.bodyProvider ?? core.decisions?.bodyProvider
    }

    /// The decision about what is stored. It is for data and uploads, not for downloads.
    var cacheDecision: Decision<CachedResponse, CacheDecision>? {
        if case .file = consumer { return nil }
        return asker?.decidesWhatIsKept ?? true ? decisions?.cache ?? core.decisions?.cache : nil
    }

    /// A decision may hold the load up with the response in hand.
    var mayWaitForOthers: Bool { responseDecision != nil || cacheDecision != nil }
    /// Whether a decision about challenges may have something to say about servers.
    var judgesServers: Bool { asker?.judgesServers ?? true }

    /// The response decision of a task is asked about a 101, and may take the connection over.
    var acceptsUpgrade: Bool {
        switch consumer {
        case .reader, .sink: responseDecision != nil
        case .collector, .scope, .file: false
        }
    }

    var decidesChallenges: Bool { decisions?.challenge != nil || core.decisions?.challenge != nil }

    func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision {
        let (own, shared) = (decisions?.challenge, core.decisions?.challenge)
        guard let decision = challenge.protectionSpace.method.isForSession ? shared ?? own : own ?? shared
        else { return .performDefaultHandling }
        challenged(challenge)
        return try await ask(decision, challenge)
    }

    /// The body of a request that has none of its own.
    @inline(never)
    func demandBody(_ hop: Hop, _ cause: BodyProviderContext.Cause?) async throws(LoadError) -> RequestBody {
        guard let decision = bodyDecision else { throw .noBody(hop.request.url) }
        let demand = BodyProviderContext(request: hop.request, cause: cause ?? (hop.followed > 0 ? .redirect : .first))
        return try await ask(decision, demand)
    }

    // MARK: Handshakes

    var handshakeDecision: HandshakeDecision? { HandshakeDecision(session: core.decisions, load: decisions) }

    func trusted(_ trust: TLSTrust, _ peer: TLSPeer) {
        guard peer.role == .origin, let leaf = trust.shown.first, let group = handshakeDecision?.group else { return }
        core.cache?.believe(Digest.hex(leaf.der), of: peer, by: group)
    }

    func forbidsTrust(in host: String) async -> Bool {
        await core.strictTransport?.forbidsTrust(in: host, handle) ?? false
    }

    // MARK: Events

    func received(_ count: Int) { events?.received(count) }
    func sent(_ bytes: TransferProgress) { events?.sent(bytes) }
    func challenged(_ challenge: Challenge) { events?.challenged(challenge) }
    func informed(_ head: HTTP1ResponseHead) { events?.informed(HTTPHead(head)) }
    func setResting(_ isResting: Bool, _ route: Route) { core.pool.setResting(isResting, route) }

    /// A storage has not taken a response that it would take of others.
    func noteRefusal(of response: StoredResponse, by storage: any CacheStorage) {
        guard let events, response.knownRules.isOfUse, storage.refusal(of: response) != nil else { return }
        events.note(.refused)
    }
}

extension LoadError {
    static func noBody(_ url: URL) -> LoadError {
        LoadError(
            .badRequest, phase: .preparing, party: .local, url: url,
            detail: "its body is demanded, and no decision bodyProvider gives one")
    }
}

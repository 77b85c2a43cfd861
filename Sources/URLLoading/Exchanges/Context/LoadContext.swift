// SPDX-License-Identifier: Apache-2.0

// In this folder: what a load passes down, and the exchange: a request and its response from any source

// The context of a load, passed to every function that works for it: the session's shared state, the decisions, and the
// events. It is also the load's handle, so that a load is one object. Facts about a single request are returned with
// its exchange instead.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The consumer of a response's body.
enum BodyConsumer: Sendable {
    /// The library, which collects the whole body before the caller gets it.
    case collector
    /// A closure of the caller's (``Session/load(_:decisions:_:)``).
    case scope
    /// The holder of a task's handle.
    case reader
    /// The classic layer: the load pushes the body.
    case sink
    /// A download: the library writes the body to a file.
    case file

    /// True if the library drains the body itself, without waiting for a caller, so this load may lead a shared fetch.
    var readsToEnd: Bool {
        switch self {
        case .collector, .sink, .file: true
        case .scope, .reader: false
        }
    }
}

/// What a load belongs to: a call, or a task with a driver.
struct LoadOwner {
    /// True if a driver is notified of the events, in addition to the observers.
    var isObserved = false
    /// The classic task that calls decisions; nil outside the classic layer.
    var decisionCaller: (any DecisionCaller)?
    /// Whether a session that finishes its tasks waits for the load, even if it was never resumed.
    var holdsSession = true
}

final class LoadContext: LoadHandle, ConnectionClient, @unchecked Sendable {
    // Unchecked: restated, as for every subclass; the properties added here are immutable.
    let core: Core
    /// The request as the caller made it.
    let original: Request
    /// Event sink; nil when the load has no observers and no handle.
    let events: (any EventSink)?
    let consumer: BodyConsumer
    /// The classic task that calls decisions; nil outside the classic layer.
    let decisionCaller: (any DecisionCaller)?
    private let given: Decisions?
    /// Overrides `given`: the decisions of a classic task are known only when it is resumed.
    private let replaced = LateReference<ReplacedDecisions>()
    private let scope = LateReference<HandlerScope>()

    private final class ReplacedDecisions: Sendable {
        let decisions: Decisions
        init(_ decisions: Decisions) { self.decisions = decisions }
    }

    init(
        _ core: Core, _ request: Request, _ decisions: Decisions?, consumer: BodyConsumer,
        owner: LoadOwner = LoadOwner()
    ) {
        self.core = core
        original = request
        self.consumer = consumer
        decisionCaller = owner.decisionCaller
        given = decisions
        events = core.makeEvents(request, owner.isObserved)
        super.init(
            idleLimit: request.idleTimeout.map(Self.nanoseconds) ?? core.requestDefaults.idleLimit,
            resourceLimit: request.resourceTimeout.map(Self.nanoseconds) ?? core.requestDefaults.resourceLimit,
            connectLimit: request.connectTimeout.map(Self.nanoseconds) ?? core.requestDefaults.connectLimit,
            clock: core.requestDefaults.clock, holdsSession: owner.holdsSession, leaked: core.leaked)
    }

    /// Creates the context of one of several requests that a load has under way: with waits of its own, which alone its
    /// idle timeout ends, and the events and decisions of the load. Stops and suspensions are passed on to it.
    init(partOf load: LoadContext) {
        (core, original, consumer, decisionCaller) = (load.core, load.original, load.consumer, load.decisionCaller)
        (given, events) = (load.decisions, load.events)
        super.init(
            idleLimit: load.idleLimit, resourceLimit: .max, connectLimit: load.connectLimit, clock: load.clock,
            holdsSession: true, leaked: load.leaked)
    }

    /// Ends the context of one of several requests; the load goes on.
    func endPart() {
        handlerScope?.end()
        leave()
    }

    /// Replaces the load's decisions. Called at most once, before the load begins.
    func decide(by decisions: Decisions) {
        _ = replaced.storeIfNil(ReplacedDecisions(decisions))
    }

    // MARK: The handle

    /// The load as the layers below know it, which end, suspend and time it.
    var handle: LoadHandle { self }

    /// Ends the load: its observers are notified, and it leaves its session.
    func end(_ error: LoadError?) {
        announceEnd(error)
        leave()
    }

    func announceEnd(_ error: LoadError?) {
        handlerScope?.end()
        events?.complete(error)
    }

    /// Leaves the session, which may be waiting for its last load.
    func leave() {
        core.registry.leave(self)
        forgetListener()
    }

    // MARK: Custom handlers

    /// Tracks library code that runs inside the tasks of custom handlers; nil until the first handler is called.
    var handlerScope: HandlerScope? { scope.value }
    func beginHandlerScope() -> HandlerScope { scope.value ?? scope.storeIfNil(HandlerScope()) }

    /// Enters library code inside a handler's task; returns false once the load has ended. `leave` must follow.
    func enter(_ scope: HandlerScope) -> Bool {
        guard scope.enter() else { return false }
        if scope.haveOverlapped { events?.allowOverlap() }
        return true
    }

    // MARK: Decisions

    /// The load's own decisions.
    var decisions: Decisions? { replaced.value?.decisions ?? given }
    var responseDecision: Decision<Response, ResponseDisposition>? {
        decisions?.response ?? core.decisions?.response
    }
    var redirectDecision: Decision<Redirect, RedirectDecision>? {
        decisions?.redirect ?? core.decisions?.redirect
    }
    var bodyDecision: Decision<BodyProviderContext, RequestBody>? {
        decisions?.bodyProvider ?? core.decisions?.bodyProvider
    }

    /// The decision about storing the response; nil for downloads, for which it is not called.
    var cacheDecision: Decision<CachedResponse, CacheDecision>? {
        if case .file = consumer { return nil }
        return decisionCaller?.decidesStoring ?? true ? decisions?.cache ?? core.decisions?.cache : nil
    }

    /// True if a decision may delay the load between its response and its body.
    var mayWaitForOthers: Bool { responseDecision != nil || cacheDecision != nil }
    /// True if the challenge decision may decide about server certificates.
    var decidesServerTrust: Bool { decisionCaller?.decidesServerTrust ?? true }

    /// True if the response decision of a task may take over the connection after a 101.
    var acceptsUpgrade: Bool {
        switch consumer {
        case .reader, .sink: responseDecision != nil
        case .collector, .scope, .file: false
        }
    }

    /// Whether a decision answers challenges for credentials.
    var decidesChallenges: Bool { decisions?.challenge != nil || core.decisions?.challenge != nil }

    func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision {
        let (own, shared) = (decisions?.challenge, core.decisions?.challenge)
        guard let decision = challenge.protectionSpace.method.isForSession ? shared ?? own : own ?? shared
        else { return .performDefaultHandling }
        challenged(challenge)
        return try await ask(decision, challenge)
    }

    /// Calls `bodyProvider` for the body of a request.
    @inline(never)
    func demandBody(_ hop: Hop, _ cause: BodyProviderContext.Cause?) async throws(LoadError) -> RequestBody {
        guard let decision = bodyDecision else { throw .noBody(hop.request.url) }
        let demand = BodyProviderContext(request: hop.request, cause: cause ?? (hop.followed > 0 ? .redirect : .first))
        do throws(LoadError) { return try await ask(decision, demand) } catch {
            guard let missing = error.underlying as? NoFurtherBody else { throw error }
            throw LoadError(.requestBodyFailed, phase: .preparing, party: .local, detail: missing.description)
        }
    }

    // MARK: Handshakes

    var handshakeDecision: HandshakeDecision? { HandshakeDecision(session: core.decisions, load: decisions) }

    func trusted(_ trust: TLSTrust, _ peer: TLSPeer) {
        guard peer.role == .origin, let leaf = trust.shown.first, let group = handshakeDecision?.group else { return }
        core.cache?.recordAccepted(Digest.hex(leaf.der), of: peer, by: group)
    }

    func forbidsTrust(in host: String) async -> Bool {
        await core.strictTransport?.forbidsTrust(in: host, self) ?? false
    }

    // MARK: Events

    func received(_ count: Int) { events?.received(count) }
    func sent(_ bytes: TransferProgress) { events?.sent(bytes) }
    func challenged(_ challenge: Challenge) { events?.challenged(challenge) }
    func receivedInterim(_ head: HTTP1ResponseHead) { events?.receivedInterim(HTTPHead(head)) }
    func setUnread(_ isUnread: Bool, _ route: Route) { core.pool.setUnread(isUnread, route) }

    /// Notes that a storage refused a response that is storable otherwise.
    func noteRefusal(of response: StoredResponse, by storage: any CacheStorage) {
        guard let events, response.knownRules.isReusable, storage.refusal(of: response) != nil else { return }
        events.note(.refused)
    }
}

extension LoadError {
    static func noBody(_ url: URL) -> LoadError {
        LoadError(
            .badRequest, phase: .preparing, party: .local, url: url,
            detail: "the body is .provided, but no decision bodyProvider is set")
    }
}

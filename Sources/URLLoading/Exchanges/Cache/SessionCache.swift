// SPDX-License-Identifier: Apache-2.0

// The state that the loads of one session share about its cache: the storage, the refreshes under way, and the shared
// fetches.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class SessionCache: Sendable {
    let storage: any CacheStorage
    /// The largest body passed to a cache decision, in bytes.
    let maximumEntrySize: Int
    let coalescesIdenticalRequests: Bool
    /// The TLS checks that servers must pass.
    var checks: TrustChecks { currentChecks.withLock { $0 } }
    private let currentChecks: Lock<TrustChecks>
    private let clock: (@Sendable () -> Double)?
    private let refreshing = Lock(Set<CacheKey>())
    private let fetches = Lock([SharedFetch.Question: SharedFetch]())

    /// The certificates that the session's decisions have accepted, by server.
    private let passed = Lock([TrustScope: Set<String>]())
    private struct TrustScope: Hashable, Sendable {
        let group: Int
        let name: TLSPeerName
        let port: UInt16
    }

    /// True if the cache belongs to the session and is emptied with it.
    private let isOwn: Bool

    /// Makes the storage of each load, for a cache outside the library, in place of `storage`.
    let outside: (@Sendable (CacheQuery, LoadContext) -> any AskedStorage)?
    /// The storage of one load; `nil` for a cache of the library's, and in the session cache that all loads share.
    let asked: (any AskedStorage)?
    /// The session cache that all loads share, for that of one load.
    private let session: SessionCache?
    /// The external cache; `nil` without one.
    let external: ExternalStore?

    static func make(_ configuration: Configuration) -> SessionCache? {
        if let foreign = configuration.foreignCache { return SessionCache(foreign, configuration) }
        if let external = configuration.caching.external { return SessionCache(external, configuration) }
        if let cache = configuration.caching.store { return SessionCache(cache, isOwn: false, configuration) }
        guard configuration.isEphemeral, configuration.caching.usesMemoryStore else { return nil }
        return SessionCache(ResponseCache(), isOwn: true, configuration)
    }

    private init(_ foreign: any ForeignCache, _ configuration: Configuration) {
        let nothing = MemoryStorage(capacity: 0)
        storage = nothing
        currentChecks = Lock(TrustChecks(configuration))
        maximumEntrySize = foreign.largestEntry
        (isOwn, coalescesIdenticalRequests, clock) = (false, false, configuration.wallClock)
        outside = { [removals = nothing.removals] in ForeignStorage(foreign, $0, $1.handle, removals) }
        (asked, session, external) = (nil, nil, nil)
    }

    private init(_ settings: ExternalCache, _ configuration: Configuration) {
        let nothing = MemoryStorage(capacity: 0)
        let external = ExternalStore(settings, nothing.removals, configuration.wallClock)
        storage = nothing
        currentChecks = Lock(TrustChecks(configuration))
        maximumEntrySize = settings.maximumEntrySize
        (isOwn, clock, self.external) = (false, configuration.wallClock, external)
        coalescesIdenticalRequests = configuration.caching.coalescesIdenticalRequests
        outside = { ExternalStorage(external, $0, ExternalStore.Work(handle: $1.handle, registry: $1.core.registry)) }
        (asked, session) = (nil, nil)
    }

    /// The session cache of one load, with the storage of that load.
    private init(_ session: SessionCache, _ asked: any AskedStorage) {
        (storage, self.asked, self.session) = (asked, asked, session)
        (maximumEntrySize, isOwn, clock) = (session.maximumEntrySize, false, session.clock)
        coalescesIdenticalRequests = session.coalescesIdenticalRequests
        currentChecks = Lock(session.checks)
        (outside, external) = (nil, session.external)
    }

    /// Returns the session cache for one load.
    func cache(for query: CacheQuery, _ load: LoadContext) -> SessionCache {
        guard let outside else { return self }
        return SessionCache(self, outside(query, load))
    }

    /// The session cache that all loads share.
    var whole: SessionCache { session ?? self }

    private init(_ cache: ResponseCache, isOwn: Bool, _ configuration: Configuration) {
        storage = cache.storage
        (outside, asked, session, external) = (nil, nil, nil, nil)
        // The limit of `ResponseCache`: one entry must not evict all others.
        let capacity = max(Int64(cache.memoryCapacity), cache.directory == nil ? 0 : cache.diskCapacity)
        maximumEntrySize = Int(clamping: min(capacity, cache.maximumEntrySize ?? max(capacity / 20, 64 << 10)))
        self.isOwn = isOwn
        coalescesIdenticalRequests = configuration.caching.coalescesIdenticalRequests
        clock = configuration.wallClock
        currentChecks = Lock(TrustChecks(configuration))
    }

    /// Gives the cache the TLS checks of a new configuration, unless it has newer ones. Later loads then get from the
    /// cache only responses that were stored under the same checks, and their own responses are stored under these.
    func renew(_ configuration: Configuration, _ number: Int) {
        let renewed = TrustChecks(configuration, number: number)
        currentChecks.withLock { if $0.number < number { $0 = renewed } }
    }

    /// Seconds since 1970.
    func now() -> Double { clock?() ?? Date().timeIntervalSince1970 }

    // MARK: Servers that a decision accepted

    func recordAccepted(_ certificate: String, of peer: TLSPeer, by group: Int) {
        let scope = TrustScope(group: group, name: peer.name, port: peer.port)
        passed.withLock { passed in
            // Without an entry, responses of the server are loaded anew.
            if passed[scope] == nil, passed.count >= Self.maximumScopes { passed.removeAll() }
            if passed[scope, default: []].count >= Self.maximumCertificates { passed[scope] = [] }
            passed[scope, default: []].insert(certificate)
        }
    }

    private static var maximumScopes: Int { 1_024 }
    /// The maximum number of certificates of one server.
    private static var maximumCertificates: Int { 16 }

    func acceptedCertificates(by group: Int, _ origin: Origin) -> Set<String> {
        let scope = TrustScope(group: group, name: TLSPeerName(origin.host), port: origin.port)
        return passed.withLock { $0[scope] ?? [] }
    }

    /// Empties the session's own cache when the session is invalidated.
    func invalidate() {
        if isOwn { storage.removeAll(since: nil) }
    }

    // MARK: Refreshes (RFC 5861 §3)

    /// Returns false if a refresh of the key is already running.
    func beginRefresh(_ key: CacheKey) -> Bool { whole.refreshing.withLock { $0.insert(key).inserted } }
    func endRefresh(_ key: CacheKey) { whole.refreshing.withLock { _ = $0.remove(key) } }

    // MARK: Shared fetches

    enum Place: Sendable {
        /// The caller must fetch and settle the outcome.
        case leader(SharedFetch)
        case follower(SharedFetch)
    }

    func enter(_ question: SharedFetch.Question, mayLead: Bool) -> Place? {
        if let session { return session.enter(question, mayLead: mayLead) }
        return fetches.withLock { fetches in
            if let going = fetches[question] { return .follower(going) }
            guard mayLead else { return nil }
            let fetch = SharedFetch(self, question)
            fetches[question] = fetch
            return .leader(fetch)
        }
    }

    fileprivate func leave(_ fetch: SharedFetch) {
        fetches.withLock { fetches in
            if fetches[fetch.question] === fetch { fetches[fetch.question] = nil }
        }
    }
}

/// One fetch, and the loads that wait for its outcome.
final class SharedFetch: Sendable {
    /// The key of a shared fetch; loads with equal questions share one.
    struct Question: Hashable, Sendable {
        let key: CacheKey
        let headers: Headers
        let identity: String?
        let policy: Request.CachePolicy
        let isForeign: Bool
    }

    enum Outcome: Sendable {
        /// The response is stored; followers look it up.
        case stored
        /// The response cannot be stored; each follower fetches for itself.
        case unstorable
        /// The fetch failed; a follower must retry.
        case failed
    }

    let question: Question
    private struct State: Sendable {
        var outcome: Outcome?
        var waiting: [PollSlot] = []
    }
    private let state = Lock(State())
    private let cache: SessionCache

    init(_ cache: SessionCache, _ question: Question) {
        self.cache = cache
        self.question = question
    }

    /// Sets the outcome; only the first call counts.
    func settle(_ outcome: Outcome) {
        cache.leave(self)
        let waiting = state.withLock { state in
            guard state.outcome == nil else { return [PollSlot]() }
            state.outcome = outcome
            defer { state.waiting = [] }
            return state.waiting
        }
        for slot in waiting { slot.wake() }
    }

    /// Waits for the outcome; returns `nil` if the load is stopped. Returns `.unstorable` after the load's idle
    /// timeout, because the leader may wait for connectivity or receive very slowly.
    func outcome(for load: LoadContext) async -> Outcome? {
        let end = load.handle.idleLimit == .max ? Int64.max : load.clock.now() &+ load.handle.idleLimit
        // An alarm, unlike the wait's own deadline, shows in a manual clock that the load sleeps.
        let alarm = end == .max ? nil : Alarm(load.clock, at: end, load.handle)
        defer { alarm?.off() }
        return await Poller.shared.wait(until: load.handle) { slot in
            let outcome = state.withLock { state in
                state.waiting.removeAll { $0 === slot }
                if state.outcome == nil { state.waiting.append(slot) }
                return state.outcome
            }
            return outcome ?? (end != .max && load.clock.now() >= end ? .unstorable : nil)
        } forget: { slot in
            state.withLock { state in state.waiting.removeAll { $0 === slot } }
        }
    }
}

extension TrustChecks {
    convenience init(_ configuration: Configuration, number: Int = 0) {
        let tls = configuration.tls
        self.init(
            mark: CacheOwner.trust(configuration), number: number,
            areWeakened: tls.unsafelySkipsVerification || !tls.unsafeConcessions.isEmpty)
    }
}

extension CacheOwner {
    /// The settings that sessions must have in common to trust each other's servers, as a digest; nil for the defaults.
    static func trust(_ configuration: Configuration) -> String? {
        let tls = configuration.tls
        var words: [String] = []
        if tls.trustRoots != .system { words.append("roots \(tls.trustRoots)") }
        if !tls.pins.isEmpty { words.append("pins \(tls.pins)") }
        if tls.minimumVersion != .tls12 { words.append("from \(tls.minimumVersion)") }
        if tls.minimumStrength != .bits112 { words.append("strength \(tls.minimumStrength)") }
        if tls.ocspStapling != .ignored { words.append("status \(tls.ocspStapling)") }
        if tls.unsafelySkipsVerification { words.append("none") }
        if !tls.unsafeConcessions.isEmpty { words.append("concessions \(tls.unsafeConcessions)") }
        if configuration.networks.addressOverrides != [] {
            words.append("at \(configuration.networks.addressOverrides)")
        }
        if let own = configuration.networks.interface { words.append("from \(own)") }
        return words.isEmpty ? nil : Digest.hex(words.joined(separator: "\u{0}").utf8)
    }
}

// What the loads of one session share of its cache: where responses are, who refreshes what, and who fetches what
// others wait for.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class SessionCache: Sendable {
    let storage: any CacheStorage
    /// The most bytes a decision about an entry is asked with.
    let maximumEntrySize: Int
    let coalescesIdenticalRequests: Bool
    /// By which checks servers are believed (`CacheOwner.trust`).
    let trust: String?
    private let clock: (@Sendable () -> Double)?
    private let refreshing = Lock(Set<CacheKey>())
    private let fetches = Lock([SharedFetch.Question: SharedFetch]())

    /// Which certificates of which servers the session's decisions have let pass.
    private let passed = Lock([Judged: Set<String>]())
    private struct Judged: Hashable, Sendable {
        let group: Int
        let name: TLSPeerName
        let port: UInt16
    }

    /// The session's own, and gone with it.
    private let isOwn: Bool

    /// Asked for each load, in the place of a storage.
    let foreign: (any ForeignCache)?

    static func make(_ configuration: Configuration) -> SessionCache? {
        if let foreign = configuration.foreignCache { return SessionCache(foreign, configuration) }
        if let cache = configuration.cache { return SessionCache(cache, isOwn: false, configuration) }
        guard configuration.isEphemeral, configuration.cachesInMemory else { return nil }
        return SessionCache(ResponseCache(), isOwn: true, configuration)
    }

    private init(_ foreign: any ForeignCache, _ configuration: Configuration) {
        storage = ForeignStorage(foreign, Request(url: URL(filePath: "/")), nil, CacheRemovals())
        trust = CacheOwner.trust(configuration)
        maximumEntrySize = foreign.largestEntry
        (isOwn, coalescesIdenticalRequests, clock, self.foreign) = (false, false, configuration.wallClock, foreign)
    }

    /// Another's, with the answer of its foreign cache to one request.
    init(of other: SessionCache, _ storage: ForeignStorage) {
        self.storage = storage
        (maximumEntrySize, isOwn, coalescesIdenticalRequests) = (other.maximumEntrySize, false, false)
        (clock, trust, foreign) = (other.clock, other.trust, nil)
    }

    private init(_ cache: ResponseCache, isOwn: Bool, _ configuration: Configuration) {
        storage = cache.storage
        foreign = nil
        // As the cache itself reckons: one entry is not to drive out all others.
        let capacity = max(Int64(cache.memoryCapacity), cache.directory == nil ? 0 : cache.diskCapacity)
        maximumEntrySize = Int(clamping: min(capacity, cache.maximumEntrySize ?? max(capacity / 20, 64 << 10)))
        self.isOwn = isOwn
        coalescesIdenticalRequests = configuration.coalescesIdenticalRequests
        clock = configuration.wallClock
        trust = CacheOwner.trust(configuration)
    }

    /// Seconds since 1970.
    func now() -> Double { clock?() ?? Date().timeIntervalSince1970 }

    /// When a request is sent, and how much had been removed by then.
    struct Beginning: Sendable {
        let time: Double
        let removals: Int
    }

    func begin(_ key: CacheKey) -> Beginning { Beginning(time: now(), removals: storage.removals.count(key)) }

    // MARK: Servers that a decision is about

    func believe(_ certificate: String, of peer: TLSPeer, by group: Int) {
        passed.withLock {
            _ = $0[Judged(group: group, name: peer.name, port: peer.port), default: []].insert(certificate)
        }
    }

    func believed(by group: Int, _ origin: Origin) -> Set<String> {
        let judged = Judged(group: group, name: TLSPeerName(origin.host), port: origin.port)
        return passed.withLock { $0[judged] ?? [] }
    }

    /// The session is over.
    func invalidate() {
        if isOwn { storage.removeAll(since: nil) }
    }

    // MARK: Refreshes (RFC 5861 §3)

    /// Returns false if somebody does it already.
    func beginRefresh(_ key: CacheKey) -> Bool { refreshing.withLock { $0.insert(key).inserted } }
    func endRefresh(_ key: CacheKey) { refreshing.withLock { _ = $0.remove(key) } }

    // MARK: Fetches that others wait for

    enum Place: Sendable {
        /// Yours to fetch; tell when you know.
        case leader(SharedFetch)
        case follower(SharedFetch)
    }

    func enter(_ question: SharedFetch.Question, mayLead: Bool) -> Place? {
        fetches.withLock { fetches in
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

/// One fetch, and those who wait for what comes of it.
final class SharedFetch: Sendable {
    /// What is asked for; equal ones share.
    struct Question: Hashable, Sendable {
        let key: CacheKey
        let headers: Headers
        let identity: String?
        let policy: Request.CachePolicy
        let isForeign: Bool
    }

    enum Outcome: Sendable {
        /// Look again.
        case stored
        /// Nobody can have it from a cache: everyone for himself.
        case unstorable
        /// Somebody else must try.
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

    /// The first word counts.
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

    /// `nil` if the load was stopped meanwhile. Who has waited for so long as he would for a server waits no more: he who
    /// fetches may wait for a network, or get a byte a minute.
    func outcome(for load: LoadContext) async -> Outcome? {
        let slot = Poller.shared.borrowSlot()
        let end = load.handle.idleLimit == .max ? Int64.max : load.clock.now() &+ load.handle.idleLimit
        let alarm = end == .max ? nil : Alarm(load.clock, at: end, load.handle)
        load.handle.attach(slot)
        defer {
            alarm?.off()
            load.handle.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        while load.stopReason == nil {
            let outcome = state.withLock { state in
                state.waiting.removeAll { $0 === slot }
                if state.outcome == nil { state.waiting.append(slot) }
                return state.outcome
            }
            if let outcome { return outcome }
            if end != .max, load.clock.now() >= end {
                state.withLock { $0.waiting.removeAll { $0 === slot } }
                return .unstorable
            }
            await Poller.shared.park(slot, until: load.handle)
        }
        state.withLock { $0.waiting.removeAll { $0 === slot } }
        return nil
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
        if configuration.addressOverrides != [] { words.append("at \(configuration.addressOverrides)") }
        if let own = configuration.networkInterface { words.append("from \(own)") }
        return words.isEmpty ? nil : Digest.hex(words.joined(separator: "\u{0}").utf8)
    }
}

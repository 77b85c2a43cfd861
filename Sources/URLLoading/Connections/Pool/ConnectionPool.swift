// SPDX-License-Identifier: Apache-2.0

// In this folder: which load gets which connection

// The connections of a session. `PoolState` decides under the lock; waking waiters and closing connections follow after
// it.

import Synchronization
import URLLoadingIO

final class ConnectionPool: Sendable, CustomStringConvertible {
    private let state: Lock<Guarded>
    private let idleLifetime: Int64
    /// One for the session, because its trust roots are read once. Streams use it without the limits of the pool.
    let connector: Connector
    private let clock: LoopClock
    let ftp: FTPPool
    #if HTTP3
    let http3: HTTP3Pool
    #endif
    private struct Guarded: Sendable {
        var pool: PoolState<HTTP1Connection>
        /// The HTTP/2 connections, each shared by several streams.
        var shared: Sharing

        /// The time since when the oldest idle connection has been idle.
        var oldestIdle: Int64? {
            let idle = shared.connections.filter { $0.streamCount == 0 }.map(\.idleSince).min()
            return [pool.oldestIdle, idle].compactMap(\.self).min()
        }

        /// Whether there may be more idle connections than are kept, which takes a search to know.
        var mayBeOverfull: Bool { shared.connectionCount + pool.idleCount > pool.maximumIdle }

        /// Removes and returns the connection that has been idle for longest.
        mutating func takeOldestIdle() -> LeasedConnection? {
            let idle = shared.connections.filter { $0.streamCount == 0 }
            guard let oldest = idle.min(by: { $0.idleOrder < $1.idleOrder }) else {
                return pool.evictOldest().map { .own($0, isNew: false) }
            }
            if let order = pool.oldestIdleOrder, order < oldest.idleOrder {
                return pool.evictOldest().map { .own($0, isNew: false) }
            }
            // A connection without streams has no waiters.
            _ = shared.remove(oldest, oldest.route)
            return .shared(oldest, isNew: false)
        }
    }
    let versions: Configuration.HTTPVersions
    let anchor = Anchor<ConnectionPool>.Weak()
    private let isReaperScheduled = Atomic<Bool>(false)

    /// - Parameter services: where servers offer HTTP/3; `nil` to keep that to this pool.
    init(_ configuration: Configuration, services: AlternativeServiceStore? = nil) {
        let lifetime = configuration.connections.idleLifetime
        idleLifetime = lifetime > .zero ? LoadHandle.nanoseconds(lifetime) : 0
        state = Lock(
            Guarded(
                pool: PoolState(
                    perHost: configuration.connections.maximumPerHost,
                    maximumIdle: lifetime > .zero ? configuration.connections.maximumIdle : 0),
                shared: Sharing(perHost: configuration.connections.maximumPerHost)))
        versions = configuration.connections.httpVersions
        keepsConnections = idleLifetime > 0 && configuration.connections.maximumIdle > 0
        connector = Connector(configuration) { [anchor] in anchor.owner?.relieve(attempts: $0) ?? .none }
        clock = configuration.clock
        ftp = FTPPool(configuration, keepsConnections: keepsConnections)
        #if HTTP3
        http3 = HTTP3Pool(
            configuration, connector, keepsConnections: keepsConnections, services ?? AlternativeServiceStore())
        #endif
    }

    /// Returns a connection for one exchange: an idle one, the next one that becomes free, or a new one.
    /// - Parameters:
    ///   - least: the lowest identifier of an idle connection that may be used, after an older one turned out to be
    ///     stale; `nil` for any.
    ///   - isFirst: other loads wait to learn the server's HTTP version from this connection.
    ///   - offersHTTP2: whether the TLS handshake may offer HTTP/2, if the route allows it.
    /// - Returns: `nil` if the server turned out to speak HTTP/2 while the load waited: the load must ask again.
    func leaseOwn(
        _ route: Route, for request: ConnectionRequest, since least: Int?, isFirst: Bool = false,
        at addresses: FoundAddresses? = nil, offersHTTP2: Bool = true
    ) async throws(LoadError) -> LeasedConnection? {
        while true {
            let connection: HTTP1Connection
            switch leaseNow(route) {
            case .connect:
                return try await connect(
                    route, for: request, isFirst: isFirst, at: addresses, offersHTTP2: offersHTTP2)
            case .use(let idle): connection = idle
            case .wait(let waiter):
                switch try await turn(of: waiter, route, request.handle) {
                case .use(let idle): connection = idle
                case .again: return nil
                case .connect:
                    return try await connect(
                        route, for: request, isFirst: isFirst, at: addresses, offersHTTP2: offersHTTP2)
                }
            }
            if least.map({ connection.identifier >= $0 }) ?? true, connection.isClean {
                return .own(connection, isNew: false)
            }
            // A new connection takes the slot of the closed one, so that this load does not queue again.
            connection.close()
            state.withLock { $0.pool.replace(route) }
            return try await connect(
                route, for: request, isFirst: isFirst, at: addresses, offersHTTP2: offersHTTP2)
        }
    }

    // Not inlined: what an async function calls in place becomes a part of its frame.
    @inline(never)
    private func leaseNow(_ route: Route) -> PoolState<HTTP1Connection>.Lease {
        state.withLock { state in
            let lease = state.pool.lease(route, makeWaiter: Self.makeWaiter)
            if case .use(let connection) = lease, connection.route != route { connection.route = route }
            return lease
        }
    }

    /// Returns an idle connection that serves HTTP/1.1, without a wait; nil if the load must ask `lease`. Connections
    /// that turn out to be stale are closed.
    func leaseIdle(_ route: Route, inHTTP1: Bool) -> HTTP1Connection? {
        guard !mayShare(route) || inHTTP1 && versions != .http2PriorKnowledge else { return nil }
        while true {
            let idle = state.withLock { state in
                let idle = state.pool.leaseIdle(route)
                if let idle, idle.route != route { idle.route = route }
                return idle
            }
            guard let idle, !idle.isClean else { return idle }
            giveBack(idle, reusable: false)
        }
    }

    func giveBack(_ connection: HTTP1Connection, reusable: Bool) {
        let now = clock.coarseNow()
        if reusable { connection.releaseBuffers() }
        let (consequence, mayBeOverfull) = state.withLock { state in
            let consequence = state.pool.giveBack(connection, connection.route, reusable: reusable, now: now)
            return (consequence, state.mayBeOverfull)
        }
        act(on: consequence)
        guard reusable else { return }
        if mayBeOverfull { evictSurplus() }
        scheduleReaping(now)
    }

    /// Closes the oldest idle connections, of any HTTP version, beyond the configured number.
    func evictSurplus() {
        while true {
            let oldest: LeasedConnection? = state.withLock { state in
                guard state.mayBeOverfull else { return nil }
                let idle = state.shared.connections.count { $0.streamCount == 0 }
                guard idle > 0, idle + state.pool.idleCount > state.pool.maximumIdle else { return nil }
                return state.takeOldestIdle()
            }
            guard let oldest else { return }
            oldest.close()
        }
    }

    /// Closes the connection that has been idle for longest, of any route and protocol, so that a new connection can
    /// use its descriptor. Returns false if no connection is idle.
    func closeOldestIdle() -> Bool {
        let control = ftp.oldestIdle
        let oldest: LeasedConnection? = state.withLock { state in
            if let control, control <= state.oldestIdle ?? .max { return nil }
            return state.takeOldestIdle()
        }
        #if HTTP3
        if oldest == nil, http3.closeOldestIdle() { return true }
        #endif
        guard let oldest else { return ftp.closeOldestIdle() }
        oldest.close()
        return true
    }

    /// Frees a descriptor for a new connection, if it can.
    /// - Parameter attempts: the number of attempts to connect that lack a descriptor.
    func relieve(attempts: Int) -> DescriptorRelief {
        if closeOldestIdle() { return .closedIdle }
        let hosts = snapshot()
        let isInUse = hosts.contains { $0.active + $0.resting > 0 || !$0.streams.isEmpty }
        return isInUse || hosts.reduce(0) { $0 + $1.connecting } > attempts ? .mayComeFree : .none
    }

    /// Starts the timer for all idle connections; it restarts itself while there are any.
    func scheduleReaping(_ now: Int64? = nil) {
        guard !isReaperScheduled.load(ordering: .relaxed),
            !isReaperScheduled.exchange(true, ordering: .acquiringAndReleasing)
        else { return }
        scheduleReaping(at: (now ?? clock.coarseNow()) + idleLifetime)
    }

    /// Whether idle connections are kept.
    let keepsConnections: Bool

    func withSharing<R: Sendable>(_ body: (inout Sharing) -> R) -> R { state.withLock { body(&$0.shared) } }

    /// Reads the states of both kinds of connections at one moment.
    func withStates<R: Sendable>(_ body: (PoolState<HTTP1Connection>, Sharing) -> R) -> R {
        state.withLock { body($0.pool, $0.shared) }
    }

    /// Changes the shared connections, given the order number of a connection that becomes idle now.
    func withSharingAndIdleOrder<R: Sendable>(_ body: (inout Sharing, UInt64) -> R) -> R {
        state.withLock { body(&$0.shared, $0.pool.nextIdleOrder()) }
    }

    /// Changes the shared connections of a route that turned out to speak HTTP/2, and sends away the loads that wait
    /// for a connection of their own; they ask again.
    func withSharingAndQueue<R: Sendable>(_ route: Route, _ body: (inout Sharing) -> R) -> (R, [PollSlot]) {
        state.withLock { state in
            (body(&state.shared), state.pool.dismissWaiters(route).map(\.slot))
        }
    }

    /// Stops counting a leased connection, because the caller takes it over.
    func surrender(_ connection: HTTP1Connection) {
        state.withLock { $0.pool.giveBack(connection, connection.route, reusable: false, now: 0) }.wake?.slot.wake()
    }

    /// Gives the slot of a leased connection away while its load is suspended, or takes one again.
    func setUnread(_ isUnread: Bool, _ route: Route) {
        if isUnread {
            act(on: state.withLock { $0.pool.beginRest(route) })
        } else {
            state.withLock { $0.pool.endRest(route) }
        }
    }

    /// Closes idle connections, now and from now on; leased ones close when they are given back.
    func drain() {
        for connection in state.withLock({ $0.pool.drain() }) { connection.close() }
        withSharing { $0.drain() }
        closeIdleShared { _ in true }
        ftp.drain()
        #if HTTP3
        http3.drain()
        #endif
    }

    /// Closes idle connections; leased ones continue.
    func closeIdle() {
        ftp.reap(idleSince: .max)
        for connection in state.withLock({ $0.pool.reap(idleSince: .max) }) { connection.close() }
        closeIdleShared { _ in true }
        #if HTTP3
        http3.closeIdle()
        #endif
    }

    var description: String {
        let own = state.withLock { $0.pool.description }
        let shared = withSharing { $0.connections }
        var lines = shared.map { "\($0.route) h2 \($0.streamCount) streams" }
        #if HTTP3
        lines += http3.connections.map { "\($0.route) h3 \($0.streamCount) streams" }
        #endif
        lines = lines.sorted() + (ftp.isEmpty ? [] : [ftp.description])
        guard !lines.isEmpty else { return own }
        return ((own == "empty" ? [] : [own]) + lines).joined(separator: " | ")
    }
    var isEmpty: Bool {
        #if HTTP3
        guard http3.isEmpty else { return false }
        #endif
        return state.withLock { $0.pool.isEmpty && $0.shared.isEmpty } && ftp.isEmpty
    }

    // MARK: Waiting

    private typealias Waiter = PoolState<HTTP1Connection>.Waiter

    @Sendable private static func makeWaiter() -> Waiter {
        let slot = Poller.shared.borrowSlot()
        return Waiter(slot: slot, priority: Task.currentPriority.rawValue)
    }

    @inline(never)  // A load that finds a free connection does not hold the frame of this wait.
    private func turn(of waiter: Waiter, _ route: Route, _ handle: LoadHandle) async throws(LoadError) -> Waiter.Turn {
        try await handle.turn(in: waiter.slot) {
            state.withLock { _ in waiter.turn }
        } abandon: {
            act(on: state.withLock { $0.pool.abandon(waiter, route, now: clock.coarseNow()) })
        }
    }

    private func act(on consequence: PoolState<HTTP1Connection>.Consequence) {
        consequence.wake?.slot.wake()
        consequence.close?.close()
    }

    // MARK: Connecting

    /// Makes a connection in a task of its own. A task keeps the memory of its deepest call until it ends, and
    /// connecting is the deepest: the load's own task would hold it while it waits for its response.
    @inline(never)
    private func connect(
        _ route: Route, for request: ConnectionRequest, isFirst: Bool, at addresses: FoundAddresses?, offersHTTP2: Bool
    ) async throws(LoadError) -> LeasedConnection {
        // The first connection of a session reads the trust roots, for which the loop must not stop.
        let onLoop = route.origin.isSecure && connector.secure.isPrepared && LoopHandshakes.begin()
        let connecting = Task.here(onLoop: onLoop) {
            let made = await self.connected(
                route, for: request, isFirst: isFirst, at: addresses, offersHTTP2: offersHTTP2)
            if onLoop { LoopHandshakes.end() }
            return made
        }
        return try await connecting.value.get()
    }

    private func connected(
        _ route: Route, for request: ConnectionRequest, isFirst: Bool, at addresses: FoundAddresses?, offersHTTP2: Bool
    ) async -> Result<LeasedConnection, LoadError> {
        do throws(LoadError) {
            let offersHTTP2 =
                offersHTTP2 && route.identity?.speaksHTTP1 != true
                && (!mayShare(route) || !withSharing { $0.requireHTTP1.contains(route) })
            let connection = try await connector.connect(
                route, for: request, at: addresses, offersHTTP2: offersHTTP2)
            switch connection {
            case .own: state.withLock { $0.pool.connected(route) }
            case .shared(let connection, _):
                share(connection, isFirst: isFirst)
                // A shared connection does not count against the limit of connections per host.
                act(on: state.withLock { $0.pool.failedToConnect(route) })
            #if HTTP3
            case .http3: break
            #endif
            }
            return .success(connection)
        } catch {
            act(on: state.withLock { $0.pool.failedToConnect(route) })
            return .failure(error)
        }
    }

    // MARK: Reaping

    private func scheduleReaping(at moment: Int64) {
        clock.schedule(Anchor.Timer(anchor) { $0.reap(now: $1) }, at: moment)
    }

    func reap(now: Int64) {
        isReaperScheduled.store(false, ordering: .releasing)
        let (old, next) = state.withLock { state in
            (state.pool.reap(idleSince: now - idleLifetime), state.pool.oldestIdle)
        }
        for connection in old { connection.close() }
        closeIdleShared { $0.isRetired || $0.idleSince <= now - idleLifetime }
        ftp.reap(idleSince: now - idleLifetime)
        let nextShared = withSharing { $0.connections }.filter { $0.streamCount == 0 }.map(\.idleSince).min()
        let oldest = [next, nextShared, ftp.oldestIdle].compactMap { $0 }.min()
        guard let next = oldest, !isReaperScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        scheduleReaping(at: max(next + idleLifetime, now + clock.spacing(10_000_000)))
    }
}

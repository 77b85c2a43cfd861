// The connections of a session. `PoolState` decides under the lock; what follows (waking, closing) is
// done after it.

import Synchronization
import URLLoadingIO

final class ConnectionPool: Sendable, CustomStringConvertible {
    private let state: Lock<Guarded>
    private let idleLifetime: Int64
    /// Of the whole session, for its roots are read once; streams use it past the limits of the pool.
    let connector: Connector
    private let clock: LoopClock
    let ftp: FTPPool
    /// Buffers of connections that rest: who is leased next works with one that is warm. Changed
    /// together with the state, so that it costs no lock of its own.
    private struct Guarded: Sendable {
        var pool: PoolState<HTTP1Connection>
        var spare: [ChunkStorage] = []
        /// Connections of several streams.
        var shared: Sharing

        /// Since when the connection has been idle that has been so for longest.
        var oldestIdle: Int64? {
            let resting = shared.connections.filter { $0.streamCount == 0 }.map(\.restsSince).min()
            return [pool.oldestIdle, resting].compactMap(\.self).min()
        }

        /// Takes out the connection that has been idle for longest.
        mutating func takeOldestIdle() -> LeasedConnection? {
            let resting = shared.connections.filter { $0.streamCount == 0 }
            guard let oldest = resting.min(by: { $0.rest < $1.rest }) else {
                return pool.evictOldest().map { .own($0) }
            }
            if let rest = pool.firstRest, rest < oldest.rest { return pool.evictOldest().map { .own($0) } }
            // No load waits for a place on a connection that has no streams.
            _ = shared.remove(oldest, oldest.route)
            return .shared(oldest)
        }
    }
    let versions: Configuration.HTTPVersions
    private static let mostSpare = 16
    let anchor = Anchor<ConnectionPool>.Weak()
    private let isReaperSet = Atomic<Bool>(false)

    init(_ configuration: Configuration) {
        let lifetime = configuration.idleConnectionLifetime
        idleLifetime = lifetime > .zero ? LoadHandle.nanoseconds(lifetime) : 0
        state = Lock(
            Guarded(
                pool: PoolState(
                    perHost: configuration.maximumConnectionsPerHost,
                    maximumIdle: lifetime > .zero ? configuration.maximumIdleConnections : 0),
                shared: Sharing(perHost: configuration.maximumConnectionsPerHost)))
        versions = configuration.httpVersions
        keepsConnections = idleLifetime > 0 && configuration.maximumIdleConnections > 0
        connector = Connector(configuration) { [anchor] in anchor.owner?.closeOldestIdle() == true }
        clock = configuration.clock
        ftp = FTPPool(configuration, keepsConnections: keepsConnections)
    }

    /// A connection for one exchange: an idle one, the next that becomes free, or a new one.
    /// - Parameters:
    ///   - fresh: never an idle one, after one turned out to be stale.
    ///   - isFirst: others wait to know what its server speaks.
    ///   - offersHTTP2: whether the server may choose it, if the route may.
    /// - Returns: `nil` if its server turned out to speak HTTP/2 while the load waited: it is to ask again.
    func leaseOwn(
        _ route: Route, for request: ConnectionRequest, fresh: Bool, isFirst: Bool = false,
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
                case .connect, .waiting:
                    return try await connect(
                        route, for: request, isFirst: isFirst, at: addresses, offersHTTP2: offersHTTP2)
                }
            }
            if !fresh, connection.isClean { return .own(connection) }
            // Its place is ours: a new one takes it, and nobody waits longer for that.
            connection.close()
            state.withLock { $0.pool.replace(route) }
            return try await connect(
                route, for: request, isFirst: isFirst, at: addresses, offersHTTP2: offersHTTP2)
        }
    }

    private func leaseNow(_ route: Route) -> PoolState<HTTP1Connection>.Lease {
        state.withLock { state in
            let lease = state.pool.lease(route, makeWaiter: Self.makeWaiter)
            if case .use(let connection) = lease {
                connection.wake(with: &state.spare)
                if connection.route != route { connection.route = route }
            }
            return lease
        }
    }

    func giveBack(_ connection: HTTP1Connection, reusable: Bool) {
        let now = clock.coarseNow()
        let buffer = reusable ? connection.rest() : nil
        act(
            on: state.withLock { state in
                if let buffer, state.spare.count < Self.mostSpare { state.spare.append(buffer) }
                let consequence = state.pool.giveBack(connection, connection.route, reusable: reusable, now: now)
                if case .use(let connection)? = consequence.wake?.turn { connection.wake(with: &state.spare) }
                return consequence
            })
        guard reusable else { return }
        evictSurplus()
        scheduleReaping(now)
    }

    /// Connections that rest are kept up to a number, whichever version of HTTP they speak; the oldest goes.
    func evictSurplus() {
        while true {
            let oldest: LeasedConnection? = state.withLock { state in
                // The rule, and it costs nothing.
                guard state.shared.mostConnections + state.pool.idleCount > state.pool.maximumIdle else { return nil }
                let resting = state.shared.connections.count { $0.streamCount == 0 }
                guard resting > 0, resting + state.pool.idleCount > state.pool.maximumIdle else { return nil }
                return state.takeOldestIdle()
            }
            guard let oldest else { return }
            oldest.close()
        }
    }

    /// Closes the connection that has been idle for longest, whichever route and protocol it serves, so that a new one can
    /// have its descriptor. Returns whether there was one.
    func closeOldestIdle() -> Bool {
        let control = ftp.oldestIdle
        let oldest: LeasedConnection? = state.withLock { state in
            if let control, control <= state.oldestIdle ?? .max { return nil }
            return state.takeOldestIdle()
        }
        guard let oldest else { return ftp.closeOldestIdle() }
        oldest.close()
        return true
    }

    /// One timer for all idle connections; it sets itself again while there are any.
    func scheduleReaping(_ now: Int64? = nil) {
        guard !isReaperSet.load(ordering: .relaxed), !isReaperSet.exchange(true, ordering: .acquiringAndReleasing)
        else { return }
        scheduleReaping(at: (now ?? clock.coarseNow()) + idleLifetime)
    }

    /// Connections are kept for later.
    let keepsConnections: Bool

    func withSharing<R: Sendable>(_ body: (inout Sharing) -> R) -> R { state.withLock { body(&$0.shared) } }

    /// The same, with the number of a shared connection that comes to rest by it.
    func withSharingAndRest<R: Sendable>(_ body: (inout Sharing, UInt64) -> R) -> R {
        state.withLock { body(&$0.shared, $0.pool.nextRest()) }
    }

    /// The same, when a route turned out to speak HTTP/2: who waits for a connection of his own asks again.
    func withSharingAndQueue<R: Sendable>(_ route: Route, _ body: (inout Sharing) -> R) -> (R, [PollSlot]) {
        state.withLock { state in
            (body(&state.shared), state.pool.sendAway(route).map(\.slot))
        }
    }

    /// A leased connection is somebody else's from now on.
    func surrender(_ connection: HTTP1Connection) {
        state.withLock { $0.pool.giveBack(connection, connection.route, reusable: false, now: 0) }.wake?.slot.wake()
    }

    /// A leased connection gives its place away, and takes one again.
    func setResting(_ isResting: Bool, _ route: Route) {
        if isResting { act(on: state.withLock { $0.pool.rest(route) }) } else { state.withLock { $0.pool.goOn(route) } }
    }

    /// Nothing is kept any more; what is leased closes when it comes back.
    func drain() {
        for connection in state.withLock({ $0.pool.drain() }) { connection.close() }
        withSharing { $0.drain() }
        closeIdleShared { _ in true }
        ftp.drain()
    }

    /// What rests is closed; what is leased goes on.
    func closeIdle() {
        ftp.reap(idleSince: .max)
        for connection in state.withLock({ $0.pool.reap(idleSince: .max) }) { connection.close() }
        closeIdleShared { _ in true }
    }

    var description: String {
        let own = state.withLock { $0.pool.description }
        let shared = withSharing { $0.connections }
        guard !shared.isEmpty || !ftp.isEmpty else { return own }
        let lines =
            shared.map { "\($0.route) h2 \($0.streamCount) streams" }.sorted() + (ftp.isEmpty ? [] : [ftp.description])
        return ((own == "empty" ? [] : [own]) + lines).joined(separator: " | ")
    }
    var isEmpty: Bool { state.withLock { $0.pool.isEmpty && $0.shared.isEmpty } && ftp.isEmpty }

    // MARK: Waiting

    private typealias Waiter = PoolState<HTTP1Connection>.Waiter

    @Sendable private static func makeWaiter() -> Waiter {
        let slot = Poller.shared.borrowSlot()
        return Waiter(slot: slot, priority: Task.currentPriority.rawValue)
    }

    private func turn(of waiter: Waiter, _ route: Route, _ handle: LoadHandle) async throws(LoadError) -> Waiter.Turn {
        handle.attach(waiter.slot)
        defer {
            handle.detach(waiter.slot)
            Poller.shared.returnSlot(waiter.slot)
        }
        while true {
            if let reason = handle.stopReason {
                act(on: state.withLock { $0.pool.abandon(waiter, route, now: clock.coarseNow()) })
                throw LoadError(reason, phase: .connecting)
            }
            let turn = state.withLock { _ in waiter.turn }
            if case .waiting = turn {
                await Poller.shared.park(waiter.slot, until: handle)
            } else {
                return turn
            }
        }
    }

    private func act(on consequence: PoolState<HTTP1Connection>.Consequence) {
        consequence.wake?.slot.wake()
        consequence.close?.close()
    }

    // MARK: Connecting

    private func connect(
        _ route: Route, for request: ConnectionRequest, isFirst: Bool, at addresses: FoundAddresses?, offersHTTP2: Bool
    ) async throws(LoadError) -> LeasedConnection {
        do {
            let offersHTTP2 =
                offersHTTP2 && route.identity?.speaksHTTP1 != true
                && (!mayShare(route) || !withSharing { $0.requireHTTP1.contains(route) })
            let connection = try await connector.connect(
                route, for: request, at: addresses, offersHTTP2: offersHTTP2)
            switch connection {
            case .own: state.withLock { $0.pool.connected(route) }
            case .shared(let connection):
                share(connection, isFirst: isFirst)
                // It takes up no place of those that one load has at a time.
                act(on: state.withLock { $0.pool.failedToConnect(route) })
            }
            return connection
        } catch {
            act(on: state.withLock { $0.pool.failedToConnect(route) })
            throw error
        }
    }

    // MARK: Reaping

    private func scheduleReaping(at moment: Int64) {
        clock.schedule(Anchor.Timer(anchor) { $0.reap(now: $1) }, at: moment)
    }

    func reap(now: Int64) {
        isReaperSet.store(false, ordering: .releasing)
        let (old, next) = state.withLock { state in
            (state.pool.reap(idleSince: now - idleLifetime), state.pool.oldestIdle)
        }
        for connection in old { connection.close() }
        closeIdleShared { $0.isRetired || $0.restsSince <= now - idleLifetime }
        ftp.reap(idleSince: now - idleLifetime)
        let nextShared = withSharing { $0.connections }.filter { $0.streamCount == 0 }.map(\.restsSince).min()
        let oldest = [next, nextShared, ftp.oldestIdle].compactMap { $0 }.min()
        guard let next = oldest, !isReaperSet.exchange(true, ordering: .acquiringAndReleasing) else { return }
        scheduleReaping(at: max(next + idleLifetime, now + clock.rest(10_000_000)))
    }
}

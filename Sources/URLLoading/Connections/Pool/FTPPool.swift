// SPDX-License-Identifier: Apache-2.0

// The pool of control connections, with the rules and limits of the HTTP/1.1 pool (`PoolState`).

import Synchronization
import URLLoadingIO

final class FTPPool: Sendable, CustomStringConvertible {
    private typealias Waiter = PoolState<FTPConnection>.Waiter
    private let state: Lock<PoolState<FTPConnection>>
    private let clock: LoopClock

    init(_ configuration: Configuration, keepsConnections: Bool) {
        state = Lock(
            PoolState(
                perHost: configuration.connections.maximumPerHost,
                maximumIdle: keepsConnections ? configuration.connections.maximumIdle : 0))
        clock = configuration.clock
    }

    /// Returns a connection for one transfer: an idle one, the next one that becomes free, or the result of `connect`.
    /// - Parameter fresh: excludes idle connections, after one turned out to be stale.
    func lease(
        _ route: Route, _ handle: LoadHandle, fresh: Bool, _ connect: () async throws(LoadError) -> FTPConnection
    ) async throws(LoadError) -> FTPConnection {
        while true {
            var idle: FTPConnection?
            switch state.withLock({ $0.lease(route, makeWaiter: Self.makeWaiter) }) {
            case .connect: break
            case .use(let connection): idle = connection
            case .wait(let waiter):
                if case .use(let connection) = try await turn(of: waiter, route, handle) { idle = connection }
            }
            if let idle {
                if !fresh, idle.isClean { return idle }
                idle.close()
                state.withLock { $0.replace(route) }
            }
            do throws(LoadError) {
                let connection = try await connect()
                state.withLock { $0.connected(route) }
                return connection
            } catch {
                act(on: state.withLock { $0.failedToConnect(route) })
                throw error
            }
        }
    }

    func giveBack(_ connection: FTPConnection, reusable: Bool) {
        act(
            on: state.withLock { $0.giveBack(connection, connection.route, reusable: reusable, now: clock.coarseNow()) }
        )
    }

    func setUnread(_ isUnread: Bool, _ route: Route) {
        if isUnread { act(on: state.withLock { $0.beginRest(route) }) } else { state.withLock { $0.endRest(route) } }
    }

    func snapshots() -> [ConnectionPool.HostSnapshot] { state.withLock { $0.snapshots() } }

    func drain() { for connection in state.withLock({ $0.drain() }) { connection.close() } }

    func reap(idleSince moment: Int64) {
        for connection in state.withLock({ $0.reap(idleSince: moment) }) { connection.close() }
    }

    /// Closes the control connection that has been idle for longest. Returns false if no connection is idle.
    func closeOldestIdle() -> Bool {
        guard let oldest = state.withLock({ $0.evictOldest() }) else { return false }
        oldest.close()
        return true
    }

    var oldestIdle: Int64? { state.withLock { $0.oldestIdle } }
    var isEmpty: Bool { state.withLock { $0.isEmpty } }
    var description: String { state.withLock { $0.description } }

    // MARK: Waiting

    @Sendable private static func makeWaiter() -> Waiter {
        Waiter(slot: Poller.shared.borrowSlot(), priority: Task.currentPriority.rawValue)
    }

    private func turn(of waiter: Waiter, _ route: Route, _ handle: LoadHandle) async throws(LoadError) -> Waiter.Turn {
        try await handle.turn(in: waiter.slot) {
            state.withLock { _ in waiter.turn }
        } abandon: {
            act(on: state.withLock { $0.abandon(waiter, route, now: clock.coarseNow()) })
        }
    }

    private func act(on consequence: PoolState<FTPConnection>.Consequence) {
        consequence.wake?.slot.wake()
        consequence.close?.close()
    }
}

// SPDX-License-Identifier: Apache-2.0

// The statistics sockets of a session, and the counter that runs as soon as there is one.

import Synchronization
import URLLoadingIO

final class LiveStatistics: Sendable {
    private struct State: Sendable {
        var sockets: [StatisticsSocket] = []
        var hasEnded = false
    }
    private let state = Lock(State())
    private let isCounting = Atomic<Bool>(false)
    private let ownCounter = TrafficCounter()

    /// The observer of new loads; `nil` until a socket was opened, so that loads without one cost nothing.
    var counter: TrafficCounter? { isCounting.load(ordering: .relaxed) ? ownCounter : nil }

    /// Adds what was counted to the session's state at this moment.
    func counted(_ snapshot: SessionSnapshot) -> SessionSnapshot {
        isCounting.store(true, ordering: .relaxed)
        return snapshot.with(ownCounter)
    }

    /// Opens a socket.
    /// - Parameter snapshot: the session's state at this moment, without traffic.
    func expose(
        at path: String, _ clock: LoopClock, _ snapshot: @escaping @Sendable () -> SessionSnapshot
    ) throws(LoadError) -> StatisticsSocket {
        isCounting.store(true, ordering: .relaxed)
        let socket = try StatisticsSocket(path: path, clock) { [ownCounter] in snapshot().with(ownCounter) }
        let isTooLate = state.withLock { state in
            state.sockets.removeAll { $0.isClosed }
            if !state.hasEnded { state.sockets.append(socket) }
            return state.hasEnded
        }
        guard !isTooLate else {
            socket.close()
            throw LoadError(.sessionInvalidated, phase: .preparing, party: .local)
        }
        return socket
    }

    /// Closes all sockets, because the session has ended.
    func end() {
        let sockets = state.withLock { state in
            state.hasEnded = true
            defer { state.sockets = [] }
            return state.sockets
        }
        for socket in sockets { socket.close() }
    }
}

extension SessionSnapshot {
    /// Adds the traffic of origins, and leaves the least busy hosts out.
    fileprivate func with(_ counter: TrafficCounter) -> SessionSnapshot {
        var snapshot = self
        let origins = counter.origins
        snapshot.total = counter.total
        for index in snapshot.hosts.indices { snapshot.hosts[index].traffic = origins[hosts[index].name] ?? Traffic() }
        let named = Set(hosts.map(\.name))
        for (name, traffic) in origins where !named.contains(name) {
            var host = Host(name: name)
            host.traffic = traffic
            snapshot.hosts.append(host)
        }
        snapshot.hosts.sort { ($1.weight, $0.name) < ($0.weight, $1.name) }
        snapshot.hiddenHosts = max(0, snapshot.hosts.count - Self.maximumHosts)
        snapshot.hosts.removeLast(snapshot.hiddenHosts)
        return snapshot
    }
}

extension SessionSnapshot.Host {
    /// Hosts with work come before those that moved many bytes.
    fileprivate var weight: Int64 {
        let work = Int64(waiting + active + connecting + resting + streams.reduce(0, +))
        return min(work, 1 << 20) << 42 + min(traffic.bytesSent + traffic.bytesReceived, 1 << 42 - 1)
    }
}

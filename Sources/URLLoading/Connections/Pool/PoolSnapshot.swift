// SPDX-License-Identifier: Apache-2.0

// The connections of a pool at one moment, as numbers: for statistics.

import Synchronization

extension ConnectionPool {
    /// The connections and the queue of one route.
    struct HostSnapshot: Sendable {
        let route: Route
        var connecting = 0
        /// Leased to loads that may move bytes now.
        var active = 0
        var idle = 0
        /// Leased to suspended loads.
        var resting = 0
        /// Loads that wait for a connection or a stream.
        var waiting = 0
        /// The open streams of each connection of HTTP/2 and HTTP/3.
        var streams: [Int] = []
    }

    /// Returns a snapshot of every route that has connections or waiting loads, in no order. A connection that serves
    /// several routes is counted for the one it was made for.
    func snapshot() -> [HostSnapshot] {
        let (own, shared, waiting) = withStates { ($0.snapshots(), $1.connections, $1.waitingCounts) }
        var hosts: [Route: HostSnapshot] = [:]
        for host in own + ftp.snapshots() { hosts[host.route] = host }
        for connection in shared {
            hosts[connection.route, default: HostSnapshot(route: connection.route)].streams
                .append(connection.streamCount)
        }
        #if HTTP3
        for connection in http3.connections {
            hosts[connection.route, default: HostSnapshot(route: connection.route)].streams
                .append(connection.streamCount)
        }
        for (route, count) in http3.waitingCounts {
            hosts[route, default: HostSnapshot(route: route)].waiting += count
        }
        #endif
        for (route, count) in waiting { hosts[route, default: HostSnapshot(route: route)].waiting += count }
        return Array(hosts.values)
    }
}

extension PoolState {
    func snapshots() -> [ConnectionPool.HostSnapshot] {
        hosts.map { route, host in
            ConnectionPool.HostSnapshot(
                route: route, connecting: host.connecting, active: host.leased, idle: host.idle.count,
                resting: host.resting, waiting: host.waiting.count)
        }
    }
}

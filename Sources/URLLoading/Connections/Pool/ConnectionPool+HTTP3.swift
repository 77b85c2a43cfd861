// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingIO
import URLLoadingWire

extension ConnectionPool {
    func leave(_ connection: HTTP3Connection) { http3.leave(connection) }

    /// Lets the next load have the turn to connect over TCP, because this one has a place on an HTTP/3 connection.
    func leaveTurn(_ route: Route, _ leased: LeasedConnection) -> LeasedConnection {
        for waiter in withSharing({ $0.failedToConnect(route, isOwnFault: false) }) { waiter.slot.wake() }
        return leased
    }

    /// Notes that requests of a route are to use another version of HTTP for a time. Returns false if the configuration
    /// allows HTTP/3 only.
    func avoidHTTP3(_ route: Route) -> Bool {
        guard versions != .http3PriorKnowledge else { return false }
        http3.avoid(route.origin)
        return true
    }

    /// Notes that the server of an HTTP/3 connection does not answer for the origin of a route.
    func leaveHTTP3(_ route: Route) {
        http3.forget(route.origin)
        http3.avoid(route.origin)
    }
}

#endif

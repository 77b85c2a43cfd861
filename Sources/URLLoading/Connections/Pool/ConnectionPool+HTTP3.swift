// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingIO
import URLLoadingWire

extension ConnectionPool {
    func leave(_ connection: HTTP3Connection) { http3.leave(connection) }

    /// Notes that requests of a route are to use another version of HTTP for a time. Returns false if the configuration
    /// allows HTTP/3 only.
    func avoidHTTP3(_ route: Route) -> Bool {
        guard versions != .http3PriorKnowledge else { return false }
        http3.avoid(route.origin)
        return true
    }
}

#endif

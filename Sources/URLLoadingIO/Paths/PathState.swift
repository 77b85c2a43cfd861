// SPDX-License-Identifier: Apache-2.0

// The network state reported by the kernel so far. Pure.

package struct PathState: Sendable, Hashable {
    package private(set) var links: [Int32: PathLink] = [:]
    package private(set) var addresses: Set<PathAddress> = []
    /// In the kernel's order, which decides between routes of equal metric.
    package private(set) var routes: [PathRoute] = []

    /// Adds one message of a complete answer.
    package mutating func add(_ message: RouteMessage) {
        switch message {
        case .link(let link): links[link.index] = link
        case .address(let address): addresses.insert(address)
        case .route(let route): routes.append(route)
        default: break
        }
    }

    /// Returns whether a change notification differs from the known state.
    ///
    /// Notifications are not applied themselves: the kernel removes routes together with their link or address, and
    /// replaces them, without notifications for the old ones. An observer therefore rereads all tables after a change.
    package func isChange(_ message: RouteMessage) -> Bool {
        switch message {
        case .link(let link): links[link.index] != link
        case .linkRemoved(let index): links[index] != nil
        case .address(let address): !addresses.contains(address)
        case .addressRemoved(let address): addresses.contains(address)
        case .route, .routeRemoved, .damaged: true
        case .other, .done, .failed: false
        }
    }
}

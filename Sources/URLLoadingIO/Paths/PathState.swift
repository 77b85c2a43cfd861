// The networks as far as the kernel has told. Pure.

package struct PathState: Sendable, Hashable {
    package private(set) var links: [Int32: PathLink] = [:]
    package private(set) var addresses: Set<PathAddress> = []
    /// In the kernel's order, which decides between equal metrics.
    package private(set) var routes: [PathRoute] = []

    package init() {}

    /// Takes in a part of an answer.
    package mutating func add(_ message: RouteMessage) {
        switch message {
        case .link(let link): links[link.index] = link
        case .address(let address): addresses.insert(address)
        case .route(let route): routes.append(route)
        default: break
        }
    }

    /// Whether a message about a change says more than is known.
    ///
    /// What it says is not taken in: the kernel removes routes with their link or address, and replaces them, without a
    /// word of its own about the old ones. Who hears of a change asks for everything.
    package func isNews(_ message: RouteMessage) -> Bool {
        switch message {
        case .link(let link): links[link.index] != link
        case .linkGone(let index): links[index] != nil
        case .address(let address): !addresses.contains(address)
        case .addressGone(let address): addresses.contains(address)
        case .route, .routeGone, .damaged: true
        case .other, .done, .failed: false
        }
    }
}

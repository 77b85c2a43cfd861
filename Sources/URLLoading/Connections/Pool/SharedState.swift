// SPDX-License-Identifier: Apache-2.0

// Assigns stream slots on shared connections to loads: a pure state machine beside `PoolState`. A load to an origin
// that may speak HTTP/2 asks here first; origins that turn out to speak HTTP/1 are remembered, and left to the pool.
//
// While the first load connects to an unknown origin, the others wait, because most likely one connection serves them
// all.
//
// Invariant: if a load waits, then an attempt is running, or the number of connections is at its limit, or a called
// waiter has not asked again yet. Each transition that removes a connection or adds slots therefore calls waiters, and
// a called waiter that does not need its turn passes it on.

import URLLoadingIO

struct SharedState<Connection: AnyObject & Sendable>: Sendable {
    /// A load that waits for a connection or for a slot.
    final class Waiter: @unchecked Sendable {
        // Unchecked: accessed only under the pool's lock, except for the slot.
        let slot: PollSlot
        let priority: UInt8
        /// The waiter was called: it asks again, before newer loads.
        var isCalled = false
        /// The attempt it waited for has failed: it connects by itself, beside other loads.
        var isAlone = false
        init(slot: PollSlot, priority: UInt8) { (self.slot, self.priority) = (slot, priority) }
    }

    enum Lease {
        /// A slot on the connection has been taken.
        case use(Connection)
        case connect
        /// The origin speaks HTTP/1.
        case alone
        case wait(Waiter)
    }

    private struct Host {
        /// The connections that accept streams; a retired one is not included, although its last streams continue.
        var connections: [Connection] = []
        var connecting = 0
        var waiting: [Waiter] = []
        var isEmpty: Bool { connections.isEmpty && connecting == 0 && waiting.isEmpty }
    }
    private var hosts: [Route: Host] = [:]
    /// Origins that chose HTTP/1 when HTTP/2 was offered.
    private var speakHTTP1: Set<Route> = []
    /// Origins that demand HTTP/1.1 after choosing HTTP/2 (HTTP_1_1_REQUIRED, RFC 9113 §7): HTTP/2 is not offered
    /// again.
    private(set) var requireHTTP1: Set<Route> = []
    /// The further routes that a connection serves.
    private var aliases: [ObjectIdentifier: [Route]] = [:]
    /// The routes whose server has rejected requests on a connection of another route (421).
    private var unsharedRoutes: Set<Route> = []
    /// The streams after which the servers of some routes end a connection and refuse others.
    private var streamsTaken: [Route: Int] = [:]
    private let perHost: Int
    private(set) var isDraining = false

    init(perHost: Int) { self.perHost = max(1, perHost) }

    /// Leases a slot.
    /// - Parameters:
    ///   - waiter: the waiter of a load that has waited before; nil for a new load.
    ///   - suits: whether the load prefers this connection to a new one.
    ///   - enter: takes a slot on a connection, if one is free.
    mutating func lease(
        _ route: Route, after waiter: Waiter?, suits: (Connection) -> Bool = { _ in true }, enter: (Connection) -> Bool,
        makeWaiter: () -> Waiter
    ) -> Lease {
        guard !speakHTTP1.contains(route) else { return .alone }
        var host = hosts[route] ?? Host()
        defer { hosts[route] = host }
        if waiter != nil || host.waiting.isEmpty {
            if let free = host.connections.first(where: { suits($0) && enter($0) }) { return .use(free) }
            let isTurn = host.connecting == 0 || waiter?.isAlone == true
            if isTurn, host.connections.count + host.connecting < perHost {
                host.connecting += 1
                return .connect
            }
            if host.connecting == 0, let free = host.connections.first(where: enter) { return .use(free) }
        }
        let new = makeWaiter()
        // A waiter that was already called is requeued ahead of others of equal priority.
        let place = host.waiting.firstIndex { waiter == nil ? $0.priority < new.priority : $0.priority <= new.priority }
        host.waiting.insert(new, at: place ?? host.waiting.endIndex)
        return .wait(new)
    }

    /// The attempt has made a shared connection. Returns the waiters to wake.
    mutating func connected(_ connection: Connection, _ route: Route) -> [Waiter] {
        hosts[route, default: Host()].connections.append(connection)
        speakHTTP1.remove(route)
        return ended(route) { _ in }
    }

    /// The attempt has made an HTTP/1 connection: all waiters are released.
    mutating func connectedWithHTTP1(_ route: Route) -> [Waiter] {
        if speakHTTP1.count >= Self.maximumRemembered { speakHTTP1.removeAll() }
        speakHTTP1.insert(route)
        return ended(route) { _ in }
    }

    /// The attempt has failed. The failure may concern that load only, so waiters connect by themselves, up to the
    /// limit of connections.
    mutating func failedToConnect(_ route: Route, isOwnFault: Bool) -> [Waiter] {
        guard let host = hosts[route] else { return [] }
        hosts[route]?.connecting -= 1
        return isOwnFault
            ? next(route, perHost - host.connections.count - host.connecting + 1) { $0.isAlone = true } : next(route)
    }

    /// The server demands HTTP/1.1: the waiters of the route are released.
    mutating func requiresHTTP1(_ route: Route) -> [Waiter] {
        if requireHTTP1.count >= Self.maximumRemembered { requireHTTP1.removeAll() }
        requireHTTP1.insert(route)
        speakHTTP1.insert(route)
        return next(route, .max)
    }

    private static var maximumRemembered: Int { 4096 }

    private mutating func ended(_ route: Route, _ change: (Waiter) -> Void) -> [Waiter] {
        guard var host = hosts[route] else { return [] }
        if host.connecting > 0 { host.connecting -= 1 }
        let waiting = host.waiting
        host.waiting = []
        for waiter in waiting {
            waiter.isCalled = true
            change(waiter)
        }
        hosts[route] = host.isEmpty ? nil : host
        return waiting
    }

    /// Adds a connection that was not requested by `.connect`.
    mutating func add(_ connection: Connection, _ route: Route) -> [Waiter] {
        hosts[route, default: Host()].connecting += 1
        return connected(connection, route)
    }

    /// Calls the next waiters, because slots have become free, or a turn was not used.
    mutating func next(_ route: Route, _ count: Int = 1, _ change: (Waiter) -> Void = { _ in }) -> [Waiter] {
        guard var host = hosts[route] else { return [] }
        defer { hosts[route] = host.isEmpty ? nil : host }
        let called = Array(host.waiting.prefix(max(0, count)))
        guard !called.isEmpty else { return [] }
        host.waiting.removeFirst(called.count)
        for waiter in called {
            waiter.isCalled = true
            change(waiter)
        }
        return called
    }

    /// A called waiter has found a slot: if another connection is allowed, the next waiter makes it.
    mutating func connectNext(_ route: Route) -> [Waiter] {
        guard let host = hosts[route], host.connecting == 0, host.connections.count < perHost else { return [] }
        return next(route)
    }

    /// A waiter gives up.
    mutating func abandon(_ waiter: Waiter, _ route: Route) -> [Waiter] {
        if waiter.isCalled { return next(route) }
        hosts[route]?.waiting.removeAll { $0 === waiter }
        if hosts[route]?.isEmpty == true { hosts[route] = nil }
        return []
    }

    /// The number of streams after which the route's server ends a connection, if it has refused streams beyond that.
    func mostStreams(_ route: Route) -> Int? { streamsTaken[route] }

    /// - Parameter count: nil if a connection has taken more.
    mutating func noteMostStreams(_ count: Int?, _ route: Route) {
        if streamsTaken.count >= Self.maximumRemembered { streamsTaken.removeAll() }
        streamsTaken[route] = count
    }

    /// Removes a connection that is closed or accepts no more streams. A waiter may make another.
    mutating func remove(_ connection: Connection, _ route: Route) -> [Waiter] {
        ([route] + (aliases.removeValue(forKey: ObjectIdentifier(connection)) ?? [])).flatMap { drop(connection, $0) }
    }

    private mutating func drop(_ connection: Connection, _ route: Route) -> [Waiter] {
        guard let place = hosts[route]?.connections.firstIndex(where: { $0 === connection }) else { return [] }
        hosts[route]?.connections.remove(at: place)
        if hosts[route]?.isEmpty == true { hosts[route] = nil }
        return connectNext(route)
    }

    // MARK: Coalescing (RFC 9113 §9.1.1)

    /// Whether connections of other routes may serve this one; not after its server has rejected one (421).
    func mayCoalesce(_ route: Route) -> Bool { !unsharedRoutes.contains(route) }

    /// The attempt has ended with a connection of another route that serves this one as well.
    mutating func coalesced(_ connection: Connection, of owner: Route, _ route: Route) -> [Waiter] {
        // The connection may have been removed since, or added by another attempt.
        guard connections(to: owner).contains(where: { $0 === connection }),
            !connections(to: route).contains(where: { $0 === connection })
        else { return ended(route) { _ in } }
        aliases[ObjectIdentifier(connection), default: []].append(route)
        return connected(connection, route)
    }

    /// Stops sharing a connection with this route, because the server has rejected the route's requests on it (421).
    mutating func separate(_ connection: Connection, from route: Route) -> [Waiter] {
        if unsharedRoutes.count >= Self.maximumRemembered { unsharedRoutes.removeAll() }
        unsharedRoutes.insert(route)
        aliases[ObjectIdentifier(connection)]?.removeAll { $0 == route }
        return drop(connection, route)
    }

    /// A number of slots on a connection have become free.
    mutating func slotIsFree(_ connection: Connection, _ route: Route, _ count: Int = 1) -> [Waiter] {
        next(route, count) + (aliases[ObjectIdentifier(connection)] ?? []).flatMap { next($0, count) }
    }

    /// Removes every connection that matches. Returns the removed ones, and the waiters to wake.
    mutating func removeAll(where isUnwanted: (Connection) -> Bool) -> (removed: [Connection], woken: [Waiter]) {
        let removed = connections.filter(isUnwanted)
        var woken: [Waiter] = []
        for connection in removed {
            aliases[ObjectIdentifier(connection)] = nil
            for route in Array(hosts.keys) { woken += drop(connection, route) }
        }
        return (removed, woken)
    }

    mutating func drain() { isDraining = true }

    /// All connections, each once even if it serves several routes.
    var connections: [Connection] {
        var seen: Set<ObjectIdentifier> = []
        return hosts.values.flatMap(\.connections).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }
    func connections(to route: Route) -> [Connection] { hosts[route]?.connections ?? [] }
    var isEmpty: Bool { hosts.isEmpty }
    /// An upper bound of the number of connections: one that serves several routes counts for each.
    var connectionCount: Int { hosts.values.reduce(0) { $0 + $1.connections.count } }
    func waiting(_ route: Route) -> Int { hosts[route]?.waiting.count ?? 0 }
    /// The number of waiting loads of each route that has any.
    var waitingCounts: [(route: Route, count: Int)] {
        hosts.compactMap { $0.value.waiting.isEmpty ? nil : ($0.key, $0.value.waiting.count) }
    }
    func connecting(_ route: Route) -> Int { hosts[route]?.connecting ?? 0 }
}

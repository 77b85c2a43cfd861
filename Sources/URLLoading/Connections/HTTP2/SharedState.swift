// Which load gets a place on which shared connection: a pure machine like `PoolState`, beside it. A load to an origin
// that may speak HTTP/2 asks here first; what turns out to speak HTTP/1 is left to the pool, and remembered.
//
// While one load connects to an origin nobody knows, the others wait: most likely all of them fit on what it makes.
//
// Invariant: if a load waits, somebody connects, or there are as many connections as there may be, or one whose turn it
// is has not asked again yet. So every transition that takes a connection away, or adds places, calls those who can go
// on with that; and who was called and did not need it passes it on.

import URLLoadingIO

struct SharedState<Connection: AnyObject & Sendable>: Sendable {
    /// A load that waits for a connection to be made, or for a place. Reached only under the pool's lock.
    final class Waiter: @unchecked Sendable {
        let slot: PollSlot
        let priority: UInt8
        /// It is its turn: it asks again, before those who come now.
        var isCalled = false
        /// What was waited for has failed: it connects by itself, beside others.
        var isAlone = false
        init(slot: PollSlot, priority: UInt8) { (self.slot, self.priority) = (slot, priority) }
    }

    enum Lease {
        /// The place on it is taken.
        case use(Connection)
        case connect
        /// It speaks HTTP/1.
        case alone
        case wait(Waiter)
    }

    private struct Host {
        /// Those that take streams: what is retired is none of them, though its last streams go on.
        var connections: [Connection] = []
        var connecting = 0
        var waiting: [Waiter] = []
        var isEmpty: Bool { connections.isEmpty && connecting == 0 && waiting.isEmpty }
    }
    private var hosts: [Route: Host] = [:]
    /// Origins that chose HTTP/1 when they could choose.
    private var speakHTTP1: Set<Route> = []
    /// Origins that want HTTP/1.1 though they chose HTTP/2 (HTTP_1_1_REQUIRED, RFC 9113 §7): they are not asked again.
    private(set) var requireHTTP1: Set<Route> = []
    /// Other routes that a connection serves as well, and those that were told to have their own.
    private var aliases: [ObjectIdentifier: [Route]] = [:]
    private var loners: Set<Route> = []
    private let perHost: Int
    private(set) var isDraining = false

    init(perHost: Int) { self.perHost = max(1, perHost) }

    /// - Parameters:
    ///   - waiter: of a load that has waited already.
    ///   - suits: whether a load would rather have this connection than a new one.
    ///   - enter: takes a place on a connection, if it has one.
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
        // Whose turn it was already is the first of his kind again.
        let place = host.waiting.firstIndex { waiter == nil ? $0.priority < new.priority : $0.priority <= new.priority }
        host.waiting.insert(new, at: place ?? host.waiting.endIndex)
        return .wait(new)
    }

    /// The attempt has ended with a connection that others may share. Returns whom to wake.
    mutating func connected(_ connection: Connection, _ route: Route) -> [Waiter] {
        hosts[route, default: Host()].connections.append(connection)
        speakHTTP1.remove(route)
        return ended(route) { _ in }
    }

    /// It has ended with one that speaks HTTP/1: nobody waits any more.
    mutating func connectedAlone(_ route: Route) -> [Waiter] {
        if speakHTTP1.count >= Self.mostRemembered { speakHTTP1.removeAll() }
        speakHTTP1.insert(route)
        return ended(route) { _ in }
    }

    /// It has failed. One load's failure is not the others': they try by themselves, as many at a time as there may be
    /// connections.
    mutating func failedToConnect(_ route: Route, isOwnFault: Bool) -> [Waiter] {
        guard let host = hosts[route] else { return [] }
        hosts[route]?.connecting -= 1
        return isOwnFault
            ? next(route, perHost - host.connections.count - host.connecting + 1) { $0.isAlone = true } : next(route)
    }

    /// The server of a route says so. Who waits for a place there has to go elsewhere.
    mutating func requiresHTTP1(_ route: Route) -> [Waiter] {
        if requireHTTP1.count >= Self.mostRemembered { requireHTTP1.removeAll() }
        requireHTTP1.insert(route)
        speakHTTP1.insert(route)
        return next(route, .max)
    }

    private static var mostRemembered: Int { 4096 }

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

    /// A connection the route did not ask for by `.connect`.
    mutating func add(_ connection: Connection, _ route: Route) -> [Waiter] {
        hosts[route, default: Host()].connecting += 1
        return connected(connection, route)
    }

    /// Places have become free, or a turn was not used.
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

    /// Who was called has found a place: if there may be another connection, it is the next one's to make.
    mutating func passOn(_ route: Route) -> [Waiter] {
        guard let host = hosts[route], host.connecting == 0, host.connections.count < perHost else { return [] }
        return next(route)
    }

    /// A waiting load goes away.
    mutating func abandon(_ waiter: Waiter, _ route: Route) -> [Waiter] {
        if waiter.isCalled { return next(route) }
        hosts[route]?.waiting.removeAll { $0 === waiter }
        if hosts[route]?.isEmpty == true { hosts[route] = nil }
        return []
    }

    /// It takes no more streams, or is no more. Its place is another's to fill.
    mutating func remove(_ connection: Connection, _ route: Route) -> [Waiter] {
        ([route] + (aliases.removeValue(forKey: ObjectIdentifier(connection)) ?? [])).flatMap { drop(connection, $0) }
    }

    private mutating func drop(_ connection: Connection, _ route: Route) -> [Waiter] {
        guard let place = hosts[route]?.connections.firstIndex(where: { $0 === connection }) else { return [] }
        hosts[route]?.connections.remove(at: place)
        if hosts[route]?.isEmpty == true { hosts[route] = nil }
        return passOn(route)
    }

    // MARK: Coalescing (RFC 9113 9.1.1)

    /// Whether connections of others may serve a route; once its server has said no (421), they may not.
    func mayCoalesce(_ route: Route) -> Bool { !loners.contains(route) }

    /// The attempt to connect has ended with a connection of another route that serves this one as well.
    mutating func coalesced(_ connection: Connection, of owner: Route, _ route: Route) -> [Waiter] {
        // It may have gone in this moment.
        guard hosts[owner]?.connections.contains(where: { $0 === connection }) == true else {
            return ended(route) { _ in }
        }
        aliases[ObjectIdentifier(connection), default: []].append(route)
        return connected(connection, route)
    }

    /// Its server did not want that.
    mutating func part(_ connection: Connection, from route: Route) -> [Waiter] {
        if loners.count >= Self.mostRemembered { loners.removeAll() }
        loners.insert(route)
        aliases[ObjectIdentifier(connection)]?.removeAll { $0 == route }
        return drop(connection, route)
    }

    /// So many places on a connection have become free.
    mutating func placeIsFree(_ connection: Connection, _ route: Route, _ count: Int = 1) -> [Waiter] {
        next(route, count) + (aliases[ObjectIdentifier(connection)] ?? []).flatMap { next($0, count) }
    }

    /// Takes out every connection of which this is true. Returns whom to wake as well.
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

    /// Each once, though it may serve several routes.
    var connections: [Connection] {
        var seen: Set<ObjectIdentifier> = []
        return hosts.values.flatMap(\.connections).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }
    func connections(to route: Route) -> [Connection] { hosts[route]?.connections ?? [] }
    var isEmpty: Bool { hosts.isEmpty }
    /// Not fewer than there are: what serves several routes counts for each.
    var mostConnections: Int { hosts.values.reduce(0) { $0 + $1.connections.count } }
    func waiting(_ route: Route) -> Int { hosts[route]?.waiting.count ?? 0 }
    func connecting(_ route: Route) -> Int { hosts[route]?.connecting ?? 0 }
}

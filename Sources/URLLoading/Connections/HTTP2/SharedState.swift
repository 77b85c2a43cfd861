// Which load gets a place on which shared connection: a pure machine like `PoolState`, beside it. A load to an origin
// that may speak HTTP/2 asks here first; what turns out to speak HTTP/1 is left to the pool, and remembered.
//
// While one load connects to an origin nobody knows, the others wait: most likely all of them fit on what it makes.

import URLLoadingIO

struct SharedState<Connection: AnyObject & Sendable>: Sendable {
    /// A load that waits for a connection to be made, or for a place. Reached only under the pool's lock.
    final class Waiter: @unchecked Sendable {
        let slot: PollSlot
        let priority: UInt8
        /// It is its turn: it asks again, before those who come now.
        var isCalled = false
        /// What was waited for has failed: it connects by itself.
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
    ///   - enter: takes a place on a connection, if it has one.
    mutating func lease(_ route: Route, after waiter: Waiter?, enter: (Connection) -> Bool, makeWaiter: () -> Waiter) -> Lease {
        guard !speakHTTP1.contains(route) else { return .alone }
        var host = hosts[route] ?? Host()
        defer { hosts[route] = host }
        if waiter != nil || host.waiting.isEmpty, let free = host.connections.first(where: enter) { return .use(free) }
        let mayConnect = host.connecting == 0 && host.connections.count < perHost
        if waiter?.isAlone == true || (mayConnect && (waiter != nil || host.waiting.isEmpty)) {
            host.connecting += 1
            return .connect
        }
        let new = makeWaiter()
        let place = host.waiting.firstIndex { $0.priority < new.priority } ?? host.waiting.endIndex
        host.waiting.insert(new, at: place)
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

    /// It has failed. One load's failure is not the others': they try by themselves.
    mutating func failedToConnect(_ route: Route, isOwnFault: Bool) -> [Waiter] {
        guard !isOwnFault else { return ended(route) { $0.isAlone = true } }
        hosts[route]?.connecting -= 1
        return next(route)
    }

    /// The server of a route says so.
    mutating func requiresHTTP1(_ route: Route) {
        if requireHTTP1.count >= Self.mostRemembered { requireHTTP1.removeAll() }
        requireHTTP1.insert(route)
        speakHTTP1.insert(route)
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

    /// A place has become free, or a turn was not used.
    mutating func next(_ route: Route) -> [Waiter] {
        guard var host = hosts[route] else { return [] }
        defer { hosts[route] = host.isEmpty ? nil : host }
        guard !host.waiting.isEmpty else { return [] }
        let first = host.waiting.removeFirst()
        first.isCalled = true
        return [first]
    }

    /// A waiting load goes away.
    mutating func abandon(_ waiter: Waiter, _ route: Route) -> [Waiter] {
        if waiter.isCalled { return next(route) }
        hosts[route]?.waiting.removeAll { $0 === waiter }
        if hosts[route]?.isEmpty == true { hosts[route] = nil }
        return []
    }

    mutating func remove(_ connection: Connection, _ route: Route) {
        for route in [route] + (aliases.removeValue(forKey: ObjectIdentifier(connection)) ?? []) { drop(connection, route) }
    }

    private mutating func drop(_ connection: Connection, _ route: Route) {
        hosts[route]?.connections.removeAll { $0 === connection }
        if hosts[route]?.isEmpty == true { hosts[route] = nil }
    }

    // MARK: Coalescing (RFC 9113 9.1.1)

    /// Whether connections of others may serve a route; once its server has said no (421), they may not.
    func mayCoalesce(_ route: Route) -> Bool { !loners.contains(route) }

    /// The attempt to connect has ended with a connection of another route that serves this one as well.
    mutating func coalesced(_ connection: Connection, of owner: Route, _ route: Route) -> [Waiter] {
        // It may have gone in this moment.
        guard hosts[owner]?.connections.contains(where: { $0 === connection }) == true else { return ended(route) { _ in } }
        aliases[ObjectIdentifier(connection), default: []].append(route)
        return connected(connection, route)
    }

    /// Its server did not want that.
    mutating func part(_ connection: Connection, from route: Route) {
        if loners.count >= Self.mostRemembered { loners.removeAll() }
        loners.insert(route)
        aliases[ObjectIdentifier(connection)]?.removeAll { $0 == route }
        drop(connection, route)
    }

    /// A place on a connection has become free.
    mutating func placeIsFree(_ connection: Connection, _ route: Route) -> [Waiter] {
        next(route) + (aliases[ObjectIdentifier(connection)] ?? []).flatMap { next($0) }
    }

    /// Takes out every connection of which this is true.
    mutating func removeAll(where isUnwanted: (Connection) -> Bool) -> [Connection] {
        var removed: [Connection] = []
        for route in Array(hosts.keys) {
            hosts[route]?.connections.removeAll {
                guard isUnwanted($0) else { return false }
                removed.append($0)
                aliases[ObjectIdentifier($0)] = nil
                return true
            }
            if hosts[route]?.isEmpty == true { hosts[route] = nil }
        }
        return removed
    }

    mutating func drain() { isDraining = true }

    /// Each once, though it may serve several routes.
    var connections: [Connection] {
        var seen: Set<ObjectIdentifier> = []
        return hosts.values.flatMap(\.connections).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }
    var isEmpty: Bool { hosts.isEmpty }
    func waiting(_ route: Route) -> Int { hosts[route]?.waiting.count ?? 0 }
    func connecting(_ route: Route) -> Int { hosts[route]?.connecting ?? 0 }
}

// Which load gets which connection: a pure machine. It knows no socket and no clock, only tokens of
// connections, and every transition says what is to be done.
//
// Invariant: every connection counted has exactly one owner. It is being connected for a load,
// leased to one, or idle since some moment; what is closed is counted no more. A leased one may rest: its
// load waits for its caller and moves no byte. It then takes up no place, or loads that nobody reads
// would hold up those somebody waits for.

import URLLoadingIO
import URLLoadingWire

struct PoolState<Connection: AnyObject & Sendable>: Sendable {
    /// A load that waits its turn. Reached only under the pool's lock.
    final class Waiter: @unchecked Sendable {
        enum Turn {
            case waiting
            case use(Connection)
            /// A place is free: make a connection.
            case connect
            /// The server speaks HTTP/2: ask there.
            case again
        }
        var turn = Turn.waiting
        /// Where it waits.
        let slot: PollSlot
        /// How urgent it is, as `TaskPriority` counts.
        let priority: UInt8
        init(slot: PollSlot, priority: UInt8 = TaskPriority.medium.rawValue) {
            self.slot = slot
            self.priority = priority
        }
    }

    /// A connection that rests: since when, and after how many others. Moments tell which have rested for too long, but
    /// not which of two rests longer: the clock ticks every few milliseconds, and many exchanges end within one tick.
    struct Idle {
        let connection: Connection
        let since: Int64
        let order: UInt64
    }

    /// The connections to one route.
    struct Host {
        var idle: [Idle] = []
        var connecting = 0
        var leased = 0
        var resting = 0
        var waiting = WaiterQueue()
        /// Places taken.
        var count: Int { idle.count + connecting + leased }

        mutating func queue(_ waiter: Waiter) -> Lease {
            waiting.append(waiter)
            return .wait(waiter)
        }

        /// The next in line may make a connection in the place of one that is gone.
        mutating func placeIsFree(of perHost: Int) -> Waiter? {
            guard count < perHost, let next = waiting.popFirst() else { return nil }
            connecting += 1
            next.turn = .connect
            return next
        }
    }

    enum Lease {
        case use(Connection)
        case connect
        case wait(Waiter)
    }

    /// What follows a transition, done after the lock is released.
    struct Consequence {
        var wake: Waiter?
        var close: Connection?
    }

    private(set) var hosts: [Route: Host] = [:]
    private(set) var idleCount = 0
    private var rests: UInt64 = 0
    let perHost: Int
    let maximumIdle: Int
    /// Nothing is kept any more.
    private(set) var isDraining = false

    init(perHost: Int, maximumIdle: Int) {
        self.perHost = max(1, perHost)
        self.maximumIdle = max(0, maximumIdle)
    }

    /// Asks for a connection. The newest idle one first: it is the least likely to be stale.
    mutating func lease(_ route: Route, makeWaiter: () -> Waiter) -> Lease {
        if route.forwarder != nil, let connection = takeOver(for: route) { return .use(connection) }
        let perHost = perHost
        let lease: Lease = update(route) { host in
            guard host.waiting.count == 0 else { return host.queue(makeWaiter()) }
            if let newest = host.idle.popLast() {
                host.leased += 1
                return .use(newest.connection)
            }
            guard host.count < perHost else { return host.queue(makeWaiter()) }
            host.connecting += 1
            return .connect
        }
        if case .use = lease { idleCount -= 1 }
        return lease
    }

    /// One that rests after another origin's requests: who forwards does so for all of them. It counts for the new
    /// origin from now on. `nil` if there is none, or the origin has one of its own, or no place.
    private mutating func takeOver(for route: Route) -> Connection? {
        if let host = hosts[route] {
            guard host.idle.isEmpty, host.waiting.count == 0, host.count < perHost else { return nil }
        }
        guard idleCount > 0,
            let other = hosts.filter({ !$0.value.idle.isEmpty && $0.key.isForwarded(as: route) })
                .max(by: { $0.value.idle[$0.value.idle.count - 1].order < $1.value.idle[$1.value.idle.count - 1].order }
                )?.key,
            let newest = update(other, { $0.idle.popLast() })
        else { return nil }
        idleCount -= 1
        dropIfEmpty(other)
        update(route) { $0.leased += 1 }
        return newest.connection
    }

    /// A connection was made by the load that had a place for it.
    mutating func connected(_ route: Route) {
        update(route) { host in
            host.connecting -= 1
            host.leased += 1
        }
    }

    /// A leased connection turned out to be of no use: whoever has it makes another in its place.
    mutating func replace(_ route: Route) {
        update(route) { host in
            host.leased -= 1
            host.connecting += 1
        }
    }

    /// It was not: its place goes to the next.
    mutating func failedToConnect(_ route: Route) -> Consequence {
        let perHost = perHost
        let next = update(route) { host in
            host.connecting -= 1
            return host.placeIsFree(of: perHost)
        }
        if next == nil { dropIfEmpty(route) }
        return Consequence(wake: next)
    }

    /// The server speaks HTTP/2, and has room for all.
    mutating func sendAway(_ route: Route) -> [Waiter] {
        guard hosts[route] != nil else { return [] }
        var sent: [Waiter] = []
        while let next = hosts[route]?.waiting.popFirst() {
            next.turn = .again
            sent.append(next)
        }
        dropIfEmpty(route)
        return sent
    }

    /// A leased connection moves no byte until its load's caller wants it to: its place goes to the next.
    mutating func rest(_ route: Route) -> Consequence {
        let perHost = perHost
        return Consequence(
            wake: update(route) { host in
                host.leased -= 1
                host.resting += 1
                return host.placeIsFree(of: perHost)
            })
    }

    /// It goes on, and takes a place again: beyond the limit if there is none, since nobody's turn can be
    /// waited for with a message half read.
    mutating func goOn(_ route: Route) {
        update(route) { host in
            host.resting -= 1
            host.leased += 1
        }
    }

    /// A lease ends. A connection that can be used again goes to who is next in line, or is kept.
    mutating func giveBack(_ connection: Connection, _ route: Route, reusable: Bool, now: Int64) -> Consequence {
        let keeps = reusable && !isDraining && maximumIdle > 0
        let perHost = perHost
        var isKept = false
        let order = nextRest()
        let next: Waiter? = update(route) { host in
            if reusable, let next = host.waiting.popFirst() {
                next.turn = .use(connection)
                isKept = true
                return next
            }
            host.leased -= 1
            guard keeps else { return host.placeIsFree(of: perHost) }
            host.idle.append(Idle(connection: connection, since: now, order: order))
            isKept = true
            return nil
        }
        if let next { return Consequence(wake: next, close: isKept ? nil : connection) }
        guard isKept else {
            dropIfEmpty(route)
            return Consequence(close: connection)
        }
        idleCount += 1
        return Consequence(close: idleCount > maximumIdle ? evictOldest() : nil)
    }

    /// A waiting load goes away. What it was given in the same moment goes to the next.
    mutating func abandon(_ waiter: Waiter, _ route: Route, now: Int64) -> Consequence {
        switch waiter.turn {
        case .waiting:
            update(route) { $0.waiting.remove(waiter) }
            dropIfEmpty(route)
            return Consequence()
        case .use(let connection): return giveBack(connection, route, reusable: true, now: now)
        case .connect: return failedToConnect(route)
        case .again: return Consequence()
        }
    }

    /// Takes out every idle connection unused since before `moment`.
    mutating func reap(idleSince moment: Int64) -> [Connection] {
        var reaped: [Connection] = []
        for route in Array(hosts.keys) {
            hosts[route]?.idle.removeAll {
                guard $0.since <= moment else { return false }
                reaped.append($0.connection)
                return true
            }
            dropIfEmpty(route)
        }
        idleCount -= reaped.count
        return reaped
    }

    /// When the oldest idle connection began to be idle.
    var oldestIdle: Int64? { hosts.values.compactMap { $0.idle.first?.since }.min() }
    /// Which one that is, counted with the others of `nextRest`.
    var firstRest: UInt64? { hosts.values.compactMap { $0.idle.first?.order }.min() }

    /// The number of a connection that comes to rest now.
    mutating func nextRest() -> UInt64 {
        rests &+= 1
        return rests
    }

    /// From now on nothing is kept. Returns what was idle.
    mutating func drain() -> [Connection] {
        isDraining = true
        return reap(idleSince: .max)
    }

    var isEmpty: Bool { hosts.isEmpty }

    /// Changes the host where it lies: a copy would copy its arrays.
    private mutating func update<R>(_ route: Route, _ change: (inout Host) -> R) -> R {
        change(&hosts[route, default: Host()])
    }

    private mutating func dropIfEmpty(_ route: Route) {
        guard let host = hosts[route], host.count + host.resting == 0, host.waiting.count == 0 else { return }
        hosts[route] = nil
    }

    mutating func evictOldest() -> Connection? {
        guard
            let (route, host) = hosts.filter({ !$0.value.idle.isEmpty })
                .min(by: { $0.value.idle[0].order < $1.value.idle[0].order })
        else { return nil }
        let oldest = host.idle[0].connection
        hosts[route]?.idle.removeFirst()
        idleCount -= 1
        dropIfEmpty(route)
        return oldest
    }
}

extension PoolState: CustomStringConvertible {
    /// `empty`, or one part per route: `https://a.example 1 connecting 2 leased 0 idle 3 waiting`.
    var description: String {
        guard !hosts.isEmpty else { return "empty" }
        return hosts.map { route, host in
            "\(route) \(host.connecting) connecting \(host.leased) leased \(host.idle.count) idle \(host.waiting.count) waiting"
                + (host.resting > 0 ? " \(host.resting) resting" : "")
        }.sorted().joined(separator: " | ")
    }
}

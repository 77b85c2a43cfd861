// SPDX-License-Identifier: Apache-2.0

// Assigns connections to loads: a pure state machine. It knows neither sockets nor clocks, only connections as tokens;
// every transition returns what the pool must do.
//
// Invariant: every counted connection has exactly one owner. It is being connected for a load, leased to one, or idle
// since a known time; a closed connection is not counted. A leased connection rests while its load is suspended and
// moves no bytes. It then takes up no slot; otherwise suspended loads would block active ones.

import URLLoadingIO

struct PoolState<Connection: AnyObject & Sendable>: Sendable {
    /// A load that waits for a connection.
    final class Waiter: @unchecked Sendable {
        // Unchecked: accessed only under the pool's lock, except for the slot.
        enum Turn {
            case use(Connection)
            /// A slot is free: make a connection.
            case connect
            /// The server speaks HTTP/2: ask the pool again.
            case again
        }
        /// `nil` while the load waits.
        var turn: Turn?
        /// The slot in which the load waits.
        let slot: PollSlot
        /// The priority, as a raw value of `TaskPriority`.
        let priority: UInt8
        /// The place in its lane of the `WaiterQueue`.
        var place = 0
        init(slot: PollSlot, priority: UInt8 = TaskPriority.medium.rawValue) {
            self.slot = slot
            self.priority = priority
        }
    }

    /// An idle connection, with the time and the order number since when it is idle. The time decides about expiry. It
    /// cannot tell which of two connections is older: the clock ticks every few milliseconds, and many exchanges end
    /// within one tick.
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
        /// The number of slots taken.
        var count: Int { idle.count + connecting + leased }

        /// Leases the newest idle connection, unless loads wait for one.
        mutating func takeIdle() -> Connection? {
            guard waiting.count == 0, let newest = idle.popLast() else { return nil }
            leased += 1
            return newest.connection
        }

        mutating func queue(_ waiter: Waiter) -> Lease {
            waiting.append(waiter)
            return .wait(waiter)
        }

        /// Gives a free slot to the next waiter, which makes a connection.
        mutating func slotIsFree(of perHost: Int) -> Waiter? {
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

    /// The follow-up of a transition, done after the lock is released.
    struct Consequence {
        var wake: Waiter?
        var close: Connection?
    }

    private(set) var hosts: [Route: Host] = [:]
    private(set) var idleCount = 0
    private var lastIdleOrder: UInt64 = 0
    let perHost: Int
    let maximumIdle: Int
    /// Idle connections are no longer kept.
    private(set) var isDraining = false

    init(perHost: Int, maximumIdle: Int) {
        self.perHost = max(1, perHost)
        self.maximumIdle = max(0, maximumIdle)
    }

    /// Leases a connection. The newest idle one comes first, because it is the least likely to be stale.
    mutating func lease(_ route: Route, makeWaiter: () -> Waiter) -> Lease {
        if route.forwarder != nil, let connection = takeOver(for: route) { return .use(connection) }
        let perHost = perHost
        let lease: Lease = update(route) { host in
            guard host.waiting.count == 0 else { return host.queue(makeWaiter()) }
            if let newest = host.takeIdle() { return .use(newest) }
            guard host.count < perHost else { return host.queue(makeWaiter()) }
            host.connecting += 1
            return .connect
        }
        if case .use = lease { idleCount -= 1 }
        return lease
    }

    /// Leases the newest idle connection; nil if the load must connect or wait.
    mutating func leaseIdle(_ route: Route) -> Connection? {
        guard idleCount > 0, let index = index(of: route), let idle = hosts.values[index].takeIdle() else { return nil }
        idleCount -= 1
        return idle
    }

    /// Takes an idle connection of another origin to the same forwarding proxy, which forwards for all origins. It
    /// counts for the new origin from now on. Returns `nil` without such a connection, or if the origin has idle
    /// connections, waiters or no free slot.
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

    /// The connect attempt succeeded; the connection is leased.
    mutating func connected(_ route: Route) {
        update(route) { host in
            host.connecting -= 1
            host.leased += 1
        }
    }

    /// A leased connection was stale; its load makes another in its slot.
    mutating func replace(_ route: Route) {
        update(route) { host in
            host.leased -= 1
            host.connecting += 1
        }
    }

    /// The connect attempt failed; its slot goes to the next waiter.
    mutating func failedToConnect(_ route: Route) -> Consequence {
        let perHost = perHost
        let next = update(route) { host in
            host.connecting -= 1
            return host.slotIsFree(of: perHost)
        }
        if next == nil { dropIfEmpty(route) }
        return Consequence(wake: next)
    }

    /// Sends all waiters away, because the server speaks HTTP/2 and one connection serves them all.
    mutating func dismissWaiters(_ route: Route) -> [Waiter] {
        guard hosts[route] != nil else { return [] }
        var sent: [Waiter] = []
        while let next = hosts[route]?.waiting.popFirst() {
            next.turn = .again
            sent.append(next)
        }
        dropIfEmpty(route)
        return sent
    }

    /// A leased connection's load is suspended: its slot goes to the next waiter.
    mutating func beginRest(_ route: Route) -> Consequence {
        let perHost = perHost
        return Consequence(
            wake: update(route) { host in
                host.leased -= 1
                host.resting += 1
                return host.slotIsFree(of: perHost)
            })
    }

    /// A resting connection continues, and takes a slot again, if necessary beyond the limit: a half-read message
    /// cannot wait for a slot.
    mutating func endRest(_ route: Route) {
        update(route) { host in
            host.resting -= 1
            host.leased += 1
        }
    }

    /// Ends a lease. A reusable connection goes to the next waiter, or becomes idle.
    mutating func giveBack(_ connection: Connection, _ route: Route, reusable: Bool, now: Int64) -> Consequence {
        let keeps = reusable && !isDraining && maximumIdle > 0
        let perHost = perHost
        var isKept = false
        let order = nextIdleOrder()
        let next: Waiter? = update(route) { host in
            if reusable, let next = host.waiting.popFirst() {
                next.turn = .use(connection)
                isKept = true
                return next
            }
            host.leased -= 1
            guard keeps else { return host.slotIsFree(of: perHost) }
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

    /// A waiter gives up. A connection or slot that it has just been given goes to the next.
    mutating func abandon(_ waiter: Waiter, _ route: Route, now: Int64) -> Consequence {
        switch waiter.turn {
        case nil:
            update(route) { $0.waiting.remove(waiter) }
            dropIfEmpty(route)
            return Consequence()
        case .use(let connection): return giveBack(connection, route, reusable: true, now: now)
        case .connect: return failedToConnect(route)
        case .again: return Consequence()
        }
    }

    /// Removes every connection that has been idle since before `moment`.
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

    /// The time since when the oldest idle connection has been idle.
    var oldestIdle: Int64? { hosts.values.compactMap { $0.idle.first?.since }.min() }
    /// The order number of the oldest idle connection (`nextIdleOrder`).
    var oldestIdleOrder: UInt64? { hosts.values.compactMap { $0.idle.first?.order }.min() }

    /// Returns the order number for a connection that becomes idle now.
    mutating func nextIdleOrder() -> UInt64 {
        lastIdleOrder &+= 1
        return lastIdleOrder
    }

    /// Stops keeping idle connections. Returns those that were idle.
    mutating func drain() -> [Connection] {
        isDraining = true
        return reap(idleSince: .max)
    }

    var isEmpty: Bool { hosts.isEmpty }

    /// Changes a host in place, because a copy would copy its arrays.
    private mutating func update<R>(_ route: Route, _ change: (inout Host) -> R) -> R {
        if let index = index(of: route) { return change(&hosts.values[index]) }
        lastFound = nil
        return change(&hosts[route, default: Host()])
    }

    /// Where a host is found. The last one is remembered: most loads use the host of the load before, and the search
    /// is the dearest part of a lease.
    private mutating func index(of route: Route) -> Dictionary<Route, Host>.Index? {
        if let lastFound, lastFound.route == route { return lastFound.index }
        let index = hosts.index(forKey: route)
        lastFound = index.map { (route, $0) }
        return index
    }
    /// Valid until a host is added or removed.
    private var lastFound: (route: Route, index: Dictionary<Route, Host>.Index)?

    private mutating func dropIfEmpty(_ route: Route) {
        guard let host = hosts[route], host.count + host.resting == 0, host.waiting.count == 0 else { return }
        remove(route)
    }

    private mutating func remove(_ route: Route) {
        lastFound = nil
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
            "\(route) \(host.connecting) connecting \(host.leased) leased "
                + "\(host.idle.count) idle \(host.waiting.count) waiting"
                + (host.resting > 0 ? " \(host.resting) resting" : "")
        }.sorted().joined(separator: " | ")
    }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The invariant of the pool: every counted connection has exactly one owner, and no load waits while a slot is free.
@Suite struct PoolStateTests {
    final class Token: Sendable {}

    @Test func `one address on two links is two routes (security 18)`() throws {
        let routes = try ["https://[fe80::1%25a]/", "https://[fe80::1%25b]/", "https://[fe80::1]/"].map {
            Route(origin: try Target($0).origin)
        }
        #expect(Set(routes).count == 3)
        let spaces = routes.map { Authenticator.Server($0.origin).space(.basic(realm: "r")) }
        #expect(Set(spaces).count == 3)
        var state = State(perHost: 6, maximumIdle: 10)
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        for route in routes {
            guard case .connect = state.lease(route, makeWaiter: { State.Waiter(slot: slot) }) else {
                Issue.record("a connection of another link")
                continue
            }
            state.connected(route)
            _ = state.giveBack(Token(), route, reusable: true, now: 0)
        }
    }

    typealias State = PoolState<Token>

    /// Drives the state machine like random loads, and keeps an independent record.
    struct Walk {
        var state: State
        var random: SeededGenerator
        let routes: [Route]
        var now: Int64 = 0
        var connecting: [Route] = []
        var leased: [(token: Token, route: Route)] = []
        var waiting: [(waiter: State.Waiter, route: Route)] = []
        var closed: Set<ObjectIdentifier> = []
        /// Every token ever made, so that no identity is used twice.
        var made: [Token] = []
        let slot: PollSlot

        init(seed: UInt64, perHost: Int, maximumIdle: Int, slot: PollSlot) throws {
            state = State(perHost: perHost, maximumIdle: maximumIdle)
            random = SeededGenerator(seed: seed)
            self.slot = slot
            // Routes through a forwarding proxy, which may take over each other's connections.
            let proxyChain: ProxyChain = seed.isMultiple(of: 2) ? .direct : [try Proxy("proxy.example:3128")]
            routes = try ["a.example", "b.example", "c.example"].map {
                Route(origin: try Origin(scheme: "http", host: Origin.Host($0)), proxyChain: proxyChain)
            }
        }

        /// Hundreds of thousands of these: the macro would cost more than the walk.
        private func expect(_ isTrue: Bool, _ comment: String) {
            if !isTrue { Issue.record("\(comment) at \(now): \(state)") }
        }

        mutating func step() {
            now += 1
            switch Int.random(in: 0..<11, using: &random) {
            case 0..<4: lease()
            case 4..<6: connect()
            case 6..<8: giveBack()
            case 8: goOnOrAbandon()
            case 9: dismissWaiters()
            default: for token in state.reap(idleSince: now - Int64.random(in: 0..<40, using: &random)) { close(token) }
            }
            check()
        }

        private mutating func lease() {
            guard let route = routes.randomElement(using: &random) else { return }
            switch state.lease(
                route,
                makeWaiter: { State.Waiter(slot: slot, priority: [9, 21, 21, 25].randomElement(using: &random) ?? 0) })
            {
            case .use(let token): take(token, route)
            case .connect: connecting.append(route)
            case .wait(let waiter): waiting.append((waiter, route))
            }
        }

        private mutating func take(_ token: Token, _ route: Route) {
            expect(!leased.contains { $0.token === token }, "leased twice")
            expect(!closed.contains(ObjectIdentifier(token)), "closed, and leased")
            leased.append((token, route))
        }

        private mutating func connect() {
            guard let index = connecting.indices.randomElement(using: &random) else { return }
            let route = connecting.remove(at: index)
            if Bool.random(using: &random) {
                state.connected(route)
                made.append(Token())
                leased.append((made[made.count - 1], route))
            } else {
                act(on: state.failedToConnect(route))
            }
        }

        private mutating func giveBack() {
            guard let index = leased.indices.randomElement(using: &random) else { return }
            let (token, route) = leased.remove(at: index)
            act(on: state.giveBack(token, route, reusable: Int.random(in: 0..<4, using: &random) > 0, now: now))
        }

        /// A waiter notices that it was woken, or leaves at that very moment.
        private mutating func goOnOrAbandon() {
            guard let index = waiting.indices.randomElement(using: &random) else { return }
            let (waiter, route) = waiting[index]
            if waiter.turn == nil, Bool.random(using: &random) { return }
            waiting.remove(at: index)
            if Int.random(in: 0..<3, using: &random) == 0 { return act(on: state.abandon(waiter, route, now: now)) }
            switch waiter.turn {
            case .use(let token): take(token, route)
            case .connect: connecting.append(route)
            case nil: act(on: state.abandon(waiter, route, now: now))
            case .again: break
            }
        }

        private mutating func dismissWaiters() {
            guard let route = waiting.randomElement(using: &random)?.route else { return }
            let sent = state.dismissWaiters(route)
            let those = waiting.filter { $0.route == route }.map(\.waiter)
            for waiter in those {
                if waiter.turn == nil { Issue.record("left behind") }
            }
            expect(sent.allSatisfy { one in those.contains { $0 === one } }, "sent away, and not waiting")
        }

        private mutating func act(on consequence: State.Consequence) {
            if let wake = consequence.wake {
                let place = waiting.firstIndex { $0.waiter === wake }
                expect(place != nil, "woken, and not waiting")
                if let place { expectTurn(of: place) }
                if wake.turn == nil { Issue.record("woken for nothing") }
            }
            if let token = consequence.close { close(token) }
        }

        /// No waiter for the same route is more urgent, or as urgent and older.
        private func expectTurn(of place: Int) {
            let (waiter, route) = waiting[place]
            let passed = waiting.enumerated().contains { other, next in
                guard next.route == route, next.waiter.turn == nil else { return false }
                return next.waiter.priority > waiter.priority
                    || next.waiter.priority == waiter.priority && other < place
            }
            expect(!passed, "not its turn")
        }

        private mutating func close(_ token: Token) {
            expect(closed.insert(ObjectIdentifier(token)).inserted, "closed twice")
            expect(!leased.contains { $0.token === token }, "closed while leased")
        }

        private func check() {
            var idle = 0
            for route in routes {
                let host = state.hosts[route] ?? State.Host()
                let turns = waiting.filter { $0.route == route }.map(\.waiter.turn)
                let given = turns.count { if case .use = $0 { true } else { false } }
                let places = turns.count { if case .connect = $0 { true } else { false } }
                expect(host.leased == leased.count { $0.route == route } + given, "leased miscounted")
                expect(host.connecting == connecting.count { $0 == route } + places, "connecting miscounted")
                let inLine = turns.count { $0 == nil }
                expect(host.waiting.count == inLine, "waiting miscounted")
                expect(host.count <= state.perHost, "too many for one host")
                if host.waiting.count > 0 { expect(host.count == state.perHost, "waiting, though there is a place") }
                for idle in host.idle {
                    expect(
                        !leased.contains { $0.token === idle.connection }
                            && !closed.contains(ObjectIdentifier(idle.connection)), "idle, and owned elsewhere")
                }
                idle += host.idle.count
            }
            expect(state.idleCount == idle, "idle miscounted")
            expect(idle <= state.maximumIdle, "too many idle")
            let owned =
                leased.count + idle + closed.count
                + waiting.count { if case .use = $0.waiter.turn { true } else { false } }
            expect(owned == made.count, "an orphan")
        }

        /// All loads end, the session with them: nothing is left.
        mutating func finish() {
            for token in state.drain() { close(token) }
            while let (waiter, route) = waiting.popLast() { act(on: state.abandon(waiter, route, now: now)) }
            while let route = connecting.popLast() { act(on: state.failedToConnect(route)) }
            while let (token, route) = leased.popLast() {
                act(on: state.giveBack(token, route, reusable: true, now: now))
            }
            expect(state.isEmpty, "something is left")
            expect(state.description == "empty", "something is drawn")
            expect(closed.count == made.count, "something is open")
        }
    }

    @Test("every connection has exactly one owner", arguments: 0..<12, [(1, 0), (2, 1), (3, 4)])
    func randomWalk(_ seed: UInt64, _ limits: (perHost: Int, maximumIdle: Int)) throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        var walk = try Walk(seed: seed, perHost: limits.perHost, maximumIdle: limits.maximumIdle, slot: slot)
        for _ in 0..<400 { walk.step() }
        walk.finish()
    }

    private func route() throws -> Route { Route(origin: try Origin(scheme: "http", host: Origin.Host("a.example"))) }

    @Test("the longest waiter is served first, and the newest idle connection is used first")
    func order() throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        let route = try route()
        var state = State(perHost: 2, maximumIdle: 4)
        let make = { State.Waiter(slot: slot) }
        for _ in 0..<2 {
            guard case .connect = state.lease(route, makeWaiter: make) else { throw Unexpectedly("no place") }
            state.connected(route)
        }
        var waiters: [State.Waiter] = []
        for _ in 0..<3 { if case .wait(let waiter) = state.lease(route, makeWaiter: make) { waiters.append(waiter) } }
        #expect(waiters.count == 3)
        #expect(state.description == "http://a.example 0 connecting 2 leased 0 idle 3 waiting")
        let first = Token()
        let second = Token()
        #expect(state.giveBack(first, route, reusable: true, now: 1).wake === waiters[0])
        #expect(state.giveBack(second, route, reusable: false, now: 2).wake === waiters[1])
        if case .connect = waiters[1].turn {} else { Issue.record("a place was free") }
        #expect(state.abandon(waiters[2], route, now: 3).wake == nil)
        _ = state.failedToConnect(route)
        let old = Token()
        let new = Token()
        _ = state.giveBack(old, route, reusable: true, now: 4)
        guard
            case .connect = state.lease(
                Route(origin: try Origin(scheme: "https", host: Origin.Host("a.example"))), makeWaiter: make)
        else { throw Unexpectedly("another route") }
        guard case .use(let again) = state.lease(route, makeWaiter: make), again === old else {
            throw Unexpectedly("not reused")
        }
        guard case .connect = state.lease(route, makeWaiter: make) else { throw Unexpectedly("no place") }
        state.connected(route)
        _ = state.giveBack(old, route, reusable: true, now: 5)
        _ = state.giveBack(new, route, reusable: true, now: 6)
        #expect(state.oldestIdle == 5)
        guard case .use(let newest) = state.lease(route, makeWaiter: make) else { throw Unexpectedly("not reused") }
        #expect(newest === new)
    }

    @Test("of the connections that became idle in one tick of the clock, the first is closed")
    func sameTick() throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        let routes = try (0..<8).map { Route(origin: try Origin(scheme: "http", host: Origin.Host("\($0).example"))) }
        let tokens = routes.map { _ in Token() }
        var state = State(perHost: 1, maximumIdle: 1)
        var gone: [Token] = []
        for route in routes {
            _ = state.lease(route) { State.Waiter(slot: slot) }
            state.connected(route)
        }
        for (token, route) in zip(tokens, routes) {
            if let closed = state.giveBack(token, route, reusable: true, now: 7).close { gone.append(closed) }
        }
        #expect(gone.map { token in tokens.firstIndex { $0 === token } } == Array(0..<7))
    }

    @Test(
        "a connection to a forwarding proxy serves every http origin of the same proxy, credentials and trust")
    func forwarded() throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        func route(_ host: String, _ proxy: String, scheme: String = "http", isMoved: Bool = false) throws -> Route {
            Route(
                origin: try Origin(scheme: scheme, host: Origin.Host(host)), proxyChain: [try Proxy(proxy)],
                isMoved: isMoved)
        }
        let make = { State.Waiter(slot: slot) }
        let first = try route("a.example", "p:1")
        var state = State(perHost: 1, maximumIdle: 4)
        guard case .connect = state.lease(first, makeWaiter: make) else { throw Unexpectedly("no place") }
        state.connected(first)
        let token = Token()
        _ = state.giveBack(token, first, reusable: true, now: 1)
        var trusted = try route("b.example", "p:1")
        trusted.trust.group = 1
        for other in [
            try route("b.example", "q:1"), try route("b.example", "u:p@p:1"), try route("b.example", "https://p:1"),
            trusted,
            try route("b.example", "p:1", scheme: "https"), try route("b.example", "p:1", isMoved: true),
            try route("b.example", "socks5://p:1"),
        ] {
            guard case .connect = state.lease(other, makeWaiter: make) else {
                throw Unexpectedly("taken over by \(other)")
            }
            _ = state.failedToConnect(other)
        }
        let second = try route("b.example", "p:1")
        guard case .use(let taken) = state.lease(second, makeWaiter: make), taken === token else {
            throw Unexpectedly("not taken over")
        }
        #expect(state.idleCount == 0 && state.hosts[first] == nil && state.hosts[second]?.leased == 1)
        // The limit is each origin's own.
        guard case .wait = state.lease(second, makeWaiter: make) else { throw Unexpectedly("beyond the limit") }
        guard case .connect = state.lease(first, makeWaiter: make) else { throw Unexpectedly("no place") }
    }

    @Test("more urgent waiters are served first, equal ones in order of arrival")
    func priorities() throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        let route = try route()
        var state = State(perHost: 1, maximumIdle: 4)
        guard case .connect = state.lease(route, makeWaiter: { State.Waiter(slot: slot) }) else {
            throw Unexpectedly("no place")
        }
        state.connected(route)
        let priorities: [UInt8] = [21, 9, 25, 21, 33, 9, 25, 17]
        let waiters = try priorities.map { priority in
            guard
                case .wait(let waiter) = state.lease(
                    route, makeWaiter: { State.Waiter(slot: slot, priority: priority) })
            else { throw Unexpectedly("a place") }
            return waiter
        }
        #expect(state.abandon(waiters[2], route, now: 0).wake == nil)
        var order: [Int] = []
        let token = Token()
        while let next = state.giveBack(token, route, reusable: true, now: 1).wake {
            order += waiters.indices.filter { waiters[$0] === next }
        }
        #expect(order == [4, 6, 0, 3, 7, 1, 5])
    }

    @Test("a thousand of each come and go in their order")
    func lanes() throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        var queue = State.WaiterQueue()
        let waiters = (0..<3000).map { State.Waiter(slot: slot, priority: [9, 25, 21][$0 % 3]) }
        for waiter in waiters { queue.append(waiter) }
        for index in stride(from: 0, to: 3000, by: 7) { queue.remove(waiters[index]) }
        queue.remove(waiters[0])
        let left = waiters.indices.filter { $0 % 7 != 0 }
        #expect(queue.count == left.count)
        let expected = [1, 2, 0].flatMap { lane in left.filter { $0 % 3 == lane } }
        for index in expected { if queue.popFirst() !== waiters[index] { Issue.record("\(index)") } }
        #expect(queue.count == 0 && queue.popFirst() == nil)
    }

    @Test("a hundred thousand waiters leave in any order, the newest first among others")
    func leaving() throws {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        let waiters = (0..<100_000).map { _ in State.Waiter(slot: slot) }
        var random = SeededGenerator(seed: 5)
        for order in [Array(waiters.indices), waiters.indices.reversed(), waiters.indices.shuffled(using: &random)] {
            var queue = State.WaiterQueue()
            for waiter in waiters { queue.append(waiter) }
            for index in order.dropLast(3) { queue.remove(waiters[index]) }
            queue.remove(waiters[order[0]])
            #expect(queue.count == 3)
            let left = order.suffix(3).sorted()
            let late = State.Waiter(slot: slot)
            queue.append(late)
            for index in left { #expect(queue.popFirst() === waiters[index]) }
            #expect(queue.popFirst() === late && queue.popFirst() == nil && queue.count == 0)
        }
    }
}

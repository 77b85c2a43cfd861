// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Connecting and waiting for a shared connection; no load waits forever.
@Suite struct SharedStateTests {
    final class Token: Sendable {}
    typealias State = SharedState<Token>
    let route: Route
    let slot = Poller.shared.borrowSlot()

    init() throws { route = Route(origin: try Origin(scheme: "https", host: Origin.Host("a.example"))) }

    private func lease(
        _ state: inout State, _ waiter: State.Waiter? = nil, priority: UInt8 = 21,
        enter: (Token) -> Bool = { _ in true }
    ) -> State.Lease {
        state.lease(route, after: waiter, enter: enter) { State.Waiter(slot: slot, priority: priority) }
    }

    private func waiter(_ lease: State.Lease) throws -> State.Waiter {
        guard case .wait(let waiter) = lease else { throw Unexpectedly("\(lease)") }
        return waiter
    }

    @Test("the first load connects, and the others share its connection") func theFirstConnectsAndTheOthersShare()
        throws
    {
        var state = State(perHost: 6)
        guard case .connect = lease(&state) else { throw Unexpectedly("no connect") }
        let waiting = try (0..<3).map { _ in try waiter(lease(&state)) }
        let woken = state.connected(Token(), route)
        #expect(woken.count == 3 && waiting.allSatisfy { $0.isCalled })
        for waiter in waiting {
            guard case .use = lease(&state, waiter) else { throw Unexpectedly("no use") }
        }
    }

    @Test("an origin of HTTP/1.1 is remembered") func http1IsRemembered() throws {
        var state = State(perHost: 6)
        guard case .connect = lease(&state) else { throw Unexpectedly("no connect") }
        let other = try waiter(lease(&state))
        #expect(state.connectedWithHTTP1(route).count == 1)
        for waiter in [other, nil] {
            guard case .alone = lease(&state, waiter) else { throw Unexpectedly("not alone") }
        }
        // It has changed its mind.
        _ = state.add(Token(), route)
        guard case .use = lease(&state) else { throw Unexpectedly("no use") }
    }

    @Test("a failed connection attempt is not shared") func aFailureIsNotShared() throws {
        var state = State(perHost: 6)
        _ = lease(&state)
        let waiting = try (0..<3).map { _ in try waiter(lease(&state)) }
        #expect(state.failedToConnect(route, isOwnFault: true).count == 3)
        for waiter in waiting {
            guard case .connect = lease(&state, waiter) else { throw Unexpectedly("no connect") }
        }
        for _ in 0..<3 { _ = state.failedToConnect(route, isOwnFault: true) }
        #expect(state.isEmpty)
    }

    @Test("after a failed attempt as many waiters connect as the limit allows") func afterAFailureAsManyConnectAsMay()
        throws
    {
        var state = State(perHost: 2)
        _ = lease(&state)
        let waiting = try (0..<5).map { _ in try waiter(lease(&state)) }
        let called = state.failedToConnect(route, isOwnFault: true)
        #expect(called.count == 2)
        for waiter in called {
            guard case .connect = lease(&state, waiter) else { throw Unexpectedly("no connect") }
        }
        // One of the connect attempts fails and wakes a waiter; another succeeds for all.
        let next = state.failedToConnect(route, isOwnFault: true)
        #expect(next.count == 1 && next[0] === waiting[2])
        #expect(state.connected(Token(), route).count == 2)
        guard case .use = lease(&state, next[0]) else { throw Unexpectedly("no use") }
    }

    @Test("a stream that ends makes room for a waiter") func aStreamThatEndsMakesRoomForAWaiter() throws {
        var state = State(perHost: 1)
        _ = lease(&state)
        let token = Token()
        _ = state.connected(token, route)
        let waiting = try (0..<3).map { _ in try waiter(lease(&state, enter: { _ in false })) }
        // One load connects, the others wait for its connection.
        let called = state.remove(token, route)
        #expect(called.count == 1 && called[0] === waiting[0] && state.remove(token, route).isEmpty)
        guard case .connect = lease(&state, called[0]) else { throw Unexpectedly("no connect") }
        #expect(state.connected(Token(), route).count == 2)
    }

    @Test("free slots wake as many waiters; a waiter that finds none is the first again")
    func freeSlotsWakeAsManyWaiters() throws {
        var state = State(perHost: 1)
        _ = lease(&state)
        let token = Token()
        _ = state.connected(token, route)
        let waiting = try (0..<4).map { _ in try waiter(lease(&state, enter: { _ in false })) }
        let called = state.slotIsFree(token, route, 2)
        #expect(called.count == 2 && called[0] === waiting[0] && called[1] === waiting[1])
        let again = try waiter(lease(&state, called[0], enter: { _ in false }))
        #expect(state.next(route).first === again)
    }

    @Test("no load waits for a shared connection if HTTP/1.1 is required")
    func noLoadWaitsForASharedConnectionIfHTTP11IsRequired() throws {
        var state = State(perHost: 1)
        _ = lease(&state)
        _ = state.connected(Token(), route)
        let waiting = try (0..<3).map { _ in try waiter(lease(&state, enter: { _ in false })) }
        #expect(state.requiresHTTP1(route).count == 3)
        for waiter in waiting {
            guard case .alone = lease(&state, waiter) else { throw Unexpectedly("not alone") }
        }
    }

    @Test("a load that needs a new connection makes one if the limit allows")
    func aLoadThatNeedsANewConnectionMakesOneIfTheLimitAllows()
        throws
    {
        var state = State(perHost: 2)
        _ = lease(&state)
        let old = Token()
        _ = state.connected(old, route)
        func fresh(_ state: inout State) -> State.Lease {
            state.lease(route, after: nil, suits: { $0 !== old }, enter: { _ in true }) {
                State.Waiter(slot: slot, priority: 21)
            }
        }
        guard case .connect = fresh(&state) else { throw Unexpectedly("no connect") }
        let new = Token()
        _ = state.connected(new, route)
        guard case .use(let given) = fresh(&state), given === new else { throw Unexpectedly("not the new one") }
        // If no new connection is allowed, the old one is used.
        _ = state.remove(new, route)
        var full = State(perHost: 1)
        _ = lease(&full)
        _ = full.connected(old, route)
        guard case .use(let given) = fresh(&full), given === old else { throw Unexpectedly("not the old one") }
    }

    @Test("a cancelled load passes the connection attempt to the next waiter")
    func aCancelledLoadPassesTheConnectionAttemptToTheNextWaiter() throws {
        var state = State(perHost: 6)
        _ = lease(&state)
        let waiting = try (0..<3).map { _ in try waiter(lease(&state)) }
        let woken = state.failedToConnect(route, isOwnFault: false)
        #expect(woken.count == 1 && woken.first === waiting[0])
        // The woken waiter leaves as well.
        #expect(state.abandon(waiting[0], route).first === waiting[1])
        guard case .connect = lease(&state, waiting[1]) else { throw Unexpectedly("no connect") }
        _ = state.abandon(waiting[2], route)
        #expect(state.connected(Token(), route).isEmpty)
    }

    @Test("a connection that two attempts find for a route is added once") func aConnectionIsAddedOnce() throws {
        var state = State(perHost: 2)
        let owner = Route(origin: try Origin(scheme: "https", host: Origin.Host("b.example")))
        let token = Token()
        _ = state.add(token, owner)
        for _ in 0..<2 {
            _ = lease(&state, enter: { _ in false })
            _ = state.coalesced(token, of: owner, route)
        }
        #expect(state.connections(to: route).count == 1 && state.connecting(route) == 0)
        _ = state.remove(token, owner)
        #expect(state.isEmpty)
    }

    @Test("the most urgent waiter is served first") func theUrgentFirst() throws {
        var state = State(perHost: 1)
        _ = lease(&state)
        let token = Token()
        _ = state.connected(token, route)
        let waiting = try [21, 9, 25, 21].map { try waiter(lease(&state, priority: $0, enter: { _ in false })) }
        let order = (0..<4).compactMap { _ in state.next(route).first }
        #expect(order.map { next in waiting.firstIndex { $0 === next } } == [2, 0, 3, 1])
    }

    @Test("full connections are joined by further ones up to the limit") func fullConnectionsGetCompanyUpToTheLimit()
        throws
    {
        var state = State(perHost: 2)
        for _ in 0..<2 {
            guard case .connect = lease(&state, enter: { _ in false }) else { throw Unexpectedly("no connect") }
            _ = state.connected(Token(), route)
        }
        _ = try waiter(lease(&state, enter: { _ in false }))
        let (removed, woken) = state.removeAll { _ in true }
        #expect(removed.count == 2 && woken.count == 1)
    }
}

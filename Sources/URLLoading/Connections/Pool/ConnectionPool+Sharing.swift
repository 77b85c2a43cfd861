// SPDX-License-Identifier: Apache-2.0

// Leases stream slots on shared connections. `SharedState` assigns them.

import URLLoadingIO

extension HTTP2Connection {
    fileprivate func sharesSettings(_ other: Route) -> Bool {
        !isRetired && route.proxyChain.isDirect && route.trust == other.trust && route.traffic == other.traffic
            && route.identity == other.identity && route.origin.isSecure == other.origin.isSecure
            && route.origin.port == other.origin.port && route != other
    }
}

extension ConnectionPool {
    typealias Sharing = SharedState<HTTP2Connection>

    /// Whether the server of a route may choose HTTP/2.
    func mayShare(_ route: Route) -> Bool {
        guard route.forwarder == nil, route.identity?.speaksHTTP1 != true else { return false }
        return switch versions {
        case .automatic, .http3Preferred, .http3PriorKnowledge: route.origin.isSecure && !connector.isScripted
        case .http1Only: false
        case .http2PriorKnowledge: true
        }
    }

    /// Returns a connection for one exchange, with the HTTP version that the server chooses.
    /// - Parameter inHTTP1: requires HTTP/1.1, unless the configuration prescribes HTTP/2.
    func lease(
        _ route: Route, for request: ConnectionRequest, inHTTP1: Bool = false
    ) async throws(LoadError) -> LeasedConnection {
        guard !mayShare(route) || inHTTP1 && versions != .http2PriorKnowledge else {
            return try await leaseSharing(route, for: request)
        }
        while true {
            let own = try await leaseOwn(route, for: request, since: request.since, offersHTTP2: false)
            if let own { return own }
        }
    }

    /// Returns a connection to a server that may choose HTTP/2. Separate from `lease`, so that loads restricted to
    /// HTTP/1.1 do not hold this frame.
    @inline(never)
    private func leaseSharing(
        _ route: Route, for request: ConnectionRequest
    ) async throws(LoadError) -> LeasedConnection {
        #if HTTP3
        if let leased = try await http3.lease(route, for: request) { return leased }
        #endif
        var waiter: Sharing.Waiter?
        let least = request.since ?? .min
        while true {
            let (lease, woken) = withSharing { sharing in
                let lease = sharing.lease(
                    route, after: waiter, suits: { $0.identifier >= least }, enter: { $0.places.take() },
                    makeWaiter: Self.makeSharingWaiter)
                if waiter != nil, case .use = lease { return (lease, sharing.connectNext(route)) }
                return (lease, [])
            }
            wake(woken)
            let hasWaited = waiter != nil
            waiter = nil
            switch lease {
            case .use(let connection):
                // Reads what arrived while no task was reading: a GOAWAY, or the end.
                connection.readIfIdle()
                guard connection.isRetired else {
                    connection.probeIfIdleLong()
                    return .shared(connection, isNew: false)
                }
                leave(connection)
            case .alone:
                if let own = try await leaseOwn(route, for: request, since: request.since) { return own }
            case .connect:
                if let leased = try await leaseFirst(route, for: request, hasWaited) { return leased }
            case .wait(let new):
                try await turn(of: new, route, request.handle)
                waiter = new
            }
        }
    }

    /// - Parameter hasWaited: whether another load has tried to connect before, and may have learned of HTTP/3.
    private func leaseFirst(
        _ route: Route, for request: ConnectionRequest, _ hasWaited: Bool
    ) async throws(LoadError) -> LeasedConnection? {
        do throws(LoadError) {
            var addresses: FoundAddresses?
            #if HTTP3
            if hasWaited, let leased = try await http3.lease(route, for: request) { return leaveTurn(route, leased) }
            let start = Poller.now()
            let asks = request.since == nil && http3.ask(route, for: request)
            #else
            let asks = false
            #endif
            let coalesces = request.since == nil && mayCoalesce(route)
            if coalesces || asks {
                let time = ConnectTime(request.handle)
                let found = try await request.handle.connecting(time) { () throws(LoadError) in
                    try await connector.allowedAddresses(of: route.origin, request)
                }
                if coalesces, let other = coalesce(route, found) { return .shared(other, isNew: false) }
                #if HTTP3
                if asks,
                    let leased = try await http3.leaseAsked(route, for: request, at: found, since: start)
                {
                    return leaveTurn(route, leased)
                }
                #endif
                addresses = FoundAddresses(addresses: found, time: time)
            }
            #if HTTP3
            http3.noteTCP(route, for: request)
            #endif
            let leased = try await leaseOwn(
                route, for: request, since: request.since, isFirst: true, at: addresses)
            switch leased {
            // An idle connection says nothing of the server: HTTP/2 may not have been offered to it.
            case .own(_, isNew: false):
                wake(withSharing { $0.failedToConnect(route, isOwnFault: false) })
            case .own: wake(withSharing { $0.connectedWithHTTP1(route) })
            case .shared: break
            #if HTTP3
            case .http3: break
            #endif
            // The route turned out to speak HTTP/2 over another load's connection.
            case nil: wake(withSharing { $0.failedToConnect(route, isOwnFault: false) })
            }
            return leased
        } catch {
            let isOwnFault = request.handle.stopReason == nil
            wake(withSharing { $0.failedToConnect(route, isOwnFault: isOwnFault) })
            throw error
        }
    }

    /// Whether connections to other hosts might serve this route.
    private func mayCoalesce(_ route: Route) -> Bool {
        guard versions.negotiates, route.proxyChain.isDirect, connector.hasAddresses(route.origin),
            case .name = route.origin.host.kind
        else { return false }
        return withSharing { $0.mayCoalesce(route) && $0.connections.contains { $0.sharesSettings(route) } }
    }

    /// Returns a slot on a connection to one of these addresses whose server's certificate is also valid for this host
    /// (RFC 9113 §9.1.1).
    private func coalesce(_ route: Route, _ addresses: [SocketAddress]) -> HTTP2Connection? {
        let name = TLSPeerName(route.origin.host)
        let candidates = withSharing { $0.connections }.filter { connection in
            guard connection.sharesSettings(route), let remote = connection.transport.remoteAddress,
                addresses.contains(remote)
            else { return false }
            return (connection.transport as? TLSTransport)?.covers(name) == true
        }
        for other in candidates {
            let woken = withSharing { sharing in
                other.places.take() ? sharing.coalesced(other, of: other.route, route) : nil
            }
            guard let woken else { continue }
            wake(woken)
            return other
        }
        return nil
    }

    /// Notes that a route's server demands HTTP/1.1 after it had chosen HTTP/2. Returns false if the configuration
    /// allows HTTP/2 only.
    func speakHTTP1(_ route: Route) -> Bool {
        guard versions.negotiates else { return false }
        wake(withSharing { $0.requiresHTTP1(route) })
        return true
    }

    /// Notes that a route's server rejects its requests on this connection (RFC 9110 §15.5.20).
    func leave(_ connection: HTTP2Connection, for route: Route) {
        guard connection.route != route else { return connection.retire() }
        wake(withSharing { $0.separate(connection, from: route) })
    }

    /// Adds a new shared connection; its maker has a slot on it.
    func share(_ connection: HTTP2Connection, isFirst: Bool) {
        if let most = withSharing({ $0.mostStreams(connection.route) }) { connection.places.limit(toLearned: most) }
        _ = connection.places.take()
        connection.onChange = { [anchor] in anchor.owner?.changed($0, grownBy: $1) }
        connection.awaitSettings()
        let (waiting, queued) = withSharingAndQueue(connection.route) {
            isFirst ? $0.connected(connection, connection.route) : $0.add(connection, connection.route)
        }
        wake(waiting)
        for slot in queued { slot.wake() }
    }

    /// Handles a connection's report: it is retired, or has additional slots.
    func changed(_ connection: HTTP2Connection, grownBy count: Int) {
        if let lesson = connection.places.takeLesson() {
            let most = if case .endsAfter(let count) = lesson { count } else { nil as Int? }
            withSharing { $0.noteMostStreams(most, connection.route) }
        }
        guard connection.isRetired else {
            return wake(withSharing { $0.slotIsFree(connection, connection.route, count) })
        }
        wake(withSharing { $0.remove(connection, connection.route) })
        // Otherwise the last stream to end closes it.
        if connection.streamCount == 0 { connection.close() }
    }

    /// Gives a slot back.
    func leave(_ connection: HTTP2Connection) {
        // One step under the lock of the pool: a load that takes a slot cannot find a connection that is about to be
        // closed.
        let (isLast, closes, woken) = withSharingAndIdleOrder { sharing, idleOrder in
            let isLast = connection.places.giveBack()
            if isLast { connection.idleOrder = idleOrder }
            let closes =
                isLast
                && (connection.isRetired || !keepsConnections || sharing.isDraining || connection.route.isForOneLoad)
            let woken =
                connection.isRetired || closes
                ? sharing.remove(connection, connection.route) : sharing.slotIsFree(connection, connection.route)
            return (isLast, closes, woken)
        }
        wake(woken)
        if closes { return connection.close() }
        guard isLast else { return }
        evictSurplus()
        scheduleReaping()
    }

    func closeIdleShared(_ isUnwanted: (HTTP2Connection) -> Bool) {
        let (old, woken) = withSharing { sharing in sharing.removeAll { $0.streamCount == 0 && isUnwanted($0) } }
        wake(woken)
        for connection in old { connection.close() }
    }

    private func wake(_ waiters: [Sharing.Waiter]) {
        for waiter in waiters { waiter.slot.wake() }
    }

    @Sendable private static func makeSharingWaiter() -> Sharing.Waiter {
        Sharing.Waiter(slot: Poller.shared.borrowSlot(), priority: Task.currentPriority.rawValue)
    }

    @inline(never)  // A load that finds a free connection does not hold the frame of this wait.
    private func turn(of waiter: Sharing.Waiter, _ route: Route, _ handle: LoadHandle) async throws(LoadError) {
        try await handle.turn(in: waiter.slot) {
            withSharing { _ in waiter.isCalled } ? () : nil
        } abandon: {
            wake(withSharing { $0.abandon(waiter, route) })
        }
    }
}

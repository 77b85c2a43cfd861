// SPDX-License-Identifier: Apache-2.0

// The HTTP/3 connections of a session. `SharedState` hands out places on them, as for HTTP/2. A load that may use
// HTTP/3 asks here before it asks for a connection over TCP:
//
//     only HTTP/3      waits for a connection, and fails as it does
//     otherwise        waits at most 300 ms for a connection to a new place, not at all for one that was slow, and
//                      takes TCP in place of a failure; the attempt continues, for later loads

#if HTTP3

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class HTTP3Pool: Sendable {
    typealias Sharing = SharedState<HTTP3Connection>

    private let state: Lock<Sharing>
    private let services: AlternativeServiceStore
    private let offers: ServiceOffers
    private let connector: Connector
    private let news: PathNews
    private let versions: Configuration.HTTPVersions
    private let maximumIdle: Int

    /// - Parameters:
    ///   - keepsConnections: whether idle connections are kept.
    ///   - services: where servers offer HTTP/3.
    init(
        _ configuration: Configuration, _ connector: Connector, keepsConnections: Bool,
        _ services: AlternativeServiceStore
    ) {
        state = Lock(Sharing(perHost: configuration.connections.maximumPerHost))
        self.services = services
        self.connector = connector
        news = PathNews(configuration.networkMonitor.source)
        versions = configuration.connections.httpVersions
        offers = ServiceOffers(versions == .automatic ? configuration.networks.resolver.nameServers : nil)
        maximumIdle = keepsConnections ? configuration.connections.maximumIdle : 0
    }

    // MARK: Leasing

    /// Returns a place on a connection; nil if the load is to use TCP.
    func lease(_ route: Route, for request: ConnectionRequest) async throws(LoadError) -> LeasedConnection? {
        let isOnly = versions == .http3PriorKnowledge
        if !isOnly, !services.isReady { await services.load(for: request.handle) }
        if let obstacle = obstacle(route, request) {
            guard isOnly else { return isWanted(route) ? takeTCP(obstacle) : nil }
            throw LoadError(.notHTTP3, phase: .preparing, party: .local, detail: obstacle)
        }
        return isOnly ? try await leaseOnly(route, for: request) : try await leaseRaced(route, for: request)
    }

    /// Returns why a load cannot use HTTP/3; nil if it can.
    private func obstacle(_ route: Route, _ request: ConnectionRequest) -> String? {
        if !route.proxyChain.isDirect { return "HTTP/3 is not sent through proxies" }
        if route.identity != nil { return "the authentication of a connection is not possible over HTTP/3" }
        if request.client.handshakeDecision != nil { return "a decision about challenges needs a connection over TCP" }
        if connector.secure.maximumVersion < .tls13 { return "HTTP/3 needs TLS 1.3" }
        return connector.hasAddresses(route.origin) ? nil : "a Unix socket does not carry HTTP/3"
    }

    /// Whether the configuration or the server asks for HTTP/3.
    private func isWanted(_ route: Route) -> Bool {
        versions == .http3Preferred || !isMoved(route.origin) && services.knows(route.origin)
            || offers.service(of: route.origin) != nil
    }

    /// Whether the configuration leads an origin to another place. What servers offer does not lead away from there.
    private func isMoved(_ origin: Origin) -> Bool { connector.configuration.networks.addressOverrides.moves(origin) }

    /// Returns where HTTP/3 is to be tried; `nil` for nowhere.
    private func target(for origin: Origin) -> AlternativeServiceTable.Target? {
        if isMoved(origin) {
            guard versions == .http3Preferred,
                var target = services.target(for: origin, isPreferred: true)
            else { return nil }
            (target.service, target.reason) = (nil, .configured)
            return target
        }
        let record = offers.service(of: origin)
        var target = services.target(for: origin, isPreferred: versions == .http3Preferred || record != nil)
        if target?.service == nil, record != nil {
            target?.service = record
            target?.reason = .record
        }
        return target
    }

    private func takeTCP(_ reason: String) -> LeasedConnection? {
        connector.configuration.wireTap?(.tookTCP(reason))
        return nil
    }

    /// Begins to ask for the HTTPS records of the origin of a route, if they can change how a load is sent.
    /// - Returns: whether the load is to wait for what they say; see ``leaseAsked(_:for:at:since:)``.
    func ask(_ route: Route, for request: ConnectionRequest) -> Bool {
        let overrides = connector.configuration.networks.addressOverrides
        guard versions == .automatic, obstacle(route, request) == nil, !isMoved(route.origin),
            overrides.addresses(of: route.origin.host, route.origin.port) == nil,
            let target = services.target(for: route.origin, isPreferred: true), target.service == nil
        else { return false }
        return offers.ask(route.origin) && !target.isSlow
    }

    /// Returns a place on a connection, if the records that were asked for offer HTTP/3; nil if the load is to use TCP.
    /// - Parameters:
    ///   - addresses: those of the origin.
    ///   - start: when they were asked for.
    func leaseAsked(
        _ route: Route, for request: ConnectionRequest, at addresses: [SocketAddress], since start: Int64
    ) async throws(LoadError) -> LeasedConnection? {
        try await offers.answer(of: route.origin, until: start + Self.recordPatience, request.handle)
        guard offers.service(of: route.origin) != nil else { return nil }
        return try await leaseRaced(route, for: request, at: addresses)
    }
    /// The longest that a load waits for records, in nanoseconds. It looks its addresses up meanwhile.
    private static let recordPatience: Int64 = 50_000_000

    /// Notes for the trace that a load makes a connection over TCP.
    func noteTCP(_ route: Route, for request: ConnectionRequest) {
        guard connector.configuration.wireTap != nil, versions == .automatic, !isWanted(route) else { return }
        _ = takeTCP(obstacle(route, request) ?? "the server has not offered it")
    }

    private func leaseOnly(
        _ route: Route, for request: ConnectionRequest
    ) async throws(LoadError) -> LeasedConnection {
        var waiter: Sharing.Waiter?
        while true {
            let (lease, woken) = state.withLock { Self.lease(route, request, after: waiter, &$0) }
            wake(woken)
            waiter = nil
            switch lease {
            case .use(let connection):
                if !connection.isRetired { return .http3(connection, isNew: false) }
                leave(connection)
            case .alone: throw LoadError(.notHTTP3, phase: .connecting, party: .remote)
            case .connect: return .http3(try await open(route, for: request), isNew: true)
            case .wait(let new):
                try await request.handle.turn(in: new.slot) {
                    state.withLock { _ in new.isCalled } ? () : nil
                } abandon: {
                    wake(state.withLock { $0.abandon(new, route) })
                }
                waiter = new
            }
        }
    }

    /// Makes a connection for the load that waits for it.
    private func open(_ route: Route, for request: ConnectionRequest) async throws(LoadError) -> HTTP3Connection {
        let opening = opening(route, .init(), request, handshakeTimeout: nil)
        do throws(LoadError) {
            let connection = try await request.handle.connecting { () throws(LoadError) in
                try await opening.run(request.handle, request.record)
            }
            share(connection, takesPlace: true)
            return connection
        } catch {
            let isOwnFault = request.handle.stopReason == nil
            wake(state.withLock { $0.failedToConnect(route, isOwnFault: isOwnFault) })
            throw error
        }
    }

    private enum Step {
        case use(HTTP3Connection)
        case connect(AlternativeServiceTable.Target)
        case wait(Sharing.Waiter)
        /// The reason is `nil` where HTTP/3 was not asked for.
        case takeTCP(String?)
    }

    private func leaseRaced(
        _ route: Route, for request: ConnectionRequest, at addresses: [SocketAddress]? = nil
    ) async throws(LoadError) -> LeasedConnection? {
        var waiter: Sharing.Waiter?
        // The connections that this load has begun have this identifier, or a higher one.
        var begun: Int?
        let start = Poller.now()
        let limit = start + Self.patience
        while true {
            guard let target = target(for: route.origin) else {
                // A turn that is not used goes to the next load.
                if waiter != nil { wake(state.withLock { $0.next(route) }) }
                return isWanted(route) ? takeTCP("the last attempt failed") : nil
            }
            let (step, woken) = state.withLock { next(route, request, at: target, after: waiter, limit, &$0) }
            wake(woken)
            let hasWaited = waiter != nil
            waiter = nil
            switch step {
            case .takeTCP(let reason): return reason.flatMap { takeTCP($0) }
            case .use(let connection):
                guard !connection.isRetired else {
                    leave(connection)
                    continue
                }
                if hasWaited, let record = request.record {
                    for stage in [TransactionRecord.Stage.connectStart, .secureStart] { record.mark(stage, at: start) }
                    for stage in [TransactionRecord.Stage.secureEnd, .connectEnd] { record.mark(stage) }
                }
                return .http3(connection, isNew: begun.map { connection.identifier >= $0 } ?? false)
            case .connect where begun != nil:
                // The attempt has failed for a reason of this machine, and so would another one: the turn goes on.
                wake(state.withLock { $0.failedToConnect(route, isOwnFault: false) })
                return takeTCP("the attempt has failed")
            case .connect(let target):
                begun = ConnectionIdentifier.next
                begin(route, target, request, addresses)
            case .wait(let new):
                Poller.shared.schedule(new.slot, at: limit)
                let isCalled = try await request.handle.turn(in: new.slot) { () -> Bool? in
                    if state.withLock({ _ in new.isCalled }) { return true }
                    return Poller.now() >= limit ? false : nil
                } abandon: {
                    wake(state.withLock { $0.abandon(new, route) })
                }
                guard isCalled else {
                    services.isSlow(route.origin)
                    wake(state.withLock { $0.abandon(new, route) })
                    return takeTCP("no connection within 300 ms")
                }
                waiter = new
            }
        }
    }
    /// The longest that a load waits before it takes TCP, in nanoseconds.
    private static let patience: Int64 = 300_000_000

    private func next(
        _ route: Route, _ request: ConnectionRequest, at target: AlternativeServiceTable.Target,
        after waiter: Sharing.Waiter?, _ limit: Int64, _ sharing: inout Sharing
    ) -> (Step, [Sharing.Waiter]) {
        let (lease, woken) = Self.lease(route, request, after: waiter, &sharing)
        switch lease {
        case .use(let connection): return (.use(connection), woken)
        case .connect: return (.connect(target), woken)
        case .wait(let new) where target.isSlow || Poller.now() >= limit:
            Poller.shared.returnSlot(new.slot)
            return (.takeTCP("there is no connection yet"), woken + sharing.abandon(new, route))
        case .wait(let new): return (.wait(new), woken)
        case .alone: return (.takeTCP(nil), woken)
        }
    }

    /// Begins to make a connection, for every load that waits for one.
    private func begin(
        _ route: Route, _ target: AlternativeServiceTable.Target, _ request: ConnectionRequest,
        _ addresses: [SocketAddress]?
    ) {
        var opening = opening(route, target, request, handshakeTimeout: Self.handshakeTimeout)
        opening.addresses = addresses
        // The load takes TCP at once.
        if target.isSlow { opening.early = nil }
        // A handle of its own: a resolver of the program's is asked on behalf of one.
        let handle = LoadHandle(
            idle: nil, resource: nil, connect: Self.attemptTimeout, clock: connector.configuration.clock)
        _ = Task.apart(priority: Task.currentPriority) {
            do throws(LoadError) {
                let connection = try await handle.connecting { () throws(LoadError) in
                    try await opening.run(handle, nil)
                }
                self.services.succeeded(route.origin)
                self.share(connection, takesPlace: false)
            } catch {
                // Without a network, a name or a descriptor, nothing was learned of the server.
                if error.party != .system { self.services.failed(route.origin) }
                self.wake(self.state.withLock { $0.failedToConnect(route, isOwnFault: false) })
            }
        }
    }
    private static let handshakeTimeout: Int64 = 10_000_000_000
    /// The longest attempt that no load waits for, from the first lookup on.
    private static let attemptTimeout: Duration = .seconds(30)

    private func opening(
        _ route: Route, _ target: AlternativeServiceTable.Target, _ request: ConnectionRequest,
        handshakeTimeout: Int64?
    ) -> HTTP3Opening {
        HTTP3Opening(
            connector: connector, route: route, target: target, access: request.access, news: news,
            early: request.early, handshakeTimeout: handshakeTimeout
        ) { [weak self] connection, count in self?.changed(connection, grownBy: count) }
    }

    private static func lease(
        _ route: Route, _ request: ConnectionRequest, after waiter: Sharing.Waiter?, _ sharing: inout Sharing
    ) -> (Sharing.Lease, [Sharing.Waiter]) {
        let least = request.since ?? .min
        let lease = sharing.lease(
            route, after: waiter, suits: { $0.identifier >= least }, enter: { $0.places.take() },
            makeWaiter: { Sharing.Waiter(slot: Poller.shared.borrowSlot(), priority: Task.currentPriority.rawValue) })
        if waiter != nil, case .use = lease { return (lease, sharing.connectNext(route)) }
        return (lease, [])
    }

    // MARK: Connections

    /// - Parameter takesPlace: whether the caller has a stream on the connection.
    private func share(_ connection: HTTP3Connection, takesPlace: Bool) {
        if takesPlace { _ = connection.places.take() }
        let (isDraining, woken) = state.withLock { state in
            (state.isDraining, state.connected(connection, connection.route))
        }
        wake(woken)
        // The connection may have ended before it was added.
        if isDraining { connection.close() } else if connection.isRetired { changed(connection, grownBy: 0) }
    }

    private func changed(_ connection: HTTP3Connection, grownBy count: Int) {
        guard connection.isRetired else {
            return wake(state.withLock { $0.slotIsFree(connection, connection.route, count) })
        }
        let (isShared, woken) = state.withLock { state in
            (state.connections.contains { $0 === connection }, state.remove(connection, connection.route))
        }
        wake(woken)
        // Before, it belongs to the load that makes it, which may not know yet that it is open. With streams, the last
        // one to end closes it.
        if isShared, connection.streamCount == 0 { connection.close() }
    }

    /// Gives a place back.
    func leave(_ connection: HTTP3Connection) {
        // One step under the lock of the pool: a load that takes a place cannot find a connection that is about to be
        // closed.
        let (closing, woken) = state.withLock { [maximumIdle] state in
            let isLast = connection.places.giveBack()
            let closes = isLast && (connection.isRetired || maximumIdle == 0 || state.isDraining)
            guard connection.isRetired || closes else {
                return (
                    isLast ? Self.takeSurplus(&state, maximumIdle) : nil,
                    state.slotIsFree(connection, connection.route)
                )
            }
            return (closes ? connection : nil, state.remove(connection, connection.route))
        }
        wake(woken)
        closing?.close()
    }

    /// Removes and returns the connection that has been idle for longest, if more than the maximum are.
    private static func takeSurplus(_ sharing: inout Sharing, _ maximum: Int) -> HTTP3Connection? {
        guard sharing.connectionCount > maximum else { return nil }
        let idle = sharing.connections.filter { $0.streamCount == 0 }
        guard idle.count > maximum, let oldest = idle.min(by: { $0.idleSince < $1.idleSince }) else { return nil }
        // A connection without streams has no waiters.
        _ = sharing.remove(oldest, oldest.route)
        return oldest
    }

    /// Closes the connection that has been idle for longest. Returns false if none is idle.
    func closeOldestIdle() -> Bool {
        guard let oldest = state.withLock({ Self.takeSurplus(&$0, 0) }) else { return false }
        oldest.close()
        return true
    }

    /// Closes idle connections; the others continue.
    func closeIdle() {
        let (old, woken) = state.withLock { $0.removeAll { $0.streamCount == 0 } }
        wake(woken)
        for connection in old { connection.close() }
    }

    /// Closes idle connections, now and from now on.
    func drain() {
        state.withLock { $0.drain() }
        closeIdle()
    }

    private func wake(_ waiters: [Sharing.Waiter]) {
        for waiter in waiters { waiter.slot.wake() }
    }

    // MARK: Alternative services

    /// Learns from a response where its origin offers HTTP/3 (RFC 7838).
    /// - Parameter isProven: whether the server's certificate was verified.
    func learn(_ head: HTTPHead, from origin: Origin, isProven: @autoclosure () -> Bool) {
        // A misdirected answer is not one of the origin (RFC 7838 §6), nor is that of another place.
        guard versions != .http1Only, origin.isSecure, head.headers.contains(.altSvc),
            head.status != .misdirectedRequest, !isMoved(origin), isProven(),
            let field = AlternativeServices(head.headers)
        else { return }
        services.learn(field, from: origin)
    }

    /// Notes that requests of an origin are to use TCP for a time: its server has asked for that.
    func avoid(_ origin: Origin) { services.failed(origin) }
    /// Removes what an origin has offered: a server there does not answer for it (RFC 7838 §6).
    func forget(_ origin: Origin) { services.forget(origin) }

    // MARK: Statistics

    var isEmpty: Bool { state.withLock { $0.isEmpty } }
    var connections: [HTTP3Connection] { state.withLock { $0.connections } }
    var waitingCounts: [(route: Route, count: Int)] { state.withLock { $0.waitingCounts } }
}

extension FieldName {
    fileprivate static let altSvc: FieldName = "Alt-Svc"
}

#endif

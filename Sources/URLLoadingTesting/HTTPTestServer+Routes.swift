// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO
import URLLoadingWire

extension HTTPTestServer {
    /// Returns the response to a request. If it throws, the response is 500.
    public typealias Handler = @Sendable (RecordedRequest) async throws -> Response

    /// Answers requests for a path. A later route for the same path replaces an earlier one.
    ///
    /// ```swift
    /// origin.route("/echo") { request in .ok(.bytes(request.body)) }
    /// origin.route("/files/*") { _ in .status(.notFound) }
    /// ```
    /// - Parameters:
    ///   - path: the target up to its `?`, compared literally. With a trailing `*` it matches as a prefix, unless a
    ///     longer route matches. Requests without a matching route are answered with 404.
    ///   - readsBody: whether a request is read completely before it is answered. If false, `handler` is called at
    ///     once, no 100 (Continue) is sent, and the connection is closed after the response.
    ///   - faults: the faults of every exchange of this route; those at ``Fault/Point/accept`` and
    ///     ``Fault/Point/handshake`` never occur, because the route is not known then.
    public func route(_ path: String, readsBody: Bool = true, faults: [Fault] = [], _ handler: @escaping Handler) {
        state.withLock { $0.record.routes[path] = Route(handler: handler, readsBody: readsBody, faults: faults) }
    }

    /// Adds a route whose requests are received piece by piece.
    func route(
        _ path: String, _ receiver: @escaping @Sendable (RecordedRequest, OriginConnection) -> any OriginReceiver
    ) {
        state.withLock { $0.record.routes[path] = Route(handler: { _ in .status(.notFound) }, receiver: receiver) }
    }

    /// Adds a route after whose request the connection switches to another protocol.
    func route(
        _ path: String,
        takingOver takeover:
            @escaping @Sendable (RecordedRequest, OriginConnection) async throws(OriginConnection.Ending) -> Void
    ) {
        state.withLock { $0.record.routes[path] = Route(handler: { _ in .status(.notFound) }, takeover: takeover) }
    }

    struct Route: Sendable {
        let handler: Handler
        var readsBody = true
        var faults: [Fault] = []
        /// Receives the request piece by piece, in place of `handler`.
        var receiver: (@Sendable (RecordedRequest, OriginConnection) -> any OriginReceiver)?
        /// Takes over the connection after the head, in place of everything else.
        var takeover: (@Sendable (RecordedRequest, OriginConnection) async throws(OriginConnection.Ending) -> Void)?

        static let missing = Route { _ in .status(.notFound) }
    }

    /// Adds a fault to all connections, or to one of them.
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func inject(_ fault: Fault, onConnection connection: Int? = nil) {
        state.withLock { $0.faults.append((connection, fault)) }
    }

    /// Removes all injected faults and the schedule. The faults of routes remain.
    public func removeFaults() {
        state.withLock {
            $0.faults = []
            $0.schedule = nil
        }
    }

    /// Sets reproducible random faults, which occur besides those that were injected and those of routes; `nil` removes
    /// the random ones only.
    public func setSchedule(_ schedule: FaultSchedule?) {
        state.withLock { $0.schedule = schedule }
    }

    /// Releases every connection that stalls at a ``Fault/Effect/stall``: the client's data is read and dropped until
    /// it leaves, then the connection is closed.
    public func releaseStalls() {
        for connection in state.withLock({ Array($0.record.connections.open.values) }) { connection.release() }
    }
}

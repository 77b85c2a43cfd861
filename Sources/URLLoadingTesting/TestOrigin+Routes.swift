import Synchronization
import URLLoadingIO
import URLLoadingWire

extension TestOrigin {
    /// Makes the answer to a request. One that throws is answered with 500.
    public typealias Handler = @Sendable (RecordedRequest) async throws -> Answer

    /// Answers requests for a path. A later route for the same path takes the place of the earlier.
    ///
    /// ```swift
    /// origin.route("/echo") { request in .ok(.bytes(request.body)) }
    /// origin.route("/files/*") { _ in .status(.notFound) }
    /// ```
    /// - Parameters:
    ///   - path: the target up to its `?`, compared as it is. With `*` at its end: all that begin so,
    ///     unless a longer route fits. Requests that no route fits are answered with 404.
    ///   - readsBody: whether a request is read to its end before it is answered. If not, `handler` is
    ///     asked at once, no 100 (Continue) is sent, and the connection is closed after the answer.
    ///   - faults: met by every exchange of this route; those of ``Fault/Point/accept`` and
    ///     ``Fault/Point/handshake`` never are, for no route is known then.
    public func route(_ path: String, readsBody: Bool = true, faults: [Fault] = [], _ handler: @escaping Handler) {
        state.withLock { $0.routes[path] = Route(handler: handler, readsBody: readsBody, faults: faults) }
    }

    /// Requests that must be known of before they are whole.
    func route(
        _ path: String, _ receiver: @escaping @Sendable (RecordedRequest, OriginConnection) -> any OriginReceiver
    ) {
        state.withLock { $0.routes[path] = Route(handler: { _ in .status(.notFound) }, receiver: receiver) }
    }

    /// Requests after which the connection speaks something else.
    func route(
        _ path: String,
        takingOver takeover:
            @escaping @Sendable (RecordedRequest, OriginConnection) async throws(OriginConnection.Ending) -> Void
    ) {
        state.withLock { $0.routes[path] = Route(handler: { _ in .status(.notFound) }, takeover: takeover) }
    }

    struct Route: Sendable {
        let handler: Handler
        var readsBody = true
        var faults: [Fault] = []
        /// Takes the request as it comes, in the place of `handler`.
        var receiver: (@Sendable (RecordedRequest, OriginConnection) -> any OriginReceiver)?
        /// Takes the connection over behind the head, in the place of all of these.
        var takeover: (@Sendable (RecordedRequest, OriginConnection) async throws(OriginConnection.Ending) -> Void)?

        static let missing = Route { _ in .status(.notFound) }
    }

    /// Adds a fault that every connection meets, or one of them.
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func inject(_ fault: Fault, onConnection connection: Int? = nil) {
        state.withLock { $0.faults.append((connection, fault)) }
    }

    /// Takes back all that was injected, and the schedule. Routes keep theirs.
    public func removeFaults() {
        state.withLock {
            $0.faults = []
            $0.schedule = nil
        }
    }

    /// Faults by chance, in addition to the others; `nil` for none.
    public func setSchedule(_ schedule: FaultSchedule?) {
        state.withLock { $0.schedule = schedule }
    }

    /// Lets every connection that stands still at a ``Fault/Effect/stall`` go: what the client sent is
    /// read and dropped until it leaves, then the connection is closed.
    public func releaseStalls() {
        for connection in state.withLock({ Array($0.connections.values) }) { connection.release() }
    }
}

// All that an origin shares between its connections and its test: a value under a lock.

import URLLoadingIO

struct OriginState: Sendable {
    var routes: [String: TestOrigin.Route] = [:]
    var faults: [(connection: Int?, fault: TestOrigin.Fault)] = []
    var schedule: TestOrigin.FaultSchedule?
    var counts = TestOrigin.Counts()
    private(set) var requests: ArraySlice<TestOrigin.RecordedRequest> = []
    private(set) var connections: [Int: OriginConnection] = [:]
    /// Woken by every change.
    var watchers: [PollSlot] = []
    private let recordedRequests: Int
    private var isStopped = false

    init(recordedRequests: Int) { self.recordedRequests = max(0, recordedRequests) }

    /// `nil` once the origin has stopped.
    mutating func open(_ socket: SocketTransport, _ origin: TestOrigin) -> OriginConnection? {
        guard !isStopped else { return nil }
        counts.accepted += 1
        let connection = OriginConnection(socket, number: counts.accepted, origin)
        connections[connection.number] = connection
        counts.open += 1
        counts.mostOpen = max(counts.mostOpen, counts.open)
        return connection
    }

    mutating func close(_ connection: OriginConnection) {
        connections[connection.number] = nil
        counts.open -= 1
    }

    /// Returns the connections to be ended.
    mutating func stop() -> [OriginConnection] {
        isStopped = true
        return Array(connections.values)
    }

    mutating func record(_ request: TestOrigin.RecordedRequest) {
        guard recordedRequests > 0 else { return }
        if requests.count == recordedRequests { requests.removeFirst() }
        requests.append(request)
    }

    func route(for path: String) -> TestOrigin.Route {
        if let exact = routes[path] { return exact }
        let fitting = routes.keys.filter { $0.hasSuffix("*") && path.hasPrefix($0.dropLast()) }
        return fitting.max { $0.utf8.count < $1.utf8.count }.flatMap { routes[$0] } ?? .missing
    }

    /// What a connection (`exchange` 0) or one of its exchanges (from 1) is going to meet.
    func faults(connection: Int, exchange: Int) -> [TestOrigin.Fault] {
        var met = faults.filter { $0.connection == nil || $0.connection == connection }.map(\.fault)
        if let scheduled = schedule?.fault(connection: connection, exchange: exchange) { met.append(scheduled) }
        return met.filter { $0.point.isOfConnection == (exchange == 0) }
    }
}

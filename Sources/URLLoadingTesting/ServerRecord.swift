// SPDX-License-Identifier: Apache-2.0

// What the servers of HTTP/1.1 and HTTP/2 record, and the routes that they share.

import URLLoadingIO

/// The part of a server's state that does not depend on the version of HTTP.
struct ServerRecord<Connection: Sendable>: Sendable {
    var routes: [String: HTTPTestServer.Route] = [:]
    var requests: MostRecent<HTTPTestServer.RecordedRequest>
    var watchers: [PollSlot] = []
    /// The counters of everything except connections, which are taken from `connections`.
    private var activity = TestServerCounts()
    private(set) var connections = ServerConnections<Connection>()

    init(recordedRequests: Int) { requests = MostRecent(recordedRequests) }

    var counts: TestServerCounts {
        get {
            var counts = activity
            (counts.accepted, counts.open) = (connections.accepted, connections.open.count)
            counts.mostOpen = connections.mostOpen
            return counts
        }
        set { activity = newValue }
    }

    mutating func open(_ make: (Int) -> Connection) -> Connection? { connections.open(make) }
    mutating func close(_ number: Int) { connections.close(number) }
    mutating func stop() -> [Connection] { connections.stop() }

    /// Returns the route for a path: an exact one, or the longest matching prefix with a `*`.
    func route(for path: String) -> HTTPTestServer.Route {
        if let exact = routes[path] { return exact }
        let fitting = routes.keys.filter { $0.hasSuffix("*") && path.hasPrefix($0.dropLast()) }
        return fitting.max { $0.utf8.count < $1.utf8.count }.flatMap { routes[$0] } ?? .missing
    }
}

/// A limited list of the newest elements, oldest first.
struct MostRecent<Element: Sendable>: Sendable {
    private(set) var all: ArraySlice<Element> = []
    private let limit: Int

    init(_ limit: Int) { self.limit = max(0, limit) }

    mutating func append(_ element: Element) {
        guard limit > 0 else { return }
        if all.count == limit { all.removeFirst() }
        all.append(element)
    }
}

/// The state of a server of HTTP.
protocol RecordingState: ServerState {
    associatedtype Connection: Sendable
    var record: ServerRecord<Connection> { get set }
}

extension RecordingState {
    var watchers: [PollSlot] {
        get { record.watchers }
        set { record.watchers = newValue }
    }
}

extension WatchedServer where State: RecordingState {
    var recordedCounts: TestServerCounts { withState { $0.record.counts } }
    var recordedRequests: [HTTPTestServer.RecordedRequest] { withState { Array($0.record.requests.all) } }

    /// Waits until the counters fulfil a condition.
    nonisolated(nonsending) func wait(
        _ limit: WaitLimit, until condition: @Sendable (TestServerCounts) -> Bool
    ) async throws {
        // Labelled: an unlabelled closure could also be the condition of this function.
        try await wait(limit, for: { condition($0.record.counts) ? () : nil })
    }
}

// SPDX-License-Identifier: Apache-2.0

// The state that all HTTP test servers share: connections, requests, and tasks that wait for a change.

import Synchronization
import URLLoadingIO

/// Counters of connections.
protocol ConnectionCounts: Sendable {
    var accepted: Int { get set }
    var open: Int { get set }
    var mostOpen: Int { get set }
}

/// The state of a server, a value under a lock.
protocol ServerState: Sendable {
    associatedtype Counts: ConnectionCounts
    associatedtype Connection: Sendable
    var routes: [String: HTTPTestServer.Route] { get }
    var counts: Counts { get set }
    var requests: MostRecent<HTTPTestServer.RecordedRequest> { get set }
    /// The open connections by number, from 1 in order of acceptance.
    var connections: [Int: Connection] { get set }
    var isStopped: Bool { get set }
    /// Slots woken by every change.
    var watchers: [PollSlot] { get set }
}

extension ServerState {
    /// Registers a new connection; `nil` once the server has stopped.
    mutating func open(_ make: (Int) -> Connection) -> Connection? {
        guard !isStopped else { return nil }
        counts.accepted += 1
        let connection = make(counts.accepted)
        connections[counts.accepted] = connection
        counts.open += 1
        counts.mostOpen = max(counts.mostOpen, counts.open)
        return connection
    }

    mutating func close(_ number: Int) {
        connections[number] = nil
        counts.open -= 1
    }

    /// Stops the server. Returns the connections to end.
    mutating func stop() -> [Connection] {
        isStopped = true
        return Array(connections.values)
    }

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

/// A server on whose state tests can wait.
protocol WatchedServer: AnyObject, Sendable {
    associatedtype State: ServerState
    func withState<R: Sendable>(_ use: (inout State) -> R) -> R
}

extension WatchedServer {
    /// Changes the state, and wakes the waiting tasks.
    @discardableResult
    func change<R: Sendable>(_ change: (inout State) -> R) -> R {
        let (result, watchers) = withState { state in (change(&state), state.watchers) }
        for watcher in watchers { watcher.wake() }
        return result
    }

    /// Waits until `find` finds a value in the state, and returns it.
    /// - Parameter seen: describes the state for a wait that times out.
    /// - Throws: ``WaitTimedOut``; `CancellationError` if the calling task is cancelled first.
    nonisolated(nonsending) func wait<R: Sendable>(
        _ limit: WaitLimit, for find: @Sendable (State) -> R?, seen: @Sendable (State) -> String
    ) async throws -> R {
        try await limit.watch { slot, adds in
            withState { state in
                if adds { state.watchers.append(slot) } else { state.watchers.removeAll { $0 === slot } }
            }
        } find: {
            withState { find($0) }
        } seen: {
            withState { seen($0) }
        }
    }
}

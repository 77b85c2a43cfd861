// SPDX-License-Identifier: Apache-2.0

// The state of a test server: a value under a lock, whose changes wake the tasks that wait for them.

import URLLoadingIO

/// The state of a server of any protocol, or of a simulated kernel.
protocol ServerState: Sendable {
    /// Slots woken by every change.
    var watchers: [PollSlot] { get set }
    /// The state as shown by a wait that timed out.
    var shown: String { get }
}

/// The connections of a server, numbered from 1 in order of acceptance.
struct ServerConnections<Connection: Sendable>: Sendable {
    private(set) var accepted = 0
    /// The maximum number of connections open at once.
    private(set) var mostOpen = 0
    private(set) var open: [Int: Connection] = [:]
    private var isStopped = false

    /// Registers a new connection; `nil` once the server has stopped.
    mutating func open(_ make: (Int) -> Connection) -> Connection? {
        guard !isStopped else { return nil }
        accepted += 1
        let connection = make(accepted)
        open[accepted] = connection
        mostOpen = max(mostOpen, open.count)
        return connection
    }

    mutating func close(_ number: Int) { open[number] = nil }

    /// Stops the server. Returns the connections to end.
    mutating func stop() -> [Connection] {
        isStopped = true
        return Array(open.values)
    }
}

/// A server, or what stands in for one, on whose state tests can wait.
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
    /// - Throws: ``WaitTimedOut``; `CancellationError` if the calling task is cancelled first.
    nonisolated(nonsending) func wait<R: Sendable>(
        _ limit: WaitLimit, for find: @Sendable (State) -> R?
    ) async throws -> R {
        try await limit.watch { slot, adds in
            withState { state in
                if adds { state.watchers.append(slot) } else { state.watchers.removeAll { $0 === slot } }
            }
        } find: {
            withState { find($0) }
        } seen: {
            withState { $0.shown }
        }
    }
}

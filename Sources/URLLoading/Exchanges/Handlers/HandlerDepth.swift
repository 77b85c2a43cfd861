// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The calls of handlers that wait for one another, each for a load that the handler of the one before has made.
///
/// A handler that passes its request to a session which has the same handler calls itself, without an end. A call that
/// has returned does not count: the tasks that it has started may load for as long as they like.
enum HandlerDepth {
    /// A call of a handler.
    final class Call: Sendable {
        private let hasReturned = Atomic(false)
        var isRunning: Bool { !hasReturned.load(ordering: .acquiring) }
        func end() { hasReturned.store(true, ordering: .releasing) }
    }

    /// The calls from which the current task comes.
    @TaskLocal static var calls: [Call] = []
    static let maximum = 32

    /// Returns the calls that run, with one more.
    static func adding(_ call: Call) -> [Call] { calls.filter(\.isRunning) + [call] }

    static var exceeded: LoadError {
        LoadError(
            .handlerFailed, phase: .preparing, party: .local,
            detail:
                "handlers have made loads \(maximum) deep: a handler that loads its own request with the session is "
                + "called again; forward with client.next, or use a session without the handler")
    }
}

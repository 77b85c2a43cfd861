// SPDX-License-Identifier: Apache-2.0

/// The number of loads that wait for one another, each made by the handler of the one before.
///
/// A handler that passes its request to a session which has the same handler calls itself, without an end.
enum HandlerDepth {
    @TaskLocal static var current = 0
    static let maximum = 32

    static var exceeded: LoadError {
        LoadError(
            .handlerFailed, phase: .preparing, party: .local,
            detail:
                "handlers have made loads \(maximum) deep: a handler that loads its own request with the session is "
                + "called again; forward with client.next, or use a session without the handler")
    }
}

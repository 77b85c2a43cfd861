// SPDX-License-Identifier: Apache-2.0

// Observes the networks for a load that waits for connectivity. The load's own stop, suspension and alarm also wake it,
// so no further task is needed.

import URLLoadingIO

/// Belongs to one load and is used by its task.
final class PathWatch {
    private let monitor: NetworkMonitor
    private let load: LoadHandle
    private let system: PathMonitor
    private var hints: NetworkMonitor.Hints
    /// The last reported path.
    private(set) var path: NetworkPath

    /// Throws if the system forbids the query.
    init(_ monitor: NetworkMonitor, for load: LoadHandle) throws(IOFailure) {
        self.monitor = monitor
        self.load = load
        system = try PathMonitor(monitor.source)
        hints = monitor.hints
        path = monitor.path(try system.begin(), hints)
        monitor.addListener(load)
    }

    /// Stops observing.
    func end() {
        monitor.removeListener(load)
        system.close()
    }

    /// Returns the next path that differs, or the same one if `isDue` returns true after a wake-up of the load.
    func next(unless isDue: () -> Bool = { false }) async throws(IOFailure) -> NetworkPath {
        let known = path
        while path == known, !isDue() {
            let state = try await system.change(load) { monitor.hints != hints || isDue() }
            hints = monitor.hints
            path = monitor.path(state, hints)
        }
        return path
    }
}

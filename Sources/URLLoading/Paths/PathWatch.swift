// The networks as a load sees them while it waits: its own stop, suspension and alarm wake it, so that no
// task is needed for it.

import URLLoadingIO

/// Of one load; used by its task.
final class PathWatch {
    private let monitor: NetworkMonitor
    private let load: LoadHandle
    private let system: PathMonitor
    private var hints: NetworkMonitor.Hints
    /// As it was last told.
    private(set) var path: NetworkPath

    /// Throws where the system lets nobody ask.
    init(_ monitor: NetworkMonitor, for load: LoadHandle) throws(IOFailure) {
        self.monitor = monitor
        self.load = load
        system = try PathMonitor(monitor.source)
        hints = monitor.hints
        path = monitor.path(try system.begin(), hints)
        monitor.listens(load)
    }

    /// Nothing is heard any more.
    func end() {
        monitor.leaves(load)
        system.close()
    }

    /// The next path that differs, or the same if something else is due: the load is woken to look.
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

// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// A sequence of the paths of a ``NetworkMonitor``: see ``NetworkMonitor/paths``.
public struct NetworkPaths: AsyncSequence, Sendable {
    public typealias Element = NetworkPath
    public typealias Failure = Never

    let monitor: NetworkMonitor

    public func makeAsyncIterator() -> Iterator { Iterator(listener: PathListener(monitor)) }

    /// Holds one kernel socket from the first `next` to the end of the iteration.
    public struct Iterator: AsyncIteratorProtocol {
        let listener: PathListener

        /// Returns the current path, then each one that differs; `nil` when the calling task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> NetworkPath? {
            await listener.next()
        }
        /// Returns the current path, then each one that differs; `nil` when the calling task is cancelled.
        public mutating func next() async -> NetworkPath? { await listener.next() }
    }
}

/// One observer, used by one task at a time.
final class PathListener {
    private let monitor: NetworkMonitor
    private let token = StopToken()
    private var system: PathMonitor?
    /// The last reported path, and the hints it was made with.
    private var last: (path: NetworkPath, hints: NetworkMonitor.Hints)?
    private var hasEnded = false

    init(_ monitor: NetworkMonitor) { self.monitor = monitor }

    deinit { monitor.removeListener(token) }

    func next() async -> NetworkPath? {
        guard !hasEnded else { return nil }
        let path: NetworkPath? = await withTaskCancellationHandler {
            do throws(IOFailure) { return try await nextPath() } catch { return failed(error) }
        } onCancel: { [token] in
            token.stop(.cancelled)
        }
        if path == nil || path?.status == .unknown { end() }
        return path
    }

    private func nextPath() async throws(IOFailure) -> NetworkPath {
        try token.check(.read)
        guard let system, let known = last?.path else { return try begin() }
        while true {
            let path = networkPath(try await system.change(token) { monitor.hints != last?.hints })
            if path != known { return path }
        }
    }

    private func begin() throws(IOFailure) -> NetworkPath {
        let system = try PathMonitor(monitor.source)
        self.system = system
        monitor.addListener(token)
        return networkPath(try system.begin())
    }

    private func networkPath(_ state: PathState) -> NetworkPath {
        let hints = monitor.hints
        let path = monitor.path(state, hints)
        last = (path, hints)
        return path
    }

    private func failed(_ error: IOFailure) -> NetworkPath? {
        if case .stopped = error.code { return nil }
        return monitor.unknown
    }

    private func end() {
        hasEnded = true
        monitor.removeListener(token)
        system?.close()
        system = nil
    }
}

// When the stages of a load happened, for `urlload --json` and, later, the public metrics.

import Synchronization
import URLLoadingIO

/// Moments in nanoseconds of the monotonic clock; 0 while they have not happened.
package final class Timeline: Sendable {
    package enum Stage: Int, Sendable, CaseIterable {
        case started, resolved, connected, secured, requestSent, responseReceived, finished
    }
    private let moments = Lock([Int64](repeating: 0, count: Stage.allCases.count))
    private let reusedConnection = Atomic<Bool>(false)

    package init() { mark(.started) }

    /// A stage that happens again (a redirect, a retry) keeps its last moment.
    package func mark(_ stage: Stage) {
        let now = Poller.now()
        moments.withLock { $0[stage.rawValue] = now }
    }

    func markReused() { reusedConnection.store(true, ordering: .relaxed) }
    package var isReusedConnection: Bool { reusedConnection.load(ordering: .relaxed) }

    /// Seconds from the start; `nil` if it has not happened.
    package func seconds(_ stage: Stage) -> Double? {
        moments.withLock { moments in
            guard moments[stage.rawValue] != 0 else { return nil }
            return Double(moments[stage.rawValue] - moments[0]) / 1e9
        }
    }
}

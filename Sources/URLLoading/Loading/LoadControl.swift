// The one handle by which a load is ended from outside: by its task's cancellation, by a timer, by
// its session. See `StopToken` for how that wakes it.

import URLLoadingIO
import Synchronization

class LoadControl: StopToken, @unchecked Sendable {
    /// The moment the whole load must have ended; `.max` for none.
    let deadline: Int64
    /// Where the registry keeps it. Reached only under the registry's lock.
    var registryIndex = -1
    /// When the stages of the load happened; `nil` unless somebody wants to know.
    let timeline: Timeline?

    init(idle: Duration?, resource: Duration?, collectsTimeline: Bool) {
        let resource = resource.map(Self.nanoseconds) ?? .max
        deadline = resource == .max ? .max : Poller.now().addingReportingOverflow(resource).partialValue
        timeline = collectsTimeline ? Timeline() : nil
        super.init(idleLimit: idle.map(Self.nanoseconds) ?? .max)
    }

    /// At least one nanosecond, at most about 146 years.
    static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0 else { return 1 }
        guard seconds < Int64.max / 2_000_000_000 else { return .max / 2 }
        return max(1, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}

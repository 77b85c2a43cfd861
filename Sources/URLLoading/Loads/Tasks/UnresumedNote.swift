// SPDX-License-Identifier: Apache-2.0

#if DEBUG
import Synchronization
import URLLoadingIO

/// Notes that a task has been awaited for five seconds and was never resumed.
final class UnresumedNote: TimerTarget {
    private static let interval: Int64 = 5_000_000_000
    private weak let load: TaskDriver?

    private init(_ load: TaskDriver) { self.load = load }

    static func schedule(_ load: TaskDriver) {
        guard !load.state.withLock({ $0.isBegun }) else { return }
        Poller.shared.schedule(UnresumedNote(load), at: Poller.now() + interval)
    }

    func timerFired(now: Int64) {
        guard let load, !load.state.withLock({ $0.isBegun }) else { return }
        DebugNote.write(
            "task \(load.context.emitter?.identity.id ?? 0) \(load.original.url.withoutSecrets) is awaited and was "
                + "never resumed: a task is created suspended, so call resume()")
    }
}
#endif

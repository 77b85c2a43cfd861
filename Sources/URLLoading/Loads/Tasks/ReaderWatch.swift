// SPDX-License-Identifier: Apache-2.0

// Watches a load that waits for the consumer of its body.
//
// A caller that waits for the events of a task, and forgets the body, would wait for ever: after the idle timeout the
// load is read to its end instead. A debug build also says on the standard error which task waits for its reader.

import Synchronization
import URLLoadingIO

extension TaskDriver {
    /// Called when the load begins to wait for a consumer.
    func watchForReader() {
        #if DEBUG
        UnreadNote.schedule(self)
        #endif
        watchForForgottenBody()
    }

    /// Called when the load may have begun to wait for a consumer, or when the first caller may wait for its events.
    func watchForForgottenBody() {
        guard let limit = core.configuration.timeouts.idle, state.withLock({ $0.waitsForReaderWithListeners }) else {
            return
        }
        let clock = core.configuration.clock
        clock.schedule(ForgottenBody(self), at: clock.now() &+ LoadHandle.nanoseconds(limit))
    }
}

/// Ends the wait of a load whose events are awaited and whose body has no consumer.
private final class ForgottenBody: TimerTarget {
    private weak let load: TaskDriver?

    init(_ load: TaskDriver) { self.load = load }

    func timerFired(now: Int64) {
        guard let load, load.state.withLock({ $0.waitsForReaderWithListeners }) else { return }
        load.requireEnd()
    }
}

#if DEBUG
/// Notes once that a task has waited for its reader for five seconds.
private final class UnreadNote: TimerTarget {
    private static let interval: Int64 = 5_000_000_000
    private weak let load: TaskDriver?
    /// The number of chunks that had been taken when the timer was set.
    private let takes: Int

    private init(_ load: TaskDriver, _ takes: Int) { (self.load, self.takes) = (load, takes) }

    static func schedule(_ load: TaskDriver) {
        let takes = load.state.withLock { $0.takes }
        Poller.shared.schedule(UnreadNote(load, takes), at: Poller.now() + interval)
    }

    func timerFired(now: Int64) {
        guard let load else { return }
        let (waits, takes) = load.state.withLock { ($0.waitsForReader, $0.takes) }
        guard waits else { return }
        guard takes == self.takes else { return Self.schedule(load) }
        DebugNote.write(
            "task \(load.context.emitter?.identity.id ?? 0) \(load.original.url.withoutSecrets) has waited 5 s for the "
                + "reader of its body: read `body` to its end, await `value` or `metrics`, or cancel the task")
    }
}
#endif

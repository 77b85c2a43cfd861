// SPDX-License-Identifier: Apache-2.0

// Stops the agent on SIGTERM and SIGINT, with transfers synchronised to disk. The signal handler only posts a
// semaphore, because few functions are async-signal-safe.

import Glibc

enum AgentSignals {
    nonisolated(unsafe) private static let arrivals = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    /// - Parameter stop: called on a thread of its own, for each signal.
    static func watch(_ stop: @escaping @Sendable () -> Void) {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
        guard sem_init(arrivals, 0, 0) == 0 else { return }
        Thread.start {
            while true {
                while sem_wait(arrivals) != 0 {}
                stop()
            }
        }
        for number in [SIGTERM, SIGINT] { signal(number) { _ in sem_post(AgentSignals.arrivals) } }
    }

    private enum Thread {
        private final class Work {
            let run: @Sendable () -> Void
            init(_ run: @escaping @Sendable () -> Void) { self.run = run }
        }
        static func start(_ run: @escaping @Sendable () -> Void) {
            var thread = pthread_t()
            let work = Unmanaged.passRetained(Work(run))
            let failure = pthread_create(
                &thread, nil,
                { context in
                    if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run() }
                    return nil
                }, work.toOpaque())
            if failure != 0 { work.release() }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// SIGINT, SIGTERM and SIGHUP end the loads, not the process, so that files are cleaned up and connections closed. The
// handler only counts; a thread of its own does the rest, because little is allowed in a signal handler, and blocking
// the signals for `sigwait` does not work beside `dispatch_main`, which unblocks all of them on its thread. A write
// that blocks on an unread pipe must not keep the process: it ends one second after the first signal, or with the
// second.

import Glibc
import Synchronization
import URLLoadingIO

enum Signals {
    /// The number of the first signal; 0 for none.
    private static let received = Atomic<Int32>(0)
    nonisolated(unsafe) private static let arrivals = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    static var exitCode: ExitCode? {
        switch received.load(ordering: .acquiring) {
        case 0: nil
        case SIGTERM: .terminated
        default: .interrupted
        }
    }

    private static let stops = Lock<[@Sendable () -> Void]>([])

    /// - Parameter stop: called once, on another thread, when a signal arrives.
    static func watch(_ stop: @escaping @Sendable () -> Void) {
        let isFirst = stops.withLock { stops in
            stops.append(stop)
            return stops.count == 1
        }
        if isFirst { listen() }
        // A signal that arrived before `stop` was in the list has not called it.
        if exitCode != nil { stop() }
    }

    /// Waits, at most until a signal arrives.
    static func pause(_ duration: Duration) async {
        let end = ContinuousClock.now + duration
        while exitCode == nil, ContinuousClock.now < end {
            try? await Task.sleep(for: min(.milliseconds(100), end - ContinuousClock.now))
        }
    }

    private static func listen() {
        // A closed pipe shall be an error of `write`, not the end of the process before files are cleaned up.
        signal(SIGPIPE, SIG_IGN)
        // Both lazy globals are initialised here, because the signal handler must not do it.
        guard exitCode == nil, sem_init(arrivals, 0, 0) == 0, startThread() else { return }
        for number in [SIGINT, SIGTERM, SIGHUP] where !isIgnored(number) {
            signal(number) { number in
                _ = Signals.received.compareExchange(expected: 0, desired: number, ordering: .releasing)
                sem_post(Signals.arrivals)
            }
        }
    }

    private static func startThread() -> Bool {
        var thread = pthread_t()
        return pthread_create(
            &thread, nil,
            { _ in
                Signals.wait()
                return nil
            }, nil) == 0
    }

    private static func wait() {
        while sem_wait(arrivals) != 0 {}
        for stop in stops.withLock({ $0 }) { stop() }
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        deadline.tv_sec += 1
        while sem_timedwait(arrivals, &deadline) != 0, errno == EINTR {}
        UnfinishedFiles.deleteAll()
        _exit((exitCode ?? .interrupted).rawValue)
    }

    /// A signal that the parent ignores stays ignored, as `nohup` expects.
    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}

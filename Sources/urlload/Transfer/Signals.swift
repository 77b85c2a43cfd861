// SIGINT, SIGTERM and SIGHUP end the loads, not the process: files are cleaned up and connections
// closed on the way out. They are blocked in every thread and awaited by one, so that what follows is
// ordinary code. Somebody who waits for a reader that is gone, or a second signal, does not get to
// hold the process: after a second it ends at once.

import Glibc
import Synchronization

enum Signals {
    /// The first signal that came; 0 for none.
    private static let received = Atomic<Int32>(0)

    static var exitCode: ExitCode? {
        switch received.load(ordering: .acquiring) {
        case 0: nil
        case SIGTERM: .terminated
        default: .interrupted
        }
    }

    /// Must come first: threads inherit what is blocked from who starts them.
    static func block() {
        var set = ours()
        pthread_sigmask(SIG_BLOCK, &set, nil)
        // A reader that is gone is an error of `write`, not the end of us before files are cleaned up.
        signal(SIGPIPE, SIG_IGN)
    }

    /// - Parameter stop: called on another thread, once.
    static func watch(_ stop: @escaping @Sendable () -> Void) {
        let context = Unmanaged.passRetained(Stop(stop)).toOpaque()
        var thread = pthread_t()
        let code = pthread_create(&thread, nil, { context in
            if let context { Signals.wait(Unmanaged<Stop>.fromOpaque(context).takeRetainedValue()) }
            return nil
        }, context)
        // Without the thread nobody would hear them: back to the system's way.
        guard code != 0 else { return }
        var set = ours()
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        Unmanaged<Stop>.fromOpaque(context).release()
    }

    private final class Stop: Sendable {
        let stop: @Sendable () -> Void
        init(_ stop: @escaping @Sendable () -> Void) { self.stop = stop }
    }

    private static func wait(_ stop: Stop) {
        var set = ours()
        var number: Int32 = 0
        guard sigwait(&set, &number) == 0 else { return }
        received.store(number, ordering: .releasing)
        stop.stop()
        var patience = timespec(tv_sec: 1, tv_nsec: 0)
        sigtimedwait(&set, nil, &patience)
        UnfinishedFiles.deleteAll()
        _exit((exitCode ?? .interrupted).rawValue)
    }

    /// One that our parent ignores stays ignored: `nohup`.
    private static func ours() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] where !isIgnored(number) { sigaddset(&set, number) }
        return set
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }
}

// SPDX-License-Identifier: Apache-2.0

// Runs blocking calls (name lookups, file access) on a limited number of threads, which start when there is work and
// end after a while without any. No task blocks for a result: the work delivers it itself, so a caller that gives up
// can leave at once.

import Synchronization
import URLLoadingCSystem

package final class BlockingThreads: Sendable {
    /// For name lookups of all sessions. Lookups are rare and slow; resolvers seldom serve more than eight at once
    /// well.
    package static let shared = BlockingThreads(limit: 8)

    /// For file access of all sessions, separate from name lookups so that a hanging file system does not delay them.
    package static let files = BlockingThreads(limit: 4)

    /// Synchronises growing files, one at a time, so that a slow disk delays nothing else.
    static let synchronizing = BlockingThreads(limit: 1)

    /// For the program's objects that the classic API calls during a load, and that may block for as long as they like:
    /// body streams, `URLProtocol` classes, subclasses of `URLCache`. A blocked object waits for another load, or for a
    /// person, so these calls are not limited to a few at a time.
    package static let programs = BlockingThreads(limit: 256)

    private struct State {
        var queue: [@Sendable () -> Void] = []
        var threads = 0
        var waiting = 0
    }
    private let state = Lock(State())
    private let limit: Int
    private let signal = ThreadSignal()

    package init(limit: Int) {
        self.limit = limit
    }

    /// Runs `work` on one of the threads and returns its result; returns `nil` as soon as the token is stopped. Running
    /// work then ends by itself and must keep alive what it uses; work whose token is stopped before its turn is not
    /// begun.
    /// - Parameter deadline: a moment of the token's clock at which `nil` is returned.
    package func call<R: Sendable>(
        _ token: StopToken, until deadline: Int64 = .max, _ work: @escaping @Sendable () -> R
    ) async -> R? {
        let slot = Poller.shared.borrowSlot()
        token.attach(slot)
        defer {
            token.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        if deadline != .max { token.clock.schedule(slot, at: deadline) }
        let result = Outcome<R>()
        run {
            guard !result.isAbandoned.load(ordering: .acquiring) else { return }
            let value = work()
            result.value.withLock { $0 = value }
            slot.wake()
        }
        while token.stopReason == nil {
            if let value = result.value.withLock({ $0 }) { return value }
            if deadline != .max, token.clock.now() >= deadline { break }
            await Poller.shared.park(slot, until: token)
        }
        result.isAbandoned.store(true, ordering: .releasing)
        return nil
    }

    private final class Outcome<R: Sendable>: Sendable {
        let value = Lock<R?>(nil)
        let isAbandoned = Atomic(false)
    }

    /// Runs `work` on one of the threads, in order of arrival. Never blocks the caller, unless no thread can be
    /// started.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.queue.append(work)
            guard state.waiting == 0 || state.queue.count > state.waiting, state.threads < limit else { return false }
            state.threads += 1
            return true
        }
        signal.raise()
        guard mustStart else { return }
        let result = csys_thread_start(
            { context in
                guard let context else { return }
                Unmanaged<BlockingThreads>.fromOpaque(context).takeRetainedValue().serve()
            }, Unmanaged.passRetained(self).toOpaque(), "url-blocking")
        guard result != 0 else { return }
        Unmanaged.passUnretained(self).release()
        // The thread could not be started. If there is no other, run the queued work here: late, but not never.
        let orphaned = state.withLock { state in
            state.threads -= 1
            guard state.threads == 0 else { return [@Sendable () -> Void]() }
            defer { state.queue.removeAll() }
            return state.queue
        }
        for work in orphaned { work() }
    }

    private func serve() {
        while true {
            let work = state.withLock { state -> (@Sendable () -> Void)? in
                if state.queue.isEmpty {
                    state.waiting += 1
                    return nil
                }
                return state.queue.removeFirst()
            }
            if let work {
                work()
                continue
            }
            let heard = signal.wait(nanoseconds: 10_000_000_000)
            let leaves = state.withLock { state in
                state.waiting -= 1
                guard !heard, state.queue.isEmpty else { return false }
                state.threads -= 1
                return true
            }
            if leaves { return }
        }
    }
}

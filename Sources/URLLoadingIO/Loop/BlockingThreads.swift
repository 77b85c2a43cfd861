// Where calls that block run (name look-ups, later files): at most so many threads, started when
// there is work and ended when there was none for a while. Nobody waits here for an answer: work
// says itself where its answer goes, so that a caller who gives up can leave at once.

import Synchronization
import URLLoadingCSystem

package final class BlockingThreads: Sendable {
    /// Shared by all sessions. Look-ups are rare and slow: eight at a time is more than resolvers like.
    package static let shared = BlockingThreads(limit: 8)

    /// Shared by all sessions, apart from names: a file system that hangs must not hold those up.
    package static let files = BlockingThreads(limit: 4)

    /// Where growing files are brought to the disk, one at a time: a slow disk holds up nothing that is waited for.
    static let synchronizing = BlockingThreads(limit: 1)

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

    /// What `work` returns, once one of the threads has run it; `nil` as soon as the token is stopped:
    /// the work then ends by itself, and must keep alive what it uses. What nobody waits for any more when its turn
    /// comes is not begun.
    /// - Parameter deadline: of the token's clock; `nil` is returned then.
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
            guard !result.isLeft.load(ordering: .acquiring) else { return }
            let value = work()
            result.value.withLock { $0 = value }
            slot.wake()
        }
        while token.stopReason == nil {
            if let value = result.value.withLock({ $0 }) { return value }
            if deadline != .max, token.clock.now() >= deadline { break }
            await Poller.shared.park(slot, until: token)
        }
        result.isLeft.store(true, ordering: .releasing)
        return nil
    }

    private final class Outcome<R: Sendable>: Sendable {
        let value = Lock<R?>(nil)
        let isLeft = Atomic(false)
    }

    /// Runs `work` on one of the threads, in order of arrival. Never blocks.
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
        // No thread to be had. With none at all the work runs here: late, but not never.
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

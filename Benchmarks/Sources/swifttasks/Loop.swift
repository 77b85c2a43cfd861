// SPDX-License-Identifier: Apache-2.0

// The least that Swift tasks need to wait for sockets: one thread, epoll, a word for each socket.

import CPoll
import Glibc
import Synchronization

/// The wait of one task for one socket, registered once and edge-triggered.
final class Slot: Sendable {
    private static let idle: UInt = 0, ready: UInt = 1
    /// `idle`, `ready`, or the continuation of the waiting task.
    private let state = Atomic(Slot.idle)

    func wait() async {
        if state.exchange(Self.idle, ordering: .acquiring) == Self.ready { return }
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let word = unsafeBitCast(continuation, to: UInt.self)
            if state.compareExchange(expected: Self.idle, desired: word, ordering: .acquiringAndReleasing).exchanged {
                return
            }
            state.store(Self.idle, ordering: .relaxed)
            continuation.resume()
        }
    }

    func notify() {
        let word = state.exchange(Self.ready, ordering: .acquiringAndReleasing)
        guard word > Self.ready else { return }
        state.store(Self.idle, ordering: .releasing)
        unsafeBitCast(word, to: UnsafeContinuation<Void, Never>.self).resume()
    }
}

/// The thread that waits for the kernel; as a task executor it also runs the tasks that prefer it.
final class Loop: TaskExecutor, Sendable {
    static let shared = Loop()

    private let poller: Int32
    private let wake: Int32
    private let jobs = Mutex<[UnownedJob]>([])
    private let thread = Atomic<UInt>(0)

    private init() {
        poller = cpoll_create()
        wake = cpoll_add_wake(poller)
        var id = pthread_t()
        pthread_create(
            &id, nil,
            { _ in
                Loop.shared.run()
                return nil
            }, nil)
    }

    /// Registers a socket for its whole life. The slot is never released: the kernel refers to it.
    func register(_ descriptor: Int32, _ slot: Slot) {
        cpoll_add(poller, descriptor, UInt64(UInt(bitPattern: Unmanaged.passRetained(slot).toOpaque())))
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        if isFirst, thread.load(ordering: .relaxed) != UInt(pthread_self()) { cpoll_wake(wake) }
    }

    private func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        let executor = asUnownedTaskExecutor()
        var batch: [UnownedJob] = []
        var keys = [UInt64](repeating: 0, count: 256)
        while true {
            jobs.withLock { swap(&$0, &batch) }
            for job in batch { job.runSynchronously(on: executor) }
            batch.removeAll(keepingCapacity: true)
            let isIdle = jobs.withLock(\.isEmpty)
            let count = cpoll_wait(poller, &keys, Int32(keys.count), isIdle ? -1 : 0)
            for key in keys[..<max(0, Int(count))] {
                guard let key = UnsafeRawPointer(bitPattern: UInt(key)) else {
                    cpoll_woken(wake)
                    continue
                }
                Unmanaged<Slot>.fromOpaque(key)._withUnsafeGuaranteedRef { $0.notify() }
            }
        }
    }
}

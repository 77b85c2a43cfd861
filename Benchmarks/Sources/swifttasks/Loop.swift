// SPDX-License-Identifier: Apache-2.0

// The least that Swift tasks need to wait for sockets: one thread, epoll, a word for each socket.

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

    private let poller = epoll_create1(Int32(EPOLL_CLOEXEC.rawValue))
    private let wakeUp = eventfd(0, Int32(EFD_NONBLOCK.rawValue | EFD_CLOEXEC.rawValue))
    private let jobs = Mutex<[UnownedJob]>([])
    private let thread = Atomic<UInt>(0)

    private init() {
        var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: 0))
        epoll_ctl(poller, EPOLL_CTL_ADD, wakeUp, &event)
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
        let key = UInt64(UInt(bitPattern: Unmanaged.passRetained(slot).toOpaque()))
        let interest = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
        var event = epoll_event(events: interest, data: epoll_data_t(u64: key))
        epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        if isFirst, thread.load(ordering: .relaxed) != UInt(pthread_self()) { eventfd_write(wakeUp, 1) }
    }

    private func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        let executor = asUnownedTaskExecutor()
        var batch: [UnownedJob] = []
        var events = [epoll_event](repeating: epoll_event(), count: 256)
        while true {
            jobs.withLock { swap(&$0, &batch) }
            for job in batch { job.runSynchronously(on: executor) }
            batch.removeAll(keepingCapacity: true)
            let isIdle = jobs.withLock(\.isEmpty)
            let count = epoll_wait(poller, &events, Int32(events.count), isIdle ? -1 : 0)
            for event in events.prefix(max(0, Int(count))) {
                guard let key = UnsafeRawPointer(bitPattern: UInt(event.data.u64)) else {
                    var value: eventfd_t = 0
                    eventfd_read(wakeUp, &value)
                    continue
                }
                Unmanaged<Slot>.fromOpaque(key)._withUnsafeGuaranteedRef { $0.notify() }
            }
        }
    }
}

// From loads, which run anywhere, to the one queue on which delegates and handlers are called.
//
// An operation costs 2 µs in a burst and 21 µs awaited, so one operation runs all that has gathered.
// There is never more than one of a lane's in the queue: whatever runs on a lane runs one after the
// other, also on a queue that runs several operations at a time.

import Foundation
import Synchronization
import URLLoadingIO

final class DelegateLane: TaskExecutor {
    enum Item: Sendable {
        /// A task with calls to make.
        case bridge(TaskBridge)
        case call(@Sendable () -> Void)
    }
    private struct State: Sendable {
        var waiting: [Item] = []
        /// An operation is in the queue, or runs.
        var isRunning = false
        /// The room of a turn that is over.
        var spare: [Item] = []
    }
    private let state = Lock(State())
    let queue: OperationQueue

    init(_ queue: OperationQueue) { self.queue = queue }

    /// Whether what several lanes put into the queue runs one after the other, too.
    var isSerial: Bool { queue.maxConcurrentOperationCount == 1 }

    func append(_ item: Item) {
        let isRunning = state.withLock { state in
            defer { state.isRunning = true }
            state.waiting.append(item)
            return state.isRunning
        }
        if !isRunning { queue.addOperation(Turn(self)) }
    }

    /// A step of an async form of a delegate's method: it comes where the method was called.
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        append(.call { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) })
    }

    /// How often one operation looks for more: the queue may be shared, with a user interface for example.
    private static let roundsPerTurn = 8

    private func takeTurn() {
        var items: [Item] = []
        state.withLock { swap(&$0.spare, &items) }
        for _ in 0..<Self.roundsPerTurn {
            items.removeAll(keepingCapacity: true)
            state.withLock { state in
                swap(&state.waiting, &items)
                guard items.isEmpty else { return }
                state.isRunning = false
                swap(&state.spare, &items)
            }
            guard !items.isEmpty else { return }
            for item in items {
                switch item {
                case .bridge(let bridge): bridge.makeCalls()
                case .call(let call): call()
                }
            }
        }
        queue.addOperation(Turn(self))
    }

    /// Whoever cancels all operations of the queue does not mean ours: a call that is promised is made.
    private final class Turn: Operation, @unchecked Sendable {
        private let lane: DelegateLane
        init(_ lane: DelegateLane) { self.lane = lane }
        override func main() { lane.takeTurn() }
        override func cancel() {}
    }
}

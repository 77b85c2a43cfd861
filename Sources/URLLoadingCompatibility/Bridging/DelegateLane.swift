// From loads, which run anywhere, to the one queue on which delegates and handlers are called.
//
// An operation costs 2 µs in a burst and 21 µs awaited, so one operation runs all that has gathered.
// There is never more than one of a lane's in the queue: whatever runs on a lane runs one after the
// other, also on a queue that runs several operations at a time.
//
// A program that gives the session its queue puts work of its own there, too, and on the dispatch queue
// beneath it. No call may overtake what the program put there before the call was due, and the program's
// work cannot be seen from here. So on such a queue an operation runs what was due when the operation was
// put there, and what has become due since waits for the next one.

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
        /// What the operation in the queue runs.
        var due: [Item] = []
        /// What has become due since that operation was put there; of a queue of the program's alone.
        var late: [Item] = []
        /// An operation is in the queue, or runs.
        var isRunning = false
        /// The room of a turn that is over.
        var spare: [Item] = []
    }
    private let state = Lock(State())
    let queue: OperationQueue
    /// The program made the queue.
    let isOfProgram: Bool

    init(_ queue: OperationQueue, isOfProgram: Bool) { (self.queue, self.isOfProgram) = (queue, isOfProgram) }

    /// How many calls of one task an operation makes before the other tasks of the session have their turn; on a queue of
    /// the program's each call is an operation, as on Apple's platforms.
    var callsPerTurn: Int { isOfProgram ? 1 : 16 }

    /// Whether what several lanes put into the queue runs one after the other, too.
    var isSerial: Bool { queue.maxConcurrentOperationCount == 1 }

    func append(_ item: Item) {
        let isRunning = state.withLock { state in
            defer { state.isRunning = true }
            if state.isRunning, isOfProgram { state.late.append(item) } else { state.due.append(item) }
            return state.isRunning
        }
        if !isRunning { queue.addOperation(Turn(self)) }
    }

    /// A step of an async form of a delegate's method: it comes where the method was called.
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        append(.call { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) })
    }

    /// How often one operation on a queue of the session's own looks for more.
    private static let roundsPerTurn = 8

    private func takeTurn() {
        var items: [Item] = []
        state.withLock { swap(&$0.spare, &items) }
        for _ in 0..<(isOfProgram ? 1 : Self.roundsPerTurn) {
            state.withLock { swap(&$0.due, &items) }
            for item in items {
                switch item {
                case .bridge(let bridge): bridge.makeCalls()
                case .call(let call): call()
                }
            }
            // Letting go of an item may run code of the program's: not under the lock.
            items.removeAll(keepingCapacity: true)
            let isDone = state.withLock { state in
                if isOfProgram { swap(&state.due, &state.late) }
                guard state.due.isEmpty else { return false }
                state.isRunning = false
                swap(&state.spare, &items)
                return true
            }
            if isDone { return }
        }
        state.withLock { swap(&$0.spare, &items) }
        queue.addOperation(Turn(self))
    }

    // Unchecked, as any subclass of `Operation` must be; its one property never changes.
    /// Cannot be cancelled: a program that cancels all operations of the queue still gets the calls that are due.
    private final class Turn: Operation, @unchecked Sendable {
        private let lane: DelegateLane
        init(_ lane: DelegateLane) { self.lane = lane }
        override func main() { lane.takeTurn() }
        override func cancel() {}
    }
}

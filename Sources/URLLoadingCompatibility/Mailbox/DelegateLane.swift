// SPDX-License-Identifier: Apache-2.0

// The path from loads, which run on any thread, to the delegate queue, on which delegates and handlers are called.
//
// An operation costs 2 µs in a burst and 21 µs awaited, so one operation runs all calls that are due. At most one
// operation of a lane is in the queue, so the calls of a lane never overlap, even on a queue that runs several
// operations at a time.
//
// A queue that the program supplied also contains the program's own operations, as does the dispatch queue beneath it.
// No call may overtake an operation that the program added before the call became due, and the lane cannot see those
// operations. Therefore, on such a queue an operation runs only the calls that were due when it was added; calls that
// became due later wait for the next operation.

import Foundation
import Synchronization
import URLLoadingIO

/// A task whose calls a lane makes.
protocol LaneCaller: AnyObject, Sendable {
    /// Makes the calls that are due. Called on the lane.
    func makeCalls()
}

final class DelegateLane: TaskExecutor {
    enum Item: Sendable {
        /// A task with calls to make.
        case caller(any LaneCaller)
        case call(@Sendable () -> Void)
    }
    private struct State: Sendable {
        /// The items that the queued operation runs.
        var due: [Item] = []
        /// The items that became due after the queued operation was added. Used only for a queue that the program
        /// supplied.
        var late: [Item] = []
        /// Whether an operation of the lane is queued or running.
        var isRunning = false
        /// The emptied array of the previous operation, reused for its capacity.
        var spare: [Item] = []
    }
    private let state = Lock(State())
    let queue: OperationQueue
    /// Whether the program supplied the queue.
    let isOfProgram: Bool

    init(_ queue: OperationQueue, isOfProgram: Bool) { (self.queue, self.isOfProgram) = (queue, isOfProgram) }

    /// How many calls of one task an operation makes before it serves other tasks of the session. On a queue that the
    /// program supplied each call is an operation of its own, as on Apple's platforms.
    var callsPerTurn: Int { isOfProgram ? 1 : 16 }

    /// Whether the queue is serial, so that the operations of several lanes do not overlap either.
    var isSerial: Bool { queue.maxConcurrentOperationCount == 1 }

    func append(_ item: Item) {
        let isRunning = state.withLock { state in
            defer { state.isRunning = true }
            if state.isRunning, isOfProgram { state.late.append(item) } else { state.due.append(item) }
            return state.isRunning
        }
        if !isRunning { queue.addOperation(Turn(self)) }
    }

    /// Enqueues a job of an async delegate method, so that the method runs on the delegate queue.
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        append(.call { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) })
    }

    /// How often one operation on the session's own queue checks for further items before it ends.
    private static let roundsPerTurn = 8

    private func takeTurn() {
        var items: [Item] = []
        state.withLock { swap(&$0.spare, &items) }
        for _ in 0..<(isOfProgram ? 1 : Self.roundsPerTurn) {
            state.withLock { swap(&$0.due, &items) }
            for item in items {
                switch item {
                case .caller(let caller): caller.makeCalls()
                case .call(let call): call()
                }
            }
            // Releasing an item may run code of the program, so it happens outside of the lock.
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

    // Unchecked, as any subclass of `Operation` must be; its only property is immutable.
    /// The operation of a lane. It cannot be cancelled: a program that cancels all operations of the queue still gets
    /// the calls that are due.
    private final class Turn: Operation, @unchecked Sendable {
        private let lane: DelegateLane
        init(_ lane: DelegateLane) { self.lane = lane }
        override func main() { lane.takeTurn() }
        override func cancel() {}
    }
}

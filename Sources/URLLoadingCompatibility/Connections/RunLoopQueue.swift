// SPDX-License-Identifier: Apache-2.0

// An operation queue that runs its operations on run loops: used for the delegate of a connection without a queue.
//
// The run loops of a cancelled connection may never run again. An operation that waits for them holds the connection
// and its session, so they are then run on another thread, where they find that there is no delegate to call.

import Foundation
import Synchronization
import URLLoadingIO

// Unchecked, as any subclass of `OperationQueue` must be; its one property is a lock.
final class RunLoopQueue: OperationQueue, @unchecked Sendable {
    private struct Place: Sendable {
        let number: Int
        // Other threads only add timers to the run loop, which is thread-safe.
        nonisolated(unsafe) let loop: RunLoop
        let mode: RunLoop.Mode
    }
    private struct State: Sendable {
        var places: [Place] = []
        var lastNumber = 0
        var waiting: [Operation] = []
        /// Whether operations run on a thread of the library.
        var hasLeftRunLoops = false
    }
    private let state: Lock<State>

    override init() {
        state = Lock(State())
        super.init()
        maxConcurrentOperationCount = 1
    }

    var isScheduled: Bool { state.withLock { !$0.places.isEmpty } }

    func schedule(in loop: RunLoop, _ mode: RunLoop.Mode) {
        let isKnown = state.withLock { state in
            let isKnown = state.places.contains { $0.loop === loop && $0.mode == mode }
            if !isKnown {
                state.lastNumber += 1
                state.places.append(Place(number: state.lastNumber, loop: loop, mode: mode))
            }
            return isKnown
        }
        if !isKnown { wake() }
    }

    func unschedule(from loop: RunLoop, _ mode: RunLoop.Mode) {
        state.withLock { $0.places.removeAll { $0.loop === loop && $0.mode == mode } }
    }

    /// Runs all operations, those that wait too, on a thread of the library.
    func leaveRunLoops() {
        state.withLock { ($0.hasLeftRunLoops, $0.places) = (true, []) }
        BlockingThreads.programs.run { [self] in run() }
    }

    override func addOperation(_ operation: Operation) {
        let hasLeft = state.withLock { state in
            state.waiting.append(operation)
            return state.hasLeftRunLoops
        }
        if hasLeft { BlockingThreads.programs.run { [self] in run() } } else { wake() }
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) { addOperation(BlockOperation(block: block)) }

    /// Wakes the run loops with a timer that is already due; a timer may be added from any thread.
    private func wake() {
        let places = state.withLock { $0.waiting.isEmpty ? [] : $0.places }
        for place in places {
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { [weak self, number = place.number] _ in
                self?.run(at: number)
            }
            place.loop.add(timer, forMode: place.mode)
        }
    }

    /// Runs the operations on one of the run loops. Operations added meanwhile have timers of their own.
    /// - Parameter number: the place whose timer has fired; a run loop that was left since runs nothing.
    private func run(at number: Int? = nil) {
        let due = state.withLock { state -> [Operation] in
            guard number == nil || state.places.contains(where: { $0.number == number }) else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for operation in due { operation.main() }
    }
}

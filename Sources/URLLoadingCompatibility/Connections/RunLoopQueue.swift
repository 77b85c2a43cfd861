// SPDX-License-Identifier: Apache-2.0

// An operation queue that runs its operations on run loops: used for the delegate of a connection without a queue.

import Foundation
import Synchronization
import URLLoadingIO

// Unchecked, as any subclass of `OperationQueue` must be; its one property is a lock.
final class RunLoopQueue: OperationQueue, @unchecked Sendable {
    private struct Place: Sendable {
        // Other threads only add timers to the run loop, which is thread-safe.
        nonisolated(unsafe) let loop: RunLoop
        let mode: RunLoop.Mode
    }
    private struct State: Sendable {
        var places: [Place] = []
        var waiting: [Operation] = []
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
            if !isKnown { state.places.append(Place(loop: loop, mode: mode)) }
            return isKnown
        }
        if !isKnown { wake() }
    }

    func unschedule(from loop: RunLoop, _ mode: RunLoop.Mode) {
        state.withLock { $0.places.removeAll { $0.loop === loop && $0.mode == mode } }
    }

    override func addOperation(_ operation: Operation) {
        state.withLock { $0.waiting.append(operation) }
        wake()
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) { addOperation(BlockOperation(block: block)) }

    /// Wakes the run loops with a timer that is already due; a timer may be added from any thread.
    private func wake() {
        let places = state.withLock { $0.waiting.isEmpty ? [] : $0.places }
        for place in places {
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { [weak self] _ in self?.run() }
            place.loop.add(timer, forMode: place.mode)
        }
    }

    /// Runs the operations on one of the run loops. Operations added meanwhile have timers of their own.
    private func run() {
        let due = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for operation in due { operation.main() }
    }
}

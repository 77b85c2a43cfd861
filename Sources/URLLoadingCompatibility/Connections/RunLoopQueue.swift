// An operation queue whose operations run on a run loop: where a connection's delegate is called that was given no queue.

import Foundation
import Synchronization
import URLLoadingIO

final class RunLoopQueue: OperationQueue, @unchecked Sendable {
    private struct State {
        var places: [(loop: RunLoop, mode: RunLoop.Mode)] = []
        var waiting: [Operation] = []
    }
    // Run loops are thread safe for adding timers, which is all that is done with them from elsewhere.
    private let state: Lock<Held>
    private struct Held: @unchecked Sendable { var state = State() }

    override init() {
        state = Lock(Held())
        super.init()
        maxConcurrentOperationCount = 1
    }

    var isScheduled: Bool { state.withLock { !$0.state.places.isEmpty } }

    func schedule(in loop: RunLoop, _ mode: RunLoop.Mode) {
        let isKnown = state.withLock { held in
            let isKnown = held.state.places.contains { $0.loop === loop && $0.mode == mode }
            if !isKnown { held.state.places.append((loop, mode)) }
            return isKnown
        }
        if !isKnown { wake() }
    }

    func unschedule(from loop: RunLoop, _ mode: RunLoop.Mode) {
        state.withLock { $0.state.places.removeAll { $0.loop === loop && $0.mode == mode } }
    }

    override func addOperation(_ operation: Operation) {
        state.withLock { $0.state.waiting.append(operation) }
        wake()
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) { addOperation(BlockOperation(block: block)) }

    /// A timer that is due wakes a run loop, whichever thread adds it.
    private func wake() {
        let places = state.withLock { $0.state.waiting.isEmpty ? [] : $0.state.places }
        for (loop, mode) in places {
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { [weak self] _ in self?.run() }
            loop.add(timer, forMode: mode)
        }
    }

    /// On one of the run loops. Operations that are added meanwhile have timers of their own.
    private func run() {
        let due = state.withLock { held in
            defer { held.state.waiting = [] }
            return held.state.waiting
        }
        for operation in due { operation.main() }
    }
}

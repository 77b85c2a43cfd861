// SPDX-License-Identifier: Apache-2.0

// Runs asynchronous calls of a stream task in the order in which they were made: reads one after another, writes one
// after another.

import Synchronization
import URLLoading
import URLLoadingIO

final class CallChain: Sendable {
    enum Side: Sendable { case input, output, both }

    private struct Tail: Sendable { var input: Task<Void, Never>?, output: Task<Void, Never>? }
    private let tail = Lock(Tail())

    /// Runs a call after all earlier calls on the same side have finished.
    /// - Returns: the call's task; cancelling it ends the call.
    @discardableResult
    func append(_ side: Side, _ call: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        tail.withLock { tail in
            let input = side == .output ? nil : tail.input
            let output = side == .input ? nil : tail.output
            let task = Task.onLoop {
                await input?.value
                await output?.value
                await call()
            }
            if side != .output { tail.input = task }
            if side != .input { tail.output = task }
            return task
        }
    }
}

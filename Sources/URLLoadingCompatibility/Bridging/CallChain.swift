// Calls that are made at any time and carried out in their order: reads after reads, writes after writes.

import Synchronization
import URLLoadingIO

final class CallChain: Sendable {
    enum Side: Sendable { case input, output, both }

    private struct Last: Sendable { var input: Task<Void, Never>?, output: Task<Void, Never>? }
    private let last = Lock(Last())

    /// Carries a call out when all before it on its side are over.
    /// - Returns: cancelling it ends the call.
    @discardableResult
    func append(_ side: Side, _ call: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        last.withLock { last in
            let input = side == .output ? nil : last.input
            let output = side == .input ? nil : last.output
            let task = Task {
                await input?.value
                await output?.value
                await call()
            }
            if side != .output { last.input = task }
            if side != .input { last.output = task }
            return task
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// The wait of a caller for the agent, which ends with the caller's task.

import Synchronization
import URLLoadingIO

extension BackgroundConnection {
    /// Makes a request for a caller. A caller that is cancelled does not wait on, because an agent that is stopped
    /// (SIGSTOP) gives no answer; the request itself goes on.
    /// - Parameter undo: called after a request that succeeded when the caller had gone.
    nonisolated func forCaller<Value: Sendable>(
        _ request: @escaping @Sendable (BackgroundConnection) async throws(AgentFailure) -> Value,
        undo: (@Sendable (BackgroundConnection) async throws(AgentFailure) -> Void)? = nil
    ) async throws(LoadError) -> Value {
        let outcome = RequestOutcome<Value>()
        guard !Task.isCancelled else { throw LoadError(AgentFailure.cancelled) }
        Task {
            do throws(AgentFailure) {
                let value = try await request(self)
                if !outcome.settle(.success(value)) { try await undo?(self) }
            } catch { outcome.settle(.failure(error)) }
        }
        let result = await withTaskCancellationHandler {
            await outcome.result()
        } onCancel: {
            outcome.settle(.failure(.cancelled))
        }
        do throws(AgentFailure) { return try result.get() } catch { throw LoadError(error) }
    }
}

/// The outcome of a request, for one caller.
private final class RequestOutcome<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, AgentFailure>
    private enum State: Sendable {
        case open
        case awaited(CheckedContinuation<Outcome, Never>)
        case settled(Outcome)
    }
    private let state = Lock(State.open)

    /// Returns false if the outcome was settled before.
    @discardableResult
    func settle(_ outcome: Outcome) -> Bool {
        let (isFirst, waiter): (Bool, CheckedContinuation<Outcome, Never>?) = state.withLock { state in
            switch state {
            case .settled: return (false, nil)
            case .open:
                state = .settled(outcome)
                return (true, nil)
            case .awaited(let waiter):
                state = .settled(outcome)
                return (true, waiter)
            }
        }
        waiter?.resume(returning: outcome)
        return isFirst
    }

    func result() async -> Outcome {
        await withCheckedContinuation { continuation in
            let settled: Outcome? = state.withLock { state in
                if case .settled(let outcome) = state { return outcome }
                state = .awaited(continuation)
                return nil
            }
            if let settled { continuation.resume(returning: settled) }
        }
    }
}

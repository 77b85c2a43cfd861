// SPDX-License-Identifier: Apache-2.0

// The bearer token of all loads of a session, and the single refresh that obtains the next one.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class SharedBearerToken: Sendable {
    private struct State: Sendable {
        var token: String?
        /// Counts the tokens, so that a load knows whether its refused token is still the current one.
        var generation = 0
        var refresh: Refresh?
        /// Counts the refreshes of the current token that failed.
        var failures = 0
        var lastFailure: (any Error)?
    }
    private let tokens: BearerTokens
    private let state: Lock<State>

    init(_ tokens: BearerTokens) {
        self.tokens = tokens
        state = Lock(State(token: tokens.token))
    }

    func serves(_ origin: Origin) -> Bool { tokens.origins.contains(origin) }

    /// The number of loads that wait for the next token.
    var waitingCount: Int { state.withLock { $0.refresh }?.waitingCount ?? 0 }

    /// The current token, valid or not.
    var present: String? { state.withLock { $0.token } }

    /// A token, its number, and how many of its refreshes had failed when it was issued.
    typealias Issue = (token: String, generation: Int, failures: Int)

    /// Returns the current token, or a new one if there is none.
    func token(for load: LoadHandle) async throws(LoadError) -> Issue? {
        try await token(after: nil, refusal: nil, for: load)
    }

    /// - Parameters:
    ///   - refused: the number of a token that was refused; `nil` returns the current token.
    ///   - failures: ``Issue/failures`` of the refused token. A load that was sent before the last refresh failed gets
    ///     that failure, as the loads that waited for it: the refusals of one token may arrive late.
    /// - Returns: `nil` if there is no token and no closure to get one.
    func token(
        after refused: Int?, since failures: Int = .max, refusal: Response?, for load: LoadHandle
    ) async throws(LoadError) -> Issue? {
        let (found, refresh) = state.withLock { state -> (Result<Issue?, any Error>, Refresh?) in
            // A load of the closure has no token: if it waited for the next one, it would wait for itself.
            if let refresh = state.refresh, refresh === Refresh.current { return (.success(nil), nil) }
            if let token = state.token, state.generation != refused {
                return (.success((token, state.generation, state.failures)), nil)
            }
            if state.failures > failures, let error = state.lastFailure { return (.failure(error), nil) }
            guard let work = tokens.refresh else { return (.success(nil), nil) }
            let refresh = state.refresh ?? Refresh(load.leaked)
            if state.refresh == nil {
                state.refresh = refresh
                refresh.start { [weak self] in
                    let result = await Result { try await work(refusal) }
                    guard let self else { return .failure(CancellationError()) }
                    return self.finish(refresh, result)
                }
            }
            refresh.enter()
            return (.success(nil), refresh)
        }
        guard let refresh else {
            switch found {
            case .success(let issue): return issue
            case .failure(let error): throw Self.failed(error)
            }
        }
        let outcome = await refresh.wait(for: load)
        // One step under the lock: no load can join a refresh that is being given up.
        let task = state.withLock { state -> Task<Void, Never>? in
            let task = refresh.leave()
            if task != nil, state.refresh === refresh { state.refresh = nil }
            return task
        }
        task?.cancel()
        switch outcome {
        case nil: throw LoadError(load.stopReason ?? .cancelled, phase: .deciding)
        case .failure(let error)?: throw Self.failed(error)
        case .success(let issue)?: return issue
        }
    }

    private static func failed(_ error: any Error) -> LoadError {
        LoadError(
            .decisionFailed, phase: .deciding, party: .local, detail: "a token refresh failed", underlying: error)
    }

    /// Stores the token and returns it with its number, because a newer one may exist when the waiters run.
    private func finish(_ refresh: Refresh, _ result: Result<String, any Error>) -> Result<Issue, any Error> {
        state.withLock { state in
            guard state.refresh === refresh else { return .failure(CancellationError()) }
            state.refresh = nil
            switch result {
            case .success(let token):
                state.token = token
                state.generation += 1
                (state.failures, state.lastFailure) = (0, nil)
                return .success((token, state.generation, 0))
            case .failure(let error):
                state.failures += 1
                state.lastFailure = error
                return .failure(error)
            }
        }
    }
}

/// One run of the refresh closure, and the loads that wait for it.
private final class Refresh: Sendable {
    /// The refresh whose closure this task runs, or was started by.
    @TaskLocal static var current: Refresh?

    private struct State: Sendable {
        var result: Result<SharedBearerToken.Issue, any Error>?
        var task: Task<Void, Never>?
        var slots: [PollSlot] = []
        var waiting = 0
        var isAbandoned = false
    }
    private let state = Lock(State())
    private let abandoned: LeakCount

    init(_ abandoned: LeakCount) { self.abandoned = abandoned }

    func start(_ work: @escaping @Sendable () async -> Result<SharedBearerToken.Issue, any Error>) {
        let task = Task {
            let result = await Self.$current.withValue(self) { await work() }
            let (slots, isAbandoned) = self.state.withLock { state in
                state.result = result
                state.task = nil
                return (state.slots, state.isAbandoned)
            }
            if isAbandoned { self.abandoned.add(-1) }
            for slot in slots { slot.wake() }
        }
        state.withLock { if $0.result == nil { $0.task = task } }
    }

    var waitingCount: Int { state.withLock { $0.waiting } }

    func enter() { state.withLock { $0.waiting += 1 } }

    /// Returns `nil` if the load is stopped first.
    func wait(for load: LoadHandle) async -> Result<SharedBearerToken.Issue, any Error>? {
        await Poller.shared.wait(until: load) { slot in
            state.withLock { state in
                if state.result == nil, !state.slots.contains(where: { $0 === slot }) { state.slots.append(slot) }
                return state.result
            }
        } forget: { slot in
            state.withLock { state in state.slots.removeAll { $0 === slot } }
        }
    }

    /// Returns the running task when the last waiter leaves; the caller cancels it outside of every lock.
    func leave() -> Task<Void, Never>? {
        let task = state.withLock { state -> Task<Void, Never>? in
            state.waiting -= 1
            guard state.waiting == 0, state.result == nil, let task = state.task else { return nil }
            state.isAbandoned = true
            return task
        }
        if task != nil { abandoned.add(1) }
        return task
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ work: () async throws -> Success) async {
        do { self = .success(try await work()) } catch { self = .failure(error) }
    }
}

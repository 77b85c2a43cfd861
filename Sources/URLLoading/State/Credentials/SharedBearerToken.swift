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

    /// A token, and its number.
    typealias Issue = (token: String, generation: Int)

    /// Returns the current token, or a new one if there is none.
    func token(for load: LoadHandle) async throws(LoadError) -> Issue? {
        try await token(after: nil, refusal: nil, for: load)
    }

    /// - Parameter refused: the number of a token that was refused; `nil` returns the current token.
    /// - Returns: `nil` if there is no token and no closure to get one.
    func token(after refused: Int?, refusal: Response?, for load: LoadHandle) async throws(LoadError) -> Issue? {
        let (issue, refresh) = state.withLock { state -> (Issue?, Refresh?) in
            // A load of the closure has no token: if it waited for the next one, it would wait for itself.
            if let refresh = state.refresh, refresh === Refresh.current { return (nil, nil) }
            if let token = state.token, state.generation != refused { return ((token, state.generation), nil) }
            guard let work = tokens.refresh else { return (nil, nil) }
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
            return (nil, refresh)
        }
        guard let refresh else { return issue }
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
        case .failure(let error)?:
            throw LoadError(
                .decisionFailed, phase: .deciding, party: .local, detail: "a token refresh failed", underlying: error)
        case .success(let issue)?: return issue
        }
    }

    /// Stores the token and returns it with its number, because a newer one may exist when the waiters run.
    private func finish(_ refresh: Refresh, _ result: Result<String, any Error>) -> Result<Issue, any Error> {
        state.withLock { state in
            guard state.refresh === refresh else { return .failure(CancellationError()) }
            state.refresh = nil
            return result.map { token in
                state.token = token
                state.generation += 1
                return (token, state.generation)
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

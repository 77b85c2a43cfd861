// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO

@testable import URLLoading

/// Races between two loads that request a token at the same moment.
@Suite(.timeLimit(.minutes(4))) struct SharedBearerTokenTests {
    private struct Refused: Error {}

    private final class Count: Sendable {
        private let value = Atomic(0)
        func next() -> Int { value.add(1, ordering: .sequentiallyConsistent).newValue }
        var now: Int { value.load(ordering: .sequentiallyConsistent) }
    }

    /// Ignores cancellation: a closure that ended by itself would leave nothing to join.
    private final class Door: Sendable {
        private let state = Lock<(isOpen: Bool, waiting: CheckedContinuation<Void, Never>?)>((false, nil))
        func open() {
            let waiting = state.withLock { state in
                state.isOpen = true
                defer { state.waiting = nil }
                return state.waiting
            }
            waiting?.resume()
        }
        func wait() async {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting = continuation }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }
    }

    private func load(_ session: Session) -> LoadHandle {
        LoadHandle(idle: nil, resource: nil, leaked: session.core.leaked)
    }

    /// A load that arrives while the last waiter leaves and the closure is being cancelled gets a closure of its own,
    /// not the cancelled one.
    @Test func `a load does not join a cancelled refresh`() async throws {
        let (calls, isCancelled, isOver) = (Count(), Count(), Door())
        let keeper = SharedBearerToken(
            try BearerTokens(for: ["http://a.test"]) { _ in
                let call = calls.next()
                guard call == 1 else { return "t\(call)" }
                await withTaskCancellationHandler {
                    await isOver.wait()
                } onCancel: {
                    _ = isCancelled.next()
                    // Until the second load has arrived, or would have been too late.
                    for _ in 0..<10_000 where calls.now < 2 { usleep(200) }
                    isOver.open()
                }
                throw Refused()
            })
        let session = Session(.ephemeral)
        let (first, second) = (load(session), load(session))
        let leaving = Task.detached { try? await keeper.token(for: first)?.token }
        while keeper.waitingCount != 1 { try await Task.sleep(for: .microseconds(200)) }
        let coming = Task.detached { () async throws -> String? in
            while isCancelled.now == 0 { try await Task.sleep(for: .microseconds(200)) }
            return try await keeper.token(for: second)?.token
        }
        first.stop(.cancelled)
        #expect(await leaving.value == nil)
        let token = try await coming.value
        #expect(token == "t2" && calls.now == 2)
        session.invalidateAndCancel()
        await session.invalidated()
    }

    /// Runs what it is given when it is told to.
    private final class Held: TaskExecutor {
        private let jobs = Lock<(waiting: [UnownedJob], isOpen: Bool)>(([], true))
        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let runs = jobs.withLock { jobs in
                if !jobs.isOpen { jobs.waiting.append(job) }
                return jobs.isOpen
            }
            if runs { run([job]) }
        }
        func close() { jobs.withLock { $0.isOpen = false } }
        var waiting: Int { jobs.withLock { $0.waiting.count } }
        func open() {
            run(
                jobs.withLock { jobs in
                    jobs.isOpen = true
                    defer { jobs.waiting = [] }
                    return jobs.waiting
                })
        }
        private func run(_ jobs: [UnownedJob]) {
            BlockingThreads.shared.run { for job in jobs { job.runSynchronously(on: self.asUnownedTaskExecutor()) } }
        }
    }

    @Test func `a token carries its own number, however late it is delivered`() async throws {
        let calls = Count()
        let goesOn = Count()
        let keeper = SharedBearerToken(
            try BearerTokens(for: ["http://a.test"]) { _ in
                let call = calls.next()
                while goesOn.now < call { try await Task.sleep(for: .microseconds(200)) }
                return "t\(call)"
            })
        let session = Session(.ephemeral)
        let (late, quick) = (load(session), load(session))
        let held = Held()
        let hearing = Task(executorPreference: held) { try await keeper.token(for: late) }
        while keeper.waitingCount != 1 { try await Task.sleep(for: .microseconds(200)) }
        held.close()
        _ = goesOn.next()
        while held.waiting == 0 { try await Task.sleep(for: .microseconds(200)) }
        // Meanwhile the first token is refused and replaced.
        let first = try await keeper.token(for: quick)
        #expect(first?.token == "t1" && first?.generation == 1)
        _ = goesOn.next()
        let second = try await keeper.token(after: 1, refusal: nil, for: quick)
        #expect(second?.token == "t2" && second?.generation == 2)
        held.open()
        let heard = try await hearing.value
        #expect(heard?.token == "t1" && heard?.generation == 1)
        session.invalidateAndCancel()
        await session.invalidated()
    }

    /// A load that reports the refusal of an older token late gets the current one without a refresh.
    @Test func `a late refusal of an older token causes no refresh`() async throws {
        let calls = Count()
        let keeper = SharedBearerToken(
            try BearerTokens(for: ["http://a.test"], token: "t0") { _ in "t\(calls.next())" })
        let session = Session(.ephemeral)
        let one = load(session)
        for refused in [0, 0, 1, 0, 1] {
            let issue = try await keeper.token(after: refused, refusal: nil, for: one)
            #expect(issue?.generation == (calls.now == 1 ? 1 : 2) && issue?.token == "t\(calls.now)")
        }
        #expect(calls.now == 2)
        session.invalidateAndCancel()
        await session.invalidated()
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport

@testable import URLLoading

/// Races between two loads that request a token at the same moment.
@Suite(.timeLimit(.minutes(4))) struct SharedBearerTokenTests {
    private struct Refused: Error {}

    private func load(_ session: Session) -> LoadHandle {
        LoadHandle(idle: nil, resource: nil, leaked: session.core.leaked)
    }

    /// A load that arrives while the last waiter leaves and the closure is being cancelled gets a closure of its own,
    /// not the cancelled one.
    @Test func `a load does not join a cancelled refresh`() async throws {
        let (calls, isCancelled, isOver) = (Watched(0), Flag(), Flag())
        let keeper = SharedBearerToken(
            try BearerTokens(for: ["http://a.test"]) { _ in
                let call = calls.add()
                guard call == 1 else { return "t\(call)" }
                await withTaskCancellationHandler {
                    // A closure that ended by its cancellation would leave nothing to join.
                    await isOver.waitIgnoringCancellation()
                } onCancel: {
                    isCancelled.raise()
                    // Until the second load has arrived, or would have been too late.
                    for _ in 0..<10_000 where calls.value < 2 { usleep(200) }
                    isOver.raise()
                }
                throw Refused()
            })
        let session = Session(.ephemeral)
        let (first, second) = (load(session), load(session))
        let leaving = Task.detached { try? await keeper.token(for: first)?.token }
        try await keeper.eventuallyWaiting(1)
        let coming = Task.detached { () async throws -> String? in
            try await isCancelled.wait()
            return try await keeper.token(for: second)?.token
        }
        first.stop(.cancelled)
        #expect(await leaving.value == nil)
        let token = try await coming.value
        #expect(token == "t2" && calls.value == 2)
        await expectEmpty(session)
    }

    @Test func `a token carries its own number, however late it is delivered`() async throws {
        let calls = Watched(0)
        let allowedCalls = Watched(0)
        let keeper = SharedBearerToken(
            try BearerTokens(for: ["http://a.test"]) { _ in
                let call = calls.add()
                try await allowedCalls.wait { $0 >= call }
                return "t\(call)"
            })
        let session = Session(.ephemeral)
        let (late, quick) = (load(session), load(session))
        let held = HeldExecutor()
        let hearing = Task(executorPreference: held) { try await keeper.token(for: late) }
        try await keeper.eventuallyWaiting(1)
        held.close()
        allowedCalls.add()
        try await held.jobs.wait { !$0.waiting.isEmpty }
        // Meanwhile the first token is refused and replaced.
        let first = try await keeper.token(for: quick)
        #expect(first?.token == "t1" && first?.generation == 1)
        allowedCalls.add()
        let second = try await keeper.token(after: 1, refusal: nil, for: quick)
        #expect(second?.token == "t2" && second?.generation == 2)
        held.open()
        let heard = try await hearing.value
        #expect(heard?.token == "t1" && heard?.generation == 1)
        await expectEmpty(session)
    }

    /// A load that reports the refusal of an older token late gets the current one without a refresh.
    @Test func `a late refusal of an older token causes no refresh`() async throws {
        let calls = Watched(0)
        let keeper = SharedBearerToken(
            try BearerTokens(for: ["http://a.test"], token: "t0") { _ in "t\(calls.add())" })
        let session = Session(.ephemeral)
        let one = load(session)
        for refused in [0, 0, 1, 0, 1] {
            let issue = try await keeper.token(after: refused, refusal: nil, for: one)
            #expect(issue?.generation == (calls.value == 1 ? 1 : 2) && issue?.token == "t\(calls.value)")
        }
        #expect(calls.value == 2)
        await expectEmpty(session)
    }
}

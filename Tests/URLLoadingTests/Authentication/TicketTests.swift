// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Negotiate: used silently with a ticket, and skipped without one.
@Suite(.timeLimit(.minutes(4))) struct TicketTests {
    /// An origin that offers Negotiate besides the schemes of the gate.
    private func withOrigin(_ gate: Gate, _ use: (HTTPTestServer) async throws -> Void) async throws {
        try await withHTTPTestServer(.init(name: "localhost")) { origin in
            origin.route("/*") { request in
                var answer = gate.answer(request)
                if answer.status == .unauthorized { answer.headers.append(.wwwAuthenticate, "Negotiate") }
                return answer
            }
            try await use(origin)
        }
    }

    @Test func `without a ticket the next scheme follows, without a question (checklist 70)`() async throws {
        let gate = Gate([.basic])
        try await withOrigin(gate) { origin in
            let log = ChallengeLog()
            var configuration = Configuration.ephemeral
            configuration.authentication.methods = [.negotiate, .basic]
            let session = Session(
                configuration, decisions: .challenged(log) { _ in .use(Credential(user: "ada", password: "s3cret")) })
            // No ticket can be requested for an address.
            try await session.expect(try url("http://127.0.0.1:\(origin.port)/"), "in")
            #expect(log.withLock { $0.map(\.protectionSpace.method) } == [.basic])
            #expect(gate.seen.allSatisfy { !$0.hasPrefix("Negotiate") })
            await expectEmpty(session)
        }
    }

    /// Without a known realm no KDC is asked.
    @Test(.enabled(if: TicketLibrary.shared != nil))
    func `without a ticket Negotiate is decided by the session's decision, then the load's (checklist 66, 67, 68)`()
        async throws
    {
        let gate = Gate([.basic])
        try await withOrigin(gate) { origin in
            let right = Credential(user: "ada", password: "s3cret")
            for (answer, isLast) in [
                (ChallengeDecision.performDefaultHandling, false), (.rejectProtectionSpace, false),
                (.use(right), false), (.cancel, true),
            ] {
                let (own, shared) = (ChallengeLog(), ChallengeLog())
                let session = Session(
                    .ephemeral,
                    decisions: .challenged(shared) { $0.protectionSpace.method == .negotiate ? answer : .cancel })
                let decisions = Decisions.challenged(own) {
                    $0.protectionSpace.method == .basic ? .use(right) : .cancel
                }
                if isLast {
                    await expectFailure(.cancelled, .local, .deciding) {
                        try await session.data(for: Request(url: origin.url()), decisions: decisions)
                    }
                } else {
                    let (body, _) = try await session.data(for: Request(url: origin.url()), decisions: decisions)
                    #expect(String(decoding: body, as: UTF8.self) == "in")
                }
                let first = shared.withLock { $0 }
                #expect(
                    first.map(\.protectionSpace.method) == [.negotiate] && first.first?.protectionSpace.realm == nil
                        && first.first?.previousFailureCount == 0)
                // A scheme for which no decision was called is no failure.
                #expect(
                    own.withLock { $0.map(\.protectionSpace.method) } == (isLast ? [] : [.basic])
                        && own.withLock { $0.allSatisfy { $0.previousFailureCount == 0 } })
                await expectEmpty(session)
            }
            // The load's decision, if the session has none.
            let own = ChallengeLog()
            let session = Session(.ephemeral)
            let decisions = Decisions.challenged(own) {
                $0.protectionSpace.method == .basic ? .use(right) : .rejectProtectionSpace
            }
            _ = try await session.data(for: Request(url: origin.url()), decisions: decisions)
            #expect(own.withLock { $0.map(\.protectionSpace.method) } == [.negotiate, .basic])
            await expectEmpty(session)
            #expect(gate.seen.allSatisfy { !$0.hasPrefix("Negotiate") })
        }
    }

    @Test func `a missing library disables Negotiate`() {
        #expect(TicketLibrary("libnothing-of-this-name.so.9") == nil)
    }
}

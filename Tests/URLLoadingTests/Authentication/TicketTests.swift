import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Negotiate: silent with a ticket, and without one as if it had not been offered.
@Suite(.timeLimit(.minutes(4))) struct TicketTests {
    @Test func `without a ticket the next way follows, and nobody is asked for one (checklist 70)`() async throws {
        let gate = Gate([.basic])
        var setup = HTTPTestServer.Configuration()
        setup.name = "localhost"
        try await withHTTPTestServer(setup) { origin in
            origin.route("/*") { request in
                var answer = gate.answer(request)
                if answer.status == .unauthorized { answer.headers.append(.wwwAuthenticate, "Negotiate") }
                return answer
            }
            let log = ChallengeLog()
            var configuration = Configuration.ephemeral
            configuration.authentication.methods = [.negotiate, .basic]
            let session = Session(
                configuration, decisions: .challenged(log) { _ in .use(Credential(user: "ada", password: "s3cret")) })
            // An address has no name to get a ticket for.
            try await session.expect(try url("http://127.0.0.1:\(origin.port)/"), "in")
            #expect(log.withLock { $0.map(\.protectionSpace.method) } == [.basic])
            #expect(gate.seen.allSatisfy { !$0.hasPrefix("Negotiate") })
            await expectEmpty(session)
        }
    }

    /// Whose realm is not said no KDC is asked for.
    @Test(.enabled(if: TicketLibrary.shared != nil))
    func `without a ticket Negotiate is the session's question, then the load's (checklist 66, 67, 68)`() async throws {
        let gate = Gate([.basic])
        var setup = HTTPTestServer.Configuration()
        setup.name = "localhost"
        try await withHTTPTestServer(setup) { origin in
            origin.route("/*") { request in
                var answer = gate.answer(request)
                if answer.status == .unauthorized { answer.headers.append(.wwwAuthenticate, "Negotiate") }
                return answer
            }
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
                // What nobody was told is no failure.
                #expect(
                    own.withLock { $0.map(\.protectionSpace.method) } == (isLast ? [] : [.basic])
                        && own.withLock { $0.allSatisfy { $0.previousFailureCount == 0 } })
                await expectEmpty(session)
            }
            // The load's, where the session has none.
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

    @Test func `a library that is not there`() {
        #expect(TicketLibrary("libnothing-of-this-name.so.9") == nil)
    }
}

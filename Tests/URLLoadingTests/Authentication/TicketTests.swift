import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Negotiate: silent with a ticket, and without one as if it had not been offered.
@Suite(.timeLimit(.minutes(1))) struct TicketTests {
    @Test func `checklist 70: without a ticket the next way follows, and nobody is asked for one`() async throws {
        let gate = Gate([.basic])
        var setup = TestOrigin.Configuration()
        setup.name = "localhost"
        try await withTestOrigin(setup) { origin in
            origin.route("/*") { request in
                var answer = gate.answer(request)
                if answer.status == .unauthorized { answer.headers.append(.wwwAuthenticate, "Negotiate") }
                return answer
            }
            let log = ChallengeLog()
            var configuration = Configuration.ephemeral
            configuration.authentication.methods = [.negotiate, .basic]
            let session = Session(configuration, decisions: .challenged(log) { _ in .use(Credential(user: "ada", password: "s3cret")) })
            // An address has no name to get a ticket for.
            try await session.expect(try url("http://127.0.0.1:\(origin.port)/"), "in")
            #expect(log.withLock { $0.map(\.space.method) } == [.basic])
            #expect(gate.seen.allSatisfy { !$0.hasPrefix("Negotiate") })
            await expectEmpty(session)
        }
    }

    @Test func `a library that is not there`() {
        #expect(TicketLibrary("libnothing-of-this-name.so.9") == nil)
    }
}

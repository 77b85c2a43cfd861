// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/decisions.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct DecisionsGuideTests {
    @Test("a load's decisions go before its session's")
    func precedence() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            origin.route("/to") { _ in .redirect("/") }
            let request = Request(url: origin.url("/to"))

            var decisions = Decisions()
            decisions.redirect = Decision { redirect in
                redirect.request.url.host() == "example.org" ? .follow : .doNotFollow
            }
            decisions.response = Decision { response in
                (response.expectedLength ?? 0) <= 10_000_000 ? .allow : .cancel
            }
            let session = Session(.default, decisions: decisions)
            let (_, delivered) = try await session.data(for: request)
            #expect(delivered.http?.status == .found)

            var strict = Decisions()
            strict.redirect = Decision { @MainActor _ in .follow }
            let (data, response) = try await session.data(for: request, decisions: strict)
            #expect(data.count == 5 && response.http?.status == .ok)
        }
    }

    @Test("a deadline has its fallback")
    func deadline() async throws {
        struct Policy {
            func allows(_ url: URL) async throws -> Bool {
                try await Task.sleep(for: .seconds(60))
                return true
            }
        }
        try await withHTTPTestServer { origin in
            origin.route("/to") { _ in .redirect("/") }
            let policy = Policy()
            var decisions = Decisions()
            decisions.redirect = Decision(timeout: .milliseconds(20), fallback: .doNotFollow) { redirect in
                try await policy.allows(redirect.request.url) ? .follow : .cancel
            }
            let session = Session(.default, decisions: decisions)
            let (_, response) = try await session.data(from: origin.url("/to"))
            #expect(response.http?.status == .found)
            try await eventuallyNoLeaks(session.leakedClosures)
        }
    }
}

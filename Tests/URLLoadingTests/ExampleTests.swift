// SPDX-License-Identifier: Apache-2.0

// The examples of README.md and of the doc comments, compiled and run. A change of an example must be made in both
// places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ExampleTests {
    @Test("README: load something, stream something, fail with a reason")
    func readme() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let url = origin.url()

            let session = Session()
            let (data, response) = try await session.data(from: url)
            #expect(data.count == 5 && response.http?.status == .ok)

            let count = try await session.load(Request(url: url)) { response, body in
                var count = 0
                for try await chunk in body { count += chunk.count }
                return count
            }
            #expect(count == 5)

            let nowhere = try #require(URL(string: "http://host.invalid/"))
            do throws(LoadError) {
                let (data, _) = try await session.data(from: nowhere)
                Issue.record("\(data.count) bytes from nowhere")
            } catch  where error.reason == .hostNotFound {
                #expect(error.party == .system)
            } catch {
                // Without any resolver the look-up fails instead.
                #expect(error.reason == .lookupFailed)
            }
        }
    }

    @Test("Configuration, withSession and decisions")
    func configuring() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            origin.route("/next") { request in .ok(request.headers[.acceptLanguage] ?? "-") }
            let url = origin.url()

            var configuration = Configuration.default
            configuration.timeouts.idle = .seconds(90)
            configuration.headers[.acceptLanguage] = "de"
            let page = try await withSession(configuration) { session in
                try await session.data(from: url).0
            }
            #expect(page == Data("de".utf8))

            var decisions = Decisions()
            decisions.redirect = Decision { redirect in
                redirect.request.url.host() == "example.org" ? .follow : .doNotFollow
            }
            try await withSession(.ephemeral) { session in
                let (_, response) = try await session.data(for: Request(url: url), decisions: decisions)
                #expect(response.http?.status == .found)
            }
        }
    }

    @Test("Request and its body")
    func posting() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok("\(request.method) \(request.body.count)") }
            let json = Data(#"{"a":1}"#.utf8)
            let lines = AsyncStream<String> { continuation in
                for line in ["one", "two"] { continuation.yield(line) }
                continuation.finish()
            }

            var request = Request(url: origin.url(), method: .post)
            request.headers[.contentType] = "application/json"
            request.body = .data(json)
            try await withSession(.ephemeral) { session in
                let (data, _) = try await session.data(for: request)
                #expect(data == Data("POST 7".utf8))
                request.body = .stream { lines.map { Array(($0 + "\n").utf8) } }
                let (streamed, _) = try await session.data(for: request)
                #expect(streamed == Data("POST 8".utf8))
            }
        }
    }

    @Test("the loop's executor")
    func executor() async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            let session = Session(.ephemeral)
            await withTaskExecutorPreference(eventLoopExecutor) {
                let loaded = try? await session.data(from: origin.url())
                #expect(loaded?.0.count == 1)
            }
            await expectEmpty(session)
        }
    }
}

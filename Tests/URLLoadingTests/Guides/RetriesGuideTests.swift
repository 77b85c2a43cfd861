// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/retries.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct RetriesGuideTests {
    private func withFlakyOrigin(_ use: (HTTPTestServer, URL) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/flaky") { [weak origin] _ in
                origin?.requests.count ?? 0 < 3 ? .status(.serviceUnavailable) : .ok("hello")
            }
            try await use(origin, origin.url("/flaky"))
        }
    }

    private struct Order: Encodable {
        var id = "7"
    }

    @Test("a policy, for a session and a request")
    func policies() async throws {
        try await withFlakyOrigin { origin, url in
            var policy = RetryPolicy()
            policy.statuses = RetryPolicy.transientStatuses  // 408, 429, 500, 502, 503, 504
            policy.maximumAttempts = 5  // the first included
            policy.backoff = .exponential(base: .milliseconds(200), cap: .seconds(20))
            policy.backoff = .constant(.zero)

            var configuration = Configuration.default
            configuration.retries.policy = policy
            let session = Session(configuration)
            let (data, response) = try await session.data(from: url)
            #expect(data.count == 5 && response.http?.status == .ok)

            let order = Order()
            var request = Request(url: url, method: .post, body: try .json(order))
            request.headers["Idempotency-Key"] = order.id
            request.retryPolicy = policy
            request.retryPolicy?.retriesNonIdempotent = true

            var probe = Request(url: url)
            probe.retryPolicy = .never
            _ = try await session.data(for: request)
            _ = try await session.data(for: probe)
            #expect(origin.requests.count == 5)
        }
    }

    @Test("the defaults are those of the table")
    func defaults() {
        let policy = RetryPolicy()
        #expect(policy.maximumAttempts == 3 && policy.maximumDuration == nil && policy.statuses.isEmpty)
        #expect(policy.backoff == .exponential(base: .seconds(1), cap: .seconds(60)))
        #expect(
            policy.maximumRetryAfter == .seconds(60) && policy.retriesOnNetworkChange && !policy.retriesNonIdempotent)
        #expect(!Configuration.default.networks.waitsForConnectivity && Configuration.default.retries.policy == nil)
    }

    @Test("watching, with a clock that the test moves")
    func watching() async throws {
        try await withFlakyOrigin { origin, _ in
            let recorder = EventRecorder()
            var policy = RetryPolicy()
            policy.statuses = [.serviceUnavailable]
            policy.backoff = .constant(.seconds(20))
            var configuration = Configuration.ephemeral
            configuration.retries.policy = policy
            configuration.networks.waitsForConnectivity = true

            let clock = ManualClock()
            configuration.use(clock)
            configuration.observers = [recorder]
            let session = Session(configuration)
            async let loaded = session.data(from: origin.url("/flaky"))
            try await recorder.wait(for: .retrying)
            try await clock.untilSleeping()
            clock.advance(by: .seconds(20))
            try await recorder.wait(for: .retrying, count: 2)
            try await clock.untilSleeping()
            clock.advance(by: .seconds(20))
            #expect(try await loaded.0.count == 5)

            let task = session.dataTask(from: origin.url("/flaky"))
            let events = task.events
            task.resume()
            for await event in events {
                switch event {
                case .retrying(let retry): print(retry)  // attempt 2 in 0.7 s after 503 Service Unavailable
                case .waitingForConnectivity: print("offline; the load continues by itself")
                default: break
                }
            }
        }
    }

    @Test("the order of turns")
    func turns() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("hello") }
            let session = Session(.ephemeral)
            let prefetched = origin.url("/a")
            let visible = origin.url("/b")
            let background = Task(priority: .background) { try await session.data(from: prefetched) }
            let (image, _) = try await session.data(from: visible)  // goes first
            #expect(image.count == 5)
            _ = try await background.value
        }
    }
}

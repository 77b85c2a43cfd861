// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// QUERY (RFC 10008): safe and idempotent, with content.
@Suite(.timeLimit(.minutes(4)))
struct QueryRows {
    private static func request(_ url: URL) -> Request {
        Request(url: url, method: .query, headers: [.contentType: "text/plain"], body: .data(Data("select".utf8)))
    }

    @Test("a redirect keeps method and content, except for 303", arguments: [301, 302, 303, 307, 308])
    func redirects(_ code: Int) async throws {
        try await withHTTPTestServer { origin in
            let status = try #require(Status(code))
            origin.route("/") { _ in .status(status, headers: [.location: "/there"]) }
            origin.route("/there") { .ok("\($0.method) \(String(decoding: $0.body, as: UTF8.self))") }
            try await withSession(.ephemeral) { session in
                let (data, _) = try await session.data(for: Self.request(origin.url()))
                #expect(String(decoding: data, as: UTF8.self) == (code == 303 ? "GET " : "QUERY select"))
            }
        }
    }

    @Test("it is sent again on a new connection, by a retry policy, and after a challenge") func again() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/stale") { .ok(String(decoding: $0.body, as: UTF8.self)) }
            let counter = Counter()
            origin.route("/busy") {
                counter.next("") == "1" ? .status(.serviceUnavailable) : .ok(String(decoding: $0.body, as: UTF8.self))
            }
            origin.route("/private") {
                $0.headers.contains(.authorization)
                    ? .ok(String(decoding: $0.body, as: UTF8.self))
                    : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
            }
            var configuration = Configuration.ephemeral
            var policy = RetryPolicy(maximumAttempts: 2)
            (policy.backoff, policy.statuses) = (.constant(.zero), RetryPolicy.transientStatuses)
            configuration.retries.policy = policy
            origin.inject(.init(.idle, .close))
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "u", password: "p")) }
            try await withSession(configuration, decisions: decisions) { session in
                for path in ["/stale", "/busy", "/private"] {
                    let (data, _) = try await session.data(for: Self.request(origin.url(path)))
                    #expect(String(decoding: data, as: UTF8.self) == "select", "\(path)")
                }
                let (data, _) = try await session.data(for: Self.request(origin.url("/stale")))
                #expect(String(decoding: data, as: UTF8.self) == "select")
            }
        }
    }

    @Test("its response is not stored, and it removes none; identical ones are not shared") func cache() async throws {
        try await withCacheRig({ $0.caching.coalescesIdenticalRequests = true }) { rig in
            rig.origin.route("/") { .ok("\($0.method)", headers: [.cacheControl: "max-age=60"]) }
            try await rig.expect("/", "200 GET -", requests: 1)
            for requests in 2...3 {
                let (data, _) = try await rig.session.data(for: Self.request(rig.origin.url()))
                #expect(String(decoding: data, as: UTF8.self) == "QUERY" && rig.requests == requests)
            }
            let before = rig.requests
            try await rig.expect("/", "200 GET 0", requests: before)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Requests as programs write them: below a base URL, with query items, JSON, forms and credentials.
@Suite(.timeLimit(.minutes(4))) struct BuildingRows {
    @Test(
        "a path is appended to the base URL, escaped, and cannot leave it",
        arguments: [
            ("https://a.test/v1", "users", "https://a.test/v1/users"),
            ("https://a.test/v1/", "/users/7", "https://a.test/v1/users/7"), ("https://a.test", "", "https://a.test"),
            ("https://a.test", "x", "https://a.test/x"), ("https://a.test/v1", "//users", "https://a.test/v1/users"),
            ("https://a.test/v1", "a b?c#d%2F", "https://a.test/v1/a%20b%3Fc%23d%252F"),
            ("https://a.test/v1", "https://evil.test/", "https://a.test/v1/https://evil.test/"),
            ("https://a.test/v1", "//evil.test", "https://a.test/v1/evil.test"),
            ("https://a.test/v1", "ü@:+;=", "https://a.test/v1/%C3%BC@:+;="),
            ("https://a.test/v1?key=1#f", "users", "https://a.test/v1/users?key=1"),
        ])
    func paths(_ base: String, _ path: String, _ whole: String) throws {
        let session = Session(.ephemeral.with { $0.baseURL = URL(string: base) })
        #expect(try session.request(path).url.absoluteString == whole)
        session.invalidateAndCancel()
    }

    @Test("without a base URL, and with dot segments, there is no request") func refused() async throws {
        let session = Session(.ephemeral.with { $0.baseURL = URL(string: "https://a.test/v1") })
        for path in ["..", "a/../../b", "./a", "a/.."] {
            await expectFailure(.badURL, .local, .preparing) { try session.request(path) }
        }
        session.invalidateAndCancel()
        let bare = Session(.ephemeral)
        await expectFailure(.badURL, .local, .preparing) { try bare.request("a") }
        bare.invalidateAndCancel()
    }

    @Test("query items are escaped wholly; a request's own precede the session's") func queries() throws {
        let session = Session(
            .ephemeral.with {
                $0.baseURL = URL(string: "https://a.test/?v=2")
                $0.defaultQueryItems = [.init(name: "lang", value: "en"), .init(name: "key", value: "a b")]
            })
        #expect(try session.request("x").url.absoluteString == "https://a.test/x?v=2&lang=en&key=a%20b")
        let own = try session.request(
            "x", method: .post, query: [.init(name: "lang", value: "de"), .init(name: "lang", value: nil)])
        #expect(own.url.absoluteString == "https://a.test/x?v=2&key=a%20b&lang=de&lang" && own.method == .post)
        session.invalidateAndCancel()
        for (before, after) in [
            ("https://a.test", "https://a.test?q=1%20%2B%201%26%3D%2F%3F%C3%BC&r"),
            ("https://a.test/b?", "https://a.test/b?q=1%20%2B%201%26%3D%2F%3F%C3%BC&r"),
            ("https://a.test/b?c=%2f+d", "https://a.test/b?c=%2f+d&q=1%20%2B%201%26%3D%2F%3F%C3%BC&r"),
            ("https://a.test/b?c#d", "https://a.test/b?c&q=1%20%2B%201%26%3D%2F%3F%C3%BC&r#d"),
        ] {
            var request = Request(url: try url(before))
            request.append(queryItems: [])
            #expect(request.url.absoluteString == before)
            request.append(queryItems: [.init(name: "q", value: "1 + 1&=/?ü"), .init(name: "r", value: nil)])
            #expect(request.url.absoluteString == after)
        }
    }

    @Test("JSON, forms and credentials in one call") func calls() async throws {
        struct Name: Codable, Sendable, Equatable { var name = "Ada" }
        try await withHTTPTestServer { origin in
            origin.route("/json") { .ok(.bytes(Array($0.body)), headers: [.contentType: "application/json"]) }
            origin.route("/missing") { _ in .status(.notFound, body: .bytes(Array("{}".utf8))) }
            origin.route("/*") {
                .ok("\($0.method) \($0.headers[.contentType] ?? "-") \(String(decoding: $0.body, as: UTF8.self))")
            }
            try await withSession(.ephemeral) { session in
                #expect(try await session.decode(Name.self, from: .json(Name(), to: origin.url("/json"))) == Name())
                let sent = try #require(origin.requests.last)
                #expect(sent.method == .post && sent.headers[.accept] == "application/json")
                #expect(sent.headers[.contentType] == "application/json")
                try await session.expect(
                    .form([("a b", "c&d"), ("e", "")], to: origin.url("/form")),
                    "POST application/x-www-form-urlencoded a+b=c%26d&e=")
                await expectFailure(.unacceptableStatus, .remote) {
                    try await session.decode(Name.self, from: origin.url("/missing"))
                }
                await expectFailure(.undecodableBody, .remote) {
                    try await session.decode(Name.self, from: origin.url("/form"))
                }
                var request = Request(url: origin.url("/"))
                try request.authorize(Credential(user: "ada", password: "s3:ret"))
                #expect(request.headers[.authorization] == "Basic YWRhOnMzOnJldA==")
                try request.authorize(.bearer("abc"))
                #expect(request.headers[.authorization] == "Bearer abc")
                for bad in [Credential(user: "a:b", password: "c"), .init(user: "a", password: "b\n"), .bearer("a b")] {
                    await expectFailure(.badRequest, .local) { try request.authorize(bad) }
                }
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Redirects, and the decisions about them.
@Suite(.timeLimit(.minutes(4)))
struct RedirectRows {
    private func deciding(_ decide: @escaping @Sendable (Redirect) async throws -> RedirectDecision) -> Decisions {
        var decisions = Decisions()
        decisions.redirect = Decision(decide)
        return decisions
    }

    @Test("the decision sees the redirect and the proposed request before anything is sent (checklist 57)")
    func askedFirst() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/from") { _ in .redirect("/to?x#y", status: .movedPermanently) }
            origin.route("/to") { .ok("\($0.method)") }
            let decisions = deciding { redirect in
                #expect(redirect.response.http?.status == .movedPermanently)
                #expect(redirect.response.url == origin.url("/from"))
                #expect(redirect.request.url == origin.url("/to?x#y"))
                #expect(redirect.request.method == .get)
                #expect(redirect.request.headers["X-A"] == "b")
                #expect(redirect.count == 0)
                #expect(origin.requests.map(\.path) == ["/from"])
                return .follow
            }
            try await withSession(.ephemeral) { session in
                let request = Request(
                    url: origin.url("/from"), method: .post, headers: ["X-A": "b"], body: .data(Data("x".utf8)))
                let (data, response) = try await session.data(for: request, decisions: decisions)
                #expect(data == Data("GET".utf8))
                #expect(response.url == origin.url("/to?x#y"))
            }
            #expect(origin.requests.map(\.target) == ["/from", "/to?x"])
        }
    }

    @Test("the proposed request is followed, or another one is sent unchanged (checklist 58, 59)")
    func followOrInstead() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/from") { _ in .redirect("/to") }
            origin.route("/to") { _ in .ok("proposed") }
            origin.route("/else") { .ok("\($0.method) \($0.headers[.authorization] ?? "-") \($0.bodyCount)") }
            let instead = Request(
                url: origin.url("/else"), method: .put, headers: [.authorization: "mine"], body: .data(Data("12".utf8)))
            try await withSession(.ephemeral, decisions: deciding { _ in .follow }) { session in
                try await session.expect(origin.url("/from"), "proposed")
                // A load's own decision takes precedence over its session's.
                let (data, _) = try await session.data(
                    for: Request(url: origin.url("/from")), decisions: deciding { _ in .instead(instead) })
                #expect(data == Data("PUT mine 2".utf8))
            }
            #expect(origin.requests.map(\.path) == ["/from", "/to", "/from", "/else"])
        }
    }

    @Test("a redirect that is not followed is the response, with its body (checklist 60)")
    func deliver() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/from") { _ in .status(.found, headers: [.location: "/to"], body: .bytes(Array("moved".utf8)))
            }
            try await withSession(.ephemeral, decisions: deciding { _ in .doNotFollow }) { session in
                let (data, response) = try await session.data(from: origin.url("/from"))
                #expect(data == Data("moved".utf8))
                #expect(response.http?.status == .found)
                #expect(response.url == origin.url("/from"))
            }
            #expect(origin.counts.requests == 1)
        }
    }

    @Test("each hop has its own connection, which is verified again (checklist 61)")
    func hopsBeginAnew() async throws {
        try await withSecureOrigin { secure, configuration in
            secure.route("/") { .ok("\($0.tls != nil) \($0.connection)") }
            let target = secure.url("/").absoluteString
            try await withHTTPTestServer { origin in
                origin.route("/") { _ in .redirect(target) }
                try await withSession(configuration) { try await $0.expect(origin.url(), "true 1") }
                // The same hop to a host whose certificate is not trusted is refused.
                try await withSession(.ephemeral) { session in
                    let error = await failure(.certificateUntrusted, .remote, .securing) {
                        try await session.data(from: origin.url())
                    }
                    #expect(error?.url == secure.url("/"))
                }
            }
        }
    }

    @Test("redirects are followed up to the maximum (checklist 62)", arguments: [0, 1, 5, 20])
    func maximum(_ maximum: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                guard let left = Int(request.path.dropFirst()), left > 0 else { return .ok("end") }
                return .redirect("/\(left - 1)")
            }
            var configuration = Configuration.ephemeral
            #expect(configuration.redirects.maximum == 20)
            configuration.redirects.maximum = maximum
            try await withSession(configuration) { session in
                try await session.expect(origin.url("/\(maximum)"), "end")
                let error = await failure(.tooManyRedirects, .remote, .redirecting) {
                    try await session.data(from: origin.url("/\(maximum + 1)"))
                }
                #expect(error?.url == origin.url("/1"))
            }
            #expect(origin.counts.requests == 2 * (maximum + 1))
        }
    }

    @Test(
        "a Location that is written carelessly is escaped and followed (RFC 9110 §10.2.2)",
        arguments: [
            ("/to?q=100%", "/to?q=100%25"), ("/to/%u00e9", "/to/%25u00e9"), ("/to\\b", "/to%5Cb"),
            ("/to\tb", "/to%09b"),
            ("/to?a#b#c", "/to?a"), ("/to?q=ü ", "/to?q=%C3%BC"), ("\\\\other.example/to", "/%5C%5Cother.example/to"),
        ])
    func careless(_ location: String, _ target: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in request.target == "/" ? .redirect(location) : .ok(request.target) }
            try await withSession(.ephemeral) { session in try await session.expect(origin.url(), target) }
        }
    }

    @Test("an empty Location is no redirect: the response is the result") func emptyLocation() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.found, headers: [.location: ""], body: .bytes(Array("body".utf8))) }
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: origin.url())
                #expect(String(decoding: data, as: UTF8.self) == "body" && response.http?.status == .found)
            }
        }
    }

    @Test("a Location that cannot be read reaches the decision, which may take the response") func unreadable()
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .status(.found, headers: [.location: "http://["], body: .bytes(Array("body".utf8)))
            }
            try await withSession(.ephemeral) { session in
                let request = Request(url: origin.url())
                let (data, response) = try await session.data(
                    for: request,
                    decisions: deciding { redirect in
                        #expect(redirect.request.url == origin.url())
                        return .doNotFollow
                    })
                #expect(String(decoding: data, as: UTF8.self) == "body" && response.http?.status == .found)
                await expectFailure(.badRedirect, .remote, .redirecting) {
                    try await session.data(for: request, decisions: deciding { _ in .follow })
                }
            }
            #expect(origin.counts.requests == 2)
        }
    }

    @Test("a redirect loop ends, also one of a request to itself (checklist 62)")
    func loop() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/") }
            try await withSession(.ephemeral) { session in
                await expectFailure(.tooManyRedirects, .remote) { try await session.data(from: origin.url()) }
            }
            #expect(origin.counts.requests == 21)
        }
    }

    @Test("a decision may end the load, by its result or by an error (checklist 63)")
    func cancel() async throws {
        struct Refused: Error {}
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/to") }
            try await withSession(.ephemeral) { session in
                let request = Request(url: origin.url())
                await expectFailure(.cancelled, .local, .deciding) {
                    try await session.data(for: request, decisions: deciding { _ in .cancel })
                }
                let error = await failure(.decisionFailed, .local, .deciding) {
                    try await session.data(for: request, decisions: deciding { _ in throw Refused() })
                }
                #expect(error?.underlying is Refused)
                let asked = Latch()
                let load = Task {
                    try await session.data(
                        for: request,
                        decisions: deciding { _ in
                            asked.open()
                            try await Task.sleep(for: .seconds(600))
                            return .follow
                        })
                }
                await asked.wait()
                load.cancel()
                await expectFailure(.cancelled, .local, .deciding) { try await load.value }
            }
            #expect(origin.requests.allSatisfy { $0.path == "/" })
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("without a decision, redirects are followed (checklist 65)", arguments: [301, 302, 303, 307, 308])
    func byDefault(_ code: Int) async throws {
        let status = try #require(Status(code))
        try await withHTTPTestServer { origin in
            origin.route("/a/from") { _ in
                .status(status, headers: [.location: "../b/to"], body: .bytes([UInt8](repeating: 1, count: 900)))
            }
            origin.route("/b/to") {
                .ok("\($0.method) \(String(decoding: $0.body, as: UTF8.self)) \($0.headers[.contentType] ?? "-")")
            }
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url("/a/from"))
                try await session.expect(request, "GET  -")
                request = Request(
                    url: origin.url("/a/from"), method: .post, headers: [.contentType: "x/y"],
                    body: .data(Data("b".utf8)))
                try await session.expect(request, code >= 307 ? "POST b x/y" : "GET  -")
                request.method = .put
                try await session.expect(request, code == 303 ? "GET  -" : "PUT b x/y")
                request.body = .stream {
                    AsyncStream<[UInt8]> {
                        $0.yield([0x63])
                        $0.finish()
                    }
                }
                try await session.expect(request, code == 303 ? "GET  -" : "PUT c x/y")
            }
            // The short rest of each redirect had arrived: one connection served all requests.
            #expect(origin.counts.accepted == 1)
        }
    }

    @Test("a 3xx status that is not a redirect is the response", arguments: [300, 304, 305, 306, 302])
    func notARedirect(_ code: Int) async throws {
        let status = try #require(Status(code))
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(status, headers: code == 302 ? [:] : [.location: "/to"]) }
            try await withSession(.ephemeral) { session in
                let (_, response) = try await session.data(from: origin.url())
                #expect(response.http?.status == status)
            }
            #expect(origin.counts.requests == 1)
        }
    }
}

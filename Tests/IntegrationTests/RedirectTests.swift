// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct RedirectTests {
    @Test(
        "Redirects are followed",
        arguments: [("NGINX", "/r301"), ("NGINX", "/r302"), ("NGINX", "/r308"), ("APACHE", "/r302")])
    func areFollowed(_ server: String, _ path: String) async throws {
        try await withSession(Servers.configuration) { session in
            let (data, response) = try await session.data(from: Servers.url(server, path))
            #expect(response.url.path() == "/1k.txt")
            #expect(data.count == 1024)
        }
    }

    @Test("A 303 turns a POST into a GET, a 307 does not", arguments: [("/r303", "GET   "), ("/r307", "POST   4")])
    func methods(_ path: String, _ seen: String) async throws {
        try await withSession(Servers.configuration) { session in
            let request = Request(url: try Servers.url("NGINX", path), method: .post, body: .data(Data("body".utf8)))
            let (data, _) = try await session.data(for: request)
            #expect(String(decoding: data, as: UTF8.self) == seen)
        }
    }

    @Test("Another origin gets no credentials") func anotherOriginGetsNoSecrets() async throws {
        try await withSession(Servers.configuration) { session in
            let headers: Headers = [.authorization: "Basic c2VjcmV0", .cookie: "a=b"]
            let own = Request(url: try Servers.url("NGINX", "/show"), headers: headers)
            #expect(try await session.data(for: own).0 == Data("GET Basic c2VjcmV0 a=b ".utf8))
            let away = Request(url: try Servers.url("NGINX", "/away"), headers: headers)
            #expect(try await session.data(for: away).0 == Data("GET   ".utf8))
        }
    }

    @Test("A redirect loop ends in an error") func circlesEnd() async throws {
        try await withSession(Servers.configuration) { session in
            let error = try await failure(session, Request(url: Servers.url("NGINX", "/loop")))
            #expect(error.reason == .tooManyRedirects && error.party == .remote)
        }
    }

    @Test("A decision may take the redirect as the response") func aDecisionMayTakeTheRedirectItself() async throws {
        var decisions = Decisions()
        decisions.redirect = Decision { _ in .doNotFollow }
        try await withSession(Servers.configuration, decisions: decisions) { session in
            let (_, response) = try await session.data(from: Servers.url("NGINX", "/r302"))
            #expect(response.http?.status.code == 302)
        }
    }
}

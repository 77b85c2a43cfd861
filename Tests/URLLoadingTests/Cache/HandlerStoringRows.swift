// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// `Response.storagePolicy`: a handler's response is stored if the handler and HTTP allow it.
@Suite(.timeLimit(.minutes(4)))
struct HandlerStoringRows {
    private struct Page: ProtocolHandler {
        let policy: Response.StoragePolicy?
        let headers: Headers
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            var response = Response(url: request.url, expectedLength: 4, http: HTTPHead(status: .ok, headers: headers))
            response.storagePolicy = policy
            return .response(response, data: Data("page".utf8))
        }
    }

    private func kept(
        _ url: String, _ policy: Response.StoragePolicy?, _ headers: Headers = [.cacheControl: "max-age=60"]
    ) async throws -> CachedResponse? {
        var configuration = Configuration.ephemeral
        let cache = ResponseCache()
        configuration.caching.store = cache
        configuration.handlers = [Page(policy: policy, headers: headers)]
        let url = try #require(URL(string: url))
        try await withSession(configuration) { try await $0.expect(url, "page") }
        return cache.cachedResponse(for: Request(url: url))
    }

    @Test("a handler's response is stored if it says so, for http only, in the place it names (checklist 95, 100)")
    func policies() async throws {
        let allowed = try await kept("http://a.test/", .allowed)
        #expect(allowed?.data == Data("page".utf8) && allowed?.storagePolicy == .allowed)
        let inMemory = try await kept("https://a.test/", .allowedInMemoryOnly)
        #expect(inMemory?.storagePolicy == .allowedInMemoryOnly)
        for policy in [nil, Response.StoragePolicy.notAllowed] {
            let none = try await kept("http://a.test/", policy)
            #expect(none == nil)
        }
        let other = try await kept("page:one", .allowed)
        #expect(other == nil)
        let forbidden = try await kept("http://a.test/", .allowed, [.cacheControl: "no-store"])
        #expect(forbidden == nil)
    }

    private struct Passing: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            let answer = try await client.next.load(request)
            var response = Response(url: request.url, http: answer.response.http)
            response.storagePolicy = .allowed
            return .response(response, data: try await answer.body.collect(upTo: 1000))
        }
    }

    @Test("a handler's response made of a body whose end no length proves is not stored, over http")
    func mayBeCut() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n"
                let length = request.target.contains("length") ? "Content-Length: 4\r\n" : ""
                return .raw([.bytes(Array("\(head)\(length)\r\npage".utf8))])
            }
            var configuration = Configuration.ephemeral
            let cache = ResponseCache()
            configuration.caching.store = cache
            configuration.handlers = [Passing()]
            try await withSession(configuration) { session in
                for query in ["", "?length"] {
                    try await session.expect(origin.url("/" + query), "page")
                    let isKept = cache.cachedResponse(for: Request(url: origin.url("/" + query))) != nil
                    #expect(isKept == !query.isEmpty)
                }
            }
        }
    }

    @Test("a handler's response obtained with a session's login is served to that session only (security 72)")
    func owners() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                request.headers.contains(.authorization)
                    ? .ok("secret", headers: [.cacheControl: "max-age=60"])
                    : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
            }
            var configuration = Configuration.ephemeral
            let cache = ResponseCache()
            (configuration.caching.store, configuration.authentication.credentialStore) = (cache, CredentialStore())
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "u", password: "p")) }
            var passing = configuration
            passing.handlers = [Passing()]
            try await withSession(passing, decisions: decisions) { try await $0.expect(origin.url(), "secret") }
            configuration.authentication.credentialStore = CredentialStore()
            try await withSession(configuration) { session in
                let (_, response) = try await session.data(from: origin.url())
                #expect(response.http?.status == .unauthorized)
            }
        }
    }
}

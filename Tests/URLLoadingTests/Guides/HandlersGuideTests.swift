// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/handlers.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HandlersGuideTests {
    struct Greeting: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { request.url.scheme == "greet" }

        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            let response = Response(url: request.url, mediaType: MediaType("text/plain"), expectedLength: 5)
            return .response(response, data: Data("hello".utf8))
        }
    }

    struct Missing: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { request.url.path() == "/missing" }

        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            let head = HTTPHead(status: .notFound, headers: [.contentType: "text/plain"])
            return .response(Response(url: request.url, http: head), data: Data("no".utf8))
        }
    }

    struct Counting: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { request.url.scheme == "count" }

        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            return .response(
                Response(url: request.url),
                body: AsyncStream { continuation in
                    for number in 1...3 { continuation.yield(Array("\(number)\n".utf8)) }
                    continuation.finish()
                })
        }
    }

    actor Tokens {
        var number = 0
        func current() -> String { "\(number)" }
        func refreshed() -> String {
            number += 1
            return "\(number)"
        }
    }

    struct Authorizing: ProtocolHandler {
        let tokens: Tokens
        func canHandle(_ request: Request) -> Bool { request.url.path().hasPrefix("/api") }

        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            var request = request
            request.headers[.authorization] = "Bearer \(await tokens.current())"
            let answer = try await client.next.load(request)
            guard answer.response.http?.status == .unauthorized else { return answer }
            request.headers[.authorization] = "Bearer \(await tokens.refreshed())"
            return try await client.next.load(request)
        }
    }

    @Test("stubs, with and without a status, whole and in pieces")
    func stubs() async throws {
        var configuration = Configuration.default
        configuration.handlers = [Greeting(), Missing(), Counting()]
        let session = Session(configuration)
        let (data, _) = try await session.data(from: URL(string: "greet:world")!)
        #expect(data == Data("hello".utf8))
        let (no, response) = try await session.data(from: URL(string: "http://host.invalid/missing")!)
        #expect(no.count == 2 && response.http?.status == .notFound && response.mediaType?.essence == "text/plain")
        let lines = try await session.load(Request(url: URL(string: "count:3")!)) { _, body in
            try await body.lines.reduce(into: []) { $0.append($1) }
        }
        #expect(lines == ["1", "2", "3"])
    }

    @Test("a stub reads what was sent to it")
    func bodies() async throws {
        struct Echo: ProtocolHandler {
            func canHandle(_ request: Request) -> Bool { request.url.scheme == "echo" }

            func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
                let sent = try await request.body?.collect(upTo: 1_000_000) ?? Data()
                return .response(Response(url: request.url), data: sent)
            }
        }
        var configuration = Configuration.default
        configuration.handlers = [Echo()]
        let session = Session(configuration)
        for body in [
            RequestBody.data(Data("sent".utf8)),
            .stream {
                AsyncStream {
                    $0.yield(Array("sent".utf8))
                    $0.finish()
                }
            },
        ] {
            let request = Request(url: URL(string: "echo:x")!, method: .post, body: body)
            let (data, _) = try await session.data(for: request)
            #expect(data == Data("sent".utf8))
        }
    }

    @Test("middleware refreshes a token and leaves it at its host")
    func middleware() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/api") { request in
                request.headers[.authorization] == "Bearer 1" ? .redirect("/elsewhere") : .status(.unauthorized)
            }
            origin.route("/elsewhere") { request in .ok(request.headers[.authorization] ?? "none") }
            var configuration = Configuration.default
            configuration.handlers = [Authorizing(tokens: Tokens())]
            let session = Session(configuration)
            try await session.expect(origin.url("/api"), "none")
        }
    }
}

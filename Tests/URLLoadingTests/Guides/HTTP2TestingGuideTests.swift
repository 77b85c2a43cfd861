// SPDX-License-Identifier: Apache-2.0

// The examples of "A server of HTTP/2" in docs/guides/testing.md, compiled and run. A change of one is repeated here.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HTTP2TestingGuideTests {
    @Test("routes")
    func routes() async throws {
        try await withHTTP2TestServer { server in
            @Sendable func use(_ url: URL) async throws { _ = try await load(url, from: server) }
            server.route("/hello") { request in .ok("Hello, \(request.headers[.userAgent] ?? "you")") }
            server.route("/sum") { _ in .ok(.chunks(["one", "two"], trailers: ["sum": "2"])) }
            try await use(server.url("/hello"))
            #expect(server.requests.map(\.path) == ["/hello"])
            #expect(server.failures.isEmpty)
        }
    }

    @Test("a script")
    func script() async throws {
        try await withHTTP2TestServer { server in
            @Sendable func use(_ url: URL) async throws {
                let client = try await RawHTTP2Client(server)
                try await client.start()
                try await client.get(url.path)
                _ = try await client.receive(.goAway)
                try await client.send(.goAway(last: 0))
            }
            server.script(onConnection: 1) { peer in
                try await peer.start(.initialWindowSize(100))  // the preface, SETTINGS, an acknowledgement
                let request = try await peer.expectRequest()
                try await peer.respond(to: request.stream, .ok, body: Array("half".utf8), endStream: false)
                try await peer.hold()
                try await peer.send(.ping(), .goAway(last: request.stream, .internalError))
                await peer.untilClosed()
            }
            let load = Task { try await use(server.url()) }
            try await server.wait { $0.held == 1 }
            server.release()
            let goodbye = try await server.wait(for: .goAway)  // of the client
            #expect(goodbye.frame.errorCode == .noError)
            try await load.value
        }
    }

    @Test("the example of named faults")
    func faults() async throws {
        for fault in HTTP2Fault.oddities {
            try await withHTTP2TestServer { server in
                @Sendable func use(_ url: URL) async throws -> String { try await load(url, from: server) }
                server.inject(fault, onConnection: 1)
                server.route("/*") { _ in .ok("ok") }  // for those who come again
                let text = try await use(server.url())
                #expect(fault.outcome == .succeeds && text == "ok", "\(fault)")
            }
        }
    }

    /// The client under test.
    private func load(_ url: URL, from server: HTTP2TestServer) async throws -> String {
        let client = try await RawHTTP2Client(server)
        // SETTINGS are not waited for: some servers send theirs late.
        try await client.send(RawHTTP2Client.preface + HTTP2Frame.settings().bytes)
        try await client.get(url.path)
        return try await client.answer().text
    }
}

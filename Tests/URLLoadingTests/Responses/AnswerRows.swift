// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

/// Success statuses and decoded bodies are required only if the caller says so (checklist 160).
@Suite(.timeLimit(.minutes(4)))
struct AnswerRows {
    private struct User: Codable, Sendable, Equatable { var name: String }

    @Test("requireSuccess throws for a status other than 2xx, with the response; without it no status throws")
    func success() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/good") { _ in .status(.created, body: .bytes([1])) }
            origin.route("/bad") { _ in .status(.serviceUnavailable, headers: ["Retry-After": "9"], body: .bytes([1])) }
            origin.route("/stays") { _ in .status(.notModified) }
            try await withSession(.ephemeral) { session in
                let good = try await session.data(from: origin.url("/good")).1
                #expect(try good.requireSuccess().http?.status == .created)
                for (path, status) in [("/bad", Status.serviceUnavailable), ("/stays", .notModified)] {
                    let response = try await session.data(from: origin.url(path)).1
                    let error = await failure(.unacceptableStatus, .remote, .receiving) {
                        try response.requireSuccess()
                    }
                    #expect(error?.status == status && error?.url == origin.url(path) && error?.code == -1011)
                    #expect(error?.response?.http?.headers["Retry-After"] == (path == "/bad" ? "9" : nil))
                    #expect(error?.description.contains("\(status.code)") == true)
                    #expect(error.map { "\($0.underlying.map { "\($0)" } ?? "")".contains("9") } != true)
                }
            }
        }
        let file = Response(url: try url("file:///etc/hostname"))
        #expect(try file.requireSuccess().http == nil)
        #expect(LoadError.Reason.unacceptableStatus.name == "unacceptableStatus")
    }

    @Test("the reason phrase is the one that the server sent, and empty where it sent none")
    func phrases() async throws {
        let lines = [
            ("200 Fine   indeed", "Fine   indeed"), ("200 OK", "OK"), ("200", ""), ("200 ", ""), ("299 Odd", "Odd"),
        ]
        try await withHTTPTestServer { origin in
            for (index, line) in lines.enumerated() {
                origin.route("/\(index)") { _ in
                    .raw([.bytes(Array("HTTP/1.1 \(line.0)\r\nContent-Length: 2\r\n\r\nok".utf8))])
                }
            }
            try await withSession(.ephemeral) { session in
                for (index, line) in lines.enumerated() {
                    let response = try await session.data(from: origin.url("/\(index)")).1
                    #expect(response.http?.reasonPhrase == line.1, "\(line.0)")
                }
            }
        }
        #expect(HTTPHead(status: .ok).reasonPhrase == "OK")
        #expect(HTTPHead(status: .ok, version: .http2).reasonPhrase.isEmpty)
    }

    @Test("bodies are decoded within their limit; a decoding failure is an error of its own")
    func decoding() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/ada") { _ in .ok(#"{"name":"Ada"}"#) }
            origin.route("/html") { _ in .ok("<html>") }
            try await withSession(.ephemeral) { session in
                func decode(_ path: String, _ limit: Int) async throws -> User {
                    try await session.load(Request(url: origin.url(path))) { _, body in
                        try await body.decode(User.self, upTo: limit)
                    }
                }
                #expect(try await decode("/ada", 14) == User(name: "Ada"))
                await expectFailure(.bodyTooLarge, .local) { try await decode("/ada", 13) }
                let error = await failure(.undecodableBody, .remote, .decoding) { try await decode("/html", 1000) }
                #expect(error?.underlying is DecodingError && error?.response == nil)

                let data = try await session.data(from: origin.url("/ada")).0
                #expect(try data.decode(User.self, upTo: 14) == User(name: "Ada"))
                await expectFailure(.bodyTooLarge) { try data.decode(User.self, upTo: 13) }
                await expectFailure(.undecodableBody) { try data.decode([Int].self) }
            }
        }
    }
}

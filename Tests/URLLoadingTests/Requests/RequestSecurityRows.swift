// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Security 11, 24, 43, 44, 57: bytes that a caller cannot make the library send.
@Suite(.timeLimit(.minutes(4)))
struct RequestSecurityRows {
    struct Refused: Sendable, CustomTestStringConvertible {
        let name: String
        let reason: LoadError.Reason
        let change: @Sendable (inout Request) -> Void
        var testDescription: String { name }
        init(_ name: String, _ reason: LoadError.Reason, _ change: @escaping @Sendable (inout Request) -> Void) {
            self.name = name
            self.reason = reason
            self.change = change
        }
    }

    private func check(_ refused: Refused) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("x") }
            try await withSession(.ephemeral) { session in
                for isReused in [false, true] {
                    if isReused { try await session.expect(origin.url(), "x") }
                    let before = origin.counts.requests
                    var request = Request(url: origin.url(), method: .post)
                    refused.change(&request)
                    let sent = request
                    await expectFailure(refused.reason, .local, nil, refused.name) { try await session.data(for: sent) }
                    #expect(origin.counts.requests == before)
                    // The connection remains clean.
                    try await session.expect(origin.url(), "x")
                }
            }
        }
    }

    static let forgeries: [Refused] =
        ["\r\nX-Evil: 1", "\nX: 1", "\r", "\0", "a\u{7f}", "\u{1}"].flatMap { text in
            [
                Refused("value \(text.debugDescription)", .malformedFieldValue) { $0.headers["X-A"] = "a\(text)b" },
                Refused("cookie \(text.debugDescription)", .malformedFieldValue) {
                    $0.headers[.cookie] = "a=1\(text)b"
                },
                Refused("name \(text.debugDescription)", .malformedFieldName) {
                    $0.headers.append(FieldName("X\(text)A"), "b")
                },
                Refused("method \(text.debugDescription)", .malformedMethod) { $0.method = Method("GET\(text)") },
            ]
        } + [
            Refused("empty name", .malformedFieldName) { $0.headers.append("", "b") },
            Refused("blank in name", .malformedFieldName) { $0.headers.append("X A", "b") },
            Refused("colon in name", .malformedFieldName) { $0.headers.append("X:A", "b") },
            Refused("blank in method", .malformedMethod) { $0.method = "GET / HTTP/1.1 X" },
            Refused("empty method", .malformedMethod) { $0.method = "" },
            Refused("host with path", .malformedHost) { $0.headers[.host] = "a.example/b" },
            Refused("host with line", .malformedFieldValue) { $0.headers[.host] = "a.example\r\nX: y" },
            Refused("host with blank", .malformedHost) { $0.headers[.host] = "a b" },
        ]

    @Test("control characters are refused in fields, methods and hosts (security 43, 24)", arguments: forgeries)
    func forged(_ refused: Refused) async throws { try await check(refused) }

    @Test(
        "the error names the field that cannot be sent",
        arguments: [("X-A", "a\nb"), ("X A", "b")])
    func named(_ name: String, _ value: String) async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url(), headers: [.accept: "text/plain"])
                request.headers.append(FieldName(name), value)
                let asked = request
                let error = await failure(name == "X-A" ? .malformedFieldValue : .malformedFieldName, .local) {
                    try await session.data(for: asked)
                }
                #expect(error?.detail?.hasSuffix(": the field \"\(name)\"") == true, "\(String(describing: error))")
            }
        }
    }

    static let framings: [Refused] = [
        Refused("two hosts", .duplicateHost) { $0.headers = [.host: "a", .host: "b"] },
        Refused("two lengths", .conflictingContentLength) { $0.headers = [.contentLength: "0", .contentLength: "0"] },
        Refused("wrong length", .conflictingContentLength) { $0.headers[.contentLength] = "5" },
        Refused("wrong length of a body", .conflictingContentLength) {
            $0.body = .data(Data("1234".utf8))
            $0.headers[.contentLength] = "5"
        },
        Refused("length and chunks", .conflictingContentLength) {
            $0.body = .stream { AsyncStream<[UInt8]> { $0.finish() } }
            $0.headers[.contentLength] = "5"
        },
        Refused("no number", .malformedContentLength) { $0.headers[.contentLength] = "0x0" },
        Refused("coding of nothing", .unsupportedTransferEncoding) { $0.headers[.transferEncoding] = "chunked" },
        Refused("another coding", .unsupportedTransferEncoding) {
            $0.body = .stream { AsyncStream<[UInt8]> { $0.finish() } }
            $0.headers[.transferEncoding] = "gzip, chunked"
        },
        Refused("length removed on the way", .forbiddenField) { $0.headers[.connection] = "close, Content-Length" },
    ]

    @Test("framing fields of the caller that contradict the body are refused (security 44)", arguments: framings)
    func framed(_ refused: Refused) async throws { try await check(refused) }

    @Test("framing fields of the caller that agree with the body are sent once (security 44)")
    func agreeing() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") {
                .ok(
                    "\($0.headers.values(of: .contentLength)) \($0.headers.values(of: .transferEncoding)) "
                        + "\($0.headers.values(of: .host).count)"
                )
            }
            try await withSession(.ephemeral) { session in
                let data = RequestBody.data(Data("1234".utf8))
                let stream = RequestBody.stream { AsyncStream<[UInt8]> { $0.finish() } }
                try await session.expect(
                    Request(url: origin.url(), method: .post, headers: [.contentLength: "4", .host: "x"], body: data),
                    "[\"4\"] [] 1")
                try await session.expect(
                    Request(url: origin.url(), method: .post, headers: [.transferEncoding: "chunked"], body: stream),
                    "[] [\"chunked\"] 1")
            }
        }
    }

    static let badURLs = [
        "http://user:p@ss@127.0.0.1/", "http://a%5C@127.0.0.1/", "http://a%5c@127.0.0.1/", "http://127.0.0.1:99999/",
        "http://127.0.0.1:-1/", "http://127.0.0.1:8%30/", "http:///path", "http://", "http:", "http:127.0.0.1",
        "http://a%00b.example/", "http://a%0D%0Ab/", "http://a%20b/",
        "http://[::1", "http://[::1%25/", "http://[1.2.3.4]/", "http://1.2.3/", "http://0177.0.0.1/",
        "http://0x7f.0.0.1/", "http://2130706433/",
        "http://a..b/", "http://.a/", "http://xn--a/", "http://127.0.0.1/%", "http://127.0.0.1/%g0",
        "http://127.0.0.1/a\\b", "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nX: y", "http://127.0.0.1/\0", "http://127.0.0.1/?a\nb", "http://127.0.0.1\\@b/",
        "http://user%00@127.0.0.1/",
    ]

    /// `URL` refuses some of these texts. The others are refused here, or were repaired to a form that every parser
    /// reads as the intended host.
    @Test(
        "an ambiguous URL is refused without any request (security 57, 11)", arguments: badURLs)
    func ambiguous(_ text: String) async throws {
        guard let url = URL(string: text) else { return }
        let dialled = Lock<[String]>([])
        var configuration = Configuration.ephemeral
        configuration.dial = { (origin, _) throws(IOFailure) in
            dialled.withLock { $0.append("\(origin.host)") }
            throw IOFailure(.hostNotFound("any"), .resolve)
        }
        let isRepaired = url.absoluteString != text
        try await withSession(configuration) { session in
            let result = await Result { try await session.data(from: url) }
            guard case .failure(let error as LoadError) = result else {
                Issue.record("\(url): \(result)")
                return
            }
            let isRefused = error.reason == .badURL && error.party == .local && error.phase == .preparing
            #expect(isRefused || (isRepaired && error.reason == .hostNotFound), "\(text) as \(url): \(error)")
        }
        #expect(dialled.withLock { $0 }.allSatisfy { isRepaired && $0 == "127.0.0.1" }, "\(text) as \(url)")
    }

    @Test("no part of a password is looked up as a host (security 11)")
    func password() async throws {
        let resolver = RecordingResolver(.failure(IOFailure(.hostNotFound("any"), .resolve)))
        try await withSession(.ephemeral.with { $0.networks.resolver = resolver }) { session in
            for text in [
                "http://user:p@ss@host.example/", "http://user:p%40ss@host.example/", "http://us@er:x@host.example/",
                "http://user:p#ss@host.example/", "http://user:p/ss@host.example/",
            ] {
                guard let url = URL(string: text) else { continue }
                _ = try? await session.data(from: url)
            }
        }
        #expect(resolver.asked.allSatisfy { $0 == "host.example" || $0 == "user" }, "\(resolver.asked)")
        #expect(!resolver.asked.contains { $0.contains("ss") || $0.contains("@") })
    }

    @Test("a valid URL is sent unchanged, without userinfo and fragment (security 43)")
    func legal() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok("\($0.target) \($0.headers[.host] ?? "-")") }
            try await withSession(.ephemeral) { session in
                let host = "127.0.0.1:\(origin.port)"
                for (path, target) in [
                    ("", "/"), ("?", "/?"), ("/a%0d%0aX:%20y", "/a%0d%0aX:%20y"), ("/a#b", "/a"),
                    ("/a/../b/./c", "/a/../b/./c"), ("/%2e%2e/x?a=b&c=%00", "/%2e%2e/x?a=b&c=%00"),
                ] {
                    try await session.expect(url("http://\(host)\(path)"), "\(target) \(host)")
                }
                try await session.expect(url("http://user:pass@\(host)/x"), "/x \(host)")
            }
            #expect(origin.requests.allSatisfy { !$0.headers.contains(.authorization) })
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The content of requests and responses.
@Suite(.timeLimit(.minutes(4)))
struct RequestRows {
    @Test("method, headers, body and policy of a request are sent (checklist 30)")
    func requestIsSent() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") {
                .ok("\($0.method) \($0.headers["X-A"] ?? "-") \($0.headers[.contentLength] ?? "-") \($0.bodyCount)")
            }
            try await withSession(.ephemeral) { session in
                var request = Request(
                    url: origin.url("/p?q=1#f"), method: .put, headers: ["X-A": "b"], body: .data(Data("12345".utf8)))
                try await session.expect(request, "PUT b 5 5")
                #expect(origin.requests.last?.target == "/p?q=1")
                #expect(origin.requests.last?.body == Array("12345".utf8))
                request = Request(url: origin.url(), method: "PURGE")
                try await session.expect(request, "PURGE - - 0")
                request = Request(url: origin.url(), method: .post)
                try await session.expect(request, "POST - 0 0")
                request.cachePolicy = .onlyIfCached
                let before = origin.counts.requests
                await expectFailure(.notInCache, .local, .preparing) { try await session.data(for: request) }
                #expect(origin.counts.requests == before)
                for policy in [Request.CachePolicy.reload, .cacheElseLoad, .useProtocol] {
                    request.cachePolicy = policy
                    try await session.expect(request, "POST - 0 0")
                }
            }
        }
    }

    @Test("a body stream is sent as it is produced, in chunks or with its length (checklist 30)")
    func bodyStream() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") {
                .ok(
                    "\($0.headers[.transferEncoding] ?? "-") \($0.headers[.contentLength] ?? "-") "
                        + "\($0.bodyCount) \(String(decoding: $0.body.prefix(6), as: UTF8.self))"
                )
            }
            try await withSession(.ephemeral) { session in
                let pieces: @Sendable () -> AsyncStream<[UInt8]> = {
                    AsyncStream { continuation in
                        for piece in ["ab", "", "cd", "ef"] { continuation.yield(Array(piece.utf8)) }
                        continuation.yield([UInt8](repeating: 1, count: 300_000))
                        continuation.finish()
                    }
                }
                var request = Request(url: origin.url(), method: .post, body: .stream(pieces))
                try await session.expect(request, "chunked - 300006 abcdef")
                request.body = .stream(length: 300_006, pieces)
                try await session.expect(request, "- 300006 300006 abcdef")
                request.body = .stream { AsyncStream<[UInt8]> { $0.finish() } }
                try await session.expect(request, "chunked - 0 ")
            }
        }
    }

    @Test("a body stream that fails or has another length is an error of the local party (checklist 30)")
    func badBodyStream() async throws {
        struct Broken: Error {}
        try await withHTTPTestServer(answering: "") { origin in
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url(), method: .post)
                for length in [2, 4] as [Int64] {
                    request.body = .stream(length: length) {
                        AsyncStream<[UInt8]> {
                            $0.yield([1, 2, 3])
                            $0.finish()
                        }
                    }
                    await expectFailure(.requestBodyFailed, .local, .sending, "\(length)") {
                        try await session.data(for: request)
                    }
                }
                request.body = .stream {
                    AsyncThrowingStream<[UInt8], any Error> {
                        $0.yield([1])
                        $0.finish(throwing: Broken())
                    }
                }
                let error = await failure(.requestBodyFailed, .local, .sending) { try await session.data(for: request) }
                #expect(error?.underlying is Broken)
                #expect(error?.url == origin.url())
            }
            #expect(origin.counts.answered == 0)
        }
    }

    @Test("TE among the configuration's fields is named as a connection option (RFC 9110 10.1.4)")
    func configuredTE() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok("\($0.headers[.te] ?? "-") \($0.headers[.connection] ?? "-")") }
            var configuration = Configuration.ephemeral
            configuration.headers[.te] = "trailers"
            try await withSession(configuration) { session in
                try await session.expect(Request(url: origin.url()), "trailers TE")
                try await session.expect(Request(url: origin.url(), headers: ["X-A": "b"]), "trailers TE")
            }
        }
    }

    @Test("a request's timeout takes precedence over the session's (checklist 30)")
    func timeouts() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url())
                request.idleTimeout = .milliseconds(30)
                await expectFailure(.idleTimeout, .remote) { try await session.data(for: request) }
                request.idleTimeout = nil
                request.resourceTimeout = .milliseconds(30)
                await expectFailure(.resourceTimeout, .local) { try await session.data(for: request) }
            }
        }
    }

    @Test("a load works on its own copy of the request (checklist 31)")
    func requestIsCopied() async throws {
        try await withHTTPTestServer { origin in
            let latch = Latch()
            origin.route("/*") { request in
                if request.path == "/1" { await latch.wait() }
                return .redirect("/second", status: .temporaryRedirect)
            }
            origin.route("/second") {
                .ok("\($0.method) \($0.headers["X-A"] ?? "-") \(String(decoding: $0.body, as: UTF8.self))")
            }
            try await withSession(.ephemeral) { session in
                var request = Request(
                    url: origin.url("/1"), method: .post, headers: ["X-A": "old"], body: .data(Data("old".utf8)))
                let kept = request
                let load = Task { try await session.text(kept) }
                try await origin.wait { $0.requests == 1 }
                request.url = origin.url("/other")
                request.method = .get
                request.headers["X-A"] = "new"
                request.body = nil
                latch.open()
                let text = try await load.value
                #expect(text == "POST old old")
                #expect(
                    kept.url == origin.url("/1") && kept.method == .post && kept.headers["X-A"] == "old"
                        && kept.body != nil)
            }
        }
    }

    @Test("a load is made from a bare URL or from a request (checklist 41)")
    func urlOrRequest() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok($0.method.description) }
            try await withSession(.ephemeral) { session in
                let fromURL = try await session.data(from: origin.url()).0
                let fromRequest = try await session.data(for: Request(url: origin.url())).0
                let loaded = try await session.load(Request(url: origin.url())) { try await $1.collect(upTo: 3) }
                #expect([fromURL, fromRequest, loaded] == Array(repeating: Data("GET".utf8), count: 3))
            }
        }
    }

    @Test("a response has media type, length, text encoding, status and fields (checklist 42)")
    func response() async throws {
        try await withHTTPTestServer { origin in
            let headers: Headers = [.contentType: "Text/Plain; charset=\"ISO-8859-1\"", "X-Twice": "1", "X-Twice": "2"]
            origin.route("/known") { _ in .status(.created, headers: headers, body: .bytes([1, 2, 3])) }
            origin.route("/unknown") { _ in .ok(.chunks(["abc"])) }
            origin.route("/bad") { _ in .ok("", headers: [.contentType: "no type"]) }
            try await withSession(.ephemeral) { session in
                let (_, known) = try await session.data(from: origin.url("/known"))
                #expect(known.mediaType?.essence == "text/plain")
                #expect(known.textEncodingName == "iso-8859-1")
                #expect(known.expectedLength == 3)
                #expect(known.http?.status == .created)
                #expect(known.http?.headers.values(of: "x-twice") == ["1", "2"])
                #expect(known.http?.version == .http11)
                #expect(known.url == origin.url("/known"))
                let (_, unknown) = try await session.data(from: origin.url("/unknown"))
                #expect(unknown.expectedLength == nil && unknown.mediaType == nil && unknown.textEncodingName == nil)
                let (_, bad) = try await session.data(from: origin.url("/bad"))
                #expect(bad.mediaType == nil && bad.expectedLength == 0)
            }
        }
    }

    @Test("the pieces of a body arrive in order, and form the body (checklist 54)")
    func pieces() async throws {
        try await withHTTPTestServer { origin in
            let parts = (0..<40).map { [UInt8](repeating: UInt8($0), count: 1 + $0 * 997) }
            origin.route("/") { _ in .ok(.chunks(parts.flatMap { [.bytes($0), .pause(.microseconds(100))] })) }
            try await withSession(.ephemeral) { session in
                let (whole, count) = try await session.load(Request(url: origin.url())) { _, body in
                    var whole = Data()
                    var count = 0
                    for try await chunk in body {
                        #expect(chunk.count > 0)
                        whole.append(chunk)
                        count += 1
                    }
                    return (whole, count)
                }
                #expect(whole == Data(parts.joined()))
                #expect(count > 1)
            }
        }
    }

    @Test("http and https are loaded by the same call (checklist 119)")
    func schemes() async throws {
        try await withHTTPTestServer(answering: "clear") { origin in
            try await withSecureOrigin { secure, configuration in
                secure.route("/") { .ok("\($0.tls?.applicationProtocol ?? "-")") }
                try await withSession(configuration) { session in
                    try await session.expect(origin.url(), "clear")
                    try await session.expect(secure.url(), "http/1.1")
                    try await session.expect(secure.url(), "http/1.1")
                    #expect(secure.counts.accepted == 1)
                    for text in ["gopher://h/", "ws://h/", "mailto:a@b", "x:y"] {
                        await expectFailure(.unsupportedScheme, .local, .preparing, text) {
                            try await session.data(from: url(text))
                        }
                    }
                    await expectFailure(.badURL, .local, .preparing) { try await session.data(from: url("/relative")) }
                }
            }
        }
    }

    @Test("a local or network failure is an error (checklist 159)")
    func failures() async throws {
        var configuration = Configuration.ephemeral
        configuration.networks.resolver = RecordingResolver(
            .failure(IOFailure(.hostNotFound("nowhere.example"), .resolve)))
        try await withSession(configuration) { session in
            let error = await failure(.hostNotFound, .system, .resolving) {
                try await session.data(from: url("http://nowhere.example/"))
            }
            #expect(error?.code == -1003)
            #expect(error?.url == URL(string: "http://nowhere.example/"))
        }
        configuration.networks.resolver = RecordingResolver(.failure(IOFailure(.lookupFailed("try again"), .resolve)))
        try await withSession(configuration) { session in
            await expectFailure(.lookupFailed, .system, .resolving) {
                try await session.data(from: url("http://nowhere.example/"))
            }
        }
        let port = try closedPort()
        try await withSession(.ephemeral) { session in
            await expectFailure(.connectionRefused, .remote, .connecting) {
                try await session.data(from: url("http://127.0.0.1:\(port)/"))
            }
            await expectFailure(.connectionRefused, .remote, .connecting) {
                try await session.data(from: url("http://localhost:\(port)/"))
            }
        }
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            try await withSession(.ephemeral) { session in
                let load = Task { try await session.data(from: origin.url()) }
                try await origin.wait { $0.stalled == 1 }
                load.cancel()
                await expectFailure(.cancelled, .local, .waiting) { try await load.value }
                try await origin.wait { $0.open == 0 }
                let early = Task { () -> (Data, Response) in
                    withUnsafeCurrentTask { $0?.cancel() }
                    return try await session.data(from: origin.url())
                }
                await expectFailure(.cancelled, .local) { try await early.value }
            }
        }
    }

    @Test(
        "an error status is a response (checklist 160)",
        arguments: [400, 401, 403, 404, 407, 410, 429, 500, 503, 599, 999])
    func serverErrors(_ code: Int) async throws {
        let status = try #require(Status(code))
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(status, body: .bytes(Array("why".utf8))) }
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: origin.url())
                #expect(response.http?.status == status)
                #expect(data == Data("why".utf8))
            }
        }
    }
}

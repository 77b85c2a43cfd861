// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// RFC 9530: the digests that a response states, and those that a request expects.
@Suite(.timeLimit(.minutes(4)))
struct DigestRows {
    private static let body = "{\"hello\": \"world\"}\n"
    /// The values of the RFC for this body (§2, appendix B.1).
    private static let sha256 = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
    private static let sha512 =
        "sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:"
    private static let wrong = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
    private static let wrong512 =
        "sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:"

    private static func digest(of bytes: some Sequence<UInt8>) throws -> BodyDigest {
        try BodyDigest("sha-256=\(Digest.hex(Array(bytes)))")
    }

    private static func stated(_ bytes: Data) -> String {
        var running = DigestHash.Running(.sha256)
        bytes.withUnsafeBytes { running.update($0) }
        return "sha-256=" + StructuredField.text(running.finishBytes() ?? [])
    }

    // MARK: What the response states

    @Test(
        "a right digest is no obstacle; neither is what states none",
        arguments: [
            sha256, sha512, sha256 + ", " + sha512, "sha-256=:AAAA:", "md5=:AAAA:", "unixsum=:AA==:, " + sha256,
            "sha-256=\"text\"", "no field (", "",
        ])
    func right(_ text: String) async throws {
        try await withHTTPTestServer { origin in
            for name in ["Repr-Digest", "Content-Digest"] {
                origin.route("/") { _ in .ok(Self.body, headers: [FieldName(name): text]) }
                try await withSession(.ephemeral) { try await $0.expect(origin.url(), Self.body) }
            }
        }
    }

    @Test(
        "a wrong digest ends the load, which says which field and both values",
        arguments: ["Repr-Digest", "Content-Digest"])
    func wrongDigest(_ name: String) async throws {
        try await withHTTPTestServer { origin in
            for chunked in [false, true] {
                origin.route("/") { _ in
                    .ok(
                        chunked ? .chunks([.bytes(Array(Self.body.utf8))]) : .bytes(Array(Self.body.utf8)),
                        headers: [FieldName(name): Self.wrong])
                }
                try await withSession(.ephemeral) { session in
                    let error = await failure(.digestMismatch, .remote, .receiving) {
                        try await session.data(from: origin.url())
                    }
                    #expect(
                        error?.detail == "sha-256 of the body is "
                            + "44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38, but \(name) says "
                            + "5f8f04f6a3a892aaabbddb6cf273894493773960d4a325b105fee46eef4304f1")
                }
            }
        }
    }

    @Test("of several digests in one or two fields, all must be right")
    func several() async throws {
        let rows: [(Headers, Bool)] = [
            (["Repr-Digest": Self.sha256, "Content-Digest": Self.wrong], false),
            (["Repr-Digest": Self.wrong, "Content-Digest": Self.sha256], false),
            (["Repr-Digest": Self.sha256, "Content-Digest": Self.sha512], true),
            (["Repr-Digest": Self.wrong + ", " + Self.sha512], false),
            (["Content-Digest": Self.sha256 + ", " + Self.wrong512], false),
            (["Content-Digest": Self.sha256 + ", " + Self.sha512], true),
        ]
        try await withHTTPTestServer { origin in
            for (headers, isRight) in rows {
                origin.route("/") { _ in .ok(Self.body, headers: headers) }
                try await withSession(.ephemeral) { session in
                    if isRight {
                        try await session.expect(origin.url(), Self.body)
                    } else {
                        await expectFailure(.digestMismatch) { try await session.data(from: origin.url()) }
                    }
                }
            }
        }
    }

    @Test("the digest covers the coded body; a HEAD has none")
    func coded() async throws {
        // gzip of nothing but "hello", made once; the digest is that of these bytes.
        let coded: [UInt8] = [
            31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
        ]
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .ok(.bytes(coded), headers: [.contentEncoding: "gzip", .reprDigest: Self.stated(Data(coded))])
            }
            try await withSession(.ephemeral) { session in
                try await session.expect(origin.url(), "hello")
                origin.route("/") { _ in .ok(Self.body, headers: [.reprDigest: Self.wrong]) }
                _ = try await session.data(for: Request(url: origin.url(), method: .head))
            }
        }
    }

    @Test("a part is covered by Content-Digest alone")
    func part() async throws {
        try await withHTTPTestServer { origin in
            for (digest, isRight) in [(Self.stated(Data("hell".utf8)), true), (Self.sha256, false)] {
                origin.route("/") { _ in
                    .init(
                        status: .partialContent,
                        headers: [
                            .contentRange: "bytes 0-3/5", .reprDigest: Self.wrong, .contentDigest: digest,
                        ], body: .bytes(Array("hell".utf8)))
                }
                try await withSession(.ephemeral) { session in
                    let request = Request(url: origin.url(), headers: [.range: "bytes=0-3"])
                    if isRight {
                        _ = try await session.data(for: request)
                    } else {
                        await expectFailure(.digestMismatch) { try await session.data(for: request) }
                    }
                }
            }
        }
    }

    @Test("HTTP/2: the same") func http2() async throws {
        try await withHTTP2TestServer { server in
            for (digest, isRight) in [(Self.sha256, true), (Self.wrong, false)] {
                server.route("/") { _ in .ok(Self.body, headers: [.reprDigest: digest]) }
                try await withSession(.http2) { session in
                    if isRight {
                        try await session.expect(server.url("/"), Self.body)
                    } else {
                        await expectFailure(.digestMismatch) { try await session.data(from: server.url("/")) }
                    }
                }
            }
        }
    }

    /// A chunked response whose head announces the trailer.
    private static func announcing(
        _ names: String?, _ trailers: Headers, status: Status = .ok, headers: Headers = [:], body: String = body
    ) -> HTTPTestServer.Response {
        var headers = headers
        headers[.trailer] = names
        return .status(
            status, headers: headers, body: .chunks([.bytes(Array(body.utf8))], trailers: trailers))
    }

    private static let trailerRows: [(String?, Headers, isRight: Bool)] = [
        ("Repr-Digest", ["Repr-Digest": sha256], true), ("Repr-Digest", ["Repr-Digest": wrong], false),
        ("content-digest", ["Content-Digest": sha512], true), ("content-digest", ["Content-Digest": wrong512], false),
        ("X-Sum,\tContent-Digest , Repr-Digest", ["Content-Digest": sha256, "Repr-Digest": wrong512], false),
        ("X-Sum", ["X-Sum": "1"], true), ("Repr-Digest", [:], true),
        ("Repr-Digest", ["Repr-Digest": "md5=:AA==:"], true),
        // The body of a response that announces nothing is not hashed.
        (nil, ["Repr-Digest": wrong], true), ("X-Sum", ["Repr-Digest": wrong], true),
    ]

    @Test("a digest in an announced trailer is compared, over HTTP/1.1 and HTTP/2") func trailers() async throws {
        for (names, trailers, isRight) in Self.trailerRows {
            func expect(_ url: URL, _ configuration: Configuration) async throws {
                try await withSession(configuration) { session in
                    if isRight {
                        try await session.expect(url, Self.body)
                    } else {
                        await expectFailure(.digestMismatch) { try await session.data(from: url) }
                    }
                }
            }
            try await withHTTPTestServer { origin in
                origin.route("/") { _ in Self.announcing(names, trailers) }
                try await expect(origin.url(), .ephemeral)
            }
            try await withHTTP2TestServer { server in
                server.route("/") { _ in Self.announcing(names, trailers) }
                try await expect(server.url("/"), .http2)
            }
        }
    }

    @Test(
        "a digest in a trailer ends a download without a file; for a rest it covers the whole",
        arguments: [true, false])
    func trailersOfDownloads(isRest: Bool) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            for isRight in [false, true] {
                let stated = isRight ? Self.stated(Data(DownloadRows.content)) : Self.wrong
                origin.route("/file") { request in
                    var response = DownloadRows.answer(request, "\"one\"")
                    guard case .bytes(let bytes) = response.body else { return response }
                    response.headers[.trailer] = "Repr-Digest"
                    response.body = .chunks([.bytes(bytes)], trailers: [.reprDigest: stated])
                    return response
                }
                try await withSession(ResumeRows.configuration(folder)) { session in
                    let options = DownloadOptions(destination: folder.url("file"))
                    let task =
                        isRest
                        ? session.downloadTask(
                            resuming: try ResumeRows.hold(origin.url("/file"), in: folder), options: options)
                        : session.downloadTask(Request(url: origin.url("/file")), options: options)
                    if isRight {
                        _ = try await task.resumed().value
                        #expect(contents(folder.url("file")) == DownloadRows.content)
                    } else {
                        let error = await failure(.digestMismatch) { try await task.resumed().value }
                        #expect(error?.resumeToken == nil && folder.names.isEmpty)
                    }
                }
            }
        }
    }

    @Test("a body with a wrong digest is not stored") func notStored() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in
                .ok(Self.body, headers: [.cacheControl: "max-age=60", .contentDigest: Self.wrong])
            }
            await expectFailure(.digestMismatch) { try await rig.session.data(from: rig.origin.url()) }
            #expect(rig.cache.memoryUsage == 0)
        }
    }

    // MARK: What the request expects

    @Test("an expected digest is that of the decoded body, for data, streams and tasks") func expected() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url())
                request.expectedDigest = try Self.digest(of: "hello".utf8)
                try await #expect(session.data(for: request).0 == Data("hello".utf8))
                try await #expect(session.dataTask(request).resumed().value == Data("hello".utf8))
                request.expectedDigest = try Self.digest(of: "other".utf8)
                let other = request
                await expectFailure(.digestMismatch) { try await session.data(for: other) }
                await expectFailure(.digestMismatch) { try await session.dataTask(other).resumed().value }
                var received = Data()
                do {
                    _ = try await session.load(other) { _, body in
                        for try await chunk in body { received += Data(chunk) }
                    }
                    Issue.record("the stream ended as if the body were the expected one")
                } catch let error as LoadError { #expect(error.reason == .digestMismatch) }
                #expect(received == Data("hello".utf8))
            }
        }
    }

    @Test("the response to HEAD has no body to compare with an expected digest") func head() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url(), method: .head)
                request.expectedDigest = try Self.digest(of: "hello".utf8)
                let (body, response) = try await session.data(for: request)
                #expect(body.isEmpty)
                #expect(response.status == .ok)
                let folder = try TemporaryFolder()
                try await session.download(request, to: folder.url("file"))
                #expect(try folder.bytes("file").isEmpty)
            }
        }
    }

    @Test("an error page is no body with the expected digest") func errorPage() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .init(status: .notFound, body: .bytes(Array("hello".utf8))) }
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url())
                request.expectedDigest = try Self.digest(of: "hello".utf8)
                let asked = request
                let error = await failure(.unacceptableStatus, .remote, .receiving) {
                    try await session.data(for: asked)
                }
                #expect(error?.status == .notFound)
            }
        }
    }

    @Test("a stored body that is not the expected one is removed, so that the next load asks the server")
    func storedIsRemoved() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in .ok("old", headers: [.cacheControl: "max-age=60"]) }
            _ = try await rig.get()
            rig.origin.route("/") { _ in .ok("new", headers: [.cacheControl: "max-age=60"]) }
            var request = Request(url: rig.origin.url())
            request.expectedDigest = try Self.digest(of: "new".utf8)
            let asked = request
            await expectFailure(.digestMismatch) { try await rig.session.data(for: asked) }
            try await #expect(rig.session.data(for: asked).0 == Data("new".utf8))
            #expect(rig.requests == 2)
        }
    }

    @Test("Want-Repr-Digest is a field of the request, and a setting") func requested() {
        var request = Request(url: URL(filePath: "/"))
        #expect(request.requestedDigest == nil)
        request.requestedDigest = .sha512
        #expect(request.headers["want-repr-digest"] == "sha-512=10" && request.requestedDigest == .sha512)
        request.requestedDigest = nil
        #expect(request.headers.isEmpty)
    }

    // MARK: Downloads

    @Test("a download with another digest leaves no file and no token", arguments: [true, false])
    func download(isStated: Bool) async throws {
        let (content, other) = (Data(repeating: 7, count: 300_000), Data(repeating: 8, count: 300_000))
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .ok(
                    .bytes([UInt8](content)),
                    headers: isStated ? [.etag: "\"a\"", .reprDigest: Self.stated(other)] : [.etag: "\"a\""])
            }
            try await withSession(.ephemeral) { session in
                var options = DownloadOptions(destination: folder.url("file"))
                if !isStated { options.expectedDigest = try Self.digest(of: other) }
                let task = session.downloadTask(Request(url: origin.url()), options: options).resumed()
                let error = await failure(.digestMismatch, .remote, .receiving) { try await task.value }
                #expect(error?.resumeToken == nil && task.resumeToken == nil && folder.names.isEmpty)
                guard !isStated else { return }
                options.expectedDigest = try Self.digest(of: content)
                _ = try await session.downloadTask(Request(url: origin.url()), options: options).resumed().value
                #expect(try folder.bytes("file") == [UInt8](content))
            }
        }
    }

    @Test("a download refuses an error page, and takes the digest of its request") func downloadOfRequest() async throws
    {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer(answering: "hello") { origin in
            origin.route("/missing") { _ in .init(status: .notFound, body: .bytes(Array("hello".utf8))) }
            try await withSession(.ephemeral) { session in
                for (path, text, reason) in [
                    ("/missing", "hello", LoadError.Reason.unacceptableStatus), ("/", "other", .digestMismatch),
                ] {
                    var request = Request(url: origin.url(path))
                    request.expectedDigest = try Self.digest(of: text.utf8)
                    let asked = request
                    await expectFailure(reason) { try await session.download(asked, to: folder.url("file")) }
                }
                #expect(folder.names.isEmpty)
            }
        }
    }

    @Test(
        "a resumed download is compared as a whole",
        arguments: ["expected", "stated", "wrong", "stated wrong", "stated one wrong"])
    func resumed(_ kind: String) async throws {
        let folder = try TemporaryFolder()
        let right = Self.stated(DownloadRows.content)
        try await withHTTPTestServer { origin in
            origin.route("/file") { request in
                var response = DownloadRows.answer(request, "\"one\"")
                let stated = [
                    "stated": right, "stated wrong": Self.wrong, "stated one wrong": right + ", " + Self.wrong512,
                ]
                if let stated = stated[kind] { response.headers[.reprDigest] = stated }
                return response
            }
            let token = try ResumeRows.hold(origin.url("/file"), in: folder)
            try await withSession(ResumeRows.configuration(folder)) { session in
                var options = DownloadOptions()
                if kind == "expected" { options.expectedDigest = try Self.digest(of: DownloadRows.content) }
                if kind == "wrong" { options.expectedDigest = try Self.digest(of: "x".utf8) }
                let task = session.downloadTask(resuming: token, options: options).resumed()
                if kind.hasSuffix("wrong") {
                    let error = await failure(.digestMismatch, .remote, .receiving) { try await task.value }
                    #expect(error?.resumeToken == nil && folder.names.isEmpty)
                } else {
                    let file = try await task.value
                    #expect(try file.content(upTo: 2_000_000) == DownloadRows.content)
                }
                #expect(origin.requests.map { $0.headers[.range] } == ["bytes=\(ResumeRows.held)-"])
            }
        }
    }

    @Test("the text of a digest") func text() throws {
        let text = "sha-256=44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38"
        #expect(try BodyDigest(text).description == text)
        #expect(try BodyDigest(text.uppercased()) == BodyDigest(text))
        for bad in [
            "", "sha-256", "sha-256=", "md5=00", String(text.dropLast()), text + "0", "sha-512=" + text.dropFirst(8),
        ] {
            #expect(throws: LoadError.self, "\(bad)") { try BodyDigest(bad) }
        }
        #expect(throws: LoadError.self) { try BodyDigest(.sha256, bytes: [1]) }
    }
}

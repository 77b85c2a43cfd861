// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Resumable uploads: draft-ietf-httpbis-resumable-upload-12.
@Suite(.timeLimit(.minutes(4)))
struct ResumableUploadRows {
    /// Bytes that identify their offset.
    static func content(_ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    }

    /// No delay between attempts.
    static let eager: UploadOptions = {
        var options = UploadOptions()
        options.initialDelay = .zero
        return options
    }()

    static func request(_ origin: HTTPTestServer, _ headers: Headers = [:]) -> Request {
        Request(url: origin.url("/files"), method: .post, headers: headers)
    }

    /// An upload server, its HTTP server, and a session.
    static func rig(
        _ setting: ResumableUploadServer.Configuration = .init(), _ configuration: Configuration = .ephemeral,
        _ use: nonisolated(nonsending) (ResumableUploadServer, HTTPTestServer, Session) async throws -> Void
    ) async throws {
        let server = ResumableUploadServer(setting)
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            try await withSession(configuration) { try await use(server, origin, $0) }
        }
    }

    /// The server has all bytes, each accepted once, and none was sent from before an offset.
    static func expectWhole(
        _ server: ResumableUploadServer, _ content: Data, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let upload = server.uploads.first
        #expect(
            upload?.isComplete == true && upload.map { Data($0.content) == content } == true,
            sourceLocation: sourceLocation)
        var offset: Int64 = 0
        for transfer in server.transfers {
            #expect(transfer.offset == offset, sourceLocation: sourceLocation)
            offset += transfer.count
        }
        #expect(offset == Int64(content.count), sourceLocation: sourceLocation)
    }

    @Test("a server that accepts no bytes is not retried forever")
    func aServerThatAcceptsNoBytesIsNotRetriedForever() async throws {
        try await withHTTPTestServer { origin in
            let location = origin.url("/up/1").absoluteString
            origin.route("/files") { _ in
                .status(.created, headers: [.location: location, .uploadComplete: "?0", .uploadOffset: "0"])
            }
            origin.route("/up/1") { request in
                request.method == .head
                    ? .status(
                        .noContent, headers: [.uploadComplete: "?0", .uploadOffset: "0", .uploadLength: "100000"])
                    : .status(.noContent)
            }
            try await withSession(.ephemeral) { session in
                var options = UploadOptions()
                options.initialDelay = .zero
                options.maximumAttempts = 3
                await expectFailure(.uploadInconsistent) { [options] in
                    try await session.uploadResumably(
                        Request(url: origin.url("/files"), method: .post), from: .data(Self.content(100_000)),
                        options: options)
                }
                #expect(origin.requests.count < 20)
            }
        }
    }

    // MARK: Whole

    @Test(
        "one request carries the whole upload and announces that it can be resumed (draft §10.1)",
        arguments: [0, 1, 100_000])
    func whole(size: Int) async throws {
        let content = Self.content(size)
        try await Self.rig { server, origin, session in
            let events = Notes()
            let (data, response) = try await session.uploadResumably(
                Self.request(origin, [.contentType: "video/mp4"]), from: .data(content), options: Self.eager
            ) { events.add($0) }
            #expect(String(decoding: data, as: UTF8.self) == "\(size) bytes" && response.http?.status == .ok)
            #expect(server.requests == ["POST /files"])
            Self.expectWhole(server, content)
            let fields = server.uploads.first?.request.headers
            #expect(fields?[.uploadComplete] == "?1" && fields?[.uploadLength] == "\(size)")
            #expect(fields?[.uploadInteropVersion] == "9" && fields?[.contentType] == "video/mp4")
            #expect(events.words.filter { $0 != "sent" } == ["created"])
        }
    }

    @Test(
        "a server without support, with another version or on another origin gets a plain upload", arguments: 0..<4)
    func plain(kind: Int) async throws {
        let content = Self.content(50_000)
        var setting = ResumableUploadServer.Configuration()
        if kind == 1 { setting.interopVersion = 3 }
        if kind == 2 { setting.announces = false }
        if kind == 3 { setting.location = { "http://elsewhere.example" + $0 } }
        try await Self.rig(setting) { server, origin, session in
            if kind == 0 { origin.route("/files") { .ok("\($0.bodyCount) bytes") } }
            let events = Notes()
            let (data, _) = try await session.uploadResumably(Self.request(origin), from: .data(content)) {
                events.add($0)
            }
            #expect(String(decoding: data, as: UTF8.self) == "50000 bytes")
            #expect(events.tokens.isEmpty)
            // A plain upload that is cut cannot be resumed; its error is that of any load.
            origin.route("/cut", faults: [.init(.requestBody(after: 1), .reset)]) { _ in .ok("") }
            let request = Request(url: origin.url("/cut"), method: .post)
            let error = await failure(.connectionLost) {
                try await session.uploadResumably(request, from: .data(Self.content(1 << 20)), options: Self.eager)
            }
            #expect(error?.uploadToken == nil)
        }
    }

    // MARK: Cut

    @Test(
        "an upload interrupted at many points resumes there, and no byte is stored twice",
        arguments: [
            ResumableUploadServer.Fault.Point.announced, .received(1), .received(4095), .received(65_536),
            .received(199_999), .received(200_000),
        ], [HTTPTestServer.Fault.Effect.reset, .close, .cut])
    func cut(_ point: ResumableUploadServer.Fault.Point, _ effect: HTTPTestServer.Fault.Effect) async throws {
        let content = Self.content(200_000)
        try await Self.rig { server, origin, session in
            server.inject(.init(point, effect))
            let events = Notes()
            let (data, response) = try await session.uploadResumably(
                Self.request(origin, [.authorization: "Bearer x", "X-Tenant": "north", .contentType: "a/b"]),
                from: .data(content),
                options: Self.eager
            ) { events.add($0) }
            #expect(String(decoding: data, as: UTF8.self) == "200000 bytes" && response.http?.status == .ok)
            Self.expectWhole(server, content)
            let path = try #require(server.uploads.first?.path)
            #expect(server.requests == ["POST /files", "HEAD \(path)", "PATCH \(path)"])
            #expect(events.tokens.map(\.url) == [origin.url(path)])
            #expect(events.words.filter { $0 == "interrupted" || $0.hasPrefix("resumed") }.count == 2)
            // A request without content leaves the connection usable.
            #expect(Set(origin.requests.suffix(2).map(\.connection)).count == 1)
            // The identity of the client stays the same; the type of the body differs.
            for sent in origin.requests.suffix(2) {
                #expect(sent.headers[.authorization] == "Bearer x" && sent.headers["X-Tenant"] == "north")
                #expect(sent.headers[.contentType] == (sent.method == .patch ? "application/partial-upload" : nil))
                #expect(sent.headers[.uploadInteropVersion] == "9" && sent.headers[.uploadLength] == nil)
            }
        }
    }

    @Test("an upload interrupted repeatedly completes as long as it makes progress")
    func cutAgain() async throws {
        let content = Self.content(300_000)
        let file = try TemporaryFile(content)
        try await Self.rig { server, origin, session in
            for place in stride(from: Int64(20_000), to: 300_000, by: 20_000) {
                server.inject(.init(.received(place), .reset))
            }
            var options = Self.eager
            options.maximumAttempts = 1
            let (_, response) = try await session.uploadResumably(
                Self.request(origin), from: .file(file.url), options: options)
            #expect(response.http?.status == .ok)
            Self.expectWhole(server, content)
            #expect(server.transfers.count == 15)
        }
    }

    @Test("attempts without progress are counted; the error has the token, and the upload can be resumed with it")
    func attempts() async throws {
        let content = Self.content(100_000)
        try await Self.rig { server, origin, session in
            server.inject(.init(.received(30_000), .reset))
            for _ in 0..<4 { server.inject(.init(.asked, .reset)) }
            var options = Self.eager
            options.maximumAttempts = 3
            let request = Self.request(origin)
            // HEAD may be retried on a stale connection; these connections are new.
            let error = await failure(.connectionLost) {
                try await session.uploadResumably(request, from: .data(content), options: options)
            }
            let token = try #require(error?.uploadToken)
            #expect(server.requests.count { $0.hasPrefix("HEAD") } == 3)
            let again = try UploadToken(token.text)
            _ = try await session.uploadResumably(request, from: .data(content), resuming: again, options: options)
            Self.expectWhole(server, content)
        }
    }

    @Test("a part that is lost before any byte is accepted counts once, and the loss is the error")
    func lostParts() async throws {
        let content = Self.content(100_000)
        try await Self.rig { server, origin, session in
            server.inject(.init(.announced, .reset))
            for _ in 0..<4 { server.inject(.init(.appending, .reset)) }
            var options = Self.eager
            options.maximumAttempts = 3
            let request = Self.request(origin)
            let error = await failure(.connectionLost) {
                try await session.uploadResumably(request, from: .data(content), options: options)
            }
            #expect(error?.uploadToken != nil)
            #expect(server.requests.count { $0.hasPrefix("PATCH") } == 3)
        }
    }

    @Test("the delay between attempts doubles, is measured by the clock, and is at least what the server asks for")
    func waits() async throws {
        let clock = ManualClock()
        var configuration = Configuration.ephemeral
        configuration.timeouts.idle = nil
        configuration.use(clock)
        let content = Self.content(100_000)
        try await Self.rig(.init(), configuration) { server, origin, session in
            server.inject(.init(.received(30_000), .reset))
            server.inject(.init(.asked, status: .serviceUnavailable, ["Retry-After": "7"]))
            let request = Self.request(origin)
            async let upload = session.uploadResumably(request, from: .data(content))
            try await clock.untilSleeping()
            clock.advance(by: .milliseconds(499))
            try await clock.untilSleeping()
            #expect(server.requests.count == 1)
            clock.advance(by: .milliseconds(501))
            try await origin.wait { $0.requests >= 2 }
            try await clock.untilSleeping()
            clock.advance(by: .milliseconds(6_999))
            #expect(server.requests.count == 2)
            try await clock.untilSleeping()
            clock.advance(by: .milliseconds(1))
            _ = try await upload
            Self.expectWhole(server, content)
        }
        let options = UploadOptions()
        #expect(
            options.delay(1, retryAfter: nil, share: 1) == 1_000_000_000
                && options.delay(3, retryAfter: nil, share: 0.5) == 2_000_000_000)
        #expect(
            options.delay(1000, retryAfter: nil, share: 1) == 60_000_000_000
                && options.delay(1, retryAfter: .max, share: 1) == 60_000_000_000)
    }

    @Test("cancelling the task or the session ends the delay", arguments: [false, true])
    func cancelledWhileWaiting(bySession: Bool) async throws {
        let server = ResumableUploadServer()
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            server.inject(.init(.received(10), .reset))
            let clock = ManualClock()
            let session = Session(.ephemeral.with { $0.use(clock) })
            let request = Self.request(origin)
            let upload = Task { try await session.uploadResumably(request, from: .data(Self.content(1000))) }
            try await clock.untilSleeping()
            if bySession { session.invalidateAndCancel() } else { upload.cancel() }
            let error = await failure(.cancelled) { try await upload.value }
            #expect(error?.uploadToken != nil)
            await expectEmpty(session)
        }
    }

    // MARK: Across sessions

    @Test("a cancelled upload is resumed in another session from the text of its token")
    func anotherSession() async throws {
        let content = Self.content(150_000)
        let file = try TemporaryFile(content)
        let server = ResumableUploadServer()
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            server.inject(.init(.received(100_000), .stall))
            let request = Self.request(origin)
            let created = Notes()
            try await withSession(.ephemeral) { session in
                let upload = Task {
                    try await session.uploadResumably(request, from: .file(file.url)) { created.add($0) }
                }
                try await origin.wait { $0.stalled == 1 }
                try await created.events.wait { _ in !created.tokens.isEmpty }
                upload.cancel()
                let error = await failure(.cancelled) { try await upload.value }
                #expect(error?.uploadToken == created.tokens.first)
            }
            let text = try #require(created.tokens.first).text
            let token = try UploadToken(text)
            #expect(token.length == 150_000 && token.file?.path() == file.url.path())
            let events = Notes()
            try await withSession(.ephemeral) { session in
                _ = try await session.uploadResumably(request, from: .file(file.url), resuming: token) {
                    events.add($0)
                }
            }
            Self.expectWhole(server, content)
            #expect(events.words.first == "acknowledged 100000" && events.words.contains("resumed 100000"))
            #expect(server.transfers.map(\.count) == [100_000, 50_000])
        }
    }

    @Test(
        "a complete upload is recognised, and its response repeated if the server supports it",
        arguments: [false, true])
    func lostAnswer(repeats: Bool) async throws {
        var setting = ResumableUploadServer.Configuration()
        setting.repeatsAnswer = repeats
        let content = Self.content(5000)
        try await Self.rig(setting) { server, origin, session in
            server.inject(.init(.completed, .reset))
            let (data, response) = try await session.uploadResumably(
                Self.request(origin), from: .data(content), options: Self.eager)
            #expect(String(decoding: data, as: UTF8.self) == (repeats ? "5000 bytes" : ""))
            #expect(response.http?.status == (repeats ? .ok : .noContent))
            #expect(response.http?.headers["Upload-Complete"] == "?1")
            Self.expectWhole(server, content)
        }
    }

    // MARK: Unexpected offsets

    @Test("an offset other than expected is used if possible, and refused otherwise")
    func offsets() async throws {
        let content = Self.content(100_000)
        try await Self.rig { server, origin, session in
            // The offset in the response to HEAD is outdated when PATCH arrives.
            server.inject(.init(.received(40_000), .reset))
            server.inject(.init(.appending, status: .conflict, ["Upload-Offset": "40000", "Upload-Complete": "?0"]))
            let request = Self.request(origin)
            _ = try await session.uploadResumably(request, from: .data(content), options: Self.eager)
            Self.expectWhole(server, content)
        }
        for (fields, reason) in [
            ((Int64(100_001), "?0"), LoadError.Reason.uploadInconsistent), ((39_999, "?0"), .uploadInconsistent),
            ((-1, "?0"), .uploadInconsistent),
        ] as [((Int64, String), LoadError.Reason)] {
            try await Self.rig { server, origin, session in
                server.inject(.init(.received(40_000), .reset))
                server.inject(.init(.asked, status: .noContent, ["Upload-Offset": "40000", "Upload-Complete": "?0"]))
                server.inject(.init(.appending, .reset))
                var options = Self.eager
                options.maximumAttempts = 2
                for _ in 0..<3 {
                    server.inject(
                        .init(
                            .asked, status: .noContent, ["Upload-Offset": "\(fields.0)", "Upload-Complete": fields.1]))
                }
                await expectFailure(reason) { [options] in
                    try await session.uploadResumably(Self.request(origin), from: .data(content), options: options)
                }
            }
        }
    }

    @Test("a changed file is refused before any byte is sent; a copy with the same time is accepted")
    func changedFile() async throws {
        let content = Self.content(200_000)
        let file = try TemporaryFile(content)
        try await Self.rig { server, origin, session in
            server.inject(.init(.received(100_000), .reset))
            server.inject(.init(.asked, status: .forbidden))
            let request = Self.request(origin)
            let error = await failure(.uploadRefused) {
                try await session.uploadResumably(request, from: .file(file.url), options: Self.eager)
            }
            let token = try #require(error?.uploadToken)
            let asked = server.requests.count
            var changed = content
            changed[0] ^= 1
            try changed.write(to: file.url)
            let refused = await failure(.uploadSourceChanged) {
                try await session.uploadResumably(request, from: .file(file.url), resuming: token)
            }
            #expect(refused?.uploadToken == token)
            #expect(refused?.detail == "\(file.path) is not what it was when the upload began")
            let other = await failure(.uploadSourceChanged) {
                try await session.uploadResumably(request, from: .data(content), resuming: token)
            }
            #expect(other?.detail == "the source is not what it was when the upload began")
            #expect(server.requests.count == asked)
        }
    }

    @Test("a file that changes during the upload is not sent as a mixture")
    func changingFile() async throws {
        let content = Self.content(200_000)
        let file = try TemporaryFile(content)
        try await Self.rig { server, origin, session in
            server.inject(.init(.received(100_000), .reset))
            let request = Self.request(origin)
            let error = await failure(.uploadSourceChanged) {
                try await session.uploadResumably(request, from: .file(file.url), options: Self.eager) { event in
                    if case .interrupted = event { try Self.content(199_999).write(to: file.url) }
                }
            }
            #expect(error?.detail == "\(file.path) is not what it was when the upload began")
            #expect(server.uploads.first?.isComplete == false)
        }
    }

    @Test("damaged and truncated tokens, and those of another request or origin, are refused")
    func tokens() async throws {
        let identity = UploadIdentity(length: 5, modified: 7, digest: "010203", path: "/tmp/ä b\n")
        let request = Request(url: try url("http://example.org/files"), method: .post)
        let token = UploadToken(
            url: try url("http://example.org/u/1?k=v"), identity: identity, target: UploadToken.target(of: request))
        let text = token.text
        #expect(try UploadToken(text) == token && UploadToken(" \(text.prefix(20))\n \(text.dropFirst(20))\n") == token)
        #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !token.description.contains("u/1"))
        for index in text.indices {
            var damaged = text
            damaged.replaceSubrange(index...index, with: text[index] == "a" ? "b" : "a")
            await expectFailure(.invalidUploadToken, .local, .preparing, damaged) { try UploadToken(damaged) }
            await expectFailure(.invalidUploadToken) { try UploadToken(String(text[..<index])) }
        }
        for other in [
            "", "urlupload2" + text.dropFirst(10), text + "x", "urlupload1..", String(repeating: "A", count: 1 << 20),
        ] {
            await expectFailure(.invalidUploadToken) { try UploadToken(other) }
        }
        let session = Session(.ephemeral)
        for (address, method) in [
            ("http://example.org/other", Method.post), ("http://example.org/files", .put),
            ("http://b.example/files", .post),
        ] {
            let foreign = Request(url: try url(address), method: method)
            await expectFailure(.uploadTokenMismatch) {
                try await session.uploadResumably(foreign, from: .data(Data(count: 5)), resuming: token)
            }
            await expectFailure(.uploadTokenMismatch) { try await session.cancelUpload(token, of: foreign) }
        }
        // The checksum is correct, but the URL would send credentials to another server.
        let strange = UploadToken(
            url: try url("http://evil.example/u/1"), identity: identity, target: UploadToken.target(of: request))
        await expectFailure(.uploadTokenMismatch) {
            try await session.uploadResumably(request, from: .data(Data()), resuming: strange)
        }
        await expectFailure(.badRequest) {
            try await session.uploadResumably(Request(url: request.url), from: .data(Data()))
        }
        await expectEmpty(session)
    }

    @Test("a server that has lost the upload ends it")
    func forgotten() async throws {
        try await Self.rig { server, origin, session in
            server.inject(.init(.received(500), .reset))
            let request = Self.request(origin)
            let error = await failure(.uploadNotFound, .remote) {
                try await session.uploadResumably(request, from: .data(Self.content(1000)), options: Self.eager) {
                    event in
                    if case .interrupted = event { server.forget() }
                }
            }
            #expect(error?.uploadToken == nil)
        }
    }

    @Test("a server error is retried; a response to the complete upload is not", arguments: [503, 500, 429])
    func failures(status: Int) async throws {
        let content = Self.content(10_000)
        let code = try #require(Status(status))
        try await Self.rig { server, origin, session in
            server.inject(.init(.received(6_000), .reset))
            server.inject(.init(.asked, status: code))
            server.inject(.init(.appending, status: code))
            _ = try await session.uploadResumably(Self.request(origin), from: .data(content), options: Self.eager)
            Self.expectWhole(server, content)
        }
        let server = ResumableUploadServer()
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin) { _ in .status(code) }
            server.inject(.init(.received(6_000), .reset))
            let session = Session(.ephemeral)
            let (_, response) = try await session.uploadResumably(
                Self.request(origin), from: .data(content), options: Self.eager)
            #expect(response.http?.status == code && server.requests.count == 3)
            await expectEmpty(session)
        }
    }

    // MARK: Parts and limits

    @Test(
        "parts are at most as large as the caller and the server allow",
        arguments: [
            (40_000, nil), (1_000_000, 25_000), (nil, 25_000), (30_000, 25_000), (100_000, nil),
        ] as [(Int64?, Int64?)])
    func parts(wanted: Int64?, limit: Int64?) async throws {
        let content = Self.content(100_000)
        var setting = ResumableUploadServer.Configuration()
        setting.maximumAppendSize = limit
        setting.maximumAge = 3600
        try await Self.rig(setting) { server, origin, session in
            var options = Self.eager
            options.partSize = wanted
            let (data, _) = try await session.uploadResumably(
                Self.request(origin), from: .data(content), options: options)
            #expect(String(decoding: data, as: UTF8.self) == "100000 bytes")
            let upload = try #require(server.uploads.first)
            #expect(Data(upload.content) == content && upload.digest == Digest.hex(content))
            let most = min(wanted ?? .max, limit ?? .max)
            #expect(server.transfers.allSatisfy { $0.count <= most })
            #expect(server.transfers.last?.completes == true)
            if limit == nil {
                #expect(server.transfers.map(\.count) == (wanted == 40_000 ? [40_000, 40_000, 20_000] : [100_000]))
            }
        }
    }

    @Test("parts have the server's minimum size; a server that accepts no possible size is refused")
    func smallestParts() async throws {
        let content = Self.content(100_000)
        var setting = ResumableUploadServer.Configuration()
        setting.minimumAppendSize = 30_000
        try await Self.rig(setting) { server, origin, session in
            var options = Self.eager
            options.partSize = 40_000
            server.inject(.init(.received(40_000), .reset))
            _ = try await session.uploadResumably(Self.request(origin), from: .data(content), options: options)
            options.partSize = 10
            #expect(server.uploads.first?.isComplete == true)
        }
        var limits = UploadLimits()
        limits.smallestPart = 30
        #expect(limits.end(of: 0, length: 100, wanted: 10) == 30 && limits.end(of: 90, length: 100, wanted: 10) == 100)
        limits.largestPart = 20
        #expect(
            limits.end(of: 0, length: 100, wanted: 10) == nil && limits.end(of: 90, length: 100, wanted: nil) == 100)
        limits.largestPart = 0
        #expect(limits.end(of: 0, length: 100, wanted: nil) == nil)
        #expect(
            UploadLimits("max-size=1, other=\"x\";a") != nil && UploadLimits("max-size=-1") == nil
                && UploadLimits("max size") == nil)
    }

    @Test("an upload beyond max-size is aborted, and cancelled on the server")
    func tooLarge() async throws {
        // The limit arrives with the 104, after the server has begun to accept bytes.
        var setting = ResumableUploadServer.Configuration()
        setting.maximumSize = 1000
        try await Self.rig(setting) { server, origin, session in
            let (_, response) = try await session.uploadResumably(Self.request(origin), from: .data(Self.content(1001)))
            #expect(response.http?.status == .contentTooLarge && server.uploads.isEmpty)
        }
        try await withHTTPTestServer { origin in
            origin.route("/u") { _ in .status(.noContent) }
            origin.route("/files", readsBody: false) { _ in
                .raw(
                    [
                        """
                        HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /u\r\nUpload-Limit: max-size=1000\r\n\
                        Upload-Draft-Interop-Version: 9\r\n\r\n
                        """
                    ], then: .stall)
            }
            let session = Session(.ephemeral)
            await expectFailure(.uploadTooLarge, .remote) {
                try await session.uploadResumably(
                    Self.request(origin), from: .data(Self.content(1 << 20)), options: Self.eager)
            }
            #expect(origin.requests.last?.method == .delete)
            await expectEmpty(session)
        }
    }

    @Test("a server that treats the first part as the whole is detected")
    func notSupported() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/files") { _ in .ok("") }
            var options = Self.eager
            options.partSize = 10
            let session = Session(.ephemeral)
            await expectFailure(.uploadNotSupported, .remote) { [options] in
                try await session.uploadResumably(
                    Self.request(origin), from: .data(Self.content(100)), options: options)
            }
            await expectEmpty(session)
        }
    }

    // MARK: Origins and secrets

    @Test("the upload URL may change within its origin only", arguments: [307, 308, 301, 302, 303])
    func redirects(status: Int) async throws {
        let content = Self.content(10_000)
        let code = try #require(Status(status))
        try await withHTTPTestServer { other in
            other.route("/stolen") { _ in .status(.noContent, headers: ["Upload-Offset": "0", "Upload-Complete": "?0"])
            }
            try await Self.rig { server, origin, session in
                server.inject(.init(.received(5_000), .reset))
                server.inject(.init(.asked, status: code, ["Location": other.url("/stolen").absoluteString]))
                let request = Self.request(origin, [.authorization: "Bearer x"])
                await expectFailure(.redirectRefused) {
                    try await session.uploadResumably(request, from: .data(content), options: Self.eager)
                }
                #expect(other.requests.isEmpty)
            }
        }
        try await Self.rig { server, origin, session in
            let request = Self.request(origin)
            server.inject(.init(.received(5_000), .reset))
            let result = await Self.result {
                try await session.uploadResumably(request, from: .data(content), options: Self.eager) { event in
                    guard case .created(let token) = event else { return }
                    server.inject(.init(.asked, status: code, ["Location": token.url.path()]))
                }
            }
            #expect((try? result.get()) != nil || status < 304)
        }
    }

    @Test("an upload is cancelled with DELETE and its token removed; a repeated call is no error")
    func cancel() async throws {
        try await Self.rig { server, origin, session in
            server.inject(.init(.received(500), .reset))
            server.inject(.init(.asked, status: .forbidden))
            let request = Self.request(origin)
            let error = await failure(.uploadRefused) {
                try await session.uploadResumably(request, from: .data(Self.content(1000)), options: Self.eager)
            }
            let token = try #require(error?.uploadToken)
            try await session.cancelUpload(token, of: request)
            #expect(server.uploads.isEmpty && server.requests.last?.hasPrefix("DELETE") == true)
            try await session.cancelUpload(token, of: request)
        }
    }

    @Test("an error of the closure ends the upload, and the token is kept")
    func closureThrows() async throws {
        struct Full: Error {}
        try await Self.rig { server, origin, session in
            let request = Self.request(origin)
            let error = await failure(.decisionFailed) {
                try await session.uploadResumably(request, from: .data(Self.content(100_000))) { event in
                    if case .created = event { throw Full() }
                }
            }
            #expect(error?.uploadToken != nil && (error?.underlying as? UploadInterruption)?.cause is Full)
        }
    }

    @Test("offsets in 104 responses are used; more of them than the session's limit cost a request, not the upload")
    func progress() async throws {
        var setting = ResumableUploadServer.Configuration()
        setting.progressStep = 10_000
        let content = Self.content(300_000)
        try await Self.rig(setting) { server, origin, session in
            let events = Notes()
            _ = try await session.uploadResumably(Self.request(origin), from: .data(content), options: Self.eager) {
                events.add($0)
            }
            let upload = try #require(server.uploads.first)
            #expect(upload.isComplete && Data(upload.content) == content)
            #expect(events.words.contains { $0.hasPrefix("acknowledged") })
        }
    }

    @Test("a stop ends the look at the source of an upload, whether the caller's task is cancelled or the session ends")
    func stopBeforeTheFirstRequest() async throws {
        // Without a look at the stop each of these ends with `fileNotFound`.
        let missing = UploadSource.file(URL(filePath: "/nowhere/to/be/found"))
        let request = Request(url: try url("http://127.0.0.1:1/files"), method: .post)
        let session = Session(.ephemeral)
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await expectFailure(.cancelled) { try await session.uploadResumably(request, from: missing) }
        }.value
        await expectEmpty(session)
        await expectFailure(.sessionInvalidated) { try await session.uploadResumably(request, from: missing) }
        let stopped = StopToken()
        stopped.stop(.invalidated)
        let content = Data(repeating: 7, count: (2 << 20) + 5)
        await expectFailure(.cancelled, .local, .preparing) {
            try await UploadSource.data(content).identity(stopped)
        }
        let identity = try await UploadSource.data(content).identity(.never)
        #expect(identity.digest == Digest.hex(content) && identity.length == Int64(content.count))
    }

    private static func result<R>(_ work: nonisolated(nonsending) () async throws -> R) async -> Result<R, any Error> {
        do { return .success(try await work()) } catch { return .failure(error) }
    }
}

/// The events of an upload.
private final class Notes: Sendable {
    let events = Watched<[UploadEvent]>([])
    func add(_ event: UploadEvent) { events.append(event) }

    var tokens: [UploadToken] {
        events.value.compactMap { if case .created(let token) = $0 { token } else { nil } }
    }

    var words: [String] {
        events.value.map { event in
            switch event {
            case .created: "created"
            case .sent: "sent"
            case .acknowledged(let offset): "acknowledged \(offset)"
            case .interrupted: "interrupted"
            case .resumed(let offset): "resumed \(offset)"
            }
        }
    }
}

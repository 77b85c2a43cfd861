// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Checklist 20, 38, 53, 56, 128, 130-135 and security 75-79: bodies that become files.
@Suite(.timeLimit(.minutes(4)))
struct DownloadRows {
    static let content = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    /// The folder of a test, a session that keeps its temporary files there, and an origin that serves ranges.
    static func with(
        etag: String? = "\"one\"", stallsAfter: Int64? = nil, _ setting: HTTPTestServer.Configuration = .init(),
        _ use: (TemporaryFolder, Session, HTTPTestServer) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        var configuration = Configuration.ephemeral
        configuration.temporaryDirectory = URL(filePath: folder.path)
        try await withHTTPTestServer(setting) { origin in
            origin.route("/file", faults: stallsAfter.map { [.init(.responseBody(after: $0), .stall)] } ?? []) {
                Self.answer($0, etag)
            }
            origin.route("/rest") { Self.answer($0, etag) }
            let session = Session(configuration)
            try await use(folder, session, origin)
            await expectEmpty(session)
        }
        // A file is deleted with the last reference to its load, which a task may hold that is just ending.
        try await eventuallyFiles(folder.names) { $0.isEmpty }
    }

    /// Returns the content, or the rest of it if the entity tag matches.
    static func answer(_ request: HTTPTestServer.RecordedRequest, _ etag: String?) -> HTTPTestServer.Response {
        var headers: Headers = [.contentType: "application/octet-stream"]
        if let etag { headers[.etag] = etag }
        guard let range = request.headers[.range], request.headers[.ifRange] == etag, etag != nil,
            let first = Int(range.dropFirst(6).dropLast())
        else { return .ok(.bytes([UInt8](content)), headers: headers) }
        headers[.contentRange] = "bytes \(first)-\(content.count - 1)/\(content.count)"
        return .status(.partialContent, headers: headers, body: .bytes([UInt8](content[first...])))
    }

    /// Returns the token of a download interrupted after this many bytes.
    static func cut(_ session: Session, _ origin: HTTPTestServer) async throws -> ResumeToken {
        let task = session.downloadTask(Request(url: origin.url("/file"))).resumed()
        try await origin.wait { $0.stalled == 1 }
        try await task.received()
        let token = await task.cancelProducingResumeToken()
        origin.releaseStalls()
        return try #require(token)
    }

    // MARK: Suspended

    @Test(
        "a download suspended while its server closed the connection continues over another one",
        arguments: ["\"one\"", "W/\"weak\"", "\"other\""], [false, true])
    func leftWhileSuspended(etag: String, becomes: Bool) async throws {
        let clock = ManualClock()
        try await Self.with(.init(clock: clock)) { folder, session, origin in
            let faults: [HTTPTestServer.Fault] = [
                .init(.responseBody(after: 200_000), .delay(.seconds(1))), .init(.responseBody(after: 200_001), .cut),
            ]
            origin.route("/file", faults: faults) { Self.answer($0, etag == "\"other\"" ? "\"one\"" : etag) }
            var decisions = Decisions()
            if becomes { decisions.response = Decision { _ in .becomeDownload(DownloadOptions()) } }
            let request = Request(url: origin.url("/file"))
            let data = becomes ? session.dataTask(request, decisions: decisions) : nil
            let became = data?.events
            data?.resume()
            var handed: LoadTask<DownloadedFile>?
            if let became { for await case .becameDownload(let download) in became { handed = download } }
            let task = handed ?? session.downloadTask(request)
            let events = task.events
            if !becomes { task.resume() }
            try await task.received(200_000)
            task.suspend()
            // By then the server has other content, or the same.
            origin.route("/file") { Self.answer($0, etag) }
            clock.advance(by: .seconds(1))
            try await origin.wait { $0.open == 0 }
            task.resume()
            guard etag == "\"one\"" else {
                let error = await failure(.truncated) { try await task.value }
                #expect((error?.resumeToken != nil) == (etag == "\"other\""))
                error?.resumeToken?.discard()
                return
            }
            let file = try await task.value
            #expect(contents(file.url) == Self.content)
            #expect(
                origin.requests.last?.headers[.range].map { ["bytes=200000-", "bytes=200001-"].contains($0) } == true)
            var order = LoadEventOrder()
            var resumptions = 0
            for await event in events {
                if becomes { break }
                let isLegal = order.accept(event)
                #expect(isLegal, "\(order)")
                if case .resumed(let offset, let expected) = event {
                    resumptions += 1
                    #expect(offset >= 200_000 && expected == Int64(Self.content.count))
                }
            }
            #expect(becomes || resumptions == 1)
            let metrics = try await task.metrics
            #expect(metrics.transactions.count == 2)
        }
    }

    // MARK: Files

    @Test("a body is downloaded to a file; progress counts the bytes in the file (checklist 38, 53)")
    func temporary() async throws {
        try await Self.with { folder, session, origin in
            let task = session.downloadTask(Request(url: origin.url("/file")))
            let events = task.events
            task.resume()
            var file: DownloadedFile? = try await task.value
            #expect(contents(file?.url) == Self.content)
            // Security 75: only the owner may read the file, and its name cannot be guessed.
            #expect(
                folder.names.count == 1 && folder.names[0].hasPrefix(".urlloading-") && folder.names[0].utf8.count == 36
            )
            #expect(folder.mode(folder.names[0]) == 0o600)
            var order = LoadEventOrder()
            var last: Int64 = 0
            for await event in events {
                let isLegal = order.accept(event)
                #expect(isLegal)
                if case .received(let bytes) = event {
                    #expect(bytes.total > last && bytes.expected == Int64(Self.content.count))
                    last = bytes.total
                }
            }
            #expect(order.isComplete && last == Int64(Self.content.count))
            #expect(file?.size == last && file?.response.http?.status == .ok)
            #expect(origin.requests.last?.headers[.acceptEncoding] == "identity")
            file = nil
            _ = file
        }
    }

    @Test(
        "a download appears at its destination when it is complete, and replaces a file only if allowed (checklist 20)")
    func destination() async throws {
        try await Self.with { folder, session, origin in
            let place = folder.url("data.bin")
            try await session.download(Request(url: origin.url("/file")), to: place, synchronizing: true)
            #expect(folder.names == ["data.bin"])
            #expect(contents(place) == Self.content)
            try Data("old".utf8).write(to: place)
            let keeping = session.downloadTask(
                Request(url: origin.url("/file")), options: DownloadOptions(destination: place, overwrites: false))
            keeping.resume()
            await expectFailure(.cannotMoveFile) { try await keeping.value }
            #expect(contents(place) == Data("old".utf8))
            try await session.download(Request(url: origin.url("/file")), to: place)
            #expect(contents(place) == Self.content)
            await expectFailure(.cannotCreateFile) {
                try await session.download(Request(url: origin.url("/file")), to: folder.url("no/x"))
            }
            let refused = await failure(.cannotCreateFile) {
                try await session.download(Request(url: origin.url("/file")), to: URL(filePath: "/proc/x"))
            }
            #expect(refused?.detail?.contains("does not exist") == false)
            unlink(place.path())
        }
    }

    @Test("a scope's file is deleted at its end unless it was moved, also when the scope throws")
    func scope() async throws {
        try await Self.with { folder, session, origin in
            try await session.download(Request(url: origin.url("/file"))) { file in
                #expect(folder.names.count == 1)
                try file.move(to: folder.url("kept"))
                #expect(file.url == folder.url("kept"))
                let content = try file.content(upTo: 2_000_000)
                #expect(content == Self.content)
            }
            #expect(folder.names == ["kept"])
            unlink(folder.url("kept").path())
            await #expect(throws: CancellationError.self) {
                try await session.download(Request(url: origin.url("/file"))) { _ in throw CancellationError() }
            }
            // A download may have a request body (checklist 128).
            let request = Request(url: origin.url("/rest"), method: .post, body: .data(Data("x".utf8)))
            try await session.download(request) { file in #expect(file.size == Int64(Self.content.count)) }
            #expect(origin.requests.last?.bodyCount == 1)
        }
    }

    @Test("a failed download leaves no file, nor does one without references")
    func leftovers() async throws {
        try await Self.with(etag: nil, stallsAfter: 700_000) { folder, session, origin in
            for ending in 0..<3 {
                var task: LoadTask<DownloadedFile>? = session.downloadTask(Request(url: origin.url("/file")))
                task?.resume()
                try await origin.wait { $0.accepted == ending + 1 && $0.stalled == 1 }
                try await task?.received()
                switch ending {
                // Without a validator there is no token (checklist 134). The download fails as cancelled (checklist
                // 56).
                case 0:
                    #expect(await task?.cancelProducingResumeToken() == nil)
                    await expectFailure(.cancelled) { try await task?.value }
                case 1:
                    task?.cancel()
                    await expectFailure(.cancelled) { try await task?.value }
                default: break
                }
                task = nil
            }
            origin.releaseStalls()
            try await eventuallyFiles(folder.names) { $0.isEmpty }
        }
    }

    @Test(
        "a suggested name is a name, never a path (security 77)",
        arguments: [
            ("attachment; filename=\"../../etc/passwd\"", "passwd"), ("attachment; filename=a\\b.txt", "b.txt"),
            ("attachment; filename*=UTF-8''na%C3%AFve%2F.bin", "bin"), ("attachment; filename=\"..\"", "x.tar"),
            (nil, "x.tar"),
        ])
    func suggested(_ disposition: String?, _ expected: String) throws {
        var headers = Headers()
        if let disposition { headers[.contentDisposition] = disposition }
        let response = Response(url: try url("http://h/a/x.tar?q"), http: HTTPHead(status: .ok, headers: headers))
        #expect(response.suggestedFileName == expected)
        #expect(Response(url: try url("http://h/")).suggestedFileName == "download")
    }

    @Test("a long name is cut between characters, at a cost in proportion to its length")
    func longName() {
        // Flags have two of these. To find where the last flag begins takes a look at all before it.
        let name = String(repeating: "%F0%9F%87%A6", count: 50_000)
        let made = SuggestedName.make(disposition: "attachment; filename*=UTF-8''\(name)", nil, fallback: "download")
        #expect(made == String(repeating: "\u{1F1E6}", count: 62) && made.utf8.count == 248)
    }

    // MARK: Resuming

    @Test(
        "an interrupted download resumes at its offset, and no byte is transferred twice (checklist 130-132)",
        arguments: [0, 1, 2])
    func resuming(_ way: Int) async throws {
        try await Self.with(stallsAfter: 700_000) { folder, session, origin in
            var token = try await Self.cut(session, origin)
            #expect(token.offset > 0 && token.expectedLength == Int64(Self.content.count))
            let offset = token.offset
            // The token itself, its text, and its text with the content, as for another machine.
            if way == 1 { token = try ResumeToken(token.data) }
            if way == 2 { token = try ResumeToken(token.dataWithContent()) }
            origin.route("/file") { Self.answer($0, "\"one\"") }
            let place = folder.url("whole")
            let task = session.downloadTask(resuming: token, options: DownloadOptions(destination: place))
            let events = task.events
            task.resume()
            _ = try await task.value
            #expect(contents(place) == Self.content)
            #expect(origin.requests.last?.headers[.range] == "bytes=\(offset)-")
            #expect(origin.requests.last?.headers[.ifRange] == "\"one\"")
            var seen: [String] = []
            for await event in events {
                if case .resumed(let at, let expected) = event {
                    #expect(at == offset && expected == Int64(Self.content.count))
                    seen.append("resumed")
                }
                if case .received(let bytes) = event {
                    if seen.last != "received" { seen.append("received") }
                    #expect(bytes.total > offset && bytes.expected == Int64(Self.content.count))
                }
            }
            #expect(seen == ["resumed", "received"])
            token = try ResumeToken(ResumeToken(Self.record(), nil).data)
            unlink(place.path())
        }
    }

    @Test("errors carry the token; over repeated resumption every byte arrives once (checklist 133)")
    func cutAgain() async throws {
        try await Self.with { folder, session, origin in
            let cuts = Watched<[Int]>([])
            // Each response breaks off, until little is left.
            origin.route("/cut") { request in
                let whole = Self.answer(request, "\"one\"")
                let first = request.headers[.range].flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
                cuts.append(first)
                guard Self.content.count - first > 400_000 else { return whole }
                let head =
                    first == 0
                    ? "HTTP/1.1 200 OK\r\n"
                    : "HTTP/1.1 206 Partial Content\r\n"
                        + "Content-Range: bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)\r\n"
                let text = "\(head)ETag: \"one\"\r\nContent-Length: \(Self.content.count - first)\r\n\r\n"
                return .raw(
                    [.bytes(Array(text.utf8)), .bytes([UInt8](Self.content[first..<first + 300_000]))], then: .close)
            }
            let place = folder.url("whole")
            var failure = await failure(.truncated) {
                try await session.download(Request(url: origin.url("/cut")), to: place)
            }
            var turns = 0
            while let token = failure?.resumeToken, turns < 10 {
                turns += 1
                do {
                    try await session.download(resuming: token, to: place)
                    break
                } catch { failure = error as? LoadError }
            }
            #expect(cuts.value == [0, 300_000, 600_000, 900_000, 1_200_000])
            #expect(contents(place) == Self.content)
            unlink(place.path())
        }
    }

    @Test("content that has changed is downloaded from the beginning, and the event says so (security 79)")
    func changed() async throws {
        try await Self.with(stallsAfter: 700_000) { folder, session, origin in
            let token = try await Self.cut(session, origin)
            let other = Data(Self.content.reversed())
            origin.route("/file") { _ in .ok(.bytes([UInt8](other)), headers: [.etag: "\"two\""]) }
            let place = folder.url("whole")
            let task = session.downloadTask(resuming: token, options: DownloadOptions(destination: place))
            let events = task.events
            task.resume()
            _ = try await task.value
            #expect(contents(place) == other)
            var first: LoadEvent?
            for await event in events { if case .resumed = event { first = event } }
            #expect(first.map { "\($0)" } == "resumed 0/\(other.count)")
            unlink(place.path())
        }
    }

    private static func record() -> ResumeToken.Record {
        ResumeToken.Record(
            url: "http://h.example/file", fields: [], validator: "\"one\"", offset: 3, length: 10, path: nil,
            bytes: Data("abc".utf8),
            tail: Digest.hex(Array("abc".utf8)), isEarly: false)
    }

    @Test("a damaged, foreign or modified token is refused, and no file outside is touched (security 78)")
    func refused() async throws {
        try await Self.with(stallsAfter: 700_000) { folder, session, origin in
            let token = try await Self.cut(session, origin)
            let data = token.data
            for index in stride(from: 0, to: data.count, by: 7) {
                var damaged = data
                damaged[index] ^= 1
                await expectFailure(.invalidResumeToken) { () async throws(LoadError) in try ResumeToken(damaged) }
            }
            for prefix in [0, 1, 20, data.count - 1] {
                await expectFailure(.invalidResumeToken) { () async throws(LoadError) in
                    try ResumeToken(data.prefix(prefix))
                }
            }
            await expectFailure(.invalidResumeToken) { () async throws(LoadError) in
                try ResumeToken(
                    Data(String(decoding: data, as: UTF8.self).replacing("Resume/1", with: "Resume/2").utf8))
            }
            func fails(_ change: (inout ResumeToken.Record) -> Void) async {
                var record = token.record
                change(&record)
                // The checksum is correct: an attacker who can write a token can compute it.
                guard let forged = try? ResumeToken(ResumeToken(record, nil).data) else { return }
                await expectFailure(.invalidResumeToken) {
                    try await session.download(resuming: forged, to: folder.url("x"))
                }
                #expect(!folder.names.contains("x"))
            }
            let victim = folder.url("victim")
            try Data(count: 2_000_000).write(to: victim)
            await fails { $0.path = victim.path() }
            await fails { $0.path = "/etc/passwd" }
            await fails { $0.path = "\(folder.path)/../\(folder.names[0])" }
            await fails { $0.offset -= 1 }
            await fails { $0.url = "file:///etc/passwd" }
            #expect(contents(victim)?.count == 2_000_000)
            unlink(victim.path())
            // The token of a file whose name is a link, or that others may write to.
            let own = try #require(token.record.path)
            let moved = folder.url("moved").path()
            rename(own, moved)
            symlink(moved, own)
            let read = try ResumeToken(data)
            await expectFailure(.cannotReadFile) { try await session.download(resuming: read, to: folder.url("x")) }
            unlink(own)
            rename(moved, own)
            chmod(own, 0o622)
            await expectFailure(.invalidResumeToken) { try await session.download(resuming: read, to: folder.url("x")) }
            chmod(own, 0o600)
            // For another URL, with a body, with another method.
            for request in [
                Request(url: try url("http://other.example/file")), Request(url: origin.url("/file"), method: .post),
                Request(url: origin.url("/file"), body: .data(Data())),
            ] {
                await expectFailure(.invalidResumeToken) {
                    try await session.download(resuming: read, request: request, to: folder.url("x"))
                }
            }
            #expect(origin.requests.count == 1)
            read.discard()
        }
    }

    @Test("tokens hold no credentials")
    func secrets() async throws {
        try await Self.with(stallsAfter: 700_000) { folder, session, origin in
            var request = Request(url: origin.url("/file"))
            request.headers = [.authorization: "Bearer s3cret", .cookie: "s3cret", .acceptLanguage: "de"]
            let task = session.downloadTask(request).resumed()
            try await origin.wait { $0.stalled == 1 }
            try await task.received()
            let token = try #require(await task.cancelProducingResumeToken())
            origin.releaseStalls()
            let text = String(decoding: token.data, as: UTF8.self)
            #expect(!text.contains("s3cret") && text.contains("Accept-Language"))
            #expect(!"\(token)".contains("s3cret"))
            token.discard()
        }
    }

    @Test("a token read during the download resumes with the bytes written since (checklist 135)")
    func early() async throws {
        try await Self.with(stallsAfter: 700_000) { folder, session, origin in
            let task = session.downloadTask(Request(url: origin.url("/file")))
            #expect(task.resumeToken == nil)
            task.resume()
            _ = try await task.response
            try await task.received()
            let data = try #require(task.resumeToken).data
            try await origin.wait { $0.stalled == 1 }
            try await task.received(500_000)
            let written = task.snapshot.received
            origin.route("/file") { Self.answer($0, "\"one\"") }
            // Two downloads writing to one file would corrupt it.
            await expectFailure(.invalidResumeToken) {
                try await session.download(resuming: ResumeToken(data), to: folder.url("whole"))
            }
            _ = await task.cancelProducingResumeToken()
            try await session.download(resuming: ResumeToken(data), to: folder.url("whole"))
            let range = try #require(origin.requests.last?.headers[.range])
            #expect(Int64(range.dropFirst(6).dropLast()) ?? 0 >= written)
            #expect(contents(folder.url("whole")) == Self.content)
            unlink(folder.url("whole").path())
            origin.releaseStalls()
        }
    }

    @Test(
        "the rules decide for each response whether it can be resumed",
        arguments: [
            ("GET", 200, ["ETag": "\"a\""], "\"a\""), ("GET", 206, ["ETag": "\"a\""], nil),
            ("GET", 200, ["ETag": "W/\"a\""], nil),
            ("GET", 200, [:], nil), ("GET", 200, ["ETag": "\"a\"", "Content-Encoding": "gzip"], nil),
            ("GET", 404, ["ETag": "\"a\""], nil),
            ("POST", 200, ["ETag": "\"a\""], nil), ("GET", 200, ["ETag": "\"a\"", "Accept-Ranges": "none"], nil),
            ("GET", 200, ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], nil),
            (
                "GET", 200,
                ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:50:36 GMT"], nil
            ),
            (
                "GET", 200,
                ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:50:37 GMT"],
                "Sun, 06 Nov 1994 08:49:37 GMT"
            ),
        ] as [(String, Int, [String: String], String?)])
    func validators(_ method: String, _ status: Int, _ fields: [String: String], _ expected: String?) throws {
        var headers = Headers()
        for (name, value) in fields { headers.append(FieldName(name), value) }
        let head = HTTPHead(status: try #require(Status(status)), headers: headers)
        #expect(ResumePlan.validator(of: head, method: Method(method))?.description == expected)
    }

    // MARK: Becoming

    @Test("a data task becomes a download without losing a byte, and gets no further events (checklist 49)")
    func becoming() async throws {
        try await Self.with { folder, session, origin in
            var decisions = Decisions()
            decisions.response = Decision { _ in .becomeDownload() }
            let task = session.dataTask(Request(url: origin.url("/file")), decisions: decisions)
            let events = task.events
            task.resume()
            var kinds: [String] = []
            var download: LoadTask<DownloadedFile>?
            for await event in events {
                kinds.append("\(event)".split(separator: " ").first.map(String.init) ?? "")
                if case .becameDownload(let next) = event { download = next }
            }
            #expect(kinds == ["responded", "becameDownload"])
            var file: DownloadedFile? = try await download?.value
            #expect(contents(file?.url) == Self.content)
            await expectFailure(.bodyUnavailable) { try await task.value }
            // The data task is over for the holder of its handle.
            #expect("\(task.snapshot)".hasPrefix("completed"))
            task.cancel()
            file = nil
            (download, _) = (nil, file)
            await expectFailure(.badDecision) {
                try await session.data(for: Request(url: origin.url("/file")), decisions: decisions)
            }
        }
    }

    @Test(
        "a data task becomes a stream that begins with the bytes after the head (checklist 49)",
        arguments: [false, true])
    func becomingStream(_ isFinishing: Bool) async throws {
        let peer = ScriptedPeer([
            .takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nwel"), .hold, .give("come"),
            .expect("thanks"), .end,
        ])
        var configuration = Configuration.ephemeral
        configuration.connect(to: peer)
        configuration.connections.maximumPerHost = 1
        let session = Session(configuration)
        var decisions = Decisions()
        decisions.response = Decision { _ in .becomeStream }
        let task = session.dataTask(Request(url: try url("http://h.example/")), decisions: decisions)
        let events = task.events
        task.resume()
        if isFinishing { session.finishTasksAndInvalidate() }
        var stream: StreamTask?
        for await event in events { if case .becameStream(let next) = event { stream = next } }
        await expectFailure(.bodyUnavailable) { try await task.value }
        // Its slot in the pool is free, although the connection is open.
        #expect(session.connectionsDescription == "empty")
        let taken = try #require(stream)
        taken.resume()
        let (first, _) = try await taken.read(atLeast: 3)
        #expect(first == Data("wel".utf8))
        peer.release()
        let (second, _) = try await taken.read(atLeast: 4)
        #expect(second == Data("come".utf8))
        try await taken.write(Data("thanks".utf8))
        #expect(try await taken.read().isEnd)
        #expect(peer.written().suffix(6) == Array("thanks".utf8)[...])
        taken.cancel()
        _ = await taken.ended()
        if !isFinishing {
            await expectFailure(.badDecision) {
                try await session.data(for: Request(url: try url("data:,x")), decisions: decisions)
            }
        }
        await expectEmpty(session)
    }

    @Test(
        "a response that becomes a stream is not stored",
        arguments: [
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 300 Multiple Choices\r\nLocation: /other\r\nContent-Length: 5\r\n\r\n",
        ])
    func becomingStreamUnstored(_ head: String) async throws {
        let peer = ScriptedPeer([.takeUntil("\r\n\r\n"), .give(head + "first"), .end])
        let session = Session(.ephemeral.with { $0.connect(to: peer) })
        var decisions = Decisions()
        decisions.response = Decision { _ in .becomeStream }
        let request = Request(url: try url("http://h.example/"))
        let task = session.dataTask(request, decisions: decisions)
        let events = task.events
        task.resume()
        var stream: StreamTask?
        for await event in events { if case .becameStream(let next) = event { stream = next } }
        let taken = try #require(stream)
        taken.resume()
        let (first, _) = try await taken.read(atLeast: 5)
        #expect(first == Data("first".utf8))
        let key = try #require(CacheKey(request))
        #expect(session.core.cache?.storage.variantsNow(key)?.isEmpty == true)
        taken.cancel()
        _ = await taken.ended()
        await expectEmpty(session)
    }
}

func contents(_ url: URL?) -> Data? { url.flatMap { try? Data(contentsOf: $0) } }

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// `DownloadOptions.parallelRanges`: a file that is loaded in several parts at once (RFC 9110 §13.1.5, §14).
@Suite(.timeLimit(.minutes(4)))
struct ParallelRows {
    static let content = [UInt8]((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    static let other = [UInt8](repeating: 0x58, count: content.count)
    static let first = 100_000

    /// A folder, a session, and an origin whose first response pauses after ``first`` bytes until the clock moves.
    struct Rig {
        let folder: TemporaryFolder
        let origin: HTTPTestServer
        let session: Session
        let clock: ManualClock
        var options: DownloadOptions
        var url: URL { origin.url("/file") }
        var ranges: [String] { origin.requests.compactMap { $0.headers[.range] } }

        func task(_ request: Request? = nil) -> LoadTask<DownloadedFile> {
            session.downloadTask(request ?? Request(url: url), options: options)
        }

        /// Waits for this many requests for ranges, and lets the first response go on.
        func goOn(after count: Int) async throws {
            try await origin.wait { $0.requests >= count + 1 }
            clock.advance(by: .seconds(1))
        }

        func expectComplete(sourceLocation: SourceLocation = #_sourceLocation) throws {
            #expect(folder.names == ["file"], sourceLocation: sourceLocation)
            #expect(try folder.bytes("file") == content, sourceLocation: sourceLocation)
        }

        /// Neither a file nor a part of one is left.
        func expectNothing(sourceLocation: SourceLocation = #_sourceLocation) async throws {
            try await eventuallyFiles(folder.names) { $0.isEmpty }
        }
    }

    typealias Answer = @Sendable (HTTPTestServer.RecordedRequest, Range<Int>) -> HTTPTestServer.Response

    /// The first response: its head, the first bytes, a pause, the rest.
    static func whole(
        _ headers: String = "ETag: \"one\"\r\n", then ending: HTTPTestServer.Response.Script.Ending = .close
    )
        -> HTTPTestServer.Response
    {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\(headers)\r\n"
        return .raw(
            [
                .bytes(Array(head.utf8)), .bytes(Array(content.prefix(first))), .pause(.seconds(1)),
                .bytes(Array(content.dropFirst(first))),
            ], then: ending)
    }

    /// The requested range of the content.
    static func part(_ request: HTTPTestServer.RecordedRequest, _ range: Range<Int>) -> HTTPTestServer.Response {
        guard request.headers[.ifRange] == "\"one\"" else { return .ok(.bytes(content), headers: [.etag: "\"one\""]) }
        return .status(
            .partialContent,
            headers: [
                .etag: "\"one\"",
                .contentRange: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.count)",
            ], body: .bytes(Array(content[range])))
    }

    static func range(_ request: HTTPTestServer.RecordedRequest) -> Range<Int>? {
        guard let text = request.headers[.range] else { return nil }
        let ends = text.dropFirst(6).split(separator: "-").compactMap { Int($0) }
        guard let begin = ends.first else { return nil }
        return begin..<(ends.count > 1 ? ends[1] + 1 : content.count)
    }

    static func with(
        _ count: Int = 4, _ change: (inout Configuration) -> Void = { _ in },
        first: @escaping @Sendable () -> HTTPTestServer.Response = { whole() }, answer: @escaping Answer = part,
        _ use: (Rig) async throws -> Void
    ) async throws {
        let (clock, folder) = (ManualClock(), try TemporaryFolder())
        try await withHTTPTestServer(.init(clock: clock)) { origin in
            origin.route("/file") { request in Self.range(request).map { answer(request, $0) } ?? first() }
            var options = DownloadOptions(destination: folder.url("file"))
            options.parallelRanges = ParallelRanges(count, minimumPartSize: 64 << 10)
            var configuration = ResumeRows.configuration(folder)
            change(&configuration)
            let session = Session(configuration)
            try await use(Rig(folder: folder, origin: origin, session: session, clock: clock, options: options))
            origin.releaseStalls()
            await expectEmpty(session)
        }
    }

    // MARK: Parts

    @Test("the first response goes on, and the other parts are requested with If-Range") func parts() async throws {
        try await Self.with { rig in
            let task = rig.task()
            let events = task.events
            task.resume()
            try await rig.goOn(after: 3)
            var received: Int64 = 0
            for await event in events {
                if case .received(let bytes) = event { received += Int64(bytes.count) }
                if case .metrics(let metrics) = event { #expect(metrics.transactions.count >= 4) }
            }
            #expect(try await task.value.size == Int64(Self.content.count))
            #expect(received == Int64(Self.content.count))
            let requests = rig.origin.requests
            #expect(requests[0].headers[.range] == nil && requests[0].headers[.ifRange] == nil)
            #expect(requests.dropFirst().allSatisfy { $0.headers[.ifRange] == "\"one\"" })
            #expect(
                Set(rig.ranges).isSuperset(of: [
                    "bytes=500000-999999", "bytes=1000000-1499999", "bytes=1500000-1999999",
                ]))
            try rig.expectComplete()
        }
    }

    @Test("parts that are split while they are written have the right bytes", arguments: 1...12)
    func splits(run: Int) async throws {
        let first = HTTPTestServer.Response.ok(.bytes(Self.content), headers: [.etag: "\"one\""])
        try await Self.with(16, { $0.connections.maximumPerHost = 16 }, first: { first }) { rig in
            _ = try await rig.task().resumed().value
            try rig.expectComplete()
        }
    }

    @Test("without the option there is one request") func off() async throws {
        try await Self.with { rig in
            var rig = rig
            rig.options.parallelRanges = nil
            let task = rig.task().resumed()
            try await rig.goOn(after: 0)
            _ = try await task.value
            #expect(rig.origin.counts.requests == 1)
            try rig.expectComplete()
        }
    }

    @Test(
        "a response that cannot be divided is loaded as a whole",
        arguments: [
            "ETag: W/\"one\"\r\n", "", "ETag: \"one\"\r\nAccept-Ranges: none\r\n",
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:50:00 GMT\r\n",
        ])
    func undivided(headers: String) async throws {
        try await Self.with(first: { Self.whole(headers) }) { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: 0)
            _ = try await task.value
            #expect(rig.origin.counts.requests == 1)
            try rig.expectComplete()
        }
    }

    @Test("a length that no file can have ends a download with an error", arguments: [1 << 62, .max] as [Int64])
    func longest(length: Int64) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\nETag: \"one\"\r\n\r\nabc"
        try await Self.with(first: { .raw([.bytes(Array(head.utf8))]) }, answer: { _, _ in .status(.notFound) }) {
            rig in
            var error: LoadError?
            do throws(LoadError) { _ = try await rig.task().resumed().value } catch let thrown { error = thrown }
            #expect([.truncated, .connectionLost, .cannotWriteFile, .cannotCreateFile].contains(error?.reason))
        }
    }

    /// Takes no request.
    struct Idler: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { false }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            try await client.next.load(request)
        }
    }

    /// Passes all requests on.
    struct Forwarder: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            try await client.next.load(request)
        }
    }

    @Test("with handlers, the metrics of a download in parts name no local transactions", arguments: [true, false])
    func handlers(forwards: Bool) async throws {
        try await Self.with(4) {
            $0.handlers = forwards ? [Forwarder()] : [Idler()]
        } answer: { request, range in
            let head = """
                HTTP/1.1 206 Partial Content\r\nContent-Length: \(range.count)\r\nETag: "one"\r\n\
                Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(Self.content.count)\r\n\r\n
                """
            // All are under way before the first one is answered.
            return .raw([.pause(.milliseconds(500)), .bytes(Array(head.utf8)), .bytes(Array(Self.content[range]))])
        } _: { rig in
            let task = rig.task()
            let events = task.events
            task.resume()
            try await rig.goOn(after: 3)
            let more = Task {
                // Parts that are split later pause, too.
                while !Task.isCancelled {
                    rig.clock.advance(by: .seconds(1))
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
            for await event in events {
                guard case .metrics(let metrics) = event else { continue }
                #expect(metrics.transactions.count >= 4)
                #expect(metrics.transactions.allSatisfy { $0.fetchType == .network })
            }
            _ = try await task.value
            more.cancel()
            try rig.expectComplete()
        }
    }

    @Test("a small file is loaded as a whole") func small() async throws {
        try await Self.with { rig in
            var rig = rig
            rig.options.parallelRanges = ParallelRanges(4, minimumPartSize: Int64(Self.content.count))
            let task = rig.task().resumed()
            try await rig.goOn(after: 0)
            _ = try await task.value
            #expect(rig.origin.counts.requests == 1)
            try rig.expectComplete()
        }
    }

    @Test("a download has no more connections than the session permits to a host") func connections() async throws {
        try await Self.with(8) {
            $0.connections.maximumPerHost = 2
        } _: { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: 1)
            _ = try await task.value
            #expect(rig.origin.counts.mostOpen <= 2)
            try rig.expectComplete()
        }
    }

    @Test("the digest of a file in parts is compared at its end", arguments: [true, false], [true, false])
    func digests(isRight: Bool, isStated: Bool) async throws {
        let digest = try BodyDigest("sha-256=\(Digest.hex(isRight ? Self.content : [1]))")
        let field = "Repr-Digest: sha-256=:\(Data(digest.bytes).base64EncodedString()):\r\n"
        try await Self.with(first: { Self.whole("ETag: \"one\"\r\n" + (isStated ? field : "")) }) { rig in
            var rig = rig
            if !isStated { rig.options.expectedDigest = digest }
            let task = rig.task().resumed()
            try await rig.goOn(after: 3)
            if isRight {
                _ = try await task.value
                try rig.expectComplete()
            } else {
                let error = await failure(.digestMismatch) { try await task.value }
                #expect(error?.resumeToken == nil)
                try await rig.expectNothing()
            }
        }
    }

    // MARK: Servers that do not send the part

    enum Lie: String, CaseIterable, Sendable {
        case otherRange, earlier, later, overlapping, otherVersion, noVersion, otherTotal, multipart, gzip, noRange
        case whole, unsatisfiable, tooMany, unavailable, redirect, short, cut
    }

    static func lie(_ lie: Lie, _ request: HTTPTestServer.RecordedRequest, _ range: Range<Int>)
        -> HTTPTestServer.Response
    {
        func part(
            _ named: Range<Int>, tag: String? = "\"one\"", total: Int = content.count, extra: Headers = Headers(),
            body: HTTPTestServer.Response.Body? = nil
        ) -> HTTPTestServer.Response {
            var headers = extra
            if let tag { headers[.etag] = tag }
            headers[.contentRange] = "bytes \(named.lowerBound)-\(named.upperBound - 1)/\(total)"
            return .status(
                .partialContent, headers: headers,
                body: body ?? .bytes([UInt8](repeating: 0x58, count: named.count)))
        }
        switch lie {
        case .otherRange: return part(0..<range.count)
        case .earlier: return part(range.lowerBound - 1..<range.upperBound - 1)
        case .later: return part(range.lowerBound + 1..<range.upperBound)
        case .overlapping: return part(range.lowerBound..<content.count + (range.upperBound == content.count ? 1 : 0))
        case .otherVersion: return part(range, tag: "\"two\"")
        case .noVersion: return part(range, tag: nil)
        case .otherTotal: return part(range, total: content.count + 1)
        case .multipart:
            return .status(
                .partialContent, headers: [.etag: "\"one\"", .contentType: "multipart/byteranges; boundary=x"],
                body: .bytes(Array("--x\r\n\r\n\r\n--x--".utf8)))
        case .gzip: return part(range, extra: [.contentEncoding: "gzip"])
        case .noRange: return .status(.partialContent, headers: [.etag: "\"one\""], body: .bytes([1, 2, 3]))
        case .whole: return .ok(.bytes(other), headers: [.etag: "\"two\""])
        case .unsatisfiable:
            return .status(.rangeNotSatisfiable, headers: [.contentRange: "bytes */\(content.count)"])
        case .tooMany: return .status(.tooManyRequests, headers: [.retryAfter: "3600"])
        case .unavailable: return .status(.serviceUnavailable)
        case .redirect: return .redirect("http://other.example/file")
        case .short: return part(range, body: .bytes(Array(content[range.dropLast(5)])))
        case .cut:
            let bytes = Array(content[range.dropLast(range.count > 1000 ? 500 : 0)])
            return part(range, body: .declared(Int64(range.count), bytes: bytes))
        }
    }

    @Test(
        "a response that is not the requested part is not written, and one connection loads the file",
        arguments: Lie.allCases)
    func lies(_ lie: Lie) async throws {
        try await Self.with(answer: { Self.lie(lie, $0, $1) }) { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: 3)
            _ = try await task.value
            try rig.expectComplete()
        }
    }

    @Test("a part with more bytes than its range ends the download with an error, and no token") func tooLong()
        async throws
    {
        try await Self.with(answer: { request, range in
            var response = Self.part(request, range)
            response.body = .chunks([.bytes(Array(Self.content[range])), "and more"])
            return response
        }) { rig in
            let task = rig.task().resumed()
            try await rig.origin.wait { $0.requests >= 4 }
            let error = await failure(.rangeNotSatisfiable) { try await task.value }
            #expect(error?.resumeToken == nil)
            try await rig.expectNothing()
        }
    }

    @Test("content that changes during the download ends it with an error, and never with a mixture") func replaced()
        async throws
    {
        // The first connection is lost, and the whole of the new version is what the server has for ranges.
        try await Self.with(
            first: {
                let head = "HTTP/1.1 200 OK\r\nContent-Length: \(Self.content.count)\r\nETag: \"one\"\r\n\r\n"
                return .raw([
                    .bytes(Array(head.utf8)), .bytes(Array(Self.content.prefix(Self.first))), .pause(.seconds(1)),
                ])
            }, answer: { Self.lie(.whole, $0, $1) }
        ) { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: 3)
            var error: LoadError?
            do throws(LoadError) { _ = try await task.value } catch let thrown { error = thrown }
            #expect([.resumeMismatch, .connectionLost, .truncated].contains(error?.reason))
            #expect(!rig.folder.names.contains("file"))
            // A token of the old version begins anew.
            rig.origin.route("/file") { _ in .ok(.bytes(Self.other), headers: [.etag: "\"two\""]) }
            let token = try #require(error?.resumeToken)
            let file = try await rig.session.downloadTask(resuming: token, options: rig.options).resumed().value
            #expect(file.size == Int64(Self.content.count))
            #expect(try rig.folder.bytes("file") == Self.other)
        }
    }

    // MARK: Failures

    /// Is true once.
    final class Once: Sendable {
        private let isOver = Lock(false)
        func take() -> Bool {
            isOver.withLock { isOver in
                defer { isOver = true }
                return !isOver
            }
        }
    }

    @Test("the bytes of a part whose connection is lost are loaded by the others") func lostPart() async throws {
        let once = Once()
        try await Self.with(answer: { request, range in
            let isLost = once.take()
            return isLost ? Self.lie(.cut, request, range) : Self.part(request, range)
        }) { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: 4)
            _ = try await task.value
            try rig.expectComplete()
        }
    }

    @Test("after the loss of a connection a refusal of the others is not the cause") func cause() async throws {
        try await Self.with(
            2,
            first: {
                let head = "HTTP/1.1 200 OK\r\nContent-Length: \(Self.content.count)\r\nETag: \"one\"\r\n\r\n"
                return .raw([.bytes(Array(head.utf8)), .bytes(Array(Self.content.prefix(Self.first)))])
            },
            answer: { _, _ in
                .raw([.pause(.seconds(1)), .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8))])
            }
        ) { rig in
            let task = rig.task().resumed()
            try await task.received(Self.first)
            try await rig.origin.wait { $0.requests >= 2 }
            // A request is counted before the pause of its answer begins.
            let pacer = Task {
                while !Task.isCancelled {
                    rig.clock.advance(by: .seconds(1))
                    try await Task.sleep(for: .milliseconds(10))
                }
            }
            defer { pacer.cancel() }
            var error: LoadError?
            do throws(LoadError) { _ = try await task.value } catch let thrown { error = thrown }
            #expect([.truncated, .connectionLost].contains(error?.reason))
            #expect(error?.resumeToken != nil)
        }
    }

    @Test("the end of a download ends the wait before a repetition") func restingWorker() async throws {
        let (once, resting) = (Once(), ManualClock())
        try await Self.with(
            4,
            {
                var policy = RetryPolicy(maximumAttempts: 3)
                policy.backoff = .constant(.seconds(3600))
                $0.retries.policy = policy
                $0.use(resting)
            },
            answer: { request, range in
                let isLost = once.take()
                return isLost ? Self.lie(.cut, request, range) : Self.part(request, range)
            }
        ) { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: 3)
            _ = try await task.value
            #expect(resting.elapsed == .zero)
            try rig.expectComplete()
        }
    }

    @Test(
        "parts are repeated no more often than the policy, and the session's budget, permit", arguments: [true, false])
    func repetitions(isWithinBudget: Bool) async throws {
        try await Self.with(
            2,
            {
                var policy = RetryPolicy(maximumAttempts: 3)
                policy.backoff = .constant(.milliseconds(1))
                $0.retries.policy = policy
                $0.retries.budget = isWithinBudget ? nil : RetryBudget(share: 0, minimumPerSecond: 0)
            },
            answer: { _, _ in .raw([]) }
        ) { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: isWithinBudget ? 3 : 1)
            _ = try await task.value
            #expect(rig.ranges.count == (isWithinBudget ? 3 : 1))
            try rig.expectComplete()
        }
    }

    @Test("a part is requested again by the retry policy, from its last byte on") func retries() async throws {
        let once = Once()
        try await Self.with(
            2,
            {
                var policy = RetryPolicy(maximumAttempts: 3)
                policy.backoff = .constant(.milliseconds(1))
                $0.retries.policy = policy
            },
            answer: { request, range in
                let isLost = once.take()
                return isLost ? Self.lie(.cut, request, range) : Self.part(request, range)
            }
        ) { rig in
            let task = rig.task().resumed()
            try await rig.goOn(after: 2)
            _ = try await task.value
            #expect(rig.ranges.contains("bytes=1999500-1999999"))
            try rig.expectComplete()
        }
    }

    /// Begins a download whose first response stalls, and whose other parts are complete, and ends it.
    static func interrupt(_ rig: Rig) async throws -> ResumeToken {
        let task = rig.task()
        task.resume()
        try await task.received(content.count * 3 / 4 + first)
        return try #require(await task.cancelProducingResumeToken())
    }

    @Test("a token names the parts, and the next download requests only what is missing", arguments: [true, false])
    func token(inParts: Bool) async throws {
        try await Self.with { rig in
            let token = try await Self.interrupt(rig)
            #expect(token.record.version == 2)
            #expect(String(decoding: token.data.prefix(20), as: UTF8.self) == "URLLoading-Resume/2\n")
            #expect(token.offset < Int64(Self.content.count))
            let stored = try ResumeToken(token.data)
            let before = rig.ranges.count
            var options = rig.options
            if !inParts { options.parallelRanges = nil }
            let task = rig.session.downloadTask(resuming: stored, options: options)
            let events = task.events
            task.resume()
            var (resumed, received): (Int64, Int64) = (-1, 0)
            for await event in events {
                if case .resumed(let offset, _) = event { resumed = offset }
                if case .received(let bytes) = event { received += Int64(bytes.count) }
            }
            _ = try await task.value
            #expect(resumed == stored.offset && resumed + received == Int64(Self.content.count))
            #expect(rig.ranges.count > before)
            try rig.expectComplete()
        }
    }

    @Test("a resume file continues a download in parts, and is removed at its end") func resumeFile() async throws {
        try await Self.with { rig in
            var rig = rig
            rig.options.resumeFile = rig.folder.url("token")
            let task = rig.task().resumed()
            // Kept while the download runs, for a process that is killed.
            try await eventuallyFiles(rig.folder.names) { $0.contains("token") }
            #expect(try ResumeToken(Data(rig.folder.bytes("token"))).record.version == 2)
            task.cancel()
            await expectFailure(.cancelled) { try await task.value }
            #expect(rig.folder.names.contains("token"))
            _ = try await rig.task().resumed().value
            try rig.expectComplete()
        }
    }

    @Test("a suspended download in parts continues") func suspension() async throws {
        try await Self.with { rig in
            let task = rig.task().resumed()
            try await rig.origin.wait { $0.requests >= 4 }
            task.suspend()
            task.resume()
            rig.clock.advance(by: .seconds(1))
            _ = try await task.value
            try rig.expectComplete()
        }
    }

    @Test("a part that stalls is taken over by another worker, also behind a handler", arguments: [false, true])
    func stalls(hasHandler: Bool) async throws {
        let time = ManualClock()
        try await Self.with {
            $0.use(time)
            // Its timer would wake the stalled load together with the others, and a load that is awake is not overdue.
            $0.timeouts.idle = nil
            if hasHandler { $0.handlers = [Forwarder()] }
        } _: { rig in
            let task = rig.task().resumed()
            // The first response stalls: the others divide its part until too little is left, and wait.
            try await time.untilSleeping(3)
            try await time.untilWaiting()
            time.advance(by: .seconds(11))
            _ = try await task.value
            try rig.expectComplete()
        }
    }

    @Test("a part that stalls after the others have begun to wait is taken over, too") func lateStall() async throws {
        let time = ManualClock()
        try await Self.with {
            $0.use(time)
            $0.timeouts.idle = nil
        } first: {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: \(Self.content.count)\r\nETag: \"one\"\r\n\r\n"
            return .raw(
                [
                    .bytes(Array(head.utf8)), .bytes(Array(Self.content.prefix(Self.first))), .pause(.seconds(1)),
                    .bytes(Array(Self.content[Self.first..<Self.first + 1000])),
                ], then: .stall)
        } _: { rig in
            let task = rig.task().resumed()
            try await time.untilSleeping(3)
            // At 5 seconds the part moves, at 10 it is not overdue, and then it stalls.
            time.advance(by: .seconds(5))
            rig.clock.advance(by: .seconds(1))
            // Events name the bytes of all parts, and the token those of the first one.
            try await eventually(task.resumeToken?.record.offset) { $0 == Int64(Self.first + 1000) }
            try await time.untilWaiting()
            time.advance(by: .seconds(6))
            try await time.untilSleeping(3)
            time.advance(by: .seconds(5))
            _ = try await task.value
            try rig.expectComplete()
        }
    }
}

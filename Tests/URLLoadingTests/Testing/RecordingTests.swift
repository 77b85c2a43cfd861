// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport

@testable import URLLoadingTesting

/// A session recorded against an origin, and replayed without one.
@Suite(.timeLimit(.minutes(4)))
struct RecordingTests {
    static func session(_ handlers: any ProtocolHandler..., clock: ManualClock? = nil) -> Session {
        var configuration = Configuration.ephemeral
        configuration.handlers = handlers
        if let clock { configuration.use(clock) }
        return Session(configuration)
    }

    /// Records loads from a server, which is stopped when this returns.
    static func record(
        _ recorder: RecordingHandler = RecordingHandler(), _ prepare: (HTTPTestServer) -> Void,
        _ use: (Session, HTTPTestServer) async throws -> Void
    ) async throws -> Recording {
        try await withHTTPTestServer(serving: prepare) { origin in
            let session = Self.session(recorder)
            try await use(session, origin)
            await expectEmpty(session)
            let recording = try await recorder.finished()
            // Through its text, so that the replayed recording is the one that was written.
            let read = try Recording(text: recording.description)
            #expect(read == recording, "\(recording)")
            return read
        }
    }

    static let binary = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) }

    @Test("bodies come back byte by byte and piece by piece: text, binary, empty, chunked with trailers")
    func roundTrip() async throws {
        let seen = Lock<[String: [[UInt8]]]>([:])
        func pieces(_ session: Session, _ url: URL) async throws -> (Response, [[UInt8]], Headers) {
            try await session.load(Request(url: url)) { response, body in
                var pieces: [[UInt8]] = []
                for try await piece in body { pieces.append([UInt8](piece)) }
                return (response, pieces, body.trailers)
            }
        }
        let recording = try await Self.record { origin in
            origin.route("/text") { _ in .ok("one\ntwo\n", headers: [.contentType: "text/plain"]) }
            origin.route("/binary") { _ in .ok(.bytes(Self.binary)) }
            origin.route("/empty") { _ in .ok("") }
            origin.route("/chunks") { _ in .ok(.chunks(["a", .pause(.milliseconds(5)), "b\n"], trailers: ["Sum": "2"]))
            }
        } _: { session, origin in
            for path in ["/text", "/binary", "/empty", "/chunks"] {
                let (response, pieces, trailers) = try await pieces(session, origin.url(path))
                #expect(response.http?.status == .ok && trailers["Sum"] == (path == "/chunks" ? "2" : nil))
                seen.withLock { $0[origin.url(path).absoluteString] = pieces }
            }
        }
        #expect(recording.exchanges.count == 4)
        #expect(recording.exchanges.allSatisfy { if case .complete = $0.ending { true } else { false } })
        let replay = ReplayHandler(recording)
        let session = Self.session(replay)
        for exchange in recording.exchanges {
            let (response, got, trailers) = try await pieces(session, exchange.url)
            #expect(got == seen.withLock { $0[exchange.url.absoluteString] })
            #expect(
                response.http?.headers == exchange.answer?.http?.headers
                    && response.expectedLength == exchange.answer?.expectedLength)
            #expect(trailers == exchange.answer?.trailers ?? Headers())
        }
        #expect(recording.exchanges[1].answer?.pieces.flatMap(\.bytes) == Self.binary)
        #expect(recording.exchanges[3].answer?.pieces.map(\.bytes) == [Array("a".utf8), Array("b\n".utf8)])
        #expect(recording.exchanges[3].answer?.trailers["Sum"] == "2")
        #expect("\(recording)".contains("| one\n| two\nend at"))
        #expect(replay.unused.isEmpty && session.connectionsDescription == "empty")
        await expectEmpty(session)
    }

    @Test("redirects are exchanges of their own, failures fail again")
    func redirectsAndFailures() async throws {
        let closed = try closedPort()
        let nowhere = try url("http://127.0.0.1:\(closed)/?q")
        let recording = try await Self.record { origin in
            origin.route("/away") { _ in .redirect("/there") }
            origin.route("/there") { _ in .ok("there") }
            origin.route("/cut", faults: [.init(.responseBody(after: 4), .reset)]) { _ in .ok("lost half") }
        } _: { session, origin in
            try await session.expect(origin.url("/away"), "there")
            await expectFailure(.connectionRefused) { try await session.data(from: nowhere) }
            await expectFailure(.connectionLost) { try await session.data(from: origin.url("/cut")) }
            await expectFailure(.unsupportedScheme) { try await session.data(from: url("nothing:x")) }
        }
        #expect(recording.exchanges.map { $0.answer?.http?.status.code } == [302, 200, nil, 200, nil])
        let session = Self.session(ReplayHandler(recording))
        try await session.expect(recording.exchanges[0].url, "there")
        let refused = await failure(.connectionRefused, .remote, .connecting) { try await session.data(from: nowhere) }
        #expect(refused?.url == nowhere)
        await expectFailure(.connectionLost, .remote) { try await session.data(from: recording.exchanges[3].url) }
        await expectFailure(.unsupportedScheme) { try await session.data(from: url("nothing:x")) }
        // Each once.
        let again = await failure(.notRecorded, .local) { try await session.data(from: recording.exchanges[0].url) }
        #expect("\(again!)".contains("each exchange is used"))
    }

    // MARK: Tokens

    /// The arguments of `refresh` in order: the status of the refusal, or nil for the first token.
    final class Refusals: Sendable {
        private let state = Lock<[Status?]>([])
        var all: [Status?] { state.withLock { $0 } }
        func add(_ status: Status?) { state.withLock { $0.append(status) } }
    }

    private final class Issued: Sendable {
        private let state = Lock(0)
        var count: Int { state.withLock { $0 } }
        func next() -> Int {
            state.withLock { count in
                count += 1
                return count
            }
        }
    }

    /// A server whose pages require the token of the last `POST /token`, and whose first token has expired.
    static func serveTokens(_ origin: HTTPTestServer) {
        let issued = Issued()
        origin.route("/token") { _ in .ok("t\(issued.next())") }
        origin.route("/page/*") { request in
            let good = issued.count
            guard request.headers[.authorization] == "Bearer t\(good)", good > 0 else {
                return .status(
                    .unauthorized, headers: [.wwwAuthenticate: "Bearer"], body: .bytes(Array("expired".utf8)))
            }
            return .ok("page \(request.path) \(String(decoding: request.body, as: UTF8.self))")
        }
    }

    /// A session that gets its tokens by itself, through the same handler.
    static func tokenSession(
        _ handler: any ProtocolHandler, _ base: URL, token: String? = "t0", refusals: Refusals
    ) throws -> Session {
        var configuration = Configuration.ephemeral
        configuration.handlers = [handler]
        let others = Session(configuration)
        configuration.authentication.bearer = try BearerTokens(for: [base.absoluteString], token: token) { refusal in
            refusals.add(refusal?.http?.status)
            let (data, _) = try await others.data(for: Request(url: base.appending(path: "token"), method: .post))
            return String(decoding: data, as: UTF8.self)
        }
        return Session(configuration)
    }

    /// Records `use` against an origin with tokens, replays it without one, and expects the same of both.
    private func recordAndReplay(
        token: String? = "t0", _ use: (Session, URL) async throws -> Void
    ) async throws -> (Recording, refusals: [Status?]) {
        let recorder = RecordingHandler()
        let recorded = Refusals()
        let (recording, base) = try await withHTTPTestServer { origin in
            Self.serveTokens(origin)
            let session = try Self.tokenSession(recorder, origin.url(), token: token, refusals: recorded)
            try await use(session, origin.url())
            await expectEmpty(session)
            return (try await recorder.finished(), origin.url())
        }
        let replay = ReplayHandler(try Recording(text: recording.description))
        let replayed = Refusals()
        let session = try Self.tokenSession(replay, base, token: token, refusals: replayed)
        try await use(session, base)
        #expect(replay.unused.isEmpty, "\(replay.unused)")
        #expect(session.connectionsDescription == "empty")
        await expectEmpty(session)
        #expect(replayed.all == recorded.all)
        return (recording, recorded.all)
    }

    @Test("a request that is sent again with a renewed token is two exchanges, and replays as two")
    func renewedToken() async throws {
        let (recording, refusals) = try await recordAndReplay { session, base in
            try await session.expect(base.appending(path: "page/1"), "page /page/1 ")
            try await session.expect(base.appending(path: "page/2"), "page /page/2 ")
        }
        #expect(recording.exchanges.map { $0.answer?.http?.status.code } == [401, 200, 200, 200])
        #expect(recording.exchanges.map { $0.url.path } == ["/page/1", "/token", "/page/1", "/page/2"])
        #expect(recording.exchanges[0].answer?.refusedToken == 0 && recording.exchanges[0].ending == .open)
        #expect(refusals == [.unauthorized])
        #expect("\(recording)".hasPrefix("urlloading recording 2\n") && !"\(recording)".contains("Bearer t"))
    }

    @Test("loads that were refused for one token renew it once in the replay, too, in whatever order they come")
    func renewedTokenSideBySide() async throws {
        let (recording, _) = try await recordAndReplay { session, base in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...6 {
                    group.addTask {
                        try await session.expect(base.appending(path: "page/\(number)"), "page /page/\(number) ")
                    }
                }
                try await group.waitForAll()
            }
        }
        // In turns, each load finds a token that was renewed already, and was refused for the first all the same.
        let replay = ReplayHandler(recording)
        let refusals = Refusals()
        var base = recording.exchanges[0].url
        base = try #require(URL(string: "/", relativeTo: base)?.absoluteURL)
        let session = try Self.tokenSession(replay, base, refusals: refusals)
        for number in 1...6 {
            try await session.expect(base.appending(path: "page/\(number)"), "page /page/\(number) ")
        }
        #expect(replay.unused.isEmpty && refusals.all == [.unauthorized])
        await expectEmpty(session)
    }

    @Test("the body of a request is recorded with each of its exchanges")
    func renewedTokenWithABody() async throws {
        @Sendable func request(_ url: URL, streamed: Bool) -> Request {
            var request = Request(url: url, method: .post)
            let bytes = Array("body".utf8)
            request.body =
                streamed
                ? .stream {
                    AsyncStream<[UInt8]> { stream in
                        for byte in bytes { stream.yield([byte]) }
                        stream.finish()
                    }
                }
                : .data(Data(bytes))
            return request
        }
        for streamed in [false, true] {
            let (recording, _) = try await recordAndReplay { session, base in
                try await session.expect(
                    request(base.appending(path: "page/1"), streamed: streamed), "page /page/1 body")
            }
            let bodies = recording.exchanges.filter { $0.url.path == "/page/1" }.map { $0.body?.bytes }
            #expect(bodies == [Array("body".utf8), Array("body".utf8)], "\(recording)")
        }
    }

    @Test("the first token of a session is got in the replay, too; a refresh that fails fails again")
    func firstAndLastToken() async throws {
        let (recording, refusals) = try await recordAndReplay(token: nil) { session, base in
            try await session.expect(base.appending(path: "page/1"), "page /page/1 ")
        }
        #expect(recording.exchanges.count == 2 && refusals == [nil])

        let recorder = RecordingHandler()
        let none = Refusals()
        let (broken, base) = try await withHTTPTestServer { origin in
            origin.route("/page/1") { _ in .status(.unauthorized, headers: [.wwwAuthenticate: "Bearer"]) }
            origin.route("/token", faults: [.init(.requestHead, .reset)]) { _ in .ok("") }
            let session = try Self.tokenSession(recorder, origin.url(), refusals: none)
            await expectFailure(.decisionFailed) { try await session.data(from: origin.url("/page/1")) }
            await expectEmpty(session)
            return (try await recorder.finished(), origin.url())
        }
        let replay = ReplayHandler(try Recording(text: broken.description))
        let session = try Self.tokenSession(replay, base, refusals: none)
        await expectFailure(.decisionFailed) { try await session.data(from: base.appending(path: "page/1")) }
        #expect(replay.unused.isEmpty && none.all == [.unauthorized, .unauthorized])
        await expectEmpty(session)
    }

    @Test("a session without tokens replays a recorded refusal unchanged")
    func refusalWithoutTokens() async throws {
        let (recording, _) = try await recordAndReplay { session, base in
            try await session.expect(base.appending(path: "page/1"), "page /page/1 ")
        }
        let session = Self.session(ReplayHandler(recording))
        let status = try await session.load(Request(url: recording.exchanges[0].url)) { response, _ in
            response.http?.status
        }
        #expect(status == .unauthorized)
        await expectEmpty(session)
    }

    @Test("no secret is in the file, unless it was asked for")
    func secrets() async throws {
        var texts: [String] = []
        for secrets in [RecordedSecrets.removed(and: ["X-Key"]), .kept] {
            let recording = try await Self.record(RecordingHandler(secrets: secrets)) { origin in
                origin.route("/") { _ in
                    .ok(
                        "x",
                        headers: [
                            .setCookie: "id=SECRET1", "Link": "<https://me:SECRET2@h/>, <//SECRET3@h>",
                            "X-Key": "SECRET4",
                        ])
                }
            } _: { session, origin in
                var request = Request(url: origin.url())
                request.headers = [
                    .authorization: "Basic SECRET5", .cookie: "id=SECRET6", .proxyAuthorization: "SECRET7",
                    "X-Plain": "plain",
                ]
                try await session.expect(request, "x")
                let text = origin.url().absoluteString.replacing("//", with: "//user:SECRET8@")
                _ = try? await session.data(from: url(text))
            }
            texts.append("\(recording)")
        }
        for number in 1...8 { #expect(!texts[0].contains("SECRET\(number)") && texts[1].contains("SECRET\(number)")) }
        #expect(
            texts[0].contains("X-Plain: plain") && texts[0].contains("Set-Cookie: (removed)")
                && texts[0].contains("<https://h/>, <//h>"))
        // Secrets that were removed from the recorded URL are not compared with those of the request.
        let session = Self.session(ReplayHandler(try Recording(text: texts[0])))
        var components = try Recording(text: texts[0]).exchanges[0].url.absoluteString
        components.replace("//", with: "//other@")
        try await session.expect(url(components), "x")
    }

    @Test("requests are matched by their bodies; bodies of sequences are recorded as they are sent")
    func bodies() async throws {
        @Sendable func request(_ url: URL, _ text: String, streamed: Bool = false) -> Request {
            var request = Request(url: url, method: .post)
            request.body =
                streamed
                ? .stream {
                    AsyncStream<[UInt8]> {
                        for byte in text.utf8 { $0.yield([byte]) }
                        $0.finish()
                    }
                } : .data(Data(text.utf8))
            return request
        }
        let recording = try await Self.record(RecordingHandler(bodyLimit: 6)) { origin in
            origin.route("/") { request in .ok("got \(request.body.count)") }
        } _: { session, origin in
            try await session.expect(request(origin.url(), "one"), "got 3")
            try await session.expect(request(origin.url(), "three", streamed: true), "got 5")
            try await session.expect(request(origin.url(), "too long"), "got 8")
        }
        let pieces = try await Self.record { origin in
            origin.route("/") { request in .ok("got \(request.body.count)") }
        } _: { session, origin in
            try await session.expect(
                request(origin.url(), String(repeating: "ab", count: 1_000), streamed: true), "got 2000")
        }
        #expect(pieces.exchanges[0].body?.bytes == Array(String(repeating: "ab", count: 1_000).utf8))
        #expect(recording.exchanges.map { $0.body?.bytes.count } == [3, 5, 6])
        #expect(recording.exchanges.map { $0.body?.isTruncated } == [false, false, true])
        let url = recording.exchanges[0].url
        let replay = ReplayHandler(recording)
        let session = Self.session(replay)
        try await session.expect(request(url, "too long", streamed: true), "got 8")
        try await session.expect(request(url, "three"), "got 5")
        let error = await failure(.notRecorded) { try await session.data(for: request(url, "two")) }
        #expect("\(error!)".contains("POST \(url): it was recorded with another body"))
        #expect(replay.unused.map(\.began) == [.zero])
        let any = Self.session(ReplayHandler(recording, comparesBodies: false))
        try await any.expect(request(url, "whatever"), "got 3")
        #expect(session.connectionsDescription == "empty")
    }

    @Test("a body beyond the limit is truncated in the recording only")
    func cut() async throws {
        let recording = try await Self.record(RecordingHandler(bodyLimit: 100_000)) { origin in
            origin.route("/") { _ in .ok(.bytes(Self.binary)) }
        } _: { session, origin in
            try await expect({ try await session.data(from: origin.url()).0 }, Data(Self.binary))
        }
        #expect(recording.exchanges[0].answer?.pieces.reduce(0) { $0 + $1.bytes.count } == 100_000)
        #expect(recording.exchanges[0].answer?.fullLength == 300_000)
        let session = Self.session(ReplayHandler(recording))
        let error = await failure(.notRecorded) { try await session.data(from: recording.exchanges[0].url) }
        #expect("\(error!)".contains("of 300000 bytes of its body the first 100000"))
    }

    @Test("a caller that leaves leaves an open exchange; a time-out is the exchange's failure")
    func leaving() async throws {
        let clock = ManualClock()
        let recorder = RecordingHandler()
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 3), .stall)]) { _ in .ok("hello") }
            let session = Self.session(recorder, clock: clock)
            let left = try await session.load(Request(url: origin.url())) { _, body in
                for try await piece in body { return piece.count }
                return 0
            }
            #expect(left == 3)
            try await origin.wait { $0.open == 0 }
            let load = RunningLoad(session, Request(url: origin.url()))
            try await origin.wait { $0.stalled == 1 }
            try await clock.untilWaiting()
            clock.advance(by: .seconds(60))
            #expect(await load.reason == .idleTimeout)
            let task = session.dataTask(from: origin.url()).resumed()
            try await clock.untilWaiting()
            task.cancel()
            await expectFailure(.cancelled) { try await task.value }
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
        let recording = try await recorder.finished()
        #expect(recording.exchanges[0].ending == .open && recording.exchanges[2].ending == .open)
        guard case .failed(let failed, .seconds(60)) = recording.exchanges[1].ending else { throw CancellationError() }
        #expect(failed.reason == .idleTimeout && failed.party == .remote)

        // Replayed with its timing, on a separate clock.
        let other = ManualClock()
        let session = Self.session(ReplayHandler(recording, timing: .asRecorded), clock: other)
        let first = session.dataTask(from: recording.exchanges[0].url).resumed()
        let error = await URLLoadingTests.failure(.notRecorded) { try await first.value }
        #expect("\(error!)".contains("the end of its body was not recorded") && first.snapshot.received == 3)
        let second = session.dataTask(from: recording.exchanges[0].url).resumed()
        try await other.untilSleeping()
        #expect(second.snapshot.received == 3)
        other.advance(by: .seconds(60))
        await expectFailure(.idleTimeout) { try await second.value }
    }

    @Test("many loads at once are recorded each by itself")
    func concurrency() async throws {
        @Sendable func run(_ session: Session, _ base: URL) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        try await session.expect(
                            url("\(base)echo?\(number)"), String(repeating: "\(number) ", count: 500))
                    }
                }
                try await group.waitForAll()
            }
        }
        let recording = try await Self.record { origin in
            origin.route("/echo") { request in .ok(String(repeating: "\(request.target.dropFirst(6)) ", count: 500)) }
        } _: { session, origin in
            try await run(session, origin.url())
        }
        #expect(recording.exchanges.count == 200)
        #expect(zip(recording.exchanges, recording.exchanges.dropFirst()).allSatisfy { $0.began <= $1.began })
        let replay = ReplayHandler(recording)
        let text = recording.exchanges[0].url.absoluteString
        try await run(Self.session(replay), url(String(text.prefix { $0 != "?" }.dropLast(4))))
        #expect(replay.unused.isEmpty)
    }

    @Test("a request that was not recorded fails or is forwarded; recordings are stored in files")
    func forwarding() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok("live \(String(decoding: request.body, as: UTF8.self))") }
            let byHand = Recording([
                .init(
                    .get, origin.url("/stub"), answer: .init(.init(.ok), pieces: [.init(Array("stub".utf8))]),
                    ending: .complete(at: .zero))
            ])
            let file = URL(filePath: "/tmp/urlloading-\(UInt64.random(in: 0 ... .max)).txt")
            defer { try? FileManager.default.removeItem(at: file) }
            try byHand.write(to: file)
            let replay = ReplayHandler(try Recording(contentsOf: file), unmatched: .forward)
            let session = Self.session(replay)
            try await session.expect(origin.url("/stub"), "stub")
            var request = Request(url: origin.url(), method: .post)
            request.body = .stream {
                AsyncStream<[UInt8]> {
                    $0.yield([0x61])
                    $0.finish()
                }
            }
            try await session.expect(request, "live a")
            await expectEmpty(session)
            let strict = Self.session(ReplayHandler(byHand))
            let error = await failure(.notRecorded, .local, .waiting) {
                try await strict.data(from: origin.url("/?secret"))
            }
            #expect(
                "\(error!)".contains("GET \(origin.url()): it is not in the recording")
                    && !"\(error!)".contains("secret"))
        }
        #expect(throws: (any Error).self) { try Recording(contentsOf: URL(filePath: "/nonexistent")) }
    }

    @Test("handlers of other schemes are recorded with their properties")
    func otherSchemes() async throws {
        let stub = HandlerTests.Stub { request, _ in
            guard request.url.path() == "/path" else {
                return .response(
                    Response(url: URL(string: "stub://mirror/")!, mediaType: MediaType("text/plain")),
                    data: Data("there".utf8))
            }
            return .redirect(Response(url: request.url), to: Request(url: URL(string: "stub://host/there")!))
        }
        let recorder = RecordingHandler()
        try await Self.session(stub, recorder).expect(HandlerTests.url, "there")
        let recording = try Recording(text: try await recorder.finished().description)
        #expect(recording.exchanges[0].answer?.redirect?.url.absoluteString == "stub://host/there")
        let (data, response) = try await Self.session(ReplayHandler(recording)).data(from: HandlerTests.url)
        #expect(data == Data("there".utf8) && response.url.absoluteString == "stub://mirror/")
        #expect(response.mediaType == MediaType("text/plain") && response.http == nil)

        let built = RecordingHandler()
        let text = try url("data:text/plain;charset=utf-8,a%20b")
        try await Self.session(built).expect(text, "a b")
        let again = try Recording(text: try await built.finished().description)
        let same = try await Self.session(ReplayHandler(again)).data(from: text)
        #expect(same.0 == Data("a b".utf8) && same.1.textEncodingName == "utf-8")
    }
}

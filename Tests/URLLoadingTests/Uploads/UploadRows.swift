// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Checklist 52, 121 to 127: bodies of requests.
@Suite(.timeLimit(.minutes(4)))
struct UploadRows {
    private static func post(_ url: URL, _ body: RequestBody, _ headers: Headers = Headers()) -> Request {
        Request(url: url, method: .post, headers: headers, body: body)
    }

    // MARK: Sent bodies

    @Test(
        "length and type are computed unless the caller sets them; a length or chunks, never both (checklist 121-124)")
    func framing() async throws {
        let file = try TemporaryFile(Data("0123456789".utf8), name: "ten.txt")
        try await withHTTPTestServer(answering: "") { origin in
            let bodies: [(RequestBody, length: String?, type: String?, content: String)] = [
                (.data(Data("abc".utf8)), "3", "application/octet-stream", "abc"),
                (.data(Data()), "0", "application/octet-stream", ""),
                (try .json(["a": 1]), "7", "application/json", #"{"a":1}"#),
                (
                    .form([("na me", "A&B=ä"), ("", "*-._~")]), "32", "application/x-www-form-urlencoded",
                    "na+me=A%26B%3D%C3%A4&=*-._%7E"
                ),
                (.file(file.url), "10", "text/plain", "0123456789"),
                (.file(file.url, range: 3..<7), "4", "text/plain", "3456"),
                (.file(file.url, range: 5..<5), "0", "text/plain", ""),
                (.stream(length: 4) { Pieces(["ab", "", "cd"]) }, "4", nil, "abcd"),
                (.stream { Pieces(["ab", "", "cd"]) }, nil, nil, "abcd"),
            ]
            try await withSession(.ephemeral) { session in
                for body in bodies {
                    _ = try await session.data(for: Self.post(origin.url(), body.0))
                    let seen = try #require(origin.requests.last)
                    #expect(String(decoding: seen.body, as: UTF8.self) == body.content)
                    #expect(seen.headers[.contentLength] == body.length.map { _ in "\(body.content.utf8.count)" })
                    #expect(seen.headers[.transferEncoding] == (body.length == nil ? "chunked" : nil))
                    #expect(seen.headers[.contentType] == body.type)
                    // Fields that the caller sets are sent unchanged (checklist 123).
                    _ = try await session.data(for: Self.post(origin.url(), body.0, [.contentType: "x/y; z=1"]))
                    #expect(origin.requests.last?.headers.values(of: .contentType) == ["x/y; z=1"])
                }
            }
        }
    }

    @Test(
        "a large file is sent unchanged, over http and https, from any offset (checklist 127)",
        arguments: [false, true])
    func files(isSecure: Bool) async throws {
        let size = 3 << 20
        let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        let file = try TemporaryFile(content)
        let authority = try TestCertificateAuthority(commonName: "Root")
        var setting =
            isSecure ? HTTPTestServer.Configuration(tls: .init(try authority.issue())) : HTTPTestServer.Configuration()
        setting.recordedBodySize = size
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        try await withHTTPTestServer(setting) { origin in
            origin.route("/") { _ in .ok("") }
            try await withSession(configuration) { session in
                for range in [nil, 1..<Int64(size), 65_537..<2_000_000] as [Range<Int64>?] {
                    let task = session.dataTask(Self.post(origin.url(), .file(file.url, range: range)))
                    let events = task.events
                    task.resume()
                    _ = try await task.value
                    let expected = range.map { content[Int($0.lowerBound)..<Int($0.upperBound)] } ?? content
                    #expect(origin.requests.last.map { Data($0.body) == expected } == true)
                    // The byte counts ascend to the length (checklist 52).
                    var order = LoadEventOrder()
                    var sent: Int64 = 0
                    for await event in events {
                        let isLegal = order.accept(event)
                        #expect(isLegal, "\(order)")
                        if case .bodySent(let bytes) = event {
                            #expect(bytes.total > sent && bytes.expected == Int64(expected.count))
                            sent = bytes.total
                        }
                    }
                    #expect(sent == Int64(expected.count))
                }
            }
        }
    }

    @Test("a file that cannot be sent is reported before any byte is sent")
    func unsendable() async throws {
        let file = try TemporaryFile(Data("0123456789".utf8))
        try await withHTTPTestServer(answering: "") { origin in
            try await withSession(.ephemeral) { session in
                func fails(_ body: RequestBody, _ reason: LoadError.Reason) async {
                    await expectFailure(reason) { try await session.data(for: Self.post(origin.url(), body)) }
                }
                await fails(.file(URL(filePath: "/nonexistent/file")), .fileNotFound)
                await fails(.file(URL(filePath: "/tmp")), .fileIsDirectory)
                await fails(.file(URL(filePath: "/dev/null")), .cannotReadFile)
                await fails(.file(file.url, range: 5..<11), .rangeNotSatisfiable)
                await fails(.provided, .badRequest)
                #expect(origin.counts.accepted == 0)
                try await session.expect(origin.url(), "")
            }
        }
    }

    @Test("a file that becomes shorter while it is sent ends the load")
    func shrinking() async throws {
        let file = try TemporaryFile(Data(count: 64 << 20))
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.requestBody(after: 1), .stall)]) { _ in .ok("") }
            let session = Session(.ephemeral)
            let task = session.dataTask(Self.post(origin.url(), .file(file.url))).resumed()
            try await origin.wait { $0.stalled == 1 }
            #expect(truncate(file.path, 1000) == 0)
            origin.releaseStalls()
            let error = await failure(.requestBodyFailed) { try await task.value }
            let words = "\(file.path): the file became shorter: "
            #expect(error?.detail?.hasPrefix(words) == true, "\(String(describing: error))")
            await expectEmpty(session)
        }
    }

    @Test("trailers follow a chunked body (RFC 9110 §6.5); with a length there are none")
    func trailers() async throws {
        try await withHTTPTestServer(answering: "") { origin in
            try await withSession(.ephemeral) { session in
                for length in [nil, 4] as [Int64?] {
                    let body = RequestBody.stream(length: length, trailers: { ["Checksum": "9"] }) {
                        Pieces(["ab", "cd"])
                    }
                    _ = try await session.data(for: Self.post(origin.url(), body))
                    #expect(origin.requests.last?.trailers["Checksum"] == (length == nil ? "9" : nil))
                }
                // It is too late there for fields that frame the message.
                let body = RequestBody.stream(trailers: { [.contentLength: "9"] }) { Pieces(["ab"]) }
                await expectFailure(.forbiddenField) { try await session.data(for: Self.post(origin.url(), body)) }
            }
        }
    }

    // MARK: Again

    @Test("a provided body is requested for the first sending and for every other (checklist 125)")
    func demanded() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next", status: .temporaryRedirect) }
            origin.route("/next") { request in .ok(.bytes(request.body)) }
            let seen = Watched<[String]>([])
            var decisions = Decisions()
            decisions.bodyProvider = Decision { demand in
                seen.append("\(demand.cause) \(demand.request.url.path())")
                return .stream { Pieces(["body", "\(seen.value.count)"]) }
            }
            try await withSession(.ephemeral) { session in
                let request = Self.post(origin.url(), .provided, [.contentType: "text/plain"])
                let (data, _) = try await session.data(for: request, decisions: decisions)
                #expect(String(decoding: data, as: UTF8.self) == "body2")
                #expect(seen.value == ["first /", "redirect /next"])
                #expect(origin.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["body1", "body2"])
                // The provider must return a body.
                decisions.bodyProvider = Decision { _ in .provided }
                await expectFailure(.badRequest) { try await session.data(for: request, decisions: decisions) }
                decisions.bodyProvider = Decision { _ in throw CancellationError() }
                await expectFailure(.decisionFailed) { try await session.data(for: request, decisions: decisions) }
            }
        }
    }

    // MARK: 100-continue

    private static let expecting: Headers = [.expect: "100-continue"]
    private static let head = "POST / HTTP/1.1\r\n"

    private static func scripted(_ scripts: [ScriptedPeer.Step]...) -> (ScriptedPeer, Configuration, ManualClock) {
        let peer = scripts.count == 1 ? ScriptedPeer(scripts[0]) : ScriptedPeer(scripts[0], scripts[1])
        let clock = ManualClock()
        var configuration = Configuration.ephemeral
        configuration.connect(to: peer)
        configuration.use(clock)
        return (peer, configuration, clock)
    }

    /// Whose field demands the 100: the request's own, or one that the session adds to every request.
    enum Expecting: CaseIterable { case request, session }

    private static func post(_ text: String, _ place: Expecting, _ configuration: inout Configuration) -> Request {
        if place == .session { configuration.headers = expecting }
        return post(
            URL(string: "http://h.example/")!, .data(Data(text.utf8)), place == .request ? expecting : Headers())
    }

    @Test("the body follows the 100 (RFC 9110 §10.1.1)", arguments: Expecting.allCases)
    func goAhead(_ place: Expecting) async throws {
        var (peer, configuration, _) = Self.scripted([
            .takeUntil("\r\n\r\n"), .hold, .give("HTTP/1.1 100 Continue\r\n\r\n"), .expect("hello"),
            .give("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ])
        let request = Self.post("hello", place, &configuration)
        try await withSession(configuration) { session in
            async let loaded = session.data(for: request)
            try await peer.untilHeld()
            peer.release()
            #expect(try await loaded.0 == Data("ok".utf8))
        }
        #expect(peer.failures == [])
    }

    @Test("without a 100 the body is sent after a timeout")
    func silence() async throws {
        let (peer, configuration, clock) = Self.scripted([
            .takeUntil("\r\n\r\n"), .expect("hello"), .give("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ])
        try await withSession(configuration) { session in
            async let loaded = session.data(
                for: Self.post(URL(string: "http://h.example/")!, .data(Data("hello".utf8)), Self.expecting))
            try await clock.untilWaiting()
            clock.advance(by: .milliseconds(999))
            try await clock.untilWaiting()
            #expect(!String(decoding: peer.written(), as: UTF8.self).hasSuffix("hello"))
            clock.advance(by: .milliseconds(1))
            #expect(try await loaded.0 == Data("ok".utf8))
        }
        #expect(peer.failures == [])
    }

    @Test(
        "a refusal saves the body, and the connection; after a 417 the request is repeated without Expect",
        arguments: Expecting.allCases)
    func refusal(_ place: Expecting) async throws {
        var (peer, configuration, _) = Self.scripted([
            .takeUntil("\r\n\r\n"), .give("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"),
        ])
        let refused = Self.post(String(repeating: "x", count: 100_000), place, &configuration)
        try await withSession(configuration) { session in
            let (data, response) = try await session.data(for: refused)
            #expect(data == Data("no".utf8) && response.http?.status == .unauthorized)
            // The server may still expect the body, so no other request may be sent on this connection.
            #expect(session.connectionsDescription == "empty")
        }
        #expect(peer.failures == [])
        var (second, other, _) = Self.scripted(
            [.takeUntil("\r\n\r\n"), .give("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")],
            [.takeUntil("\r\n\r\n"), .expect("hello"), .give("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")])
        let request = Self.post("hello", place, &other)
        try await withSession(other) { session in
            let (_, response) = try await session.data(for: request)
            #expect(response.http?.status == .ok)
        }
        #expect(second.failures == [])
        #expect(!String(decoding: second.written(onConnection: 2), as: UTF8.self).lowercased().contains("expect:"))
    }

    // MARK: Both ways at once

    @Test("the response is read while the request is still being sent")
    func duplex() async throws {
        let (peer, configuration, _) = Self.scripted([
            .takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            .expect("1\r\na\r\n"), .give("1\r\nA\r\n"), .expect("1\r\nb\r\n"), .give("1\r\nB\r\n"),
            .expect("0\r\n\r\n"), .give("0\r\n\r\n"),
            .takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"),
        ])
        let (questions, ask) = AsyncStream<[UInt8]>.makeStream()
        try await withSession(configuration) { session in
            let request = Self.post(URL(string: "http://h.example/")!, .stream { questions })
            let answers = try await session.load(request) { _, body in
                var answers = ""
                ask.yield(Array("a".utf8))
                for try await chunk in body {
                    answers += String(decoding: [UInt8](chunk), as: UTF8.self)
                    // The second message follows from the first response.
                    if answers == "A" { ask.yield(Array("b".utf8)) } else { ask.finish() }
                }
                return answers
            }
            #expect(answers == "AB")
            // Both directions have ended: the connection serves the next request.
            try await session.expect(URL(string: "http://h.example/next")!, "next")
        }
        #expect(peer.failures == [])
    }

    @Test(
        "a handle keeps sending without a reader of its response; a reader may come at any time",
        arguments: [false, true])
    func duplexHandle(_ isRead: Bool) async throws {
        let count = 8 << 20
        let piece = 1 << 20
        let pieces = (0..<count / piece).flatMap { _ in [ScriptedPeer.Step.take(piece)] }
        var (peer, configuration, _) = Self.scripted(
            [.takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789"), .hold] + pieces
                + [.give("0123456789")])
        configuration.readAhead = 10
        let session = Session(configuration)
        let task = session.dataTask(Self.post(URL(string: "http://h.example/")!, .data(Data(count: count)))).resumed()
        try await task.received(10)
        async let early = isRead ? task.value : Data()
        if isRead { try await Task.sleep(for: .milliseconds(1)) }
        peer.release()
        try await task.wait { $0.sent >= count }
        _ = try await early
        #expect(try await task.value.count == 20)
        #expect(peer.failures == [])
        await expectEmpty(session)
        let transaction = try #require(try await task.metrics.transactions.first)
        let (begun, sent, whole) = (transaction.responseStart, transaction.requestEnd, transaction.responseEnd)
        #expect(try #require(begun) < #require(sent) && #require(sent) <= #require(whole), "\(transaction)")
    }

    @Test("a response that ends before the request ends the sending")
    func early() async throws {
        let (peer, configuration, _) = Self.scripted([
            .takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstop!"),
        ])
        try await withSession(configuration) { session in
            // There is no second piece, and no reader waits for it.
            let body = RequestBody.stream { AsyncStream<[UInt8]> { continuation in continuation.yield([1]) } }
            let (data, _) = try await session.data(for: Self.post(URL(string: "http://h.example/")!, body))
            #expect(data == Data("stop!".utf8))
            #expect(session.connectionsDescription == "empty")
            try await eventuallyNoLeaks(session.leakedClosures)
        }
        _ = peer
    }
}

/// A temporary file, removed with its last reference.
final class TemporaryFile: Sendable {
    private let folder: TemporaryFolder
    let url: URL
    var path: String { url.path(percentEncoded: false) }

    init(_ content: Data, name: String = "file.bin") throws {
        folder = try TemporaryFolder()
        url = folder.url(name)
        try content.write(to: url)
    }
}

/// Texts as the pieces of a body.
struct Pieces: AsyncSequence, Sendable {
    let texts: [String]
    init(_ texts: [String]) { self.texts = texts }
    func makeAsyncIterator() -> Iterator { Iterator(left: texts[...]) }

    struct Iterator: AsyncIteratorProtocol {
        var left: ArraySlice<String>
        mutating func next() async -> [UInt8]? { left.popFirst().map { Array($0.utf8) } }
    }
}

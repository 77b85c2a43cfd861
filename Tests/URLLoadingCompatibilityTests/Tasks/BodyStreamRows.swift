// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The streams of request bodies: each is sent once; one that cannot be read fails its load.
@Suite(.timeLimit(.minutes(4)))
struct BodyStreamRows {
    private static func echo(_ origin: HTTPTestServer) {
        origin.route("/") { .ok($0.body.isEmpty ? "-" : String(decoding: $0.body, as: UTF8.self)) }
        origin.route("/count") { .ok("\($0.bodyCount)") }
        origin.route("/from") { _ in .redirect("/", status: .temporaryRedirect) }
        origin.route("/see") { _ in .redirect("/", status: .seeOther) }
        origin.route("/locked") { request in
            guard request.headers[.authorization] == nil else {
                return .ok(String(decoding: request.body, as: UTF8.self))
            }
            return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"r\""])
        }
        origin.route("/stale") { $0.exchange == 1 ? .ok("new") : .raw([], then: .reset) }
    }

    private static func put(_ url: URL, _ stream: InputStream?) -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        request.httpBodyStream = stream
        return request
    }

    private static func text(_ text: String) -> InputStream { InputStream(data: Data(text.utf8)) }

    private func answer(_ result: Result3) -> String {
        result.error.map { "\($0.code.rawValue)" } ?? String(decoding: result.data ?? Data(), as: UTF8.self)
    }

    /// The cause that the stream gave, inside the error of the load.
    private func cause(_ error: URLError?) -> (any Error)? {
        (error?.userInfo[NSUnderlyingErrorKey] as? LoadError)?.underlying
    }

    // MARK: Streams that cannot be read

    struct OwnError: Error {}

    /// A stream whose `read` returns a number of the test's choice.
    final class Scripted: InputStream {
        private let result: Int, after: Stream.Status, own: OwnError?
        private var status = Stream.Status.notOpen
        init(_ result: Int, _ after: Stream.Status, _ own: OwnError? = nil) {
            (self.result, self.after, self.own) = (result, after, own)
            super.init(data: Data())
        }
        override var streamStatus: Stream.Status { status }
        override var streamError: (any Error)? { own }
        override var hasBytesAvailable: Bool { false }
        override func open() { status = .open }
        override func close() { status = .closed }
        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
            status = after
            return result
        }
    }

    /// A stream that overrides `read` only: `streamError` is Foundation's, which ends the process on Linux.
    final class Bare: InputStream {
        private let result: Int
        init(_ result: Int) {
            self.result = result
            super.init(data: Data("bare".utf8))
        }
        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int { result }
    }

    enum Unreadable: String, CaseIterable, Sendable {
        case openedAndClosed, readToTheEnd, missingFile, directory, noFile, bareFailure, failure, failureAtEnd
        case failureWithError, overrun, hugeOverrun, leastCount

        var stream: InputStream? {
            let bytes = BodyStreamRows.text("bytes")
            switch self {
            case .openedAndClosed:
                bytes.open()
                bytes.close()
            case .readToTheEnd:
                var room = [UInt8](repeating: 0, count: 64)
                bytes.open()
                while bytes.read(&room, maxLength: 64) > 0 {}
            case .missingFile: return InputStream(fileAtPath: "/nonexistent/file")
            case .directory: return InputStream(fileAtPath: "/")
            case .noFile: return URL(string: "http://example.org/").flatMap { InputStream(url: $0) }
            case .bareFailure: return Bare(-1)
            case .failure: return Scripted(-1, .error)
            case .failureAtEnd: return Scripted(-1, .atEnd)
            case .failureWithError: return Scripted(-1, .error, OwnError())
            case .overrun: return Bare(65_537)
            case .hugeOverrun: return Bare(.max)
            case .leastCount: return Bare(.min)
            }
            return bytes
        }
    }

    @Test("a body stream that cannot be read fails the load with -1021", arguments: Unreadable.allCases)
    func unreadable(_ kind: Unreadable) async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let session = URLSession(configuration: .ephemeral)
            let stream: InputStream = try #require(kind.stream)
            let result = await session.result(Self.put(origin.url(), stream))
            #expect(answer(result) == "-1021" && result.data == nil)
            switch kind {
            case .missingFile: #expect((cause(result.error) as? NSError)?.code == 2)
            case .directory: #expect((cause(result.error) as? NSError)?.code == 21)
            case .failureWithError: #expect(cause(result.error) is OwnError)
            default: #expect(cause(result.error) != nil)
            }
            session.invalidateAndCancel()
        }
    }

    // MARK: Streams that can be read

    @Test("a stream that the program opened is read on; one without available bytes and an empty one are sent")
    func readable() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let session = URLSession(configuration: .ephemeral)
            let opened = Self.text("opened")
            opened.open()
            let begun = Self.text("begun")
            begun.open()
            var byte: UInt8 = 0
            #expect(begun.read(&byte, maxLength: 1) == 1)
            let empty = Self.text("")
            empty.open()
            // Foundation ignores the call: the stream is not open.
            let closed = Self.text("closed")
            closed.close()
            let streams: [(InputStream, String)] = [
                (opened, "opened"), (begun, "egun"), (closed, "closed"), (empty, "-"), (Self.text(""), "-"),
                (Scripted(0, .atEnd), "-"),
            ]
            for (stream, body) in streams {
                #expect(answer(await session.result(Self.put(origin.url(), stream))) == body)
            }
            session.invalidateAndCancel()
        }
    }

    /// A stream that waits for another load when it is closed.
    final class Waiting: InputStream {
        private let other: URL, outcomes: Box<Bool>
        private var rest = Array("waiting".utf8), status = Stream.Status.notOpen
        init(for other: URL, _ outcomes: Box<Bool>) {
            (self.other, self.outcomes) = (other, outcomes)
            super.init(data: Data())
        }
        override var streamStatus: Stream.Status { status }
        override var hasBytesAvailable: Bool { true }
        override func open() { status = .open }
        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
            defer { rest = [] }
            buffer.update(from: rest, count: rest.count)
            return rest.count
        }
        override func close() {
            status = .closed
            let ended = DispatchSemaphore(value: 0)
            URLSession.shared.dataTask(with: other) { _, _, _ in ended.signal() }.resume()
            outcomes.add(ended.wait(timeout: .now() + 20) == .success)
        }
    }

    @Test("a stream is closed where it may wait for another load", arguments: [false, true])
    func closing(_ isUpload: Bool) async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let outcomes = Box<Bool>()
            let recorder = Recorder()
            let session = recorder.session()
            recorder.onBody = { _, answer in answer(Waiting(for: origin.url("/count"), outcomes)) }
            let stream = Waiting(for: origin.url("/count"), outcomes)
            let task =
                isUpload
                ? session.uploadTask(withStreamedRequest: Self.put(origin.url(), nil))
                : session.dataTask(with: Self.put(origin.url(), stream))
            await recorder.complete(task)
            try await outcomes.wait { !$0.isEmpty }
            #expect(outcomes.all == [true] && recorder.record(task).data == Data("waiting".utf8))
            await recorder.expectOrder(session)
        }
    }

    // MARK: Streams that were used

    @Test("a request whose body stream was sent fails with -1021 when it is loaded again")
    func loadedTwice() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let session = URLSession(configuration: .ephemeral)
            for length in [1, 200_000] {
                let request = Self.put(origin.url("/count"), Self.text(String(repeating: "a", count: length)))
                #expect(answer(await session.result(request)) == "\(length)")
                for _ in 0..<3 { #expect(answer(await session.result(request)) == "-1021") }
            }
            session.invalidateAndCancel()
        }
    }

    @Test("the older classes fail with -1021 for a body stream that was sent")
    func loadedTwiceByConnection() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let request = Self.put(origin.url(), Self.text("one"))
            let queue = OperationQueue()
            var answers: [String] = []
            for _ in 0..<2 {
                answers.append(
                    await withCheckedContinuation { continuation in
                        NSURLConnection.sendAsynchronousRequest(request, queue: queue) { _, data, error in
                            continuation.resume(
                                returning: answer(Result3(data: data, error: error as? URLError)))
                        }
                    })
            }
            #expect(answers == ["one", "-1021"])
        }
    }

    @Test("two loads of one stream at the same time: one sends all of it, the other fails with -1021")
    func sharedStream() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let session = URLSession(configuration: .ephemeral)
            let request = Self.put(origin.url("/count"), Self.text(String(repeating: "abc", count: 100_000)))
            async let first = session.result(request)
            async let second = session.result(request)
            let answers = await [answer(first), answer(second)]
            #expect(Set(answers) == ["300000", "-1021"])
            session.invalidateAndCancel()
        }
    }

    @Test("needNewBodyStream that returns the stream that was sent fails the task with -1021")
    func sameStreamAgain() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let recorder = Recorder()
            let session = recorder.session()
            nonisolated(unsafe) let stream = Self.text("one")
            recorder.onBody = { _, answer in answer(stream) }
            let task = session.uploadTask(withStreamedRequest: Self.put(origin.url("/from"), nil))
            await recorder.complete(task)
            #expect(recorder.record(task).errors.last??.code == .requestBodyStreamExhausted)
            await recorder.expectOrder(session)
        }
    }

    // MARK: Streams that must be sent again

    /// A delegate without `needNewBodyStream`.
    final class Plain: NSObject, URLSessionDataDelegate, Sendable {
        let errors = Box<URLError?>()
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            errors.add(error as? URLError)
        }
    }

    @Test(
        "a body stream that must be sent again fails with -1021 without a needNewBodyStream",
        arguments: ["/from", "/locked", "/stale"])
    func noNewStream(_ path: String) async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let delegate = Plain()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            // The first load leaves an idle connection behind.
            #expect(answer(await session.result(URLRequest(url: origin.url()))) == "-")
            let request = { Self.put(origin.url(path), Self.text("one")) }
            session.dataTask(with: request()).resume()
            try await delegate.errors.wait { $0.count == 1 }
            #expect(delegate.errors.all.last??.code == .requestBodyStreamExhausted)
            #expect(answer(await session.result(URLRequest(url: origin.url()))) == "-")
            #expect(answer(await session.result(request())) == "-1021")
            session.invalidateAndCancel()
            guard path != "/locked" else { return }
            let alone = URLSession(configuration: .ephemeral)
            #expect(answer(await alone.result(URLRequest(url: origin.url()))) == "-")
            #expect(answer(await alone.result(request())) == "-1021")
            alone.invalidateAndCancel()
        }
    }

    // MARK: Streams that the program supplies on the way

    @Test("the stream of the request that willPerformHTTPRedirection returns is sent", arguments: ["/from", "/see"])
    func streamOfRedirect(_ path: String) async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let recorder = Recorder()
            let session = recorder.session()
            recorder.onRedirect = { _, _, request, answer in
                var other = request
                other.httpMethod = "PUT"
                other.httpBodyStream = Self.text("other")
                answer(other)
            }
            let task = session.dataTask(with: Self.put(origin.url(path), Self.text("one")))
            await recorder.complete(task)
            #expect(recorder.record(task).errors == [nil] && recorder.record(task).data == Data("other".utf8))
            #expect(!recorder.words(task).contains("body"))
            await recorder.expectOrder(session)
        }
    }

    @Test("the stream of a URLProtocol's redirect is sent, and one that the class was given and has not read")
    func streamOfProtocol() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let target = origin.url()
            for (host, makesNew) in [("new.streams.test", true), ("same.streams.test", false)] {
                ScriptedProtocol.script(host) { loader in
                    guard let url = loader.request.url,
                        let response = HTTPURLResponse(url: url, statusCode: 307, httpVersion: nil, headerFields: [:])
                    else { return }
                    var request = loader.request
                    request.url = target
                    if makesNew { request.httpBodyStream = Self.text("other") }
                    loader.client?.urlProtocol(loader, wasRedirectedTo: request, redirectResponse: response)
                }
            }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = [ScriptedProtocol.self]
            let session = URLSession(configuration: configuration)
            let new = await session.result(Self.put(try url("http://new.streams.test/"), Self.text("one")))
            #expect(answer(new) == "other")
            let same = await session.result(Self.put(try url("http://same.streams.test/"), Self.text("one")))
            #expect(answer(same) == "one")
            session.invalidateAndCancel()
        }
    }

    /// A class that replaces the body of a request.
    final class Replacing: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool {
            request.value(forHTTPHeaderField: "X-Replaced") == nil
        }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            var other = request
            other.setValue("yes", forHTTPHeaderField: "X-Replaced")
            other.httpBodyStream = BodyStreamRows.text("canonical")
            return other
        }
    }

    @Test("the stream of a canonical request is sent")
    func streamOfCanonical() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = [Replacing.self]
            let session = URLSession(configuration: configuration)
            #expect(answer(await session.result(Self.put(origin.url(), Self.text("one")))) == "canonical")
            #expect(answer(await session.result(Self.put(origin.url(), nil))) == "canonical")
            session.invalidateAndCancel()
        }
    }

    // MARK: Streamed uploads

    @Test("a streamed upload ignores the request's own body, and asks the delegate")
    func streamedUpload() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let recorder = Recorder()
            let session = recorder.session()
            recorder.onBody = { _, answer in answer(Self.text("asked")) }
            var withData = Self.put(origin.url(), nil)
            withData.httpBody = Data("data".utf8)
            for (number, request) in [Self.put(origin.url(), Self.text("own")), withData].enumerated() {
                let task = session.uploadTask(withStreamedRequest: request)
                await recorder.complete(task, number: number + 1)
                #expect(recorder.record(task).data == Data("asked".utf8))
                #expect(recorder.words(task).hasPrefix("body"))
            }
            await recorder.expectOrder(session)
        }
    }

    @Test("a streamed upload without a needNewBodyStream fails with -1021, also as the task of a class")
    func unaskedUpload() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            ScriptedProtocol.script("unasked.streams.test") { $0.answer("loaded") }
            let delegate = Plain()
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = [ScriptedProtocol.self]
            let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            for (number, url) in [origin.url(), try url("http://unasked.streams.test/")].enumerated() {
                session.uploadTask(withStreamedRequest: Self.put(url, Self.text("own"))).resume()
                try await delegate.errors.wait { $0.count == number + 1 }
                #expect(delegate.errors.all.last??.code == .requestBodyStreamExhausted)
            }
            session.invalidateAndCancel()
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Calls of ported programs at unusual moments.
@Suite(.timeLimit(.minutes(4)))
struct OddMomentRows {
    /// Cancels every task during its creation, and blocks until its end was reported.
    final class Hasty: NSObject, URLSessionTaskDelegate, Sendable {
        func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
            task.cancel()
            // The state is the subject, and the queue that would report it is the one that is blocked here.
            while task.state != .completed { usleep(200) }
            // The calls at the end are made on the queue, and are over now.
            session.delegateQueue.waitUntilAllOperationsAreFinished()
        }
    }

    @Test("an async method whose task ends before it waits does not wait forever")
    func overBeforeAwaited() async throws {
        let session = URLSession(configuration: .ephemeral)
        let url = try url("http://127.0.0.1:1/")
        await #expect(throws: URLError.self) { _ = try await session.data(from: url, delegate: Hasty()) }
        await #expect(throws: URLError.self) { _ = try await session.download(from: url, delegate: Hasty()) }
        await #expect(throws: URLError.self) { _ = try await session.bytes(from: url, delegate: Hasty()) }
        session.invalidateAndCancel()
    }

    /// Creates another task in didCreateTask.
    final class Curious: NSObject, URLSessionTaskDelegate, Sendable {
        let heard = Box<Int>(), others = Box<URLSessionDataTask>()
        func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
            heard.add(task.taskIdentifier)
            guard heard.all.count == 1, let url = task.originalRequest?.url else { return }
            others.add(session.dataTask(with: url) { _, _, _ in })
        }
    }

    @Test("the delegate passed to an async method applies to its task only")
    func delegateOfOneTask() async throws {
        try await withHTTPTestServer(answering: "in") { origin in
            let session = URLSession(configuration: .ephemeral)
            let delegate = Curious()
            _ = try await session.data(from: origin.url(), delegate: delegate)
            #expect(delegate.heard.all == [1])
            #expect(delegate.others.all.first?.delegate == nil)
            session.invalidateAndCancel()
        }
    }

    // MARK: Redirects

    private static func uploads(_ origin: HTTPTestServer) {
        origin.route("/from") { _ in .redirect("/to", status: .temporaryRedirect) }
        origin.route("/see") { _ in .redirect("/to", status: .seeOther) }
        origin.route("/to") { request in
            .ok("\(request.method) \(String(decoding: request.body, as: UTF8.self)) \(request.headers["X-New"] ?? "-")")
        }
    }

    /// A delegate that adds a field to the requests about which it is asked.
    private static func adding(_ proposals: Box<URLRequest> = Box()) -> Recorder {
        let recorder = Recorder()
        recorder.onRedirect = { _, _, request, answer in
            proposals.add(request)
            var other = request
            other.setValue("yes", forHTTPHeaderField: "X-New")
            answer(other)
        }
        return recorder
    }

    @Test("adding a field to a redirect keeps the body of an upload (checklist 59)")
    func bodyOfAnother() async throws {
        try await withHTTPTestServer(serving: Self.uploads) { origin in
            let recorder = Self.adding()
            let session = recorder.session()
            recorder.onBody = { _, answer in answer(InputStream(data: Data("stream".utf8))) }
            var request = URLRequest(url: origin.url("/from"))
            request.httpMethod = "POST"
            let file = temporaryURL("odd")
            try Data("file".utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let tasks = [
                session.uploadTask(with: request, from: Data("bytes".utf8)),
                session.uploadTask(with: request, fromFile: file),
                session.uploadTask(withStreamedRequest: request),
            ]
            for task in tasks { task.resume() }
            await recorder.completed.reaches(3)
            let texts = tasks.map { String(decoding: recorder.record($0).data, as: UTF8.self) }
            #expect(texts == ["POST bytes yes", "POST file yes", "POST stream yes"])
            await recorder.expectOrder(session)
        }
    }

    @Test("a request changed to GET by a redirect has no body stream (checklist 59)", arguments: [false, true])
    func bodyLeftBehind(_ isUpload: Bool) async throws {
        try await withHTTPTestServer(serving: Self.uploads) { origin in
            let proposals = Box<URLRequest>()
            let recorder = Self.adding(proposals)
            let session = recorder.session()
            recorder.onBody = { _, answer in answer(InputStream(data: Data("stream".utf8))) }
            var request = URLRequest(url: origin.url("/see"))
            request.httpMethod = "POST"
            if !isUpload { request.httpBodyStream = InputStream(data: Data("first".utf8)) }
            let task = isUpload ? session.uploadTask(withStreamedRequest: request) : session.dataTask(with: request)
            await recorder.complete(task)
            #expect(proposals.all.first?.httpBodyStream == nil && task.currentRequest?.httpBodyStream == nil)
            #expect(String(decoding: recorder.record(task).data, as: UTF8.self) == "GET  yes")
            await recorder.expectOrder(session)
        }
    }

    /// Replaces the request at its begin date, and records whether it is asked about the redirect.
    final class Late: NSObject, URLSessionTaskDelegate, Sendable {
        let asked = Counter(), url: URL
        init(_ url: URL) { self.url = url }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
            completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
        ) { completionHandler(.useNewRequest, URLRequest(url: url)) }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            asked.add()
            completionHandler(request)
        }
    }

    @Test("the request that replaced a delayed one has its questions answered")
    func questionsOfAnother() async throws {
        try await withHTTPTestServer(serving: Self.uploads) { origin in
            let delegate = Late(origin.url("/see"))
            let done = Counter()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let task = session.dataTask(with: origin.url("/to")) { data, _, error in
                #expect(data == Data("GET  -".utf8) && error == nil)
                done.add()
            }
            task.earliestBeginDate = Date()
            task.resume()
            await done.reaches(1)
            #expect(delegate.asked.value == 1)
            session.invalidateAndCancel()
        }
    }

    // MARK: Controls

    @Test("cancelling for resume data ends a download that cannot begin, was not begun, or waits for its date")
    func cancelUnbegun() async throws {
        let recorder = Recorder()
        let session = recorder.session()
        let url = try url("http://127.0.0.1:1/")
        let waiting = session.downloadTask(with: url)
        waiting.earliestBeginDate = .distantFuture
        waiting.resume()
        for task in [
            session.downloadTask(withResumeData: Data("rubbish".utf8)), session.downloadTask(with: url), waiting,
        ] {
            let data = await task.cancelByProducingResumeData()
            #expect(data == nil)
        }
        await recorder.completed.reaches(3)
        await recorder.expectOrder(session)
    }

    @Test("an excessive length does not crash: the progress of an upload counts both directions")
    func progressBeyond() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .status(.ok, headers: [.contentLength: "9223372036854775807"], body: .bytes(Array("a".utf8)))
            }
            let session = URLSession(configuration: .ephemeral)
            var request = URLRequest(url: origin.url())
            request.httpMethod = "POST"
            let done = Counter()
            let task = session.uploadTask(with: request, from: Data("hello".utf8)) { _, _, _ in done.add() }
            task.countOfBytesClientExpectsToReceive = .max
            task.countOfBytesClientExpectsToSend = .max
            let progress = task.progress
            task.resume()
            // A task with a completion handler reports nothing before its end.
            try await eventually(task.response != nil || done.value > 0) { $0 }
            task.cancel()
            await done.reaches(1)
            #expect(progress.totalUnitCount >= -1)
            session.invalidateAndCancel()
        }
    }

    /// A stream that provides no bytes until it is told to.
    final class Stuck: InputStream {
        private let gate: DispatchSemaphore, reads: Counter
        init(_ gate: DispatchSemaphore, _ reads: Counter) {
            (self.gate, self.reads) = (gate, reads)
            super.init(data: Data())
        }
        override func open() {}
        override func close() {}
        override var streamStatus: Stream.Status { .open }
        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
            reads.add()
            gate.wait()
            gate.signal()
            return 0
        }
    }

    @Test("streams that block delay neither files nor the end of their own tasks")
    func stuckStreams() async throws {
        try await withHTTPTestServer(answering: "in") { origin in
            let gate = DispatchSemaphore(value: 0)
            let reads = Counter()
            defer { gate.signal() }
            let recorder = Recorder()
            let session = recorder.session { $0.httpMaximumConnectionsPerHost = 16 }
            recorder.onBody = { _, answer in answer(Stuck(gate, reads)) }
            var request = URLRequest(url: origin.url())
            request.httpMethod = "PUT"
            let stuck = (0..<8).map { _ in session.uploadTask(withStreamedRequest: request) }
            for task in stuck { task.resume() }
            await reads.reaches(8)
            let (file, _) = try await session.download(from: origin.url())
            #expect(try Data(contentsOf: file) == Data("in".utf8))
            try FileManager.default.removeItem(at: file)
            for task in stuck { task.cancel() }
            await recorder.completed.reaches(8)
            await recorder.expectOrder(session)
        }
    }

    // MARK: Values

    @Test("cookies with an invalid or excessive expiry date do no harm")
    func oddCookies() throws {
        let storage = HTTPCookieStorage()
        let ends: [(HTTPCookiePropertyKey, Any)] = [
            (.maximumAge, "1e300"), (.maximumAge, "nan"), (.maximumAge, -5), (.expires, Date.distantFuture),
            (.expires, "never"),
            (.expires, Date(timeIntervalSince1970: .infinity)), (.expires, Date(timeIntervalSince1970: .nan)),
            (.expires, Date(timeIntervalSince1970: -.infinity)), (.port, "80,x,99999999999999999999"), (.version, "7"),
        ]
        for (number, end) in ends.enumerated() {
            let properties: [HTTPCookiePropertyKey: Any] = [
                .name: "n\(number)", .value: "v", .domain: "example.org", .path: "/", end.0: end.1,
            ]
            let cookie = try #require(HTTPCookie(properties: properties))
            storage.setCookie(cookie)
            _ = (cookie.properties, cookie.description, cookie.hash)
        }
        let kept = storage.cookies ?? []
        #expect(kept.allSatisfy { $0.expiresDate.map { $0.timeIntervalSince1970.isFinite } ?? true })
        #expect(!kept.isEmpty)
    }

    @Test("names of fields have Apple's spelling, also if the server sends them in lower case, as over HTTP/2")
    func namesOfFields() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .status(
                    .ok,
                    headers: [
                        "content-type": "text/plain", "etag": "\"1\"", "x-lower": "1", "set-cookie": "a=b",
                        "SET-COOKIE": "c=d",
                    ])
            }
            let session = URLSession(configuration: .ephemeral)
            let result = await session.result(URLRequest(url: origin.url()))
            let response = try #require(result.response as? HTTPURLResponse)
            let fields = response.allHeaderFields
            #expect(fields["Content-Type"] as? String == "text/plain" && fields["Etag"] as? String == "\"1\"")
            #expect(fields["x-lower"] as? String == "1" && fields["Content-Length"] != nil)
            let texts = fields as? [String: String] ?? [:]
            #expect(HTTPCookie.cookies(withResponseHeaderFields: texts, for: origin.url()).map(\.name) == ["a", "c"])
            let made = HTTPURLResponse(
                url: origin.url(), statusCode: 401, httpVersion: nil, headerFields: ["www-authenticate": "Basic"])
            #expect(made?.allHeaderFields["WWW-Authenticate"] as? String == "Basic")
            session.invalidateAndCancel()
        }
    }

    @Test("invalid settings fail the load, or are ignored")
    func rubbishSettings() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok("\(request.headers["X-Evil"] ?? "-")") }
            let changes: [@Sendable (URLSessionConfiguration) -> Void] = [
                { $0.httpAdditionalHeaders = ["X-A": "a\r\nX-Evil: 1", "": "b", 7: NSNull(), "a b": "c"] },
                {
                    $0.connectionProxyDictionary = [
                        "HTTPEnable": "yes", "HTTPPort": -1, "HTTPProxy": 5, "ExceptionsList": "x", 3: Date(),
                    ]
                },
                { $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPPort": 99_999_999, "HTTPProxy": "\r\n"] },
                { $0.httpMaximumConnectionsPerHost = .min },
                { ($0.timeoutIntervalForRequest, $0.timeoutIntervalForResource) = (.nan, -.infinity) },
                { $0.urlCache = URLCache(memoryCapacity: .min, diskCapacity: 0, directory: nil) },
                { $0.urlCache = URLCache(memoryCapacity: .max, diskCapacity: 0, directory: nil) },
                { $0.protocolClasses = [NSObject.self] },
            ]
            for change in changes {
                let configuration = URLSessionConfiguration.ephemeral
                change(configuration)
                let session = URLSession(configuration: configuration)
                let result = await session.result(URLRequest(url: origin.url()))
                #expect(result.data.map { $0 == Data("-".utf8) } ?? (result.error != nil))
                session.invalidateAndCancel()
            }
        }
    }

    // MARK: Pieces

    @Test("a protocol that delivers its body byte by byte is not slowed down by the buffered bytes")
    func tinyPieces() async throws {
        ScriptedProtocol.script("tiny.test") { loader in
            guard let url = loader.request.url, let client = loader.client else { return }
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
            client.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
            for number in 0..<600_000 { client.urlProtocol(loader, didLoad: Data([UInt8(truncatingIfNeeded: number)])) }
            client.urlProtocolDidFinishLoading(loader)
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [ScriptedProtocol.self]
        let session = URLSession(configuration: configuration)
        let result = await session.result(URLRequest(url: try url("http://tiny.test/")))
        #expect(result.data?.count == 600_000)
        #expect(result.data?.enumerated().allSatisfy { $0.element == UInt8(truncatingIfNeeded: $0.offset) } == true)
        session.invalidateAndCancel()
    }
}

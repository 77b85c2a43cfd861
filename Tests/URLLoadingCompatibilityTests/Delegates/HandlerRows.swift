// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Completion handlers and their errors.
@Suite(.timeLimit(.minutes(4)))
struct HandlerRows {
    @Test("a handler is called once, with body and response (checklist 40, 41, 42)")
    func success() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/a%20b.txt") { _ in
                .ok("hello", headers: ["Content-Type": "Text/Plain; charset=UTF-8", "X-Two": "1", "x-two": "2"])
            }
            let session = URLSession(configuration: .default)
            let result = await session.result(URLRequest(url: origin.url("/a%20b.txt")))
            #expect(result.data == Data("hello".utf8) && result.error == nil)
            let response = try #require(result.response as? HTTPURLResponse)
            #expect(response.statusCode == 200 && response.url == origin.url("/a%20b.txt"))
            #expect(response.mimeType == "text/plain" && response.textEncodingName == "utf-8")
            #expect(response.expectedContentLength == 5 && response.suggestedFilename == "a b.txt")
            #expect(response.value(forHTTPHeaderField: "CONTENT-TYPE") == "Text/Plain; charset=UTF-8")
            #expect(
                response.allHeaderFields["X-Two"] as? String == "1, 2"
                    && response.value(forHTTPHeaderField: "none") == nil)
            session.invalidateAndCancel()
        }
    }

    @Test("each of many handlers is called once, on the session's queue (checklist 40)")
    func many() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok("\($0.path)") }
            let session = URLSession(configuration: .default)
            let calls = Box<String>()
            let done = Counter()
            for number in 0..<200 {
                session.dataTask(with: origin.url("/\(number)")) { data, _, _ in
                    if OperationQueue.current !== session.delegateQueue { Issue.record("another queue") }
                    calls.add(String(decoding: data ?? Data(), as: UTF8.self))
                    done.add()
                }.resume()
            }
            await done.reaches(200)
            #expect(calls.all.sorted() == (0..<200).map { "/\($0)" }.sorted())
            session.invalidateAndCancel()
        }
    }

    @Test("an awaited result takes no operation of the session's own queue; of the program's queue it takes one")
    func awaited() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in .ok(request.body.isEmpty ? request.path : "body") }
            let session = URLSession(configuration: .ephemeral)
            session.delegateQueue.isSuspended = true
            let (data, _) = try await session.data(from: origin.url("/a"))
            #expect(data == Data("/a".utf8))
            var request = URLRequest(url: origin.url("/b"))
            request.httpMethod = "PUT"
            let (answer, _) = try await session.upload(for: request, from: Data("body".utf8))
            #expect(answer == Data("body".utf8))
            let nowhere = try url("http://127.0.0.1:1/")
            await #expect(throws: URLError.self) { try await session.data(from: nowhere) }
            let cancelled = Task { try await session.data(from: origin.url("/c")) }
            cancelled.cancel()
            await #expect(throws: URLError.self) { try await cancelled.value }
            session.invalidateAndCancel()

            let queue = OperationQueue()
            queue.isSuspended = true
            let ordered = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
            let returned = Counter()
            let waiting = Task {
                let (data, _) = try await ordered.data(from: origin.url("/d"))
                returned.add()
                return data
            }
            try await eventually(queue.operationCount) { $0 == 1 }
            #expect(returned.value == 0)
            queue.isSuspended = false
            #expect(try await waiting.value == Data("/d".utf8))
            ordered.invalidateAndCancel()
        }
    }

    @Test("a subclass makes the task of an awaited load, and its handler is called on the queue")
    func awaitedOfSubclass() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let session = Wrapping(configuration: .ephemeral)
            let (data, _) = try await session.data(from: origin.url())
            #expect(data == Data("hello, wrapped".utf8) && session.queues.all == [session.delegateQueue])
            session.invalidateAndCancel()
        }
    }

    /// Changes each result on its way.
    private final class Wrapping: URLSession, @unchecked Sendable {
        let queues = Box<OperationQueue?>()
        override func dataTask(
            with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> URLSessionDataTask {
            super.dataTask(with: request) { [queues] data, response, error in
                queues.add(OperationQueue.current)
                completionHandler(data.map { $0 + Data(", wrapped".utf8) }, response, error)
            }
        }
    }

    @Test("the length of a HEAD response is that of the GET; without a body there are no bytes (checklist 42)")
    func head() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            origin.route("/none") { _ in .status(.noContent) }
            let session = URLSession(configuration: .default)
            var request = URLRequest(url: origin.url())
            request.httpMethod = "HEAD"
            let head = await session.result(request)
            #expect(head.data == Data() && head.error == nil && head.response?.expectedContentLength == 5)
            let none = await session.result(URLRequest(url: origin.url("/none")))
            #expect(none.data == Data() && none.error == nil && none.response?.expectedContentLength ?? 0 <= 0)
            session.invalidateAndCancel()
        }
    }

    @Test("a server's error status is not an error (checklist 160)")
    func status() async throws {
        try await withHTTPTestServer { origin in
            let session = URLSession(configuration: .default)
            let result = await session.result(URLRequest(url: origin.url("/nowhere")))
            #expect(
                (result.response as? HTTPURLResponse)?.statusCode == 404 && result.error == nil && result.data != nil)
            session.invalidateAndCancel()
        }
    }

    @Test("errors are URLErrors with the codes of the table and the LoadError beneath (checklist 159, 161)")
    func errors() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/cut", faults: [.init(.responseBody(after: 100), .cut)]) { _ in .ok(.repeated(count: 1000)) }
            origin.route("/stall", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            let session = URLSession(configuration: .default)

            let cut = await session.result(URLRequest(url: origin.url("/cut")))
            #expect(cut.error?.code == .networkConnectionLost && cut.data == nil)
            #expect((cut.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(cut.error?.failingURL == origin.url("/cut"))
            // The whole URL, as on Apple's platforms; the diagnostic for logs has no query.
            let queried = origin.url("/cut?a=b")
            let failed = await session.result(URLRequest(url: queried)).error
            #expect(failed?.failingURL == queried)
            #expect(failed?.userInfo["NSErrorFailingURLStringKey"] as? String == queried.absoluteString)
            let diagnostic = try #require(failed?.userInfo[NSDebugDescriptionErrorKey] as? String)
            #expect(diagnostic.contains("/cut") && !diagnostic.contains("a=b"))
            let beneath = try #require(cut.error?.userInfo[NSUnderlyingErrorKey] as? LoadError)
            #expect(beneath.reason == .truncated && beneath.phase == .receiving)

            let late = await session.result(URLRequest(url: origin.url("/stall"), timeoutInterval: 0.05))
            #expect(late.error?.code == .timedOut && late.response == nil)
            let unsupported = await session.result(URLRequest(url: try url("gopher://a/")))
            #expect(unsupported.error?.code == .unsupportedURL)
            var none = URLRequest(url: origin.url())
            none.url = nil
            let bad = await session.result(none)
            #expect(bad.error?.code == .unsupportedURL)
            // No other server that had this port before, and whose response is stored, has this path.
            let unstored = origin.url("/never-stored")
            let offline = await session.result(URLRequest(url: unstored, cachePolicy: .returnCacheDataDontLoad))
            #expect(offline.error?.code == .resourceUnavailable)
            origin.releaseStalls()
            session.invalidateAndCancel()
        }
    }

    @Test("the session's timeouts apply (checklist 22)")
    func timeouts() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/stall", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            for isIdle in [true, false] {
                let configuration = URLSessionConfiguration.default
                if isIdle {
                    configuration.timeoutIntervalForRequest = 0.05
                } else {
                    configuration.timeoutIntervalForResource = 0.05
                }
                let session = URLSession(configuration: configuration)
                let late = await session.result(URLRequest(url: origin.url("/stall")))
                #expect(late.error?.code == .timedOut)
                let reason = (late.error?.userInfo[NSUnderlyingErrorKey] as? LoadError)?.reason
                #expect(reason == (isIdle ? .idleTimeout : .resourceTimeout))
                session.invalidateAndCancel()
            }
            origin.releaseStalls()
        }
    }

    @Test("the task of a handler asks the delegate about redirects, and makes no other calls")
    func delegateBeside() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/to") }
            origin.route("/to") { _ in .ok("hello") }
            let recorder = Recorder()
            let session = recorder.session()
            let tasks = Box<URLSessionDataTask>()
            let result = await session.result(URLRequest(url: origin.url())) { tasks.add($0) }
            #expect(result.data == Data("hello".utf8))
            await recorder.expectOrder(session)
            let task = try #require(tasks.all.first)
            #expect(recorder.words(task) == "redirect")
        }
    }

    @Test("the session's additional fields are sent; those of the request take precedence")
    func headers() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.headers["X-One"] ?? "-") \($0.headers["X-Two"] ?? "-")") }
            let configuration = URLSessionConfiguration.default
            configuration.httpAdditionalHeaders = ["X-One": "session", "X-Two": 2]
            let session = URLSession(configuration: configuration)
            // Checklist 9: a change after the session was created has no effect.
            configuration.httpAdditionalHeaders = nil
            var request = URLRequest(url: origin.url())
            request.setValue("request", forHTTPHeaderField: "x-one")
            let result = await session.result(request)
            #expect(String(decoding: result.data ?? Data(), as: UTF8.self) == "request 2")
            session.invalidateAndCancel()
        }
    }
}

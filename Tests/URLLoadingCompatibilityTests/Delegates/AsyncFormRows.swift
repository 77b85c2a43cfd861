// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Delegate methods in their async form.
@Suite(.timeLimit(.minutes(4)))
struct AsyncFormRows {
    /// Implements every question in the async form, and suspends in each.
    final class Waiter: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter()

        private func note(_ word: String, _ session: URLSession) async {
            let before = OperationQueue.current === session.delegateQueue
            try? await Task.sleep(for: .milliseconds(1))
            words.add("\(word) \(before) \(OperationQueue.current === session.delegateQueue)")
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? {
            await note("redirect", session)
            return request
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            await note("challenge", session)
            return (.useCredential, URLCredential(user: "ada", password: "secret", persistence: .none))
        }
        func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
            await note("body", session)
            return InputStream(data: Data("12345".utf8))
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
        ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
            await note("delayed", session)
            return (.continueLoading, nil)
        }
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            await note("response", session)
            return (response as? HTTPURLResponse)?.statusCode == 200 ? .allow : .cancel
        }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            words.add(String(decoding: data, as: UTF8.self))
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            words.add("complete \((error as? URLError)?.code.rawValue ?? 0)")
            done.add()
        }
    }

    private static func routes(_ origin: HTTPTestServer) {
        origin.route("/from") { _ in .redirect("/", status: .temporaryRedirect) }
        origin.route("/") { request in
            guard request.headers["Authorization"] != nil else {
                return .status(.unauthorized, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
            }
            return .ok("got \(request.bodyCount)")
        }
        origin.route("/missing") { _ in .status(.notFound) }
    }

    @Test(
        "each async method is called once, begins and continues on the delegate queue, and is awaited",
        arguments: [false, true])
    func all(_ isConcurrent: Bool) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Waiter()
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = isConcurrent ? 4 : 1
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: queue)
            var request = URLRequest(url: origin.url("/from"))
            request.httpMethod = "PUT"
            let task = session.uploadTask(withStreamedRequest: request)
            task.earliestBeginDate = Date()
            task.resume()
            await delegate.done.reaches(1)
            let words = ["delayed", "body", "redirect", "body", "challenge", "body", "response"].map {
                "\($0) true true"
            }
            #expect(delegate.words.all == words + ["got 5", "complete 0"])
            session.finishTasksAndInvalidate()
        }
    }

    @Test("the disposition returned by an async method is applied")
    func refused() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Waiter()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            session.dataTask(with: origin.url("/missing")).resume()
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["response true true", "complete -999"])
            session.finishTasksAndInvalidate()
        }
    }

    /// Implements one async method, and leaves the others to the next delegate.
    final class Partial: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let words = Box<String>()
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? {
            words.add("redirect")
            return request
        }
    }

    @Test(
        "a question that a task's own delegate implements in neither form goes to the session's delegate, in its form")
    func fallback() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Waiter()
            let own = Partial()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            for _ in 0..<2 {
                let task = session.dataTask(with: origin.url("/from"))
                task.delegate = own
                task.resume()
                await delegate.done.reaches(delegate.done.value + 1)
            }
            #expect(own.words.all == ["redirect", "redirect"])
            let once = ["challenge true true", "response true true", "got 0", "complete 0"]
            #expect(delegate.words.all == once + once)
            session.finishTasksAndInvalidate()
        }
    }

    @Test("a program may call either form, whichever the delegate implements")
    func called() async throws {
        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: try url("http://a.example/"))
        let request = URLRequest(url: try url("http://b.example/"))
        let response = try #require(
            HTTPURLResponse(url: request.url!, statusCode: 302, httpVersion: nil, headerFields: nil))
        let recorder = Recorder()
        let kept = await (recorder as any URLSessionTaskDelegate).urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        #expect(kept == request)
        let neither: any URLSessionTaskDelegate = Waiterless()
        let followed = await neither.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        #expect(followed == request)
        session.invalidateAndCancel()
    }

    final class Waiterless: NSObject, URLSessionTaskDelegate, Sendable {}

    /// Compiled as in a program without this package's compiler settings.
    final class Concurrent: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter()
        @concurrent func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            words.add("response \(OperationQueue.current === session.delegateQueue)")
            return .allow
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            done.add()
        }
    }

    @Test("a method marked @concurrent is still called on the delegate queue")
    func concurrent() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let delegate = Concurrent()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            session.dataTask(with: origin.url()).resume()
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["response true"])
            session.finishTasksAndInvalidate()
        }
    }
}

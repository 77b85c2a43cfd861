// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The delegate's options for redirects, and for its completion handlers.
@Suite(.timeLimit(.minutes(4)))
struct RedirectRows {
    private static func routes(_ origin: HTTPTestServer) {
        origin.route("/from") { _ in
            .status(.found, headers: [.location: "/to", "X-Here": "1"], body: .bytes(Array("moved".utf8)))
        }
        origin.route("/to") { .ok("\($0.method) \($0.headers["X-New"] ?? "-")") }
        origin.route("/other") { .ok("other \($0.method) \($0.headers["X-New"] ?? "-") \($0.bodyCount)") }
    }

    /// Returns the result of a task whose delegate gives this answer.
    private static func load(
        _ change: (inout URLRequest) -> Void = { _ in }, _ answer: @escaping Recorder.Redirecter
    ) async throws -> (text: String, words: String, error: URLError?, task: URLSessionTask, paths: [String]) {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let recorder = Recorder()
            recorder.onRedirect = answer
            let session = recorder.session()
            var request = URLRequest(url: origin.url("/from"))
            change(&request)
            let task = session.dataTask(with: request)
            await recorder.complete(task)
            await recorder.expectOrder(session)
            let record = recorder.record(task)
            let text = String(decoding: record.data, as: UTF8.self)
            return (text, recorder.words(task), record.errors.first ?? nil, task, origin.requests.map(\.path))
        }
    }

    @Test("the delegate is asked before a redirect is sent, and may follow it as proposed (checklist 57, 58)")
    func follow() async throws {
        let proposals = Box<(Int, String?, String?)>()
        let result = try await Self.load { _, response, request, answer in
            proposals.add((response.statusCode, response.value(forHTTPHeaderField: "x-here"), request.url?.path))
            answer(request)
        }
        #expect(proposals.all.map { "\($0)" } == [#"(302, Optional("1"), Optional("/to"))"#])
        #expect(result.text == "GET -" && result.words == "redirect response data complete")
        #expect(result.task.originalRequest?.url?.path == "/from" && result.task.currentRequest?.url?.path == "/to")
        #expect(result.task.response?.url?.path == "/to")
    }

    @Test("another request is sent instead, from any thread, later (checklist 59)")
    func instead() async throws {
        let result = try await Self.load { _, _, request, answer in
            var other = request
            other.url = URL(string: "/other", relativeTo: request.url)?.absoluteURL
            other.httpMethod = "PUT"
            other.httpBody = Data(count: 7)
            other.setValue("yes", forHTTPHeaderField: "X-New")
            let sent = other
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { answer(sent) }
        }
        #expect(result.text == "other PUT yes 7" && result.error == nil)
        #expect(result.task.currentRequest?.httpMethod == "PUT" && result.task.currentRequest?.httpBody?.count == 7)
    }

    @Test("nil makes the redirect response and its body the result (checklist 60)")
    func deliver() async throws {
        let result = try await Self.load { $3(nil) }
        #expect(result.text == "moved" && result.error == nil && result.paths == ["/from"])
        #expect((result.task.response as? HTTPURLResponse)?.statusCode == 302)
        #expect(result.task.currentRequest == result.task.originalRequest)
    }

    @Test("the task may be cancelled while it is asked, answered or not (checklist 63)", arguments: [false, true])
    func cancel(_ answers: Bool) async throws {
        let kept = Box<@Sendable (URLRequest?) -> Void>()
        let result = try await Self.load { task, _, request, answer in
            task.cancel()
            answers ? answer(request) : kept.add(answer)
        }
        #expect(result.error?.code == .cancelled && result.words == "redirect complete" && result.paths == ["/from"])
    }

    @Test("a POST that becomes a GET loses its body in the proposed request; one that stays a POST keeps it")
    func body() async throws {
        let bodies = Box<String>()
        _ = try await Self.load { request in
            request.httpMethod = "POST"
            request.httpBody = Data(count: 3)
        } _: { _, _, request, answer in
            bodies.add("\(request.httpMethod ?? "-") \(request.httpBody?.count ?? -1)")
            answer(request)
        }
        #expect(bodies.all == ["GET -1"])
    }

    // MARK: Checklist 55

    /// Collects the reports of one task; other tests run at the same time.
    @Test(
        "a handler dropped, or called twice, is reported; a dropped handler cancels the task (checklist 55)",
        arguments: ["dropped redirect", "dropped response", "again redirect", "again response"])
    func misuse(_ what: String) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let recorder = Recorder()
            recorder.onRedirect = { _, _, request, answer in
                if what != "dropped redirect" { answer(request) }
                if what == "again redirect" { answer(nil) }
            }
            recorder.onResponse = { _, _, answer in
                if what != "dropped response" { answer(.allow) }
                if what == "again response" { answer(.cancel) }
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url("/from"))
            let reports = MisuseReports(task)
            await recorder.complete(task)
            let isDropped = what.hasPrefix("dropped")
            let error = recorder.record(task).errors.first ?? nil
            #expect(error?.code == (isDropped ? .cancelled : nil))
            if isDropped { #expect((error?.userInfo[NSUnderlyingErrorKey] as? LoadError)?.reason == .decisionFailed) }
            let method = what.hasSuffix("redirect") ? "willPerformHTTPRedirection" : "didReceive response"
            let words =
                isDropped
                ? "was dropped without being called; the task is cancelled" : "was called again, without effect"
            #expect(reports.all == ["task 1: the completion handler of \(method) \(words)"])
            if !isDropped { #expect(recorder.record(task).data == Data("GET -".utf8)) }
            await recorder.expectOrder(session)
        }
    }

    @Test("a handler dropped after the end of its task is not reported (checklist 55)")
    func keptTooLong() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let recorder = Recorder()
            let (kept, asked) = recorder.holdResponses()
            let session = recorder.session()
            let task = session.dataTask(with: origin.url("/to"))
            let reports = MisuseReports(task)
            task.resume()
            await asked.reaches(1)
            task.cancel()
            await recorder.completed.reaches(1)
            kept.keep(nil)
            #expect(reports.all == [])
            #expect(recorder.words(task) == "response complete")
            await recorder.expectOrder(session)
        }
    }

    @Test("a redirect's request without a URL is unsupportedURL")
    func withoutURL() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            origin.route("/away") { _ in .status(.found, headers: [.location: "/to"]) }
            let recorder = Recorder()
            recorder.onRedirect = { _, _, request, answer in
                var request = request
                request.url = nil
                answer(request)
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url("/away"))
            await recorder.complete(task)
            #expect((task.error as? URLError)?.code == .unsupportedURL)
            await recorder.expectOrder(session)
        }
    }
}

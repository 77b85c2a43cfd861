// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoadingCompatibility

/// Every method of every session delegate protocol, called on the promised queue, in the order of checklist 45.
@Suite(.timeLimit(.minutes(4)))
struct DelegateTableRows {
    /// The words that `EveryEvent` and its subclasses record, with the method that was called.
    static let methods: [String: String] = [
        "invalid": "URLSessionDelegate.urlSession(_:didBecomeInvalidWithError:)",
        "session challenge": "URLSessionDelegate.urlSession(_:didReceive:completionHandler:)",
        "async session challenge": "URLSessionDelegate.urlSession(_:didReceive:)",
        "created": "URLSessionTaskDelegate.urlSession(_:didCreateTask:)",
        "delayed": "URLSessionTaskDelegate.urlSession(_:task:willBeginDelayedRequest:completionHandler:)",
        "async delayed": "URLSessionTaskDelegate.urlSession(_:task:willBeginDelayedRequest:)",
        "redirect":
            "URLSessionTaskDelegate.urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)",
        "async redirect": "URLSessionTaskDelegate.urlSession(_:task:willPerformHTTPRedirection:newRequest:)",
        "challenge": "URLSessionTaskDelegate.urlSession(_:task:didReceive:completionHandler:)",
        "async challenge": "URLSessionTaskDelegate.urlSession(_:task:didReceive:)",
        "body": "URLSessionTaskDelegate.urlSession(_:task:needNewBodyStream:)",
        "async body": "URLSessionTaskDelegate.urlSession(_:needNewBodyStreamForTask:)",
        "rest": "URLSessionTaskDelegate.urlSession(_:task:needNewBodyStreamFrom:completionHandler:)",
        "async rest": "URLSessionTaskDelegate.urlSession(_:needNewBodyStreamForTask:from:)",
        "sent": "URLSessionTaskDelegate.urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)",
        "informational": "URLSessionTaskDelegate.urlSession(_:task:didReceiveInformationalResponse:)",
        "waiting": "URLSessionTaskDelegate.urlSession(_:taskIsWaitingForConnectivity:)",
        "metrics": "URLSessionTaskDelegate.urlSession(_:task:didFinishCollecting:)",
        "complete": "URLSessionTaskDelegate.urlSession(_:task:didCompleteWithError:)",
        "response": "URLSessionDataDelegate.urlSession(_:dataTask:didReceive:completionHandler:)",
        "async response": "URLSessionDataDelegate.urlSession(_:dataTask:didReceive:)",
        "became download": "URLSessionDataDelegate.urlSession(_:dataTask:didBecome:)",
        "became stream": "URLSessionDataDelegate.urlSession(_:dataTask:didBecome:)",
        "data": "URLSessionDataDelegate.urlSession(_:dataTask:didReceive:)",
        "cache": "URLSessionDataDelegate.urlSession(_:dataTask:willCacheResponse:completionHandler:)",
        "async cache": "URLSessionDataDelegate.urlSession(_:dataTask:willCacheResponse:)",
        "file": "URLSessionDownloadDelegate.urlSession(_:downloadTask:didFinishDownloadingTo:)",
        "written":
            """
        URLSessionDownloadDelegate.urlSession(_:downloadTask:didWriteData:\
        totalBytesWritten:totalBytesExpectedToWrite:)
        """,
        "resumed": "URLSessionDownloadDelegate.urlSession(_:downloadTask:didResumeAtOffset:expectedTotalBytes:)",
        "read closed": "URLSessionStreamDelegate.urlSession(_:readClosedFor:)",
        "write closed": "URLSessionStreamDelegate.urlSession(_:writeClosedFor:)",
        "better route": "URLSessionStreamDelegate.urlSession(_:betterRouteDiscoveredFor:)",
        "streams": "URLSessionStreamDelegate.urlSession(_:streamTask:didBecome:outputStream:)",
        "opened": "URLSessionWebSocketDelegate.urlSession(_:webSocketTask:didOpenWithProtocol:)",
        "closed": "URLSessionWebSocketDelegate.urlSession(_:webSocketTask:didCloseWith:reason:)",
    ]

    @Test("the table contains every method of the session delegate protocols")
    func isWhole() async throws {
        let surface = try await PublicSurface(of: "URLLoadingCompatibility")
        // Only background sessions call it: `ClassicBackgroundRows`.
        let declared = surface.delegateMethods { $0.hasPrefix("URLSession") }
            .filter { !$0.hasSuffix("urlSessionDidFinishEvents(forBackgroundURLSession:)") }
        #expect(declared.count > 30)
        #expect(Self.methods.values.sorted() == declared)
    }

    @Test(
        "each delegate method is called in order on its queue, with answers from any thread (checklist 45, 169, 170)",
        arguments: Form.allCases)
    func everyMethod(_ form: Form) async throws {
        let isAsync = form == .async
        var calls: Set<String> = []
        func expect(_ words: [String], _ delegate: any EveryDelegate, sourceLocation: SourceLocation = #_sourceLocation)
        {
            // Called before the task can be resumed, and therefore on the creating thread.
            let words = ["created elsewhere"] + words + ["invalid"]
            #expect(delegate.calls.all == words, sourceLocation: sourceLocation)
            calls.formUnion(delegate.calls.all)
        }
        func delegate() -> any EveryDelegate {
            isAsync ? EveryAsyncQuestion() : EveryQuestion(answersElsewhere: form == .handlerElsewhere)
        }
        let a = isAsync ? "async " : ""

        try await Self.upload(delegate()) {
            expect(
                [
                    a + "delayed", a + "session challenge", a + "body", "sent", a + "redirect", a + "body", "sent",
                    a + "challenge",
                    a + "body", "sent", "informational", a + "response", "data", "metrics", "complete",
                ], $0)
        }
        try await Self.waiting(delegate()) {
            expect(["waiting", a + "response", "data", a + "cache", "metrics", "complete"], $0)
        }
        try await Self.turning(delegate()) {
            expect([a + "response", "became download", "written", "file", "metrics", "complete"], $0)
        }
        try await Self.resuming(delegate()) {
            expect(
                [
                    "written", "metrics", "complete -999", "created elsewhere", "resumed", "written", "file", "metrics",
                    "complete",
                ], $0)
        }
        try await Self.resumingUpload(delegate()) {
            expect([a + "rest", "sent", a + "response", "data", "metrics", "complete"], $0)
        }
        try await Self.upgrading(delegate()) {
            // The stream is announced on the queue, because its load has come to the event loop.
            expect([a + "response", "created", "became stream", "metrics", "complete -999"], $0)
        }
        try await Self.webSocket(delegate()) { expect(["opened", "closed", "metrics", "complete"], $0) }
        try await Self.stream(delegate()) {
            expect(["write closed", "better route", "read closed", "metrics", "complete"], $0)
        }
        try await Self.capturing(delegate()) { expect(["streams"], $0) }

        let calledWords = Set(calls.map { $0.replacing(" elsewhere", with: "") })
        // A delegate with one form of a question is not asked in the other form.
        let questions = Set(Self.methods.keys.filter { $0.hasPrefix("async ") })
        let others = isAsync ? Set(questions.map { String($0.dropFirst("async ".count)) }) : questions
        let missing = Set(Self.methods.keys).subtracting(others).subtracting(calledWords)
        #expect(missing.isEmpty)
    }

    /// The way in which questions are answered.
    enum Form: CaseIterable, Sendable { case handler, handlerElsewhere, async }
}

// MARK: Loads

extension DelegateTableRows {
    /// Uploads over TLS that a delegate must accept, with a begin date and a streamed body, through a redirect and a
    /// login, each of which requests a new stream (checklist 85, 125).
    private static func upload(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        let identity = try TestCertificateAuthority(commonName: "Untrusted root").issue()
        try await withHTTPTestServer(.init(tls: .init(identity))) { origin in
            let hints = try #require(Status(103))
            origin.route("/from") { _ in .redirect("/to", status: .temporaryRedirect) }
            origin.route("/to") { request in
                guard request.headers[.authorization] != nil else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"r\""])
                }
                return .ok("in").after(.init(hints))
            }
            let session = session(delegate)
            var request = URLRequest(url: origin.url("/from"))
            request.httpMethod = "PUT"
            let task = session.uploadTask(withStreamedRequest: request)
            task.earliestBeginDate = Date()
            await run(task, delegate, session)
            #expect(origin.counts.accepted == 1)
            check(delegate)
        }
    }

    /// Loads without a network first, then a response that may be stored.
    private static func waiting(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("kept", headers: ["Cache-Control": "max-age=60"]) }
            let session = session(delegate)
            let task = session.dataTask(with: origin.url())
            // Emits the event directly; the core's waiting is tested elsewhere.
            task.bridge?.emit(.waitingForConnectivity)
            try await delegate.calls.wait { $0.count == 2 }
            await run(task, delegate, session)
            check(delegate)
        }
    }

    private static func turning(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/to-file") { _ in .ok(.repeated(count: 100_000)) }
            let session = session(delegate)
            await run(session.dataTask(with: origin.url("/to-file")), delegate, session)
            check(delegate)
        }
    }

    /// Interrupts a download and resumes it.
    private static func resuming(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 1000), .stall)]) { request in
                guard request.headers[.range] != nil else {
                    return .ok(.repeated(count: 2000), headers: [.etag: "\"one\""])
                }
                return .status(
                    .partialContent, headers: [.etag: "\"one\"", .contentRange: "bytes 1000-1999/2000"],
                    body: .repeated(count: 1000))
            }
            let session = session(delegate)
            let first = session.downloadTask(with: origin.url()).resumed()
            try await first.received(1000)
            try await delegate.calls.wait { $0.last == "written" }
            let data = try #require(await first.cancelByProducingResumeData())
            await delegate.calls.done.reaches(1)
            origin.removeFaults()
            origin.releaseStalls()
            await run(session.downloadTask(withResumeData: data), delegate, session, ends: 2)
            check(delegate)
        }
    }

    /// Interrupts the upload of a stream in another session, and resumes it.
    private static func resumingUpload(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws
    {
        let server = ResumableUploadServer(.init())
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            server.inject(.init(.received(70_000), .reset))
            let recorder = Recorder()
            let first = recorder.session()
            recorder.onBody = { _, answer in answer(Answers.rest(from: 0)) }
            var request = URLRequest(url: origin.url("/files"))
            request.httpMethod = "POST"
            let cut = first.uploadTask(withStreamedRequest: request)
            await recorder.complete(cut)
            let data = try #require((recorder.record(cut).errors.last ?? nil)?.uploadTaskResumeData)
            await recorder.expectOrder(first)
            let session = session(delegate)
            await run(session.uploadTask(withResumeData: data), delegate, session)
            #expect(server.uploads.first?.isComplete == true)
            check(delegate)
        }
    }

    private static func upgrading(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let session = session(delegate)
        var request = URLRequest(url: try url("http://127.0.0.1:\(listener.address.port)/to-stream"))
        request.setValue("raw", forHTTPHeaderField: "Upgrade")
        request.setValue("Upgrade", forHTTPHeaderField: "Connection")
        session.dataTask(with: request).resume()
        let peer = try await StreamPeer(listener)
        defer { peer.close() }
        while try await peer.text(1) != "\n" {}
        try await peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\nConnection: Upgrade\r\n\r\n")
        await delegate.calls.done.reaches(1)
        session.invalidateAndCancel()
        await delegate.calls.invalidated.reaches(1)
        check(delegate)
    }

    private static func webSocket(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            let session = session(delegate)
            let task = session.webSocketTask(with: origin.url()).resumed()
            try await task.send(.string("hello"))
            _ = try await task.receive()
            task.cancel(with: .goingAway, reason: nil)
            await run(task, delegate, session)
            check(delegate)
        }
    }

    private static func stream(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let networks = ScriptedPaths()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.adjust { $0.networkMonitor = NetworkMonitor(networks) }
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port)).resumed()
        task.closeWrite()
        let peer = try await StreamPeer(listener)
        defer { peer.close() }
        let text = try await peer.text()
        #expect(text.isEmpty)
        // The peer may know of the end before the delegate does.
        try await delegate.calls.wait { $0.contains("write closed") }
        try await networks.wait { $0.open == 1 }
        networks.reach(by: .ipv4((10, 0, 0, 7), port: 0))
        let link = RouteBytes.link(2, "eth0")
        networks.change(telling: [link]) {
            $0 = .init(
                links: [link], addresses: [RouteBytes.address(2, [192, 0, 2, 1])],
                routes: [RouteBytes.defaultRoute(through: [2])])
        }
        try await delegate.calls.wait { $0.contains("better route") }
        peer.finish()
        _ = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 5)
        await run(task, delegate, session)
        check(delegate)
    }

    private static func capturing(_ delegate: any EveryDelegate, _ check: (any EveryDelegate) -> Void) async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let session = session(delegate)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
        task.captureStreams()
        task.resume()
        let peer = try await StreamPeer(listener)
        defer { peer.close() }
        try await delegate.calls.wait { $0.contains("streams") }
        session.finishTasksAndInvalidate()
        await delegate.calls.invalidated.reaches(1)
        check(delegate)
    }

    private static func session(_ delegate: any EveryDelegate) -> URLSession {
        URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    /// Runs a task to its end, and the session to its invalidation.
    private static func run(_ task: URLSessionTask, _ delegate: any EveryDelegate, _ session: URLSession, ends: Int = 1)
        async
    {
        task.resume()
        session.finishTasksAndInvalidate()
        await delegate.calls.done.reaches(ends)
        await delegate.calls.invalidated.reaches(1)
    }
}

extension PublicSurface {
    /// Returns the methods of the delegate protocols whose names match, each as often as it is overloaded.
    func delegateMethods(_ isMeant: (String) -> Bool) -> [String] {
        declarations.flatMap { path, declarations -> [String] in
            let parts = path.split(separator: " ")
            let name = String(parts[0].prefix { $0 != "." })
            guard parts[1] == "swift.method", name.hasSuffix("Delegate"), isMeant(name) else { return [] }
            return declarations.map { _ in String(parts[0]) }
        }.sorted()
    }
}

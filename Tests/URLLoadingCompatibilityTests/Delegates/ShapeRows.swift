// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The kinds of delegates, and the properties common to all kinds of tasks.
@Suite(.timeLimit(.minutes(4)))
struct ShapeRows {
    // MARK: Checklist 44

    private static func asTask(_ delegate: any URLSessionDataDelegate) -> any URLSessionTaskDelegate { delegate }
    private static func asTask(_ delegate: any URLSessionDownloadDelegate) -> any URLSessionTaskDelegate { delegate }
    private static func asTask(_ delegate: any URLSessionStreamDelegate) -> any URLSessionTaskDelegate { delegate }
    private static func asTask(_ delegate: any URLSessionWebSocketDelegate) -> any URLSessionTaskDelegate { delegate }
    private static func asSession(_ delegate: any URLSessionTaskDelegate) -> any URLSessionDelegate { delegate }

    /// Receives the end of a session, and no calls about tasks.
    final class OfSession: NSObject, URLSessionDelegate, @unchecked Sendable {
        let invalidated = Counter()
        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { invalidated.add() }
    }
    /// Receives the end of tasks, and no calls specific to data tasks.
    final class OfTasks: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
        let ended = Counter(), invalidated = Counter()
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            if error == nil { ended.add() }
        }
        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { invalidated.add() }
    }

    @Test(
        "the delegate protocols refine the task delegate, which refines the session delegate (checklist 44)"
    )
    func nesting() async throws {
        // Compiling this is the test; one object may conform to all protocols.
        let all = EveryQuestion(answersElsewhere: false)
        let narrowed = [
            Self.asTask(all as any URLSessionDataDelegate), Self.asTask(all as any URLSessionDownloadDelegate),
            Self.asTask(all as any URLSessionStreamDelegate), Self.asTask(all as any URLSessionWebSocketDelegate),
        ]
        #expect(narrowed.allSatisfy { $0 === all && Self.asSession($0) === all })

        try await withHTTPTestServer(answering: "hello") { origin in
            let narrow = OfSession()
            let wide = OfTasks()
            let quiet = URLSession(configuration: .ephemeral, delegate: narrow, delegateQueue: nil)
            let task = quiet.dataTask(with: origin.url()).resumed()
            quiet.finishTasksAndInvalidate()
            await narrow.invalidated.reaches(1)
            #expect(task.state == .completed && task.error == nil && task.countOfBytesReceived == 5)
            let session = URLSession(configuration: .ephemeral, delegate: wide, delegateQueue: nil)
            session.dataTask(with: origin.url()).resume()
            session.downloadTask(with: origin.url()).resume()
            session.finishTasksAndInvalidate()
            await wide.invalidated.reaches(1)
            #expect(wide.ended.value == 2)
        }
    }

    // MARK: Checklist 12

    /// Restricts and answers in all six methods.
    private static func restricting() -> Recorder {
        let recorder = Recorder()
        recorder.onChallenge = { _, answer in
            let (disposition, credential) = Answers.credential
            answer(disposition, credential)
        }
        recorder.onResponse = { _, response, answer in
            answer(response.mimeType == "image/png" ? .becomeDownload : .allow)
        }
        recorder.onBody = { _, answer in answer(Answers.body) }
        recorder.onCache = { _, _, answer in answer(nil) }
        recorder.onRedirect = { _, _, _, answer in answer(nil) }
        return recorder
    }

    @Test(
        "a delegate can log in, choose a file by type, provide a stream, and refuse to store or follow (checklist 12)"
    )
    func delegated() async throws {
        try await withHTTPTestServer { origin in
            origin.routeDecisions()
            let recorder = Self.restricting()
            let files = Box<Data>()
            recorder.onFile = { _, url in if let data = try? Data(contentsOf: url) { files.add(data) } }
            let session = recorder.session()
            var ended = 0
            func load(_ task: URLSessionTask) async -> String {
                task.resume()
                ended += 1
                await recorder.completed.reaches(ended)
                return String(decoding: recorder.record(task).data, as: UTF8.self)
            }
            func data(_ path: String) -> URLSessionTask { session.dataTask(with: origin.url(path)) }
            #expect(await load(data("/locked")) == "in")
            #expect(await load(data("/page")) == "html" && files.all.isEmpty)
            #expect(await load(data("/image")) == "" && files.all == [Data("png".utf8)])
            var request = URLRequest(url: origin.url("/count"))
            request.httpMethod = "POST"
            #expect(await load(session.uploadTask(withStreamedRequest: request)) == "5")
            let first = await load(data("/kept"))
            let second = await load(data("/kept"))
            #expect(first == "kept" && second == "kept" && origin.requests.count { $0.path == "/kept" } == 2)
            let redirected = data("/from")
            _ = await load(redirected)
            #expect((redirected.response as? HTTPURLResponse)?.statusCode == 302)
            session.invalidateAndCancel()
        }
    }

    @Test("without a delegate each of these follows the library's default (checklist 12, 11)")
    func undelegated() async throws {
        try await withHTTPTestServer { origin in
            origin.routeDecisions()
            let session = URLSession(configuration: .ephemeral)
            func load(_ path: String) async -> (String, Int) {
                let result = await session.result(URLRequest(url: origin.url(path)))
                return (
                    String(decoding: result.data ?? Data(), as: UTF8.self),
                    (result.response as? HTTPURLResponse)?.statusCode ?? 0
                )
            }
            let locked = await load("/locked")
            let image = await load("/image")
            let from = await load("/from")
            #expect(locked == ("no", 401) && image == ("png", 200) && from == ("html", 200))
            _ = await load("/kept")
            let kept = await load("/kept")
            #expect(kept == ("kept", 200) && origin.requests.count { $0.path == "/kept" } == 1)
            // Checklist 126: there is no delegate to provide the stream.
            var request = URLRequest(url: origin.url("/count"))
            request.httpMethod = "POST"
            let task = session.uploadTask(withStreamedRequest: request).resumed()
            try await task.eventually(.completed)
            #expect(task.error != nil && !origin.requests.contains { $0.path == "/count" })
            session.invalidateAndCancel()
        }
    }

    @Test("only a delegate can accept a server that the system does not trust (checklist 12)")
    func trusted() async throws {
        let identity = try TestCertificateAuthority(commonName: "Untrusted root").issue()
        try await withHTTPTestServer(.init(tls: .init(identity))) { origin in
            origin.route("/") { _ in .ok("in") }
            let delegate = EveryQuestion(answersElsewhere: false)
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.data == Data("in".utf8))
            session.invalidateAndCancel()
            let plain = URLSession(configuration: .ephemeral)
            let refused = await plain.result(URLRequest(url: origin.url()))
            #expect(refused.data == nil && refused.error != nil)
            plain.invalidateAndCancel()
        }
    }

    // MARK: Checklist 37

    @Test(
        "an upload sends its body, then delivers its response as a data task does (checklist 37)"
    )
    func uploads() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(.bytes(Array(request.body.reversed()))) }
            let recorder = Recorder()
            let session = recorder.session()
            var request = URLRequest(url: origin.url())
            request.httpMethod = "PUT"
            let sent = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0) })
            let back = Data(sent.reversed())
            let upload = session.uploadTask(with: request, from: sent)
            await recorder.complete(upload)
            #expect(recorder.words(upload) == "sent response data complete" && recorder.record(upload).data == back)
            #expect(upload.countOfBytesSent == 50_000 && upload.countOfBytesReceived == 50_000)
            #expect((upload.response as? HTTPURLResponse)?.statusCode == 200)
            let got: Data? = await withCheckedContinuation { continuation in
                session.uploadTask(with: request, from: sent) { data, response, error in
                    continuation.resume(returning: error == nil && response != nil ? data : nil)
                }.resume()
            }
            #expect(got == back)
            await recorder.expectOrder(session)
        }
    }

    // MARK: Checklist 129

    @Test(
        "a downloaded file is removed after its callback unless it was moved; opened, it stays readable (checklist 129)"
    )
    func finished() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok("content of \($0.path)") }
            let recorder = Recorder()
            let paths = Box<URL>()
            let opened = Box<FileHandle>()
            let place = temporaryURL("moved")
            defer { try? FileManager.default.removeItem(at: place) }
            recorder.onFile = { task, url in
                paths.add(url)
                switch task.originalRequest?.url?.path {
                case "/opened": if let handle = try? FileHandle(forReadingFrom: url) { opened.add(handle) }
                case "/moved": try? FileManager.default.moveItem(at: url, to: place)
                default: break
                }
            }
            let session = recorder.session()
            for (number, path) in ["/left", "/opened", "/moved"].enumerated() {
                let task = session.downloadTask(with: origin.url(path)).resumed()
                await recorder.completed.reaches(number + 1)
                #expect(recorder.words(task) == "written file complete")
            }
            await recorder.expectOrder(session)
            #expect(
                paths.all.count == 3
                    && paths.all.allSatisfy { $0.isFileURL && !FileManager.default.fileExists(atPath: $0.path) })
            let read = try opened.all.first?.readToEnd()
            let moved = try Data(contentsOf: place)
            #expect(read == Data("content of /opened".utf8) && moved == Data("content of /moved".utf8))
        }
    }

    // MARK: Checklist 169

    @Test(
        "an answer may come from any thread while the queue is busy; further calls wait for the queue (checklist 169)"
    )
    func anyThread() async throws {
        try await withHTTPTestServer { origin in
            origin.routeDecisions()
            let recorder = Recorder()
            let (held, asked) = recorder.holdResponses()
            let session = recorder.session()
            let task = session.dataTask(with: origin.url("/page")).resumed()
            await asked.reaches(1)
            let busy = DispatchSemaphore(value: 0)
            let began = Counter()
            session.delegateQueue.addOperation {
                began.add()
                busy.wait()
            }
            await began.reaches(1)
            let answered = Counter()
            Thread.detachNewThread {
                held.answer(.allow)
                answered.add()
            }
            await answered.reaches(1)
            try await task.received(4)
            #expect(recorder.words(task) == "response")
            busy.signal()
            await recorder.completed.reaches(1)
            #expect(recorder.words(task) == "response data complete" && recorder.record(task).data == Data("html".utf8))
            await recorder.expectOrder(session)
        }
    }
}

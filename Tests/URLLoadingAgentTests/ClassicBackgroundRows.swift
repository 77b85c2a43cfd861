// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingCompatibility

/// Checklist 118, 136-146: background sessions of the classic API.
@Suite(.timeLimit(.minutes(2))) struct ClassicBackgroundRows {
    /// The delegate of a background session; it notes its calls in order.
    final class Receiver: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
        let calls = Watched<[String]>([])
        let errors = Lock<[URLError]>([])
        /// Called with the task and the file, before the call returns.
        let onFile: @Sendable (URLSessionDownloadTask, URL) -> Void
        let onComplete: @Sendable (URLSessionTask) -> Void

        init(
            onFile: @escaping @Sendable (URLSessionDownloadTask, URL) -> Void = { _, _ in },
            onComplete: @escaping @Sendable (URLSessionTask) -> Void = { _ in }
        ) {
            (self.onFile, self.onComplete) = (onFile, onComplete)
        }

        func note(_ call: String) { calls.change { if $0.last != call { $0.append(call) } } }

        func session(_ rig: AgentRig, _ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
            URLSession(
                configuration: ClassicBackgroundRows.configuration(rig, change), delegate: self, delegateQueue: nil)
        }

        /// Waits until a call was noted.
        func has(_ call: String) async throws {
            try await calls.wait { $0.contains(call) }
        }

        private func name(_ task: URLSessionTask) -> String { task.taskDescription ?? "-" }

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo file: URL) {
            note("file \(name(downloadTask))")
            onFile(downloadTask, file)
        }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) { note("written \(name(downloadTask))") }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            note("data \(name(dataTask)) \(String(decoding: data, as: UTF8.self))")
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            onComplete(task)
            if let error = error as? URLError { errors.withLock { $0.append(error) } }
            note("complete \(name(task))\(error == nil ? "" : " failed")")
        }
        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { note("finished") }
        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { note("invalid") }
    }

    static func configuration(
        _ rig: AgentRig, _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: "org.example.sync")
        let (socket, folder) = (rig.socket, rig.folder)
        configuration.httpCookieStorage = nil
        configuration.adjust {
            $0.background?.socket = socket
            $0.storageDirectory = URL(filePath: folder + "/store")
        }
        change(configuration)
        return configuration
    }

    /// Lists the transfers beside the live session.
    static func listed(_ rig: AgentRig) async throws -> [BackgroundTransfer] {
        let observer = BackgroundSessionRows.session(rig) { $0.background?.observes = true }
        let found = try await observer.background.transfers
        await BackgroundSessionRows.end(observer)
        return found
    }

    static func end(_ session: URLSession, _ receiver: Receiver) async throws {
        session.finishTasksAndInvalidate()
        try await receiver.has("invalid")
    }

    @Test(
        "Downloads and uploads run in the agent and make their calls; no protocol class is asked (checklist 118, 137)"
    )
    func transfers() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/put") { .ok(.bytes(Array("got \($0.bodyCount)".utf8))) }
            let films = Lock<[[UInt8]?]>([])
            let receiver = Receiver(onFile: { _, file in films.withLock { $0.append(Film.of(file.path)) } })
            let session = receiver.session(rig) { $0.protocolClasses = [Never118.self] }
            let download = session.downloadTask(with: origin.url("/film"))
            download.taskDescription = "film"
            download.resume()
            try await receiver.has("complete film")
            #expect(films.withLock { $0 } == [Film.content])
            #expect((download.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(download.countOfBytesReceived == Int64(Film.content.count))

            let source = URL(filePath: rig.folder + "/source.bin")
            try Data(Film.content).write(to: source)
            var request = URLRequest(url: origin.url("/put"))
            request.httpMethod = "PUT"
            // Replaced by the length of the file.
            request.setValue("7", forHTTPHeaderField: "Content-Length")
            let upload = session.uploadTask(with: request, fromFile: source)
            upload.taskDescription = "log"
            upload.resume()
            try await receiver.has("complete log")
            let calls = receiver.calls.value
            #expect(calls.filter { $0.hasSuffix("film") }.suffix(2) == ["file film", "complete film"])
            #expect(calls.filter { $0.contains(" log") } == ["data log got \(Film.content.count)", "complete log"])
            try await Self.end(session, receiver)
            #expect(!receiver.calls.value.contains("finished"))
            #expect(origin.requests.count == 2)
            try await eventuallyProcess { try await Self.listed(rig).isEmpty }
        }
    }

    @Test(
        "Fields of an upload that frame its body are replaced by the length of the file",
        arguments: [("Content-Length", "7"), ("Content-Length", ""), ("Transfer-Encoding", "chunked")])
    func framing(_ name: String, _ value: String) async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/put") { .ok(.bytes(Array("got \($0.bodyCount)".utf8))) }
            let receiver = Receiver()
            let session = receiver.session(rig)
            let source = URL(filePath: rig.folder + "/source.bin")
            try Data(Film.content).write(to: source)
            var request = URLRequest(url: origin.url("/put"))
            request.httpMethod = "PUT"
            request.setValue(value, forHTTPHeaderField: name)
            let upload = session.uploadTask(with: request, fromFile: source)
            upload.taskDescription = "log"
            upload.resume()
            try await receiver.has("complete log")
            let length = "\(Film.content.count)"
            #expect(receiver.calls.value.contains("data log got \(length)"))
            #expect(origin.requests.map { $0.headers[.contentLength] } == [length])
            #expect(origin.requests.allSatisfy { $0.headers[.transferEncoding] == nil })
            try await Self.end(session, receiver)
        }
    }

    /// A protocol class that fails the test when it is asked.
    private final class Never118: URLProtocol, @unchecked Sendable {
        override class func canInit(with request: URLRequest) -> Bool {
            Issue.record("a protocol class was asked in a background session")
            return true
        }
    }

    @Test("An event is acknowledged only when its delegate calls have returned")
    func acknowledgement() async throws {
        try await SurvivalRows.with { rig, origin in
            let inside = DispatchSemaphore(value: 0), goOn = DispatchSemaphore(value: 0)
            let receiver = Receiver(onComplete: { _ in
                inside.signal()
                goOn.wait()
            })
            let session = receiver.session(rig)
            session.downloadTask(with: origin.url("/film")).resume()
            await withUnsafeContinuation { done in
                DispatchQueue.global().async {
                    inside.wait()
                    done.resume()
                }
            }
            let found = try await Self.listed(rig)
            #expect(found.map(\.state) == [.finished])
            goOn.signal()
            try await eventuallyProcess { try await Self.listed(rig).isEmpty }
            try await Self.end(session, receiver)
        }
    }

    @Test(
        "The next session has the tasks, and gets the missed calls in order (checklist 138, 140, 142)"
    )
    func comingBack() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/slow", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            let first = BackgroundSessionRows.session(rig)
            for number in 1...3 {
                let memory = TransferMemory(taskIdentifier: number, expectsToSend: 10, expectsToReceive: 20)
                try await first.background.download(
                    Request(url: origin.url("/film?secret=\(number)")),
                    options: BackgroundOptions(label: "\(number)", userData: JSONEncoder().encode(memory)))
                try await eventuallyProcess {
                    try await first.background.transfers.allSatisfy { $0.state == .finished }
                }
            }
            try await first.background.download(
                Request(url: origin.url("/slow")), options: BackgroundOptions(label: "slow"))
            try await origin.wait { $0.stalled == 1 }
            await BackgroundSessionRows.end(first)

            let films = Lock<[[UInt8]?]>([])
            let receiver = Receiver(onFile: { _, file in films.withLock { $0.append(Film.of(file.path)) } })
            let queue = OperationQueue()
            (queue.maxConcurrentOperationCount, queue.isSuspended) = (1, true)
            let session = URLSession(configuration: Self.configuration(rig), delegate: receiver, delegateQueue: queue)
            let tasks = await session.allTasks
            #expect(tasks.map { $0.taskDescription } == ["1", "2", "3", "slow"])
            #expect(tasks.prefix(3).map(\.taskIdentifier) == [1, 2, 3])
            #expect(tasks.allSatisfy { $0 is URLSessionDownloadTask && $0.state == .running })
            #expect(tasks[0].countOfBytesClientExpectsToSend == 10)
            #expect(tasks[0].countOfBytesClientExpectsToReceive == 20)
            #expect(tasks[0].originalRequest?.url == origin.url("/film"))
            queue.isSuspended = false
            try await receiver.has("finished")
            let calls = receiver.calls.value.filter { !$0.hasPrefix("written") }
            #expect(
                calls == ["file 1", "complete 1", "file 2", "complete 2", "file 3", "complete 3", "finished"])
            #expect(films.withLock { $0 } == [Film.content, Film.content, Film.content])

            tasks[3].cancel()
            try await receiver.has("complete slow failed")
            #expect(receiver.errors.withLock { $0.map(\.code) } == [.cancelled])
            try await eventuallyProcess { try await Self.listed(rig).isEmpty }
            try await Self.end(session, receiver)
            // Each call was made once.
            #expect(receiver.calls.value.filter { $0 == "complete slow failed" }.count == 1)
        }
    }

    @Test("A suspended transfer comes back as a suspended task, which continues when it is resumed")
    func suspended() async throws {
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let first = BackgroundSessionRows.session(rig)
            let transfer = try await first.background.download(
                Request(url: origin.url("/film")), options: BackgroundOptions(label: "film"))
            try await origin.wait { $0.stalled == 1 }
            try await transfer.suspend()
            await BackgroundSessionRows.end(first)
            origin.route("/film") { Film.answer($0) }
            origin.releaseStalls()

            let films = Lock<[[UInt8]?]>([])
            let receiver = Receiver(onFile: { _, file in films.withLock { $0.append(Film.of(file.path)) } })
            let session = receiver.session(rig)
            let task = try #require(await session.allTasks.first)
            #expect(task.state == .suspended)
            task.resume()
            try await receiver.has("complete film")
            #expect(films.withLock { $0 } == [Film.content])
            try await Self.end(session, receiver)
        }
    }

    @Test("The earliest date is the agent's to wait for, and goes with the properties of the task")
    func carried() async throws {
        try await SurvivalRows.with { rig, origin in
            let receiver = Receiver()
            let session = receiver.session(rig) { $0.isDiscretionary = true }
            let task = session.downloadTask(with: origin.url("/film"))
            task.taskDescription = "film"
            task.earliestBeginDate = Date(timeIntervalSinceNow: 3600)
            task.countOfBytesClientExpectsToReceive = 99
            task.resume()
            var found: [BackgroundTransfer] = []
            while found.isEmpty { found = try await Self.listed(rig) }
            let transfer = try #require(found.first)
            #expect(transfer.label == "film" && transfer.state != .running)
            let memory = try JSONDecoder().decode(TransferMemory.self, from: transfer.userData)
            #expect(memory.taskIdentifier == task.taskIdentifier && memory.expectsToReceive == 99)
            task.cancel()
            try await receiver.has("complete film failed")
            #expect(origin.requests.isEmpty)
            try await Self.end(session, receiver)
        }
    }

    @Test("What a background session cannot carry out is reported when it is made, and fails (checklist 143-146)")
    func refused() async throws {
        try await SurvivalRows.with { rig, origin in
            let reports = Lock<[String]>([])
            let receiver = Receiver()
            let session = receiver.session(rig)
            // The handler is the process's, and other tests have theirs: it passes every report on, and stays, because
            // the handler before it may have been replaced when this test ends.
            let before = URLSession.misuseHandler
            URLSession.misuseHandler = { misuse in
                before(misuse)
                switch misuse.kind {
                // Those of other tests, which run at the same time.
                case .completionHandlerDropped, .completionHandlerCalledAgain: break
                default: reports.withLock { $0.append("\(misuse.method) \(misuse.kind)") }
                }
            }
            let file = URL(filePath: rig.folder + "/source.bin")
            try Data("x".utf8).write(to: file)
            let request = URLRequest(url: origin.url("/film"))
            var post = request
            post.httpMethod = "POST"
            let tasks: [URLSessionTask] = [
                session.dataTask(with: request),
                session.uploadTask(with: post, from: Data("x".utf8)),
                session.uploadTask(withStreamedRequest: post),
                session.webSocketTask(with: URL(string: "ws://localhost/")!),
            ]
            let answers = Lock<[URLError]>([])
            let answer = { @Sendable (error: (any Error)?) in
                if let error = error as? URLError { answers.withLock { $0.append(error) } }
            }
            let handled: [URLSessionTask] = [
                session.downloadTask(with: request) { _, _, error in answer(error) },
                session.uploadTask(with: post, fromFile: file) { _, _, error in answer(error) },
            ]
            let lonely = URLSession(configuration: Self.configuration(rig))
            let undelegated = lonely.downloadTask(with: request)
            #expect(
                reports.withLock { $0 } == [
                    "dataTask notPossibleInBackground", "uploadTask notPossibleInBackground",
                    "uploadTask notPossibleInBackground", "webSocketTask notPossibleInBackground",
                    "downloadTask completionHandlerInBackground", "uploadTask completionHandlerInBackground",
                    "downloadTask noDelegateInBackground",
                ])
            // Not a mistake in the program's text: the URL, and a setting that the agent cannot use.
            let other = session.downloadTask(with: URL(string: "ftp://localhost/film")!)
            let withBody = session.downloadTask(
                with: {
                    var request = post; request.httpBody = Data("x".utf8); return request
                }())
            for task in tasks + handled + [undelegated, other, withBody] { task.resume() }
            while receiver.errors.withLock({ $0.count }) + answers.withLock({ $0.count }) < 8
                || undelegated.state != .completed
            {
                try await Task.sleep(for: .milliseconds(2))
            }
            let errors = receiver.errors.withLock { $0 } + answers.withLock { $0 }
            #expect(errors.allSatisfy { $0.code == .unsupportedURL }, "\(errors)")
            #expect((undelegated.error as? URLError)?.code == .unsupportedURL)
            #expect(origin.requests.isEmpty)
            try await Self.end(session, receiver)
        }
    }
}

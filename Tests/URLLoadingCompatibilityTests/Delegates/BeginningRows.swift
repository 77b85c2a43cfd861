// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The time before a load begins: calls to delegates, the earliest begin date, suspension counts.
@Suite(.timeLimit(.minutes(4)))
struct BeginningRows {
    /// Records the calls before the load, and answers as the test says.
    final class Beginner: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter(), asked = Counter()
        var onDelayed: @Sendable (URLRequest) -> (URLSession.DelayedRequestDisposition, URLRequest?) = { _ in
            (.continueLoading, nil)
        }

        func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
            words.add("created \(task.state == .suspended) \(OperationQueue.current === session.delegateQueue)")
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
            completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
        ) {
            words.add("delayed \(OperationQueue.current === session.delegateQueue)")
            asked.add()
            let (disposition, other) = onDelayed(request)
            completionHandler(disposition, other)
        }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            words.add(String(decoding: data, as: UTF8.self))
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            words.add("\((error as? URLError)?.code.rawValue ?? 0)")
            done.add()
        }
    }

    private static func routes(_ origin: HTTPTestServer) {
        origin.route("/") { .ok("at / \($0.bodyCount)") }
        origin.route("/other") { .ok("at /other \($0.bodyCount) \($0.method)") }
    }

    @Test("didCreateTask is called for every kind of task, before the program can resume it")
    func created() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Beginner()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let task = session.dataTask(with: origin.url())
            #expect(delegate.words.all == ["created true false"])
            task.resume()
            await delegate.done.reaches(1)
            _ = session.downloadTask(with: origin.url())
            _ = session.uploadTask(with: URLRequest(url: origin.url()), from: Data())
            _ = session.webSocketTask(with: origin.url())
            _ = session.streamTask(withHostName: "127.0.0.1", port: Int(origin.port))
            #expect(delegate.words.all.count { $0.hasPrefix("created") } == 5)
            session.invalidateAndCancel()
        }
    }

    @Test("the delegate passed to an async method obtains the task in didCreateTask")
    func createdByVerb() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let ofSession = Beginner()
            let ofTask = Beginner()
            let session = URLSession(configuration: .ephemeral, delegate: ofSession, delegateQueue: nil)
            let (data, _) = try await session.data(from: origin.url(), delegate: ofTask)
            #expect(data == Data("at / 0".utf8))
            #expect(ofTask.words.all == ["created true false"] && ofSession.words.all.isEmpty)
            session.invalidateAndCancel()
        }
    }

    @Test(
        "with an earliestBeginDate nothing is sent before; the delegate is asked on its queue, and its answer applied",
        arguments: ["continue", "new", "cancel", "upload", "download"], [false, true])
    func delayed(_ answer: String, _ isFinishing: Bool) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Beginner()
            let other = URLRequest(url: origin.url("/other"))
            delegate.onDelayed = { request in
                switch answer {
                case "new", "upload", "download":
                    var other = other
                    other.httpMethod = request.httpMethod
                    return (.useNewRequest, other)
                case "cancel": return (.cancel, nil)
                default: return (.continueLoading, nil)
                }
            }
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            var request = URLRequest(url: origin.url())
            if answer == "upload" { request.httpMethod = "PUT" }
            let task =
                switch answer {
                case "upload": session.uploadTask(with: request, from: Data("12345".utf8))
                case "download": session.downloadTask(with: request)
                default: session.dataTask(with: request)
                }
            task.earliestBeginDate = Date(timeIntervalSinceNow: 0.05)
            task.resume()
            if isFinishing { session.finishTasksAndInvalidate() }
            #expect(task.state == .running && origin.counts.accepted == 0)
            await delegate.done.reaches(1)
            let words =
                switch answer {
                case "new": ["at /other 0 GET", "0"]
                case "upload": ["at /other 5 PUT", "0"]
                case "download": ["0"]
                case "cancel": ["-999"]
                default: ["at / 0", "0"]
                }
            #expect(delegate.words.all == ["created true false", "delayed true"] + words)
            let isReplaced = ["new", "upload", "download"].contains(answer)
            #expect(task.currentRequest?.url?.path == (isReplaced ? "/other" : "/"))
            session.finishTasksAndInvalidate()
        }
    }

    @Test(
        "a suspension while a task begins is not lost, nor the resumption after it",
        arguments: [false, true])
    func concurrentSuspension(_ isDelayed: Bool) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Beginner()
            let other = origin.url("/other")
            delegate.onDelayed = { _ in (.useNewRequest, URLRequest(url: other)) }
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            // The responses are delayed, so that no load ends before.
            origin.route("/other", faults: [.init(.responseHead(), .delay(.milliseconds(20)))]) { _ in .ok("late") }
            for round in 0..<40 {
                let task = session.dataTask(with: isDelayed ? origin.url() : other)
                if isDelayed {
                    task.earliestBeginDate = Date()
                    task.resume()
                    if round % 2 == 0 { await delegate.asked.reaches(round + 1) }
                    task.suspend()
                } else {
                    await withTaskGroup(of: Void.self) { group in
                        group.addTask { task.resume() }
                        group.addTask { task.suspend() }
                    }
                }
                for _ in 0..<20 { await Task.yield() }
                if delegate.done.value == round {
                    // A suspension, which other tasks may have asked for last, is not reported.
                    try await eventually(task.state == .suspended || task.state == .completed) { $0 }
                    #expect(task.state == .suspended || delegate.done.value > round)
                }
                task.resume()
                await delegate.done.reaches(round + 1)
            }
            session.invalidateAndCancel()
        }
    }

    @Test("a task that waits for its date can be suspended, resumed and cancelled")
    func delayedControls() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Beginner()
            let mayAnswer = DispatchSemaphore(value: 0)
            delegate.onDelayed = { _ in
                mayAnswer.wait()
                return (.continueLoading, nil)
            }
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let far = session.dataTask(with: origin.url())
            let near = session.dataTask(with: origin.url())
            far.earliestBeginDate = .distantFuture
            far.resume()
            far.cancel()
            await delegate.done.reaches(1)
            #expect((far.error as? URLError)?.code == .cancelled)
            near.earliestBeginDate = Date(timeIntervalSinceNow: 0.02)
            near.resume()
            // The date may come before the suspension: the load continues when the delegate has answered.
            near.suspend()
            #expect(near.state == .suspended)
            mayAnswer.signal()
            await delegate.asked.reaches(1)
            try await Task.sleep(for: .milliseconds(10))
            #expect(origin.counts.accepted == 0 && near.state == .suspended)
            near.resume()
            await delegate.done.reaches(2)
            #expect(near.error == nil)
            let last = session.dataTask(with: origin.url())
            last.earliestBeginDate = .distantFuture
            last.resume()
            session.invalidateAndCancel()
            await delegate.done.reaches(3)
        }
    }

    @Test("suspensions are counted, including those before the first resume")
    func counted() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = URLSession(configuration: .ephemeral)
            let done = Counter()
            let task = session.dataTask(with: origin.url()) { _, _, _ in done.add() }
            task.suspend()
            task.resume()
            try await Task.sleep(for: .milliseconds(10))
            #expect(origin.counts.accepted == 0 && task.state == .suspended)
            task.resume()
            task.resume()
            await done.reaches(1)
            session.invalidateAndCancel()
        }
    }

    @Test("progress counts both bodies, and is finished at the end (checklist 35)")
    func progress() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 3_000_000)) }
            let recorder = Recorder()
            let session = recorder.session()
            var request = URLRequest(url: origin.url())
            request.httpMethod = "PUT"
            let task = session.uploadTask(with: request, from: Data(count: 1_000_000))
            task.countOfBytesClientExpectsToReceive = 5_000_000
            let progress = task.progress
            let all = Progress(totalUnitCount: 10)
            all.addChild(progress, withPendingUnitCount: 10)
            #expect(
                progress === task.progress && progress.totalUnitCount == 6_000_000 && progress.completedUnitCount == 0)
            let seen = Box<Int64>()
            recorder.onData = { task, _ in seen.add(task.progress.completedUnitCount) }
            await recorder.complete(task)
            #expect(
                progress.completedUnitCount == 4_000_000 && progress.totalUnitCount == 4_000_000 && progress.isFinished)
            #expect(all.isFinished && seen.all == seen.all.sorted() && (seen.all.first ?? 0) >= 1_000_000)
            await recorder.expectOrder(session)
        }
    }

    @Test("progress controls its task: pause, resume, cancel; an empty response finishes it")
    func progressControls() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 40_000_000)) }
            origin.route("/empty") { _ in .status(.noContent) }
            let recorder = Recorder()
            let first = recorder.countPieces()
            let session = recorder.session()
            let task = session.dataTask(with: origin.url()).resumed()
            await first.reaches(1)
            task.progress.pause()
            try await task.eventually(.suspended)
            task.progress.resume()
            try await task.eventually(.running)
            task.progress.cancel()
            await recorder.completed.reaches(1)
            #expect((task.error as? URLError)?.code == .cancelled && !task.progress.isFinished)
            let empty = session.dataTask(with: origin.url("/empty"))
            await recorder.complete(empty, number: 2)
            #expect(empty.progress.isFinished)
            await recorder.expectOrder(session)
        }
    }
}

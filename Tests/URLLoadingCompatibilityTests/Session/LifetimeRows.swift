// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The end of sessions, and the lifetime of their objects.
@Suite(.timeLimit(.minutes(4)))
struct LifetimeRows {
    /// Serves responses that stall until the origin releases them.
    private static func stalling(_ origin: HTTPTestServer) {
        origin.route("/stall", faults: [.init(.responseBody(after: 2), .stall)]) { _ in .ok("hello") }
        origin.route("/") { _ in .ok("hello") }
    }

    @Test("invalidateAndCancel cancels every task; didBecomeInvalid is the last call, made once (checklist 14, 16)")
    func invalidateAndCancel() async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            let recorder = Recorder()
            let session = recorder.session { $0.httpMaximumConnectionsPerHost = 3 }
            let tasks = (0..<10).map { _ in session.dataTask(with: origin.url("/stall")) }
            for task in tasks.dropLast(2) { task.resume() }
            try await origin.wait { $0.stalled == 3 }
            session.invalidateAndCancel()
            session.invalidateAndCancel()
            session.finishTasksAndInvalidate()
            await recorder.invalidated.reaches(1)
            for task in tasks {
                #expect(recorder.record(task).errors.map { $0?.code } == [.cancelled])
                #expect(task.state == .completed)
            }
            #expect(recorder.broken == [] && recorder.invalidated.value == 1 && session.delegate == nil)
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("finishTasksAndInvalidate lets tasks finish, including those resumed later (checklist 15, 16)")
    func finishTasks() async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            let recorder = Recorder()
            let session = recorder.session()
            let running = session.dataTask(with: origin.url())
            let suspended = session.dataTask(with: origin.url())
            running.resume()
            session.finishTasksAndInvalidate()
            await recorder.completed.reaches(1)
            try await Task.sleep(for: .milliseconds(10))
            #expect(recorder.invalidated.value == 0)
            suspended.resume()
            await recorder.invalidated.reaches(1)
            #expect(
                recorder.words(running) == "response data complete"
                    && recorder.words(suspended) == "response data complete")
            #expect(recorder.broken == [])
        }
    }

    @Test("a task of an invalidated session fails; its handler is called, its delegate is not")
    func tooLate() async throws {
        try await withHTTPTestServer { origin in
            let recorder = Recorder()
            let session = recorder.session()
            await recorder.expectOrder(session)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.error?.code == .cancelled)
            let task = session.dataTask(with: origin.url()).resumed()
            try await task.eventually(.completed)
            #expect((task.error as? URLError)?.code == .cancelled && recorder.words(task).isEmpty)
            #expect(origin.counts.accepted == 0)
        }
    }

    @Test("the session retains its delegate until didBecomeInvalid has returned (checklist 13)")
    func delegateReleased() async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            weak var delegate: Recorder?
            let session: URLSession
            let completed: Counter
            let invalidated: Counter
            do {
                let recorder = Recorder()
                (delegate, completed, invalidated) = (recorder, recorder.completed, recorder.invalidated)
                session = recorder.session()
            }
            session.dataTask(with: origin.url()).resume()
            await completed.reaches(1)
            #expect(delegate != nil && session.delegate === delegate)
            session.finishTasksAndInvalidate()
            await invalidated.reaches(1)
            try await eventually(delegate == nil) { $0 }
            #expect(session.delegate == nil)
        }
    }

    @Test("a session without references lets its tasks finish, then everything is released", arguments: [false, true])
    func dropped(_ hasHandler: Bool) async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            weak var session: URLSession?
            weak var delegate: Recorder?
            weak var task: URLSessionTask?
            let ended: Counter
            do {
                let recorder = Recorder()
                let made = recorder.session()
                (session, delegate) = (made, recorder)
                if hasHandler {
                    let counter = Counter()
                    ended = counter
                    let begun = made.dataTask(with: origin.url()) { _, _, _ in counter.add() }
                    task = begun
                    begun.resume()
                } else {
                    let begun = made.dataTask(with: origin.url())
                    (ended, task) = (recorder.completed, begun)
                    begun.resume()
                }
            }
            await ended.reaches(1)
            try await eventually(session == nil && delegate == nil && task == nil) { $0 }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("objects captured by a handler are released after its call")
    func handlerReleased() async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            let session = URLSession(configuration: .default)
            weak var held: Counter?
            let task: URLSessionDataTask
            do {
                let counter = Counter()
                held = counter
                task = session.dataTask(with: origin.url()) { _, _, _ in counter.add() }
            }
            #expect(held != nil)
            task.resume()
            try await eventually(held == nil) { $0 }
            #expect(task.state == .completed)
            session.invalidateAndCancel()
        }
    }

    @Test(
        "a session may be invalidated and a task cancelled inside every kind of call",
        arguments: ["response", "data", "redirect", "complete"],
        [false, true])
    func inside(_ word: String, _ invalidates: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/to") }
            origin.route("/to") { _ in .ok(.repeated(count: 5_000_000)) }
            let recorder = Recorder()
            let session = recorder.session()
            @Sendable func act(_ here: String, _ task: URLSessionTask) {
                guard here == word else { return }
                invalidates ? session.invalidateAndCancel() : task.cancel()
            }
            recorder.onResponse = { task, _, answer in
                act("response", task)
                answer(.allow)
            }
            recorder.onData = { task, _ in act("data", task) }
            recorder.onRedirect = { task, _, request, answer in
                act("redirect", task)
                answer(request)
            }
            recorder.onComplete = { _, task in act("complete", task) }
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            if invalidates { await recorder.invalidated.reaches(1) }
            let record = recorder.record(task)
            #expect(record.errors.map { $0?.code } == [word == "complete" ? nil : .cancelled])
            if word != "complete" { #expect(record.words.suffix(2) == [word, "complete"]) }
            await recorder.expectOrder(session)
            #expect(recorder.invalidated.value == 1)
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("the shared session loads, and cannot be invalidated (checklist 6)")
    func shared() async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            URLSession.shared.invalidateAndCancel()
            URLSession.shared.finishTasksAndInvalidate()
            let result = await URLSession.shared.result(URLRequest(url: origin.url()))
            #expect(result.data == Data("hello".utf8) && URLSession.shared === URLSession.shared)
        }
    }

    @Test("getAllTasks returns the tasks that are not over")
    func allTasks() async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            let session = URLSession(configuration: .default)
            let first = session.dataTask(with: origin.url("/stall"))
            let second = session.dataTask(with: origin.url())
            first.resume()
            let given: [URLSessionTask] = await withCheckedContinuation { continuation in
                session.getAllTasks { tasks in
                    #expect(OperationQueue.current === session.delegateQueue)
                    continuation.resume(returning: tasks)
                }
            }
            #expect(given == [first, second])
            second.cancel()
            try await second.eventually(.completed)
            let left = await session.allTasks
            #expect(left == [first] && first.taskIdentifier != second.taskIdentifier)
            session.invalidateAndCancel()
            origin.releaseStalls()
        }
    }

    @Test("a cancelled task is not listed any more, nor a task of an invalidated session that is resumed late")
    func listedAfterEnd() async throws {
        try await withHTTPTestServer(serving: Self.stalling) { origin in
            for isInvalidated in [true, false] {
                let session = URLSession(configuration: .ephemeral)
                let running = [session.dataTask(with: origin.url("/stall")), session.downloadTask(with: origin.url())]
                let resting = session.dataTask(with: origin.url())
                for task in running { task.resume() }
                // The delegate queue is blocked, so no task has made its last call when the lists are made.
                let gate = DispatchSemaphore(value: 0)
                session.delegateQueue.addOperation { gate.wait() }
                if isInvalidated {
                    session.invalidateAndCancel()
                } else {
                    for task in running + [resting] { task.cancel() }
                }
                resting.resume()
                let late = session.dataTask(with: origin.url())
                if isInvalidated { late.resume() }
                let all = Box<Int>()
                session.getAllTasks { all.add($0.count) }
                session.getTasksWithCompletionHandler { all.add($0.count + $1.count + $2.count) }
                let (listed, kinds) = (await session.allTasks, await session.tasks)
                gate.signal()
                let expected = isInvalidated ? [] : [late]
                #expect(listed == expected && kinds.0 == expected && kinds.1.isEmpty && kinds.2.isEmpty)
                try await all.wait { $0.count == 2 }
                #expect(all.all == [expected.count, expected.count])
                session.invalidateAndCancel()
            }
            origin.releaseStalls()
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// resume, suspend, cancel; copies; concurrent calls.
@Suite(.timeLimit(.minutes(4)))
struct ControlRows {
    @Test("a task sends no byte before it is resumed (checklist 33)")
    func suspendedAtFirst() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let recorder = Recorder()
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            try await Task.sleep(for: .milliseconds(20))
            #expect(origin.counts.accepted == 0 && task.state == .suspended)
            task.resume()
            await recorder.complete(task)
            task.resume()
            task.cancel()
            #expect(task.state == .completed && task.error == nil)
            await recorder.expectOrder(session)
        }
    }

    @Test("a task is suspended, resumed and cancelled, and its state says so (checklist 34, 35)")
    func states() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 40_000_000)) }
            let recorder = Recorder()
            let first = recorder.countPieces()
            let session = recorder.session()
            let task = session.dataTask(with: origin.url()).resumed()
            #expect(task.state == .running)
            await first.reaches(1)
            task.suspend()
            task.suspend()
            #expect(task.state == .suspended)
            // Bytes read before may still be in transit; then the count stands still, far from the end.
            var before: Int64 = -1
            while task.countOfBytesReceived != before {
                before = task.countOfBytesReceived
                try await Task.sleep(for: .milliseconds(30))
            }
            #expect(before > 0 && before < 40_000_000)
            #expect(task.countOfBytesExpectedToReceive == 40_000_000)
            task.resume()
            #expect(task.state == .suspended)
            task.resume()
            #expect(task.state == .running)
            await first.reaches(2)
            session.delegateQueue.isSuspended = true
            task.cancel()
            #expect(task.state == .canceling && task.error == nil)
            session.delegateQueue.isSuspended = false
            await recorder.completed.reaches(1)
            #expect(task.state == .completed && (task.error as? URLError)?.code == .cancelled)
            // No decision was pending.
            let words = (task.error as? URLError)?.userInfo[NSDebugDescriptionErrorKey] as? String
            #expect(words?.hasPrefix("cancelled (receiving, ") == true, "\(words ?? "none")")
            await recorder.expectOrder(session)
        }
    }

    @Test("a task cancelled before it was resumed still ends (checklist 34)", arguments: [false, true])
    func cancelledAtFirst(_ hasHandler: Bool) async throws {
        try await withHTTPTestServer { origin in
            let recorder = Recorder()
            let session = recorder.session()
            let calls = Box<URLError.Code?>()
            let ended = Counter()
            let task =
                !hasHandler
                ? session.dataTask(with: origin.url())
                : session.dataTask(with: origin.url()) { data, response, error in
                    if data == nil, response == nil { calls.add((error as? URLError)?.code) }
                    ended.add()
                }
            task.cancel()
            task.cancel()
            if hasHandler { await ended.reaches(1) } else { await recorder.completed.reaches(1) }
            task.resume()
            #expect(
                hasHandler ? calls.all == [.cancelled] : recorder.record(task).errors.map { $0?.code } == [.cancelled])
            await recorder.expectOrder(session)
            #expect(origin.counts.accepted == 0)
        }
    }

    @Test("a cancelled task closes its socket even while its delegate blocks")
    func cancelledWhileFull() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 50_000_000)) }
            for isTimeout in [false, true] {
                let recorder = Recorder()
                let session = recorder.session { if isTimeout { $0.timeoutIntervalForResource = 0.1 } }
                session.delegateQueue.isSuspended = true
                let task = session.dataTask(with: origin.url()).resumed()
                if !isTimeout {
                    try await task.received()
                    task.cancel()
                }
                try await origin.wait { $0.accepted == (isTimeout ? 2 : 1) && $0.open == 0 }
                session.delegateQueue.isSuspended = false
                await recorder.completed.reaches(1)
                #expect((task.error as? URLError)?.code == (isTimeout ? .timedOut : .cancelled))
                await recorder.expectOrder(session)
            }
        }
    }

    @Test("sessions and tasks copy as themselves, configurations as independent copies (checklist 166, 167, 9)")
    func copies() throws {
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForRequest = 5
        let session = URLSession(configuration: configuration)
        let task = session.dataTask(with: try url("http://a.example/"))
        #expect(session.copy() as AnyObject === session && task.copy() as AnyObject === task)
        configuration.timeoutIntervalForRequest = 6
        let copy = try #require(configuration.copy() as? URLSessionConfiguration)
        copy.httpAdditionalHeaders = ["A": "b"]
        #expect(copy.timeoutIntervalForRequest == 6 && configuration.httpAdditionalHeaders == nil)
        #expect(session.configuration.timeoutIntervalForRequest == 5)
        session.configuration.timeoutIntervalForRequest = 7
        #expect(session.configuration.timeoutIntervalForRequest == 5)
        task.taskDescription = "mine"
        task.priority = URLSessionTask.highPriority
        session.sessionDescription = "ours"
        #expect(task.taskDescription == "mine" && task.priority == 0.75 && session.sessionDescription == "ours")
        session.invalidateAndCancel()
    }

    /// A task created without a session, as programs do in their tests.
    final class StandIn: URLSessionDataTask, @unchecked Sendable {
        let resumed = Counter()
        override func resume() { resumed.add() }
    }

    @Test("a task without a session does nothing")
    func standIn() {
        let task = StandIn()
        task.resume()
        task.cancel()
        #expect(
            task.resumed.value == 1 && task.state == .suspended && task.originalRequest == nil
                && task.countOfBytesReceived == 0)
    }
}

/// Many threads at once (checklist 168). Not run beside the tests that measure idle times.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct ClassicStressTests {
    static let isLong = ProcessInfo.processInfo.environment["URLLOADING_LONG"] != nil

    private static func onThreads(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        Thread.detachNewThread {
                            work(number)
                            continuation.resume()
                        }
                    }
                }
            }
        }
    }

    @Test("resume, suspend and cancel may be called from 8 threads at once (checklist 168)", arguments: [1, 4])
    func controlStorm(_ width: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 200_000)) }
            origin.route("/from") { _ in .redirect("/") }
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = width
            let recorder = Recorder(isSerial: width == 1)
            let session = recorder.session(queue)
            for round in 0..<(Self.isLong ? 200 : 20) {
                let tasks = (0..<8).map { session.dataTask(with: origin.url($0 % 2 == 0 ? "/" : "/from")) }
                await Self.onThreads(8) { number in
                    var random = SeededGenerator(seed: UInt64(round * 8 + number))
                    for _ in 0..<100 {
                        guard let task = tasks.randomElement(using: &random) else { return }
                        switch Int.random(in: 0..<40, using: &random) {
                        case 0: task.cancel()
                        case ..<15: task.suspend()
                        default: task.resume()
                        }
                        _ = (task.state, task.response, task.countOfBytesReceived, task.error, task.currentRequest)
                    }
                }
                for task in tasks { while task.state == .suspended { task.resume() } }
                await recorder.completed.reaches((round + 1) * 8)
                for task in tasks {
                    let record = recorder.record(task)
                    #expect(record.errors.count == 1 && (record.errors[0] != nil || record.data.count == 200_000))
                }
            }
            await recorder.expectOrder(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("sessions may be invalidated from other threads while their tasks run (checklist 16, 168)")
    func invalidationStorm() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 100_000)) }
            let recorders = Box<Recorder>()
            await Self.onThreads(8) { number in
                var random = SeededGenerator(seed: UInt64(number))
                for _ in 0..<(Self.isLong ? 200 : 20) {
                    let recorder = Recorder()
                    recorders.add(recorder)
                    let session = recorder.session()
                    for _ in 0..<5 { session.dataTask(with: origin.url()).resume() }
                    if Bool.random(using: &random) { usleep(UInt32.random(in: 0...2000, using: &random)) }
                    Thread.detachNewThread { session.invalidateAndCancel() }
                    for _ in 0..<3 { session.dataTask(with: origin.url()).resume() }
                    session.getAllTasks { _ in }
                }
            }
            for recorder in recorders.all {
                await recorder.invalidated.reaches(1)
                #expect(recorder.broken == [] && recorder.completed.value >= 5)
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("under random faults and cancellations each handler is called once (checklist 40)")
    func faults() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 5_000)) }
            origin.route("/from") { _ in .redirect("/") }
            origin.setSchedule(.init(seed: 3, probability: 0.3))
            let session = URLSession(configuration: .ephemeral)
            let count = Self.isLong ? 10_000 : 1_000
            let done = Counter()
            let wrong = Box<String>()
            for number in 0..<count {
                var random = SeededGenerator(seed: UInt64(number))
                let task = session.dataTask(with: origin.url(number % 3 == 0 ? "/from" : "/")) {
                    data, response, error in
                    if (data == nil) == (error == nil) { wrong.add("\(String(describing: error))") }
                    done.add()
                }
                task.resume()
                if Int.random(in: 0..<4, using: &random) == 0 { task.cancel() }
            }
            await done.reaches(count)
            #expect(wrong.all == [] && done.value == count)
            session.invalidateAndCancel()
        }
    }
}

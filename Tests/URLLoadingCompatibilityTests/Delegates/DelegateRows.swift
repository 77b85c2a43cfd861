// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Delegates: their calls, the order, the queue.
@Suite(.timeLimit(.minutes(4)))
struct DelegateRows {
    @Test(
        "response, data and completion arrive in order on the session's queue (checklist 45, 47, 54, 170)",
        arguments: [0, 1, 1000, 5_000_000], [false, true])
    func order(_ count: Int, _ isChunked: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: Int64(count), chunked: isChunked)) }
            let recorder = Recorder()
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            #expect(task.state == .suspended && task.response == nil && task.error == nil)
            await recorder.complete(task)
            #expect(recorder.words(task) == (count == 0 ? "response complete" : "response data complete"))
            #expect(recorder.record(task).data == Data(repeating: 0x61, count: count))
            #expect(recorder.record(task).errors == [nil])
            #expect(task.state == .completed && task.error == nil)
            #expect(task.countOfBytesReceived == Int64(count))
            #expect(task.countOfBytesExpectedToReceive == (isChunked ? -1 : Int64(count)))
            await recorder.expectOrder(session)
        }
    }

    @Test(
        "calls arrive in order on the supplied queue, even if it runs several operations at a time (checklist 170)",
        arguments: [1, 4, -1])
    func queues(_ width: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 300_000)) }
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = width
            let recorder = Recorder(isSerial: width == 1)
            let session = recorder.session(queue)
            #expect(session.delegateQueue === queue)
            let tasks = (0..<40).map { _ in session.dataTask(with: origin.url()) }
            for task in tasks { task.resume() }
            await recorder.completed.reaches(40)
            for task in tasks { #expect(recorder.words(task) == "response data complete") }
            await recorder.expectOrder(session)
        }
    }

    @Test("cancelling all operations of the queue loses no call (checklist 170)")
    func cancelledQueue() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let recorder = Recorder()
            let session = recorder.session()
            session.delegateQueue.isSuspended = true
            let task = session.dataTask(with: origin.url()).resumed()
            try await origin.wait { $0.answered == 1 }
            session.delegateQueue.cancelAllOperations()
            session.delegateQueue.isSuspended = false
            await recorder.completed.reaches(1)
            #expect(recorder.words(task) == "response data complete")
            await recorder.expectOrder(session)
        }
    }

    /// Implements only data and completion.
    final class Minimal: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let pieces = Box<Data>(), ended = Counter()
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { pieces.add(data) }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            if error == nil { ended.add() }
        }
    }

    @Test("two delegate methods suffice; redirects are followed (checklist 46, 65)")
    func minimal() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/from") { _ in .redirect("/to") }
            origin.route("/to") { _ in .ok("hello") }
            let delegate = Minimal()
            let session = URLSession(configuration: .default, delegate: delegate, delegateQueue: nil)
            session.dataTask(with: origin.url("/from")).resume()
            await delegate.ended.reaches(1)
            #expect(delegate.pieces.all.reduce(Data(), +) == Data("hello".utf8))
            session.invalidateAndCancel()
        }
    }

    @Test("without a delegate and a handler the request is sent and its response dropped (checklist 11)")
    func withoutReceiver() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 3_000_000)) }
            let session = URLSession(configuration: .default)
            let task = session.dataTask(with: origin.url()).resumed()
            try await origin.wait { $0.answered == 1 }
            try await task.eventually(.completed)
            #expect(task.countOfBytesReceived == 3_000_000)
            session.invalidateAndCancel()
        }
    }

    @Test("no piece of the body precedes the answer to the response, and the transfer waits for it (checklist 48)")
    func held() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 20_000_000)) }
            let recorder = Recorder()
            let (held, asked) = recorder.holdResponses()
            let session = recorder.session()
            let task = session.dataTask(with: origin.url()).resumed()
            await asked.reaches(1)
            try await Task.sleep(for: .milliseconds(50))
            #expect(recorder.words(task) == "response")
            #expect(task.countOfBytesReceived <= 1 << 20 && task.state == .running)
            held.answer(.allow)
            await recorder.completed.reaches(1)
            #expect(recorder.record(task).data.count == 20_000_000)
            await recorder.expectOrder(session)
        }
    }

    @Test(
        "refusing a response ends its task as cancelled, however much of the body has arrived (checklist 50)",
        arguments: [5, 5_000_000], [false, true])
    func refused(_ count: Int, _ isLate: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: Int64(count))) }
            let recorder = Recorder()
            recorder.onResponse = { _, _, answer in
                guard isLate else { return answer(.cancel) }
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(10)) { answer(.cancel) }
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            #expect(recorder.words(task) == "response complete")
            #expect(recorder.record(task).errors.map { $0?.code } == [.cancelled])
            await recorder.expectOrder(session)
        }
    }

    @Test("a slow delegate slows down the peer; few bytes are buffered (checklist 43)")
    func backPressure() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 30_000_000)) }
            let recorder = Recorder()
            let largest = Box<Int>()
            let behind = Box<Int64>()
            recorder.onData = { task, data in
                largest.add(data.count)
                if largest.all.count < 20 { Thread.sleep(forTimeInterval: 0.005) }
                behind.add(task.countOfBytesReceived - Int64(recorder.record(task).data.count))
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            #expect(recorder.record(task).data.count == 30_000_000)
            #expect(largest.all.max() ?? 0 <= 1 << 20)
            #expect(behind.all.max() ?? 0 <= 1 << 20)
            await recorder.expectOrder(session)
        }
    }

    @Test("sent bytes of the body are counted (checklist 52)")
    func sent() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.method) \($0.bodyCount) \($0.headers[.contentType] ?? "-")") }
            let recorder = Recorder()
            let session = recorder.session()
            var request = URLRequest(url: origin.url())
            request.httpMethod = "post"
            request.httpBody = Data(count: 2_000_000)
            let task = session.dataTask(with: request)
            #expect(task.countOfBytesExpectedToSend == 2_000_000)
            await recorder.complete(task)
            #expect(recorder.words(task) == "sent response data complete")
            #expect(
                String(decoding: recorder.record(task).data, as: UTF8.self)
                    == "POST 2000000 application/x-www-form-urlencoded")
            #expect(task.countOfBytesSent == 2_000_000)
            await recorder.expectOrder(session)
        }
    }

    /// A task's own delegate, which implements completion and leaves the rest to the session's delegate.
    final class Own: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
        let ended = Counter()
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended.add()
        }
    }

    @Test("a task's own delegate takes precedence over the session's, and is released at the end")
    func ownDelegate() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/to") }
            origin.route("/to") { _ in .ok("hello") }
            let recorder = Recorder()
            let session = recorder.session()
            weak var released: Own?
            let task = session.dataTask(with: origin.url())
            let ended: Counter
            do {
                let own = Own()
                (task.delegate, released, ended) = (own, own, own.ended)
            }
            #expect(released != nil)
            task.resume()
            await ended.reaches(1)
            await recorder.expectOrder(session)
            #expect(recorder.words(task) == "redirect response data")
            #expect(task.delegate == nil && released == nil)
        }
    }
}

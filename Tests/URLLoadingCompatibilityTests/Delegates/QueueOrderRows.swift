// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The order of calls among the operations that the program adds to its own delegate queue.
@Suite(.timeLimit(.minutes(4)))
struct QueueOrderRows {
    /// A serial dispatch queue beneath an operation queue, as in a program that runs everything on one queue.
    private struct Queues: Sendable {
        let serial = DispatchQueue(label: "program")
        let operations = OperationQueue()

        init() {
            operations.maxConcurrentOperationCount = 1
            operations.underlyingQueue = serial
        }

        /// Blocks the queue until the returned closure is called.
        func hold() async -> @Sendable () -> Void {
            let semaphore = DispatchSemaphore(value: 0)
            await withCheckedContinuation { continuation in
                serial.async {
                    continuation.resume()
                    semaphore.wait()
                }
            }
            return { semaphore.signal() }
        }
    }

    @Test("a block that the delegate adds to the queue before it allows a response runs before the data")
    func allowed() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let queues = Queues()
            let words = Box<String>()
            let recorder = Recorder()
            recorder.onResponse = { _, _, answer in
                words.add("response")
                queues.serial.async { words.add("block") }
                answer(.allow)
            }
            recorder.onData = { _, _ in words.add("data") }
            let session = recorder.session(queues.operations)
            session.dataTask(with: origin.url()).resume()
            await recorder.completed.reaches(1)
            #expect(words.all == ["response", "block", "data"])
            await recorder.expectOrder(session)
        }
    }

    @Test("a block that the delegate adds to the queue with a piece of data runs before the next call")
    func pieces() async throws {
        let clock = ManualClock()
        try await withHTTPTestServer(.init(clock: clock)) { origin in
            origin.route("/", faults: [.init(.responseBody(after: 5), .delay(.seconds(1)))]) { _ in .ok("hello, world")
            }
            let queues = Queues()
            let words = Box<String>()
            let recorder = Recorder()
            recorder.onData = { task, data in
                words.add("data")
                guard data.count == 5 else { return }
                queues.serial.async { words.add("block") }
                // The rest of the body arrives before this call returns.
                for _ in 0..<5000 where task.countOfBytesReceived < 12 {
                    clock.advance(by: .seconds(1))
                    usleep(1000)
                }
            }
            recorder.onComplete = { _, _ in words.add("complete") }
            let session = recorder.session(queues.operations)
            session.dataTask(with: origin.url()).resume()
            await recorder.completed.reaches(1)
            #expect(words.all == ["data", "block", "data", "complete"])
            await recorder.expectOrder(session)
        }
    }

    @Test("a task cancelled after a block was added ends after the block, even if one of its calls was already queued")
    func cancelled() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 5), .stall)]) { _ in
                .ok(.declared(100, bytes: Array("hello".utf8)))
            }
            let queues = Queues()
            let words = Box<String>()
            let recorder = Recorder()
            recorder.onResponse = { _, _, answer in
                words.add("response")
                answer(.allow)
            }
            recorder.onComplete = { _, _ in words.add("complete") }
            let session = recorder.session(queues.operations)
            let task = session.dataTask(with: origin.url())
            let release = await queues.hold()
            task.resume()
            try await task.received(5)
            try await Task.sleep(for: .milliseconds(20))
            queues.serial.async { words.add("block") }
            task.cancel()
            release()
            await recorder.completed.reaches(1)
            #expect(words.all == ["block", "complete"])
            origin.releaseStalls()
            await recorder.expectOrder(session)
        }
    }

    @Test(
        "a task begun after a block was added ends after the block, even if another task of its session was queued"
    )
    func two() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let queues = Queues()
            let words = Box<String>()
            let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queues.operations)
            let done = Counter()
            let release = await queues.hold()
            func load(_ word: String) {
                session.dataTask(with: origin.url()) { _, _, _ in
                    words.add(word)
                    done.add()
                }.resume()
            }
            load("first")
            try await origin.wait { $0.answered == 1 }
            // Its call is queued: later calls of the session follow it.
            let seen = Counter()
            session.getAllTasks { _ in seen.add() }
            queues.serial.async { words.add("block") }
            load("second")
            try await origin.wait { $0.answered == 2 }
            try await Task.sleep(for: .milliseconds(50))
            release()
            await done.reaches(2)
            await seen.reaches(1)
            #expect(words.all.firstIndex(of: "block") ?? 9 < words.all.firstIndex(of: "second") ?? 0, "\(words.all)")
            session.invalidateAndCancel()
        }
    }

    // MARK: Resume data

    /// Records the handler's call after the operations that are on the delegate queue when the handler is called.
    private func note(_ words: Box<String>, _ session: URLSession) {
        let turn = DispatchSemaphore(value: 0)
        session.delegateQueue.addOperation { turn.signal() }
        turn.wait()
        words.add("handler")
    }

    @Test("the handler of a cancelled download is called before didCompleteWithError")
    func download() async throws {
        try await withHTTPTestServer { origin in
            let bytes = Array(repeating: UInt8(0x61), count: 100)
            origin.route("/", faults: [.init(.responseBody(after: 100), .stall)]) { _ in
                .ok(.declared(1000, bytes: bytes), headers: ["ETag": "\"1\"", "Accept-Ranges": "bytes"])
            }
            let words = Box<String>()
            let recorder = Recorder()
            let received = Counter()
            recorder.onComplete = { _, _ in words.add("complete") }
            let session = recorder.session()
            let task = session.downloadTask(with: origin.url()).resumed()
            try await task.received()
            task.cancel { [self] _ in
                note(words, session)
                received.add()
            }
            await received.reaches(1)
            await recorder.completed.reaches(1)
            #expect(words.all == ["handler", "complete"])
            origin.releaseStalls()
            await recorder.expectOrder(session)
        }
    }

    @Test(
        "the handlers of an unbegun download, an upload and a download cancelled twice precede didCompleteWithError",
        arguments: [0, 1, 2])
    func others(_ kind: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            let words = Box<String>()
            let recorder = Recorder()
            let received = Counter()
            recorder.onComplete = { _, _ in words.add("complete") }
            let session = recorder.session()
            // The first handler returns once both are to be called.
            let areBothDue = DispatchSemaphore(value: kind == 2 ? 0 : 1)
            let handler: @Sendable (Data?) -> Void = { [self] _ in
                areBothDue.wait()
                areBothDue.signal()
                note(words, session)
                received.add()
            }
            var post = URLRequest(url: origin.url())
            post.httpMethod = "POST"
            let upload = session.uploadTask(with: post, from: Data("hello".utf8))
            let download = session.downloadTask(with: origin.url())
            if kind == 1 {
                upload.resume()
                upload.cancel(byProducingResumeData: handler)
            } else {
                if kind == 2 {
                    download.resume()
                    download.cancel(byProducingResumeData: handler)
                }
                download.cancel(byProducingResumeData: handler)
                areBothDue.signal()
            }
            await received.reaches(kind == 2 ? 2 : 1)
            await recorder.completed.reaches(1)
            #expect(words.all == (kind == 2 ? ["handler", "handler", "complete"] : ["handler", "complete"]))
            origin.releaseStalls()
            session.invalidateAndCancel()
        }
    }
}

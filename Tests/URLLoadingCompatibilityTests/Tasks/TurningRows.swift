// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoadingCompatibility

/// Data tasks that become download or stream tasks.
@Suite(.timeLimit(.minutes(4)))
struct TurningRows {
    /// Turns every task into a download.
    final class Turner: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter(), asked = Counter(), tasks = Box<URLSessionTask>()
        let content = Box<Data>()
        var answers: URLSession.ResponseDisposition = .becomeDownload
        var delays = false
        let answer = Lockbox()

        private func note(_ word: String, _ session: URLSession) {
            words.add(word + (OperationQueue.current === session.delegateQueue ? "" : " elsewhere"))
        }
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            note("response", session)
            if delays { answer.keep(completionHandler) } else { completionHandler(answers) }
            asked.add()
        }
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
        ) {
            note("download \(dataTask.state == .completed) \(downloadTask.state == .running)", session)
            tasks.add(downloadTask)
        }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)
        {
            note("stream", session)
            tasks.add(streamTask)
            done.add()
        }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            note("data", session)
        }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) {
            if words.all.last != "written" { note("written", session) }
        }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {
            note("file", session)
            content.add((try? Data(contentsOf: location)) ?? Data())
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note(
                "\(task is URLSessionDownloadTask ? "download" : "data") complete "
                    + "\((error as? URLError)?.code.rawValue ?? 0)",
                session)
            done.add()
        }
        func session() -> URLSession { URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil) }
    }

    @Test(
        "a data task becomes a download of any length; the data task gets no further calls (checklist 49)",
        arguments: [0, 5, 3_000_000, -1], [false, true])
    func download(_ size: Int, _ delays: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                switch size {
                case 0: .status(.noContent)
                case -1: .ok(.chunks(["one", .pause(.milliseconds(2)), "two"]))
                default: .ok(.repeated(count: Int64(size)))
                }
            }
            let delegate = Turner()
            delegate.delays = delays
            let session = delegate.session()
            let task = session.dataTask(with: origin.url())
            let identifier = task.taskIdentifier
            task.resume()
            if delays {
                await delegate.asked.reaches(1)
                try await Task.sleep(for: .milliseconds(10))
                delegate.answer.keep(nil)
            }
            session.finishTasksAndInvalidate()
            await delegate.done.reaches(1)
            if delays {
                // A dropped handler cancels the task.
                #expect(delegate.words.all == ["response", "data complete -999"])
                return
            }
            let written = size == 0 ? [] : ["written"]
            #expect(
                delegate.words.all == ["response", "download true true"] + written + ["file", "download complete 0"])
            let expected = size == -1 ? Data("onetwo".utf8) : Data(repeating: 0x61, count: size)
            #expect(delegate.content.all == [expected])
            let download = delegate.tasks.all.first
            #expect(download?.taskIdentifier == identifier && download?.state == .completed && task.state == .completed)
            #expect(download?.countOfBytesReceived == Int64(expected.count))
        }
    }

    @Test("a download that was a data task can be cancelled with resume data")
    func resumed() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 1_000_000), .stall)]) { _ in
                .ok(.repeated(count: 3_000_000), headers: ["ETag": "\"one\"", "Accept-Ranges": "bytes"])
            }
            let delegate = Turner()
            let session = delegate.session()
            session.dataTask(with: origin.url()).resume()
            try await delegate.tasks.wait { !$0.isEmpty }
            let download = try #require(delegate.tasks.all.first as? URLSessionDownloadTask)
            try await download.received(900_000)
            let data = await download.cancelByProducingResumeData()
            await delegate.done.reaches(1)
            #expect(data != nil && delegate.words.all.last == "download complete -999" && delegate.content.all.isEmpty)
            // The download is not resumed, so its file is discarded.
            if let data { try ResumeToken(data).discard() }
            origin.releaseStalls()
            session.invalidateAndCancel()
        }
    }

    @Test("a response to Upgrade becomes a stream that begins with the bytes after the head; the stream runs")
    func stream() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Turner()
        delegate.answers = .becomeStream
        let session = delegate.session()
        let (task, peer) = try await Self.upgrade(session, listener)
        await delegate.done.reaches(1)
        #expect(delegate.words.all == ["response", "stream"] && task.state == .completed)
        let stream = try #require(delegate.tasks.all.first as? URLSessionStreamTask)
        let (data, _) = try await stream.readData(ofMinLength: 5, maxLength: 5, timeout: 10)
        #expect(data == Data("hello".utf8))
        session.invalidateAndCancel()
        await delegate.done.reaches(2)
        peer.close()
        listener.close()
    }

    /// Turns a task into a stream, and waits for another load when the stream's task is announced.
    final class Waiter: NSObject, URLSessionDataDelegate, Sendable {
        let words = Box<String>(), done = Counter(), other: URL
        init(_ other: URL) { self.other = other }
        func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
            guard task is URLSessionStreamTask else { return }
            let ended = DispatchSemaphore(value: 0)
            URLSession.shared.dataTask(with: other) { _, _, _ in ended.signal() }.resume()
            let hasEnded = ended.wait(timeout: .now() + 20) == .success
            words.add("created \(hasEnded) \(OperationQueue.current === session.delegateQueue) \(task.state.rawValue)")
        }
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) { completionHandler(.becomeStream) }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)
        {
            words.add("stream")
            done.add()
        }
    }

    @Test("the task of a stream is announced on the delegate queue, where the delegate may wait for another load")
    func announced() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
            let delegate = Waiter(origin.url())
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let peer = try await Self.upgrade(session, listener).peer
            await delegate.done.reaches(1)
            let suspended = URLSessionTask.State.suspended.rawValue
            #expect(delegate.words.all == ["created true true \(suspended)", "stream"])
            session.invalidateAndCancel()
            peer.close()
            listener.close()
        }
    }

    /// Loads a response with which the server changes to another protocol.
    private static func upgrade(
        _ session: URLSession, _ listener: SocketListener
    ) async throws -> (task: URLSessionDataTask, peer: StreamPeer) {
        var request = URLRequest(url: try url("http://127.0.0.1:\(listener.address.port)/"))
        request.setValue("raw", forHTTPHeaderField: "Upgrade")
        request.setValue("Upgrade", forHTTPHeaderField: "Connection")
        let task = session.dataTask(with: request).resumed()
        let peer = try await StreamPeer(listener)
        while try await peer.text(1) != "\n" {}
        try await peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\nConnection: Upgrade\r\n\r\nhello")
        return (task, peer)
    }

    /// A delegate queue that a test blocks.
    private struct BlockedQueue {
        let queue = OperationQueue()
        private let mayRun = DispatchSemaphore(value: 0)
        init() { queue.maxConcurrentOperationCount = 1 }

        /// Blocks the queue behind what is running.
        func block() { queue.addOperation { [mayRun] in mayRun.wait() } }
        func free() { mayRun.signal() }
    }

    @Test("the delegate meets the download whose end it is notified of, if the task was cancelled in between")
    func cancelledDownload() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 1000), .stall)]) { _ in .ok(.repeated(count: 2000)) }
            let delegate = Turner()
            delegate.delays = true
            let blocked = BlockedQueue()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: blocked.queue)
            session.dataTask(with: origin.url()).resume()
            await delegate.asked.reaches(1)
            blocked.block()
            delegate.answer.answer(.becomeDownload)
            let tasks = await session.allTasks
            let download = try #require(tasks.first as? URLSessionDownloadTask)
            download.cancel()
            blocked.free()
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["response", "download true false", "download complete -999"])
            #expect(delegate.tasks.all.first === download)
            origin.releaseStalls()
            session.invalidateAndCancel()
        }
    }

    @Test("a data task that has become a stream cancels the stream, of which the delegate is notified first")
    func cancelledStream() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Turner()
        delegate.delays = true
        let blocked = BlockedQueue()
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: blocked.queue)
        let (task, peer) = try await Self.upgrade(session, listener)
        await delegate.asked.reaches(1)
        blocked.block()
        delegate.answer.answer(.becomeStream)
        // The load notifies only its delegate, whose queue is blocked.
        try await eventually(session.currentTasks.contains { $0 is URLSessionStreamTask }) { $0 }
        task.cancel()
        blocked.free()
        await delegate.done.reaches(2)
        #expect(delegate.words.all == ["response", "stream", "data complete -999"])
        session.finishTasksAndInvalidate()
        peer.close()
        listener.close()
    }

    @Test("a response to a request without Upgrade does not become a stream, and the task fails")
    func noStream() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let delegate = Turner()
            delegate.answers = .becomeStream
            let session = delegate.session()
            let task = session.dataTask(with: origin.url()).resumed()
            await delegate.done.reaches(1)
            let beneath = (task.error as? URLError)?.userInfo[NSUnderlyingErrorKey] as? LoadError
            #expect(beneath?.reason == .badDecision)
            session.finishTasksAndInvalidate()
        }
    }

    @Test(
        "a response to a request with Upgrade may be allowed, refused, or loaded into a file",
        arguments: [URLSession.ResponseDisposition.allow, .cancel, .becomeDownload])
    func upgradeElse(_ answer: URLSession.ResponseDisposition) async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let delegate = Turner()
            delegate.answers = answer
            let session = delegate.session()
            var request = URLRequest(url: origin.url())
            request.setValue("raw", forHTTPHeaderField: "Upgrade")
            session.dataTask(with: request).resume()
            await delegate.done.reaches(1)
            switch answer {
            case .allow: #expect(delegate.words.all == ["response", "data", "data complete 0"])
            case .cancel: #expect(delegate.words.all == ["response", "data complete -999"])
            default:
                #expect(
                    delegate.words.all == ["response", "download true true", "written", "file", "download complete 0"])
                #expect(delegate.content.all == [Data("hello".utf8)])
            }
            session.finishTasksAndInvalidate()
        }
    }
}

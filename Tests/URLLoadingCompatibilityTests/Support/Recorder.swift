// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingCompatibility

/// A counter that tests can await without guessing durations.
final class Counter: Sendable {
    private struct State {
        var value = 0
        var waiting: [(Int, CheckedContinuation<Void, Never>)] = []
    }
    private let state = Lock(State())

    var value: Int { state.withLock { $0.value } }

    func add() {
        let ready = state.withLock { state in
            state.value += 1
            let ready = state.waiting.filter { $0.0 <= state.value }
            state.waiting.removeAll { $0.0 <= state.value }
            return ready.map(\.1)
        }
        for continuation in ready { continuation.resume() }
    }

    func reaches(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.value < count { state.waiting.append((count, continuation)) }
                return state.value >= count
            }
            if isReached { continuation.resume() }
        }
    }
}

extension Counter {
    /// Runs the calling thread's run loop until the first count. A run loop without sources returns at once.
    func runLoop(_ mode: RunLoop.Mode = .default) {
        while value == 0 {
            if !RunLoop.current.run(mode: mode, before: Date(timeIntervalSinceNow: 0.01)) {
                Thread.sleep(forTimeInterval: 0.001)
            }
        }
    }
}

/// The values that callbacks add.
final class Box<Value: Sendable>: Sendable {
    private let values = Watched<[Value]>([])
    func add(_ value: Value) { values.change { $0.append(value) } }
    var all: [Value] { values.value }

    /// Waits until the values fulfil a condition.
    nonisolated(nonsending) func wait(
        file: StaticString = #fileID, line: UInt = #line, until isSo: ([Value]) -> Bool
    ) async throws {
        try await values.wait(file: file, line: line, until: isSo)
    }
}

/// A delegate that records every call, checks its queue and its order (checklist 45, 170), and runs the test's closure
/// in each.
final class Recorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    typealias Disposer =
        @Sendable (URLSessionDataTask, URLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) ->
        Void
    typealias Redirecter =
        @Sendable (URLSessionTask, HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void

    struct Record: Sendable {
        var words: [String] = []
        var data = Data()
        var errors: [URLError?] = []
        var stage = 0
        var isInside = false
    }
    private let state = Lock<[Int: Record]>([:])
    private let violations = Box<String>()
    let completed = Counter(), invalidated = Counter()
    /// Whether the calls of all tasks must not overlap.
    let isSerial: Bool

    var onResponse: Disposer = { $2(.allow) }
    var onRedirect: Redirecter = { $3($2) }
    typealias Challenger =
        @Sendable (
            URLAuthenticationChallenge,
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) -> Void
    var onChallenge: Challenger = { $1(.performDefaultHandling, nil) }
    var onBody: @Sendable (URLSessionTask, @escaping @Sendable (InputStream?) -> Void) -> Void = { $1(nil) }
    var onRest: @Sendable (Int64, @escaping @Sendable (InputStream?) -> Void) -> Void = { $1(nil) }
    var onInformational: @Sendable (URLSessionTask, HTTPURLResponse) -> Void = { _, _ in }
    var onSent: @Sendable (Int64, Int64) -> Void = { _, _ in }
    var onFile: @Sendable (URLSessionDownloadTask, URL) -> Void = { _, _ in }
    var onMetrics: @Sendable (URLSessionTaskMetrics) -> Void = { _ in }
    var onData: @Sendable (URLSessionDataTask, Data) -> Void = { _, _ in }
    typealias Keeper =
        @Sendable (URLSessionDataTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void) -> Void
    var onCache: Keeper = { $2($1) } {
        didSet { hasKeeper = true }
    }
    private var hasKeeper = false
    var onComplete: @Sendable (URLSession, URLSessionTask) -> Void = { _, _ in }
    var onInvalid: @Sendable (URLSession) -> Void = { _ in }
    private let inside = Atomic<Int>(0)

    init(isSerial: Bool = true) { self.isSerial = isSerial }

    func record(_ task: URLSessionTask) -> Record { state.withLock { $0[task.taskIdentifier] ?? Record() } }
    func words(_ task: URLSessionTask) -> String { record(task).words.joined(separator: " ") }
    var broken: [String] { violations.all }

    /// - Parameter stages: the stages of a task in which this call is allowed.
    private func note(
        _ word: String, _ session: URLSession, _ task: URLSessionTask, after stages: ClosedRange<Int>, to stage: Int,
        _ change: (inout Record) -> Void = { _ in }, _ body: () -> Void
    ) {
        if OperationQueue.current !== session.delegateQueue { violations.add("\(word) on another queue") }
        if inside.add(1, ordering: .sequentiallyConsistent).oldValue > 0, isSerial {
            violations.add("\(word) inside another call")
        }
        if invalidated.value > 0 { violations.add("\(word) after didBecomeInvalid") }
        state.withLock { records in
            var record = records[task.taskIdentifier] ?? Record()
            if record.isInside { violations.add("\(word) inside another call of its task") }
            if !stages.contains(record.stage) { violations.add("\(word) after \(record.words)") }
            (record.stage, record.isInside) = (stage, true)
            if record.words.last != word { record.words.append(word) }
            change(&record)
            records[task.taskIdentifier] = record
        }
        body()
        state.withLock { $0[task.taskIdentifier]?.isInside = false }
        inside.subtract(1, ordering: .sequentiallyConsistent)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        if OperationQueue.current !== session.delegateQueue { violations.add("didBecomeInvalid on another queue") }
        if error != nil || invalidated.value > 0 { violations.add("didBecomeInvalid") }
        onInvalid(session)
        invalidated.add()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note("redirect", session, task, after: 0...0, to: 0) { onRedirect(task, response, request, completionHandler) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note("challenge", session, task, after: 0...0, to: 0) { onChallenge(challenge, completionHandler) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note("body", session, task, after: 0...0, to: 0) { onBody(task, completionHandler) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        note("informational", session, task, after: 0...0, to: 0) { onInformational(task, response) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note("rest", session, task, after: 0...0, to: 0) { onRest(offset, completionHandler) }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        note("resumed", session, downloadTask, after: 0...0, to: 0) {
            if fileOffset <= 0 || expectedTotalBytes < fileOffset {
                violations.add("resumed \(fileOffset) \(expectedTotalBytes)")
            }
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        note("written", session, downloadTask, after: 0...3, to: 3) {
            if bytesWritten <= 0 || totalBytesWritten < bytesWritten {
                violations.add("written \(bytesWritten) \(totalBytesWritten)")
            }
        }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        note("file", session, downloadTask, after: 0...3, to: 4) { onFile(downloadTask, location) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note("metrics", session, task, after: 0...4, to: 4, { $0.words.removeLast() }) { onMetrics(metrics) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        note("sent", session, task, after: 0...0, to: 0) {
            if bytesSent <= 0 || totalBytesSent < bytesSent
                || totalBytesExpectedToSend >= 0 && totalBytesSent > totalBytesExpectedToSend
            {
                violations.add("sent \(bytesSent) \(totalBytesSent) \(totalBytesExpectedToSend)")
            }
            onSent(totalBytesSent, totalBytesExpectedToSend)
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response", session, dataTask, after: 0...0, to: 1) {
            if dataTask.response !== response { violations.add("another response") }
            onResponse(dataTask, response) { disposition in
                self.state.withLock { $0[dataTask.taskIdentifier]?.stage = 2 }
                completionHandler(disposition)
            }
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data", session, dataTask, after: 2...3, to: 3, { $0.data.append(data) }) {
            if data.isEmpty { violations.add("no data") }
            onData(dataTask, data)
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        // Not recorded in tests about other subjects.
        let isAsked = hasKeeper
        note("cache", session, dataTask, after: 2...3, to: 4, { if !isAsked { $0.words.removeLast() } }) {
            onCache(dataTask, proposedResponse, completionHandler)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("complete", session, task, after: 0...4, to: 5, { $0.errors.append(error as? URLError) }) {
            if task.state != .completed { violations.add("complete, but \(task.state)") }
            if (error as? URLError)?.code != (task.error as? URLError)?.code { violations.add("another error") }
            onComplete(session, task)
        }
        completed.add()
    }
}

extension Recorder {
    /// Creates a session with this delegate.
    func session(
        _ queue: OperationQueue? = nil, _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        change(configuration)
        return URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
    }

    /// Expects that every call was in order, and that the session ends and releases its delegate.
    func expectOrder(_ session: URLSession, sourceLocation: SourceLocation = #_sourceLocation) async {
        session.finishTasksAndInvalidate()
        await invalidated.reaches(1)
        #expect(broken == [], sourceLocation: sourceLocation)
    }
}

extension URLSessionTask {
    /// Resumes the task, and returns it.
    func resumed() -> Self {
        resume()
        return self
    }

    /// Waits until the task is in a state. It notifies only its delegate, and of its end only: these tasks have none,
    /// or wait for another state.
    func eventually(_ state: State, file: StaticString = #fileID, line: UInt = #line) async throws {
        try await URLLoadingTestSupport.eventually(self.state, file: file, line: line) { $0 == state }
    }

    /// Waits until a data or download task has received this many bytes of the body, whether its delegate was notified
    /// of them or not.
    func received(_ count: Int = 1, file: StaticString = #fileID, line: UInt = #line) async throws {
        switch bridge?.state.withLock({ $0.load }) {
        case .data(let load)?: try await load.received(count, file: file, line: line)
        case .download(let load)?: try await load.received(count, file: file, line: line)
        case .socket, .stream, nil: Issue.record("\(self) has no load")
        }
    }
}

extension Recorder {
    /// Resumes a task, and waits for its end.
    /// - Parameter number: the number of tasks that have ended then.
    func complete(_ task: URLSessionTask, number: Int = 1) async {
        task.resume()
        await completed.reaches(number)
    }

    /// Counts the calls with data.
    func countPieces() -> Counter {
        let pieces = Counter()
        onData = { _, _ in pieces.add() }
        return pieces
    }

    /// Keeps the completion handlers of responses instead of calling them.
    /// - Returns: the last handler, and the number of responses.
    func holdResponses() -> (held: Lockbox, asked: Counter) {
        let (held, asked) = (Lockbox(), Counter())
        onResponse = { _, _, answer in
            held.keep(answer)
            asked.add()
        }
        return (held, asked)
    }
}

func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

/// The arguments of a completion handler.
struct Result3: Sendable {
    var data: Data?
    var response: URLResponse?
    var error: URLError?
}

extension URLSession {
    /// Resumes a task with a completion handler. Returns the arguments of its single call.
    func result(_ request: URLRequest, _ begun: (URLSessionDataTask) -> Void = { _ in }) async -> Result3 {
        await withCheckedContinuation { continuation in
            let task = dataTask(with: request) { data, response, error in
                continuation.resume(returning: Result3(data: data, response: response, error: error as? URLError))
            }
            task.resume()
            begun(task)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTesting

/// A delegate that blocks, answers late, twice or never, and keeps the book of its tasks.
final class AbuseDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, URLSessionStreamDelegate,
    URLSessionWebSocketDelegate
{
    private struct State: Sendable {
        var random: SeededGenerator
        var tickets: [Int: Ticket] = [:]
        var ending: Ticket?
        /// Completions of tasks that are not expected yet: another operation cancels all tasks of the session.
        var early: [Int: (any Error)?] = [:]
    }
    private let state: Lock<State>
    private let ledger: Ledger

    init(_ ledger: Ledger, seed: UInt64) {
        self.ledger = ledger
        state = Lock(State(random: SeededGenerator(seed: seed)))
    }

    /// Expects exactly one `didCompleteWithError` of a task that is about to be resumed.
    func expect(_ task: URLSessionTask, _ label: String) {
        let ticket = ledger.open("didCompleteWithError: \(label)")
        let early = state.withLock { state in
            let early = state.early.removeValue(forKey: task.taskIdentifier)
            if early == nil { state.tickets[task.taskIdentifier] = ticket }
            return early
        }
        if let early { ticket.close(early) }
    }

    func expectEnd(_ ticket: Ticket) { state.withLock { $0.ending = ticket } }

    private func number(_ range: Range<Int>) -> Int { state.withLock { Int.random(in: range, using: &$0.random) } }

    private func pause() { if number(0..<20) == 0 { usleep(UInt32(number(0..<2_000))) } }

    /// Calls a completion handler of the library in one of the ways of which programs are capable.
    private func answer(_ call: @escaping @Sendable () -> Void) {
        pause()
        switch number(0..<40) {
        case 0: break
        case 1:
            call()
            call()
        case 2..<6: later(number(0..<3_000), call)
        case 6:
            let thread = Thread(block: call)
            thread.start()
        case 7:
            later(100) { call() }
            later(100) { call() }
        default: call()
        }
    }

    // MARK: Session

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        pause()
        let (ticket, early) = state.withLock { ($0.ending, $0.early.keys.sorted()) }
        if !early.isEmpty { ledger.violate("didCompleteWithError of unknown tasks, or twice: \(early)") }
        guard let ticket else {
            return ledger.violate("didBecomeInvalidWithError of a session that was not invalidated")
        }
        ticket.close()
    }

    // MARK: Tasks

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { pause() }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let follows = number(0..<4) > 0
        answer { completionHandler(follows ? request : nil) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let choice = number(0..<5)
        answer {
            switch choice {
            case 0: completionHandler(.cancelAuthenticationChallenge, nil)
            case 1: completionHandler(.rejectProtectionSpace, nil)
            case 2: completionHandler(.useCredential, nil)
            case 3: completionHandler(.useCredential, URLCredential(user: "a", password: "b", persistence: .none))
            default: completionHandler(.performDefaultHandling, nil)
            }
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        let choice = number(0..<4)
        answer {
            completionHandler(choice == 0 ? nil : InputStream(data: Data(repeating: 0x61, count: 1_000 * choice)))
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { pause() }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) { pause() }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) { pause() }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        pause()
        let known = state.withLock { state in
            let known = state.tickets.removeValue(forKey: task.taskIdentifier)
            if known == nil { state.early[task.taskIdentifier] = .some(error) }
            return known
        }
        known?.close(error)
        if number(0..<10) == 0 {
            task.resume()
            task.cancel()
        }
    }

    // MARK: Data

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let choice = number(0..<20)
        answer {
            completionHandler(
                choice == 0 ? .cancel : choice == 1 ? .becomeDownload : choice == 2 ? .becomeStream : .allow)
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) { became(dataTask, downloadTask) }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
    ) {
        became(dataTask, streamTask)
        streamTask.resume()
        streamTask.cancel()
    }

    /// The completion of a task that becomes another one is that of the other.
    private func became(_ old: URLSessionTask, _ new: URLSessionTask) {
        pause()
        state.withLock { state in
            guard let ticket = state.tickets.removeValue(forKey: old.taskIdentifier) else { return }
            state.tickets[new.taskIdentifier] = ticket
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        pause()
        if number(0..<200) == 0 { dataTask.cancel() }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let stores = number(0..<4) > 0
        answer { completionHandler(stores ? proposedResponse : nil) }
    }

    // MARK: Downloads

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        pause()
        if number(0..<4) == 0 { try? FileManager.default.removeItem(at: location) }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        pause()
        if number(0..<100) == 0 { downloadTask.cancel { _ in } }
    }

    // MARK: Conversations

    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { pause() }
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) { pause() }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        // The task is over for its delegate: it receives no `didCompleteWithError`.
        state.withLock { $0.tickets.removeValue(forKey: streamTask.taskIdentifier) }?.close()
        inputStream.open()
        outputStream.open()
        pause()
        outputStream.close()
        inputStream.close()
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) { pause() }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) { pause() }
}

/// A class of the program that answers requests for the host `abuse.test`; the path says how.
final class AbuseProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "abuse.test" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let client else { return }
        guard
            let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: [:])
        else { return client.urlProtocol(self, didFailWithError: Thrown()) }
        let way = Int(url.lastPathComponent) ?? 0
        switch way {
        case 0: client.urlProtocol(self, didFailWithError: URLError(.badServerResponse))
        case 1: finish(client, response)
        case 2:
            finish(client, response)
            finish(client, response)
            client.urlProtocol(self, didFailWithError: Thrown())
        case 3: later(500) { self.finish(client, response) }
        case 4:
            // A body without a response.
            client.urlProtocol(self, didLoad: Data("early".utf8))
            client.urlProtocolDidFinishLoading(self)
        case 5: client.urlProtocolDidFinishLoading(self)
        case 6:
            client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .allowed)
            for _ in 0..<50 { client.urlProtocol(self, didLoad: Data(repeating: 0x61, count: 10_000)) }
            client.urlProtocolDidFinishLoading(self)
        case 7:
            usleep(1_000)
            client.urlProtocol(
                self, wasRedirectedTo: URLRequest(url: url.deletingLastPathComponent().appendingPathComponent("1")),
                redirectResponse: response)
        case 8:
            for _ in 0..<4 { later(300) { self.finish(client, response) } }
        default:
            // Never an answer: the load is cancelled, or ends with its timeout.
            client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        }
    }

    private func finish(_ client: any URLProtocolClient, _ response: URLResponse) {
        client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client.urlProtocol(self, didLoad: Data("hello".utf8))
        client.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() { if request.url?.lastPathComponent == "3" { usleep(200) } }
}

/// A body stream whose reads fail.
final class FailingStream: InputStream {
    private let bytes: Int
    private var given = 0
    private var status = Stream.Status.notOpen

    init(after bytes: Int) {
        self.bytes = bytes
        super.init(data: Data())
    }

    override var hasBytesAvailable: Bool { true }
    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { nil }
    override func open() { status = .open }
    override func close() { status = .closed }
    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard given < bytes, len > 0 else {
            status = .error
            return -1
        }
        given += 1
        buffer.pointee = 0x61
        return 1
    }
}

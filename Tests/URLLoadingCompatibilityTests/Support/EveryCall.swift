// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoadingCompatibility
import URLLoadingTestSupport

/// Records calls, and whether each was made on the promised queue.
final class RecordedCalls: Sendable {
    private let words = Watched<[String]>([])
    let done = Counter(), invalidated = Counter()

    var all: [String] { words.value }

    /// Records a call. Consecutive calls of one kind are recorded as one word.
    func note(_ word: String, _ isInPlace: Bool) {
        let word = isInPlace ? word : word + " elsewhere"
        words.change { if $0.last != word { $0.append(word) } }
    }

    /// Waits until the recorded calls fulfil a condition.
    nonisolated(nonsending) func wait(
        file: StaticString = #fileID, line: UInt = #line, until isSo: ([String]) -> Bool
    ) async throws {
        try await words.wait(file: file, line: line, until: isSo)
    }
}

/// Implements all calls of session and task delegates that need no answer. Subclasses declare the conformances: Swift
/// looks for the methods of a protocol in the conforming class and its superclasses.
class EveryEvent: NSObject, @unchecked Sendable {
    let calls = RecordedCalls()
    let tasks = Box<URLSessionTask>()

    func note(_ word: String, _ session: URLSession) {
        calls.note(word, OperationQueue.current === session.delegateQueue)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        note("invalid", session)
        calls.invalidated.add()
    }
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note("created", session) }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { note("sent", session) }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        note("informational", session)
    }
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        note("waiting", session)
    }
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note("metrics", session)
    }
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(error == nil ? "complete" : "complete \((error as? URLError)?.code.rawValue ?? 0)", session)
        calls.done.add()
    }
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)
    {
        note("became download", session)
    }
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
        note("became stream", session)
        tasks.add(streamTask)
        calls.done.add()
    }
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data", session)
    }
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        note("file", session)
    }
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) { note("written", session) }
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) { note("resumed", session) }
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        note("read closed", session)
    }
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        note("write closed", session)
    }
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {
        note("better route", session)
    }
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) { note("streams", session) }
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        note("opened", session)
    }
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) { note("closed", session) }
}

typealias EveryDelegate = EveryEvent & URLSessionTaskDelegate

/// The answers shared by both forms.
enum Answers {
    typealias Challenge = (URLSession.AuthChallengeDisposition, URLCredential?)
    static var credential: Challenge {
        (.useCredential, URLCredential(user: "ada", password: "secret", persistence: .none))
    }
    static var body: InputStream { InputStream(data: Data("12345".utf8)) }
    static func rest(from offset: Int64) -> InputStream {
        InputStream(data: Data(repeating: 7, count: max(0, 400_000 - Int(offset))))
    }
    static func trust(_ challenge: URLAuthenticationChallenge) -> Challenge {
        guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
        return (.useCredential, URLCredential(trust: trust))
    }
    static func disposition(_ task: URLSessionTask) -> URLSession.ResponseDisposition {
        switch task.originalRequest?.url?.path {
        case "/to-file": .becomeDownload
        case "/to-stream": .becomeStream
        default: .allow
        }
    }
}

/// Implements every question in the form with a completion handler.
final class EveryQuestion: EveryEvent, URLSessionDataDelegate, URLSessionDownloadDelegate, URLSessionStreamDelegate,
    URLSessionWebSocketDelegate,
    @unchecked Sendable
{
    /// Whether handlers are called on threads of their own, so that subsequent calls must return to the queue.
    private let answersElsewhere: Bool

    init(answersElsewhere: Bool) { self.answersElsewhere = answersElsewhere }

    private func answer(_ body: @escaping @Sendable () -> Void) {
        if answersElsewhere { Thread.detachNewThread(body) } else { body() }
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note("session challenge", session)
        answer {
            let (disposition, credential) = Answers.trust(challenge)
            completionHandler(disposition, credential)
        }
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        note("delayed", session)
        answer { completionHandler(.continueLoading, nil) }
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note("redirect", session)
        answer { completionHandler(request) }
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note("challenge", session)
        answer {
            let (disposition, credential) = Answers.credential
            completionHandler(disposition, credential)
        }
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note("body", session)
        answer { completionHandler(Answers.body) }
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note("rest", session)
        answer { completionHandler(Answers.rest(from: offset)) }
    }
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response", session)
        answer { completionHandler(Answers.disposition(dataTask)) }
    }
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        note("cache", session)
        answer { completionHandler(proposedResponse) }
    }
}

/// Implements every question in its async form.
final class EveryAsyncQuestion: EveryEvent, URLSessionDataDelegate, URLSessionDownloadDelegate,
    URLSessionStreamDelegate, URLSessionWebSocketDelegate,
    @unchecked Sendable
{
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        note("async session challenge", session)
        return Answers.trust(challenge)
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
        note("async delayed", session)
        return (.continueLoading, nil)
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        note("async redirect", session)
        return request
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        note("async challenge", session)
        return Answers.credential
    }
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
        note("async body", session)
        return Answers.body
    }
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64) async
        -> InputStream?
    {
        note("async rest", session)
        return Answers.rest(from: offset)
    }
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        note("async response", session)
        return Answers.disposition(dataTask)
    }
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        note("async cache", session)
        return proposedResponse
    }
}

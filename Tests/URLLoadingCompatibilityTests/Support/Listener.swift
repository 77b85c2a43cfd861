// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoadingCompatibility

/// Records the events of WebSockets and streams, and whether each came on the delegate queue.
final class Listener: NSObject, URLSessionWebSocketDelegate, URLSessionStreamDelegate, @unchecked Sendable {
    let words = Box<String>(), done = Counter(), heard = Counter()
    var onStreams: @Sendable (InputStream, OutputStream) -> Void = { _, _ in }
    var trustsAll = false

    private func note(_ word: String, _ session: URLSession) {
        words.add(word + (OperationQueue.current === session.delegateQueue ? "" : " elsewhere"))
        heard.add()
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note("trust", session)
        guard trustsAll, let trust = challenge.protectionSpace.serverTrust else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        note("open \(`protocol` ?? "-")", session)
    }
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        note("close \(closeCode.rawValue) \(reason.map { String(decoding: $0, as: UTF8.self) } ?? "-")", session)
    }
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        note("readClosed", session)
    }
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        note("writeClosed", session)
    }
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        note("streams", session)
        onStreams(inputStream, outputStream)
    }
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note("metrics", session)
    }
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("complete \((error as? URLError)?.code.rawValue ?? 0)", session)
        done.add()
    }
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { note("invalid", session) }

    func session() -> URLSession { URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil) }
}

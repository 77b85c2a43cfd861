// The delegate of a connection's session: what it hears, the connection's delegate hears in the old words.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

final class ConnectionAdaptor: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    private let connection: NSURLConnection
    // Of a download, on the delegate's queue. How much is in its file, and how much was when it went on last; how often it
    // did, and why.
    private var written: Int64 = 0
    private var resumedAt: Int64 = 0
    private var resumptions = 0
    private var loss: URLError?
    /// The rest was refused: what came is an error's page.
    private var isRefused = false
    private static let mostResumptions = 100

    init(_ connection: NSURLConnection) { self.connection = connection }

    private var dataDelegate: (any NSURLConnectionDataDelegate)? {
        connection.delegate as? any NSURLConnectionDataDelegate
    }
    private var downloadDelegate: (any NSURLConnectionDownloadDelegate)? {
        connection.delegate as? any NSURLConnectionDownloadDelegate
    }

    /// The request in its canonical form, or what the delegate makes of it.
    func first(_ request: URLRequest) -> URLRequest? {
        let request = request.canonical
        guard let delegate = dataDelegate else { return request }
        return delegate.connection(connection, willSend: request, redirectResponse: nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard let delegate = dataDelegate else { return completionHandler(request) }
        completionHandler(delegate.connection(connection, willSend: request, redirectResponse: response))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let delegate = connection.delegate else { return completionHandler(.performDefaultHandling, nil) }
        let connection = connection
        let sender = OldSender<any NSURLConnectionDelegate>(completionHandler, on: session) {
            $0.connection(connection, didCancel: $1)
        } of: {
            connection.delegate
        }
        let asked = URLAuthenticationChallenge(authenticationChallenge: challenge, sender: sender)
        _ = DefaultMark.take()
        delegate.connection(connection, willSendRequestFor: asked)
        guard DefaultMark.take() else { return }
        if delegate.connection(connection, canAuthenticateAgainstProtectionSpace: challenge.protectionSpace) {
            delegate.connection(connection, didReceive: asked)
        } else {
            completionHandler(.performDefaultHandling, nil)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(
            dataDelegate?.connection(connection, needNewBodyStream: task.currentRequest ?? connection.originalRequest))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        dataDelegate?.connection(
            connection, didSendBodyData: Int(bytesSent), totalBytesWritten: Int(totalBytesSent),
            totalBytesExpectedToWrite: Int(totalBytesExpectedToSend))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        dataDelegate?.connection(connection, didReceive: response)
        completionHandler(.allow)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard let delegate = dataDelegate else { return completionHandler(proposedResponse) }
        completionHandler(delegate.connection(connection, willCacheResponse: proposedResponse))
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        dataDelegate?.connection(connection, didReceive: data)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        written = totalBytesWritten
        downloadDelegate?.connection(
            connection, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
            expectedTotalBytes: totalBytesExpectedToWrite)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        // From 0 it begins anew: the server has another by now.
        guard fileOffset > 0 else { return }
        downloadDelegate?.connectionDidResumeDownloading(
            connection, totalBytesWritten: fileOffset, expectedTotalBytes: expectedTotalBytes)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        if loss != nil, let response = downloadTask.response as? HTTPURLResponse,
            !(200..<300).contains(response.statusCode)
        {
            isRefused = true
            return
        }
        connection.end { delegate in
            (delegate as? any NSURLConnectionDownloadDelegate)?.connectionDidFinishDownloading(
                connection, destinationURL: location)
        }
    }

    /// With what a download whose connection was lost goes on: as long as each time brings bytes, and somebody hears it. The
    /// token itself, for its data would keep the file on the disk.
    private func rest(after error: URLError) -> ResumeToken? {
        guard downloadDelegate != nil, error.code == .networkConnectionLost, written > resumedAt,
            resumptions < Self.mostResumptions,
            let token = (error.userInfo[NSUnderlyingErrorKey] as? LoadError)?.resumeToken
        else { return nil }
        (resumedAt, resumptions, loss) = (written, resumptions + 1, error)
        return token
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error = error as? URLError, let request = task.originalRequest, let token = rest(after: error) {
            return connection.follow(session.makeDownload(request, goingOnWith: token))
        }
        let error = isRefused ? loss : error
        connection.end { delegate in
            if let error { return delegate.connection(connection, didFailWithError: error) }
            (delegate as? any NSURLConnectionDataDelegate)?.connectionDidFinishLoading(connection)
        }
    }
}

extension URLRequest {
    /// A URL of http without a path means that of `/` (RFC 9110 §4.2.3).
    var canonical: URLRequest {
        guard let url, url.path.isEmpty, ["http", "https"].contains(url.scheme?.lowercased()),
            var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { return self }
        parts.path = "/"
        var request = self
        request.url = parts.url
        return request
    }
}

/// Takes answers as the older classes give them, and tells the delegate when one was `cancel`.
final class OldSender<Delegate>: NSObject, URLAuthenticationChallengeSender, @unchecked Sendable {
    private let reply: ChallengeSender.Reply
    private let lane: DelegateLane
    private let tell: (Delegate, URLAuthenticationChallenge) -> Void
    private let delegate: () -> Delegate?

    init(
        _ reply: @escaping ChallengeSender.Reply, on session: URLSession,
        _ tell: @escaping (Delegate, URLAuthenticationChallenge) -> Void, of delegate: @escaping () -> Delegate?
    ) {
        (self.reply, lane, self.tell, self.delegate) = (reply, session.lane, tell, delegate)
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        reply(.useCredential, credential)
    }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { reply(.useCredential, nil) }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { reply(.performDefaultHandling, nil) }
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        reply(.rejectProtectionSpace, nil)
    }

    func cancel(_ challenge: URLAuthenticationChallenge) {
        // Before the end that follows from it.
        lane.append(
            .call { [self] in
                if let delegate = delegate() { tell(delegate, challenge) }
                reply(.cancelAuthenticationChallenge, nil)
            })
    }
}

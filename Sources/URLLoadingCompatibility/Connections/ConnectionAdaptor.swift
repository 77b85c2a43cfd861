// SPDX-License-Identifier: Apache-2.0

// The session delegate behind an `NSURLConnection`: translates each call for the connection's delegate.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

final class ConnectionAdaptor: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    private let connection: NSURLConnection
    private let download = Lock(DownloadProgress())
    private static let maximumResumptions = 100

    init(_ connection: NSURLConnection) { self.connection = connection }

    private var dataDelegate: (any NSURLConnectionDataDelegate)? {
        connection.delegate as? any NSURLConnectionDataDelegate
    }
    private var downloadDelegate: (any NSURLConnectionDownloadDelegate)? {
        connection.delegate as? any NSURLConnectionDownloadDelegate
    }

    /// Returns the canonical form of the request, or the request that the delegate chose instead.
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
        let sender = ChallengeSender(completionHandler, on: session) {
            connection.delegate?.connection(connection, didCancel: $0)
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
        download.withLock { $0.written = totalBytesWritten }
        downloadDelegate?.connection(
            connection, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
            expectedTotalBytes: totalBytesExpectedToWrite)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        // An offset of 0 means that the download restarts, because the file on the server has changed.
        guard fileOffset > 0 else { return }
        downloadDelegate?.connectionDidResumeDownloading(
            connection, totalBytesWritten: fileOffset, expectedTotalBytes: expectedTotalBytes)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        if let response = downloadTask.response as? HTTPURLResponse, !(200..<300).contains(response.statusCode),
            download.withLock({ $0.refuse() })
        {
            return
        }
        connection.end { delegate in
            (delegate as? any NSURLConnectionDownloadDelegate)?.connectionDidFinishDownloading(
                connection, destinationURL: location)
        }
    }

    /// Returns the token with which a download resumes after a lost connection, as long as every attempt brings bytes
    /// and there is a delegate. The token is used directly, because reading its data would keep the file on the disk.
    private func resumeToken(after error: URLError) -> ResumeToken? {
        guard downloadDelegate != nil, error.code == .networkConnectionLost,
            let token = (error.userInfo[NSUnderlyingErrorKey] as? LoadError)?.resumeToken
        else { return nil }
        return download.withLock { $0.resume(after: error, atMost: Self.maximumResumptions) } ? token : nil
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error = error as? URLError, let request = task.originalRequest, let token = resumeToken(after: error) {
            return connection.follow(session.makeDownload(request, resuming: token))
        }
        let error = download.withLock { $0.refusal } ?? error
        connection.end { delegate in
            if let error { return delegate.connection(connection, didFailWithError: error) }
            (delegate as? any NSURLConnectionDataDelegate)?.connectionDidFinishLoading(connection)
        }
    }
}

/// The progress of a connection's download.
private struct DownloadProgress: Sendable {
    private enum Loss: Sendable {
        case none
        /// The connection was lost and the download resumes.
        case lost(URLError)
        /// The server refused the rest of the file and sent an error response instead.
        case refused(URLError)
    }
    /// Bytes in the file.
    var written: Int64 = 0
    /// Bytes in the file when the download was last resumed.
    private var resumedAt: Int64 = 0
    private var resumptions = 0
    private var loss = Loss.none

    /// The error of a download whose rest was refused; `nil` otherwise.
    var refusal: URLError? { if case .refused(let error) = loss { error } else { nil } }

    /// Records a lost connection. Returns whether the download resumes.
    mutating func resume(after error: URLError, atMost limit: Int) -> Bool {
        guard written > resumedAt, resumptions < limit else { return false }
        (resumedAt, resumptions, loss) = (written, resumptions + 1, .lost(error))
        return true
    }

    /// Records an error response. Returns whether it is the answer to a resumed download.
    mutating func refuse() -> Bool {
        switch loss {
        case .none: return false
        case .lost(let error), .refused(let error):
            loss = .refused(error)
            return true
        }
    }
}

extension URLRequest {
    /// The request with the path `/` if an http URL has an empty path (RFC 9110 §4.2.3).
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

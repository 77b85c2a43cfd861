// SPDX-License-Identifier: Apache-2.0

// The delegate protocols of `NSURLConnection`. Every method has a default except the one that delivers a download's
// file.

public import Foundation

/// Is notified of a connection's failure and challenges.
public protocol NSURLConnectionDelegate: NSObjectProtocol {
    /// The connection has failed. This is the last call.
    func connection(_ connection: NSURLConnection, didFailWithError error: any Error)

    /// Returns whether stored credentials are used; true by default.
    func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool

    /// A server or a proxy requests a credential, or presents a certificate to be trusted. The challenge's sender
    /// receives the answer, now or later. A delegate that implements this method receives no other calls about
    /// challenges.
    func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)

    /// Returns whether `didReceive challenge` is called for a protection space. If false, stored credentials are used.
    /// By default false for server trust and client certificates, true for all others.
    func connection(
        _ connection: NSURLConnection, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool

    /// A challenge was received. Its sender receives the answer, now or later. By default stored credentials are used.
    func connection(_ connection: NSURLConnection, didReceive challenge: URLAuthenticationChallenge)

    /// The challenge was answered with `cancel`.
    func connection(_ connection: NSURLConnection, didCancel challenge: URLAuthenticationChallenge)
}

extension NSURLConnectionDelegate {
    public func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {}
    public func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool { true }
    public func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
        DefaultMark.set()
    }
    public func connection(
        _ connection: NSURLConnection, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool { protectionSpace.isAskedByDefault }
    public func connection(_ connection: NSURLConnection, didReceive challenge: URLAuthenticationChallenge) {
        challenge.sender?.performDefaultHandling(for: challenge)
    }
    public func connection(_ connection: NSURLConnection, didCancel challenge: URLAuthenticationChallenge) {}
}

extension URLProtectionSpace {
    /// The default of `canAuthenticateAgainstProtectionSpace`: connection-level spaces are left to the library.
    var isAskedByDefault: Bool {
        ![NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust].contains(
            authenticationMethod)
    }
}

/// Is notified of a connection's response and body.
public protocol NSURLConnectionDataDelegate: NSURLConnectionDelegate {
    /// A request is about to be sent: the first one (with a `nil` response), or one that a redirect asks for.
    /// - Returns: the request to send. For a redirect, `nil` delivers the redirect response; for the first request it
    ///   ends the connection.
    func connection(
        _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest?

    /// The response has been received; its data follows.
    func connection(_ connection: NSURLConnection, didReceive response: URLResponse)
    /// A piece of the body was received.
    func connection(_ connection: NSURLConnection, didReceive data: Data)
    /// The body stream of the request must be sent again.
    func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream?
    /// A part of the body was sent.
    func connection(
        _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int)
    /// Returns the response to store in ``URLCache/shared``; `nil` stores nothing.
    func connection(_ connection: NSURLConnection, willCacheResponse cachedResponse: CachedURLResponse)
        -> CachedURLResponse?
    /// The load succeeded. This is the last call.
    func connectionDidFinishLoading(_ connection: NSURLConnection)
}

extension NSURLConnectionDataDelegate {
    public func connection(
        _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? { request }
    public func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {}
    public func connection(_ connection: NSURLConnection, didReceive data: Data) {}
    public func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream? { nil }
    public func connection(
        _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {}
    public func connection(
        _ connection: NSURLConnection, willCacheResponse cachedResponse: CachedURLResponse
    ) -> CachedURLResponse? { cachedResponse }
    public func connectionDidFinishLoading(_ connection: NSURLConnection) {}
}

/// Is notified of a connection that loads into a file.
public protocol NSURLConnectionDownloadDelegate: NSURLConnectionDelegate {
    /// A part of the body was written to the file.
    func connection(
        _ connection: NSURLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        expectedTotalBytes: Int64)
    /// The connection was lost and the download resumes. If the file on the server has changed, the download restarts
    /// without this call; if the server refuses or does not support ranges, the connection fails with the original
    /// error.
    func connectionDidResumeDownloading(
        _ connection: NSURLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64)
    /// The file is complete. This is the last call after success. The file is removed when this method returns, unless
    /// it was moved.
    func connectionDidFinishDownloading(_ connection: NSURLConnection, destinationURL: URL)
}

extension NSURLConnectionDownloadDelegate {
    public func connection(
        _ connection: NSURLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        expectedTotalBytes: Int64
    ) {}
    public func connectionDidResumeDownloading(
        _ connection: NSURLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64
    ) {}
}

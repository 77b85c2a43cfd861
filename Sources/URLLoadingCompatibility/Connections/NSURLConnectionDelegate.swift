// What connections tell their delegates. Every method has a default but the one that brings a download's file.

public import Foundation

/// Hears of a connection: its failure and its challenges.
public protocol NSURLConnectionDelegate: NSObjectProtocol {
    /// The connection has failed: the last call.
    func connection(_ connection: NSURLConnection, didFailWithError error: any Error)

    /// Whether stored credentials are looked for; yes by default.
    func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool

    /// A server or a proxy wants to know who we are, or has shown who it is. To be answered by the challenge's sender, now
    /// or later. A delegate with this method is asked nothing else about challenges.
    func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)

    /// Asked first: whether `didReceive challenge` is to be called for such a space. With no, what is stored is used. By
    /// default no for trust and client certificates, yes for all others.
    func connection(
        _ connection: NSURLConnection, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool

    /// To be answered by the challenge's sender, now or later. By default what is stored is used.
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
    /// Of delegates that do not say: connection-level spaces are the system's to judge.
    var isAskedByDefault: Bool {
        ![NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust].contains(
            authenticationMethod)
    }
}

/// Hears of a connection's response and body.
public protocol NSURLConnectionDataDelegate: NSURLConnectionDelegate {
    /// A request is about to be sent: the first (with `nil`), and each that a redirect asks for.
    /// - Returns: what is sent. `nil` for a redirect delivers the redirect response; for the first request it ends the
    ///   connection.
    func connection(
        _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest?

    func connection(_ connection: NSURLConnection, didReceive response: URLResponse)
    /// A piece of the body.
    func connection(_ connection: NSURLConnection, didReceive data: Data)
    /// The body stream of the request must be sent once more.
    func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream?
    func connection(
        _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int)
    /// What is to be kept of the response in ``URLCache/shared``; `nil` for nothing.
    func connection(_ connection: NSURLConnection, willCacheResponse cachedResponse: CachedURLResponse)
        -> CachedURLResponse?
    /// The last call of a connection that has not failed.
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

/// Hears of a connection that loads into a file.
public protocol NSURLConnectionDownloadDelegate: NSURLConnectionDelegate {
    func connection(
        _ connection: NSURLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        expectedTotalBytes: Int64)
    /// The connection was lost, and the download goes on where it broke off. Where the server has another file by now it
    /// begins anew, without this call; where it has refused, or knows no ranges, the connection fails with the loss.
    func connectionDidResumeDownloading(
        _ connection: NSURLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64)
    /// The file is complete: the last call of a connection that has not failed. Removed when this returns, unless it was
    /// moved.
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

// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// Is notified of a download. Every method has a default.
public protocol NSURLDownloadDelegate: NSObjectProtocol {
    /// The download has begun. This is the first call.
    func downloadDidBegin(_ download: NSURLDownload)
    /// A request is about to be sent: the first one (with a `nil` response), or one that a redirect asks for.
    /// - Returns: the request to send; `nil` ends the download, or delivers the redirect response.
    func download(_ download: NSURLDownload, willSend request: URLRequest, redirectResponse: URLResponse?)
        -> URLRequest?
    /// Returns whether `didReceive challenge` is called for a protection space. By default false for server trust and
    /// client certificates, true for all others.
    func download(
        _ connection: NSURLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool
    /// A challenge was received. Its sender receives the answer, now or later. By default stored credentials are used.
    func download(_ download: NSURLDownload, didReceive challenge: URLAuthenticationChallenge)
    /// The challenge was answered with `cancel`.
    func download(_ download: NSURLDownload, didCancel challenge: URLAuthenticationChallenge)
    /// Returns whether stored credentials are used; true by default.
    func downloadShouldUseCredentialStorage(_ download: NSURLDownload) -> Bool
    /// The response has been received; its data follows.
    func download(_ download: NSURLDownload, didReceive response: URLResponse)
    /// An earlier download resumes at this offset.
    func download(_ download: NSURLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64)
    /// The number of bytes written since the previous call.
    func download(_ download: NSURLDownload, didReceiveDataOfLength length: Int)
    /// Returns whether a compressed file is decompressed when it is complete. Called for files of the types
    /// `application/gzip` and `application/x-gzip`, before the destination is decided. The decompression runs on the
    /// delegate's thread. False by default; a content coding (`Content-Encoding`) is always removed.
    func download(_ download: NSURLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool
    /// The method in which to call ``NSURLDownload/setDestination(_:allowOverwrite:)``. Without that call the file is
    /// placed in the folder for temporary files.
    func download(_ download: NSURLDownload, decideDestinationWithSuggestedFilename filename: String)
    /// The name of the file was determined.
    func download(_ download: NSURLDownload, didCreateDestination path: String)
    /// The download succeeded. This is the last call.
    func downloadDidFinish(_ download: NSURLDownload)
    /// The download has failed. This is the last call.
    func download(_ download: NSURLDownload, didFailWithError error: any Error)
}

extension NSURLDownloadDelegate {
    public func downloadDidBegin(_ download: NSURLDownload) {}
    public func download(_ download: NSURLDownload, willSend request: URLRequest, redirectResponse: URLResponse?)
        -> URLRequest?
    {
        request
    }
    public func download(
        _ connection: NSURLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool { protectionSpace.isAskedByDefault }
    public func download(_ download: NSURLDownload, didReceive challenge: URLAuthenticationChallenge) {
        challenge.sender?.performDefaultHandling(for: challenge)
    }
    public func download(_ download: NSURLDownload, didCancel challenge: URLAuthenticationChallenge) {}
    public func downloadShouldUseCredentialStorage(_ download: NSURLDownload) -> Bool { true }
    public func download(_ download: NSURLDownload, didReceive response: URLResponse) {}
    public func download(_ download: NSURLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64)
    {}
    public func download(_ download: NSURLDownload, didReceiveDataOfLength length: Int) {}
    public func download(_ download: NSURLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool {
        false
    }
    public func download(_ download: NSURLDownload, decideDestinationWithSuggestedFilename filename: String) {}
    public func download(_ download: NSURLDownload, didCreateDestination path: String) {}
    public func downloadDidFinish(_ download: NSURLDownload) {}
    public func download(_ download: NSURLDownload, didFailWithError error: any Error) {}
}

public import Foundation

/// Hears of a download. Every method has a default.
public protocol NSURLDownloadDelegate: NSObjectProtocol {
    /// The first call.
    func downloadDidBegin(_ download: NSURLDownload)
    /// A request is about to be sent: the first (with `nil`), and each that a redirect asks for.
    /// - Returns: what is sent; `nil` ends the download, or delivers the redirect response.
    func download(_ download: NSURLDownload, willSend request: URLRequest, redirectResponse: URLResponse?)
        -> URLRequest?
    /// Asked first: whether `didReceive challenge` is to be called for such a space. By default no for trust and client
    /// certificates, yes for all others.
    func download(
        _ connection: NSURLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool
    /// To be answered by the challenge's sender, now or later. By default what is stored is used.
    func download(_ download: NSURLDownload, didReceive challenge: URLAuthenticationChallenge)
    /// The challenge was answered with `cancel`.
    func download(_ download: NSURLDownload, didCancel challenge: URLAuthenticationChallenge)
    /// Whether stored credentials are looked for; yes by default.
    func downloadShouldUseCredentialStorage(_ download: NSURLDownload) -> Bool
    func download(_ download: NSURLDownload, didReceive response: URLResponse)
    /// A download goes on here that had ended.
    func download(_ download: NSURLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64)
    /// So many bytes were written since the last such call.
    func download(_ download: NSURLDownload, didReceiveDataOfLength length: Int)
    /// The file is compressed: whether it is to be decompressed when it is whole. Asked for files of the types
    /// `application/gzip` and `application/x-gzip`, before their destination is. It is done on the delegate's thread.
    /// No by default; what is compressed only on its way (`Content-Encoding`) always arrives decompressed.
    func download(_ download: NSURLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool
    /// The place to call ``NSURLDownload/setDestination(_:allowOverwrite:)``. Without a call the file goes to the folder for
    /// temporary files.
    func download(_ download: NSURLDownload, decideDestinationWithSuggestedFilename filename: String)
    /// The file has got its name.
    func download(_ download: NSURLDownload, didCreateDestination path: String)
    /// The last call of a download that has not failed.
    func downloadDidFinish(_ download: NSURLDownload)
    /// The last call of a download that has failed.
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

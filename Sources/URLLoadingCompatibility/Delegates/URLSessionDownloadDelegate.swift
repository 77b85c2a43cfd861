public import Foundation

/// Hears of download tasks; not of those with a completion handler.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file is complete. Move it, or open it: it is removed when the task is over.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// A part of the body is in the file.
    /// - Parameters:
    ///   - bytesWritten: since the last such call.
    ///   - totalBytesWritten: that are in the file.
    ///   - totalBytesExpectedToWrite: the length of the whole; -1 if nobody knows.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// The download goes on where another has ended.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

extension URLSessionDownloadDelegate {
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        (next(in: session, downloadTask) as? any URLSessionDownloadDelegate)?.urlSession(
            session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
            totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }

    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        (next(in: session, downloadTask) as? any URLSessionDownloadDelegate)?.urlSession(
            session, downloadTask: downloadTask, didResumeAtOffset: fileOffset, expectedTotalBytes: expectedTotalBytes)
    }
}

// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// Is notified of download tasks without a completion handler.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file is complete. Move or open it in this method: the file is removed when the task is over.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// A part of the body was written to the file.
    /// - Parameters:
    ///   - bytesWritten: bytes written since the previous call.
    ///   - totalBytesWritten: bytes in the file.
    ///   - totalBytesExpectedToWrite: the length of the whole file; -1 if unknown.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// An earlier download resumes at this offset.
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

// SPDX-License-Identifier: Apache-2.0

// The session delegate behind an `NSURLDownload`. The download begins as a data task, so that the delegate sees the
// response before it chooses the file; then the task becomes a download task.

import Foundation
import Synchronization
import URLLoadingIO

final class DownloadAdaptor: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    private let download: NSURLDownload
    private let failure = Lock<(any Error)?>(nil)
    /// Whether the delegate wants the file decompressed. Accessed on the delegate's queue only.
    private let isToBeDecompressed = Atomic<Bool>(false)
    private var decompresses: Bool { isToBeDecompressed.load(ordering: .relaxed) }

    init(_ download: NSURLDownload) { self.download = download }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard let delegate = download.delegate else { return completionHandler(request) }
        completionHandler(delegate.download(download, willSend: request, redirectResponse: response))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let delegate = download.delegate,
            delegate.download(download, canAuthenticateAgainstProtectionSpace: challenge.protectionSpace)
        else { return completionHandler(.performDefaultHandling, nil) }
        let download = download
        let sender = ChallengeSender(completionHandler, on: session) {
            download.delegate?.download(download, didCancel: $0)
        }
        delegate.download(
            download, didReceive: URLAuthenticationChallenge(authenticationChallenge: challenge, sender: sender))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        download.delegate?.download(download, didReceive: response)
        ask(response)
        download.delegate?.download(download, decideDestinationWithSuggestedFilename: name(response))
        completionHandler(.becomeDownload)
    }

    private func ask(_ response: URLResponse) {
        guard let type = response.mimeType, CompressedFile.isKnown(type) else { return }
        let decompresses = download.delegate?.download(download, shouldDecodeSourceDataOfMIMEType: type) == true
        isToBeDecompressed.store(decompresses, ordering: .relaxed)
    }

    private func name(_ response: URLResponse?) -> String {
        let name = response?.suggestedFilename ?? "download"
        return decompresses ? CompressedFile.inner(name) : name
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)
    {
        download.follow(downloadTask)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        guard let response = downloadTask.response else { return }
        download.delegate?.download(download, willResumeWith: response, fromByte: fileOffset)
        ask(response)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        download.delegate?.download(download, didReceiveDataOfLength: Int(bytesWritten))
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        do {
            if decompresses { try CompressedFile.decompress(location) }
            let path = try download.take(location, suggested: name(downloadTask.response))
            download.delegate?.download(download, didCreateDestination: path)
        } catch {
            // The session removes only the task's own file, not the decompressed one.
            if decompresses { try? FileManager.default.removeItem(at: location) }
            if let error = error as? URLError { return failure.withLock { $0 = error } }
            failure.withLock { $0 = URLError.described(.cannotMoveFile, [NSUnderlyingErrorKey: error]) }
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let error = error ?? failure.withLock { $0 }
        // Reading the resume data keeps the partial file on the disk.
        if !download.deletesFileUponFailure, let data = (error as? URLError)?.downloadTaskResumeData {
            download.keep(data)
        }
        download.end { delegate in
            if let error {
                delegate.download(download, didFailWithError: error)
            } else {
                delegate.downloadDidFinish(download)
            }
        }
    }
}

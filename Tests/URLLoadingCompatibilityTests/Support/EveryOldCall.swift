// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoadingCompatibility

/// What the recording delegates of connections have in common: a failure ends the connection, and every
/// protection space can be authenticated against. The subclasses conform to the protocol: an optional method of a
/// subclass would not be called if this class did.
class ConnectionRecorder: NSObject, @unchecked Sendable {
    func note(_ word: String) {}
    func end() {}

    func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
        note("fail \((error as? URLError)?.code.rawValue ?? 0)")
        end()
    }
    func connection(
        _ connection: NSURLConnection, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool {
        note("can")
        return true
    }
    func connection(_ connection: NSURLConnection, didCancel challenge: URLAuthenticationChallenge) {
        note("cancelled")
    }
}

/// Records all calls of connections to their delegates.
class EveryConnectionCall: ConnectionRecorder, NSURLConnectionDelegate, @unchecked Sendable {
    let calls = RecordedCalls(), queue = OperationQueue()

    override func note(_ word: String) { calls.note(word, OperationQueue.current === queue) }
    override func end() { calls.done.add() }

    func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool {
        note("storage")
        return false
    }
    func connection(_ connection: NSURLConnection, didReceive challenge: URLAuthenticationChallenge) {
        note("challenge")
        guard connection.originalRequest.url?.path != "/cancel" else {
            return challenge.sender?.cancel(challenge) ?? ()
        }
        let (_, credential) = Answers.credential
        // Answered on another thread: subsequent calls are still made on the queue.
        Thread.detachNewThread { if let credential { challenge.sender?.use(credential, for: challenge) } }
    }
}

final class EveryDataCall: EveryConnectionCall, NSURLConnectionDataDelegate, @unchecked Sendable {
    func connection(
        _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? {
        note(response == nil ? "will send" : "will send again")
        return request
    }
    func connection(_ connection: NSURLConnection, didReceive response: URLResponse) { note("response") }
    func connection(_ connection: NSURLConnection, didReceive data: Data) { note("data") }
    func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
        note("body")
        return Answers.body
    }
    func connection(
        _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) { note("sent") }
    func connection(_ connection: NSURLConnection, willCacheResponse cachedResponse: CachedURLResponse)
        -> CachedURLResponse?
    {
        note("cache")
        return nil
    }
    func connectionDidFinishLoading(_ connection: NSURLConnection) {
        note("finish")
        calls.done.add()
    }
}

/// Receives every challenge in one method.
final class OneChallengeCall: NSObject, NSURLConnectionDataDelegate, @unchecked Sendable {
    let calls = RecordedCalls(), queue = OperationQueue()
    private func note(_ word: String) { calls.note(word, OperationQueue.current === queue) }

    func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
        note("any challenge")
        if let credential = Answers.credential.1 { challenge.sender?.use(credential, for: challenge) }
    }
    func connectionDidFinishLoading(_ connection: NSURLConnection) {
        note("finish")
        calls.done.add()
    }
}

final class EveryFileCall: EveryConnectionCall, NSURLConnectionDownloadDelegate, @unchecked Sendable {
    func connection(
        _ connection: NSURLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        expectedTotalBytes: Int64
    ) { note("written") }
    func connectionDidResumeDownloading(
        _ connection: NSURLConnection, totalBytesWritten: Int64, expectedTotalBytes: Int64
    ) {
        note("resume \(totalBytesWritten)/\(expectedTotalBytes)")
    }
    func connectionDidFinishDownloading(_ connection: NSURLConnection, destinationURL: URL) {
        note("file")
        calls.done.add()
    }
}

/// Records all calls of downloads to their delegates, on the creating thread.
final class EveryDownloadCall: NSObject, NSURLDownloadDelegate, @unchecked Sendable {
    let calls = RecordedCalls(), folder: URL
    private let thread = Box<ObjectIdentifier>()

    init(_ folder: URL) { self.folder = folder }

    /// To be called on the thread that creates the download.
    func begins() { thread.add(ObjectIdentifier(Thread.current)) }
    private func note(_ word: String) { calls.note(word, thread.all.first == ObjectIdentifier(Thread.current)) }

    func downloadDidBegin(_ download: NSURLDownload) { note("begin") }
    func download(_ download: NSURLDownload, willSend request: URLRequest, redirectResponse: URLResponse?)
        -> URLRequest?
    {
        note(redirectResponse == nil ? "will send" : "will send again")
        return request
    }
    func download(
        _ connection: NSURLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool {
        note("can")
        return true
    }
    func download(_ download: NSURLDownload, didReceive challenge: URLAuthenticationChallenge) {
        note("challenge")
        guard download.request.url?.path != "/cancel" else { return challenge.sender?.cancel(challenge) ?? () }
        let credential = Answers.credential.1
        Thread.detachNewThread { if let credential { challenge.sender?.use(credential, for: challenge) } }
    }
    func download(_ download: NSURLDownload, didCancel challenge: URLAuthenticationChallenge) { note("cancelled") }
    func downloadShouldUseCredentialStorage(_ download: NSURLDownload) -> Bool {
        note("storage")
        return false
    }
    func download(_ download: NSURLDownload, didReceive response: URLResponse) { note("response") }
    func download(_ download: NSURLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64) {
        note("resume")
    }
    func download(_ download: NSURLDownload, didReceiveDataOfLength length: Int) {
        note("data")
        calls.invalidated.add()
    }
    func download(_ download: NSURLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool {
        note("decode " + encodingType)
        return true
    }
    func download(_ download: NSURLDownload, decideDestinationWithSuggestedFilename filename: String) {
        note("destination")
        download.setDestination(folder.appendingPathComponent(filename).path, allowOverwrite: true)
    }
    func download(_ download: NSURLDownload, didCreateDestination path: String) { note("created") }
    func downloadDidFinish(_ download: NSURLDownload) {
        note("finish")
        calls.done.add()
    }
    func download(_ download: NSURLDownload, didFailWithError error: any Error) {
        note("fail \((error as? URLError)?.code.rawValue ?? 0)")
        calls.done.add()
    }
}

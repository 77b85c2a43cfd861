// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import URLLoading
import URLLoadingCompatibility

/// The delegate of a background session, killed in one of its calls.
final class Receiver: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    // Unchecked: the delegate queue is serial, and only its calls use the count.
    private let log: String
    private let last: Int
    private var count = 0

    /// - Parameter last: the number of the call to be killed in.
    init(log: String, last: Int) { (self.log, self.last) = (log, last) }

    private func call(_ words: String) {
        note("begin \(words)", log)
        count += 1
        if count == last { kill(getpid(), SIGKILL) }
        note("end \(words)", log)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo file: URL) {
        call("file \(downloadTask.taskDescription ?? "")")
    }
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        call("data \(dataTask.taskDescription ?? "")")
    }
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        call("complete \(task.taskDescription ?? "")")
    }
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { call("finished all") }
}

/// Receives the events of a classic background session, until it is killed.
func receiveClassically(_ socket: String, _ identifier: String, _ log: String, _ last: Int) -> Never {
    let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
    configuration.httpCookieStorage = nil
    configuration.adjust {
        $0.background?.socket = socket
        $0.hsts.storage = .none
    }
    let session = URLSession(
        configuration: configuration, delegate: Receiver(log: log, last: last), delegateQueue: nil)
    while true { withExtendedLifetime(session) { _ = pause() } }
}

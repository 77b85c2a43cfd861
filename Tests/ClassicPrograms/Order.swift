// SPDX-License-Identifier: Apache-2.0

// A program that runs everything on one serial queue, the calls of its delegate included, and relies on their order.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class Ordered: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    let serial = DispatchQueue(label: "program")
    private(set) var words: [String] = []
    let begun = Signal()
    let done = Signal()
    private(set) var session: URLSession!

    override init() {
        super.init()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.underlyingQueue = serial
        session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: queue)
    }

    /// On the queue.
    func note(_ word: String) { words.append(word) }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response")
        serial.async { self.note("prepared") }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { note("data") }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) { begun.fire() }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("complete")
        done.fire()
    }
}

func runOrder(_ origin: URL) {
    let first = Ordered()
    first.session.dataTask(with: origin.appendingPathComponent("text")).resume()
    first.done.wait("a load")
    Check.that(
        "what is put on the queue with the response runs before the data",
        first.words == ["response", "prepared", "data", "complete"], first.words)
    first.session.invalidateAndCancel()

    let second = Ordered()
    let task = second.session.dataTask(with: origin.appendingPathComponent("text"))
    let held = Signal()
    let free = Signal()
    second.serial.async {
        held.fire()
        free.wait("a held queue")
    }
    held.wait("the queue")
    task.resume()
    // Its response waits for the queue by now.
    Thread.sleep(forTimeInterval: 0.3)
    second.serial.async { second.note("cancelled") }
    task.cancel()
    free.fire()
    second.done.wait("a cancelled load")
    let place = second.words.firstIndex(of: "cancelled") ?? 9
    Check.that(
        "a task that is cancelled behind a block ends behind it", place < second.words.firstIndex(of: "complete") ?? 0,
        second.words)
    second.session.invalidateAndCancel()

    let third = Ordered()
    let download = third.session.downloadTask(with: origin.appendingPathComponent("file"))
    download.resume()
    third.begun.wait("a download")
    let paused = Signal()
    download.cancel { _ in
        // Whatever is on the queue already comes before this.
        third.serial.sync { third.note("resume data") }
        paused.fire()
    }
    paused.wait("resume data")
    third.done.wait("a paused download")
    Check.that("resume data comes before the end", third.words == ["resume data", "complete"], third.words)
    third.session.invalidateAndCancel()
}

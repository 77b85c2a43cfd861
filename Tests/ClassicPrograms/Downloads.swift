// SPDX-License-Identifier: Apache-2.0

// A download manager: pause, resume where it stood, progress, the file in its place.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class Manager: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
    private var session: URLSession!
    private var task: URLSessionDownloadTask?
    private let target: URL
    private(set) var resumeData: Data?
    private(set) var fractions: [Double] = []
    private(set) var resumedAt: Int64?
    private(set) var error: (any Error)?
    let moved = Signal()
    let done = Signal()

    init(target: URL) {
        self.target = target
        super.init()
        session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil)
    }

    func start(_ url: URL) {
        task = session.downloadTask(with: url)
        task?.resume()
    }

    func pause() {
        let paused = Signal()
        task?.cancel { data in
            self.resumeData = data
            paused.fire()
        }
        paused.wait("pausing")
        done.wait("a paused task")
    }

    func resumeAll() {
        guard let resumeData else { return }
        task = session.downloadTask(withResumeData: resumeData)
        task?.resume()
    }

    func close() { session.invalidateAndCancel() }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        fractions.append(Double(totalBytesWritten) / Double(max(totalBytesExpectedToWrite, 1)))
        moved.fire()
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        resumedAt = fileOffset
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        try? FileManager.default.removeItem(at: target)
        try? FileManager.default.moveItem(at: location, to: target)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.error = error
        done.fire()
    }
}

func runDownloads(_ origin: URL) {
    let target = FileManager.default.temporaryDirectory.appendingPathComponent("download-\(UUID())")
    defer { try? FileManager.default.removeItem(at: target) }
    let manager = Manager(target: target)
    manager.start(origin.appendingPathComponent("file"))
    manager.moved.wait("the first piece")
    manager.pause()
    Check.that("a pause gives resume data", manager.resumeData != nil)
    Check.that("nothing is in place yet", !FileManager.default.fileExists(atPath: target.path))
    manager.resumeAll()
    if manager.resumeData != nil { manager.done.wait("the download") }
    Check.that("it goes on where it stood", (manager.resumedAt ?? 0) > 0, manager.resumedAt as Any)
    Check.that("no error", manager.error == nil, manager.error as Any)
    let whole = (try? Data(contentsOf: target)) ?? Data()
    Check.that(
        "the file is whole",
        whole.count == 1 << 20 && whole.enumerated().allSatisfy { $1 == UInt8(truncatingIfNeeded: $0 / 1024) },
        whole.count)
    Check.that(
        "progress grows to the end", manager.fractions == manager.fractions.sorted() && manager.fractions.last == 1)
    manager.close()
}

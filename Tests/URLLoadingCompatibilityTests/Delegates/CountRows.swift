// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The byte counts reported to delegates, and downloads that fail.
@Suite(.timeLimit(.minutes(4)))
struct CountRows {
    /// Records every count.
    final class Counting: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
        let sent = Box<[Int64]>(), written = Box<[Int64]>(), errors = Box<URLError?>(), done = Counter()
        let onDisk = Box<Int64>(), resumed = Box<Int64>()
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) { sent.add([bytesSent, totalBytesSent, totalBytesExpectedToSend]) }
        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) { completionHandler(InputStream(data: Data(count: 30_000_000))) }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) { written.add([bytesWritten, totalBytesWritten, totalBytesExpectedToWrite]) }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
            expectedTotalBytes: Int64
        ) { resumed.add(fileOffset) }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {
            let size = try? location.resourceValues(forKeys: [.fileSizeKey]).fileSize
            onDisk.add(Int64(size ?? -1))
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            errors.add(error as? URLError)
            done.add()
        }

        /// Returns whether the counts add up and never decrease.
        static func isSum(_ counts: [[Int64]], to total: Int64, expected: Int64) -> Bool {
            var sum: Int64 = 0
            for count in counts {
                sum += count[0]
                if count[0] <= 0 || count[1] != sum || count[2] != expected { return false }
            }
            return sum == total
        }
    }

    private func session(_ delegate: Counting) -> URLSession {
        URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    @Test(
        "the sent bytes of every kind of body are counted once, up to the body's length (checklist 52)",
        arguments: ["data", "file", "stream", "handler"])
    func sent(_ kind: String) async throws {
        let file = temporaryURL("counted")
        try Data(count: 30_000_000).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.bodyCount)") }
            let delegate = Counting()
            let session = session(delegate)
            var request = URLRequest(url: origin.url())
            request.httpMethod = "PUT"
            let ended = Counter()
            let task =
                switch kind {
                case "data": session.uploadTask(with: request, from: Data(count: 30_000_000))
                case "file": session.uploadTask(with: request, fromFile: file)
                case "stream": session.uploadTask(withStreamedRequest: request)
                default: session.uploadTask(with: request, from: Data(count: 30_000_000)) { _, _, _ in ended.add() }
                }
            task.resume()
            await (kind == "handler" ? ended : delegate.done).reaches(1)
            // While the delegate's queue has no turn, counts are added up.
            #expect(!delegate.sent.all.isEmpty && task.countOfBytesSent == 30_000_000)
            #expect(Counting.isSum(delegate.sent.all, to: 30_000_000, expected: kind == "stream" ? -1 : 30_000_000))
            session.invalidateAndCancel()
        }
    }

    @Test(
        "a download counts the bytes in its file; it may send a body, from memory or a stream (checklist 53, 128)",
        arguments: [false, true])
    func written(_ streams: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok(.repeated(count: Int64($0.bodyCount) * 10_000_000)) }
            let delegate = Counting()
            let session = session(delegate)
            var request = URLRequest(url: origin.url())
            request.httpMethod = "POST"
            if streams {
                request.httpBodyStream = InputStream(data: Data(count: 3))
            } else {
                request.httpBody = Data(count: 3)
            }
            session.downloadTask(with: request).resume()
            await delegate.done.reaches(1)
            #expect(
                !delegate.written.all.isEmpty
                    && Counting.isSum(delegate.written.all, to: 30_000_000, expected: 30_000_000))
            #expect(delegate.onDisk.all == [30_000_000] && delegate.errors.all == [nil])
            session.invalidateAndCancel()
        }
    }

    @Test(
        "the error of a failed download contains resume data, if the server supports resumption (checklist 133, 134)",
        arguments: [false, true])
    func failed(_ hasTag: Bool) async throws {
        try await withHTTPTestServer { origin in
            let content = [UInt8]((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 3) })
            let tag: Headers = hasTag ? [.etag: "\"one\""] : [:]
            origin.route("/", faults: [.init(.responseBody(after: 100_000), .cut)]) { request in
                guard let range = request.headers[.range], let first = Int(range.dropFirst(6).dropLast()) else {
                    return .ok(.bytes(content), headers: tag)
                }
                return .status(
                    .partialContent, headers: [.etag: "\"one\"", .contentRange: "bytes \(first)-199999/200000"],
                    body: .bytes(Array(content[first...])))
            }
            let delegate = Counting()
            let session = session(delegate)
            session.downloadTask(with: origin.url()).resume()
            await delegate.done.reaches(1)
            let error = try #require(delegate.errors.all.first ?? nil)
            #expect(error.code == .networkConnectionLost)
            let data = error.userInfo[NSURLSessionDownloadTaskResumeData] as? Data
            #expect((data != nil) == hasTag)
            if let data {
                origin.removeFaults()
                session.downloadTask(withResumeData: data).resume()
                await delegate.done.reaches(2)
                #expect(delegate.errors.all.last == .some(nil) && delegate.onDisk.all == [200_000])
                // Bytes already received are not requested again.
                let first = origin.requests.last?.headers[.range]
                #expect(first.map { $0 != "bytes=0-" } == true && origin.requests.count == 2)
            }
            session.invalidateAndCancel()
        }
    }

    @Test("the download delegate is not notified of a download with a completion handler", arguments: [false, true])
    func handled(_ isAwaited: Bool) async throws {
        try await withHTTPTestServer { origin in
            // The rest is shorter than what comes before the cut, so the resumed download is not cut.
            let content = [UInt8](repeating: 0x61, count: 1_500_000)
            origin.route("/", faults: [.init(.responseBody(after: 1_000_000), .cut)]) { request in
                guard let range = request.headers[.range], let first = Int(range.dropFirst(6).dropLast()) else {
                    return .ok(.bytes(content), headers: [.etag: "\"one\""])
                }
                return .status(
                    .partialContent,
                    headers: [.etag: "\"one\"", .contentRange: "bytes \(first)-1499999/1500000"],
                    body: .bytes(Array(content[first...])))
            }
            let delegate = Counting()
            let session = session(delegate)
            let url = origin.url()
            let load: @Sendable (Data?) async throws -> URL = { data in
                guard !isAwaited else {
                    guard let data else { return try await session.download(from: url).0 }
                    return try await session.download(resumeFrom: data).0
                }
                return try await withCheckedThrowingContinuation { continuation in
                    let handler: @Sendable (URL?, URLResponse?, (any Error)?) -> Void = { file, _, error in
                        guard let file else { return continuation.resume(throwing: error ?? URLError(.unknown)) }
                        continuation.resume(returning: file)
                    }
                    let task =
                        data.map { session.downloadTask(withResumeData: $0, completionHandler: handler) }
                        ?? session.downloadTask(with: url, completionHandler: handler)
                    task.resume()
                }
            }
            let error = await #expect(throws: URLError.self) { _ = try await load(nil) }
            let data = try #require(error?.downloadTaskResumeData)
            let file = try await load(data)
            try? FileManager.default.removeItem(at: file)
            #expect(delegate.written.all == [] && delegate.resumed.all == [] && delegate.done.value == 0)
            session.invalidateAndCancel()
        }
    }
}

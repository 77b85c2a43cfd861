// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTesting
import URLLoadingWire

/// The result of a classic task for each end of a resumed download.
@Suite(.timeLimit(.minutes(4)))
struct ResumedDownloadRows {
    private static let content = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    private static func answer(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        var headers: Headers = [.etag: "\"one\""]
        guard let range = request.headers[.range], request.headers[.ifRange] == "\"one\"",
            let first = Int(range.dropFirst(6).dropLast())
        else { return .ok(.bytes([UInt8](content)), headers: headers) }
        headers[.contentRange] = "bytes \(first)-\(content.count - 1)/\(content.count)"
        return .status(.partialContent, headers: headers, body: .bytes([UInt8](content[first...])))
    }

    /// Returns the resume data of an interrupted download.
    private static func cut(_ origin: HTTPTestServer, _ session: URLSession) async throws -> Data {
        origin.route("/", faults: [.init(.responseBody(after: 300_000), .cut)]) { answer($0) }
        let data: Data? = await withCheckedContinuation { continuation in
            session.downloadTask(with: origin.url()) { _, _, error in
                continuation.resume(returning: (error as? URLError)?.downloadTaskResumeData)
            }.resume()
        }
        origin.removeFaults()
        return try #require(data)
    }

    /// Resumes with data that must still be valid.
    private static func expectResumes(_ data: Data?, _ origin: HTTPTestServer, _ session: URLSession, _ comment: String)
        async throws
    {
        let data = try #require(data, "\(comment)")
        origin.removeFaults()
        origin.route("/") { answer($0) }
        let (file, _) = try await session.download(resumeFrom: data)
        #expect(origin.requests.last?.headers[.range] != nil, "\(comment)")
        #expect(try Data(contentsOf: file) == content, "\(comment)")
        try FileManager.default.removeItem(at: file)
    }

    @Test(
        "an error page that answers a resumed download is delivered; the partial file and the resume data remain",
        arguments: [
            203, 204, 304, 401, 404, 407, 412, 416, 500, 503,
        ])
    func pages(_ code: Int) async throws {
        try await withHTTPTestServer { origin in
            let session = URLSession(configuration: .ephemeral)
            let data = try await Self.cut(origin, session)
            let status = try #require(Status(code))
            let isBare = code == 204 || code == 304
            origin.route("/") { _ in
                .status(
                    status, headers: code == 416 ? [.contentRange: "bytes */5"] : [:],
                    body: isBare ? .none : .bytes(Array("a page".utf8)))
            }
            let recorder = Recorder()
            let pages = Box<Data>()
            recorder.onFile = { _, url in if let page = try? Data(contentsOf: url) { pages.add(page) } }
            let delegated = recorder.session()
            let task = delegated.downloadTask(withResumeData: data)
            await recorder.complete(task)
            #expect(
                recorder.words(task).hasSuffix("file complete") && !recorder.words(task).contains("resumed"),
                "\(recorder.words(task))")
            #expect((task.response as? HTTPURLResponse)?.statusCode == code && task.error == nil)
            #expect(pages.all == [isBare ? Data() : Data("a page".utf8)])
            await recorder.expectOrder(delegated)
            try await Self.expectResumes(data, origin, session, "\(code)")
            session.invalidateAndCancel()
        }
    }

    @Test(
        "a 206 with another range ends a resumed download with an error that contains resume data",
        arguments: [nil, "\"two\"", "W/\"one\""])
    func mismatch(_ tag: String?) async throws {
        try await withHTTPTestServer { origin in
            let session = URLSession(configuration: .ephemeral)
            let data = try await Self.cut(origin, session)
            origin.route("/") { request in
                let first = Int((request.headers[.range] ?? "").dropFirst(6).dropLast()) ?? 0
                var headers: Headers = [.contentRange: "bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)"]
                if let tag { headers[.etag] = tag }
                return .status(
                    .partialContent, headers: headers,
                    body: .bytes([UInt8](repeating: 0, count: Self.content.count - first)))
            }
            var again: Data?
            do {
                let (file, _) = try await session.download(resumeFrom: data)
                try FileManager.default.removeItem(at: file)
                Issue.record("a file of two halves")
            } catch let error as URLError {
                #expect(error.code == .badServerResponse)
                again = error.downloadTaskResumeData
            }
            try await Self.expectResumes(again, origin, session, tag ?? "none")
            session.invalidateAndCancel()
        }
    }

    @Test(
        "a resumed download that fails or is cancelled before its response has resume data",
        arguments: 0..<3)
    func beforeTheAnswer(_ way: Int) async throws {
        try await withHTTPTestServer { origin in
            let session = URLSession(configuration: .ephemeral)
            let data = try await Self.cut(origin, session)
            var again: Data?
            if way == 0 {
                origin.route("/", faults: [.init(.requestHead, .close)]) { _ in .ok("never") }
                do { _ = try await session.download(resumeFrom: data) } catch let error as URLError {
                    again = error.downloadTaskResumeData
                }
            } else {
                origin.route("/", faults: [.init(.requestHead, .stall)]) { _ in .ok("never") }
                let task = session.downloadTask(withResumeData: data)
                if way == 1 {
                    task.resume()
                    try await origin.wait { $0.stalled == 1 }
                }
                again = await task.cancelByProducingResumeData()
                origin.releaseStalls()
            }
            try await Self.expectResumes(again, origin, session, "\(way)")
            session.invalidateAndCancel()
        }
    }
}

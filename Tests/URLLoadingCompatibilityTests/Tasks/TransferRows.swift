// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Upload and download tasks: the calls to their delegates and handlers.
@Suite(.timeLimit(.minutes(4)))
struct TransferRows {
    private static let content = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    private func post(_ url: URL) -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        return request
    }

    /// Responds with the length of the received body, and its type.
    private func count(_ origin: HTTPTestServer) {
        origin.route("/count") { request in
            .ok(
                "\(request.body.count) \(request.headers[.contentType] ?? "-") "
                    + "\(request.headers[.contentLength] ?? "chunked")"
            )
        }
    }

    // MARK: Uploads

    @Test("upload tasks send bytes and files; they are data tasks (checklist 32, 37, 121)")
    func uploads() async throws {
        try await withHTTPTestServer(serving: count) { origin in
            let file = temporaryURL("up")
            try Data("from a file".utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let recorder = Recorder()
            let session = recorder.session()
            let tasks: [URLSessionDataTask] = [
                session.uploadTask(with: post(origin.url("/count")), from: Data("hello".utf8)),
                session.uploadTask(with: post(origin.url("/count")), fromFile: file),
            ]
            for task in tasks { task.resume() }
            await recorder.completed.reaches(2)
            let type = "application/x-www-form-urlencoded"
            #expect(recorder.record(tasks[0]).data == Data("5 \(type) 5".utf8))
            #expect(recorder.record(tasks[1]).data == Data("11 \(type) 11".utf8))
            for task in tasks { #expect(recorder.words(task) == "sent response data complete") }
            #expect(tasks[0].countOfBytesSent == 5 && tasks[0].countOfBytesExpectedToSend == 5)
            let (data, _) = try await session.upload(for: post(origin.url("/count")), from: Data(count: 7))
            #expect(data == Data("7 \(type) 7".utf8))
            await recorder.expectOrder(session)
        }
    }

    @Test("a streamed upload requests its stream, and another one when a redirect sends it again (checklist 125)")
    func streamed() async throws {
        try await withHTTPTestServer(serving: count) { origin in
            origin.route("/from") { _ in .redirect("/count", status: .temporaryRedirect) }
            let recorder = Recorder()
            recorder.onBody = { _, answer in answer(InputStream(data: Data("streamed".utf8))) }
            let session = recorder.session()
            let task = session.uploadTask(withStreamedRequest: post(origin.url("/from")))
            await recorder.complete(task)
            #expect(
                recorder.words(task).replacingOccurrences(of: "sent ", with: "")
                    == "body redirect body response data complete")
            #expect(recorder.record(task).data == Data("8 application/x-www-form-urlencoded chunked".utf8))
            await recorder.expectOrder(session)
        }
    }

    @Test("a request's own stream is sent once; a redirect that needs it again fails without a new one")
    func ownStream() async throws {
        try await withHTTPTestServer(serving: count) { origin in
            origin.route("/from") { _ in .redirect("/count", status: .temporaryRedirect) }
            let session = URLSession(configuration: .ephemeral)
            var request = post(origin.url("/count"))
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            let (data, _) = try await session.data(for: request)
            #expect(data == Data("6 application/x-www-form-urlencoded chunked".utf8))
            request.url = origin.url("/from")
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            let failing = request
            await #expect { try await session.data(for: failing) } throws: {
                ($0 as? URLError)?.code == .requestBodyStreamExhausted
            }
            session.invalidateAndCancel()
        }
    }

    // MARK: Downloads

    @Test(
        "a download writes a file and counts its bytes; the file is removed after the callback (checklist 38, 53)"
    )
    func download() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes([UInt8](Self.content))) }
            let recorder = Recorder()
            let files = Box<URL>()
            let contents = Box<Data>()
            recorder.onFile = { _, url in
                files.add(url)
                if let data = try? Data(contentsOf: url) { contents.add(data) }
            }
            let session = recorder.session()
            let task = session.downloadTask(with: origin.url())
            await recorder.complete(task)
            #expect(recorder.words(task) == "written file complete")
            #expect(contents.all == [Self.content])
            #expect(
                task.countOfBytesReceived == Int64(Self.content.count)
                    && (task.response as? HTTPURLResponse)?.statusCode == 200)
            await recorder.expectOrder(session)
            #expect(!FileManager.default.fileExists(atPath: files.all[0].path))
        }
    }

    @Test(
        "a download with a handler passes its file, which stays if moved; the async method's file belongs to the caller"
    )
    func handler() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes([UInt8](Self.content))) }
            let session = URLSession(configuration: .ephemeral)
            let place = temporaryURL("moved")
            defer { try? FileManager.default.removeItem(at: place) }
            let error = await withCheckedContinuation { continuation in
                session.downloadTask(with: origin.url()) { url, response, error in
                    if let url { try? FileManager.default.moveItem(at: url, to: place) }
                    continuation.resume(returning: error)
                }.resume()
            }
            #expect(error == nil)
            #expect(try Data(contentsOf: place) == Self.content)
            let (file, response) = try await session.download(from: origin.url())
            #expect(try Data(contentsOf: file) == Self.content)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            try FileManager.default.removeItem(at: file)
            session.invalidateAndCancel()
        }
    }

    @Test("a cancelled download ends as cancelled, and resumes at its offset (checklist 56, 130-135)")
    func resumes() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 300_000), .stall)]) { request in
                var headers: Headers = [.etag: "\"one\""]
                guard let range = request.headers[.range], request.headers[.ifRange] == "\"one\"",
                    let first = Int(range.dropFirst(6).dropLast())
                else { return .ok(.bytes([UInt8](Self.content)), headers: headers) }
                headers[.contentRange] = "bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)"
                return .status(.partialContent, headers: headers, body: .bytes([UInt8](Self.content[first...])))
            }
            let recorder = Recorder()
            let contents = Box<Data>()
            recorder.onFile = { _, url in if let data = try? Data(contentsOf: url) { contents.add(data) } }
            let session = recorder.session()
            let first = session.downloadTask(with: origin.url()).resumed()
            try await origin.wait { $0.stalled == 1 }
            try await first.received()
            let data = try #require(await first.cancelByProducingResumeData())
            await recorder.completed.reaches(1)
            let error = recorder.record(first).errors.first ?? nil
            #expect(error?.code == .cancelled)
            #expect(error?.userInfo[NSURLSessionDownloadTaskResumeData] as? Data == data)
            origin.removeFaults()
            origin.releaseStalls()
            let second = session.downloadTask(withResumeData: data)
            await recorder.complete(second, number: 2)
            #expect(recorder.words(second) == "resumed written file complete")
            #expect(contents.all == [Self.content])
            await recorder.expectOrder(session)
        }
    }

    /// Returns the partial files whose content begins with the marker.
    private static func partials(_ marker: String) -> [URL] {
        let folder = FileManager.default.temporaryDirectory
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasPrefix(".urlloading-") }.map { folder.appendingPathComponent($0) }.filter {
            (try? FileHandle(forReadingFrom: $0).read(upToCount: marker.utf8.count)) == Data(marker.utf8)
        }
    }

    @Test("a failed download keeps its file only if its resume data is read", arguments: [false, true])
    func leftovers(_ asks: Bool) async throws {
        try await withHTTPTestServer { origin in
            let marker = UUID().uuidString
            let whole = Data(marker.utf8) + Self.content
            origin.route("/", faults: [.init(.responseBody(after: 300_000), .cut)]) { request in
                .ok(.bytes([UInt8](whole)), headers: [.etag: "\"one\""])
            }
            let session = URLSession(configuration: .ephemeral)
            let data: Data? = await withCheckedContinuation { continuation in
                session.downloadTask(with: origin.url()) { _, _, error in
                    let error = error as? URLError
                    #expect(
                        error?.code == .networkConnectionLost
                            && error?.userInfo[URLSessionDownloadTaskResumeData] != nil)
                    #expect(Self.partials(marker).count == 1)
                    continuation.resume(returning: asks ? error?.downloadTaskResumeData : nil)
                }.resume()
            }
            #expect((data != nil) == asks)
            if let data {
                // The task is over, and its error was released.
                for _ in 0..<50 { try await Task.sleep(for: .milliseconds(1)) }
                #expect(Self.partials(marker).count == 1)
                origin.route("/") { _ in .ok(.bytes([UInt8](whole))) }
                let (file, _) = try await session.download(resumeFrom: data)
                #expect(try Data(contentsOf: file) == whole)
                try FileManager.default.removeItem(at: file)
            }
            try await eventuallyFiles(Self.partials(marker).map(\.path)) { $0.isEmpty }
            session.invalidateAndCancel()
        }
    }

    @Test("invalid resume data fails the task instead of crashing the program")
    func badResumeData() async throws {
        let session = URLSession(configuration: .ephemeral)
        await #expect(throws: URLError.self) { try await session.download(resumeFrom: Data("nonsense".utf8)) }
        session.invalidateAndCancel()
    }

    @Test("metrics arrive before the end, with the sent and received bytes")
    func metrics() async throws {
        try await withHTTPTestServer(serving: count) { origin in
            origin.route("/from") { _ in .redirect("/count", status: .temporaryRedirect) }
            let recorder = Recorder()
            let heard = Box<URLSessionTaskMetrics>()
            let isEarly = Box<Bool>()
            recorder.onMetrics = {
                heard.add($0)
                isEarly.add(recorder.completed.value == 0)
            }
            let session = recorder.session()
            session.uploadTask(with: post(origin.url("/from")), from: Data("hello".utf8)).resume()
            await recorder.completed.reaches(1)
            let metrics = try #require(heard.all.first)
            #expect(metrics.redirectCount == 1 && metrics.transactionMetrics.count == 2 && isEarly.all == [true])
            let last = try #require(metrics.transactionMetrics.last)
            #expect(
                last.networkProtocolName == "http/1.1" && last.resourceFetchType == .networkLoad
                    && last.isReusedConnection)
            #expect(
                last.countOfRequestBodyBytesSent == 5 && last.remoteAddress == "127.0.0.1" && last.remotePort != nil)
            #expect((last.response as? HTTPURLResponse)?.statusCode == 200 && last.request.url == origin.url("/count"))
            let (start, end) = (try #require(last.requestStartDate), try #require(last.responseEndDate))
            #expect(start <= end && metrics.taskInterval.start <= start)
            await recorder.expectOrder(session)
        }
    }

    @Test("cancelling an async method cancels its task")
    func cancelled() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseHead(), .stall)]) { _ in .ok("late") }
            let session = URLSession(configuration: .ephemeral)
            let url = origin.url()
            let task = Task { try await session.data(from: url) }
            try await origin.wait { $0.stalled == 1 }
            task.cancel()
            await #expect { try await task.value } throws: { ($0 as? URLError)?.code == .cancelled }
            origin.releaseStalls()
            session.invalidateAndCancel()
        }
    }
}

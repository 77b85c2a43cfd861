// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTesting
import URLLoadingWire

/// Checklist 51 with delegates: one response and its data for each part, which replaces the previous one.
@Suite(.timeLimit(.minutes(4)))
struct PartRows {
    /// Records responses, and the data between them.
    final class Viewer: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let words = Box<String>(), frames = Box<Data>(), done = Counter(), asked = Counter()
        private var frame = Data()
        var onResponse: @Sendable (Int, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void = {
            $1(.allow)
        }

        private func show() { if !frame.isEmpty { frames.add(frame) } }
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            show()
            frame = Data()
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            words.add(
                "\(response.mimeType ?? "-") \(response.expectedContentLength) \(status)"
                    + (OperationQueue.current === session.delegateQueue ? "" : " elsewhere"))
            asked.add()
            onResponse(asked.value, completionHandler)
        }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { frame += data }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            show()
            words.add("complete \((error as? URLError)?.code.rawValue ?? 0)")
            done.add()
        }
    }

    private static func part(_ type: String, _ content: String) -> String {
        "\r\n--frame\r\nContent-Type: \(type)\r\nContent-Length: \(content.utf8.count)\r\n\r\n\(content)"
    }
    private static let mixed = "multipart/x-mixed-replace; boundary=frame"
    private static let large = String(repeating: "0123456789", count: 300_000)
    private static var body: String {
        part("image/jpeg", "one") + part("text/plain", "") + part("image/jpeg", large) + "\r\n--frame--\r\n"
    }
    private static let words = [
        "multipart/x-mixed-replace -1 200", "image/jpeg 3 200", "text/plain 0 200", "image/jpeg 3000000 200",
        "complete 0",
    ]

    private func load(_ viewer: Viewer, _ url: URL) async -> URLSessionDataTask {
        let session = URLLoadingCompatibility.URLSession(
            configuration: .ephemeral, delegate: viewer, delegateQueue: nil)
        let task = session.dataTask(with: url).resumed()
        await viewer.done.reaches(1)
        session.finishTasksAndInvalidate()
        return task
    }

    @Test(
        "didReceive response is called for each part, followed by its data, however the bytes are split (checklist 51)",
        arguments: [0, 1, 7, 100_000])
    func parts(_ size: Int) async throws {
        try await withHTTPTestServer { origin in
            let bytes = Array(
                (size == 1 || size == 7
                    ? Self.body.replacing(Self.large, with: "three").replacing("3000000", with: "5") : Self.body).utf8)
            let pieces = stride(from: 0, to: bytes.count, by: max(1, size == 0 ? bytes.count : size)).map {
                HTTPTestServer.Response.Piece.bytes(
                    Array(bytes[$0..<min(bytes.count, $0 + (size == 0 ? bytes.count : size))]))
            }
            origin.route("/") { _ in .ok(.chunks(pieces), headers: [.contentType: Self.mixed]) }
            let viewer = Viewer()
            let task = await load(viewer, origin.url())
            let isSmall = size == 1 || size == 7
            #expect(viewer.words.all == (isSmall ? Self.words.map { $0.replacing("3000000", with: "5") } : Self.words))
            let last = Data((isSmall ? "three" : Self.large).utf8)
            let isRight = viewer.frames.all == [Data("one".utf8), last]
            #expect(isRight && task.response?.mimeType == "image/jpeg")
        }
    }

    @Test("a part is not delivered before its response is answered, even later and from another thread")
    func held() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes(Array(Self.body.utf8)), headers: [.contentType: Self.mixed]) }
            let viewer = Viewer()
            viewer.onResponse = { _, answer in
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { answer(.allow) }
            }
            _ = await load(viewer, origin.url())
            #expect(viewer.words.all.dropFirst() == Self.words.dropFirst())
            #expect(viewer.frames.all.map(\.count) == [3, 3_000_000])
        }
    }

    @Test(
        "a part may be refused, which ends the task, or the task cancelled; a part cannot become a download",
        arguments: [URLSession.ResponseDisposition.cancel, .becomeDownload])
    func refused(_ answer: URLSession.ResponseDisposition) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes(Array(Self.body.utf8)), headers: [.contentType: Self.mixed]) }
            let viewer = Viewer()
            viewer.onResponse = { number, give in give(number == 4 ? answer : .allow) }
            let task = await load(viewer, origin.url())
            #expect(viewer.words.all.count == 5 && viewer.frames.all == [Data("one".utf8)] && task.error != nil)
        }
    }

    @Test("an endless stream of pictures waits for a slow delegate, and ends when cancelled")
    func endless() async throws {
        try await withHTTPTestServer { origin in
            let frame = Self.part("image/jpeg", String(repeating: "x", count: 10_000))
            origin.route("/") { _ in
                .ok(
                    .chunks([HTTPTestServer.Response.Piece](repeating: .bytes(Array(frame.utf8)), count: 5_000)),
                    headers: [.contentType: Self.mixed])
            }
            let viewer = Viewer()
            let kept = Lockbox()
            viewer.onResponse = { number, give in if number < 50 { give(.allow) } else { kept.keep(give) } }
            let session = URLLoadingCompatibility.URLSession(
                configuration: .ephemeral, delegate: viewer, delegateQueue: nil)
            let task = session.dataTask(with: origin.url()).resumed()
            await viewer.asked.reaches(50)
            try await Task.sleep(for: .milliseconds(20))
            #expect(viewer.asked.value == 50 && task.countOfBytesReceived < 20_000_000)
            task.cancel()
            await viewer.done.reaches(1)
            #expect(viewer.words.all.last == "complete -999" && viewer.frames.all.count == 48)
            session.invalidateAndCancel()
            kept.keep(nil)
        }
    }

    @Test("without a boundary, with a handler, or as another multipart type the body is delivered unchanged")
    func whole() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/none") { _ in .ok("text", headers: [.contentType: "multipart/x-mixed-replace"]) }
            origin.route("/form") { _ in
                .ok("--a\r\n\r\n1\r\n--a--", headers: [.contentType: "multipart/form-data; boundary=a"])
            }
            origin.route("/") { _ in .ok(.bytes(Array(Self.body.utf8)), headers: [.contentType: Self.mixed]) }
            for (path, text) in [("/none", "text"), ("/form", "--a\r\n\r\n1\r\n--a--")] {
                let viewer = Viewer()
                _ = await load(viewer, origin.url(path))
                #expect(viewer.words.all.count == 2 && viewer.frames.all == [Data(text.utf8)])
            }
            let session = URLLoadingCompatibility.URLSession(configuration: .ephemeral)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.data?.count == Self.body.utf8.count)
            session.invalidateAndCancel()
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/transfers.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct TransfersGuideTests {
    private static let content = String(repeating: "0123456789", count: 30_000)

    /// A file with a strong validator, served in parts.
    private func withFile(
        faults: [HTTPTestServer.Fault] = [],
        _ use: nonisolated(nonsending) (HTTPTestServer, URL, Session, TemporaryFolder) async throws -> Void
    ) async throws {
        try await withHTTPTestServer { origin in
            serve(origin, faults)
            try await use(origin, origin.url("/film.mov"), Session(.ephemeral), try TemporaryFolder())
        }
    }

    private func serve(_ origin: HTTPTestServer, _ faults: [HTTPTestServer.Fault] = []) {
        origin.route("/film.mov", faults: faults) { request in
            let all = Array(Self.content.utf8)
            var headers: Headers = ["ETag": "\"1\""]
            guard let range = request.headers[.range], let start = Int(range.dropFirst("bytes=".count).dropLast())
            else {
                return .ok(.bytes(all), headers: headers)
            }
            headers["Content-Range"] = "bytes \(start)-\(all.count - 1)/\(all.count)"
            return .status(.partialContent, headers: headers, body: .bytes(Array(all[start...])))
        }
    }

    private func expectContent(of url: URL) throws {
        let data = try Data(contentsOf: url)
        #expect(String(decoding: data, as: UTF8.self) == Self.content)
        try FileManager.default.removeItem(at: url)
    }

    @Test("into a file")
    func whole() async throws {
        try await withFile { _, url, session, files in
            let place = files.url("film.mov")
            let folder = URL(filePath: files.path)
            try await session.download(Request(url: url), to: place)
            try expectContent(of: place)

            let size = try await session.download(Request(url: url)) { file in
                try file.move(to: folder.appending(path: file.response.suggestedFileName))
                return file.size
            }
            #expect(size == Self.content.utf8.count)
            try expectContent(of: place)

            var shown: [Int64] = []
            func show(_ total: Int64, _ expected: Int64?) { shown.append(total) }
            let task = session.downloadTask(Request(url: url), options: DownloadOptions(destination: place))
            task.resume()
            for await case .received(let bytes) in task.events { show(bytes.total, bytes.expected) }
            let file = try await task.value
            #expect(shown.last == file.size)
            try expectContent(of: place)
        }
    }

    @Test("permissions, and no page in place of a file")
    func options() async throws {
        try await withFile { origin, url, session, files in
            let place = files.url("film.mov")
            func load() async throws -> DownloadedFile {
                var options = DownloadOptions(destination: place)
                options.permissions = 0o640
                options.requiresSuccess = true
                let task = session.downloadTask(Request(url: url), options: options)
                task.resume()
                let file = try await task.value
                return file
            }
            _ = try await load()
            #expect(files.mode("film.mov") == 0o640)
            try expectContent(of: place)
            origin.route("/film.mov") { _ in .status(.notFound) }
            let error = await failure(.unacceptableStatus) { try await load() }
            #expect(error?.response?.http?.status == .notFound && files.names == [])
        }
    }

    @Test("resuming later")
    func later() async throws {
        try await withFile(faults: [.init(.responseBody(after: 100_000), .stall)]) { origin, url, session, files in
            let place = files.url("film.mov")
            let task = session.downloadTask(Request(url: url), options: DownloadOptions(destination: place))
            var stored: Data?
            func store(_ data: Data?) throws { stored = data }

            task.resume()
            _ = try await task.response
            try store(task.resumeToken?.data)
            #expect(try stored.map { try ResumeToken($0).isFor(url) } == true)

            try await task.received(100_000)
            serve(origin)
            let token = await task.cancelProducingResumeToken()
            if let token {
                try await session.download(resuming: token, to: place)
            }
            try expectContent(of: place)
            #expect(origin.requests.last?.headers[.range] == "bytes=100000-")
        }
    }

    @Test("a server that has neither the rest nor the whole")
    func refused() async throws {
        try await withFile(faults: [.init(.responseBody(after: 100_000), .stall)]) { origin, url, session, files in
            let place = files.url("film.mov")
            let task = session.downloadTask(Request(url: url))
            task.resume()
            try await task.received(100_000)
            let token = try #require(await task.cancelProducingResumeToken())
            origin.route("/film.mov") { _ in .status(.serviceUnavailable, headers: ["Retry-After": "7"]) }
            var stored: Data?
            func store(_ data: Data?) throws { stored = data }
            var said = ""
            func print(_ status: Any, _ field: Any) { said = "\(status) \(field)" }
            do {
                try await session.download(resuming: token, to: place)
            } catch let error as LoadError {
                print(error.status as Any, error.response?.http?.headers["Retry-After"] as Any)
                try store(error.resumeToken?.data)
            }
            #expect(said.contains("503") && said.contains("7"))
            serve(origin)
            try await session.download(resuming: ResumeToken(try #require(stored)), to: place)
            try expectContent(of: place)
        }
    }

    @Test("a load that turns out to be large")
    func large() async throws {
        try await withFile { _, url, session, files in
            let place = files.url("film.mov")
            var decisions = Decisions()
            decisions.response = Decision { response in
                (response.expectedLength ?? .max) > 1 << 10
                    ? .becomeDownload(DownloadOptions(destination: place)) : .allow
            }
            let task = session.dataTask(Request(url: url), decisions: decisions)
            let events = task.events
            task.resume()
            for await case .becameDownload(let download) in events { _ = try await download.value }
            try expectContent(of: place)
        }
    }

    @Test("from a file; and so that it survives")
    func up() async throws {
        let server = ResumableUploadServer()
        try await withHTTPTestServer { origin in
            server.serve("/films", on: origin)
            origin.route("/put") { request in .ok("\(request.bodyCount)") }
            let session = Session(.ephemeral)
            let files = try TemporaryFolder()
            let film = files.url("film.mov")
            try Data(Self.content.utf8).write(to: film)
            var url = origin.url("/put")
            let (data, response) = try await session.upload(Request(url: url, method: .put), from: .file(film))
            #expect(
                response.http?.status == .ok && String(decoding: data, as: UTF8.self) == "\(Self.content.utf8.count)")

            let texts = Watched<[String]>([])
            @Sendable func store(_ text: String) throws { texts.append(text) }
            url = origin.url("/films")
            let (_, answer) = try await session.uploadResumably(Request(url: url, method: .post), from: .file(film)) {
                event in
                if case .created(let token) = event { try store(token.text) }
            }
            #expect(answer.http?.status.code == 200)
            #expect(texts.value.count == 1 && (try? UploadToken(texts.value[0])) != nil)
            #expect(server.uploads.first?.content.count == Self.content.utf8.count)
            try FileManager.default.removeItem(at: film)
        }
    }
}

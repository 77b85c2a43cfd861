// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Schemes that need no network, through the same API.
@Suite(.timeLimit(.minutes(4)))
struct SchemeRows {
    @Test("a file is loaded by functions, scopes and tasks (checklist 119)")
    func file() async throws {
        let folder = try TemporaryFolder()
        let bytes = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let url = try folder.write("a file.json", bytes)
        let session = Session()
        let (data, response) = try await session.data(from: url)
        #expect(data == bytes && response.expectedLength == 1_000_000 && response.http == nil)
        #expect(response.mediaType == MediaType("application/json") && response.url == url)
        let count = try await session.load(Request(url: url)) { _, body in
            var count = 0
            for try await chunk in body { count += chunk.count }
            return count
        }
        #expect(count == 1_000_000)
        let task = session.dataTask(from: url).resumed()
        try await expect({ try await task.value }, bytes)
        #expect("\(task.snapshot)" == "completed 1000000/1000000")
        try await expect({ try await session.data(for: Request(url: url, method: .head)).0 }, Data())
        let empty = try folder.write("empty", Data())
        try await expect({ try await session.data(from: empty).0 }, Data())
        let localhost = URL(string: "file://localhost" + url.path())!
        try await expect({ try await session.data(from: localhost).0 }, bytes)
    }

    @Test(
        "a Range field selects bytes of a file (RFC 9110 §14; checklist 119) (checklist 119)",
        arguments: [
            ("bytes=0-4", "01234"), ("bytes=5-", "56789"), ("bytes=-3", "789"), ("bytes=8-99", "89"),
            ("bytes=0-0,2-3", "0123456789"),
            ("lines=1-2", "0123456789"), ("bytes=5-2", "0123456789"), ("bytes= 3-4", "34"),
        ])
    func range(_ field: String, _ expected: String) async throws {
        let folder = try TemporaryFolder()
        var request = Request(url: try folder.write("digits.txt", Data("0123456789".utf8)))
        request.headers[.range] = field
        let session = Session()
        let (data, response) = try await session.data(for: request)
        #expect(String(decoding: data, as: UTF8.self) == expected && response.expectedLength == Int64(expected.count))
        #expect(response.fileRange.map { $0.count } == (expected.count == 10 ? nil : expected.count))
        request.headers[.range] = "bytes=10-"
        await expectFailure(.rangeNotSatisfiable) { try await session.data(for: request) }
    }

    @Test("a path that is not a readable file is an error with its reason")
    func refusals() async throws {
        let folder = try TemporaryFolder()
        let session = Session()
        func expect(_ reason: LoadError.Reason, _ text: String) async {
            await expectFailure(reason, nil, nil, text) { try await session.data(from: URL(string: text)!) }
        }
        await expect(.fileNotFound, "file://\(folder.path)/none")
        await expect(.fileNotFound, "file:///etc/hosts/none")
        await expect(.fileIsDirectory, "file://\(folder.path)")
        await expect(.badURL, "file://example.org/etc/hosts")
        await expect(.badURL, "file:///etc/hosts%00.txt")
        await expect(.cannotReadFile, "file:///dev/null")
        mkfifo("\(folder.path)/pipe", 0o600)
        await expect(.cannotReadFile, "file://\(folder.path)/pipe")
        if getuid() != 0 {
            let secret = try folder.write("secret", Data("x".utf8))
            chmod(secret.path(), 0)
            await expect(.noPermission, secret.absoluteString)
        }
        var post = Request(url: try folder.write("a", Data("x".utf8)), method: .post)
        await expectFailure(.badRequest, .local) { try await session.data(for: post) }
        post.method = .get
        post.body = .data(Data("x".utf8))
        await expectFailure(.badRequest, .local) { try await session.data(for: post) }
    }

    @Test("a directory is listed if configured, with names escaped")
    func directory() async throws {
        let folder = try TemporaryFolder()
        for name in ["b", "a b", "line\nbreak"] { _ = try folder.write(name, Data()) }
        try FileManager.default.createDirectory(atPath: "\(folder.path)/c", withIntermediateDirectories: true)
        let session = Session(.default.with { $0.handlers = [FileHandler(directories: .list)] })
        let (data, response) = try await session.data(from: URL(filePath: folder.path))
        let names = String(decoding: data, as: UTF8.self).split(separator: "\r\n").map {
            $0.split(separator: folder.path)[1]
        }
        #expect(names == ["/a%20b", "/b", "/c/", "/line%0Abreak"])
        #expect(response.mediaType?.essence == "text/uri-list")
    }

    @Test("a file that becomes shorter is an error, and a cancelled load of a large one ends")
    func changes() async throws {
        let folder = try TemporaryFolder()
        let url = try folder.write("large", Data())
        truncate(url.path(), 4 << 20)
        let session = Session()
        await expectFailure(.fileChanged, .system) {
            try await session.load(Request(url: url)) { _, body in
                for try await _ in body { truncate(url.path(), 1000) }
            }
        }
        truncate(url.path(), 1 << 30)
        let task = session.dataTask(from: url).resumed()
        _ = try await task.response
        #expect(task.snapshot.received <= 64 * 1024)
        task.cancel()
        await expectFailure(.cancelled) { try await task.value }
        await expectEmpty(session)
    }

    @Test(
        "data URLs are decoded (RFC 2397; checklist 119) (checklist 119)",
        arguments: [
            ("data:,hello", "hello", "text/plain", "us-ascii"), ("data:,a%20b", "a b", "text/plain", "us-ascii"),
            ("data:text/html;charset=utf-8,%3Cp%3E", "<p>", "text/html", "utf-8"),
            ("data:;base64,aGVsbG8=", "hello", "text/plain", "us-ascii"),
            ("data:text/plain;base64,aGVsbG8", "hello", "text/plain", nil),
            ("data:;charset=latin1;base64,aGVs%20bG8%3D", "hello", "text/plain", "latin1"),
            ("DATA:,x#y", "x", "text/plain", "us-ascii"), ("data:,", "", "text/plain", "us-ascii"),
            ("data:image/gif;BASE64,", "", "image/gif", nil),
            ("data:nonsense,x", "x", "text/plain", "us-ascii"),
        ] as [(String, String, String, String?)])
    func data(_ text: String, _ body: String, _ type: String, _ charset: String?) async throws {
        let session = Session()
        let (data, response) = try await session.data(from: URL(string: text)!)
        #expect(String(decoding: data, as: UTF8.self) == body && response.expectedLength == Int64(body.utf8.count))
        #expect(response.mediaType?.essence == type && response.textEncodingName == charset)
        let task = session.dataTask(from: URL(string: text)!).resumed()
        try await expect({ try await task.value.count }, body.utf8.count)
    }

    @Test("invalid data URLs are refused")
    func noData() async throws {
        let session = Session()
        await expectFailure(.badURL) { try await session.data(from: URL(string: "data:text/plain")!) }
        await expectFailure(.contentDecodingFailed) { try await session.data(from: URL(string: "data:;base64,a")!) }
        await expectFailure(.contentDecodingFailed) { try await session.data(from: URL(string: "data:;base64,a*b=")!) }
    }

    @Test(
        "a server cannot redirect to file or data, whatever a decision returns (security 58)",
        arguments: ["file:///etc/hosts", "data:,x"])
    func redirects(_ target: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect(target) }
            let session = Session()
            await expectFailure(.redirectRefused) { try await session.data(from: origin.url()) }
            var decisions = Decisions()
            decisions.redirect = Decision { _ in .follow }
            await expectFailure(.redirectRefused) {
                try await session.data(for: Request(url: origin.url()), decisions: decisions)
            }
        }
    }
}

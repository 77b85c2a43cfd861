// SPDX-License-Identifier: Apache-2.0

// `urlload -C` as a process: the partial file of one run, and its use by the next.

import Foundation
import Glibc
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ContinueCommandTests {
    static let content: [UInt8] = (0..<20_000).flatMap { Array("\(1_000_000 + $0)\n".utf8) }

    /// The next response.
    enum Mood: Sendable { case cut, whole, broken }

    final class Server: Sendable {
        private let state = Lock(Mood.cut)
        var mood: Mood {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }

    /// A file whose first response is cut in the middle, and a folder.
    static func with(_ use: (HTTPTestServer, TemporaryFolder, Server) async throws -> Void) async throws {
        let server = Server()
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            for path in ["/file", "/other"] {
                origin.route(path) { request in
                    let headers: Headers = [.etag: "\"\(path)\""]
                    switch server.mood {
                    case .broken: return .status(.internalServerError, body: .bytes(Array("an error page".utf8)))
                    case .cut:
                        return .ok(
                            .declared(Int64(content.count), bytes: Array(content[..<(content.count / 2)])),
                            headers: headers)
                    case .whole: break
                    }
                    guard request.headers[.ifRange] == "\"\(path)\"", let range = request.headers[.range],
                        let first = Int(range.dropFirst(6).dropLast())
                    else { return .ok(.bytes(content), headers: headers) }
                    var part = headers
                    part[.contentRange] = "bytes \(first)-\(content.count - 1)/\(content.count)"
                    return .status(.partialContent, headers: part, body: .bytes(Array(content[first...])))
                }
            }
            try await use(origin, folder, server)
        }
    }

    static func run(
        _ origin: HTTPTestServer, _ folder: TemporaryFolder, _ name: String = "file", path: String = "/file"
    )
        async throws -> Running.Result
    {
        try await Running.urlload(["-C", "-o", name, origin.url(path).absoluteString], in: folder)
    }

    /// The first run, whose response is cut.
    static func begin(_ origin: HTTPTestServer, _ folder: TemporaryFolder, _ server: Server, _ name: String = "file")
        async throws
    {
        let first = try await run(origin, folder, name)
        #expect(first.code == 18, "\(first.errors)")
        #expect(held(folder).count == 1 && !folder.names.contains(name), "\(folder.names)")
        server.mood = .whole
    }

    static func held(_ folder: TemporaryFolder) -> [String] { folder.names.filter { $0.hasPrefix(".urlloading-") } }

    static func status(_ folder: TemporaryFolder, _ name: String) -> stat {
        var status = stat()
        lstat(folder.path + "/" + name, &status)
        return status
    }

    @Test func `A second run resumes, and leaves only the file`() async throws {
        try await Self.with { origin, folder, server in
            try await Self.begin(origin, folder, server)
            #expect(folder.names.contains(".file.urlload") && folder.names.count == 2)
            // The notes contain the URL and the partial file the content: both are readable by their owner alone.
            for name in folder.names { #expect(Self.status(folder, name).st_mode & 0o777 == 0o600, "\(name)") }
            let second = try await Self.run(origin, folder)
            #expect(second.code == 0 && second.errors.contains("file: resumed at byte"), "\(second.errors)")
            #expect(origin.requests.last?.headers[.range] == "bytes=\(Self.content.count / 2)-")
            let bytes = try folder.bytes("file")
            #expect(folder.names == ["file"] && bytes == Self.content)
        }
    }

    @Test func `Names of maximum length can be resumed`() async throws {
        try await Self.with { origin, folder, server in
            let name = String(repeating: "n", count: 255)
            try await Self.begin(origin, folder, server, name)
            let second = try await Self.run(origin, folder, name)
            #expect(second.code == 0 && origin.requests.last?.headers[.range] != nil, "\(second.errors)")
            let bytes = try folder.bytes(name)
            #expect(folder.names == [name] && bytes == Self.content)
        }
    }

    @Test func `Without the partial file the download begins anew`() async throws {
        try await Self.with { origin, folder, server in
            try await Self.begin(origin, folder, server)
            for name in Self.held(folder) { unlink(folder.path + "/" + name) }
            let second = try await Self.run(origin, folder)
            let bytes = try folder.bytes("file")
            #expect(
                second.code == 0 && origin.requests.last?.headers[.range] == nil && folder.names == ["file"]
                    && bytes == Self.content)
        }
    }

    @Test func `An error page is not appended`() async throws {
        try await Self.with { origin, folder, server in
            try await Self.begin(origin, folder, server)
            server.mood = .broken
            let names = folder.names
            let second = try await Self.run(origin, folder)
            #expect(
                second.code == 22 && Self.held(folder).count == 1 && folder.names.count == names.count,
                "\(second.code) \(folder.names)")
            server.mood = .whole
            let third = try await Self.run(origin, folder)
            let bytes = try folder.bytes("file")
            #expect(
                third.code == 0 && origin.requests.last?.headers[.range] != nil && folder.names == ["file"]
                    && bytes == Self.content)
        }
    }

    @Test func `Notes of another URL are not used`() async throws {
        try await Self.with { origin, folder, server in
            try await Self.begin(origin, folder, server)
            let other = try await Self.run(origin, folder, path: "/other")
            let bytes = try folder.bytes("file")
            #expect(
                other.code == 0 && origin.requests.last?.headers[.range] == nil && folder.names == ["file"]
                    && bytes == Self.content)
        }
    }

    @Test func `A pipe is written to directly, without notes`() async throws {
        try await Self.with { origin, folder, server in
            let cut = try await Self.run(origin, folder, "/dev/null")
            #expect(cut.code == 18 && folder.names.isEmpty)
            server.mood = .whole
            let script = "mkfifo pipe; cat pipe >got & \"$0\" -C -o pipe \"$1\"; code=$?; wait; exit $code"
            let piped = try await Running.command(
                "/bin/bash", ["-c", script, Running.urlloadPath, origin.url("/file").absoluteString], in: folder)
            let bytes = try folder.bytes("got")
            #expect(
                piped.code == 0 && bytes == Self.content && folder.names == ["got", "pipe"],
                "\(piped.errors) \(folder.names)")
            #expect(Self.status(folder, "pipe").st_mode & S_IFMT == S_IFIFO)
        }
    }

    @Test func `A symbolic link is kept, and a link in place of the notes is not followed`() async throws {
        try await Self.with { origin, folder, server in
            for name in ["target", "victim"] {
                _ = FileManager.default.createFile(atPath: folder.path + "/" + name, contents: Data("mine".utf8))
            }
            symlink("target", folder.path + "/file")
            symlink("victim", folder.path + "/.target.urlload.new")
            symlink("victim", folder.path + "/.target.urlload")
            let first = try await Self.run(origin, folder)
            #expect(first.code == 18, "\(first.errors)")
            server.mood = .whole
            let second = try await Self.run(origin, folder)
            #expect(second.code == 0 && origin.requests.last?.headers[.range] != nil, "\(second.errors)")
            let (target, victim) = (try folder.bytes("target"), try folder.bytes("victim"))
            #expect(target == Self.content && victim == Array("mine".utf8))
            #expect(
                Self.status(folder, "file").st_mode & S_IFMT == S_IFLNK
                    && folder.names == ["file", "target", "victim"], "\(folder.names)")
        }
    }

    @Test(
        "Contradicting options are refused",
        arguments: [
            ["http://a.test/x"], ["-o", "-", "http://a.test/x"], ["-o", "f", "-I", "http://a.test/x"],
            ["-o", "f", "-i", "http://a.test/x"],
            ["-o", "f", "-d", "x", "http://a.test/x"], ["-o", "f", "-T", "f", "http://a.test/x"],
            ["-O", "http://a.test/x", "http://b.test/x"],
            ["-O", "http://a.test/x", "http://a.test/y", "http://b.test/d/x?q"],
        ])
    func exclusions(_ words: [String]) async throws {
        let folder = try TemporaryFolder()
        let result = try await Running.urlload(["-C"] + words, in: folder)
        #expect(result.code == 2 && folder.names.isEmpty, "\(result.errors)")
    }
}

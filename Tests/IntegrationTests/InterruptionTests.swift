// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// A load to a file that ends early keeps the partial file, prints a message, and can be resumed.
@Suite(.timeLimit(.minutes(4)))
struct InterruptionTests {
    static let content: [UInt8] = (0..<40_000).flatMap { Array("\($0 % 10)\n".utf8) }
    static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"

    enum Validator: Sendable { case none, date, tag }

    /// A file whose full response stalls or is cut in the middle; ranges are complete.
    private func with(
        _ validator: Validator, stalls: Bool = false, _ use: (HTTPTestServer, TemporaryFolder) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/file") { request in
                var headers: Headers = [:]
                if validator == .tag { headers[.etag] = "\"v\"" }
                if validator == .date { headers[.lastModified] = Self.modified }
                let known = [nil, "\"v\"", Self.modified].contains(request.headers[.ifRange])
                guard known, let first = request.headers[.range].flatMap({ Int($0.dropFirst(6).dropLast()) }) else {
                    let half = Array(Self.content[..<(Self.content.count / 2)])
                    guard stalls else {
                        return .ok(.declared(Int64(Self.content.count), bytes: half), headers: headers)
                    }
                    return .ok(.chunks([.bytes(half), .pause(.seconds(60))]), headers: headers)
                }
                guard first < Self.content.count else {
                    headers[.contentRange] = "bytes */\(Self.content.count)"
                    return .status(.rangeNotSatisfiable, headers: headers)
                }
                headers[.contentRange] = "bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)"
                return .status(.partialContent, headers: headers, body: .bytes(Array(Self.content[first...])))
            }
            try await use(origin, folder)
        }
    }

    private func run(_ words: [String], _ origin: HTTPTestServer, _ folder: TemporaryFolder) async throws
        -> Running.Result
    {
        try await Running.urlload(words + [origin.url("/file").absoluteString], in: folder)
    }

    @Test func `Without -C, a lost connection leaves a partial file and a message, and a later run resumes`()
        async throws
    {
        try await with(.tag) { origin, folder in
            let first = try await run(["-o", "file"], origin, folder)
            #expect(first.code == 18 && !folder.names.contains("file"), "\(first.errors)")
            #expect(
                first.errors.contains("file: 39.1 KiB of 78.1 KiB are kept; repeat with -C to resume"),
                "\(first.errors)")
            let second = try await run(["-C", "-o", "file"], origin, folder)
            #expect(second.code == 0 && origin.requests.last?.headers[.ifRange] == "\"v\"", "\(second.errors)")
            let bytes = try folder.bytes("file")
            #expect(bytes == Self.content && folder.names == ["file"])
        }
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `A signal leaves a partial file and a message`(_ number: Int32) async throws {
        try await with(.tag, stalls: true) { origin, folder in
            let process = try Running(
                Running.urlloadPath, ["-o", "file", origin.url("/file").absoluteString], in: folder)
            try await eventuallyFiles(folder.names) { $0.contains(".file.urlload") }
            process.send(number)
            let result = try await process.wait()
            #expect(
                result.code == (number == SIGINT ? 130 : 143)
                    && result.errors.contains("are kept; repeat with -C to resume"), "\(result.errors)")
            let second = try await run(["-C", "-o", "file"], origin, folder)
            let bytes = try folder.bytes("file")
            #expect(second.code == 0 && bytes == Self.content)
        }
    }

    @Test func `Without a validator the partial file is FILE part, and only -C - appends to it`() async throws {
        try await with(.none) { origin, folder in
            let first = try await run(["-o", "file"], origin, folder)
            #expect(first.code == 18 && folder.names == ["file.part"], "\(folder.names) \(first.errors)")
            #expect(first.errors.contains("repeat with -C - to resume without validation"), "\(first.errors)")
            let careful = try await run(["-C", "-o", "file"], origin, folder)
            #expect(careful.code == 18 && origin.requests.last?.headers[.range] == nil)
            let second = try await run(["-C", "-", "-o", "file"], origin, folder)
            let bytes = try folder.bytes("file")
            #expect(second.code == 0 && bytes == Self.content && folder.names == ["file"], "\(second.errors)")
            #expect(second.errors.contains("resumed at byte 40000 without validation"), "\(second.errors)")
        }
    }

    @Test func `A partial file of wget or curl -R is validated by its time`() async throws {
        try await with(.date) { origin, folder in
            let path = folder.path + "/file"
            try Data(Self.content[..<1000]).write(to: URL(fileURLWithPath: path))
            var times = [timespec(tv_sec: 784_111_777, tv_nsec: 0), timespec(tv_sec: 784_111_777, tv_nsec: 0)]
            utimensat(AT_FDCWD, path, &times, 0)
            let result = try await run(["-C", "-o", "file"], origin, folder)
            #expect(result.code == 0 && !result.errors.contains("without validation"), "\(result.errors)")
            #expect(origin.requests.last?.headers[.ifRange] == Self.modified)
            let bytes = try folder.bytes("file")
            #expect(bytes == Self.content)
        }
    }

    @Test func `A partial file of an unknown program is appended to by -C - alone; a complete one is not changed`()
        async throws
    {
        try await with(.none) { origin, folder in
            try Data(Self.content[..<1000]).write(to: URL(fileURLWithPath: folder.path + "/file"))
            let result = try await run(["-C", "-", "-o", "file"], origin, folder)
            #expect(
                result.code == 0 && result.errors.contains("file: resumed at byte 1000 without validation"),
                "\(result.errors)")
            let bytes = try folder.bytes("file")
            #expect(bytes == Self.content)
            let again = try await run(["-C", "-", "-o", "file"], origin, folder)
            #expect(again.code == 0 && again.errors == "urlload: file: is complete already\n", "\(again.errors)")
        }
    }

    @Test func `-R sets the time of the file, and --limit-rate slows the download`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/file") { _ in
                .ok(.bytes(Array(Self.content.prefix(20_000))), headers: [.lastModified: Self.modified])
            }
            let folder = try TemporaryFolder()
            let start = ContinuousClock.now
            let result = try await run(["-R", "--limit-rate", "40k", "-o", "file"], origin, folder)
            let status = ContinueCommandTests.status(folder, "file")
            #expect(result.code == 0 && status.st_mtim.tv_sec == 784_111_777, "\(result.errors)")
            // No upper bound: a busy machine may take longer.
            #expect(ContinuousClock.now - start > .milliseconds(300))
        }
    }
}

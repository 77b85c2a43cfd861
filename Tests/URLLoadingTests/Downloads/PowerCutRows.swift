// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The use of a stored token after a loss of power: only what was synced to the disk counts.
@Suite(.timeLimit(.minutes(4)))
struct PowerCutRows {
    static let content = DownloadRows.content

    /// Returns a stored token as read after the next boot.
    static func afterReboot(_ data: Data) throws -> ResumeToken {
        let boot = try String(
            decoding: Data(contentsOf: URL(filePath: "/proc/sys/kernel/random/boot_id")), as: UTF8.self)
        let lines = data.split(separator: UInt8(ascii: "\n"), maxSplits: 2)
        let other = "00000000-0000-4000-8000-000000000000"
        let text = String(decoding: lines[2], as: UTF8.self).replacing(boot.prefix(36), with: other)
        return try ResumeToken(Data(lines[0]) + Data("\n\(Digest.hex(text.utf8))\n\(text)".utf8))
    }

    /// Simulates a loss of power: the partial file keeps its size, with zeros after the synced bytes.
    static func zero(_ folder: TemporaryFolder, from offset: Int64) throws {
        let path = folder.url(try #require(folder.names.first)).path()
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_size >= offset)
        let descriptor = open(path, O_WRONLY)
        let start = Int(offset)
        let zeros = [UInt8](repeating: 0, count: status.st_size - start)
        #expect(pwrite(descriptor, zeros, zeros.count, start) == zeros.count)
        close(descriptor)
    }

    @Test("after a loss of power only the synced bytes of the partial file are used")
    func earlyToken() async throws {
        try await DownloadRows.with(stallsAfter: 1_300_000) { folder, session, origin in
            let task = session.downloadTask(Request(url: origin.url("/file"))).resumed()
            _ = try await task.response
            let early = try #require(task.resumeToken).data
            try await task.received(1_300_000)
            _ = await task.cancelProducingResumeToken()
            let token = try ResumeToken(early)
            try Self.zero(folder, from: token.offset)
            origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            let place = folder.url("whole")
            try await session.download(resuming: Self.afterReboot(early), to: place)
            #expect(contents(place) == Self.content)
            unlink(place.path())
            origin.releaseStalls()
        }
    }

    /// Returns the early token of a download with a sync mark, as if 6 seconds had passed between two pieces, which was
    /// then cancelled.
    static func marked(_ clock: ManualClock, _ folder: TemporaryFolder, _ session: Session, _ origin: HTTPTestServer)
        async throws
        -> ResumeToken
    {
        origin.route("/file") { _ in
            let head = "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: \(content.count)\r\n\r\n"
            return .raw(
                [
                    .bytes(Array(head.utf8)), .bytes([UInt8](content.prefix(400_000))), .pause(.seconds(6)),
                    .bytes([UInt8](content[400_000..<800_000])), .pause(.seconds(6)),
                    .bytes([UInt8](content[800_000...])),
                ], then: .close)
        }
        let task = session.downloadTask(Request(url: origin.url("/file"))).resumed()
        try await task.received(400_000)
        #expect(task.resumeToken?.record.mark == nil)
        clock.advance(by: .seconds(6))
        try await task.received(800_000)
        // The disk's thread synchronises the file, and no load waits for it.
        try await eventually(task.offsetOnDisk) { $0 > 0 }
        let token = try #require(task.resumeToken)
        _ = token.data
        task.cancel()
        _ = try? await task.value
        return token
    }

    static func with(_ use: (ManualClock, TemporaryFolder, Session, HTTPTestServer) async throws -> Void) async throws {
        let (clock, setting) = TokenRows.timed()
        let folder = try TemporaryFolder()
        var configuration = ResumeRows.configuration(folder)
        configuration.use(clock)
        try await withHTTPTestServer(setting) { origin in
            let session = Session(configuration)
            try await use(clock, folder, session, origin)
            await expectEmpty(session)
        }
    }

    @Test("after a loss of power a download resumes after the last synced byte that its token records")
    func marks() async throws {
        try await Self.with { clock, folder, session, origin in
            let data = try await Self.marked(clock, folder, session, origin).data
            let mark = try #require(try ResumeToken(data).record.mark)
            #expect((400_001...800_000).contains(mark.offset))
            try Self.zero(folder, from: mark.offset)
            origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            let place = folder.url("whole")
            try await session.download(resuming: Self.afterReboot(data), to: place)
            #expect(origin.requests.last?.headers[.range] == "bytes=\(mark.offset)-")
            #expect(contents(place) == Self.content)
            unlink(place.path())
        }
    }

    @Test("after a loss of power a file whose last synced bytes differ from its token is refused")
    func changed() async throws {
        try await Self.with { clock, folder, session, origin in
            let data = try await Self.marked(clock, folder, session, origin).data
            let mark = try #require(try ResumeToken(data).record.mark)
            try Self.zero(folder, from: mark.offset - 1000)
            await expectFailure(.invalidResumeToken) {
                try await session.download(resuming: Self.afterReboot(data), to: folder.url("whole"))
            }
            for name in folder.names { unlink(folder.url(name).path()) }
        }
    }

    @Test("after a loss of power a token transfers the synced bytes to another machine, and can be discarded")
    func content() async throws {
        try await Self.with { clock, folder, session, origin in
            let data = try await Self.marked(clock, folder, session, origin).data
            let mark = try #require(try ResumeToken(data).record.mark)
            try Self.zero(folder, from: mark.offset)
            let carried = try ResumeToken(Self.afterReboot(data).dataWithContent())
            #expect(carried.offset == mark.offset)
            try Self.afterReboot(data).discard()
            #expect(folder.names == [])
            origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            let place = folder.url("whole")
            try await session.download(resuming: carried, to: place)
            #expect(origin.requests.last?.headers[.range] == "bytes=\(mark.offset)-")
            #expect(contents(place) == Self.content)
            unlink(place.path())
        }
    }

    @Test(
        "after a loss of power a token without synced bytes restarts the download, and is kept until then"
    )
    func nothingKnown() async throws {
        try await Self.with { _, folder, session, origin in
            let held = try ResumeRows.hold(origin.url("/file"), in: folder) { $0.boot = SystemBoot.identity }
            try Self.zero(folder, from: 0)
            origin.route("/file", faults: [.init(.requestHead, .close)]) { _ in .ok("never") }
            let error = await failure(.connectionLost) {
                try await session.download(resuming: Self.afterReboot(held.data), to: folder.url("whole"))
            }
            origin.removeFaults()
            origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            let token = try #require(error?.resumeToken)
            let place = folder.url("whole")
            try await session.download(resuming: token, to: place)
            #expect(origin.requests.last?.headers[.range] == nil)
            #expect(contents(place) == Self.content)
            #expect(folder.names == ["whole"])
            unlink(place.path())
        }
    }

    @Test("a token of an earlier version without a boot identifier is read, and resumes")
    func earlier() async throws {
        try await Self.with { _, folder, session, origin in
            let held = try ResumeRows.hold(origin.url("/file"), in: folder)
            let text = String(decoding: held.data, as: UTF8.self)
            #expect(!text.contains("boot") && !text.contains("synced") && !text.contains("validatorBytes"))
            try await ResumeRows.expectResumes(held, folder, origin, "earlier")
        }
    }

    @Test(
        "the number of synced bytes is between zero and the file's length",
        arguments: [
            (700_001, "x"), (-1, "x"), (5, nil), (nil, "x"),
        ] as [(Int64?, String?)])
    func unsound(_ synced: Int64?, _ tail: String?) async throws {
        let folder = try TemporaryFolder()
        let url = try url("http://h.example/file")
        await expectFailure(.invalidResumeToken) {
            try ResumeRows.hold(url, in: folder) { ($0.synced, $0.syncedTail) = (synced, tail) }
        }
    }
}

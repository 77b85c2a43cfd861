// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// `DownloadOptions.resumeFile`: the same call continues what an earlier one has begun.
@Suite(.timeLimit(.minutes(4)))
struct ResumeFileRows {
    /// A folder, an origin whose `/file` stalls after a third of the content, and the options of each call.
    private struct Rig {
        let folder: TemporaryFolder
        let origin: HTTPTestServer
        let session: Session
        var options: DownloadOptions
        var url: URL { origin.url("/file") }
        /// The names in the folder: of partial files only that they are there.
        var names: [String] { folder.names.map { $0.hasPrefix(ResumeToken.prefix) ? "partial" : $0 } }

        /// Downloads, and returns the offsets of the events that say where it continued.
        func download() async throws -> [Int64] {
            let task = session.downloadTask(Request(url: url), options: options)
            let events = task.events
            task.resume()
            var offsets: [Int64] = []
            for await case .resumed(let offset, _) in events { offsets.append(offset) }
            _ = try await task.value
            return offsets
        }

        /// Begins a download, and cancels it once bytes are in its file.
        func interrupt() async throws {
            origin.inject(.init(.responseBody(after: 500_000), .stall))
            let task = session.downloadTask(Request(url: url), options: options).resumed()
            try await origin.wait { $0.stalled == 1 }
            try await task.received()
            task.cancel()
            await expectFailure(.cancelled) { try await task.value }
            origin.removeFaults()
            origin.releaseStalls()
            #expect(names == ["partial", "token"])
        }

        func expectComplete(sourceLocation: SourceLocation = #_sourceLocation) throws {
            #expect(names == ["file"], sourceLocation: sourceLocation)
            #expect(try folder.bytes("file") == [UInt8](DownloadRows.content), sourceLocation: sourceLocation)
        }
    }

    private func with(_ use: (Rig) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            var options = DownloadOptions(destination: folder.url("file"))
            options.resumeFile = folder.url("token")
            try await withSession(ResumeRows.configuration(folder)) { session in
                try await use(Rig(folder: folder, origin: origin, session: session, options: options))
            }
        }
    }

    @Test("the same call continues after a cancellation, and removes the token at the end") func continues()
        async throws
    {
        try await with { rig in
            try await rig.interrupt()
            #expect(rig.folder.mode("token") == 0o600)
            let offsets = try await rig.download()
            #expect(offsets.count == 1 && offsets[0] > 0)
            let ranges = rig.origin.requests.map { $0.headers[.range] }
            #expect(ranges == [nil, "bytes=\(offsets[0])-"])
            try rig.expectComplete()
        }
    }

    @Test("a download that is not interrupted leaves no token, and says nothing of a continuation") func whole()
        async throws
    {
        try await with { rig in
            #expect(try await rig.download().isEmpty)
            try rig.expectComplete()
        }
    }

    @Test("a token as a killed process leaves it continues") func killed() async throws {
        try await with { rig in
            let token = try ResumeRows.hold(rig.url, in: rig.folder)
            try token.data.write(to: rig.folder.url("token"))
            #expect(try await rig.download() == [Int64(ResumeRows.held)])
            try rig.expectComplete()
        }
    }

    @Test(
        "a token that does not fit is replaced by a new download, which says so",
        arguments: ["damaged", "empty", "other URL", "partial file gone", "partial file changed"])
    func unusable(_ kind: String) async throws {
        try await with { rig in
            try await rig.interrupt()
            let partial = try #require(rig.folder.names.first { $0.hasPrefix(ResumeToken.prefix) })
            let place = rig.folder.url("token")
            switch kind {
            case "damaged": try (Data(contentsOf: place).dropLast(10)).write(to: place)
            case "empty": try Data().write(to: place)
            case "other URL":
                let other = try TemporaryFolder()
                try ResumeRows.hold(rig.origin.url("/other"), in: other).data.write(to: place)
            case "partial file gone": try FileManager.default.removeItem(at: rig.folder.url(partial))
            default: try Data(repeating: 0, count: 1_000_000).write(to: rig.folder.url(partial))
            }
            #expect(try await rig.download() == [0])
            #expect(rig.origin.requests.map { $0.headers[.range] } == [nil, nil])
            #expect(try rig.folder.bytes("file") == [UInt8](DownloadRows.content))
            #expect(!rig.folder.names.contains("token"))
        }
    }

    @Test(
        "a token of another URL is replaced, and its partial file removed unless another download uses it",
        arguments: [false, true])
    func otherURL(isInUse: Bool) async throws {
        try await with { rig in
            let token = try ResumeRows.hold(rig.origin.url("/other"), in: rig.folder)
            try token.data.write(to: rig.folder.url("token"))
            let used = isInUse ? try ResumeToken(token.data).open(in: [rig.folder.path]).0 : nil
            #expect(try await rig.download() == [0])
            #expect(rig.names == (isInUse ? ["partial", "file"] : ["file"]))
            #expect(try rig.folder.bytes("file") == [UInt8](DownloadRows.content))
            used?.discard()
        }
    }

    @Test("changed content on the server is loaded anew", arguments: ["200", "206", "416"])
    func changed(_ kind: String) async throws {
        try await with { rig in
            try await rig.interrupt()
            rig.origin.route("/file") { request in
                guard kind != "200", request.headers.contains(.range) else {
                    return DownloadRows.answer(request, "\"two\"")
                }
                guard kind == "206" else { return .status(.rangeNotSatisfiable) }
                let rest = DownloadRows.content[700_000...]
                return .status(
                    .partialContent,
                    headers: [
                        .contentRange: "bytes 700000-1499999/1500000", .etag: "\"two\"",
                    ], body: .bytes([UInt8](rest)))
            }
            #expect(try await rig.download() == [0])
            #expect(rig.origin.counts.requests == (kind == "200" ? 2 : 3))
            try rig.expectComplete()
        }
    }

    @Test("a failure that may pass leaves the token as it was") func unavailable() async throws {
        try await with { rig in
            try await rig.interrupt()
            rig.origin.route("/file") { _ in .status(.serviceUnavailable) }
            await expectFailure(.unacceptableStatus) { _ = try await rig.download() }
            #expect(rig.names == ["partial", "token"])
            rig.origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            #expect(try await rig.download().first ?? 0 > 0)
            try rig.expectComplete()
        }
    }

    @Test(
        "a failure of the system that may pass leaves the token and the partial file as they were",
        arguments: ["token", "partial file"])
    func unreadable(_ kind: String) async throws {
        try await with { rig in
            try await rig.interrupt()
            let names = rig.folder.names
            let partial = names.first { $0.hasPrefix(ResumeToken.prefix) }
            let name = try #require(kind == "token" ? kind : partial)
            let place = rig.folder.url(name).path(percentEncoded: false)
            let aside = rig.folder.url("aside").path(percentEncoded: false)
            #expect(rename(place, aside) == 0)
            // Neither a link to itself (ELOOP) nor a folder (EISDIR) can be opened, like a file without a free
            // descriptor.
            let made = kind == "token" ? symlink("token", place) : mkdir(place, 0o700)
            #expect(made == 0)
            let error = await failure(.cannotReadFile, .system, .preparing) { _ = try await rig.download() }
            #expect(error?.detail != nil && rig.origin.counts.requests == 1)
            #expect(remove(place) == 0)
            #expect(rename(aside, place) == 0)
            #expect(rig.folder.names == names)
            #expect(try await rig.download().first ?? 0 > 0)
            try rig.expectComplete()
        }
    }

    @Test("a second download at once is refused, and the first is not disturbed") func twice() async throws {
        try await with { rig in
            rig.origin.inject(.init(.responseBody(after: 500_000), .stall), onConnection: 1)
            let first = rig.session.downloadTask(Request(url: rig.url), options: rig.options).resumed()
            try await rig.origin.wait { $0.stalled == 1 }
            try await eventuallyFiles(rig.names) { $0.contains("token") }
            await expectFailure(.invalidResumeToken) { _ = try await rig.download() }
            first.cancel()
            await expectFailure(.cancelled) { try await first.value }
            rig.origin.removeFaults()
            rig.origin.releaseStalls()
            #expect(rig.names == ["partial", "token"])
            #expect(try await rig.download().first ?? 0 > 0)
            try rig.expectComplete()
        }
    }

    @Test("without a validator there is no token; with another digest neither") func none() async throws {
        try await with { rig in
            rig.origin.route("/file") { DownloadRows.answer($0, nil) }
            #expect(try await rig.download().isEmpty)
            try rig.expectComplete()
            try FileManager.default.removeItem(at: rig.folder.url("file"))
            rig.origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            var other = rig
            other.options.expectedDigest = try BodyDigest("sha-256=\(Digest.hex([1]))")
            await expectFailure(.digestMismatch) { _ = try await other.download() }
            #expect(rig.names.isEmpty)
            try await rig.interrupt()
            await expectFailure(.digestMismatch) { _ = try await other.download() }
            #expect(rig.names.isEmpty)
        }
    }

    @Test("a folder that is missing is a clear error") func missingFolder() async throws {
        try await with { rig in
            var rig = rig
            rig.options.resumeFile = rig.folder.url("missing/token")
            let (url, options) = (rig.url, rig.options)
            let error = await failure(.cannotWriteFile, .system, .receiving) {
                try await rig.session.downloadTask(Request(url: url), options: options).resumed().value
            }
            #expect(error?.detail?.contains("missing/token") == true)
        }
    }
}

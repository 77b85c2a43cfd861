// SPDX-License-Identifier: Apache-2.0

// `urlload -T FILE URL --resumable STATEFILE`, killed with SIGKILL.

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ResumableUploadTests {
    private static let size = 8 << 20

    private static let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    @Test(
        "After a kill at any point the next run sends exactly the missing bytes",
        arguments: [
            [1], [100_000], [1_000_000, 1_000_001, 5_000_000, Int64(size) - 1],
        ] as [[Int64]])
    func killed(at places: [Int64]) async throws {
        let folder = try TemporaryFolder()
        try Self.content.write(to: URL(filePath: folder.path + "/film"))
        let server = ResumableUploadServer()
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            let arguments = ["-T", "film", origin.url("/files").absoluteString, "--resumable", "state"]
            for (index, place) in places.enumerated() {
                server.inject(.init(.received(place), .stall))
                let process = try Running(Running.urlloadPath, arguments, in: folder)
                // The server has this many bytes and accepts no more, and the process has stored the state.
                try await origin.wait { $0.stalled == 1 }
                try await eventuallyFiles(folder.names) { $0.contains("state") }
                process.send(SIGKILL)
                let killed = try await process.wait()
                #expect(killed.code == SIGKILL)
                // Unread bytes of the client hide the end of its connection.
                origin.releaseStalls()
                try await origin.wait { $0.stalled == 0 }
                #expect(server.transfers.count == index + 1 && server.uploads.first?.content.count == Int(place))
            }
            let last = try await Running.urlload(arguments, in: folder)
            #expect(last.code == 0, "\(last.errors)")
            #expect(last.text == "\(Self.size) bytes")
        }
        #expect(folder.names == ["film"])
        #expect(server.uploads.map { Data($0.content) == Self.content && $0.isComplete } == [true])
        var offset: Int64 = 0
        for transfer in server.transfers {
            #expect(transfer.offset == offset)
            offset += transfer.count
        }
        #expect(offset == Int64(Self.size) && server.transfers.count == places.count + 1)
    }

    @Test("A lost connection is resumed; a changed file is refused with its own exit code")
    func lostAndChanged() async throws {
        let folder = try TemporaryFolder()
        let file = URL(filePath: folder.path + "/film")
        try Self.content.write(to: file)
        let server = ResumableUploadServer()
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            let arguments = ["-v", "-T", "film", origin.url("/files").absoluteString, "--resumable", "state"]
            server.inject(.init(.received(3_000_000), .reset))
            let lost = try await Running.urlload(arguments, in: folder)
            #expect(lost.code == 0 && lost.text == "\(Self.size) bytes", "\(lost.errors)")
            #expect(
                lost.errors.contains("* upload interrupted: ")
                    && lost.errors.contains("* upload resumed at byte 3000000"))

            server.inject(.init(.received(1), .stall))
            let process = try Running(Running.urlloadPath, arguments, in: folder)
            try await origin.wait { $0.stalled == 1 }
            try await eventuallyFiles(folder.names) { $0.contains("state") }
            process.send(SIGKILL)
            _ = try await process.wait()
            origin.releaseStalls()
            var mode = stat()
            #expect(stat(folder.path + "/state", &mode) == 0 && mode.st_mode & 0o777 == 0o600)
            try Self.content.write(to: file)
            let changed = try await Running.urlload(arguments, in: folder)
            #expect(
                changed.code == 26 && changed.errors.contains("is not what it was when the upload began"),
                "\(changed.errors)")
            try Data("urlupload1.x.y".utf8).write(to: URL(filePath: folder.path + "/state"))
            let damaged = try await Running.urlload(arguments, in: folder)
            #expect(damaged.code == 2 && damaged.errors.contains("invalidUploadToken"), "\(damaged.errors)")
            #expect(server.transfers.count == 3)
        }
    }

    @Test("Uploads without --resumable work") func plainUploads() async throws {
        let folder = try TemporaryFolder()
        try Data("hello".utf8).write(to: URL(filePath: folder.path + "/a"))
        try await withHTTPTestServer { origin in
            // A URL that ends with a slash is completed with the file's name, as in curl.
            for path in ["/", "/a"] {
                origin.route(path) {
                    .ok("\($0.method) \(String(decoding: $0.body, as: UTF8.self)) \($0.headers[.contentType] ?? "-")")
                }
            }
            let url = origin.url().absoluteString
            for (arguments, input, text) in [
                (["-T", "a"], nil, "PUT hello -"),
                (["-T", "-", "-X", "POST"], "in", "POST in -"),
                (["-T", "a", "--resumable", "s"], nil, "PUT hello application/octet-stream"),
            ] as [([String], String?, String)] {
                let result = try await Running.urlload(arguments + [url], input: input, in: folder)
                #expect(result.text == text && result.code == 0, "\(result.text) \(result.errors)")
            }
            let missing = try await Running.urlload(["-T", "nothing", url], in: folder)
            #expect(missing.code == 26)
        }
        #expect(folder.names == ["a"])
    }
}

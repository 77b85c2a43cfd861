// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Files in parts on a disk that is full, and on one whose power was cut.
@Suite(.timeLimit(.minutes(4)))
struct ParallelDiskRows {
    // MARK: A full disk

    /// Mounts a file system of its own at a folder.
    private static func mountDisk(_ path: String, _ size: String, _ flags: UInt = 0) -> Bool {
        mount("tmpfs", path, "tmpfs", flags, "size=\(size)") == 0
    }

    private static let canMount: Bool = {
        guard let folder = try? TemporaryFolder(), mountDisk(folder.path, "1m") else { return false }
        return umount2(folder.path, Int32(MNT_DETACH)) == 0
    }()

    @Test(
        "a full disk ends a download in parts with an error, and its token continues once there is room",
        .enabled(if: ParallelDiskRows.canMount), arguments: [4, 16])
    func full(count: Int) async throws {
        let first = HTTPTestServer.Response.ok(.bytes(ParallelRows.content), headers: [.etag: "\"one\""])
        try await ParallelRows.with(count, { $0.connections.maximumPerHost = 16 }, first: { first }) { rig in
            #expect(Self.mountDisk(rig.folder.path, "1m"))
            defer { umount2(rig.folder.path, Int32(MNT_DETACH)) }
            let error = await failure(.cannotWriteFile, .system) { try await rig.task().resumed().value }
            let token = try #require(error?.resumeToken)
            #expect(!rig.folder.names.contains("file") && rig.folder.names.count == 1)
            let again = await failure(.cannotWriteFile) {
                try await rig.session.downloadTask(resuming: token, options: rig.options).resumed().value
            }
            #expect(Self.mountDisk(rig.folder.path, "8m", UInt(MS_REMOUNT)))
            let rest = try #require(again?.resumeToken)
            _ = try await rig.session.downloadTask(resuming: rest, options: rig.options).resumed().value
            try rig.expectComplete()
        }
    }

    @Test(
        "without a token nothing is left of a download in parts on a full disk", .enabled(if: ParallelDiskRows.canMount)
    )
    func nothingIsLeft() async throws {
        let first = HTTPTestServer.Response.ok(.bytes(ParallelRows.content), headers: [.etag: "\"one\""])
        try await ParallelRows.with(first: { first }) { rig in
            #expect(Self.mountDisk(rig.folder.path, "1m"))
            defer { umount2(rig.folder.path, Int32(MNT_DETACH)) }
            await expectFailure(.cannotWriteFile) { try await rig.task().resumed().value }
            try await rig.expectNothing()
        }
    }

    // MARK: The power is cut

    private static let content = Array(ParallelRows.content.prefix(400_000))
    private static let page = 4096

    /// A download whose writes are recorded: what the last synchronisation has left on the disk, and the tokens that
    /// were kept since the beginning, each on the disk when it was made.
    private struct Recording {
        let folder: TemporaryFolder
        let name: String
        var tokens: [Data] = []
        /// The file as the last synchronisation has left it.
        var synchronized: [UInt8] = []

        var current: [UInt8] { get throws { try folder.bytes(name) } }
    }

    private static func record(_ random: inout SeededGenerator, _ folder: TemporaryFolder) async throws -> Recording {
        let length = Int64(content.count)
        let file = try FileWriter.create(in: folder.path, prefix: ResumeToken.prefix)
        file.keep()
        let options = ParallelRanges(4, minimumPartSize: 64 << 10)
        let parts = ParallelDownload(
            file, length: length, held: ByteRanges(), marks: [], .text("\"one\""), options, .system)
        var recording = Recording(folder: folder, name: try #require(folder.names.first))
        var now: Int64 = 0
        parts.state.withLock { state in
            _ = state.plan.first(at: 0, now: 0)
            for _ in 0..<3 {
                guard let part = state.plan.next(now: 0) else { return }
                _ = state.plan.confirm(part.id, reach: part.range.upperBound, now: 0)
            }
        }
        for _ in 0..<Int.random(in: 4...40, using: &random) {
            let open = parts.state.withLock { $0.plan.parts.filter { $0.missing > 0 } }
            guard let part = open.randomElement(using: &random) else { break }
            let count = Int.random(in: 1...30_000, using: &random)
            let place = parts.state.withLock { $0.plan.claim(part.id, count) }
            try file.write(Array(content[Int(place.lowerBound)..<Int(place.upperBound)]), at: place.lowerBound)
            parts.state.withLock { $0.plan.wrote(part.id, upTo: place.upperBound, now: 0) }
            let isSynchronized = Int.random(in: 0..<5, using: &random) == 0
            if isSynchronized { now += 6_000_000_000 }
            let written = parts.state.withLock { $0.plan.written }
            let before = parts.countOnDisk
            try parts.ranges.wrote(written.ranges, now: now)
            // The first bytes begin the time that is measured.
            if isSynchronized, before < written.total, !recording.tokens.isEmpty {
                try await eventually(parts.countOnDisk) { $0 == written.total }
                recording.synchronized = try recording.current
            }
            if Bool.random(using: &random) || recording.tokens.isEmpty {
                var token = ResumeToken.Record(
                    url: "http://h.example/file", fields: [], validator: "\"one\"", offset: 0, length: length,
                    path: file.path, bytes: nil, tail: "", isEarly: true)
                _ = try parts.describe(&token)
                token.boot = SystemBoot.identity
                recording.tokens.append(ResumeToken(token, nil).data)
            }
        }
        return recording
    }

    @Test(
        "after a loss of power no byte counts that is not on the disk, in whatever order pages were written",
        arguments: UInt64(1)...60)
    func replay(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let folder = try TemporaryFolder()
        let recording = try await Self.record(&random, folder)
        let current = try recording.current
        for data in recording.tokens {
            // Each page is on the disk as it was synchronised, or as it was last.
            var disk = current
            for start in stride(from: 0, to: current.count, by: Self.page) where Bool.random(using: &random) {
                for place in start..<min(start + Self.page, current.count) {
                    disk[place] = place < recording.synchronized.count ? recording.synchronized[place] : 0
                }
            }
            try Self.overwrite(folder.url(recording.name), disk)
            let token = try PowerCutRows.afterReboot(data)
            let (file, held) = try token.open(in: [folder.path])
            file.unclaim()
            file.keep()
            for range in held.ranges {
                let isRight = try file.bytes(range.count, at: range.lowerBound)
                    .elementsEqual(Self.content[Int(range.lowerBound)..<Int(range.upperBound)])
                #expect(isRight, "\(range)")
            }
            #expect(held.total == token.record.countOnDisk)
        }
        unlink(folder.url(recording.name).path())
    }

    /// Replaces the bytes of a file, and keeps the file.
    private static func overwrite(_ url: URL, _ bytes: [UInt8]) throws {
        let descriptor = open(url.path(), O_WRONLY)
        defer { close(descriptor) }
        #expect(pwrite(descriptor, bytes, bytes.count, 0) == bytes.count)
    }
}

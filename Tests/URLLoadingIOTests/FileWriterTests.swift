// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingTestSupport

@testable import URLLoadingIO

/// Growing files: the bytes that are on the disk, and their permissions.
@Suite(.timeLimit(.minutes(4)))
struct FileWriterTests {
    private static let second: Int64 = 1_000_000_000

    @Test("A file is synchronised after every 64 MiB, and after 5 seconds")
    func plan() {
        var plan = SyncPlan()
        func wrote(_ end: Int64, _ seconds: Int64) -> Bool { plan.wrote(upTo: end, now: 1 + seconds * Self.second) }
        let first = [wrote(1, 100), wrote(2, 104), wrote(SyncPlan.bytes - 1, 104), wrote(SyncPlan.bytes, 104)]
        #expect(first == [false, false, false, true])
        // Only one synchronisation at a time.
        let during = [wrote(3 * SyncPlan.bytes, 104), wrote(3 * SyncPlan.bytes, 200)]
        #expect(during == [false, false])
        plan.synchronized(isDone: true)
        let after = [wrote(3 * SyncPlan.bytes, 105)]
        #expect(after == [true])
        plan.synchronized(isDone: true)
        let later = [
            wrote(3 * SyncPlan.bytes + 1, 109), wrote(3 * SyncPlan.bytes + 2, 110), wrote(3 * SyncPlan.bytes + 3, 200),
        ]
        #expect(later == [false, true, false])
        plan.synchronized(isDone: true)
        // Without new bytes there is nothing to synchronise.
        let idle = wrote(3 * SyncPlan.bytes + 2, 300)
        #expect(!idle)
    }

    @Test("After a failed synchronisation a file is not synchronised again")
    func failedPlan() {
        var plan = SyncPlan()
        let first = plan.wrote(upTo: SyncPlan.bytes, now: 1)
        plan.synchronized(isDone: false)
        let second = plan.wrote(upTo: 9 * SyncPlan.bytes, now: 100 * Self.second)
        #expect(first && !second)
    }

    @Test("After a cut, new bytes are counted from the cut, and durable bytes are not synchronised again")
    func cutPlan() {
        var plan = SyncPlan()
        plan.skip(to: 2 * SyncPlan.bytes)
        let known = [plan.wrote(upTo: 2 * SyncPlan.bytes + 1, now: 1), plan.wrote(upTo: 3 * SyncPlan.bytes, now: 1)]
        plan.synchronized(isDone: true)
        plan.cut(to: 0)
        let anew = [plan.wrote(upTo: 1, now: 1), plan.wrote(upTo: SyncPlan.bytes, now: 1)]
        #expect(known == [false, true] && anew == [false, true])
    }

    /// The mark for this number of bytes, 5 seconds after they were written.
    private func mark(_ file: FileWriter, _ bytes: [UInt8], at seconds: Int64) async throws -> DiskMark {
        let before = file.mark
        try file.write(bytes, at: 0)
        file.wrote(upTo: Int64(bytes.count), now: 1 + seconds * Self.second)
        // The disk's thread synchronises the file, and no load waits for it.
        let mark = try await eventually(file.mark) { $0 != nil && $0 != before }
        return try #require(mark)
    }

    @Test("A mark holds its offset and a digest of the bytes before it, and is dropped when these are cut")
    func marks() async throws {
        let place = try TemporaryFolder()
        let file = try FileWriter.create(in: place.path, prefix: "x")
        file.wrote(upTo: 0, now: 1)
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        let first = try await mark(file, bytes, at: 5)
        #expect(first == DiskMark(offset: 100_000, tail: Digest.hex(bytes.suffix(64 * 1024))))
        try file.truncate(to: 100_000)
        #expect(file.mark == first)
        try file.truncate(to: 99_999)
        #expect(file.mark == nil)
        let (again, size) = try FileWriter.reopen(file.path)
        again.resume(from: first)
        #expect(size == 99_999 && again.mark == first)
        again.unkeep()
    }

    @Test("A synchronisation may outlast its writer, whose file is removed at once")
    func outlasts() throws {
        let place = try TemporaryFolder()
        for _ in 0..<8 {
            let file = try FileWriter.create(in: place.path, prefix: "x")
            try file.write([1, 2, 3], at: 0)
            file.wrote(upTo: 0, now: 1)
            file.wrote(upTo: 3, now: 1 + 5 * Self.second)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == [])
    }

    @Test("Reading the umask does not change it")
    func mask() throws {
        let place = try TemporaryFolder()
        close(open("\(place.path)/probe", O_CREAT | O_WRONLY, 0o666))
        #expect(FileWriter.permissionsOfNewFiles == UInt16(place.mode("probe")))
        chmod("\(place.path)/probe", 0o4751)
        #expect(FileWriter.permissions(at: "\(place.path)/probe") == 0o751)
        symlink("probe", "\(place.path)/link")
        #expect(
            FileWriter.permissions(at: "\(place.path)/link") == nil
                && FileWriter.permissions(at: "\(place.path)/none") == nil)
    }

    @Test("The system has a boot identifier")
    func boot() { #expect(SystemBoot.identity.utf8.count == 36 && !SystemBoot.identity.contains("\n")) }
}

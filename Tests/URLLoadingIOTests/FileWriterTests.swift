// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingCSystem
import URLLoadingTestSupport

@testable import URLLoadingIO

/// Growing files: the bytes that are on the disk, and their permissions.
@Suite(.timeLimit(.minutes(4)))
struct FileWriterTests {
    private static let second: Int64 = 1_000_000_000

    @Test("A folder of a file system that synchronises none is no failure")
    func folders() {
        #expect(csys_directory_sync("/proc") == 0)
        #expect(csys_directory_sync("/tmp") == 0)
        #expect(csys_directory_sync("/proc/nowhere") == -ENOENT)
    }

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

    @Test("A move whose answer a file server has lost, and that is repeated, has succeeded", arguments: [true, false])
    func repeatedMove(_ replacing: Bool) throws {
        var template = Array("/tmp/urlmove-XXXXXX".utf8CString)
        let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func move(_ prepare: (FileWriter, _ place: String) -> Int32) throws -> FileWriter {
            let file = try FileWriter.create(in: folder, prefix: ".part-")
            #expect(prepare(file, folder + "/film") == 0)
            try file.move(from: file.path, to: folder + "/film", replacing: replacing, synchronizes: true)
            return file
        }
        // The first call has succeeded: of a rename the old name is gone, of a link the new one exists.
        for first in [rename, replacing ? rename : link] {
            let file = try move { first($0.path, $1) }
            #expect(access(file.path, F_OK) != 0)
            // Removes no other file.
            file.remove(at: folder + "/film")
            #expect(access(folder + "/film", F_OK) != 0)
        }
        // The file is elsewhere.
        #expect(throws: IOFailure.self) { try move { file, _ in rename(file.path, folder + "/other") } }
        #expect(throws: IOFailure.self) {
            try move { file, place in
                close(creat(place, 0o600))
                return replacing ? unlink(file.path) : 0
            }
        }
    }

    @Test(
        "A move that must replace no file replaces none, without the kernel's call for it, too",
        arguments: [false, true])
    func moveToUnused(_ plainly: Bool) throws {
        let folder = try TemporaryFolder()
        let (old, new) = (folder.path + "/old", folder.path + "/new")
        try Data("film".utf8).write(to: URL(filePath: old))
        #expect(csys_file_rename_unless_exists(old, new, plainly) == 0)
        #expect(folder.names == ["new"])
        try Data("other".utf8).write(to: URL(filePath: old))
        #expect(csys_file_rename_unless_exists(old, new, plainly) == -EEXIST)
        #expect(csys_file_rename_unless_exists(new, new, plainly) == -EEXIST)
        // The name that was taken is free again.
        #expect(csys_file_rename_unless_exists(folder.path + "/none", folder.path + "/free", plainly) == -ENOENT)
        #expect(folder.names == ["new", "old"])
        let content = try [folder.bytes("new"), folder.bytes("old")]
        #expect(content == [Array("film".utf8), Array("other".utf8)])
    }

    @Test("A file that is moved to its own name with a demand that it be new stays")
    func movedToItself() throws {
        var template = Array("/tmp/urlmove-XXXXXX".utf8CString)
        let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = try FileWriter.create(in: folder, prefix: ".part-")
        let spelled = "\(folder)/./\(file.path.split(separator: "/").last ?? "")"
        try? file.move(from: file.path, to: spelled, replacing: false, synchronizes: false)
        #expect(file.isInPlace)
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

/// What a killed process leaves, and what must stay.
@Suite(.timeLimit(.minutes(4)))
struct LeftoverTests {
    private static let prefix = ".urlloading-"

    private func leave(_ name: String, in folder: TemporaryFolder, mode: mode_t) throws {
        let path = folder.path + "/" + name
        try Data("part".utf8).write(to: URL(fileURLWithPath: path))
        try #require(chmod(path, mode) == 0)
    }

    @Test func `A file with the mark that no process has locked is removed; all others stay`() throws {
        let folder = try TemporaryFolder()
        let marked = Self.prefix + "abcdefghijklmnopqrstuv01"
        try leave(marked, in: folder, mode: 0o1600)
        let others: [(String, mode_t)] = [
            (Self.prefix + "bcdefghijklmnopqrstuvw01", 0o600), (Self.prefix + "Film", 0o1600),
            (Self.prefix + "agent-0123456789", 0o1600), ("film.mp4", 0o1600),
        ]
        for (name, mode) in others { try leave(name, in: folder, mode: mode) }
        symlink(others[0].0, folder.path + "/" + Self.prefix + "cdefghijklmnopqrstuvwx01")
        #expect(Leftovers.sweep(folder.path, prefix: Self.prefix) == [marked])
        #expect(folder.names.count == others.count + 1)
        #expect(Leftovers.sweep(folder.path + "/none", prefix: Self.prefix).isEmpty)
    }

    @Test func `The file of a running download has the mark and stays, claimed or not`() throws {
        let folder = try TemporaryFolder()
        let file = try FileWriter.createPartial(in: folder.path, prefix: Self.prefix)
        #expect(mode(file.path) == 0o1600 && Leftovers.sweep(folder.path, prefix: Self.prefix).isEmpty)
        file.unclaim()
        #expect(Leftovers.sweep(folder.path, prefix: Self.prefix).isEmpty && file.claim() && !file.claim())
        file.discard()
        #expect(folder.names.isEmpty)
    }

    @Test func `A file that is kept has no mark, and another holder may claim it`() throws {
        let folder = try TemporaryFolder()
        let file = try FileWriter.createPartial(in: folder.path, prefix: Self.prefix)
        file.keep()
        #expect(mode(file.path) == 0o600)
        let (other, _) = try FileWriter.reopen(file.path)
        #expect(!other.claim())
        file.unclaim()
        #expect(other.claim() && Leftovers.sweep(folder.path, prefix: Self.prefix).isEmpty)
        // A token may name it: no later use gives it the mark again.
        other.unkeep()
        #expect(mode(file.path) == 0o600)
        other.discard()
    }

    /// As NFS and SMB demand of the holder of an exclusive lock.
    @Test func `A file that is adopted to be claimed is open for writing, if it may be`() throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.path + "/film"
        try leave("film", in: folder, mode: 0o600)
        let file = try FileWriter.adopt(path, toClaim: true)
        try file.write([1], at: 0)
        #expect(file.claim())
        file.unclaim()
        #expect(throws: IOFailure.self) { try FileWriter.adopt(path).write([1], at: 0) }
        let second = try FileWriter.adopt(path, in: folder.path, prefix: Self.prefix)
        try second.write([2], at: 0)
        #expect(second.claim() && !file.claim())
        second.unclaim()
        // One that may not be written is opened all the same.
        #expect(chmod(path, 0o400) == 0)
        let unwritable = try FileWriter.adopt(path, toClaim: true)
        #expect(unwritable.claim())
    }

    @Test func `A file that is moved has no mark, whatever permissions it gets`() throws {
        let folder = try TemporaryFolder()
        for (name, permissions) in [("a", FileWriter.Permissions.unchanged), ("b", .usual), ("c", .exactly(0o640))] {
            let file = try FileWriter.createPartial(in: folder.path, prefix: Self.prefix)
            let place = folder.path + "/" + name
            try file.move(from: file.path, to: place, replacing: false, permissions: permissions, synchronizes: false)
            #expect(mode(place) & 0o7000 == 0 && (name != "a" || mode(place) == 0o600))
            let again = try FileWriter.createPartial(in: folder.path, prefix: Self.prefix)
            #expect(throws: IOFailure.self) {
                try again.move(
                    from: again.path, to: place, replacing: false, permissions: permissions, synchronizes: false)
            }
            #expect(mode(again.path) == 0o1600)
        }
        #expect(folder.names == ["a", "b", "c"])
    }

    @Test func `A file that is delivered has no mark, because its owner may move it`() throws {
        let folder = try TemporaryFolder()
        let file = try FileWriter.createPartial(in: folder.path, prefix: Self.prefix)
        file.deliver()
        file.unclaim()
        #expect(mode(file.path) == 0o600 && Leftovers.sweep(folder.path, prefix: Self.prefix).isEmpty)
        file.discard()
        #expect(folder.names.isEmpty)
    }

    @Test func `A folder is read once an hour`() throws {
        let folder = try TemporaryFolder()
        Leftovers.sweepSometimes(folder.path, prefix: Self.prefix, now: 1)
        try leave(Self.prefix + "abcdefghijklmnopqrstuv01", in: folder, mode: 0o1600)
        Leftovers.sweepSometimes(folder.path, prefix: Self.prefix, now: 3_599_000_000_000)
        #expect(folder.names.count == 1)
        Leftovers.sweepSometimes(folder.path, prefix: Self.prefix, now: 3_600_000_000_001)
        #expect(folder.names.isEmpty)
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTesting

@testable import URLLoading

/// A store damaged by the disk or by another program: served responses are correct, and intact entries remain.
@Suite struct DamagedStoreTests {
    private static let entries: [(String, Int)] = (0..<60).map {
        ("d\($0)", [10, 3_000, 16_000, 70_000, 200_000][$0 % 5])
    }

    private func open(_ folder: URL) -> DiskStorage {
        let path = folder.plainPath
        return DiskStorage(
            path.hasSuffix("/") ? String(path.dropLast()) : path, capacity: 64 << 20, maximumEntry: 16 << 20)
    }

    /// A store as a process leaves it that is killed: while it lives, its changes are in the log.
    private func withFilled(_ folder: URL, flushes: Bool = false, _ use: () throws -> Void) rethrows {
        let storage = open(folder)
        for (name, size) in Self.entries { storage.store(name, size) }
        if flushes { storage.flush() } else { storage.settle() }
        try use()
        withExtendedLifetime(storage) {}
    }

    /// Right or absent; returns how many are there.
    private func check(_ folder: URL, _ what: String) -> Int {
        let storage = open(folder)
        var count = 0
        for (name, size) in Self.entries {
            guard let bytes = storage.bytes(name) else { continue }
            #expect(bytes == storedBytes(name, size), "\(what): \(name)")
            count += 1
        }
        // The storage continues to work.
        #expect(storage.store("new", 100) && storage.isRight("new", 100))
        storage.flush()
        // Damage that is found while it is written may cost it, once.
        if storage.bytes("new") == nil {
            #expect(storage.store("new", 100), "\(what)")
            storage.flush()
        }
        #expect(storage.isRight("new", 100), "\(what)")
        return count
    }

    private func copy(_ folder: URL, _ use: (URL) throws -> Void) throws {
        let copy = folder.deletingLastPathComponent().appending(
            path: "copy-\(UInt64.random(in: 0 ... .max))", directoryHint: .isDirectory)
        try FileManager.default.copyItem(at: folder, to: copy)
        defer { try? FileManager.default.removeItem(at: copy) }
        try use(copy)
    }

    @Test(arguments: [false, true])
    func `flipped bits are noticed`(flushes: Bool) throws {
        try withStoreFolder { folder in
            try withFilled(folder, flushes: flushes) {
                let files = filesUnder(folder).filter { $0.value > 0 && !$0.key.hasSuffix("-shm") }
                let bodies = files.keys.filter { $0.hasPrefix("bodies/") }.sorted()
                var random = SeededGenerator(seed: flushes ? 1 : 2)
                for round in 0..<24 {
                    let name =
                        round < 12 ? "cache.sqlite" : round < 18 ? "cache.sqlite-wal" : bodies[round % bodies.count]
                    guard let size = files[name] else { continue }
                    let place = Int.random(in: 0..<size, using: &random)
                    try copy(folder) { copy in
                        let file = copy.appending(path: name)
                        var bytes = [UInt8](try Data(contentsOf: file))
                        let offset = round == 0 ? 0 : round == 12 ? 24 : place
                        bytes[offset] ^= 1 << UInt8(round % 8)
                        try Data(bytes).write(to: file)
                        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.plainPath)
                        let count = check(copy, "\(name) at \(offset)")
                        if name.hasPrefix("bodies/") {
                            #expect(count == Self.entries.count - 1, "\(name) at \(offset)")
                        }
                    }
                }
            }
        }
    }

    @Test func `cut off files are noticed`() throws {
        try withStoreFolder { folder in
            try withFilled(folder) {
                let files = filesUnder(folder).filter { $0.value > 0 && !$0.key.hasSuffix("-shm") }
                for (name, size) in files.filter({ !$0.key.hasPrefix("bodies/") || $0.value > 100_000 }).prefix(8) {
                    for kept in [0, 1, size / 3, size - 1] {
                        try copy(folder) { copy in
                            let file = copy.appending(path: name)
                            try Data(try Data(contentsOf: file).prefix(kept)).write(to: file)
                            try FileManager.default.setAttributes(
                                [.posixPermissions: 0o600], ofItemAtPath: file.plainPath)
                            let count = check(copy, "\(name) cut to \(kept)")
                            // A pack has the bodies of three entries of five.
                            let most = Self.entries.count - 1
                            let least = name.hasPrefix("bodies/99/") ? Self.entries.count * 2 / 5 : most
                            if name.hasPrefix("bodies/") { #expect((least...most).contains(count), "\(name) \(kept)") }
                        }
                    }
                }
            }
        }
    }

    @Test func `a damaged database is set aside, and its readable part is copied`() throws {
        try withStoreFolder { folder in
            withFilled(folder, flushes: true) {}
            let file = folder.appending(path: "cache.sqlite")
            var bytes = [UInt8](try Data(contentsOf: file))
            // A page in the middle is gone; the first says where all others are.
            for offset in (bytes.count / 2 & ~4095)..<(bytes.count / 2 & ~4095) + 4096 { bytes[offset] = 0xFF }
            try Data(bytes).write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.plainPath)
            let count = check(folder, "a page")
            // Where the pages of other entries are found depends on the one that is gone.
            #expect(count >= Self.entries.count / 4, "\(count)")
            // All of it is rubbish.
            try Data(repeating: 0x55, count: 10_000).write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.plainPath)
            _ = check(folder, "rubbish")
            #expect(filesUnder(folder)["cache.sqlite.damaged"] == 10_000)
            let storage = open(folder)
            #expect(storage.isRight("new", 100) && storage.problem == nil)
        }
    }

    @Test func `the log of an earlier damaged database is not taken for that of the next one`() throws {
        try withStoreFolder { folder in
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            for name in ["cache.sqlite", "cache.sqlite.damaged", "cache.sqlite.damaged-wal"] {
                _ = FileManager.default.createFile(
                    atPath: folder.appending(path: name).plainPath, contents: Data(repeating: 0x55, count: 5_000),
                    attributes: [.posixPermissions: 0o600])
            }
            let storage = open(folder)
            #expect(storage.store("new", 100))
            storage.flush()
            #expect(storage.isRight("new", 100) && storage.problem?.reason == .damaged)
            let files = filesUnder(folder)
            #expect(files["cache.sqlite.damaged"] == 5_000 && files["cache.sqlite.damaged-wal"] == nil)
        }
    }

    @Test func `a folder that is taken away is made again`() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            storage.store("a", 100_000)
            storage.flush()
            try FileManager.default.removeItem(at: folder)
            storage.store("b", 100_000)
            storage.store("c", 10)
            storage.flush()
            #expect(storage.bytes("a") == nil && storage.isRight("c", 10))
            #expect(open(folder).isRight("c", 10))
        }
    }

    @Test(
        "a database with missing or foreign tables or indexes is repaired",
        arguments: [
            ["DROP TABLE entry"], ["DROP TABLE state"], ["DELETE FROM state"],
            ["DROP INDEX entry_used"], ["DROP INDEX entry_hash"],
            ["DROP TABLE entry", "DROP TABLE state"],
            ["ALTER TABLE entry ADD COLUMN other TEXT NOT NULL DEFAULT ''"],
            ["DROP TABLE entry", "CREATE TABLE entry (word TEXT)"],
            ["DROP INDEX entry_file", "CREATE INDEX entry_file ON entry (size)"],
        ] as [[StaticString]], [false, true])
    func schema(_ changes: [StaticString], isOpen: Bool) throws {
        let change = changes.map { "\($0)" }.joined(separator: "; ")
        try withStoreFolder { folder in
            let before = open(folder)
            for (name, size) in Self.entries { before.store(name, size) }
            before.flush()
            try withExtendedLifetime(isOpen ? before : nil) {
                let database = try Database(path: folder.plainPath + "/cache.sqlite")
                for change in changes { try database.execute(change) }
            }
            if isOpen {
                // The first change finds the tables gone, and may be lost by that.
                before.store("lost", 100)
                before.flush()
                _ = before.isRight("lost", 100)
                before.flush()
                #expect(before.store("after", 100))
                before.flush()
                #expect(before.isRight("after", 100))
            }
            let count = check(folder, change)
            let keepsFiles = !change.contains("entry") || change.contains("INDEX") || change.contains("ADD")
            #expect(!keepsFiles || count > 0, "\(change)")
            let storage = open(folder)
            #expect(
                storage.isRight("new", 100) && storage.problem == nil,
                "\(change): \(storage.problem?.description ?? "")")
            // The sizes of stored responses are recounted, so that the capacity is kept.
            #expect(storage.usage > 0)
        }
    }
}

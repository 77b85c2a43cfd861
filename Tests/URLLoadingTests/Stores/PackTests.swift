// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

/// Small bodies share files, and are read in the thread that asks. What is known about a place in such a file is right
/// for ever, whatever other processes, the disk or a kill have done meanwhile.
@Suite(.timeLimit(.minutes(4))) struct PackTests {
    private func open(_ folder: URL, capacity: Int64 = 64 << 20) -> DiskStorage {
        let path = folder.plainPath
        return DiskStorage(
            path.hasSuffix("/") ? String(path.dropLast()) : path, capacity: capacity, maximumEntry: capacity / 4)
    }

    private func key(_ name: String) -> CacheKey { CacheKey(text: "https://a.test/" + name) }
    private func packs(_ folder: URL) -> [String] {
        filesUnder(folder).keys.filter { $0.hasPrefix("bodies/99/") }.sorted()
    }

    private static let names = (0..<40).map { "p\($0)" }
    private func size(_ name: String) -> Int { [700, 3_000, 16 << 10, 1][(Int(name.dropFirst()) ?? 0) % 4] }

    /// Stores all names, and opens their pack for reading. Returns the stored responses.
    @discardableResult
    private func fill(_ storage: DiskStorage) throws -> [String: StoredResponse] {
        for name in Self.names { storage.store(name, size(name)) }
        storage.flush()
        var stored: [String: StoredResponse] = [:]
        for name in Self.names {
            #expect(storage.isRight(name, size(name)))
            let response: StoredResponse = try #require(storage.variants(key(name)).first)
            stored[name] = response
        }
        return stored
    }

    /// The names whose bodies are there; each must be right.
    private func found(_ storage: some CacheStorage) -> Set<String> {
        Set(
            Self.names.filter { name in
                guard let bytes = storage.bytes(name) else { return false }
                let isRight = bytes == storedBytes(name, size(name))
                #expect(isRight, "\(name)")
                return isRight
            })
    }

    private func bytesNow(_ storage: DiskStorage, _ response: StoredResponse) -> [UInt8]? {
        storage.bodyNow(response)?.bytes.map { [UInt8]($0) }
    }

    private func copy(_ folder: URL, _ use: (URL) throws -> Void) throws {
        let copy = temporaryURL("pack", isDirectory: true)
        try FileManager.default.copyItem(at: folder, to: copy)
        defer { try? FileManager.default.removeItem(at: copy) }
        try use(copy)
    }

    private func overwrite(_ file: URL, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.plainPath)
    }

    @Test(
        "small bodies share one file, and are read in the calling thread from then on",
        .enabled(if: ReadingAtOnce.isSupported, ReadingAtOnce.isMissing))
    func shared() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            let stored = try fill(storage)
            #expect(packs(folder).count == 1 && filesUnder(folder).keys.filter { $0.hasPrefix("bodies/") }.count == 1)
            for (name, response) in stored {
                #expect(bytesNow(storage, response) == storedBytes(name, size(name)), "\(name)")
            }
            // A new process knows no places before it has read a head.
            let next = open(folder)
            let first = try #require(stored["p0"])
            #expect(next.bodyNow(first) == nil && found(next).count == Self.names.count)
            #expect(bytesNow(next, first) == storedBytes("p0", size("p0")))
        }
    }

    @Test("many packs: a full one is left, and the number of open ones is limited")
    func many() {
        withStoreFolder { folder in
            let storage = open(folder, capacity: 1 << 30)
            for number in 0..<1_000 {
                storage.store("m\(number)", 16_000)
                if number % 100 == 99 { storage.flush() }
            }
            #expect(packs(folder).count >= 3)
            for number in stride(from: 0, to: 1_000, by: 7) { #expect(storage.isRight("m\(number)", 16_000)) }
            storage.removeAll(since: nil)
            storage.flush()
            #expect(packs(folder).isEmpty)
        }
    }

    @Test(
        "an entry that another process removes or replaces between look-up and read is served as it was, or not at all")
    func replaced() throws {
        try withStoreFolder { folder in
            let a = open(folder)
            let b = open(folder)
            let stored = try fill(a)
            for name in Self.names.prefix(20) {
                _ = b.store(.of(name), body: storedBytes("other" + name, size(name)))
            }
            b.flush()
            for (name, response) in stored {
                let bytes = bytesNow(a, response)
                #expect(bytes == nil || bytes == storedBytes(name, size(name)), "\(name)")
            }
            b.removeAll(since: nil)
            b.flush()
            for (name, response) in stored {
                let bytes = bytesNow(a, response)
                #expect(bytes == nil || bytes == storedBytes(name, size(name)), "\(name)")
            }
            usleep(150_000)
            for name in Self.names { #expect(a.variants(key(name)).isEmpty) }
            // The pack of the other process was left to it, or is gone: both store on.
            a.store("p1", 3_000)
            b.store("p2", 700)
            a.flush()
            b.flush()
            #expect(open(folder).isRight("p1", 3_000) && open(folder).isRight("p2", 700))
        }
    }

    @Test("a removed response is not read, whether its bytes are there or not")
    func removed() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            let stored = try fill(storage)
            for (number, name) in Self.names.prefix(30).enumerated() {
                guard let response = stored[name] else { continue }
                if number % 2 == 0 { storage.remove(response) } else { storage.remove(key(name)) }
                #expect(storage.bodyNow(response) == nil && storage.body(response) == nil, "\(name)")
            }
            storage.flush()
            #expect(found(storage) == Set(Self.names.dropFirst(30)) && found(open(folder)).count == 10)
        }
    }

    @Test("removed bodies give their room back, and their neighbours stay")
    func holes() {
        withStoreFolder { folder in
            let storage = open(folder)
            for number in 0..<200 { storage.store("h\(number)", 9_000) }
            storage.flush()
            let bodies = folder.appending(path: "bodies")
            let before = roomUnder(bodies)
            for number in 0..<200 where number % 10 != 0 { storage.remove(key("h\(number)")) }
            storage.flush()
            #expect(before >= 200 * 9_000)
            // File systems without holes keep the room until all bodies of a pack are gone.
            #expect(roomUnder(bodies) < before / 3, "\(before) \(roomUnder(bodies))")
            for number in stride(from: 0, to: 200, by: 10) { #expect(storage.isRight("h\(number)", 9_000)) }
            for number in 0..<200 { storage.remove(key("h\(number)")) }
            storage.flush()
            #expect(packs(folder).isEmpty)
        }
    }

    @Test("a pack that was changed, cut, or taken away costs its own entries")
    func damaged() throws {
        try withStoreFolder { folder in
            try fill(open(folder))
            let name = try #require(packs(folder).first)
            let bytes = [UInt8](try Data(contentsOf: folder.appending(path: name)))
            for place in [0, bytes.count / 2, bytes.count - 1] {
                try copy(folder) { copy in
                    let storage = open(copy)
                    #expect(found(storage).count == Self.names.count)
                    var changed = bytes
                    changed[place] ^= 1
                    // In place: the storage has the file open.
                    let file = try #require(fopen(copy.appending(path: name).plainPath, "r+"))
                    _ = changed.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
                    fclose(file)
                    #expect(found(storage).count == Self.names.count - 1)
                    storage.flush()
                    #expect(found(open(copy)).count == Self.names.count - 1)
                }
            }
            for kept in [0, 1, bytes.count / 3, bytes.count - 1] {
                try copy(folder) { copy in
                    let storage = open(copy)
                    #expect(found(storage).count == Self.names.count)
                    #expect(truncate(copy.appending(path: name).plainPath, kept) == 0)
                    let count = found(storage).count
                    #expect(count < Self.names.count && (kept < bytes.count / 3 || count > 5), "\(kept): \(count)")
                    storage.flush()
                    #expect(found(open(copy)).count == count)
                }
            }
            try copy(folder) { copy in
                try FileManager.default.removeItem(at: copy.appending(path: name))
                let storage = open(copy)
                #expect(found(storage).isEmpty)
                storage.store("p1", 3_000)
                storage.flush()
                #expect(found(open(copy)) == ["p1"])
            }
        }
    }

    @Test("after a loss of power, bodies that did not reach the disk are gone, and all others are right")
    func powerCut() throws {
        try withStoreFolder { folder in
            try fill(open(folder))
            let name = try #require(packs(folder).first)
            let bytes = [UInt8](try Data(contentsOf: folder.appending(path: name)))
            for page in stride(from: 0, to: bytes.count, by: 4_096) where page % 12_288 == 0 {
                // A page that was not written is a hole, within the file and at its end.
                var zeroed = bytes
                for place in page..<min(bytes.count, page + 4_096) { zeroed[place] = 0 }
                for content in [zeroed, Array(bytes[..<page])] {
                    try copy(folder) { copy in
                        try overwrite(copy.appending(path: name), content)
                        let storage = open(copy)
                        let there = found(storage)
                        #expect(there.count < Self.names.count)
                        for number in 0..<10 { storage.store("p\(number)", size("p\(number)")) }
                        storage.flush()
                        #expect(found(open(copy)) == there.union(Self.names.prefix(10)))
                    }
                }
            }
        }
    }

    @Test("a kill between the bodies and their rows leaves bytes without a row, which are removed with their pack")
    func killed() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            for name in Self.names.prefix(20) { storage.store(name, size(name)) }
            storage.flush()
            try copy(folder) { before in
                for name in Self.names.dropFirst(20) { storage.store(name, size(name)) }
                storage.flush()
                let name = try #require(packs(folder).first)
                // The bytes of all, the rows of twenty.
                try overwrite(before.appending(path: name), [UInt8](Data(contentsOf: folder.appending(path: name))))
                let next = open(before)
                #expect(found(next) == Set(Self.names.prefix(20)))
                for name in Self.names { next.remove(key(name)) }
                next.flush()
                #expect(packs(before).isEmpty)
            }
            // A pack without any row.
            let left = folder.appending(path: "bodies/99/99left")
            _ = FileManager.default.createFile(
                atPath: left.plainPath, contents: Data([1]), attributes: [.posixPermissions: 0o600])
            let next = open(folder)
            #expect(found(next).count == Self.names.count)
            next.flush()
            next.flush()
            #expect(!FileManager.default.fileExists(atPath: left.plainPath) && found(next).count == Self.names.count)
        }
    }

    @Test("bytes that are not in memory are read on a thread that may block")
    func notResident() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            let stored = try fill(storage)
            let name = try #require(packs(folder).first)
            let file = Glibc.open(folder.appending(path: name).plainPath, O_RDONLY)
            defer { close(file) }
            #expect(fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0)
            for (name, response) in stored {
                // File systems in memory keep the bytes.
                let bytes = bytesNow(storage, response)
                #expect(bytes == nil || bytes == storedBytes(name, size(name)), "\(name)")
                #expect(storage.body(response)?.whole.map { [UInt8]($0) } == storedBytes(name, size(name)), "\(name)")
            }
        }
    }

    @Test("a store of the first format is given up, without a problem")
    func earlier() throws {
        try withStoreFolder { folder in
            try FileManager.default.createDirectory(
                at: folder.appending(path: "bodies/aa"), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            let path = folder.plainPath + "/"
            for name in ["", "bodies", "bodies/aa"] { #expect(chmod(path + name, 0o700) == 0) }
            for name in ["cache.sqlite", "bodies/aa/aaold"] {
                _ = FileManager.default.createFile(
                    atPath: path + name, contents: nil, attributes: [.posixPermissions: 0o600])
            }
            do {
                let database = try Database(path: path + "cache.sqlite")
                try database.execute("CREATE TABLE entry (seq INTEGER PRIMARY KEY, head BLOB NOT NULL)")
                try database.execute("INSERT INTO entry VALUES (1, x'00')")
                try database.execute("PRAGMA user_version = 1")
            }
            let storage = open(folder)
            #expect(storage.variants(key("p1")).isEmpty && storage.problem == nil)
            storage.store("p1", 3_000)
            storage.flush()
            storage.flush()
            #expect(open(folder).isRight("p1", 3_000) && storage.problem == nil && storage.usage > 0)
            #expect(filesUnder(folder)["bodies/aa/aaold"] == nil && filesUnder(folder)["cache.sqlite.damaged"] == nil)
        }
    }

    @Test(
        "that other processes have changed nothing is known without a wait; any change of theirs is noticed",
        .enabled(if: ReadingAtOnce.isSupported, ReadingAtOnce.isMissing))
    func changes() throws {
        try withStoreFolder { folder in
            let a = open(folder)
            let b = open(folder)
            a.store("p1", 3_000)
            a.flush()
            #expect(b.isRight("p1", 3_000) && b.variantsNow(key("none"))?.isEmpty == true)
            for round in 0..<3 {
                usleep(150_000)
                #expect(b.isUpToDate() && a.isUpToDate(), "\(round)")
            }
            let tiers = TieredStorage(MemoryStorage(capacity: 0), b)
            _ = tiers.variants(key("p1"))
            usleep(150_000)
            #expect(tiers.variantsNow(key("p1"))?.count == 1)
            for round in 0..<2 {
                if round == 0 { a.store("p2", 10) } else { a.removeAll(since: nil) }
                a.flush()
                usleep(150_000)
                #expect(!b.isUpToDate() && tiers.variantsNow(key("p1")) == nil)
                #expect(tiers.variants(key("p1")).count == 1 - round && b.isUpToDate())
            }
            // A process that was killed while it changed rows.
            try FileLock(folder.plainPath + "/cache.lock", timeout: 1_000).write(77)
            usleep(150_000)
            #expect(!b.isUpToDate() && b.variants(key("p1")).isEmpty)
            usleep(150_000)
            #expect(!b.isUpToDate())
            a.store("p3", 10)
            a.flush()
            _ = b.variants(key("p3"))
            usleep(150_000)
            #expect(b.isUpToDate() && b.isRight("p3", 10))
            // Another folder under the same name, first with the old one elsewhere.
            let old = folder.deletingLastPathComponent().appending(path: "old\(UInt64.random(in: 0 ... .max))")
            try FileManager.default.moveItem(at: folder, to: old)
            defer { try? FileManager.default.removeItem(at: old) }
            a.store("p4", 10)
            a.flush()
            b.state.withLock { ($0.lastCheck, $0.lastLongCheck) = (.min / 2, .min / 2) }
            _ = b.variants(key("p4"))
            b.settle()
            #expect(b.isRight("p4", 10))
            usleep(150_000)
            #expect(b.isUpToDate())
            a.removeAll(since: nil)
            a.flush()
            usleep(150_000)
            #expect(!b.isUpToDate() && b.variants(key("p4")).isEmpty)
            a.store("p3", 10)
            a.flush()
            try FileManager.default.removeItem(at: folder)
            usleep(150_000)
            #expect(!b.isUpToDate())
            _ = b.variants(key("p3"))
            b.settle()
            #expect(b.variants(key("p3")).isEmpty)
        }
    }
}

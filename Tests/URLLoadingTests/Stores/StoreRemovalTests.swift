// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

/// What was removed is not served again, by any cache of its folder, and is not left in it.
@Suite(.timeLimit(.minutes(4))) struct StoreRemovalTests {
    private func open(_ folder: URL, capacity: Int64 = 64 << 20) -> DiskStorage {
        let path = folder.plainPath
        return DiskStorage(
            path.hasSuffix("/") ? String(path.dropLast()) : path, capacity: capacity, maximumEntry: capacity / 4)
    }

    private func tiers(_ disk: DiskStorage) -> TieredStorage {
        TieredStorage(MemoryStorage(capacity: 1 << 20, maximumEntry: 64 << 10), disk)
    }

    private func key(_ name: String) -> CacheKey { CacheKey(text: "https://a.test/" + name) }

    private func path(_ folder: URL, _ name: String = "cache.sqlite") -> String {
        folder.appending(path: name).plainPath
    }

    // MARK: Removals that other processes hold up

    @Test("a flush ends when the removals before it are on the disk, even if another process has held them up")
    func heldUp() {
        withStoreFolder { folder in
            let storage = open(folder)
            storage.store("x", 1_000)
            storage.flush()
            let lock = Lock(try? FileLock(path(folder, "cache.lock"), timeout: 60_000))
            let holder = BlockingThreads(limit: 1)
            storage.removeAll(since: nil)
            holder.run {
                // More than a writer waits for the lock.
                usleep(UInt32(2 * DiskStorage.writeTimeout + 100) * 1_000)
                lock.withLock { $0 = nil }
            }
            storage.flush()
            #expect(open(folder).bytes("x") == nil && storage.problem == nil)
        }
    }

    @Test("a flush that ends before a removal is on the disk reports that, and the removal follows")
    func givesUp() {
        withStoreFolder { folder in
            let storage = open(folder)
            storage.store("x", 1_000)
            storage.flush()
            var lock = try? FileLock(path(folder, "cache.lock"), timeout: 60_000)
            storage.remove(key("x"))
            storage.settle(patience: 1)
            #expect(storage.problem?.reason == .other && storage.bytes("x") == nil && lock != nil)
            lock = nil
            storage.flush()
            #expect(open(folder).bytes("x") == nil)
        }
    }

    @Test("what follows many removals that another process holds up is given up, instead of waiting with them")
    func manyHeldUp() {
        withStoreFolder { folder in
            let storage = open(folder)
            for number in 0..<300 { storage.store("x\(number)", 10) }
            storage.flush()
            var lock = try? FileLock(path(folder, "cache.lock"), timeout: 60_000)
            for number in 0..<300 { storage.remove(key("x\(number)")) }
            storage.store("y", 40_000)
            let settled = ThreadSignal()
            let waiter = BlockingThreads(limit: 1)
            waiter.run {
                storage.settle()
                settled.raise()
            }
            #expect(settled.wait(nanoseconds: 60_000_000_000), "the lane does not pass the removals")
            #expect(storage.state.withLock { $0.pending.isEmpty } && lock != nil)
            lock = nil
            storage.flush()
            let next = open(folder)
            for number in 0..<300 { #expect(next.bytes("x\(number)") == nil) }
        }
    }

    @Test("a removal that failed is tried again once, and in the place of too many everything is removed")
    func tooMany() {
        var state = DiskState(capacity: 1_000, maximumEntry: 1_000)
        func fail(_ names: [String]) -> [DiskOperation] {
            let removals = names.map { DiskOperation.Removal.key(hash: key($0).hash64, key($0)) }
            for removal in removals { _ = state.hide(removal) }
            return state.giveUp(removals.map { .remove($0) }, hasRows: true)
        }
        func isHidden(_ name: String) -> Bool { state.isHidden(.of(name), key(name).hash64) }
        let once = fail(["x", "x"])
        #expect(once.count == 1 && isHidden("x") && !isHidden("y"))
        for operation in once { state.settle(operation) }
        #expect(!isHidden("x"))
        let all = fail((0...DiskState.mostRemovals).map { "x\($0)" })
        #expect(all.count == 1 && all.first?.removesAll == true && isHidden("x0") && isHidden("y"))
        for operation in all { state.settle(operation) }
        #expect(!isHidden("x0") && !isHidden("y"))
    }

    @Test("a removal that waited while another process set the database aside is carried out in the new one")
    func setAside() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            storage.store("x", 1_000)
            storage.flush()
            try FileManager.default.copyItem(atPath: path(folder), toPath: path(folder, "copy"))
            var lock = try? FileLock(path(folder, "cache.lock"), timeout: 60_000)
            storage.remove(key("x"))
            // The removal may be waiting for the lock by now; if it is not yet, the outcome is the same.
            usleep(50_000)
            for part in DiskPaths.parts { PrivateFolder.rename(path(folder) + part, path(folder) + ".damaged" + part) }
            PrivateFolder.rename(path(folder, "copy"), path(folder))
            #expect(lock != nil)
            lock = nil
            storage.flush()
            #expect(open(folder).bytes("x") == nil && storage.bytes("x") == nil)
            storage.store("y", 10)
            storage.flush()
            #expect(open(folder).isRight("y", 10))
        }
    }

    // MARK: Copies in memory

    @Test("a response whose removal failed is not served from the memory of another cache of the folder")
    func copies() throws {
        try withStoreFolder { folder in
            let disk = open(folder)
            let (one, other) = (tiers(disk), tiers(disk))
            one.store("x", 1_000)
            one.flush()
            #expect(other.isRight("x", 1_000))
            let holder = try Database(path: path(folder))
            try holder.execute("CREATE TRIGGER t BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'no'); END")
            one.remove(key("x"))
            one.flush()
            #expect(other.bytes("x") == nil && one.bytes("x") == nil && disk.problem != nil)
            // What is stored in memory from now on is served.
            #expect(other.store("x", 500) && other.isRight("x", 500))
        }
    }

    @Test("without a usable disk, what one cache of a folder removes is not served by another one")
    func copiesWithoutDisk() throws {
        try withStoreFolder { folder in
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "file")
            try Data([1]).write(to: file)
            let disk = open(file)
            let (one, other) = (tiers(disk), tiers(disk))
            other.store("x", 1_000)
            other.flush()
            #expect(disk.problem != nil && other.isRight("x", 1_000))
            one.remove(key("x"))
            #expect(other.bytes("x") == nil)
            #expect(other.store("x", 500) && other.isRight("x", 500))
        }
    }

    // MARK: What is left

    private static let marker = "secret-of-a-user"

    /// The names of the files in which the marker can be read.
    private func traces(_ folder: URL) -> [String] {
        filesUnder(folder).keys.filter { name in
            guard let data = try? Data(contentsOf: folder.appending(path: name)) else { return false }
            return data.firstRange(of: Data(Self.marker.utf8)) != nil
        }.sorted()
    }

    private func storeMarked(_ storage: DiskStorage) {
        for (number, size) in [10, 700, 5_000, 16_000, 100_000].enumerated() {
            let marker = Array(Self.marker.utf8)
            let body = Array(repeating: marker, count: size / marker.count + 1).flatMap(\.self)
            let response = StoredResponse.of("\(Self.marker)-\(number)", headers: ["X-Name": Self.marker])
            #expect(storage.store(response, body: body))
        }
    }

    @Test("after everything was removed, nothing of it can be read in any file, while another process has it open")
    func cleared() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            storeMarked(storage)
            storage.flush()
            _ = FileManager.default.createFile(
                atPath: path(folder, "cache.sqlite.damaged"), contents: Data(Self.marker.utf8),
                attributes: [.posixPermissions: 0o600])
            let pack = try #require(filesUnder(folder).keys.first { $0.hasPrefix("bodies/99/") })
            let descriptor = Glibc.open(path(folder, pack), O_RDONLY)
            defer { close(descriptor) }
            #expect(traces(folder).count >= 4 && descriptor >= 0)
            let other = open(folder)
            other.removeAll(since: nil)
            // Without a flush.
            other.settle()
            #expect(traces(folder) == [])
            var bytes = [UInt8](repeating: 1, count: 4_096)
            _ = pread(descriptor, &bytes, bytes.count, 0)
            #expect(bytes.allSatisfy { $0 == 0 })
            // The process that has claimed the pack stores on.
            storage.store("y", 700)
            storage.flush()
            #expect(storage.isRight("y", 700) && open(folder).isRight("y", 700))
        }
    }

    @Test("a database that was set aside is removed with everything, even if there is no other")
    func damagedIsRemoved() {
        withStoreFolder { folder in
            let storage = open(folder)
            storage.store("x", 10)
            storage.flush()
            for part in DiskPaths.parts { PrivateFolder.rename(path(folder) + part, path(folder) + ".damaged" + part) }
            let next = open(folder)
            next.removeAll(since: nil)
            next.flush()
            #expect(filesUnder(folder).keys.allSatisfy { !$0.contains("damaged") })
        }
    }

    // MARK: Columns without a checksum

    @Test("a file that a changed row names outside of the folder is not touched")
    func foreignFile() throws {
        try withStoreFolder { folder in
            let victim = folder.deletingLastPathComponent().appending(path: "victim\(UInt64.random(in: 0 ... .max))")
            _ = FileManager.default.createFile(
                atPath: victim.plainPath, contents: Data(count: 40_000), attributes: [.posixPermissions: 0o600])
            defer { try? FileManager.default.removeItem(at: victim) }
            let storage = open(folder)
            for name in ["x", "y", "z"] { storage.store(name, 70_000) }
            storage.flush()
            let database = try Database(path: path(folder))
            let update = try database.statement("UPDATE entry SET file = ?")
            try update.run(.text("../" + victim.lastPathComponent))
            storage.remove(key("x"))
            storage.set(capacity: 1_000, maximumEntry: 1_000)
            storage.flush()
            let attributes = try? FileManager.default.attributesOfItem(atPath: victim.plainPath)
            #expect(attributes?[.size] as? Int == 40_000)
            #expect(storage.usage == 0)
        }
    }

    @Test(
        "extreme sizes and places in rows cost entries only",
        arguments: [
            "UPDATE entry SET size = -9223372036854775808",
            "UPDATE entry SET size = 9223372036854775807",
            "UPDATE entry SET place = 9223372036854775807, length = 9223372036854775807",
            "UPDATE entry SET place = -1, length = -9223372036854775808",
            "UPDATE entry SET place = 9223372036854775807 WHERE seq % 2 = 0",
            "UPDATE state SET total = -9223372036854775808",
            "UPDATE state SET total = 9223372036854775807, changes = 9223372036854775807",
        ] as [StaticString], [false, true])
    func extremes(_ change: StaticString, isOpen: Bool) throws {
        try withStoreFolder { folder in
            var storage = open(folder, capacity: 4 << 20)
            for number in 0..<20 { storage.store("s\(number)", number % 2 == 0 ? 9_000 : 70_000) }
            storage.flush()
            try Database(path: path(folder)).execute(change)
            if !isOpen { storage = open(folder, capacity: 4 << 20) }
            for number in 0..<10 { storage.remove(key("s\(number)")) }
            for number in 0..<60 {
                storage.store("n\(number)", 70_000)
                if number % 20 == 0 { storage.flush() }
            }
            storage.flush()
            // Recounts, and evicts what is then too much.
            let next = open(folder, capacity: 4 << 20)
            _ = next.usage
            next.flush()
            #expect((0...4 << 20).contains(next.usage), "\(change): \(next.usage)")
            for number in 0..<10 { #expect(next.bytes("s\(number)") == nil) }
            #expect(next.store("last", 10))
            next.flush()
            #expect(next.isRight("last", 10) && next.problem == nil)
        }
    }
}

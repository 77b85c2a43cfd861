// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

/// The log of a database (WAL) is moved by the holder of the lock of its folder alone: SQLite up to 3.51.2 can lose
/// pages where a checkpoint meets another connection's commit.
@Suite(.timeLimit(.minutes(4))) struct StoreLogTests {
    private func open(_ folder: URL) -> DiskStorage {
        let path = folder.plainPath
        return DiskStorage(
            path.hasSuffix("/") ? String(path.dropLast()) : path, capacity: 256 << 20, maximumEntry: 16 << 20)
    }

    /// Stores a response whose row is large.
    private func store(_ name: String, _ storage: DiskStorage) {
        let headers: Headers = ["X-Large": String(repeating: "x", count: 16_000)]
        _ = storage.store(.of(name, headers: headers), body: storedBytes(name, 100))
    }

    private func log(_ folder: URL, of name: String = "cache.sqlite") -> Int { filesUnder(folder)[name + "-wal"] ?? 0 }

    @Test("while another process holds the lock, nothing is written and the log stays")
    func locked() {
        withStoreFolder { folder in
            let storage = open(folder)
            storage.store("a", 1000)
            storage.settle()
            let size = log(folder)
            #expect(size > 0)
            var lock: FileLock? = try? FileLock(folder.plainPath + "/cache.lock", timeout: 60_000)
            #expect(lock != nil)
            storage.flush()
            #expect(log(folder) == size)
            lock = nil
            storage.flush()
            #expect(log(folder) == 0 && storage.isRight("a", 1000))
        }
    }

    @Test("the log stays within bounds while nothing asks for a flush")
    func bounded() throws {
        withStoreFolder { folder in
            let storage = open(folder)
            var most = 0
            for round in 0..<40 {
                for number in 0..<60 { store("n\(round)-\(number)", storage) }
                storage.settle()
                most = max(most, log(folder))
            }
            #expect(most < 24 << 20, "\(most)")
            #expect(storage.isRight("n39-59", 100))
        }
    }

    @Test("a log that readers hold up is emptied when they are gone")
    func heldUp() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            storage.store("a", 1000)
            storage.flush()
            let reader = try Database(path: folder.plainPath + "/cache.sqlite")
            try reader.execute("BEGIN")
            let select = try reader.statement("SELECT count(*) FROM entry")
            try select.each { () throws(DatabaseFailure) in true }
            for number in 0..<600 { store("n\(number)", storage) }
            storage.settle()
            #expect(log(folder) > 4 << 20)
            try reader.execute("COMMIT")
            storage.flush()
            #expect(log(folder) == 0 && storage.isRight("n599", 100))
        }
    }

    @Test("a log that a reader holds up for ever has a limit: nothing is stored then, and removals are carried out")
    func limited() throws {
        try withStoreFolder { folder in
            let storage = open(folder)
            storage.store("a", 1000)
            storage.flush()
            let reader = try Database(path: folder.plainPath + "/cache.sqlite")
            try reader.execute("BEGIN")
            let select = try reader.statement("SELECT count(*) FROM entry")
            try select.each { () throws(DatabaseFailure) in true }
            for number in 0..<40 {
                for part in 0..<100 { store("n\(number)-\(part)", storage) }
                storage.settle()
                // Without a pause.
                storage.lane.withLock { $0.resumes = .min }
            }
            #expect(log(folder) < 40 << 20, "\(log(folder))")
            storage.remove(CacheKey(text: "https://a.test/n0-1"))
            storage.settle()
            #expect(open(folder).bytes("n0-1") == nil && storage.isRight("n0-2", 100))
            try reader.execute("COMMIT")
            storage.lane.withLock { $0.resumes = .min }
            store("after", storage)
            storage.flush()
            #expect(log(folder) == 0 && storage.isRight("after", 100))
        }
    }

    @Test("cookies are not written while another process holds the lock of their file")
    func cookies() async throws {
        let folder = temporaryURL("log", isDirectory: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.plainPath + "cookies.sqlite"
        let store = CookieStore(directory: folder)
        func set(_ name: String) throws {
            store.set(
                try #require(Cookie(name: name, value: "1", domain: "a.test", expires: .now.addingTimeInterval(1000))))
        }
        try set("a")
        await store.flush()
        let size = log(folder, of: "cookies.sqlite")
        var lock: FileLock? = try? FileLock(path + ".lock", timeout: 60_000)
        #expect(lock != nil && size > 0)
        try set("b")
        // Given up for now, and tried again later.
        await store.flush()
        #expect(log(folder, of: "cookies.sqlite") == size)
        lock = nil
        await store.flush()
        #expect(CookieStore(directory: folder).all.count == 2)
    }
}

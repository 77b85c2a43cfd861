// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

/// Two storages on one folder behave like two processes.
@Suite(.timeLimit(.minutes(4)))
struct SharedFolderTests {
    private func disk(_ folder: URL, capacity: Int64 = 64 << 20) -> DiskStorage {
        DiskStorage(folder.plainPath, capacity: capacity, maximumEntry: capacity / 4)
    }

    private func tiers(_ folder: URL, capacity: Int64 = 64 << 20) -> TieredStorage {
        TieredStorage(MemoryStorage(capacity: 1 << 20, maximumEntry: 64 << 10), disk(folder, capacity: capacity))
    }

    private func key(_ name: String) -> CacheKey { CacheKey(text: "https://a.test/" + name) }

    @Test("a response removed by another process is not found, even without any lookup in between")
    func removed() async throws {
        try await withTemporaryURL("shared") { folder in
            let a = tiers(folder)
            let b = tiers(folder)
            a.store("x", 1000)
            a.flush()
            #expect(a.variants(key("x")).count == 1)
            #expect(b.bytes("x") != nil)
            b.removeAll(since: nil)
            b.flush()
            try await Task.sleep(for: .milliseconds(150))
            let found = a.variantsNow(key("x"))
            #expect(found == nil || found?.isEmpty == true)
            #expect(a.bytes("x") == nil)
        }
    }

    @Test("an invalidation removes a response that another process has just stored (RFC 9111 §4.4)")
    func invalidated() async throws {
        try await withTemporaryURL("shared") { folder in
            let a = disk(folder)
            let b = disk(folder)
            a.store("other", 10)
            a.flush()
            _ = b.variants(key("other"))
            try await Task.sleep(for: .milliseconds(150))
            _ = a.variants(key("other"))
            b.store("x", 1000)
            b.flush()
            a.remove(key("x"))
            a.flush()
            try await Task.sleep(for: .milliseconds(150))
            #expect(a.bytes("x") == nil)
            #expect(disk(folder).bytes("x") == nil)
        }
    }

    @Test("used responses stay, also if used from memory, and a use is recorded once")
    func use() async throws {
        withTemporaryURL("shared") { folder in
            for storage in [tiers(folder, capacity: 2 << 20), disk(folder, capacity: 2 << 20)] as [any CacheStorage] {
                storage.store("hot", 1000)
                storage.flush()
                for number in 0..<200 {
                    storage.store("n\(number)", 12_000)
                    guard storage.bytes("hot") != nil else {
                        Issue.record("gone after \(number)")
                        break
                    }
                    if number % 10 == 0 { storage.flush() }
                }
                storage.removeAll(since: nil)
                storage.flush()
            }
            let many = disk(folder)
            for number in 0..<1200 { many.store("n\(number)", 100) }
            for _ in 0..<2 { for number in 0..<1200 { _ = many.bytes("n\(number)") } }
            many.flush()
            #expect(many.state.withLock { $0.touches.count } == 0)
        }
    }

    @Test("a response that is only in memory is found when it is complete, and its predecessor until then")
    func onlyInMemory() async throws {
        withTemporaryURL("shared") { folder in
            let storage = tiers(folder)
            storage.store("m", 10)
            storage.flush()
            var response = StoredResponse.of("m")
            response.isMemoryOnly = true
            let broken = storage.write(response, length: nil)
            broken?.abandon(isResumable: false)
            #expect(storage.bytes("m")?.count == 10)
            let writing = storage.write(response, length: nil)
            _ = storage.variants(key("m"))
            #expect(writing?.append(Chunk([1, 2, 3])) == true)
            writing?.finish()
            #expect(storage.variants(key("m")).count == 1 && storage.bytes("m") == [1, 2, 3])
        }
    }

    @Test("a database that lost much becomes smaller")
    func shrinks() async throws {
        withTemporaryURL("shared") { folder in
            let storage = disk(folder)
            let headers: Headers = ["X-Large": String(repeating: "x", count: 10_000)]
            for number in 0..<600 { _ = storage.store(.of("n\(number)", headers: headers), body: [1]) }
            storage.flush()
            let before = filesUnder(folder)["cache.sqlite"] ?? 0
            storage.removeAll(since: nil)
            storage.flush()
            let after = filesUnder(folder)["cache.sqlite"] ?? 0
            #expect(before > 4 << 20 && after < before / 2, "\(before) \(after)")
        }
    }

    @Test("a response that cannot be removed is not served")
    func unremovable() async throws {
        try withTemporaryURL("shared") { folder in
            let b = disk(folder)
            b.store("x", 1000)
            b.flush()
            let holder = try Database(path: folder.plainPath + "/cache.sqlite")
            try holder.execute("CREATE TRIGGER t BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'no'); END")
            let a = disk(folder)
            a.remove(key("x"))
            a.flush()
            #expect(a.bytes("x") == nil)
        }
    }

    @Test("while another process holds the database, removals are delayed and hidden, and nothing is stored")
    func busy() async throws {
        try await withTemporaryURL("shared") { folder in
            let a = disk(folder)
            a.store("x", 1000)
            a.flush()
            let holder = try Database(path: folder.plainPath + "/cache.sqlite")
            try holder.execute("BEGIN IMMEDIATE")
            a.remove(key("x"))
            a.store("y", 20_000)
            #expect(a.bytes("x") == nil)
            try await Task.sleep(for: .milliseconds(600))
            #expect(a.bytes("x") == nil)
            try holder.execute("COMMIT")
            a.flush()
            #expect(disk(folder).bytes("x") == nil)
            a.store("z", 10)
            a.flush()
            #expect(disk(folder).bytes("z") != nil)
        }
    }
}

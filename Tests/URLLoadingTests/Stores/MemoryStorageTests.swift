// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The content of memory, its lifetime, and its limit (checklist 90).
@Suite struct MemoryStorageTests {
    private func cost(_ name: String, _ count: Int) -> Int {
        StoredResponse.of(name, headers: ["X-Name": name]).headSize + count
    }

    @Test func `usage is counted exactly, and recently used responses stay`() {
        let one = cost("a", 1_000)
        let storage = MemoryStorage(capacity: 3 * one)
        for name in ["a", "b", "c"] { #expect(storage.store(name, 1_000)) }
        #expect(storage.usage == 3 * one && storage.count == 3)
        #expect(storage.isRight("a", 1_000))
        storage.store("d", 1_000)
        #expect(storage.usage == 3 * one)
        #expect(
            storage.bytes("b") == nil && storage.isRight("a", 1_000) && storage.isRight("c", 1_000)
                && storage.isRight("d", 1_000))
        storage.set(capacity: one, maximumEntry: .max)
        #expect(storage.usage == one && storage.isRight("d", 1_000))
        #expect(!storage.store("large", 3 * one))
        storage.removeAll(since: nil)
        #expect(storage.usage == 0 && storage.count == 0)
    }

    @Test func `a variant replaces its like and no other, the last first`() {
        let storage = MemoryStorage(capacity: 1 << 20)
        let key = CacheKey(text: "https://a.test/v")
        func put(_ language: String?, _ text: String) {
            _ = storage.store(.of("v", varying: ["accept-language": language]), body: Array(text.utf8))
        }
        put("de", "eins")
        put("en", "one")
        put(nil, "none")
        put("de", "zwei")
        let texts = storage.variants(key).map {
            String(decoding: storage.body($0)?.whole.map { [UInt8]($0) } ?? [], as: UTF8.self)
        }
        #expect(texts == ["zwei", "none", "one"])
        storage.remove(key)
        #expect(storage.variants(key).isEmpty && storage.usage == 0)
    }

    @Test func `pieces are found when they are whole, and never after a removal`() throws {
        let storage = MemoryStorage(capacity: 1 << 20)
        let key = CacheKey(text: "https://a.test/w")
        let writing = try #require(storage.write(.of("w"), length: nil))
        #expect(writing.append(Chunk(storedBytes("w", 700))) && writing.append(Chunk([1, 2, 3])))
        #expect(storage.variants(key).isEmpty)
        writing.finish()
        #expect(storage.bytes("w") == storedBytes("w", 700) + [1, 2, 3])
        for remove in [{ storage.remove(key) }, { storage.removeAll(since: nil) }, { storage.removeAll(since: 1_000) }]
        {
            let late = try #require(storage.write(.of("w"), length: 3))
            #expect(late.append(Chunk([1, 2, 3])))
            remove()
            late.finish()
            #expect(storage.variants(key).isEmpty)
        }
        let dropped = storage.write(.of("w"), length: 3)
        _ = dropped?.append(Chunk([1]))
        dropped?.abandon(isResumable: false)
        #expect(storage.variants(key).isEmpty)
    }

    @Test func `a beginning is completed, and drives out nothing whole`() throws {
        let storage = MemoryStorage(capacity: 1 << 20)
        let key = CacheKey(text: "https://a.test/p")
        let broken = try #require(storage.write(.of("p"), length: 6))
        _ = broken.append(Chunk([1, 2]))
        broken.abandon(isResumable: true)
        let beginning = try #require(storage.variants(key).first)
        #expect(beginning.extent == .beginning(2, of: 6))
        let rest = try #require(storage.append(to: beginning))
        _ = rest.append(Chunk([3, 4, 5, 6]))
        rest.finish()
        let whole = try #require(storage.variants(key).first)
        #expect(
            whole.extent == .whole(6) && storage.variants(key).count == 1 && storage.bytes("p") == [1, 2, 3, 4, 5, 6])
        #expect(storage.body(beginning) == nil)
        let again = try #require(storage.write(.of("p"), length: 6))
        _ = again.append(Chunk([9]))
        again.abandon(isResumable: true)
        #expect(storage.bytes("p") == [1, 2, 3, 4, 5, 6])
    }

    @Test func `a body too large is given up while it comes`() throws {
        let storage = MemoryStorage(capacity: 1 << 20, maximumEntry: 1_000)
        #expect(storage.write(.of("x"), length: 1_001) == nil)
        let writing = try #require(storage.write(.of("x"), length: nil))
        #expect(
            writing.append(Chunk([UInt8](repeating: 1, count: 1_000))) && !writing.append(Chunk([1]))
                && !writing.append(Chunk([1])))
        writing.finish()
        #expect(storage.usage == 0)
    }

    @Test func `a head changes and its body stays`() throws {
        let storage = MemoryStorage(capacity: 1 << 20)
        storage.store("u", 10)
        var stored = try #require(storage.variants(CacheKey(text: "https://a.test/u")).first)
        stored.headers["ETag"] = "\"2\""
        storage.update(stored)
        #expect(storage.variants(stored.key).first?.headers["ETag"] == "\"2\"" && storage.isRight("u", 10))
        #expect(storage.usage == stored.headSize + 10)
    }

    @Test func `a hit returns the stored bytes without a copy`() throws {
        let storage = MemoryStorage(capacity: 1 << 20)
        storage.store("h", 5_000)
        let stored = try #require(storage.variants(CacheKey(text: "https://a.test/h")).first)
        let first = try #require(storage.body(stored)?.bytes)
        let second = try #require(storage.body(stored)?.bytes)
        #expect(first.storage === second.storage && first.storage.capacity == 5_000)
    }

    @Test func `nothing goes astray over many changes`() {
        let storage = MemoryStorage(capacity: 40_000)
        var random = SeededGenerator(seed: 1)
        for round in 0..<2_000 {
            let name = "n\(Int.random(in: 0..<60, using: &random))"
            switch round % 5 {
            case 0, 1, 2: storage.store(name, Int.random(in: 0..<3_000, using: &random))
            case 3: _ = storage.bytes(name)
            default: storage.remove(CacheKey(text: "https://a.test/" + name))
            }
            #expect(storage.usage <= 40_000)
        }
        storage.set(capacity: 0, maximumEntry: 0)
        #expect(storage.usage == 0 && storage.count == 0)
    }
}

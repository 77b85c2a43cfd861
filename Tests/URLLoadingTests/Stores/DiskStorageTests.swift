// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingWire

@testable import URLLoading

/// Responses on disk: found at once, found after a restart, limited in size, removable (checklist 2, 90).
@Suite struct DiskStorageTests {
    private func make(_ folder: URL, capacity: Int64 = 64 << 20) -> DiskStorage {
        DiskStorage(
            String(folder.plainPath.dropLast(folder.plainPath.hasSuffix("/") ? 1 : 0)), capacity: capacity,
            maximumEntry: capacity / 4)
    }

    private static let sizes = [0, 1, 1_000, 16 << 10, (16 << 10) + 1, 64 << 10, (64 << 10) + 1, 1_000_000]

    @Test func `a stored response is found at once, and after a restart`() {
        withStoreFolder { folder in
            let first = make(folder)
            #expect(first.variants(CacheKey(text: "https://a.test/none")).isEmpty)
            #expect(!FileManager.default.fileExists(atPath: folder.plainPath))
            for size in Self.sizes { #expect(first.store("s\(size)", size)) }
            for size in Self.sizes { #expect(first.isRight("s\(size)", size), "\(size) at once") }
            first.flush()
            for size in Self.sizes { #expect(first.isRight("s\(size)", size), "\(size) flushed") }
            let second = make(folder)
            for size in Self.sizes { #expect(second.isRight("s\(size)", size), "\(size) again") }
            #expect(second.problem == nil && second.usage == first.usage)
        }
    }

    @Test func `heads come back as they were`() throws {
        try withStoreFolder { folder in
            var response = StoredResponse.of(
                "h", headers: ["ETag": "\"1\"", "X-B": "\u{E9}", "x-b": "2"], varying: ["a": "1", "b": nil], at: 1.5)
            response.url = "https://a.test/h"
            response.isDecoded = true
            response.userInfo = [1, 2, 3]
            response.requestTime = 0.25
            let storage = make(folder)
            _ = storage.store(response, body: [7])
            storage.flush()
            let found = try #require(make(folder).variants(response.key).first)
            #expect(found.status == .ok && found.version == .http11 && found.url == response.url)
            #expect(found.headers.map(\.value) == ["\"1\"", "\u{E9}", "2"] && found.varying == response.varying)
            #expect(
                found.isDecoded && found.userInfo == [1, 2, 3] && found.requestTime == 0.25 && found.responseTime == 1.5
            )
            #expect(found.extent == .whole(1) && found.id != 0 && !found.isMemoryOnly)
        }
    }

    @Test func `pieces small and large become one body`() throws {
        try withStoreFolder { folder in
            let storage = make(folder)
            let all = storedBytes("pieces", 400_000)
            let writing = try #require(storage.write(.of("p"), length: nil))
            var offset = 0
            for size in [1, 20, 15_000, 5_000, 100, 70_000, 16_384, 3, 200_000] + [all.count] {
                let end = min(all.count, offset + size)
                if end > offset { #expect(writing.append(Chunk(Array(all[offset..<end])))) }
                offset = end
            }
            #expect(storage.variants(CacheKey(text: "https://a.test/p")).isEmpty)
            writing.finish()
            #expect(storage.bytes("p") == all)
            storage.flush()
            let stored = try #require(storage.variants(CacheKey(text: "https://a.test/p")).first)
            let body = try #require(storage.body(stored))
            for (offset, count) in [
                (0, 10), (65_535, 2), (65_536, 200_000), (399_990, 100), (131_072, 1), (400_000, 5),
            ] {
                let piece = try #require(body.read(at: Int64(offset), atMost: count))
                #expect(
                    [UInt8](piece) == Array(all[offset..<min(all.count, offset + piece.count)]) && piece.count <= count)
                #expect(piece.count > 0 || offset == all.count)
            }
            storage.remove(stored)
            storage.flush()
            #expect(storage.body(stored) == nil && body.whole.map { [UInt8]($0) } == all)
        }
    }

    @Test func `an incomplete response is completed`() throws {
        try withStoreFolder { folder in
            let storage = make(folder)
            for total in [10, 300_000] {
                let all = storedBytes("c\(total)", total)
                let key = CacheKey(text: "https://a.test/c\(total)")
                let broken = try #require(storage.write(.of("c\(total)"), length: Int64(total)))
                _ = broken.append(Chunk(Array(all[..<(total / 2)])))
                broken.abandon(isResumable: true)
                storage.flush()
                let beginning = try #require(storage.variants(key).first)
                #expect(beginning.extent == .beginning(Int64(total / 2), of: Int64(total)))
                let rest = try #require(storage.append(to: beginning))
                _ = rest.append(Chunk(Array(all[(total / 2)...])))
                rest.finish()
                #expect(storage.bytes("c\(total)") == all && storage.variants(key).count == 1)
                storage.flush()
                #expect(make(folder).bytes("c\(total)") == all)
            }
        }
    }

    @Test func `a removed response is not found, whatever else is running`() throws {
        try withStoreFolder { folder in
            let storage = make(folder)
            let key = CacheKey(text: "https://a.test/r")
            for (round, flushes) in [true, false, true, false, true, false].enumerated() {
                storage.store("r", 30_000)
                storage.store("other", 10, at: 10)
                if flushes { storage.flush() }
                let writing = try #require(storage.write(.of("r"), length: nil))
                _ = writing.append(Chunk([1]))
                switch round / 2 {
                case 0: storage.remove(key)
                case 1: storage.removeAll(since: 500)
                default: storage.removeAll(since: nil)
                }
                writing.finish()
                #expect(storage.variants(key).isEmpty, "round \(round)")
                #expect(storage.isRight("other", 10) == (round < 4))
                storage.flush()
                #expect(storage.variants(key).isEmpty && make(folder).variants(key).isEmpty)
            }
            storage.store("r", 100)
            #expect(storage.isRight("r", 100))
            storage.flush()
            #expect(storage.isRight("r", 100))
            storage.removeAll(since: nil)
            storage.flush()
            #expect(storage.usage == 0 && filesUnder(folder).keys.allSatisfy { !$0.contains("bodies/") })
        }
    }

    @Test func `a head changes and its body stays`() throws {
        try withStoreFolder { folder in
            let storage = make(folder)
            for (size, flushes) in [(10, false), (10, true), (100_000, false), (100_000, true)] {
                let name = "u\(size)\(flushes)"
                storage.store(name, size)
                if flushes { storage.flush() }
                var stored = try #require(storage.variants(CacheKey(text: "https://a.test/" + name)).first)
                stored.headers["ETag"] = "\"2\""
                stored.responseTime = 77
                storage.update(stored)
                #expect(storage.variants(stored.key).first?.headers["ETag"] == "\"2\"")
                storage.flush()
                #expect(storage.variants(stored.key).first?.responseTime == 77 && make(folder).isRight(name, size))
            }
        }
    }

    @Test func `the capacity is kept, and recently used responses stay`() {
        withStoreFolder { folder in
            let capacity: Int64 = 4 << 20
            let storage = make(folder, capacity: capacity)
            storage.store("favourite", 50_000)
            var written = 0
            var count = 0
            while written < 64 << 20 {
                let size = [300, 5_000, 40_000, 200_000][count % 4]
                storage.waitUntilReady()
                storage.store("n\(count)", size)
                written += size
                count += 1
                if count % 20 == 0 {
                    storage.flush()
                    #expect(storage.isRight("favourite", 50_000), "after \(count)")
                    #expect(storage.usage <= capacity)
                }
            }
            storage.flush()
            let onDisk = filesUnder(folder)
            let bodies = roomUnder(folder.appending(path: "bodies"))
            #expect(bodies <= Int(capacity) && onDisk.values.reduce(0, +) <= Int(capacity) + (6 << 20))
            #expect(storage.isRight("n\(count - 1)", 200_000) && storage.bytes("n0") == nil && storage.problem == nil)
            storage.set(capacity: 1 << 20, maximumEntry: 1 << 18)
            storage.flush()
            #expect(storage.usage <= 1 << 20)
            storage.set(capacity: 0, maximumEntry: 0)
            storage.flush()
            #expect(storage.usage == 0 && !storage.store("x", 1))
        }
    }

    @Test func `a look-up of nothing does not ask the disk`() {
        withStoreFolder { folder in
            let storage = make(folder)
            storage.store("a", 10)
            storage.flush()
            _ = storage.variants(CacheKey(text: "https://a.test/a"))
            storage.state.withLock { $0.lastCheck = Poller.coarseNow() }
            let none = storage.variantsNow(CacheKey(text: "https://a.test/b"))
            #expect(none?.isEmpty == true && storage.variantsNow(CacheKey(text: "https://a.test/a")) == nil)
            storage.remove(CacheKey(text: "https://a.test/a"))
            storage.flush()
            storage.state.withLock { $0.lastCheck = Poller.coarseNow() }
            #expect(storage.variantsNow(CacheKey(text: "https://a.test/a"))?.isEmpty == true)
        }
    }

    @Test func `files are private, and left-over files are removed`() throws {
        try withStoreFolder { folder in
            let storage = make(folder)
            storage.store("a", 100_000)
            storage.store("b", 10)
            storage.flush()
            let names = filesUnder(folder)
            let body = try #require(names.keys.first { $0.hasPrefix("bodies/") })
            for name in names.keys {
                let mode =
                    try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).plainPath)[
                        .posixPermissions] as? Int
                #expect(mode == 0o600, "\(name)")
            }
            for name in ["", "bodies", String(body.dropLast(27))] {
                let mode =
                    try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).plainPath)[
                        .posixPermissions] as? Int
                #expect(mode == 0o700, "\(name)")
            }
            // Another name, whatever the body's is.
            let left = folder.appending(path: body.dropLast(1) + (body.hasSuffix("x") ? "y" : "x")).plainPath
            _ = FileManager.default.createFile(
                atPath: left, contents: Data([1]), attributes: [.posixPermissions: 0o600])
            let again = make(folder)
            #expect(again.isRight("a", 100_000))
            again.flush()
            again.flush()
            #expect(!FileManager.default.fileExists(atPath: left) && again.isRight("a", 100_000))
        }
    }
}

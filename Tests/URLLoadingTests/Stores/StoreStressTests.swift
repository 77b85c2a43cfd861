// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport

@testable import URLLoading

/// Many at once on one store: nothing is mixed up, and nothing waits for ever.
@Suite struct StoreStressTests {
    @Test func `64 tasks store, look up, replace and remove`() async throws {
        let folder = temporaryURL("store", isDirectory: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let cache = ResponseCache(memoryCapacity: 200_000, diskCapacity: 2 << 20, directory: folder)
        let storage = cache.storage
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<64 {
                group.addTask {
                    for round in 0..<30 {
                        let name = "s\((task &* 7 &+ round) % 40)"
                        let size = [100, 9_000, 40_000][(task &+ round) % 3]
                        switch (task &+ round) % 6 {
                        case 0, 1: _ = storage.store(.of(name), body: storedBytes(name, size))
                        case 2:
                            let writing = storage.write(.of(name), length: nil)
                            _ = writing?.append(Chunk(storedBytes(name, size)))
                            if round % 2 == 0 { writing?.finish() } else { writing?.abandon(isResumable: true) }
                        case 3: storage.remove(CacheKey(text: "https://a.test/" + name))
                        case 4: _ = storage.variantsNow(CacheKey(text: "https://a.test/" + name))
                        default:
                            if let bytes = storage.bytes(name) {
                                #expect(bytes == storedBytes(name, bytes.count), "\(name)")
                            }
                        }
                    }
                }
            }
        }
        cache.flush()
        #expect(cache.problem == nil && cache.memoryUsage <= 200_000 && cache.diskUsage <= 2 << 20)
        storage.removeAll(since: nil)
        cache.flush()
        #expect(cache.memoryUsage == 0 && cache.diskUsage == 0)
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

/// A response that is being stored removes the ones it replaces at once, whether its own storing succeeds or not.
@Suite struct ReplacedResponseTests {
    private func storage(_ folder: URL) -> DiskStorage {
        DiskStorage(
            String(folder.plainPath.dropLast(folder.plainPath.hasSuffix("/") ? 1 : 0)), capacity: 64 << 20,
            maximumEntry: 16 << 20)
    }

    private static let key = CacheKey(text: "https://a.test/x")

    enum Removal: Sendable, CaseIterable { case since, one }

    @Test(
        "a removal that reaches a new response reaches the older one that it replaced", arguments: [10, 100_000],
        Removal.allCases)
    func removed(_ count: Int, _ removal: Removal) throws {
        try withStoreFolder { folder in
            let storage = storage(folder)
            storage.store("x", count, at: 1_000)
            storage.store("y", count, at: 1_000)
            storage.flush()
            for _ in 0..<20 {
                storage.store("x", count, at: 2_000)
                let found = try #require(storage.variants(Self.key).first)
                switch removal {
                case .since: storage.removeAll(since: 1_500)
                case .one: storage.remove(found)
                }
                #expect(storage.variants(Self.key).isEmpty && storage.body(found) == nil)
                storage.flush()
                #expect(storage.variants(Self.key).isEmpty && storage.isRight("y", count))
                storage.store("x", count, at: 1_000)
                storage.flush()
            }
            #expect(self.storage(folder).isRight("x", count))
        }
    }

    @Test("a response stored after such a removal stays")
    func storedBehind() {
        withStoreFolder { folder in
            let storage = storage(folder)
            storage.store("x", 10, at: 1_000)
            storage.flush()
            storage.store("x", 20, at: 2_000)
            storage.removeAll(since: 1_500)
            storage.store("x", 30, at: 1_200)
            #expect(storage.isRight("x", 30))
            storage.flush()
            #expect(storage.isRight("x", 30) && self.storage(folder).isRight("x", 30))
        }
    }

    enum Removing: Sendable, CaseIterable { case key, response, everything }

    @Test("rows change in the order in which calls at the same time took effect", arguments: Removing.allCases)
    func atTheSameTime(_ removing: Removing) throws {
        try withStoreFolder { folder in
            let storage = storage(folder)
            storage.store("y", 10)
            storage.flush()
            let threads = BlockingThreads(limit: 1)
            let arrived = Atomic<Int>(0)
            for round in 1...500 {
                storage.store("x", 10, at: 1_000)
                let older = try #require(storage.variants(Self.key).first)
                let hasStored = ThreadSignal()
                threads.run {
                    arrived.wait(until: 2 * round)
                    storage.store("x", 20, at: 2_000)
                    hasStored.raise()
                }
                arrived.wait(until: 2 * round)
                switch removing {
                case .key: storage.remove(Self.key)
                case .response: storage.remove(older)
                case .everything: storage.removeAll(since: nil)
                }
                while !hasStored.wait(nanoseconds: 1_000_000_000) {}
                let found = storage.variants(Self.key).map(\.storedLength)
                storage.settle()
                #expect(storage.variants(Self.key).map(\.storedLength) == found, "round \(round)")
            }
        }
    }

    @Test("another variant of the same URL stays")
    func variants() {
        withStoreFolder { folder in
            let storage = storage(folder)
            let german = StoredResponse.of("x", varying: ["accept-language": "de"], at: 1_000)
            _ = storage.store(german, body: [1])
            _ = storage.store(.of("x", varying: ["accept-language": "en"], at: 1_000), body: [2])
            storage.flush()
            _ = storage.store(.of("x", varying: ["accept-language": "en"], at: 2_000), body: [3])
            storage.removeAll(since: 1_500)
            #expect(storage.variants(Self.key).map(\.varying) == [german.varying])
            storage.flush()
            #expect(storage.variants(Self.key).map(\.varying) == [german.varying])
        }
    }

    @Test("the replacement of a removed response stays", arguments: [10, 100_000], Removal.allCases)
    func replacing(_ count: Int, _ removal: Removal) throws {
        try withStoreFolder { folder in
            let storage = storage(folder)
            storage.store("x", count, at: 1_000)
            storage.flush()
            for _ in 0..<20 {
                storage.store("x", 10, at: 2_000)
                let replaced = try #require(storage.variants(Self.key).first)
                storage.store("x", count, at: 1_200)
                switch removal {
                case .since: storage.removeAll(since: 1_500)
                case .one: storage.remove(replaced)
                }
                #expect(storage.isRight("x", count))
                storage.flush()
                #expect(storage.isRight("x", count) && storage.variants(Self.key).count == 1)
            }
        }
    }

    @Test("a head that was renewed after a moment is removed with the responses since that moment")
    func renewed() throws {
        try withStoreFolder { folder in
            let storage = storage(folder)
            storage.store("x", 10, at: 1_000)
            storage.flush()
            var head = try #require(storage.variants(Self.key).first)
            head.responseTime = 2_000
            storage.update(head)
            storage.removeAll(since: 1_500)
            #expect(storage.variants(Self.key).isEmpty)
            storage.flush()
            #expect(storage.variants(Self.key).isEmpty)
        }
    }
}

extension Atomic<Int> {
    /// Adds one, and waits until all others have added one, so that they continue at the same time.
    fileprivate func wait(until count: Int) {
        add(1, ordering: .acquiringAndReleasing)
        while load(ordering: .acquiring) < count {}
    }
}

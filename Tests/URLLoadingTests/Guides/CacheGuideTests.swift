// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/cache.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct CacheGuideTests {
    private func origin(_ use: nonisolated(nonsending) (HTTPTestServer, URL) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("text", headers: [.cacheControl: "max-age=60", .etag: "\"1\""]) }
            try await use(origin, origin.url("/page"))
        }
    }

    @Test("the example of a cache in memory") func memory() async throws {
        try await origin { origin, url in
            var configuration = Configuration.ephemeral
            configuration.caching.store = ResponseCache(memoryCapacity: 16 << 20)
            let session = Session(configuration)
            _ = try await session.data(from: url)
            let (_, response) = try await session.data(from: url)
            #expect(response.http?.headers[.age] != nil && origin.counts.requests == 1)
            session.invalidateAndCancel()
        }
    }

    /// The guide's is of another program: made, and not used.
    private static var crawler: Configuration {
        var configuration = Configuration.default
        configuration.storageDirectory = URL(filePath: "/var/lib/crawler")
        return configuration
    }

    @Test("the example of a cache in a directory") func directory() async throws {
        #expect(Self.crawler.storageDirectory?.path() == "/var/lib/crawler")
        let folder = temporaryURL("kept")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await origin { origin, url in
            for _ in 0..<2 {
                var configuration = Self.crawler
                configuration.storageDirectory = folder
                // Programs that name the same one share it.
                try await withSession(configuration) { session in
                    _ = try await session.data(from: url)
                }
            }
            #expect(origin.counts.requests == 1)
        }
    }

    @Test("the example of cache policies") func policies() async throws {
        try await origin { origin, url in
            let session = Session(.ephemeral)
            try await offline(session, url)
            session.invalidateAndCancel()
        }
    }

    private func offline(_ session: Session, _ url: URL) async throws {
        var request = Request(url: url)
        request.cachePolicy = .cacheElseLoad
        let (data, _) = try await session.data(for: request)
        request.cachePolicy = .onlyIfCached
        guard let (again, _) = try? await session.data(for: request) else { return print("offline, and never seen") }
        #expect(again == data)
    }

    @Test("the example of a storing decision") func decision() async throws {
        try await origin { origin, url in
            var decisions = Decisions()
            decisions.cache = Decision { entry in
                guard entry.data.count < 1_000_000 else { return CacheDecision.skip }
                var entry: CachedResponse = entry
                entry.userInfo = Data("first seen today".utf8)
                entry.storagePolicy = .allowedInMemoryOnly
                return CacheDecision.instead(entry)
            }
            var configuration = Configuration.ephemeral
            let cache = ResponseCache(memoryCapacity: 16 << 20)
            configuration.caching.store = cache
            try await withSession(configuration, decisions: decisions) { session in
                _ = try await session.data(from: url)
                let entry = cache.cachedResponse(for: Request(url: url))
                #expect(entry?.userInfo == Data("first seen today".utf8))
                cache.remove(for: Request(url: url))
                #expect(cache.cachedResponse(for: Request(url: url)) == nil)
            }
        }
    }

    @Test("a body above a twentieth of the capacity is stored only if the size of an entry permits it")
    func largeBodies() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in
                .ok(.bytes([UInt8](repeating: 0x61, count: 300_000)), headers: [.cacheControl: "max-age=600"])
            }
            for isLarge in [false, true] {
                let before = origin.counts.requests
                var configuration = Configuration.ephemeral
                if isLarge {
                    let cache = ResponseCache()
                    cache.maximumEntrySize = 1 << 20
                    configuration.caching.store = cache
                }
                try await withSession(configuration) { session in
                    for _ in 0..<2 {
                        let (data, _) = try await session.data(from: origin.url("/map"))
                        #expect(data.count == 300_000)
                    }
                }
                #expect(origin.counts.requests - before == (isLarge ? 1 : 2))
            }
        }
    }

    @Test("the example of a shared cache") func sharing() async throws {
        try await origin { origin, url in
            var configuration = Configuration.ephemeral
            configuration.caching.coalescesIdenticalRequests = true
            let session = Session(configuration)
            let first = Task { try await session.data(from: url) }
            let second = Task { try await session.data(from: url) }
            _ = try await first.value
            _ = try await second.value
            #expect(origin.counts.requests == 1)
            session.invalidateAndCancel()
        }
    }

    @Test("the example of a response's source") func source() async throws {
        try await origin { _, url in
            let session = Session(.ephemeral)
            _ = try await session.data(from: url)
            let types = await sources(session.dataTask(Request(url: url)))
            #expect(types == [.cache])
            session.invalidateAndCancel()
        }
    }

    private func sources(_ task: LoadTask<Data>) async -> [LoadMetrics.Transaction.FetchType] {
        let events = task.events
        task.resume()
        var types: [LoadMetrics.Transaction.FetchType] = []
        for await event in events {
            if case .metrics(let metrics) = event { types = metrics.transactions.map(\.fetchType) }
        }
        return types
    }
}

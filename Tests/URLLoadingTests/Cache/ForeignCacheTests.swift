// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

/// A cache implemented outside of the library.
@Suite(.timeLimit(.minutes(4)))
struct ForeignCacheTests {
    /// Is called, and never answers.
    final class Silent: ForeignCache, Sendable {
        let asked = AsyncStream.makeStream(of: Void.self)
        var largestEntry: Int { 0 }
        func cachedResponse(for request: Request) async -> CachedResponse? {
            asked.continuation.yield()
            try? await Task.sleep(for: .seconds(600))
            return nil
        }
        func store(_ entry: CachedResponse, for request: Request) {}
        func remove(for request: Request) {}
    }

    @Test("a cache that never answers is waited for up to the idle timeout; then nothing is stored")
    func silent() async throws {
        let clock = ManualClock()
        let cache = Silent()
        var configuration = Configuration.ephemeral
        configuration.foreignCache = cache
        configuration.caching.usesMemoryStore = false
        configuration.timeouts.idle = .seconds(30)
        configuration.use(clock)
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            let session = Session(configuration)
            async let loaded = session.data(from: origin.url())
            for await _ in cache.asked.stream { break }
            // The waiter's timer is set.
            try await clock.advance(by: .seconds(1)) { clock.elapsed >= .seconds(31) }
            let (data, _) = try await loaded
            #expect(data == Data("in".utf8))
            session.invalidateAndCancel()
        }
    }
}

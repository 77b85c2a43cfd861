import FoundationEssentials
import Testing
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Checklist 2, 3, 90, 100: what outlives a session, and what must not.
@Suite(.timeLimit(.minutes(1)))
struct CacheDiskRows {
    @Test("checklist 2, 90, 100: a new cache on the same folder answers, large and small; memory-only is gone")
    func restart() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "cache-disk-rows-\(UInt64.random(in: 0 ... .max))")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withTestOrigin { origin in
            let clock = WallClock(), large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            origin.route("/large") { _ in .ok(.bytes(large), headers: [.cacheControl: "max-age=60", .etag: "\"1\""]) }
            origin.route("/small") { _ in .ok("small", headers: [.cacheControl: "max-age=60"]) }
            origin.route("/nothing") { _ in .ok("nothing") }
            func session() -> Session {
                var configuration = Configuration.default
                configuration.cache = ResponseCache(directory: folder)
                configuration.wallClock = { clock.now }
                return Session(configuration)
            }
            let first = session()
            for path in ["/large", "/small", "/nothing"] { _ = try await first.data(from: origin.url(path)) }
            first.configuration.cache?.flush()
            first.invalidateAndCancel()
            await first.invalidated()

            let second = session()
            clock.advance(10)
            let (data, response) = try await second.data(from: origin.url("/large"))
            #expect([UInt8](data) == large && response.http?.headers[.age] == "10" && response.expectedLength == 300_000)
            let (small, _) = try await second.data(from: origin.url("/small"))
            #expect(small == Data("small".utf8) && origin.counts.requests == 3)
            let (part, _) = try await second.data(for: Request(url: origin.url("/large"), headers: [.range: "bytes=200000-200004"]))
            #expect([UInt8](part) == Array(large[200_000..<200_005]))
            var request = Request(url: origin.url("/nothing"))
            request.cachePolicy = .storedOnly
            await expectFailure(.notInCache) { try await second.data(for: request) }
            #expect(origin.counts.requests == 3)
            second.invalidateAndCancel()
            await second.invalidated()
        }
    }
}

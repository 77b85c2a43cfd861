// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Seconds since 1970, set by the test.
final class WallClock: Sendable {
    private let seconds: Held<Double>
    init(_ seconds: Double = 1_800_000_000) { self.seconds = Held(seconds) }
    var now: Double { seconds.withLock { $0 } }
    func advance(_ count: Double) { seconds.withLock { $0 += count } }
    /// The date as a server with the same clock writes it.
    func date(_ offset: Double = 0) -> String { HTTPDate(secondsSince1970: Int64(now + offset)).description }
}

/// An origin, a session with a private cache, and the time.
struct CacheRig: Sendable {
    let origin: HTTPTestServer
    let session: Session
    let clock: WallClock
    let cache: ResponseCache
    let plans: Held<[String]>

    /// Body, Age or `-`, and the source of the response.
    func get(_ path: String = "/", _ change: (inout Request) -> Void = { _ in }) async throws -> String {
        var request = Request(url: origin.url(path))
        change(&request)
        let (data, response) = try await session.data(for: request)
        return
            "\(response.http?.status.code ?? 0) \(String(decoding: data, as: UTF8.self)) "
            + "\(response.http?.headers[.age] ?? "-")"
    }

    /// Answers `/` with `a1`, `a2` and so on; the answer to one of the requests waits for the returned latch.
    func routeNumbered(holding held: Int, cacheControl: String = "max-age=60") -> Latch {
        let (latch, counter) = (Latch(), Counter())
        origin.route("/") { _ in
            let text = counter.next("a")
            if text == "a\(held)" { await latch.wait() }
            return .ok(text, headers: [.cacheControl: cacheControl])
        }
        return latch
    }

    var requests: Int { origin.counts.requests }
    var lastPlan: String { plans.withLock { $0.last ?? "" } }

    func expect(
        _ path: String = "/", _ text: String, requests: Int, _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ change: (inout Request) -> Void = { _ in }
    ) async throws {
        let answer = try await get(path, change)
        #expect(answer == text, "\(comment.map { "\($0)" } ?? "") \(lastPlan)", sourceLocation: sourceLocation)
        #expect(
            self.requests == requests, "\(comment.map { "\($0)" } ?? "") \(lastPlan)", sourceLocation: sourceLocation)
    }
}

nonisolated(nonsending) func withCacheRig(
    decisions: Decisions? = nil, _ change: (inout Configuration) -> Void = { _ in },
    _ use: nonisolated(nonsending) (CacheRig) async throws -> Void
) async throws {
    try await withHTTPTestServer { origin in
        let clock = WallClock()
        let cache = ResponseCache()
        let plans = Held<[String]>([])
        var configuration = Configuration.ephemeral
        configuration.caching.store = cache
        configuration.wallClock = { clock.now }
        configuration.cacheTap = { plan in plans.withLock { $0.append(plan) } }
        change(&configuration)
        try await withSession(configuration, decisions: decisions) { session in
            try await use(CacheRig(origin: origin, session: session, clock: clock, cache: cache, plans: plans))
        }
    }
}

/// A value that tests and handlers share.
final class Held<Value: Sendable>: Sendable {
    private let value: Lock<Value>
    init(_ value: Value) { self.value = Lock(value) }
    func withLock<R: Sendable>(_ use: (inout Value) -> R) -> R { value.withLock { use(&$0) } }
}

/// Counts its responses: `a1`, `a2`, …
final class Counter: Sendable {
    private let count = Held(0)
    func next(_ name: String = "") -> String {
        let number = count.withLock { count -> Int in
            count += 1
            return count
        }
        return "\(name)\(number)"
    }
    var value: Int { count.withLock { $0 } }
}

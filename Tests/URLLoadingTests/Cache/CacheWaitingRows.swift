// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Checklist 100: waiting for another load's fetch takes no longer than waiting for a server.
@Suite(.timeLimit(.minutes(4)))
struct CacheWaitingRows {
    @Test("a suspended leader hands over; resumed, it completes as well")
    func suspended() async throws {
        try await withCacheRig({ $0.caching.coalescesIdenticalRequests = true }) { rig in
            let gate = rig.routeNumbered(holding: 1)
            let leader = rig.session.downloadTask(Request(url: rig.origin.url("/"))).resumed()
            try await rig.origin.wait { $0.requests == 1 }
            let follower = Task { try await rig.get() }
            try await rig.session.eventuallyLoads { $0 >= 2 }
            leader.suspend()
            let first = try await follower.value
            #expect(first.hasPrefix("200 a2") && rig.requests == 2)
            gate.open()
            // The leader is still suspended, and blocks no new load.
            let second = try await rig.get()
            #expect(second.hasPrefix("200 a2") && rig.requests == 2)
            leader.cancel()
        }
    }

    @Test("the idle timeout of a follower applies: the follower then loads by itself")
    func slow() async throws {
        let clock = ManualClock()
        try await withCacheRig({
            $0.caching.coalescesIdenticalRequests = true
            $0.use(clock)
        }) { rig in
            let gate = rig.routeNumbered(holding: 1)
            let leader = Task { try await rig.get { $0.idleTimeout = .seconds(3600) } }
            try await rig.origin.wait { $0.requests == 1 }
            let follower = Task { try await rig.get { $0.idleTimeout = .seconds(10) } }
            try await clock.untilSleeping()
            clock.advance(by: .seconds(11))
            let answer = try await follower.value
            #expect(answer.hasPrefix("200 a2") && rig.requests == 2)
            gate.open()
            let other = try await leader.value
            #expect(other.hasPrefix("200 a1"))
        }
    }

    @Test("a body ended by closing the connection may be truncated, and is not stored (RFC 9112 8)")
    func cut() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in .ok(.untilClose(["abc"]), headers: [.cacheControl: "max-age=60"]) }
            try await rig.expect("/", "200 abc -", requests: 1)
            try await rig.expect("/", "200 abc -", requests: 2)
        }
    }

    @Test("public lookups return only responses without an owner")
    func lookUps() async throws {
        let store = CookieStore()
        try await withCacheRig({ $0.cookies.storage = .store(store) }) { rig in
            rig.origin.route("/") { .ok($0.headers[.cookie] ?? "anonymous", headers: [.cacheControl: "max-age=60"]) }
            let host = try #require(rig.origin.url().host())
            store.set(try #require(Cookie(name: "sid", value: "1", domain: host)))
            let request = Request(url: rig.origin.url("/"))
            try await rig.expect("/", "200 sid=1 -", requests: 1)
            try await rig.expect("/", "200 sid=1 0", requests: 1)
            #expect(rig.cache.cachedResponse(for: request) == nil)
            // In the classic API the owner keeps access.
            #expect(rig.cache.cachedResponse(for: request, ofOthers: true)?.data == Data("sid=1".utf8))
            var configuration = Configuration.ephemeral
            (configuration.caching.store, configuration.wallClock) = (rig.cache, { [clock = rig.clock] in clock.now })
            try await withSession(configuration) { try await $0.expect(rig.origin.url(), "anonymous") }
            for ofOthers in [true, false] {
                #expect(rig.cache.cachedResponse(for: request, ofOthers: ofOthers)?.data == Data("anonymous".utf8))
            }
        }
    }

    @Test("a server whose clock runs ahead does not hide its newer variants")
    func ahead() async throws {
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in
                let isFirst = counter.value == 0
                return .ok(
                    counter.next("a"),
                    headers: [
                        .cacheControl: "max-age=60", .date: rig.clock.date(isFirst ? 86400 : 0),
                        .vary: isFirst ? "X-A" : "X-B",
                    ])
            }
            try await rig.expect("/", "200 a1 -", requests: 1) { $0.headers["X-A"] = "1" }
            rig.clock.advance(1)
            // Another variant that matches the same request.
            try await rig.expect("/", "200 a2 -", requests: 2) { $0.headers["X-A"] = "2" }
            let answer = try await rig.get { $0.headers["X-A"] = "1" }
            #expect(answer.hasPrefix("200 a2") && rig.requests == 2)
        }
    }
}

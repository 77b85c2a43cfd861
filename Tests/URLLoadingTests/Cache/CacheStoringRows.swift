// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Storing a body: the decision, interruptions, and shared fetches.
@Suite(.timeLimit(.minutes(4)))
struct CacheStoringRows {
    private func stored(_ rig: CacheRig, _ path: String = "/") -> StoredResponse? {
        CacheKey(Request(url: rig.origin.url(path))).flatMap { rig.cache.storage.variants($0).first }
    }

    // MARK: The decision

    @Test(
        "the decision receives whole data responses; it alters, restricts to memory, or refuses (checklist 98-101)"
    )
    func decision() async throws {
        let asked = Held<[CachedResponse]>([])
        var decisions = Decisions()
        decisions.cache = Decision { entry in
            asked.withLock { $0.append(entry) }
            switch entry.response.url.path() {
            case "/skip": return .skip
            case "/instead":
                var other = entry
                other.data = Data("altered".utf8)
                other.userInfo = Data("mine".utf8)
                other.storagePolicy = .allowedInMemoryOnly
                return .instead(other)
            default: return .store
            }
        }
        try await withCacheRig(decisions: decisions) { rig in
            rig.origin.route("/*") { _ in
                .ok(.chunks(["ab", .pause(.milliseconds(1)), "cd"]), headers: [.cacheControl: "max-age=60"])
            }
            try await rig.expect("/skip", "200 abcd -", requests: 1)
            try await rig.expect("/skip", "200 abcd -", requests: 2)
            try await rig.expect("/instead", "200 abcd -", requests: 3)
            try await rig.expect("/instead", "200 altered 0", requests: 3)
            let entry = rig.cache.cachedResponse(for: Request(url: rig.origin.url("/instead")))
            #expect(entry?.userInfo == Data("mine".utf8) && entry?.storagePolicy == .allowedInMemoryOnly)
            try await rig.expect("/store", "200 abcd -", requests: 4)
            try await rig.expect("/store", "200 abcd 0", requests: 4)
            #expect(
                asked.withLock { $0.map { String(decoding: $0.data, as: UTF8.self) } } == [
                    "abcd", "abcd", "abcd", "abcd",
                ])
            // Downloads follow the policy without a decision (checklist 98).
            try await withTemporaryFile { file in
                try await rig.session.download(Request(url: rig.origin.url("/file")), to: file)
            }
            #expect(asked.withLock { $0.count } == 4)
            #expect(stored(rig, "/file") != nil)
        }
    }

    @Test("willCache comes after the body and before the end, for uploads as well (checklist 45, 98)")
    func order() async throws {
        let order = Held<[String]>([])
        var decisions = Decisions()
        decisions.cache = Decision { _ in
            order.withLock { $0.append("asked") }
            return .store
        }
        try await withCacheRig(decisions: decisions) { rig in
            rig.origin.route("/") { _ in .ok("abcd", headers: [.cacheControl: "max-age=60"]) }
            let task = rig.session.dataTask(Request(url: rig.origin.url("/")))
            let events = task.events
            task.resume()
            for await event in events {
                order.withLock { $0.append("\(event)".split(separator: " ").first.map(String.init) ?? "") }
            }
            // Events are delivered asynchronously.
            let heard = order.withLock { $0 }
            #expect(heard.filter { $0 != "asked" } == ["responded", "received", "stored", "metrics", "completed"])
            let asked = try #require(heard.firstIndex(of: "asked"))
            let stored = try #require(heard.firstIndex(of: "stored"))
            #expect(asked < stored)
        }
    }

    @Test("a decision that throws ends the load; it is not called for a body too large for the cache")
    func decisionFails() async throws {
        struct No: Error {}
        var decisions = Decisions()
        decisions.cache = Decision { _ in throw No() }
        try await withCacheRig(decisions: decisions, { $0.caching.store?.maximumEntrySize = 10 }) { rig in
            rig.origin.route("/small") { _ in .ok("abcd", headers: [.cacheControl: "max-age=60"]) }
            rig.origin.route("/large") { _ in .ok("0123456789ab", headers: [.cacheControl: "max-age=60"]) }
            await expectFailure(.decisionFailed) { try await rig.get("/small") }
            try await rig.expect("/large", "200 0123456789ab -", requests: 2)
            #expect(rig.cache.memoryUsage == 0)
        }
    }

    // MARK: Whole, begun, nothing

    @Test("an aborted read stores nothing, or an incomplete response that a range request completes")
    func beginnings() async throws {
        try await withCacheRig { rig in
            let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            let tag = Held("\"1\"")
            rig.origin.route("/*") { request in
                let headers: Headers = [
                    .etag: request.path == "/weak" ? "W/\"1\"" : tag.withLock { $0 }, .cacheControl: "max-age=60",
                ]
                guard let ranges = request.headers[.range].flatMap({ ByteRange.parse($0) }),
                    case .from(let first)? = ranges.first,
                    request.headers[.ifRange] == headers[.etag]
                else { return .ok(.bytes(body), headers: headers) }
                var partial = headers
                partial[.contentRange] = "bytes \(first)-\(body.count - 1)/\(body.count)"
                return .status(.partialContent, headers: partial, body: .bytes(Array(body[Int(first)...])))
            }
            func begin(_ path: String) async throws {
                _ = try await rig.session.load(Request(url: rig.origin.url(path))) { _, body in
                    for try await chunk in body where chunk.count > 0 { break }
                }
            }
            try await begin("/weak")
            #expect(stored(rig, "/weak") == nil)
            try await begin("/strong")
            guard case .beginning(let count, of: 200_000)? = stored(rig, "/strong")?.extent else {
                Issue.record("no beginning")
                return
            }
            #expect(count > 0 && count < 200_000)
            let (data, response) = try await rig.session.data(from: rig.origin.url("/strong"))
            #expect([UInt8](data) == body && response.http?.status == .ok && response.expectedLength == 200_000)
            #expect(rig.origin.requests.last?.headers[.range] == "bytes=\(count)-")
            let before = rig.requests
            let (again, _) = try await rig.session.data(from: rig.origin.url("/strong"))
            #expect([UInt8](again) == body && rig.requests == before)

            // Content that has changed is loaded from the beginning.
            try await begin("/changed")
            tag.withLock { $0 = "\"2\"" }
            let (changed, _) = try await rig.session.data(from: rig.origin.url("/changed"))
            #expect([UInt8](changed) == body && stored(rig, "/changed")?.headers[.etag] == "\"2\"")
        }
    }

    @Test(
        "a 206 that does not match is refused, and the whole content loaded (security 73, 74)",
        arguments: [
            "bytes 5-9/10", "bytes 3-8/10", "bytes 4-9/11", "none",
        ])
    func misfits(_ range: String) async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                let headers: Headers = [.etag: "\"1\"", .cacheControl: "max-age=60"]
                guard request.headers.contains(.range) else { return .ok("0123456789", headers: headers) }
                var partial = headers
                partial[.contentRange] = range == "none" ? nil : range
                return .status(.partialContent, headers: partial, body: .bytes(Array("456789".utf8)))
            }
            let key = try #require(CacheKey(Request(url: rig.origin.url("/"))))
            var beginning = StoredResponse(
                key: key, url: key.text, status: .ok, version: .http11,
                headers: [.etag: "\"1\"", .contentLength: "10"],
                requestTime: rig.clock.now, responseTime: rig.clock.now)
            beginning.extent = .beginning(0, of: 10)
            let writer = try #require(rig.cache.storage.write(beginning, length: 10))
            #expect(writer.append(Chunk(copying: Array("0123".utf8))))
            writer.abandon(isResumable: true)
            try await rig.expect("/", "200 0123456789 -", requests: 2)
            try await rig.expect("/", "200 0123456789 0", requests: 2)
        }
    }

    @Test(
        "an interruption at any byte never leads to a wrong or truncated body",
        arguments: 0..<12)
    func cuts(_ step: Int) async throws {
        try await withCacheRig { rig in
            let body = [UInt8](repeating: 7, count: 5000)
            let cut = Int64(step * 450)
            let isCut = Held(true)
            rig.origin.route("/") { _ in
                let headers: Headers = [.cacheControl: "max-age=60"]
                guard isCut.withLock({ $0 }) else { return .ok(.bytes(body), headers: headers) }
                return .ok(.declared(5000, bytes: Array(body.prefix(Int(cut)))), headers: headers)
            }
            _ = try? await rig.session.data(from: rig.origin.url("/"))
            #expect(stored(rig) == nil)
            isCut.withLock { $0 = false }
            let (data, _) = try await rig.session.data(from: rig.origin.url("/"))
            #expect([UInt8](data) == body)
            #expect(stored(rig)?.extent == .whole(5000))
        }
    }

    @Test("a cancelled load stores nothing, and the next load fetches the response")
    func cancelled() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/", faults: [.init(.responseBody(after: 1000), .stall)]) { _ in
                .ok(.bytes([UInt8](repeating: 1, count: 4000)), headers: [.cacheControl: "max-age=60"])
            }
            let task = Task { try await rig.session.data(from: rig.origin.url("/")) }
            try await rig.origin.wait { $0.stalled == 1 }
            task.cancel()
            await expectFailure(.cancelled) { try await task.value }
            #expect(stored(rig) == nil && rig.cache.memoryUsage == 0)
        }
    }

    // MARK: Events and metrics

    @Test("metrics report responses from the cache, and validations")
    func metrics() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                request.headers.contains(.ifNoneMatch)
                    ? .status(.notModified) : .ok("abc", headers: [.etag: "\"1\"", .cacheControl: "max-age=5"])
            }
            func types() async throws -> [String] {
                let task = rig.session.dataTask(Request(url: rig.origin.url("/")))
                let events = task.events
                task.resume()
                var types: [String] = []
                for await event in events {
                    if case .metrics(let metrics) = event {
                        types = metrics.transactions.map {
                            "\($0.fetchType.rawValue) \($0.response?.http?.status.code ?? 0)"
                        }
                    }
                }
                return types
            }
            let first = try await types()
            let second = try await types()
            rig.clock.advance(10)
            let third = try await types()
            #expect(first == ["network 200"] && second == ["cache 200"] && third == ["network 304", "cache 200"])
        }
    }

    // MARK: RFC 5861

    @Test("a stale response is served at once and revalidated once; the session waits for that at its end (RFC 5861 3)")
    func staleWhileRevalidate() async throws {
        try await withCacheRig { rig in
            let gate = rig.routeNumbered(holding: 2, cacheControl: "max-age=10, stale-while-revalidate=100")
            try await rig.expect("/", "200 a1 -", requests: 1)
            rig.clock.advance(20)
            for _ in 0..<3 {
                let answer = try await rig.get()
                #expect(answer == "200 a1 20")
            }
            try await rig.origin.wait { $0.requests == 2 }
            gate.open()
            try await rig.origin.wait { $0.answered == 2 }
            try await rig.session.eventuallyLoads { $0 == 0 }
            try await rig.expect("/", "200 a2 0", requests: 2)
        }
    }

    @Test("a session that is invalidated ends its refreshes (RFC 5861 3)")
    func refreshEnds() async throws {
        try await withHTTPTestServer { origin in
            let clock = WallClock()
            let counter = Counter()
            origin.route("/") { _ in
                if counter.next() != "1" { try await Task.sleep(for: .seconds(600)) }
                return .ok("a", headers: [.cacheControl: "max-age=10, stale-while-revalidate=100"])
            }
            let session = Session(.ephemeral.with { $0.wallClock = { clock.now } })
            try await session.expect(origin.url("/"), "a")
            clock.advance(20)
            try await session.expect(origin.url("/"), "a")
            try await origin.wait { $0.requests == 2 }
            await expectEmpty(session)
        }
    }

    @Test("a stale response replaces an error of the server or the network (RFC 5861 4)")
    func staleIfError() async throws {
        try await withCacheRig { rig in
            let isBroken = Held(false)
            rig.origin.route("/") { _ in
                isBroken.withLock { $0 }
                    ? .status(.serviceUnavailable)
                    : .ok("a", headers: [.etag: "\"1\"", .cacheControl: "max-age=10, stale-if-error=100"])
            }
            try await rig.expect("/", "200 a -", requests: 1)
            isBroken.withLock { $0 = true }
            rig.clock.advance(20)
            try await rig.expect("/", "200 a 20", requests: 2)
            try await rig.expect("/", "503  -", requests: 3) { $0.headers[.cacheControl] = "no-cache" }
            await rig.origin.stop()
            try await rig.expect("/", "200 a 20", requests: 3)
            rig.clock.advance(100)
            await expectFailure(.connectionRefused) { try await rig.get() }
        }
    }

    @Test(
        "a stale response replaces the answer of a silent server, and no stop of the caller (RFC 5861 4)",
        arguments: [true, false], ["silence", "cancellation", "resource timeout"])
    func staleIfSilent(hasValidator: Bool, _ end: String) async throws {
        let clock = ManualClock()
        try await withCacheRig({ $0.use(clock) }) { rig in
            rig.origin.route("/") { _ in
                var headers: Headers = [.cacheControl: "max-age=10, stale-if-error=100"]
                if hasValidator { headers[.etag] = "\"1\"" }
                return .ok("a", headers: headers)
            }
            try await rig.expect("/", "200 a -", requests: 1)
            rig.clock.advance(20)
            rig.origin.inject(.init(.requestHead, .stall))
            let load = Task {
                try await rig.get {
                    $0.idleTimeout = .seconds(end == "silence" ? 10 : 1_000)
                    $0.resourceTimeout = .seconds(100)
                }
            }
            try await rig.origin.wait { $0.stalled == 1 }
            try await clock.untilWaiting()
            switch end {
            case "silence":
                clock.advance(by: .seconds(10))
                let answer = try await load.value
                #expect(answer == "200 a 20")
            case "cancellation":
                load.cancel()
                await expectFailure(.cancelled) { try await load.value }
            default:
                clock.advance(by: .seconds(100))
                await expectFailure(.resourceTimeout) { try await load.value }
            }
        }
    }

    // MARK: Shared fetches

    @Test(
        "equal loads share a fetch if configured; a cancelled leader hands over; an unstorable response blocks none"
    )
    func shared() async throws {
        try await withCacheRig({ $0.caching.coalescesIdenticalRequests = true }) { rig in
            let gate = Latch()
            let counter = Counter()
            rig.origin.route("/*") { request in
                let text = counter.next("a")
                await gate.wait()
                return .ok(text, headers: [.cacheControl: request.path == "/none" ? "no-store" : "max-age=60"])
            }
            let leader = Task { try await rig.get("/a") }
            try await rig.origin.wait { $0.requests == 1 }
            let followers = (0..<4).map { _ in Task { try await rig.get("/a") } }
            try await rig.session.eventuallyLoads { $0 >= 5 }
            leader.cancel()
            await expectFailure(.cancelled) { try await leader.value }
            try await rig.origin.wait { $0.requests == 2 }
            gate.open()
            var answers: Set<String> = []
            for follower in followers { answers.insert(String(try await follower.value.prefix(6))) }
            #expect(answers == ["200 a2"] && rig.requests == 2)
            let others = (0..<3).map { _ in Task { try await rig.get("/none") } }
            for other in others { _ = try await other.value }
            #expect(rig.requests == 5)
        }
    }

    @Test("a load within the body of an equal load does not wait for it")
    func nested() async throws {
        try await withCacheRig({ $0.caching.coalescesIdenticalRequests = true }) { rig in
            rig.origin.route("/") { _ in .ok("abc", headers: [.cacheControl: "max-age=60"]) }
            let inner = try await rig.session.load(Request(url: rig.origin.url("/"))) { _, _ in
                try await rig.get { $0.idleTimeout = .seconds(30) }
            }
            #expect(inner.hasPrefix("200 abc"))
        }
    }

    @Test("by default equal loads do not share a fetch")
    func apart() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { _ in .ok("abc", headers: [.cacheControl: "max-age=60"]) }
            async let first = rig.get()
            async let second = rig.get()
            let answers = try await [first, second]
            #expect(answers.allSatisfy { $0.hasPrefix("200 abc") })
        }
    }
}

extension Chunk {
    init(copying bytes: [UInt8]) { self = bytes.withUnsafeBytes { Chunk(copying: $0) } }
}

nonisolated(nonsending) private func withTemporaryFile(_ use: nonisolated(nonsending) (URL) async throws -> Void)
    async throws
{
    let file = temporaryURL("cache-rows")
    defer { try? FileManager.default.removeItem(at: file) }
    try await use(file)
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// An external cache that is slow, down, full or lies: no load fails, none waits beyond its bound, memory is bounded.
@Suite(.timeLimit(.minutes(15)))
struct ExternalCacheFaultRows {
    // MARK: Lies

    /// What a store may answer in place of what it keeps.
    enum Lie: String, CaseIterable, CustomTestStringConvertible {
        case otherKey, empty, cutHead, cutBody, lastByte, flippedHead, flippedBody, flippedKind, otherVersion
        case longer, hugeHead, hugeBody, noise, endless, failsMidway, throwing
        var testDescription: String { rawValue }

        func answer(_ value: Data, _ other: Data) -> ResponseStoreValue {
            var lie = value
            func flip(_ index: Int) { lie[index] ^= 1 }
            switch self {
            case .otherKey: lie = other
            case .empty: lie = Data()
            case .cutHead: lie = lie.prefix(60)
            case .cutBody: lie = lie.dropLast(10)
            case .lastByte: lie = lie.dropLast(1)
            case .flippedHead: flip(StorePrefix.size + 5)
            case .flippedBody: flip(lie.count - 1)
            case .flippedKind: lie[5] = 2
            case .otherVersion: lie[4] = 2
            case .longer: lie.append(0)
            case .hugeHead: lie.replaceSubrange(6..<10, with: [255, 255, 255, 255])
            case .hugeBody: lie.replaceSubrange(10..<18, with: [255, 255, 255, 255, 255, 255, 255, 127])
            case .noise: lie = Data((0..<value.count).map { UInt8(truncatingIfNeeded: $0 &* 37) })
            case .endless:
                return ResponseStoreValue(
                    pieces: AsyncStream(unfolding: { Data(repeating: 7, count: 1 << 20) }))
            case .failsMidway:
                return ResponseStoreValue(
                    pieces: AsyncThrowingStream<Data, any Error> { stream in
                        stream.yield(value.prefix(70))
                        stream.finish(throwing: StoreFailure())
                    })
            case .throwing: break
            }
            return ResponseStoreValue(lie)
        }
    }

    @Test(
        "what is not the whole, unchanged record of its key is not used, and the load goes to the network",
        arguments: Lie.allCases)
    func lies(_ lie: Lie) async throws {
        let kept = TestStore()
        let lying = TestStore { key, value in
            if lie == .throwing { throw StoreFailure() }
            let values = kept.values
            guard let own = values[key], let other = values.first(where: { $0.key != key })?.value else { return nil }
            return lie.answer(own, other)
        }
        try await withExternalRig(kept) { rig in
            rig.origin.route("/*") {
                .ok(String(repeating: $0.path, count: 50), headers: [.cacheControl: "max-age=60"])
            }
            for path in ["/a", "/b"] { _ = try await rig.get(path) }
            try await rig.settled()
            #expect(kept.values.count == 2)
            try await rig.beside(lying) { other in
                let text = String(repeating: "/a", count: 50)
                try await other.expect("/a", "200 \(text) -", requests: 3)
                let counts = other.counts
                let isFailure = lie == .failsMidway || lie == .throwing
                #expect(counts.found == 0 && (isFailure ? counts.failed : counts.damaged) == 1, "\(counts)")
                // The response was stored in place of the record.
                try await lying.state.wait { $0.stored == 1 }
            }
        }
    }

    @Test("a value is read in pieces of any size")
    func pieces() async throws {
        let kept = TestStore()
        let slow = TestStore { key, _ in
            guard let value = kept.values[key] else { return nil }
            return ResponseStoreValue(
                pieces: AsyncStream<Data> { stream in
                    for byte in value {
                        stream.yield(Data([byte]))
                        stream.yield(Data())
                    }
                    stream.finish()
                })
        }
        try await withExternalRig(kept) { rig in
            rig.origin.route("/") { _ in .ok("text", headers: [.cacheControl: "max-age=60"]) }
            _ = try await rig.get()
            try await rig.settled()
            try await rig.beside(slow) { try await $0.expect("/", "200 text 0", requests: 1) }
        }
    }

    // MARK: Slowness

    @Test("a store that never answers is waited for until the time-out, and its late answer is dropped")
    func silent() async throws {
        let (clock, late) = (ManualClock(), Flag())
        let (asked, kept) = (Flag(), TestStore())
        let silent = TestStore { key, _ in
            asked.raise()
            await late.waitIgnoringCancellation()
            return kept.values[key].map { ResponseStoreValue($0) }
        }
        try await withExternalRig(kept) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: [.cacheControl: "max-age=60"]) }
            _ = try await rig.get()
            try await rig.settled()
            try await rig.beside(
                silent,
                {
                    $0.use(clock)
                    $0.caching.external?.timeout = .milliseconds(250)
                }
            ) { other in
                async let loaded = other.get()
                try await asked.wait()
                try await clock.advance(by: .milliseconds(50)) { clock.elapsed >= .milliseconds(300) }
                #expect(try await loaded == "200 a -")
                #expect(other.counts.late == 1 && other.requests == 2)
                late.raise()
                try await eventuallyNoLeaks(other.session.leakedClosures)
                #expect(other.counts.found == 0)
            }
        }
    }

    @Test("a load never waits longer than its idle timeout, and a cancelled load not at all")
    func shorter() async throws {
        let (clock, end) = (ManualClock(), Flag())
        let asked = Watched(0)
        let silent = TestStore { _, _ in
            asked.change { $0 += 1 }
            await end.waitIgnoringCancellation()
            return nil
        }
        try await withExternalRig(
            silent,
            {
                $0.use(clock)
                $0.caching.external?.timeout = .seconds(3_600)
            }
        ) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: [.cacheControl: "max-age=60"]) }
            async let loaded = rig.get { $0.idleTimeout = .seconds(10) }
            try await asked.wait { $0 == 1 }
            try await clock.advance(by: .seconds(1)) { clock.elapsed >= .seconds(11) }
            #expect(try await loaded == "200 a -")
            let cancelled = Task { try await rig.get("/") { $0.url = rig.origin.url("/other") } }
            try await asked.wait { $0 == 2 }
            cancelled.cancel()
            await expectFailure(.cancelled) { try await cancelled.value }
            #expect(rig.requests == 1)
            end.raise()
            try await eventuallyNoLeaks(rig.session.leakedClosures)
        }
    }

    @Test("a session that is invalidated ends its look-ups and changes at once")
    func invalidated() async throws {
        let (asked, end) = (Watched(0), Flag())
        let silent = TestStore(
            answering: { _, _ in
                let isFirst = asked.change { count -> Bool in
                    count += 1
                    return count == 1
                }
                if !isFirst { await end.waitIgnoringCancellation() }
                return nil
            },
            before: {
                asked.change { $0 += 1 }
                await end.waitIgnoringCancellation()
            })
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("a", headers: [.cacheControl: "max-age=60"]) }
            var configuration = Configuration.ephemeral
            configuration.caching.external = ExternalCache(silent)
            configuration.caching.external?.timeout = .seconds(3_600)
            let session = Session(configuration)
            try await session.expect(origin.url("/a"), "a")
            let loading = Task { try await session.data(from: origin.url("/b")) }
            try await asked.wait { $0 == 3 }
            session.invalidateAndCancel()
            await session.invalidated()
            await expectFailure(.cancelled) { try await loading.value }
            end.raise()
        }
    }

    @Test("a session that finishes waits for what its loads have given the store, at most for the time-out")
    func finished() async throws {
        let store = TestStore()
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("a", headers: [.cacheControl: "max-age=60"]) }
            var configuration = Configuration.ephemeral
            configuration.caching.external = patient(store)
            try await withSession(configuration) { try await $0.expect(origin.url(), "a") }
            #expect(store.values.count == 1)
        }
    }

    @Test("after several failures the store is left alone, until one call has succeeded after a pause")
    func down() async throws {
        let (clock, isUp) = (ManualClock(), Held(false))
        let store = TestStore(
            answering: { _, value in
                guard isUp.withLock({ $0 }) else { throw StoreFailure() }
                return value.map { ResponseStoreValue($0) }
            },
            before: { if !isUp.withLock({ $0 }) { throw StoreFailure() } })
        try await withExternalRig(store, { $0.use(clock) }) { rig in
            let counter = Counter()
            rig.origin.route("/*") { _ in .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"]) }
            for number in 1...20 {
                #expect(try await rig.get("/\(number)") == "200 a\(number) -")
                try await rig.settled()
            }
            let counts = rig.counts
            #expect(counts.failed == 8 && counts.skipped == 32 && store.state.value.lookUps == 4, "\(counts)")
            isUp.withLock { $0 = true }
            clock.advance(by: .seconds(3))
            for _ in 0..<2 {
                _ = try await rig.get("/x")
                try await rig.settled()
            }
            #expect(rig.counts.stored == 1 && rig.counts.found == 1 && rig.requests == 21)
        }
    }

    @Test("while many calls do not end, no others are made")
    func many() async throws {
        let end = Flag()
        let store = TestStore { _, _ in
            await end.waitIgnoringCancellation()
            return nil
        }
        try await withExternalRig(
            store,
            {
                $0.caching.external?.timeout = .seconds(3_600)
                $0.connections.maximumPerHost = 4
            }
        ) { rig in
            rig.origin.route("/*") { _ in .ok("a") }
            let loads = (0..<300).map { number in Task { try await rig.get("/\(number)") } }
            // The calls of 256 wait; the other loads are not held.
            try await rig.origin.wait { $0.requests == 44 }
            #expect(store.state.value.lookUps <= 256)
            end.raise()
            for load in loads { #expect(try await load.value == "200 a -") }
            #expect(rig.counts.skipped == 44)
        }
    }

    // MARK: Size

    @Test("a body above the limit is not stored, whether its length is known or not, and the caller gets all of it")
    func large() async throws {
        let store = TestStore()
        try await withExternalRig(store, { $0.caching.external?.maximumEntrySize = 100_000 }) { rig in
            for (path, chunked) in [("/known", false), ("/unknown", true)] {
                rig.origin.route(path) { _ in
                    .ok(.repeated(count: 64 << 20, chunked: chunked), headers: [.cacheControl: "max-age=60"])
                }
                let count = Held(0)
                try await rig.session.load(Request(url: rig.origin.url(path))) { _, body in
                    for try await chunk in body { count.withLock { $0 += chunk.count } }
                }
                #expect(count.withLock { $0 } == 64 << 20)
                #expect(rig.session.core.cache?.external?.budget.used == 0)
            }
            rig.origin.route("/fits") { _ in
                .ok(.repeated(count: 100_000, chunked: true), headers: [.cacheControl: "max-age=60"])
            }
            for _ in 0..<2 {
                let (data, _) = try await rig.session.data(from: rig.origin.url("/fits"))
                #expect(data.count == 100_000)
                try await rig.settled()
            }
            #expect(rig.counts.left == 2 && rig.counts.stored == 1 && rig.counts.found == 1 && rig.requests == 3)
        }
    }

    @Test("the bodies that wait for a slow store are bounded; what exceeds the bound is not stored, and no load waits")
    func buffered() async throws {
        let end = Flag()
        let store = TestStore(before: { await end.waitIgnoringCancellation() })
        try await withExternalRig(
            store,
            {
                $0.caching.external?.timeout = .seconds(3_600)
                $0.caching.external?.maximumBufferedSize = 250_000
            }
        ) { rig in
            rig.origin.route("/*") { _ in
                .ok(.repeated(count: 100_000), headers: [.cacheControl: "max-age=60"])
            }
            for number in 0..<5 {
                let (data, _) = try await rig.session.data(from: rig.origin.url("/\(number)"))
                #expect(data.count == 100_000)
            }
            let budget = try #require(rig.session.core.cache?.external?.budget)
            #expect(budget.used == 200_000 && rig.counts.left == 3)
            end.raise()
            try await rig.settled()
            try await eventually(budget.used) { $0 == 0 }
            #expect(rig.counts.stored == 2)
            // A look-up counts too.
            try await rig.beside(store, { $0.caching.external?.maximumBufferedSize = 50_000 }) { other in
                let (data, _) = try await other.session.data(from: rig.origin.url("/0"))
                #expect(data.count == 100_000)
                #expect(other.counts.left == 2 && other.counts.found == 0)
            }
        }
    }

    @Test("a removal that failed is made again, and until then nothing of that URL is used")
    func removal() async throws {
        let isUp = Held(true)
        let store = TestStore(before: { if !isUp.withLock({ $0 }) { throw StoreFailure() } })
        try await withExternalRig(store) { rig in
            let counter = Counter()
            rig.origin.route("/") { request in
                request.method == .get
                    ? .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"]) : .ok("")
            }
            try await rig.expect("/", "200 a1 -", requests: 1)
            try await rig.settled()
            isUp.withLock { $0 = false }
            _ = try await rig.get { $0.method = .delete }
            try await rig.settled()
            #expect(store.values.count == 1)
            try await rig.expect("/", "200 a2 -", requests: 3)
            try await rig.settled()
            try await rig.expect("/", "200 a3 -", requests: 4)
            try await rig.settled()
            isUp.withLock { $0 = true }
            try await rig.expect("/", "200 a4 -", requests: 5)
            try await rig.settled()
            try await rig.expect("/", "200 a4 0", requests: 5)
            try await rig.beside(store) { try await $0.expect("/", "200 a4 0", requests: 5) }
        }
    }

    @Test("a response whose head is too large to be stored does not end a removal that failed")
    func removalBeforeLargeHead() async throws {
        let isUp = Held(true)
        let store = TestStore(before: { if !isUp.withLock({ $0 }) { throw StoreFailure() } })
        try await withExternalRig(store, { $0.limits.headSize = 1 << 20 }) { rig in
            let counter = Counter()
            let large = String(repeating: "x", count: StorePrefix.maximumHead)
            rig.origin.route("/") { request in
                guard request.method == .get else { return .ok("") }
                let text = counter.next("a")
                var headers: Headers = [.cacheControl: "max-age=60"]
                if text == "a2" { headers["X-Large"] = large }
                return .ok(text, headers: headers)
            }
            try await rig.expect("/", "200 a1 -", requests: 1)
            try await rig.settled()
            isUp.withLock { $0 = false }
            _ = try await rig.get { $0.method = .delete }
            try await rig.settled()
            try await rig.expect("/", "200 a2 -", requests: 3)
            try await rig.settled()
            #expect(rig.counts.left == 1 && rig.counts.stored == 1 && store.values.count == 1)
            isUp.withLock { $0 = true }
            try await rig.expect("/", "200 a3 -", requests: 4)
            try await rig.settled()
            try await rig.expect("/", "200 a3 0", requests: 4)
        }
    }

    @Test("a store that comes back gives no response that was invalidated, however many removals have failed")
    func manyRemovals() async throws {
        let (clock, isUp, text) = (ManualClock(), Held(true), Held("old"))
        let store = TestStore(
            answering: { _, value in
                guard isUp.withLock({ $0 }) else { throw StoreFailure() }
                return value.map { ResponseStoreValue($0) }
            },
            before: { if !isUp.withLock({ $0 }) { throw StoreFailure() } })
        try await withExternalRig(store, { $0.use(clock) }) { rig in
            rig.origin.route("/*") {
                $0.method == .get ? .ok(text.withLock { $0 }, headers: [.cacheControl: "max-age=600"]) : .ok("")
            }
            let count = StoreChanges.maximumFailed + 50
            for number in 0..<count { _ = try await rig.get("/\(number)") }
            try await rig.settled()
            #expect(store.values.count == count)
            isUp.withLock { $0 = false }
            text.withLock { $0 = "new" }
            for number in 0..<count { _ = try await rig.get("/\(number)") { $0.method = .delete } }
            try await rig.settled()
            #expect(store.values.count == count)
            isUp.withLock { $0 = true }
            clock.advance(by: .seconds(60))
            for _ in 0..<2 {
                for number in 0..<count { #expect(try await rig.get("/\(number)").hasPrefix("200 new ")) }
                try await rig.settled()
            }
        }
    }

    @Test("a response that was requested before its URL was invalidated is not stored")
    func late() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            let gate = Latch()
            rig.origin.route("/") { request in
                guard request.method == .get else { return .ok("") }
                await gate.wait()
                return .ok("a", headers: [.cacheControl: "max-age=60"])
            }
            let first = Task { try await rig.get() }
            try await rig.origin.wait { $0.requests == 1 }
            _ = try await rig.get { $0.method = .put }
            gate.open()
            #expect(try await first.value == "200 a -")
            try await rig.settled()
            #expect(store.values.isEmpty)
        }
    }
}

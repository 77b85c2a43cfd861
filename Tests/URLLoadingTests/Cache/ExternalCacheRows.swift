// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// An external cache: the rules of HTTP, with a store that works.
@Suite(.timeLimit(.minutes(4)))
struct ExternalCacheRows {
    @Test("a response is stored, found by another session while it is fresh, validated after, and loaded if it changed")
    func found() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { request in
                let headers: Headers = [.cacheControl: "max-age=60", .etag: "\"1\""]
                return request.headers.contains(.ifNoneMatch)
                    ? .status(.notModified, headers: headers) : .ok("a", headers: headers)
            }
            try await rig.expect("/", "200 a -", requests: 1)
            // Before the store has it, the session itself does.
            try await rig.expect("/", "200 a 0", requests: 1)
            try await store.state.wait { $0.stored == 1 }
            try await rig.beside(store) { other in
                rig.clock.advance(10)
                try await other.expect("/", "200 a 10", requests: 1)
                #expect(other.lastPlan.hasPrefix("stored"))
                rig.clock.advance(60)
                try await other.expect("/", "200 a 0", requests: 2)
                #expect(other.lastPlan.hasPrefix("validate"))
                try await other.settled()
                #expect(store.state.value.stored == 2)
                #expect(other.counts.found == 2 && other.counts.stored == 1)
            }
            try await rig.beside(store) { try await $0.expect("/", "200 a 0", requests: 2) }
            #expect(store.values.count == 1 && store.values.keys.allSatisfy { $0.count == 64 })
            // While it is fresh, and for a day because it can be validated.
            #expect(store.state.value.lifetimes.values.first == .seconds(60 + 86_400))
        }
    }

    @Test("each variant is found by requests that select it, and one removal makes all of them unreachable")
    func variants() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { request in
                guard request.method == .get else { return .ok("") }
                return .ok(
                    request.headers[.acceptLanguage] ?? "none",
                    headers: [.cacheControl: "max-age=60", .vary: "Accept-Language"])
            }
            for (count, language) in ["de", "fr", nil].enumerated() {
                try await rig.expect("/", "200 \(language ?? "none") -", requests: count + 1) {
                    $0.headers[.acceptLanguage] = language
                }
                try await rig.settled()
            }
            // An index, and three variants.
            #expect(store.values.count == 4)
            try await rig.beside(store) { other in
                for language in ["fr", nil, "de"] {
                    try await other.expect("/", "200 \(language ?? "none") 0", requests: 3) {
                        $0.headers[.acceptLanguage] = language
                    }
                }
                _ = try await other.get("/") { $0.method = .post }
                // Removed at once for the session, and soon in the store.
                try await other.expect("/", "200 de -", requests: 5) { $0.headers[.acceptLanguage] = "de" }
                try await store.state.wait { $0.removed == 1 }
                try await other.settled()
            }
            try await rig.beside(store) { other in
                try await other.expect("/", "200 fr -", requests: 6) { $0.headers[.acceptLanguage] = "fr" }
                try await other.settled()
                try await other.expect("/", "200 de 0", requests: 6) { $0.headers[.acceptLanguage] = "de" }
            }
        }
    }

    @Test("policies and directives decide as for a cache of the library, and whether the store is asked at all")
    func policies() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in .ok(counter.next("a"), headers: [.cacheControl: "max-age=60"]) }
            await expectFailure(.notInCache) { try await rig.get { $0.cachePolicy = .onlyIfCached } }
            try await rig.expect("/", "200 a1 -", requests: 1)
            try await rig.settled()
            try await rig.expect("/", "200 a1 0", requests: 1) { $0.cachePolicy = .onlyIfCached }
            try await rig.expect("/", "200 a1 0", requests: 1) { $0.headers[.cacheControl] = "only-if-cached" }
            let asked = store.state.value.lookUps
            try await rig.expect("/", "200 a2 -", requests: 2) { $0.cachePolicy = .reload }
            try await rig.settled()
            try await rig.expect("/", "200 a3 -", requests: 3) { $0.headers[.cacheControl] = "no-store" }
            try await rig.expect("/", "200 a4 -", requests: 4) { $0.headers[.ifNoneMatch] = "\"x\"" }
            try await rig.settled()
            #expect(store.state.value.lookUps == asked && store.state.value.stored == 3)
            try await rig.expect("/", "200 a4 0", requests: 4)
            rig.clock.advance(100)
            try await rig.expect("/", "200 a4 100", requests: 4) { $0.cachePolicy = .cacheElseLoad }
            try await rig.expect("/", "200 a4 100", requests: 4) { $0.headers[.cacheControl] = "max-stale" }
            try await rig.expect("/", "200 a5 -", requests: 5)
            #expect(rig.lastPlan.hasPrefix("network"))
        }
    }

    @Test("a HEAD is answered, a new no-store removes what is stored, and a stale response stands in for a failure")
    func others() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            let control = Held("max-age=60, stale-if-error=600")
            rig.origin.route("/") { _ in
                let text = control.withLock { $0 }
                return text.isEmpty
                    ? .status(.serviceUnavailable) : .ok("a", headers: [.cacheControl: text])
            }
            try await rig.expect("/", "200 a -", requests: 1)
            try await rig.settled()
            try await rig.expect("/", "200  0", requests: 1) { $0.method = .head }
            rig.clock.advance(100)
            control.withLock { $0 = "" }
            try await rig.expect("/", "200 a 100", requests: 2)
            control.withLock { $0 = "no-store" }
            try await rig.expect("/", "200 a -", requests: 3) { $0.cachePolicy = .reload }
            try await store.state.wait { $0.removed == 1 }
            #expect(store.values.isEmpty)
        }
    }

    @Test("a stale response answers at once, one refresh runs beside it, and its result is stored")
    func refreshed() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            let gate = rig.routeNumbered(holding: 2, cacheControl: "max-age=60, stale-while-revalidate=600")
            try await rig.expect("/", "200 a1 -", requests: 1)
            try await rig.settled()
            rig.clock.advance(100)
            for _ in 0..<3 { #expect(try await rig.get() == "200 a1 100") }
            try await rig.origin.wait { $0.requests == 2 }
            gate.open()
            try await store.state.wait { $0.stored == 2 }
            try await rig.settled()
            try await rig.expect("/", "200 a2 0", requests: 2)
        }
    }

    @Test("equal loads at the same time share one fetch, and the followers find what the leader has stored")
    func shared() async throws {
        let store = TestStore()
        try await withExternalRig(store, { $0.caching.coalescesIdenticalRequests = true }) { rig in
            let gate = rig.routeNumbered(holding: 1)
            let loads = (0..<5).map { _ in Task { try await rig.get() } }
            try await rig.origin.wait { $0.requests == 1 }
            // The others wait for the leader's fetch, or will find what it has stored.
            gate.open()
            for load in loads { #expect(try await load.value.hasPrefix("200 a1")) }
            #expect(rig.requests == 1)
        }
    }

    @Test("a cache decision is asked, and what it changes is stored; entries for memory alone are not")
    func decided() async throws {
        var decisions = Decisions()
        decisions.cache = Decision { entry in
            var entry = entry
            if entry.response.url.path() == "/memory" { entry.storagePolicy = .allowedInMemoryOnly }
            if entry.response.url.path() == "/skipped" { return .skip }
            entry.data = Data("changed".utf8)
            entry.userInfo = Data("mine".utf8)
            return .instead(entry)
        }
        let store = TestStore()
        try await withExternalRig(store, decisions: decisions) { rig in
            rig.origin.route("/*") { _ in .ok("a", headers: [.cacheControl: "max-age=60"]) }
            for path in ["/", "/memory", "/skipped"] { #expect(try await rig.get(path) == "200 a -") }
            try await rig.settled()
            #expect(store.values.count == 1)
            try await rig.beside(store) { try await $0.expect("/", "200 changed 0", requests: 3) }
        }
    }

    @Test("a partial response, and one that is abandoned before its end, are not stored")
    func parts() async throws {
        let store = TestStore()
        try await withExternalRig(store, { $0.caching.external?.maximumEntrySize = 4 << 20 }) { rig in
            rig.origin.route("/") { request in
                guard request.headers.contains(.range) else {
                    return .ok(
                        .bytes([UInt8](repeating: 1, count: 3_000_000)),
                        headers: [.cacheControl: "max-age=60", .etag: "\"1\""])
                }
                return .status(
                    .partialContent,
                    headers: [.cacheControl: "max-age=60", .etag: "\"1\"", .contentRange: "bytes 0-3/10"],
                    body: .bytes([1, 2, 3, 4]))
            }
            #expect(try await rig.get { $0.headers[.range] = "bytes=0-3" }.hasPrefix("206"))
            try await rig.session.load(Request(url: rig.origin.url("/"))) { _, body in
                for try await _ in body { break }
            }
            try await rig.settled()
            #expect(store.values.isEmpty && rig.counts.stored == 0)
            _ = try await rig.get()
            try await rig.settled()
            // A range of a complete response is served from it.
            let part = try await rig.get { $0.headers[.range] = "bytes=0-1" }
            #expect(part == "206 \u{1}\u{1} 0" && rig.requests == 3)
        }
    }

    @Test("the counts appear in the session's metrics")
    func metrics() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: [.cacheControl: "max-age=60"]) }
            for _ in 0..<3 {
                _ = try await rig.get()
                try await rig.settled()
            }
            let lines = rig.session.openMetrics().split(separator: "\n").map(String.init)
            for line in [
                "urlloading_external_cache_lookups_total{result=\"found\"} 2",
                "urlloading_external_cache_lookups_total{result=\"missing\"} 1",
                "urlloading_external_cache_changes_total{kind=\"stored\"} 1",
                "urlloading_external_cache_faults_total{kind=\"late\"} 0",
            ] { #expect(lines.contains(line), "\(lines)") }
        }
        try await withSession(.ephemeral) { #expect(!$0.openMetrics().contains("external_cache")) }
    }

    @Test("what is signed with one key is nothing to a session with another key, or without one")
    func signed() async throws {
        let store = TestStore()
        func keyed(_ key: String?) -> (inout Configuration) -> Void {
            { $0.caching.external?.signingKey = key.map { Data("\($0), of sixteen bytes".utf8) } }
        }
        try await withExternalRig(store, keyed("one")) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: [.cacheControl: "max-age=60"]) }
            try await rig.expect("/", "200 a -", requests: 1)
            try await rig.settled()
            for key in ["two", nil] {
                try await rig.beside(store, keyed(key)) { other in
                    let answer = try await other.get()
                    #expect(answer == "200 a -")
                    #expect(other.counts.damaged == 1)
                }
                _ = try await rig.get { $0.cachePolicy = .reload }
                try await rig.settled()
            }
            try await rig.beside(store, keyed("one")) { try await $0.expect("/", "200 a 0", requests: 5) }
        }
    }
}

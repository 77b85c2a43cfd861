// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The side roads into a cache that others share: fields that name a user in the program's own way, heads that list
/// fields which are not kept, removals beside stores.
@Suite(.timeLimit(.minutes(4)))
struct ExternalCacheRoadRows {
    private static let minute: Headers = [.cacheControl: "max-age=60"]

    @Test(
        "no-store in a request, or in the fields of a session, keeps its response out of the store",
        arguments: [true, false])
    func noStore(ofSession: Bool) async throws {
        let store = TestStore()
        let own: Headers = ["X-Api-Key": "a", .cacheControl: "no-store"]
        try await withExternalRig(store, { if ofSession { $0.headers = own } }) { rig in
            rig.origin.route("/") { .ok($0.headers["X-Api-Key"] ?? "none", headers: Self.minute) }
            for _ in 0..<2 {
                let answer = try await rig.get { if !ofSession { $0.headers = own } }
                #expect(answer == "200 a -")
                try await rig.settled()
            }
            #expect(store.values.isEmpty)
        }
    }

    @Test("the value of a field that Vary names is not readable in the store, and finds the variant")
    func varyingValue() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") {
                .ok($0.headers["X-Api-Key"] ?? "none", headers: [.cacheControl: "max-age=60", .vary: "X-Api-Key"])
            }
            for expected in ["200 secret-of-ada -", "200 secret-of-ada 0"] {
                #expect(try await rig.get { $0.headers["X-Api-Key"] = "secret-of-ada" } == expected)
                try await rig.settled()
            }
            #expect(try await rig.get { $0.headers["X-Api-Key"] = "secret-of-bob" } == "200 secret-of-bob -")
            try await rig.settled()
            // The bodies have the value; the records have no other place for it.
            let places = store.values.values.map { value in
                value.indices.count { value[$0...].starts(with: Data("secret-of-".utf8)) }
            }
            #expect(places.sorted() == [0, 1, 1])
        }
    }

    @Test(
        "a head that lists the fields by which it is decided who may have it is not given to the store",
        arguments: [
            "private, no-cache=\"cache-control\"", "public, max-age=60, no-cache=\"vary\"",
        ])
    func lists(_ control: String) async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { _ in
                .ok("a", headers: [.cacheControl: control, .vary: "X-User", .etag: "\"1\"", .connection: "keep-alive"])
            }
            #expect(try await rig.get { $0.headers["X-User"] = "ada" } == "200 a -")
            try await rig.settled()
            #expect(store.values.isEmpty)
        }
    }

    @Test(
        "a response to a user of the URL, or to a signature of the caller's, is not given to the store",
        arguments: ["url", "Signature", "Signature-Input", "X-Amz-Security-Token"])
    func users(_ kind: String) async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: [.cacheControl: "public, max-age=60"]) }
            var request = Request(url: rig.origin.url())
            if kind == "url" {
                let text = rig.origin.url().absoluteString.replacing("://", with: "://ada:secret@")
                request = Request(url: try #require(URL(string: text)))
            } else {
                request.headers[FieldName(kind)] = "x"
            }
            _ = try await rig.session.data(for: request)
            try await rig.settled()
            #expect(store.values.isEmpty)
        }
    }

    @Test("a session that logs in does not get the answer for those who do not, if the server has another for them")
    func anonymous() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") {
                .ok(
                    $0.headers[.authorization] ?? "none",
                    headers: [.cacheControl: "max-age=60", .vary: "Authorization"])
            }
            #expect(try await rig.get() == "200 none -")
            try await rig.settled()
            let tokens = try BearerTokens(for: [rig.origin.url().absoluteString], token: "t")
            try await rig.beside(store, { $0.authentication.bearer = tokens }) {
                let answer = try await $0.get()
                #expect(answer == "200 Bearer t -")
            }
        }
    }

    @Test("a signing key that can be guessed closes the store")
    func shortKey() async throws {
        let store = TestStore()
        try await withExternalRig(store, { $0.caching.external?.signingKey = Data("short".utf8) }) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: Self.minute) }
            for _ in 0..<2 {
                #expect(try await rig.get() == "200 a -")
                try await rig.settled()
            }
            #expect(store.values.isEmpty && store.state.value.lookUps == 0)
        }
    }

    @Test("a response that no cache can use removes nothing from a store that was not asked, or is down")
    func unusable() async throws {
        let store = TestStore(answering: { _, _ in throw StoreFailure() })
        try await withExternalRig(store) { rig in
            rig.origin.route("/*") { _ in .ok("a") }
            for number in 0..<20 {
                #expect(try await rig.get("/\(number)") == "200 a -")
                try await rig.settled()
            }
            #expect(store.state.value.removed == 0)
        }
    }

    @Test("s-maxage alone makes a response one that others can use")
    func sharedLifetime() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: [.cacheControl: "s-maxage=60"]) }
            #expect(try await rig.get() == "200 a -")
            try await rig.settled()
            #expect(store.values.count == 1)
            #expect(try await rig.get() == "200 a 0")
        }
    }

    @Test("a store that ends late, after a removal, is followed by another removal")
    func late() async throws {
        let gate = Flag()
        let calls = Watched(0)
        let store = TestStore(before: {
            // The first call is the one that is late.
            guard
                calls.change({ count in
                    count += 1
                    return count
                }) == 1
            else { return }
            await gate.waitIgnoringCancellation()
        })
        try await withExternalRig(store, { $0.caching.external?.timeout = .milliseconds(20) }) { rig in
            rig.origin.route("/") { _ in .ok("a", headers: Self.minute) }
            #expect(try await rig.get() == "200 a -")
            try await rig.settled()
            _ = try await rig.get { $0.method = .put }
            try await rig.settled()
            gate.raise()
            try await store.state.wait { $0.stored == 1 && $0.removed == 2 }
            #expect(store.values.isEmpty)
        }
    }

    /// What a load of the session would use, in the hands of a test.
    private func storage(_ rig: CacheRig, _ request: Request) throws -> ExternalStorage {
        let external = try #require(rig.session.core.cache?.external)
        let handle = LoadHandle(idle: nil, resource: nil)
        return ExternalStorage(
            external, CacheQuery(request), .init(handle: handle, registry: rig.session.core.registry))
    }

    /// Stores a response as the end of its body does.
    private func finish(_ storage: ExternalStorage, _ request: Request, _ headers: Headers, since removals: Int) throws
    {
        let query = CacheQuery(request)
        let head = HTTPHead(status: .ok, headers: headers)
        let facts = StoringPlan.Facts(requestTime: 1_800_000_000, responseTime: 1_800_000_000)
        let key = try #require(CacheKey(request))
        let made = try #require(StoringPlan.make(query, key, head, facts))
        let admitted = try #require(storage.admitted(made, head, since: removals))
        let writer = try #require(storage.write(admitted, length: 0))
        writer.finish()
    }

    @Test("a URL that is removed between a response's head and its end is not stored, wherever the removal falls")
    func removedMeanwhile() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            let request = Request(url: rig.origin.url())
            let key = try #require(CacheKey(request))
            let storage = try storage(rig, request)
            let count = storage.removals.count(key)
            // The removal falls between the comparison at the head and the admission.
            storage.removals.note(key)
            try finish(storage, request, Self.minute, since: count)
            try await rig.settled()
            #expect(store.values.isEmpty)
            try finish(storage, request, Self.minute, since: storage.removals.count(key))
            try await rig.settled()
            #expect(store.values.count == 1)
        }
    }

    @Test("loads beside changes of their resource: when all have ended, the store has nothing older than the change")
    func races() async throws {
        let store = TestStore()
        let version = Watched(0)
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { request in
                let current = version.change { value in
                    value += request.method == .put ? 1 : 0
                    return value
                }
                return .ok("\(current)", headers: Self.minute)
            }
            for _ in 0..<40 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<8 {
                        group.addTask {
                            _ = try await rig.get {
                                if number % 4 == 3 { $0.method = .put }
                                if number % 2 == 0 { $0.cachePolicy = .reload }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                try await rig.settled()
                #expect(try await rig.get().hasPrefix("200 \(version.value) "))
                try await rig.settled()
            }
        }
    }

    @Test("a removal that failed still counts when a variant is stored by an index that was found before it")
    func oldIndex() async throws {
        let isDown = Watched(false)
        let store = TestStore(before: { if isDown.value { throw StoreFailure() } })
        let varying: Headers = [.cacheControl: "max-age=60", .vary: "X-User"]
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { .ok($0.headers["X-User"] ?? "none", headers: varying) }
            #expect(try await rig.get { $0.headers["X-User"] = "ada" } == "200 ada -")
            try await rig.settled()
            #expect(try await rig.get { $0.headers["X-User"] = "ada" } == "200 ada 0")
            let request = Request(url: rig.origin.url(), headers: ["X-User": "bob"])
            let key = try #require(CacheKey(request))
            let storage = try storage(rig, request)
            _ = try await storage.find(key, again: false)
            isDown.change { $0 = true }
            _ = try await rig.get { $0.method = .put }
            try await rig.settled()
            isDown.change { $0 = false }
            try finish(storage, request, varying, since: storage.removals.count(key))
            try await rig.settled()
            #expect(try await rig.get { $0.headers["X-User"] = "ada" } == "200 ada -")
        }
    }

    @Test("a server that only a decision trusts removes nothing that others share", arguments: [true, false])
    func forced(_ isForced: Bool) async throws {
        try await withTrust { rig in
            rig.origin.route("/") { _ in .ok("a", headers: Self.minute) }
            let store = TestStore()
            var configuration = isForced ? rig.strict : rig.trusting
            configuration.caching.external = patient(store)
            try await withSession(configuration, decisions: isForced ? rig.accepting : nil) { session in
                for method in [Method.get, .put, .delete] {
                    _ = try await session.data(for: Request(url: rig.origin.url(), method: method))
                    try await session.eventuallyLoads { $0 == 0 }
                }
            }
            #expect(store.state.value.stored == (isForced ? 0 : 1))
            #expect(store.state.value.removed == (isForced ? 0 : 2))
        }
    }

    @Test("an answer that sets a cookie changes nothing that others share")
    func revalidated() async throws {
        let store = TestStore()
        try await withExternalRig(store) { rig in
            rig.origin.route("/") { request in
                guard request.headers.contains(.ifNoneMatch) else {
                    return .ok("a", headers: [.cacheControl: "max-age=1", .etag: "\"1\"", "X-User": "none"])
                }
                return .status(
                    .notModified,
                    headers: [.cacheControl: "max-age=60", .etag: "\"1\"", "X-User": "ada", .setCookie: "sid=1"])
            }
            #expect(try await rig.get() == "200 a -")
            try await rig.settled()
            rig.clock.advance(10)
            let (_, response) = try await rig.session.data(from: rig.origin.url())
            #expect(response.headers["X-User"] == "ada")
            try await rig.settled()
            try await rig.beside(store) { other in
                _ = try await other.get()
                try await other.settled()
            }
            #expect(store.values.values.allSatisfy { !String(decoding: $0, as: UTF8.self).contains("ada") })
        }
    }

    @Test("a length that never comes, and one that is larger than any memory, take no memory")
    func lengths() {
        let budget = MemoryBudget(limit: 1 << 20)
        let held = budget.buffer(capacity: 1 << 10)
        #expect(budget.buffer(capacity: .max) == nil && budget.buffer(capacity: -1) == nil)
        #expect(held != nil && budget.used == 1 << 10)
    }
}

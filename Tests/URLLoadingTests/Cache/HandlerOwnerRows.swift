// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Security 72: a handler's stored response belongs to the owners of all responses that the handler received.
@Suite(.timeLimit(.minutes(4)))
struct HandlerOwnerRows {
    /// Answers `/page` with the closure's result, and allows the cache to store it.
    struct Making: ProtocolHandler {
        let make: @Sendable (Request, ProtocolClient) async throws -> ProtocolResponse
        func canHandle(_ request: Request) -> Bool { request.url.path() == "/page" }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            try await make(request, client)
        }
    }

    static func response(_ request: Request) -> Response {
        var response = Response(url: request.url, http: HTTPHead(status: .ok, headers: [.cacheControl: "max-age=60"]))
        response.storagePolicy = .allowed
        return response
    }

    /// Answers with the texts that `next` returns for some paths, requested in order.
    static func asking(_ paths: String...) -> Making {
        Making { request, client in
            var text = ""
            for path in paths { text += try await client.text(path, like: request) }
            return .response(response(request), data: Data(text.utf8))
        }
    }

    /// An origin with `/private/…` for requests with a login or a cookie, and `/public` for every request.
    private func withPages(_ use: (HTTPTestServer) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            let control: Headers = [.cacheControl: "max-age=60"]
            origin.route("/*") { request in
                if let cookie = request.headers[.cookie] { return .ok("secret of \(cookie);", headers: control) }
                guard request.path != "/public" else { return .ok("public;", headers: control) }
                guard let words = request.headers[.authorization] else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
                }
                return .ok("secret of \(words);", headers: control)
            }
            try await use(origin)
        }
    }

    private func configuration(_ cache: ResponseCache, _ handler: (any ProtocolHandler)? = nil) -> Configuration {
        var configuration = Configuration.ephemeral
        (configuration.caching.store, configuration.authentication.credentialStore) = (cache, CredentialStore())
        if let handler { configuration.handlers = [handler] }
        return configuration
    }

    private var ada: Decisions {
        var decisions = Decisions()
        decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "p")) }
        return decisions
    }

    /// Returns the entry for `/page` that a session without login, cookie or handler finds in the cache.
    private func found(_ origin: HTTPTestServer, _ cache: ResponseCache) async throws -> String? {
        try await withSession(configuration(cache)) { session in
            var request = Request(url: origin.url("/page"))
            request.cachePolicy = .onlyIfCached
            return try? await session.text(request)
        }
    }

    private func variants(_ origin: HTTPTestServer, _ cache: ResponseCache) throws -> [StoredResponse] {
        cache.storage.variants(try #require(CacheKey(Request(url: origin.url("/page")))))
    }

    // MARK: Owners of stored responses

    @Test("a handler's response built from the cache keeps its owner, login or cookie", arguments: [true, false])
    func fromCache(_ hasCookie: Bool) async throws {
        try await withPages { origin in
            let cache = ResponseCache()
            var own = configuration(cache, Self.asking("/private/a"))
            if hasCookie {
                let store = CookieStore()
                store.set(try #require(Cookie(name: "user", value: "ada", domain: "127.0.0.1")))
                own.cookies.storage = .store(store)
            }
            try await withSession(own, decisions: ada) { session in
                let first = try await session.text(origin.url("/page"))
                let second = try await session.text(origin.url("/page"))
                #expect(first == second && first.hasPrefix("secret"))
            }
            let others = try await found(origin, cache)
            #expect(others == nil)
        }
    }

    @Test("the first response that a handler requests determines the owner, whatever it requests later")
    func thrownAway() async throws {
        try await withPages { origin in
            let cache = ResponseCache()
            for handlers in [
                [Self.asking("/private/a", "/public")], [Self.asking("/private/a"), Self.passing(and: "/public")],
            ] {
                var own = configuration(cache)
                own.handlers = handlers
                try await withSession(own, decisions: ada) { session in
                    for _ in 0..<2 { _ = try await session.text(origin.url("/page")) }
                }
                let others = try await found(origin, cache)
                #expect(others == nil)
            }
        }
    }

    /// Answers with another text after it received the response of the next handler.
    private static func passing(and path: String) -> Making {
        Making { request, client in
            let data = try await client.next.load(request).body.collect(upTo: 1000)
            let text = try await client.text(path, like: request)
            return .response(response(request), data: data + Data(text.utf8))
        }
    }

    @Test("a private response in a file on disk is not served to another session")
    func fromDisk() async throws {
        let folder = temporaryURL("handler-owner-rows")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withPages { origin in
            let cache = ResponseCache(directory: folder)
            try await withSession(configuration(cache, Self.asking("/private/a")), decisions: ada) { session in
                for _ in 0..<2 { _ = try await session.text(origin.url("/page")) }
            }
            cache.flush()
            var onDisk: [String] = []
            cache.forEachEntry { entry in
                onDisk.append(entry.url)
                return true
            }
            #expect(onDisk.isEmpty)
            let others = try await found(origin, ResponseCache(memoryCapacity: 0, directory: folder))
            #expect(others == nil)
        }
    }

    @Test(
        "credentials in fields that the handler adds determine the owner",
        arguments: [FieldName.authorization, .cookie])
    func added(_ name: FieldName) async throws {
        try await withPages { origin in
            let cache = ResponseCache()
            let handler = Making { request, client in
                var own = request
                own.headers[name] = "ada"
                let answer = try await client.next.load(own)
                return .response(Self.response(request), data: try await answer.body.collect(upTo: 1000))
            }
            try await withSession(configuration(cache, handler)) { _ = try await $0.text(origin.url("/page")) }
            let others = try await found(origin, cache)
            #expect(others == nil)
        }
    }

    @Test("a response with two owners is not stored")
    func twoOwners() async throws {
        try await withPages { origin in
            let cache = ResponseCache()
            let handler = Making { request, client in
                var text = ""
                for user in ["ada", "eve"] {
                    var own = request
                    own.headers[.authorization] = user
                    text += String(decoding: try await client.next.load(own).body.collect(upTo: 1000), as: UTF8.self)
                }
                return .response(Self.response(request), data: Data(text.utf8))
            }
            try await withSession(configuration(cache, handler)) { session in
                try await session.expect(origin.url("/page"), "secret of ada;secret of eve;")
            }
            let bodies = try variants(origin, cache).compactMap { cache.storage.body($0)?.whole }
            let texts = bodies.map { String(decoding: [UInt8]($0), as: UTF8.self) }
            #expect(texts.allSatisfy { !$0.hasSuffix("ada;secret of eve;") })
        }
    }

    @Test("requests that a handler makes while its body is read determine the owner, too")
    func late() async throws {
        try await withPages { origin in
            let cache = ResponseCache()
            let handler = Making { request, client in
                let once = Once { Array(try await client.text("/private/a", like: request).utf8) }
                let pieces = AsyncThrowingStream<[UInt8], any Error>(unfolding: once.next)
                return .response(Self.response(request), body: pieces)
            }
            try await withSession(configuration(cache, handler), decisions: ada) { session in
                for _ in 0..<2 { _ = try await session.text(origin.url("/page")) }
            }
            let others = try await found(origin, cache)
            #expect(others == nil)
        }
    }

    /// Produces one piece, then the end.
    private final class Once: Sendable {
        private let isOver = Held(false)
        private let make: @Sendable () async throws -> [UInt8]
        init(_ make: @escaping @Sendable () async throws -> [UInt8]) { self.make = make }

        @Sendable func next() async throws -> [UInt8]? {
            let wasOver = isOver.withLock { isOver in
                defer { isOver = true }
                return isOver
            }
            return wasOver ? nil : try await make()
        }
    }

    @Test("a response built from public responses is served to every session")
    func everyone() async throws {
        try await withPages { origin in
            let cache = ResponseCache()
            try await withSession(configuration(cache, Self.asking("/public", "/public"))) {
                _ = try await $0.text(origin.url("/page"))
            }
            let others = try await found(origin, cache)
            #expect(others == "public;public;")
        }
    }

    // MARK: Two requests of a handler at once

    @Test("two concurrent requests of a handler do not affect each other")
    func atOnce() async throws {
        try await withPages { origin in
            let cache = ResponseCache()
            let handler = Making { request, client in
                async let secret = client.text("/private/a", like: request)
                async let common = client.text("/public", like: request)
                async let sent = client.text("/private/b", like: request, sending: 100_000)
                let text = try await secret + common + sent
                return .response(Self.response(request), data: Data(text.utf8))
            }
            var own = configuration(cache, handler)
            own.observers = [LoadStatistics()]
            try await withSession(own, decisions: ada) { session in
                for _ in 0..<30 {
                    let task = session.dataTask(from: origin.url("/page")).resumed()
                    let text = String(decoding: try await task.value, as: UTF8.self)
                    #expect(text.hasPrefix("secret"))
                }
            }
            let others = try await found(origin, cache)
            #expect(others == nil)
        }
    }

    @Test("the idle timeout ends a handler's request to a silent server, although another request was answered")
    func silence() async throws {
        let clock = ManualClock()
        try await withHTTPTestServer { origin in
            origin.route("/answers") { _ in .ok("a") }
            origin.route("/stalls", faults: [.init(.requestHead, .stall)]) { _ in .ok("b") }
            let answered = Latch()
            let handler = Making { request, client in
                async let silent = client.text("/stalls", like: request)
                try await origin.wait { $0.stalled == 1 }
                try await clock.untilWaiting()
                _ = try await client.text("/answers", like: request)
                answered.open()
                return .response(Self.response(request), data: Data(try await silent.utf8))
            }
            var configuration = Configuration.ephemeral
            configuration.handlers = [handler]
            configuration.timeouts.idle = .seconds(30)
            configuration.use(clock)
            let session = Session(configuration)
            async let loaded = failure(.idleTimeout) { try await session.data(from: origin.url("/page")) }
            await answered.wait()
            for _ in 0..<8 { clock.advance(by: .seconds(10)) }
            _ = await loaded
            origin.releaseStalls()
            await expectEmpty(session)
        }
    }
}

extension ProtocolClient {
    /// The text that `next` gives for another path of the same server.
    fileprivate func text(_ path: String, like request: Request, sending count: Int? = nil) async throws -> String {
        var other = Request(url: try #require(URL(string: path, relativeTo: request.url)?.absoluteURL))
        if let count { (other.method, other.body) = (.post, .data(Data(count: count))) }
        return String(decoding: try await next.load(other).body.collect(upTo: 1 << 20), as: UTF8.self)
    }
}

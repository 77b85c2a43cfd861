// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Responses that break rules and have one reading: what a load makes of them, and what must not follow from them.
@Suite(.timeLimit(.minutes(4))) struct TolerantRows {
    private static let lineFeeds = "HTTP/1.1 200 OK\nCache-Control: max-age=600\nContent-Length: 4\n\nhere"
    private static let smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nSet-Cookie: a=b\r\n\r\nbad"

    @Test("the load succeeds, and the response, its metrics and its description name the rule") func succeeds()
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .raw([.bytes(Array(Self.lineFeeds.utf8))]) }
            try await withSession(.ephemeral) { session in
                let task = session.dataTask(Request(url: origin.url())).resumed()
                let data = try await task.value
                #expect(String(decoding: data, as: UTF8.self) == "here")
                let (_, response) = try await session.data(from: origin.url())
                #expect(response.http?.violations.map(\.code) == [.bareLineFeed])
                let metrics = try await task.metrics
                #expect(metrics.transactions.first?.violations.map(\.section) == ["RFC 9112 2.2"])
                #expect("\(metrics.transactions[0])".hasSuffix(", tolerated bareLineFeed"))
                var archive = HTTPArchive()
                archive.add(metrics)
                let text = String(decoding: archive.json, as: UTF8.self)
                #expect(text.contains("bareLineFeed (RFC 9112 2.2)"), "\(text)")
            }
        }
    }

    @Test("the wire tap is told of a violation once, although those of an interim head count for the final one too")
    func toldOnce() async throws {
        let told = Lock<[WireViolation.Code]>([])
        let interim = "HTTP/1.1 103 Early Hints\nLink: </a>\n\n"
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .raw([.bytes(Array((interim + interim).utf8)), .bytes(Array(Self.lineFeeds.utf8))])
            }
            let configuration = Configuration.ephemeral.with {
                $0.wireTap = {
                    if case .tolerated(let violation, _) = $0 { told.withLock { $0.append(violation.code) } }
                }
            }
            try await withSession(configuration) { session in
                let (_, response) = try await session.data(from: origin.url())
                #expect(response.http?.violations.map(\.code) == [.bareLineFeed])
            }
        }
        #expect(told.withLock(\.self) == [.bareLineFeed])
    }

    @Test("by the strict setting the load fails as before") func strict() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .raw([.bytes(Array(Self.lineFeeds.utf8))]) }
            try await withSession(Configuration.ephemeral.with { $0.strictness = .strict }) { session in
                await expectFailure(.bareLineFeed, .remote, .waiting) { try await session.data(from: origin.url()) }
            }
        }
    }

    @Test(
        "a second response behind it reaches no load, in the same segment and later, with and without a proxy",
        arguments: [false, true], [false, true])
    func nothingFollows(isLater: Bool, hasProxy: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/first") { _ in
                let (first, second) = (Array(Self.lineFeeds.utf8), Array(Self.smuggled.utf8))
                return isLater
                    ? .raw([.bytes(first), .pause(.milliseconds(20)), .bytes(second), .pause(.seconds(5))])
                    : .raw([.bytes(first + second), .pause(.seconds(5))])
            }
            origin.route("/next") { _ in .ok("good") }
            func use(_ configuration: Configuration) async throws {
                try await withSession(configuration) { session in
                    for _ in 1...3 {
                        try await session.expect(origin.url("/first"), "here")
                        try await session.expect(origin.url("/next"), "good")
                    }
                    #expect(origin.requests.allSatisfy { $0.headers[.cookie] == nil })
                }
            }
            guard hasProxy else { return try await use(.ephemeral) }
            try await withTestProxy { proxy in
                let address = try proxy.address()
                try await use(Configuration.ephemeral.with { $0.networks.proxyPolicy = .fixed([address]) })
            }
        }
    }

    @Test("it is not stored, and leads no shared fetch") func notStored() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .raw([.bytes(Array(Self.lineFeeds.utf8))]) }
            let cache = ResponseCache(memoryCapacity: 1 << 20)
            let configuration = Configuration.ephemeral.with {
                $0.caching.store = cache
                $0.caching.coalescesIdenticalRequests = true
            }
            try await withSession(configuration) { session in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 1...4 { group.addTask { try await session.expect(origin.url(), "here") } }
                    try await group.waitForAll()
                }
                #expect(cache.cachedResponse(for: Request(url: origin.url())) == nil && cache.memoryUsage == 0)
                #expect(origin.requests.count == 4)
            }
        }
    }

    @Test("its connection becomes no stream") func noStream() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .raw([.bytes(Array(Self.lineFeeds.utf8))]) }
            try await withSession(.ephemeral) { session in
                var decisions = Decisions()
                decisions.response = Decision { _ in .becomeStream }
                let task = session.dataTask(Request(url: origin.url()), decisions: decisions).resumed()
                await expectFailure(.bareLineFeed) { try await task.value }
            }
        }
    }

    @Test("a HEAD with faults removes no stored response") func headRemovesNothing() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                request.method == .head
                    ? .raw([.bytes(Array("HTTP/1.1 200 OK\nContent-Length: 9\n\n".utf8))])
                    : .ok("kept", headers: [.cacheControl: "max-age=600", .etag: "\"a\""])
            }
            try await withSession(
                Configuration.ephemeral.with { $0.caching.store = ResponseCache(memoryCapacity: 1 << 20) }
            ) {
                session in
                try await session.expect(origin.url(), "kept")
                var head = Request(url: origin.url(), method: .head)
                head.cachePolicy = .reload
                _ = try await session.data(for: head)
                try await session.expect(origin.url(), "kept")
                #expect(origin.requests.map(\.method) == [.get, .head])
            }
        }
    }

    private static func raw(_ text: String) -> HTTPTestServer.Response { .raw([.bytes(Array(text.utf8))]) }

    @Test("a 304 with faults is told with the stored body, and changes nothing that is stored")
    func notModified() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                request.headers.contains(.ifNoneMatch)
                    ? Self.raw("HTTP/1.1 304 Not Modified\nCache-Control: max-age=600\nX-New: 1\n\n")
                    : .ok("kept", headers: [.cacheControl: "max-age=60", .etag: "\"a\""])
            }
            _ = try await rig.get()
            rig.clock.advance(100)
            for requests in 2...3 {
                let (data, response) = try await rig.session.data(from: rig.origin.url())
                #expect(data == Data("kept".utf8) && response.http?.headers["X-New"] == "1")
                #expect(response.http?.violations.map(\.code) == [.bareLineFeed])
                #expect(rig.requests == requests)
            }
            #expect(rig.cache.cachedResponse(for: Request(url: rig.origin.url()))?.data == Data("kept".utf8))
        }
    }

    @Test("a 304 of another representation, or a part, removes no stored response if it has faults")
    func removesNothing() async throws {
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                request.headers.contains(.ifNoneMatch)
                    ? Self.raw("HTTP/1.1 304 Not Modified\nETag: \"b\"\n\n")
                    : request.headers["X"] == "first"
                        ? .ok("kept", headers: [.cacheControl: "max-age=60", .etag: "\"a\""])
                        : Self.raw("HTTP/1.1 200 OK\nContent-Length: 3\n\nnew")
            }
            _ = try await rig.get { $0.headers["X"] = "first" }
            rig.clock.advance(100)
            try await rig.expect("/", "200 new -", requests: 3)
            #expect(rig.cache.cachedResponse(for: Request(url: rig.origin.url()))?.data == Data("kept".utf8))
        }
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                switch request.headers[.range] {
                case "bytes=0-1":
                    .init(
                        status: .partialContent,
                        headers: [.contentRange: "bytes 0-1/4", .etag: "\"a\"", .cacheControl: "max-age=60"],
                        body: .bytes(Array("he".utf8)))
                case "bytes=2-":
                    Self.raw(
                        "HTTP/1.1 206 Partial Content\nContent-Range: bytes 2-3/4\nETag: \"a\"\n"
                            + "Content-Length: 2\n\nre")
                default: Self.raw("HTTP/1.1 200 OK\nContent-Length: 3\n\nnew")
                }
            }
            _ = try await rig.get { $0.headers[.range] = "bytes=0-1" }
            let usage = rig.cache.memoryUsage
            #expect(usage > 0)
            try await rig.expect("/", "200 new -", requests: 3)
            #expect(rig.cache.memoryUsage == usage)
        }
    }

    @Test("neither a WebSocket nor a tunnel begins with it") func noUpgrade() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .raw([
                    .bytes(Array("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\n\n".utf8))
                ])
            }
            try await withSession(.ephemeral) { session in
                let socket = session.webSocketTask(origin.url()).resumed()
                await expectFailure(.bareLineFeed) { try await socket.opened }
            }
        }
        try await withHTTPTestServer { proxy in
            proxy.route("*") { _ in .raw([.bytes(Array("HTTP/1.1 200 OK\nA: b\n\n".utf8))]) }
            let address = try Proxy("http://127.0.0.1:\(proxy.port)")
            try await withSession(Configuration.ephemeral.with { $0.networks.proxyPolicy = .fixed([address]) }) {
                session in
                await expectFailure(.bareLineFeed) { try await session.data(from: try url("https://origin.test/")) }
            }
        }
    }

    @Test("HTTP/2: blanks around a value are cut off, and the connection goes on", arguments: ["before", "behind"])
    func blanks(place: String) async throws {
        let fault = try #require(HTTP2Fault.all.first { $0.name == "a value with a blank \(place) it" })
        try await withHTTP2TestServer { server in
            server.route("*") { _ in .ok("ok") }
            server.inject(fault, onConnection: 1)
            try await withSession(.http2) { session in
                let (_, response) = try await session.data(from: server.url("/"))
                #expect(response.http?.violations.map(\.section) == ["RFC 9113 8.2.1"])
                #expect(response.http?.headers.allSatisfy { $0.value.first != " " && $0.value.last != " " } == true)
            }
        }
    }

    @Test("a thousand fields are read") func manyFields() async throws {
        let fields = (1...990).map { "A\($0): b\r\n" }.joined()
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .raw([.bytes(Array("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 4\r\n\r\nhere".utf8))])
            }
            try await withSession(.ephemeral) { session in try await session.expect(origin.url(), "here") }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// Custom handlers: their order, their answers, their ends.
@Suite(.timeLimit(.minutes(4)))
struct HandlerTests {
    struct Stub: ProtocolHandler {
        var scheme = "stub"
        var handle: @Sendable (Request, ProtocolClient) async throws -> ProtocolResponse
        func canHandle(_ request: Request) -> Bool { request.url.scheme == scheme }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            try await handle(request, client)
        }
    }

    static let url = URL(string: "stub://host/path")!

    func session(_ handler: any ProtocolHandler...) -> Session {
        var configuration = Configuration.default
        configuration.handlers = handler
        return Session(configuration)
    }

    @Test("a stub answers through verbs and tasks (checklist 113)")
    func stub() async throws {
        let session = session(
            Stub { request, _ in
                .response(
                    Response(url: request.url, mediaType: MediaType("text/plain"), expectedLength: 5),
                    data: Data("hello".utf8))
            })
        let (data, response) = try await session.data(from: Self.url)
        #expect(String(decoding: data, as: UTF8.self) == "hello" && response.mediaType == MediaType("text/plain"))
        let task = session.dataTask(from: Self.url).resumed()
        try await expect({ try await task.value }, Data("hello".utf8))
        let empty = self.session(Stub { request, _ in .response(Response(url: request.url)) })
        try await expect({ try await empty.data(from: Self.url).0 }, Data())
    }

    @Test("the last registered is asked first, and may forward (checklist 111, 112)")
    func order() async throws {
        func tagging(_ tag: String) -> Stub {
            Stub { request, client in
                let answer = try await client.next.load(request)
                let body = try await answer.body.collect(upTo: 100)
                return .response(answer.response, data: Data(tag.utf8) + body)
            }
        }
        let last = Stub { request, _ in .response(Response(url: request.url), data: Data("!".utf8)) }
        let session = session(last, tagging("a"), tagging("b"))
        try await session.expect(Self.url, "ba!")
        let registration = ProtocolHandlers.register(
            Stub(scheme: "process") { request, _ in
                .response(Response(url: request.url), data: Data("process".utf8))
            })
        let url = URL(string: "process:x")!
        try await session.expect(url, "process")
        registration.cancel()
        await expectFailure(.unsupportedScheme) { try await session.data(from: url) }
    }

    @Test("middleware passes http on, changed and unchanged")
    func middleware() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(request.headers["X-Tag"] ?? "none") }
            origin.route("/large") { _ in .ok(.repeated(count: 3_000_000)) }
            struct Upper: AsyncSequence {
                let body: ResponseBody
                struct Iterator: AsyncIteratorProtocol {
                    var body: ResponseBody.Iterator
                    mutating func next() async throws -> [UInt8]? {
                        try await body.next().map { [UInt8]($0).map { $0 & 0xDF } }
                    }
                }
                func makeAsyncIterator() -> Iterator { Iterator(body: body.makeAsyncIterator()) }
            }
            let session = session(
                Stub(scheme: "http") { request, client in
                    var request = request
                    request.headers["X-Tag"] = "tagged"
                    return try await client.next.load(request)
                },
                Stub(scheme: "http") { request, client in
                    let answer = try await client.next.load(request)
                    return .response(answer.response, body: Upper(body: answer.body))
                })
            try await session.expect(origin.url(), "TAGGED")
            let data = try await session.data(from: origin.url("/large")).0
            #expect(data.count == 3_000_000 && data.allSatisfy { $0 == 0x41 })
            let task = session.dataTask(from: origin.url("/large")).resumed()
            _ = try await task.response
            task.cancel()
            await expectFailure(.cancelled) { try await task.value }
            await expectEmpty(session)
        }
    }

    @Test("a handler that loads its own request with the session is stopped; one whose tasks do so later is not")
    func depth() async throws {
        let place = Watched<Session?>(nil)
        let calling = session(
            Stub { request, _ in
                guard let session = place.value else { throw CancellationError() }
                return .response(Response(url: request.url), data: try await session.data(for: request).0)
            })
        place.change { $0 = calling }
        let error = await failure(.handlerFailed, .local) { try await calling.data(from: Self.url) }
        #expect(error?.detail?.contains("32 deep") == true, "\(error as Any)")

        let (begun, ended) = (Watched(0), Watched(0))
        let following = session(
            Stub { request, _ in
                let number = begun.add()
                _ = Task {
                    // The call has returned when its load has ended.
                    try await ended.wait { $0 >= number }
                    guard number < 40, let session = place.value else { return }
                    _ = try await session.data(for: request)
                    ended.add()
                }
                return .response(Response(url: request.url))
            })
        place.change { $0 = following }
        _ = try await following.data(from: Self.url)
        ended.add()
        try await ended.wait { $0 == 40 }
        place.change { $0 = nil }
    }

    @Test("a handler that throws, never returns or never ends its body (checklist 113)")
    func failures() async throws {
        struct Oops: Error {}
        let throwing = session(Stub { _, _ in throw Oops() })
        let error = await failure(.handlerFailed, .local) { try await throwing.data(from: Self.url) }
        #expect(error?.underlying is Oops)

        let (stuck, release) = AsyncStream.makeStream(of: Void.self)
        let asked = Flag()
        let never = session(
            Stub { request, _ in
                asked.raise()
                // Deaf to its cancellation.
                await Task { for await _ in stuck {} }.value
                return .response(Response(url: request.url))
            })
        let task = never.dataTask(from: Self.url).resumed()
        try await asked.wait()
        never.invalidateAndCancel()
        await expectFailure(.cancelled) { try await task.value }
        await never.invalidated()
        #expect(never.leakedClosures == 1)
        release.finish()
        try await eventuallyNoLeaks(never.leakedClosures)

        struct Endless: AsyncSequence, AsyncIteratorProtocol {
            mutating func next() async -> [UInt8]? { [1, 2, 3] }
            func makeAsyncIterator() -> Endless { self }
        }
        let endless = session(Stub { request, _ in .response(Response(url: request.url), body: Endless()) })
        let first = try await endless.load(Request(url: Self.url)) { _, body in
            for try await chunk in body { return chunk.count }
            return 0
        }
        #expect(first == 3)
    }

    @Test("handlers behind handlers that never return do not hold the load", arguments: [false, true])
    func nested(_ inBody: Bool) async throws {
        let (stuck, release) = AsyncStream.makeStream(of: [UInt8].self)
        let asked = Flag()
        struct Deaf: AsyncSequence, AsyncIteratorProtocol {
            let stuck: AsyncStream<[UInt8]>, asked: Flag
            mutating func next() async -> [UInt8]? {
                let stuck = stuck
                asked.raise()
                await Task { for await _ in stuck {} }.value
                return nil
            }
            func makeAsyncIterator() -> Deaf { self }
        }
        struct Passing: AsyncSequence {
            let body: ResponseBody
            func makeAsyncIterator() -> ResponseBody.Iterator { body.makeAsyncIterator() }
        }
        let session = session(
            Stub { request, _ in
                if !inBody {
                    asked.raise()
                    _ = await Task { for await _ in stuck {} }.value
                }
                return .response(Response(url: request.url), body: Deaf(stuck: stuck, asked: asked))
            },
            Stub { request, client in
                let answer = try await client.next.load(request)
                return .response(answer.response, body: Passing(body: answer.body))
            })
        let task = session.dataTask(from: Self.url).resumed()
        if inBody { _ = try await task.response }
        try await asked.wait()
        task.cancel()
        await expectFailure(.cancelled) { try await task.value }
        await expectEmpty(session)
        #expect(session.leakedClosures > 0)
        release.finish()
        try await eventuallyNoLeaks(session.leakedClosures)
    }

    @Test("a redirect of a handler is decided upon; file and data are out of reach (security 58)")
    func redirect() async throws {
        let session = session(
            Stub { request, _ in
                guard request.url.path() == "/path" else {
                    return .response(Response(url: request.url), data: Data("there".utf8))
                }
                return .redirect(Response(url: request.url), to: Request(url: URL(string: "stub://host/there")!))
            },
            Stub(scheme: "evil") { request, _ in
                .redirect(Response(url: request.url), to: Request(url: URL(string: "file:///etc/passwd")!))
            })
        try await session.expect(Self.url, "there")
        await expectFailure(.redirectRefused) { try await session.data(from: URL(string: "evil:x")!) }
        var decisions = Decisions()
        decisions.redirect = Decision { _ in .cancel }
        await expectFailure(.cancelled) { try await session.data(for: Request(url: Self.url), decisions: decisions) }
    }

    @Test("a canonical form is reported, properties are kept, challenges are decided (checklist 114-117)")
    func canonical() async throws {
        enum Tenant: PropertyKey { typealias Value = String }
        struct Canonical: ProtocolHandler {
            func canHandle(_ request: Request) -> Bool { request.url.scheme == "stub" }
            func canonical(_ request: Request) -> Request? {
                guard request.url.path() == "" else { return nil }
                var request = request
                request.url = URL(string: "stub://host/")!
                request.properties[Tenant.self] = "north"
                return request
            }
            func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
                let space = ProtectionSpace(host: "host", port: 1, scheme: "stub", method: "Password")
                guard case .use(let credential) = try await client.decide(Challenge(protectionSpace: space)) else {
                    throw LoadError.cancelledByHandler(request)
                }
                var response = Response(url: request.url)
                response.properties[Tenant.self] = request.properties[Tenant.self]
                response.storagePolicy = .notAllowed
                return .response(response, data: Data(credential.user.utf8))
            }
        }
        let session = session(Canonical())
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            .use(Credential(user: "me at \(challenge.protectionSpace.host)", password: "secret"))
        }
        let task = session.dataTask(Request(url: URL(string: "stub://host")!), decisions: decisions)
        let events = task.events
        task.resume()
        try await expect({ String(decoding: try await task.value, as: UTF8.self) }, "me at host")
        let response = try await task.response
        #expect(response.url.absoluteString == "stub://host/")
        #expect(response.properties[Tenant.self] == "north" && response.storagePolicy == .notAllowed)
        var order = LoadEventOrder()
        for await event in events { _ = order.accept(event) }
        #expect("\(order)" == "canonicalized challenged responded received metrics completed")
    }
}

extension LoadError {
    static func cancelledByHandler(_ request: Request) -> any Error { CancellationError() }
}

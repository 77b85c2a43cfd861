// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// How a WebSocket is opened, which is that of any load, and abandoned at every point.
@Suite(.timeLimit(.minutes(4)))
struct WebSocketOpeningTests {
    @Test("the handshake is that of RFC 6455") func theHandshakeIsThatOfRFC6455() async throws {
        try await withHTTPTestServer { origin in
            var server = WebSocketTestServer.echo
            server.subprotocols = ["b", "c"]
            origin.webSocket("/chat", server)
            let session = Session(.patient)
            var request = Request(url: origin.webSocketURL("/chat?room=1"))
            request.headers["Origin"] = "https://page.example"
            // The library's own to write.
            request.headers[.secWebSocketKey] = "mine"
            request.headers[.connection] = "close"
            var keys: Set<String> = []
            for _ in 0..<2 {
                let socket = session.webSocketTask(request, protocols: ["a", "b", "c"]).resumed()
                let opening = try await socket.opened
                #expect(opening.subprotocol == "b")
                await socket.close()
            }
            for seen in origin.requests {
                #expect(seen.target == "/chat?room=1" && seen.method == .get)
                #expect(seen.headers["Origin"] == "https://page.example" && seen.headers[.secWebSocketVersion] == "13")
                #expect(
                    seen.headers[.secWebSocketProtocol] == "a, b, c" && seen.headers[.secWebSocketExtensions] == nil)
                #expect(seen.headers[.upgrade] == "websocket" && seen.headers.values(of: .connection) == ["Upgrade"])
                let values = seen.headers.values(of: .secWebSocketKey)
                #expect(values.count == 1 && Data(base64Encoded: values[0])?.count == 16)
                keys.formUnion(values)
            }
            #expect(keys.count == 2)
            await expectEmpty(session)
        }
    }

    /// Security 70.
    @Test("redirects are followed to WebSocket and http URLs only") func redirectsAreFollowedWithinTheFamilyAlone()
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.webSocket("/here", .echo)
            let target = Lock("")
            origin.route("/there") { _ in .redirect(target.withLock { $0 }) }
            let session = Session(.patient)
            for location in ["/here", origin.webSocketURL("/here").absoluteString, origin.url("/here").absoluteString] {
                target.withLock { $0 = location }
                let socket = session.webSocketTask(origin.webSocketURL("/there")).resumed()
                let opening = try await socket.opened
                #expect(opening.response.url == origin.url("/here") && "\(opening.response)" == "HTTP/1.1 101")
                try await socket.expectEcho(.text("x"))
                await socket.close()
            }
            let keys = origin.requests.compactMap { $0.headers[.secWebSocketKey] }
            #expect(keys.count == 6 && Set(keys).count == 6)
            for location in ["ftp://127.0.0.1/", "file:///etc/passwd", "data:,x"] {
                target.withLock { $0 = location }
                let socket = session.webSocketTask(origin.webSocketURL("/there")).resumed()
                await expectFailure(.redirectRefused, nil, nil, location) { try await socket.opened }
            }
            await expectEmpty(session)
        }
    }

    @Test("a response other than 101 is a refusal") func anythingElseThan101IsARefusal() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.forbidden, headers: ["X": "why"], body: .bytes(Array("no".utf8))) }
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            let error = await failure(.webSocketRefused, .remote, .waiting) { try await socket.opened }
            #expect(
                error?.webSocketRefusal?.http?.status == .forbidden
                    && error?.webSocketRefusal?.http?.headers["X"] == "why")
            #expect(error?.url == origin.webSocketURL("/"))
            await expectFailure(.webSocketRefused) { try await socket.receive() }
            await expectFailure(.webSocketRefused) { try await socket.send(.text("")) }
            await expectEmpty(session)
        }
    }

    @Test("authentication challenges are answered") func challengesAreAnswered() async throws {
        try await withHTTPTestServer { origin in
            let seen = Lock(0)
            origin.webSocket("/in", .echo)
            origin.route("/") { request in
                seen.withLock { $0 += 1 }
                guard request.headers[.authorization] != nil else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"zone\""])
                }
                return .redirect("/in")
            }
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "secret")) }
            let session = Session(.patient)
            let socket = session.webSocketTask(Request(url: origin.webSocketURL("/")), decisions: decisions).resumed()
            _ = try await socket.opened
            #expect(seen.withLock { $0 } == 2)
            await socket.close()
            await expectEmpty(session)
        }
    }

    @Test("a proxy only tunnels") func aProxyOnlyCarries() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            try await withTestProxy(.init(.http)) { proxy in
                let session = try Session(.patient.with { $0.networks.proxyPolicy = .fixed([try proxy.address()]) })
                let socket = session.webSocketTask(try url("ws://origin.test:\(origin.port)/")).resumed()
                try await socket.expectEcho(.text("through"))
                #expect(proxy.requests.map(\.method) == ["CONNECT"])
                await socket.close()
                await expectEmpty(session)
            }
        }
    }

    @Test func `a proxy with connection-level authentication is authenticated to once, then tunnels`() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            try await withNTLMProxy { gate, _, configuration in
                let session = Session(
                    configuration,
                    decisions: .challenged(ChallengeLog()) { _ in .use(Credential(user: "ada", password: "s3cret")) })
                for _ in 0..<2 {
                    let socket = session.webSocketTask(try url("ws://origin.test:\(origin.port)/")).resumed()
                    try await socket.expectEcho(.text("through"))
                    await socket.close()
                }
                #expect(gate.seen == ["1 -", "1 negotiate", "1 authenticate ada", "2 negotiate", "2 authenticate ada"])
                await expectEmpty(session)
            }
        }
    }

    @Test("an invalid WebSocket request fails at once") func anInvalidWebSocketRequestFailsAtOnce() async throws {
        let session = Session(.patient)
        func refused(_ reason: LoadError.Reason, _ request: Request, _ protocols: [String] = []) async {
            let socket = session.webSocketTask(request, protocols: protocols).resumed()
            await expectFailure(reason, .local, .preparing) { try await socket.opened }
            #expect(await socket.ended().error?.reason == reason)
        }
        await refused(.unsupportedScheme, Request(url: try url("ftp://a.test/")))
        await refused(.badRequest, Request(url: try url("ws://a.test/"), method: .post))
        await refused(LoadError.Reason.malformedWebSocketHandshake, Request(url: try url("ws://a.test/")), ["no token"])
        await refused(LoadError.Reason.malformedWebSocketHandshake, Request(url: try url("ws://a.test/")), ["a", "a"])
        await expectFailure(.unsupportedScheme, .local) { try await session.data(from: try url("ws://a.test/")) }
        await expectEmpty(session)
        await refused(.sessionInvalidated, Request(url: try url("ws://a.test/")))
    }

    // MARK: Left at every point

    enum Leaving: CaseIterable, Sendable {
        case cancel, invalidate, drop

        /// Begins one of the calls of a socket that wait; `nil` for number 0.
        static func call(_ number: Int, of socket: WebSocketTask?) -> Task<Void, any Error>? {
            guard let socket else { return nil }
            return switch number {
            case 0: nil
            case 1: Task { while true { _ = try await socket.receive() } }
            // More than any socket takes, to a server that may read none of it.
            case 2: Task { try await socket.send(.data(Data(count: 32 << 20))) }
            default: Task { _ = try await socket.ping(timeout: .seconds(600)) }
            }
        }

        /// Abandons a socket and its call, and returns once the call has ended.
        func leave(
            _ socket: inout WebSocketTask?, _ call: Task<Void, any Error>?, _ session: Session
        ) async {
            switch self {
            case .cancel: socket?.cancel()
            case .invalidate: session.invalidateAndCancel()
            case .drop:
                socket = nil
                call?.cancel()
            }
            _ = await call?.result
        }
    }

    @Test("a WebSocket abandoned during any call leaves no connection", arguments: Leaving.allCases)
    func aWebSocketAbandonedDuringAnyCallLeavesNoConnection(_ leaving: Leaving) async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            origin.webSocket("/silent") { socket in try await socket.stall() }
            origin.route("/late", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            for path in ["/late", "/silent", "/"] {
                for inside in 0..<4 {
                    let session = Session(.patient)
                    var socket: WebSocketTask? = session.webSocketTask(origin.webSocketURL(path))
                    let load = try #require(socket?.load)
                    socket?.resume()
                    if path != "/late" { _ = try await socket?.opened }
                    let call = Leaving.call(inside, of: socket)
                    if path == "/late" { try await origin.wait { $0.stalled == 1 } }
                    await pause()
                    await leaving.leave(&socket, call, session)
                    if leaving != .drop { #expect(await socket?.ended().error?.reason == .cancelled) }
                    socket = nil
                    await load.over()
                    await expectEmpty(session, "\(path) \(inside)")
                    // Behind what it does not read it cannot hear that the client has left.
                    origin.releaseStalls()
                    try await origin.wait { $0.open == 0 }
                }
            }
        }
    }

    @Test("a session that finishes waits for its WebSockets") func aSessionThatFinishesWaitsForItsSockets() async throws
    {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            _ = try await socket.opened
            session.finishTasksAndInvalidate()
            try await socket.expectEcho(.text("still"))
            await socket.close()
            await session.invalidated()
            #expect(session.connectionsDescription == "empty")
        }
    }

    @Test("the events are those of a load") func itsEventsAreThoseOfALoad() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            let observer = EventRecorder()
            let session = Session(.patient.with { $0.observers = [observer] })
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            _ = try await socket.opened
            await socket.close()
            let words = (observer.loads.first?.events ?? []).map { "\($0)" }.map { String($0.prefix { $0 != " " }) }
            #expect(words == ["responded", "metrics", "completed"])
            await expectEmpty(session)
        }
    }
}

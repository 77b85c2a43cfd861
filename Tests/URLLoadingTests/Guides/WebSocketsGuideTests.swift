// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/websockets.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct WebSocketsGuideTests {
    @Test("a scope, with a ping")
    func scope() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/echo", .echo)
            let session = Session(.ephemeral)
            let url = origin.url("/echo")
            let answer = try await session.webSocket(Request(url: url)) { socket in
                try await socket.send(.text("hello"))
                let time = try await socket.ping(timeout: .seconds(60))
                #expect(time > .zero)
                return try await socket.receive()
            }
            #expect(answer == .text("hello"))
            session.invalidateAndCancel()
            await session.invalidated()
        }
    }

    private static func counting() -> WebSocketTestServer {
        var server = WebSocketTestServer { socket in
            // A server that closes at once might do so before the client has sent anything.
            _ = try await socket.receive()
            for number in 1...3 { try await socket.send(.text("\(number)")) }
            try await socket.close(WebSocketClose(.internalError))
            _ = try await socket.untilClose()
        }
        server.subprotocols = ["chat.v1"]
        return server
    }

    @Test("a handle, its messages, its end")
    func handle() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/count", Self.counting())
            let session = Session(.ephemeral)
            let url = origin.url("/count")
            let socket = session.webSocketTask(url, protocols: ["chat.v2", "chat.v1"])
            socket.resume()
            let opening = try await socket.opened
            #expect(opening.subprotocol == "chat.v1")
            let heard = await Self.listen(socket)
            #expect(heard == [.text("1"), .text("2"), .text("3")])
            let ending = await socket.close(WebSocketClose(.normal, reason: "done"))
            #expect(ending.isClosedByServer)
            session.invalidateAndCancel()
            await session.invalidated()
        }
    }

    @Test("a chat notices that its server has gone while no line is typed")
    func chat() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/count", Self.counting())
            try await withSession(.ephemeral) { session in
                let (typed, keys) = AsyncStream.makeStream(of: String.self)
                keys.yield("hello")
                let socket = session.webSocketTask(origin.url("/count"))
                socket.resume()
                let error = await #expect(throws: LoadError.self) {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        group.addTask { for try await _ in socket.messages {} }
                        group.addTask {
                            for await line in typed { try await socket.send(.text(line)) }
                            _ = await socket.close(WebSocketClose(.normal, reason: "done"))
                        }
                        defer { group.cancelAll() }
                        try await group.next()
                    }
                }
                #expect(error?.webSocketClose?.code == .internalError)
            }
        }
    }

    @Test("over HTTP/2")
    func http2() async throws {
        var configuration = HTTP2TestServer.Configuration()
        configuration.settings.append(.enableConnectProtocol(1))
        try await withHTTP2TestServer(configuration) { server in
            server.webSocket("/echo", .echo)
            try await withSession(.http2) { session in
                let answer = try await session.webSocket(Request(url: server.url("/echo"))) { socket in
                    let opening = try await socket.opened
                    #expect(opening.response.http?.version == .http2)
                    try await socket.send(.text("hello"))
                    return try await socket.receive()
                }
                #expect(answer == .text("hello"))
            }
        }
    }

    private static func listen(_ socket: WebSocketTask) async -> [WebSocketMessage] {
        var heard: [WebSocketMessage] = []
        do {
            try await socket.send(.data(Data([1, 2, 3])))
            for try await message in socket.messages { heard.append(message) }
        } catch  where error.reason == .webSocketClosed {
            #expect(error.webSocketClose?.code == .internalError)
        } catch {
            Issue.record("\(error)")
        }
        return heard
    }
}

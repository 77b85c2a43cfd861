// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// WebSockets with other servers: Python's websockets, wsproto, and hypercorn for RFC 8441.
@Suite(.enabled(if: Servers.variable("WEBSOCKETS") != nil, Servers.areMissing), .timeLimit(.minutes(4)))
struct WebSocketTests {
    private static let servers = ["WEBSOCKETS", "WSPROTO", "HYPERCORN", "HYPERCORN_H2C"]

    private static let samples: [WebSocketMessage] = [
        .text(""), .data(Data()), .text("grüße, 世界, 👋"), .data(Data(repeating: 7, count: 125)),
        .data(Data(repeating: 7, count: 126)),
        .text(String(repeating: "x", count: 65_536)),
        .data(Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })),
    ]

    private static func options(_ isCompressed: Bool) -> WebSocketOptions {
        var options = WebSocketOptions()
        if isCompressed { options.compression = .deflate(minimumSize: 1) }
        return options
    }

    @Test(arguments: servers, [false, true])
    func `Sent messages come back`(_ server: String, _ isCompressed: Bool) async throws {
        try await withSession(Servers.configuration) { session in
            let socket = session.webSocketTask(try Servers.url(server, "/"), options: Self.options(isCompressed))
                .resumed()
            let opening = try await socket.opened
            #expect(opening.isCompressed == isCompressed)
            for message in Self.samples {
                let sending = Task { try await socket.send(message) }
                let answer = try await socket.receive()
                #expect(answer == message)
                try await sending.value
            }
            try await socket.ping()
            let ending = await socket.close()
            #expect(ending.error == nil && ending.close?.code == .normal, "\(ending)")
        }
    }

    @Test func `Messages, pings and closes of websockets are received`() async throws {
        try await withSession(Servers.configuration) { session in
            let chat = session.webSocketTask(
                Request(url: try Servers.url("WEBSOCKETS", "/")), protocols: ["chat.v3", "chat.v2"])
            chat.resume()
            let opening = try await chat.opened
            #expect(opening.subprotocol == "chat.v2")
            await chat.close()

            let counting = session.webSocketTask(try Servers.url("WEBSOCKETS", "/count")).resumed()
            var heard: [WebSocketMessage] = []
            for try await message in counting.messages { heard.append(message) }
            #expect(heard == [.text("1"), .text("2"), .text("3")])

            let asked = session.webSocketTask(try Servers.url("WEBSOCKETS", "/ping")).resumed()
            let answer = try await asked.receive()
            #expect(answer == .text("answered"))

            let left = session.webSocketTask(try Servers.url("WEBSOCKETS", "/leave")).resumed()
            let error = await #expect(throws: LoadError.self) { try await left.receive() }
            #expect(
                error?.reason == .webSocketClosed && error?.webSocketClose?.reason == "as said"
                    && error?.webSocketClose?.code.rawValue == 4000)
        }
    }

    // MARK: RFC 8441

    @Test func `A WebSocket uses an existing connection of HTTP/2 by ALPN, and a new one for HTTP/1.1`() async throws {
        try await withSession(Servers.configuration) { session in
            for version in ["1.1", "2"] {
                let socket = session.webSocketTask(try Servers.url("HYPERCORN", "/")).resumed()
                let opening = try await socket.opened
                #expect(opening.response.http?.headers["x-version"] == version)
                try await socket.send(.text(version))
                let answer = try await socket.receive()
                #expect(answer == .text(version))
                await socket.close()
                let (data, response) = try await session.data(from: try Servers.url("HYPERCORN", "/"))
                #expect(data == Data("here".utf8) && response.http?.version == .http2)
            }
        }
    }

    @Test func `Many WebSockets and loads share a connection`() async throws {
        var configuration = Servers.configuration
        configuration.connections.httpVersions = .http2PriorKnowledge
        try await withSession(configuration) { session in
            let target = try Servers.url("HYPERCORN_H2C", "/")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let socket = session.webSocketTask(target).resumed()
                        for round in 0..<20 {
                            let message = WebSocketMessage.text("\(number) \(round)")
                            let answer = try await socket.echo(of: message)
                            #expect(answer == message)
                            let (data, _) = try await session.data(from: target)
                            #expect(data == Data("here".utf8))
                        }
                        await socket.close()
                    }
                }
                try await group.waitForAll()
            }
            #expect(session.connectionsDescription.contains("h2"), "\(session.connectionsDescription)")
        }
    }

    @Test func `A refused handshake and a close by the server are reported`() async throws {
        var configuration = Servers.configuration
        configuration.connections.httpVersions = .http2PriorKnowledge
        try await withSession(configuration) { session in
            let refused = session.webSocketTask(try Servers.url("HYPERCORN_H2C", "/closed")).resumed()
            let refusal = await #expect(throws: LoadError.self) { try await refused.opened }
            #expect(refusal?.reason == .webSocketRefused && refusal?.webSocketRefusal?.http?.status == .forbidden)
            let left = session.webSocketTask(try Servers.url("HYPERCORN_H2C", "/")).resumed()
            try await left.send(.text("leave"))
            let ending = await #expect(throws: LoadError.self) { try await left.receive() }
            #expect(ending?.webSocketClose?.code.rawValue == 4000)
        }
    }
}

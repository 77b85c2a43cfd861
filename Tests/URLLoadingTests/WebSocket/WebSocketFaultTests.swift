// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

@Suite(.timeLimit(.minutes(4)))
struct WebSocketFaultTests {
    @Test("the client fails the connection on a faulty frame and sends the reason", arguments: WebSocketFault.all)
    func theClientFailsAndSaysWhy(_ fault: WebSocketFault) async throws {
        try await withHTTPTestServer { origin in
            let heard = Lock<WebSocketClose?>(nil)
            origin.webSocket("/", fault.server { close in heard.withLock { $0 = close } })
            let session = Session(.patient)
            var options = WebSocketOptions()
            if fault.needsCompression { options.compression = .deflate() }
            let socket = session.webSocketTask(origin.webSocketURL("/"), options: options).resumed()
            await expectFailure(fault.reason, .remote, nil, fault.name) {
                while true { _ = try await socket.receive() }
            }
            let ending = await socket.ended()
            #expect(ending.error?.reason == fault.reason, "\(fault): \(ending)")
            try await origin.wait { $0.open == 0 }
            #expect(heard.withLock { $0?.code } == fault.code, "\(fault)")
            await expectEmpty(session)
        }
    }

    @Test("a ping that was sent before the server's close frame was read does not break the server's connection")
    func pingBesideClose() async throws {
        try await withHTTPTestServer { origin in
            let heard = Lock<WebSocketClose?>(nil)
            origin.webSocket("/") { socket in
                try await socket.close(WebSocketClose(.normal))
                let close = try await socket.untilClose()
                heard.withLock { $0 = close }
            }
            let peer = StreamPeer(
                try await SocketTransport.connect(to: .ipv4((127, 0, 0, 1), port: origin.port), StopToken()))
            try await peer.send(
                "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            // Up to the close frame: the head has no such byte.
            var answer: [UInt8] = []
            while !answer.contains(0x88), case let more = try await peer.receive(atOnce: true), !more.isEmpty {
                answer += more
            }
            // A ping, and a close frame with 1000.
            try await peer.send([0x89, 0x80, 0, 0, 0, 0, 0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8])
            peer.finish()
            try await origin.wait { $0.open == 0 }
            #expect(heard.withLock { $0?.code } == .normal)
            peer.close()
        }
    }

    @Test("a wrong handshake response opens no WebSocket", arguments: WebSocketHandshakeFault.allCases)
    func aWrongAnswerOpensNothing(_ fault: WebSocketHandshakeFault) async throws {
        try await withHTTPTestServer { origin in
            var server = WebSocketTestServer.echo
            server.handshakeFault = fault
            origin.webSocket("/", server)
            let session = Session(.patient)
            var options = WebSocketOptions()
            options.compression = .deflate()
            let socket = session.webSocketTask(origin.webSocketURL("/"), protocols: ["a", "b"], options: options)
                .resumed()
            let reason: LoadError.Reason =
                switch fault {
                case .statusOK: .webSocketRefused
                case .oldVersion: .unexpectedUpgrade
                case .endsInHead: .truncated
                case .endsBeforeHead: .connectionLost
                default: .malformedWebSocketHandshake
                }
            await expectFailure(reason, .remote, nil, fault.rawValue) { try await socket.opened }
            #expect(await socket.ended().error?.reason == reason)
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a text message may be fragmented at any byte") func textMayBeCutAnywhere() async throws {
        let text = "aé€😀\u{10FFFF}z"
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                for size in 1...text.utf8.count { try await socket.send(.text(text), frameSize: size) }
                // Between any two bytes of the stream as well.
                let bytes = Array(text.utf8)
                for byte in [0x81, UInt8(bytes.count)] + bytes { try await socket.send(bytes: [byte]) }
                try await socket.close(nil)
                _ = try await socket.untilClose()
            }
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            var count = 0
            for try await message in socket.messages {
                #expect(message == .text(text))
                count += 1
            }
            #expect(count == text.utf8.count + 1)
            await expectEmpty(session)
        }
    }

    /// Security 69.
    @Test("endless pings are answered with bounded memory") func pingsWithoutEndAreAnsweredBoundedly() async throws {
        try await withHTTPTestServer { origin in
            let pongs = Lock(0)
            origin.webSocket("/") { socket in
                let pings = (0..<1_000).flatMap { _ in [UInt8(0x89), 125] + [UInt8](repeating: 1, count: 125) }
                for _ in 0..<100 { try await socket.send(bytes: pings) }
                try await socket.send(.text("still here"))
                _ = try await socket.receive()
                pongs.withLock { $0 = socket.pongs.count }
            }
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            try await expect({ try await socket.receive() }, .text("still here"))
            #expect(socket.load.output != nil)
            try await socket.send(.text("thanks"))
            _ = await socket.ended()
            #expect(pongs.withLock { $0 } < 50_000)
            await expectEmpty(session)
        }
    }

    @Test("a server that never answers a close is left after a timeout")
    func aServerThatNeverAnswersACloseIsLeftAfterATimeout()
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in try await socket.stall() }
            let session = Session(.patient)
            var options = WebSocketOptions()
            options.closeTimeout = .milliseconds(50)
            let socket = session.webSocketTask(origin.webSocketURL("/"), options: options).resumed()
            _ = try await socket.opened
            let ending = await socket.close()
            #expect(ending.error?.reason == .closeTimeout)
            #expect(ending.error?.detail == "no answer within \(Duration.milliseconds(50))")
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Rows of the lists that sockets have to keep like any load: docs/internals/websockets-and-ftp.md.
@Suite(.timeLimit(.minutes(4)))
struct WebSocketRows {
    @Test("cookies: those of the server go with the handshake, and what it sets on 101 is kept")
    func cookies() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            origin.route("/set") { _ in .status(.ok, headers: [.setCookie: "a=1; Path=/"], body: .bytes([])) }
            let session = Session(.patient)
            _ = try await session.data(from: origin.url("/set"))
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            _ = try await socket.opened
            await socket.close()
            #expect(origin.requests.last?.headers[.cookie] == "a=1")
            // A caller's own Cookie field is sent instead.
            var request = Request(url: origin.webSocketURL("/"))
            request.headers[.cookie] = "b=2"
            let other = session.webSocketTask(request).resumed()
            _ = try await other.opened
            await other.close()
            #expect(origin.requests.last?.headers[.cookie] == "b=2")
            await expectEmpty(session)
        }
    }

    @Test("a kept connection that turns out to be closed costs another, and nothing else")
    func stale() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            origin.route("/first") { _ in .ok("1") }
            let session = Session(.patient)
            try await session.expect(origin.url("/first"), "1")
            origin.inject(.init(.requestHead, .reset), onConnection: 1)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            try await socket.expectEcho(.text("x"))
            await socket.close()
            let keys = origin.requests.compactMap { $0.headers[.secWebSocketKey] }
            #expect(origin.counts.accepted == 2 && Set(keys).count == keys.count)
            await expectEmpty(session)
        }
    }

    @Test("a load that waits for a network opens when there is one")
    func waits() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            let rig = ConnectivityRows.Rig()
            let socket = rig.session.webSocketTask(try url("ws://name.example:\(origin.port)/")).resumed()
            try await rig.untilWaiting()
            #expect(origin.counts.accepted == 0)
            rig.network.goUp()
            _ = try await socket.opened
            await socket.close()
            await expectEmpty(rig.session)
        }
    }

    // MARK: Security 67

    @Test("masks are of 32 bits, and no two alike but by chance")
    func masks() throws {
        let masks = WebSocketMasks()
        var seen: Set<UInt32> = []
        var ones = 0
        for _ in 0..<20_000 {
            let mask = try masks.next()
            seen.insert(mask)
            ones += mask.nonzeroBitCount
        }
        // By chance one in twenty pairs of runs has a single one twice.
        #expect(seen.count >= 19_990)
        #expect((0.49...0.51).contains(Double(ones) / Double(20_000 * 32)))
    }

    @Test("each frame on the wire has a mask of its own, whatever it says")
    func masksOnTheWire() async throws {
        var configuration = HTTP2TestServer.Configuration()
        configuration.settings.append(.enableConnectProtocol(1))
        try await withHTTP2(configuration) { server, session in
            server.webSocket("/", .echo)
            let socket = session.webSocketTask(server.url("/")).resumed()
            for _ in 0..<200 {
                try await socket.send(.text("aaaa"))
                _ = try await socket.receive()
            }
            await socket.close()
            let frames = server.frames.map(\.frame).filter { $0.kind == .data && $0.payload.first == 0x81 }
            let masks = Set(frames.map { Array($0.payload[2..<6]) })
            let contents = Set(frames.map { Array($0.payload[6...]) })
            #expect(frames.count == 200 && masks.count >= 199 && contents.count >= 199)
            #expect(frames.allSatisfy { $0.payload[1] == 0x84 })
        }
    }

    // MARK: Security 68: bombs

    @Test(
        "a message that grows beyond the limit ends where it does, in one frame or in many, with little memory",
        arguments: [1, 64])
    func bombs(frames: Int) async throws {
        try await withHTTPTestServer { origin in
            var server = WebSocketTestServer { socket in
                let size = frames == 1 ? Int.max : 1024
                try? await socket.send(.data(Data(count: 64 << 20)), frameSize: size)
                _ = try await socket.untilClose()
            }
            server.compresses = true
            origin.webSocket("/", server)
            let session = Session(.patient)
            var options = WebSocketOptions()
            options.compression = .deflate()
            options.maximumMessageSize = 1 << 20
            let socket = session.webSocketTask(origin.webSocketURL("/"), options: options).resumed()
            await expectFailure(.messageTooLarge, .remote) { try await socket.receive() }
            let count = socket.load.receivedCount.load(ordering: .relaxed)
            #expect(count < 1 << 20)
            await expectEmpty(session)
        }
    }
}

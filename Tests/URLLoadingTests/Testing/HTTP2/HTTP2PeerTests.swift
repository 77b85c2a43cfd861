// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HTTP2PeerTests {
    @Test("a script, frame by frame, from both sides")
    func script() async throws {
        try await withHTTP2TestServer { server in
            server.script { peer in
                let theirs = try await peer.start(.maxConcurrentStreams(7))
                #expect(theirs == [.enablePush(0)])
                let request = try await peer.expectRequest()
                #expect(request.path == "/a" && request.method == "GET" && request.endStream && request.stream == 1)
                try await peer.respond(to: 1, .ok, ["X-A": "b"], body: Array("hello".utf8), trailers: ["sum": "5"])
                try await peer.ping()
                let goAway = try await peer.expect(.goAway)
                #expect(goAway.errorCode == .noError)
            }
            let client = try await RawHTTP2Client(server)
            try await client.start(.enablePush(0))
            try await client.get("/a")
            let answer = try await client.answer()
            #expect(answer.heads == [[":status": "200", "x-a": "b"], ["sum": "5"]] && answer.text == "hello")
            let ping = try await client.receive(.ping)
            try await client.send(.ping(ping.payload, ack: true), .goAway(last: 0))
            #expect(await client.receive() == nil)
            try await server.wait { $0.scriptsEnded == 1 && $0.open == 0 }
            #expect(server.failures.isEmpty)
            let kinds = server.frames.map(\.frame.kind).filter { $0 != .windowUpdate }
            #expect(kinds == [.settings, .settings, .headers, .ping, .goAway])
            #expect(server.frames[2].fields?[":path"] == "/a")
        }
    }

    @Test("a body waits for the client's windows, and ends when the client resets")
    func windows() async throws {
        try await withHTTP2TestServer { server in
            server.script { peer in
                let request = try await peer.acceptRequest()
                try await peer.respond(to: request.stream, body: [UInt8](repeating: 1, count: 100_000))
                let second = try await peer.expectRequest()
                await #expect(throws: HTTP2Peer.Failure.streamReset(.cancel)) {
                    try await peer.respond(to: second.stream, body: [UInt8](repeating: 1, count: 1_000_000))
                }
                await peer.untilClosed()
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.get("/")
            let answer = try await client.answer()
            #expect(answer.body.count == 100_000)
            try await client.get("/", stream: 3)
            _ = try await client.receive(.data)
            try await client.send(.resetStream(3, .cancel))
            try await client.send(.ping())
            client.close()
            try await server.wait { $0.scriptsEnded == 1 }
            #expect(server.failures.isEmpty)
        }
    }

    @Test("one task sends a body while another receives frames and answers them")
    func twoTasks() async throws {
        try await withHTTP2TestServer { server in
            let body = bytes(1 << 20)
            server.script { peer in
                let request = try await peer.acceptRequest()
                async let sent: Void = peer.respond(to: request.stream, body: body)
                _ = try await peer.expect(.goAway, timeout: .seconds(180))
                try await sent
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.get()
            // Both tasks of the script wait for input whenever the windows are used up.
            var received: [UInt8] = []
            while received.count < body.count, let frame = await client.receive() {
                guard frame.kind == .data else { continue }
                received += frame.content ?? []
                let count = frame.payload.count
                try await client.send(.ping(), .windowUpdate(count), .windowUpdate(stream: 1, count))
            }
            #expect(received == body)
            try await client.send(.goAway(last: 0))
            try await server.wait { $0.scriptsEnded == 1 }
            #expect(server.failures.isEmpty)
        }
    }

    @Test("frames of two tasks do not mix, although the socket takes a frame in parts")
    func twoSenders() async throws {
        try await withHTTP2TestServer { server in
            let size = 16 << 20
            let pings = 100
            server.script { peer in
                let request = try await peer.acceptRequest()
                async let sent: Void = peer.respond(to: request.stream, body: [UInt8](repeating: 1, count: size))
                _ = try await peer.expect(.goAway, timeout: .seconds(180))
                try await sent
            }
            let client = try await RawHTTP2Client(server)
            try await client.start(.initialWindowSize(1 << 25))
            try await client.send(.windowUpdate(1 << 25))
            try await client.get()
            // More than the buffers of both sockets hold: the body is under way, and waits, when the PINGs arrive.
            for _ in 0..<pings { try await client.send(.ping()) }
            var (received, answered, others) = (0, 0, 0)
            while received < size || answered < pings, let frame = await client.receive() {
                switch frame.kind {
                case .data where frame.payload == [UInt8](repeating: 1, count: frame.payload.count):
                    received += frame.payload.count
                case .ping where frame.isAck: answered += 1
                case .settings, .headers: break
                default: others += 1
                }
            }
            #expect(received == size && answered == pings && others == 0)
            try await client.send(.goAway(last: 0))
            try await server.wait { $0.scriptsEnded == 1 }
            #expect(server.failures.isEmpty)
        }
    }

    @Test("a request of several frames and its body")
    func body() async throws {
        try await withHTTP2TestServer { server in
            server.script { peer in
                let request = try await peer.acceptRequest()
                #expect(!request.endStream && request.fields["x"] == "y")
                let body = try await peer.expectBody(of: request.stream)
                try await peer.respond(to: request.stream, body: body)
                await peer.untilClosed()
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            let block = RawHTTP2Client.get("/", method: "PUT", ["x": "y"])
            for frame in HTTP2Frame.section(stream: 1, block, splitInto: 4) { try await client.send(frame) }
            try await client.send(
                .ping(), .data(stream: 1, [1, 2], padding: 5), .data(stream: 1, [3], endStream: true))
            let answer = try await client.answer()
            #expect(answer.body == [1, 2, 3])
        }
    }

    @Test("holding, releasing, waiting for a frame")
    func holding() async throws {
        try await withHTTP2TestServer { server in
            server.script(onConnection: 1) { peer in
                try await peer.start()
                try await peer.hold()
                try await peer.goAway(last: 0, .enhanceYourCalm, debug: "slowly")
                await peer.untilClosed()
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await server.wait { $0.held == 1 }
            server.release()
            let goAway = try await client.receive(.goAway)
            #expect(goAway.errorCode == .enhanceYourCalm && goAway.debugData == Array("slowly".utf8))
            try await client.send(.goAway(last: 0, .cancel))
            let theirs = try await server.wait(for: .goAway)
            #expect(theirs.frame.errorCode == .cancel && theirs.connection == 1)
            // Connection 2 has no script.
            server.route("/") { _ in .ok("x") }
            let other = try await RawHTTP2Client(server)
            try await other.start()
            try await other.get()
            let answer = try await other.answer()
            #expect(answer.text == "x")
        }
    }

    @Test("a script that holds ends when the client leaves, and when the server stops")
    func leaving() async throws {
        try await withHTTP2TestServer { server in
            server.script { peer in try await peer.hold() }
            let client = try await RawHTTP2Client(server)
            try await server.wait { $0.held == 1 }
            client.close()
            try await server.wait { $0.held == 0 && $0.open == 0 }
            let other = try await RawHTTP2Client(server)
            try await server.wait { $0.held == 1 }
            withExtendedLifetime(other) {}
        }
    }

    @Test("a frame that a script expects in vain is reported")
    func complaints() async throws {
        struct Oops: Error {}
        try await withHTTP2TestServer { server in
            server.script(onConnection: 1) { peer in
                _ = try await peer.acceptRequest()
            }
            server.script(onConnection: 2) { _ in throw Oops() }
            server.script(onConnection: 3) { peer in
                _ = try await peer.acceptRequest()
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.send(.goAway(last: 0))
            try await server.wait { $0.scriptsEnded == 1 }
            _ = try await RawHTTP2Client(server)
            try await server.wait { $0.scriptsEnded == 2 }
            let third = try await RawHTTP2Client(server)
            try await third.start()
            try await third.send(.headers(stream: 1, [0x80]))
            try await server.wait { $0.scriptsEnded == 3 }
            #expect(server.failures.count == 3, "\(server.failures)")
            #expect(
                server.failures.first
                    == "connection 1: expected a request, got GOAWAY stream 0, 8 bytes, last 0, NO_ERROR")
            #expect(server.failures.last?.contains("cannot be read") == true)
        }
    }

    @Test("a script receives frames while it sends, unless it is deaf")
    func deafness() async throws {
        try await withHTTP2TestServer { server in
            server.script { peer in
                try await peer.start()
                for _ in 0..<100 { try await peer.send((0..<2_000).map { _ in HTTP2Frame.ping() }) }
                try await peer.goAway(last: 0)
                await peer.untilClosed()
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            // Each is answered before the next is read: both would wait for ever if neither read.
            var answered = 0
            while let frame = await client.receive(), frame.kind != .goAway {
                guard frame.kind == .ping else { continue }
                try await client.send(.ping(frame.payload, ack: true))
                answered += 1
            }
            #expect(answered == 200_000)
        }
    }
}

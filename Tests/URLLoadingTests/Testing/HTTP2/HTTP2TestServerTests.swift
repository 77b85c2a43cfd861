// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HTTP2TestServerTests {
    @Test("routes return status, fields and body, and record requests")
    func routes() async throws {
        try await withHTTP2TestServer { server in
            server.route("/hello") { request in .ok("Hello, \(request.headers[.host] ?? "")", headers: ["X-A": "b"]) }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.get("/hello?a=b", ["x-q": "1"])
            let answer = try await client.answer()
            #expect(answer.heads == [[":status": "200", "x-a": "b", "content-length": "16"]])
            #expect(answer.text == "Hello, localhost")
            try await client.get("/nowhere", stream: 3)
            let missing = try await client.answer(3)
            #expect(missing.status == "404" && missing.body.isEmpty)
            try await server.wait { $0.answered == 2 && $0.openStreams == 0 }
            let first = try #require(server.requests.first)
            #expect(
                first.path == "/hello" && first.target == "/hello?a=b" && first.version == .http2
                    && first.method == .get)
            #expect(first.headers["X-Q"] == "1" && server.requests.map(\.exchange) == [1, 2])
            client.close()
            try await server.wait { $0.open == 0 }
            #expect(server.failures.isEmpty)
        }
    }

    @Test("a body in both directions, beyond every window, in answers that hold to the client's frame size")
    func bodies() async throws {
        try await withHTTP2TestServer { server in
            server.route("/echo") { request in .ok(.bytes(request.body)) }
            server.route("/big") { _ in .ok(.repeated(count: 1_000_000)) }
            let client = try await RawHTTP2Client(server)
            try await client.start(.initialWindowSize(100))
            let body = (0..<60_000).map { UInt8(truncatingIfNeeded: $0) }
            try await client.send(.headers(stream: 1, RawHTTP2Client.get("/echo", method: "POST")))
            for start in stride(from: 0, to: body.count, by: 10_000) {
                try await client.send(
                    .data(stream: 1, Array(body[start..<start + 10_000]), endStream: start == 50_000, padding: 7))
            }
            let echo = try await client.answer()
            #expect(echo.body == body && echo.frames > 600)
            try await client.send(.settings(.initialWindowSize(1 << 20)))
            try await client.get("/big", stream: 3)
            let big = try await client.answer(3)
            #expect(big.body.count == 1_000_000 && big.frames < 600)
            #expect(server.failures.isEmpty)
        }
    }

    @Test("a window that stays shut holds one stream, and no other")
    func window() async throws {
        try await withHTTP2TestServer { server in
            server.route("/*") { _ in .ok(.repeated(count: 1_000)) }
            let client = try await RawHTTP2Client(server)
            try await client.start(.initialWindowSize(0))
            try await client.get("/a", stream: 1)
            try await client.get("/b", stream: 3)
            try await client.send(.windowUpdate(stream: 3, 1_000))
            let open = try await client.answer(3)
            #expect(open.body.count == 1_000)
            try await client.send(.settings(.initialWindowSize(1_000)))
            let late = try await client.answer(1)
            #expect(late.body.count == 1_000)
        }
    }

    @Test("interim responses, chunks, trailers, HEAD, a length that is a lie")
    func shapes() async throws {
        try await withHTTP2TestServer { server in
            server.route("/trailers") { _ in
                .ok(.chunks(["one", .pause(.milliseconds(1)), "two"], trailers: ["Sum": "2"])).after(
                    .init(.earlyHints, headers: ["Link": "</x>"]))
            }
            server.route("/lie") { _ in .ok(.declared(9, bytes: [1])) }
            server.route("/none") { _ in .status(.noContent) }
            server.route("/fails") { _ in throw CancellationError() }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.get("/trailers")
            let answer = try await client.answer()
            #expect(answer.heads == [[":status": "103", "link": "</x>"], [":status": "200"], ["sum": "2"]])
            #expect(answer.text == "onetwo")
            try await client.send(.headers(stream: 3, RawHTTP2Client.get("/lie", method: "HEAD"), endStream: true))
            let head = try await client.answer(3)
            #expect(head.heads == [[":status": "200", "content-length": "9"]] && head.body.isEmpty)
            try await client.get("/lie", stream: 5)
            let lie = try await client.answer(5)
            #expect(lie.body == [1])
            try await client.get("/none", stream: 7)
            let none = try await client.answer(7)
            #expect(none.heads == [[":status": "204"]])
            try await client.get("/fails", stream: 9)
            let failed = try await client.answer(9)
            #expect(failed.status == "500")
        }
    }

    @Test("100 (Continue), trailers of a request, a body that is not read")
    func requests() async throws {
        try await withHTTP2TestServer { server in
            server.route("/takes") { request in .ok("\(request.bodyCount) \(request.trailers["sum"] ?? "")") }
            server.route("/early", readsBody: false) { _ in .ok("early") }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.send(
                .headers(stream: 1, RawHTTP2Client.get("/takes", method: "PUT", ["expect": "100-continue"])))
            _ = try await client.receive(.headers)
            let trailers: HTTP2Fields = ["sum": "5"]
            try await client.send(
                .data(stream: 1, [1, 2, 3]), .headers(stream: 1, trailers.encoded(), endStream: true))
            let answer = try await client.answer()
            #expect(answer.text == "3 5")
            try await client.send(.headers(stream: 3, RawHTTP2Client.get("/early", method: "PUT")))
            let early = try await client.answer(3)
            #expect(early.text == "early")
            let reset = try await client.receive(.resetStream)
            #expect(reset.stream == 3 && reset.errorCode == .noError)
            // Frames already in transit are no error.
            try await client.send(.data(stream: 3, [1], endStream: true), .ping())
            _ = try await client.receive(.ping, isAck: true)
            #expect(server.failures.isEmpty)
        }
    }

    static let crimes: [(String, [HTTP2Frame], HTTP2Frame.ErrorCode)] = [
        ("DATA on an idle stream", [.data(stream: 1, [1])], .protocolError),
        ("an even stream", [.headers(stream: 2, RawHTTP2Client.get(), endStream: true)], .protocolError),
        ("SETTINGS on a stream", [HTTP2Frame(.settings, stream: 1)], .protocolError),
        ("a short PING", [.ping([1])], .frameSizeError),
        (
            "a large frame", [HTTP2Frame(.init(rawValue: 99), payload: [UInt8](repeating: 0, count: 16_385))],
            .frameSizeError
        ),
        ("PUSH_PROMISE", [.pushPromise(stream: 1, promised: 2, [])], .protocolError),
        ("WINDOW_UPDATE of 0", [.windowUpdate(0)], .protocolError),
        ("RST_STREAM on an idle stream", [.resetStream(5)], .protocolError),
        ("CONTINUATION after nothing", [.continuation(stream: 1, [])], .protocolError),
        ("PING in a section", [.headers(stream: 1, [], endHeaders: false), .ping()], .protocolError),
        ("ENABLE_PUSH 2", [.settings(.enablePush(2))], .protocolError),
        ("a window of 2^31", [.settings(.initialWindowSize(0x8000_0000))], .flowControlError),
        (
            "DATA beyond the window",
            [.headers(stream: 1, RawHTTP2Client.get("/deaf", method: "PUT"))]
                + (0..<5).map { _ in .data(stream: 1, [UInt8](repeating: 0, count: 16_384)) },
            .flowControlError
        ),
        (
            "DATA after the end",
            [.headers(stream: 1, RawHTTP2Client.get(), endStream: true), .data(stream: 1, [1])], .streamClosed
        ),
    ]

    @Test("a violation by the client ends the connection and is reported", arguments: 0..<14)
    func crime(_ index: Int) async throws {
        let (name, frames, code) = Self.crimes[index]
        try await withHTTP2TestServer { server in
            server.route("/deaf", readsBody: false) { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("")
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.send(frames.flatMap(\.bytes))
            if name == "DATA beyond the window" {
                // The stream's window is as large as the connection's, which is given back.
                let reset = try await client.receive(.resetStream)
                #expect(reset.errorCode == code)
            } else {
                let goAway = try await client.receive(.goAway)
                #expect(goAway.errorCode == code, "\(name): \(goAway)")
                // An answer may have been under way.
                while await client.receive() != nil {}
            }
            #expect(server.failures.count == 1, "\(server.failures)")
            client.close()
            try await server.wait { $0.open == 0 }
        }
    }

    @Test("the GOAWAY of a violation is sent, also while the acknowledgement of SETTINGS is being written")
    func goAwayIsSent() async throws {
        try await withHTTP2TestServer { server in
            for _ in 0..<500 {
                let client = try await RawHTTP2Client(server)
                let crime = HTTP2Frame.settings([]).bytes + HTTP2Frame.data(stream: 0, [1]).bytes
                try await client.send(RawHTTP2Client.preface + crime)
                let goAway = try await client.receive(.goAway)
                #expect(goAway.errorCode == .protocolError)
                client.close()
            }
        }
    }

    @Test("SETTINGS bind a client once it has acknowledged them (RFC 9113 6.5.3)")
    func unknownSettings() async throws {
        var configuration = HTTP2TestServer.Configuration()
        configuration.settings = [.initialWindowSize(1_000), .maxConcurrentStreams(1)]
        try await withHTTP2TestServer(configuration) { server in
            server.route("/") { request in .ok("\(request.bodyCount)") }
            let client = try await RawHTTP2Client(server)
            let put = RawHTTP2Client.get(method: "PUT")
            func data(_ count: Int, _ stream: Int, endStream: Bool = false) -> HTTP2Frame {
                .data(stream: stream, [UInt8](repeating: 0, count: count), endStream: endStream)
            }
            // All of this may be sent before the server's SETTINGS have been read.
            var early: [HTTP2Frame] = [.settings([]), .headers(stream: 1, put)]
            for _ in 0..<6 { early.append(data(10_000, 1)) }
            early.append(.headers(stream: 3, put, endStream: true))
            try await client.send(RawHTTP2Client.preface + early.flatMap(\.bytes))
            let refused = try await client.receive(.resetStream)
            #expect(refused.stream == 3 && refused.errorCode == .refusedStream)
            try await client.send(.settingsAck, data(1_000, 1, endStream: true))
            let answer = try await client.answer()
            #expect(answer.text == "61000" && server.failures.isEmpty, "\(server.failures)")
            try await server.wait { $0.openStreams == 0 }
            try await client.send(.headers(stream: 5, put), data(1_001, 5))
            let reset = try await client.receive(.resetStream)
            #expect(reset.stream == 5 && reset.errorCode == .flowControlError && server.failures.count == 1)
        }
    }

    @Test(
        "requests that are malformed reset their stream",
        arguments: [
            ["x": "y"], [":method": "GET", ":scheme": "http"], [":method": "GET", ":scheme": "http", ":path": ""],
            [":method": "GET", ":scheme": "http", ":path": "/", "Upper": "x"],
            [":method": "GET", ":scheme": "http", ":path": "/", ":path": "/"],
            [":method": "GET", ":scheme": "http", "x": "y", ":path": "/"],
            [":method": "GET", ":scheme": "http", ":path": "/", ":status": "200"],
            [":method": "GET", ":scheme": "http", ":path": "/", "connection": "close"],
            [":method": "GET", ":scheme": "http", ":path": "/", "te": "gzip"],
            [":method": "GET", ":scheme": "http", ":path": "/", "a": "b\r\nc"],
            [":method": "GET", ":scheme": "http", ":path": "/", "a": " b"],
            [":method": "GET", ":scheme": "http", ":path": "/", "content-length": "1"],
            [":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a", "host": "b"],
        ] as [HTTP2Fields])
    func malformed(_ fields: HTTP2Fields) async throws {
        try await withHTTP2TestServer { server in
            server.route("/") { _ in .ok("fine") }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.send(.headers(stream: 1, fields.encoded(), endStream: true))
            let reset = try await client.receive(.resetStream)
            #expect(reset.errorCode == .protocolError)
            try await client.get("/", stream: 3)
            let answer = try await client.answer(3)
            #expect(answer.text == "fine" && server.failures.count == 1)
        }
    }

    @Test("more streams than allowed are refused; a reset one is forgotten")
    func streams() async throws {
        var configuration = HTTP2TestServer.Configuration()
        configuration.settings = [.maxConcurrentStreams(2)]
        try await withHTTP2TestServer(configuration) { server in
            server.route("/deaf") { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("")
            }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            for stream in [1, 3, 5] { try await client.get("/deaf", stream: stream) }
            let refused = try await client.receive(.resetStream)
            #expect(refused.stream == 5 && refused.errorCode == .refusedStream)
            #expect(server.counts.mostOpenStreams == 2)
        }
    }

    @Test("bytes in place of frames, and frames between others")
    func raw() async throws {
        try await withHTTP2TestServer { server in
            server.route("/raw") { _ in .raw(["HTTP/1.1 400 No\r\n"], then: .close) }
            server.route("/reset") { _ in .raw([], then: .reset) }
            let client = try await RawHTTP2Client(server)
            try await client.start()
            server.send(.ping([8, 7, 6, 5, 4, 3, 2, 1]))
            let ping = try await client.receive(.ping)
            #expect(ping.payload == [8, 7, 6, 5, 4, 3, 2, 1])
            try await client.get("/raw")
            while await client.receive() != nil {}
            try await server.wait { $0.open == 0 }
            let other = try await RawHTTP2Client(server)
            try await other.start()
            try await other.get("/reset")
            while await other.receive() != nil {}
            try await server.wait { $0.open == 0 }
        }
    }

    @Test("a client that does not speak HTTP/2 is reported")
    func preface() async throws {
        try await withHTTP2TestServer { server in
            let client = try await RawHTTP2Client(server)
            try await client.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
            while await client.receive() != nil {}
            #expect(server.failures == ["connection 1: no preface of HTTP/2 but GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
        }
    }

    @Test("TLS: the protocols are those of ALPN")
    func tls() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTP2TestServer(.init(try authority.issue())) { server in
            server.route("/big") { _ in .ok(.repeated(count: 300_000)) }
            let client = try await RawHTTP2Client(server)
            #expect(client.agreed == "h2" && server.url().scheme == "https")
            try await client.start()
            try await client.get("/big")
            let answer = try await client.answer()
            #expect(answer.body.count == 300_000)
            #expect(server.requests.first?.tls?.applicationProtocol == "h2")
            await #expect(throws: (any Error).self) { try await RawHTTP2Client(server, offering: ["http/1.1"]) }
        }
    }

    @Test("stopping the server ends its waits: handlers, windows, pauses")
    func stopping() async throws {
        try await withHTTP2TestServer { server in
            server.route("/deaf") { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("")
            }
            server.route("/pause") { _ in .ok(.chunks([.pause(.seconds(600))])) }
            server.route("/shut") { _ in .ok(.repeated(count: 10)) }
            let client = try await RawHTTP2Client(server)
            try await client.start(.initialWindowSize(0))
            for (index, path) in ["/deaf", "/pause", "/shut"].enumerated() {
                try await client.get(path, stream: index * 2 + 1)
            }
            try await server.wait { $0.openStreams == 3 }
        }
    }

    @Test("a client that closes ends the waits of its connection")
    func leaving() async throws {
        try await withHTTP2TestServer { server in
            server.route("/pause") { _ in .ok(.chunks([.pause(.seconds(600))])) }
            server.route("/shut") { _ in .ok(.repeated(count: 10)) }
            for _ in 0..<20 {
                let client = try await RawHTTP2Client(server)
                try await client.start(.initialWindowSize(0))
                for (index, path) in ["/pause", "/shut"].enumerated() {
                    try await client.get(path, stream: index * 2 + 1)
                }
                client.close()
            }
            try await server.wait { $0.accepted == 20 && $0.open == 0 }
            #expect(server.counts.openStreams == 0)
        }
    }
}

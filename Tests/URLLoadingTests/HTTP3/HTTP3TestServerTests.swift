// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The behaviour of the public server: routes, scripts, records, its end, and wrong clients.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3TestServerTests {
    // MARK: Routes

    @Test("Each kind of body arrives as it would over HTTP/1.1") func bodies() async throws {
        try await withHTTP3 { server, session in
            server.route("/none") { _ in .status(.notFound) }
            server.route("/bytes") { _ in .ok(.bytes([1, 2, 3])) }
            server.route("/chunks") { _ in
                .ok(.chunks(["one", .pause(.milliseconds(5)), "two"], trailers: ["sum": "2"]))
            }
            server.route("/close") { _ in .ok(.untilClose(["one", "two"])) }
            server.route("/endless") { _ in .ok(.repeated(count: 3_000_000)) }
            server.route("/204") { _ in .status(.noContent) }
            server.route("/throws") { _ in throw CancellationError() }
            for (path, status, count) in [
                ("/none", 404, 0), ("/bytes", 200, 3), ("/chunks", 200, 6), ("/close", 200, 6),
                ("/endless", 200, 3_000_000), ("/204", 204, 0), ("/throws", 500, 19), ("/unknown", 200, 5),
            ] {
                let (data, response) = try await session.data(from: server.url(path))
                #expect(response.http?.status.code == status && data.count == count, "\(path)")
            }
            let (text, trailers) = try await session.load(Request(url: server.url("/chunks"))) { _, body in
                var text = ""
                for try await chunk in body { text += String(decoding: [UInt8](chunk), as: UTF8.self) }
                return (text, body.trailers)
            }
            #expect(text == "onetwo" && trailers["sum"] == "2")
            let (none, head) = try await session.data(for: Request(url: server.url("/bytes"), method: .head))
            #expect(none.isEmpty && head.http?.headers[.contentLength] == "3")
            try await server.wait { $0.openStreams == 0 && $0.accepted == 1 }
        }
    }

    @Test("A false length and bytes in place of frames fail a load") func wrong() async throws {
        try await withHTTP3 { server, session in
            server.route("/declared") { _ in .ok(.declared(10, bytes: [1, 2])) }
            server.route("/raw") { _ in .raw(["HTTP/1.1 200 OK\r\n\r\n"]) }
            server.route("/reset") { _ in .raw(["\u{1}"], then: .reset) }
            let declared = await #expect(throws: LoadError.self) {
                try await session.data(from: server.url("/declared"))
            }
            #expect(declared?.reason != .idleTimeout)
            let raw = await #expect(throws: LoadError.self) { try await session.data(from: server.url("/raw")) }
            #expect(raw?.reason != .idleTimeout)
            var request = Request(url: server.url("/reset"))
            request.idleTimeout = .milliseconds(100)
            let silent = await #expect(throws: LoadError.self) { try await session.data(for: request) }
            #expect(silent?.reason == .idleTimeout)
        }
    }

    @Test("A route that reads no body answers at once, and asks the client to stop") func unread() async throws {
        try await withHTTP3 { server, session in
            server.route("/", readsBody: false) { _ in .status(.contentTooLarge) }
            let body = RequestBody.stream { AsyncStream<[UInt8]>(unfolding: { [UInt8](repeating: 1, count: 10_000) }) }
            for _ in 0..<3 {
                let (_, response) = try await session.data(
                    for: Request(url: server.url("/"), method: .post, body: body))
                #expect(response.http?.status == .contentTooLarge)
            }
            #expect(server.counts.accepted == 1 && server.requests.allSatisfy { $0.body.isEmpty })
        }
    }

    @Test("An expectation is answered with 100, and a body is kept up to its limit") func expectation() async throws {
        try await withHTTP3(serve: { $0.recordedBodySize = 1_000 }) { server, session in
            server.route("/") { request in .ok("\(request.bodyCount) \(request.body.count)") }
            var request = Request(url: server.url("/"), method: .post, body: .data(Data(count: 400_000)))
            request.headers[.expect] = "100-continue"
            try await session.expect(request, "400000 1000")
        }
    }

    @Test("After a GOAWAY the requests before it are answered, and later ones go elsewhere") func goAway() async throws
    {
        try await withHTTP3 { server, session in
            let gate = Watched(false)
            server.route("/slow") { _ in
                while !gate.value { try await Task.sleep(for: .milliseconds(1)) }
                return .ok("slow")
            }
            async let slow: Void = session.expect(server.url("/slow"), "slow")
            try await server.wait { $0.requests == 1 }
            server.goAway()
            try await session.expect(server.url("/"), "hello")
            gate.change { $0 = true }
            try await slow
            #expect(server.counts.accepted == 2)
        }
    }

    // MARK: Scripts and records

    @Test("A script controls its connection, and waits for the test") func script() async throws {
        try await withHTTP3 { server, session in
            server.script(onConnection: 1) { peer in
                try await peer.start(.maxFieldSectionSize(10_000))
                let request = try await peer.expectRequest()
                #expect(request.path == "/a" && request.method == "POST" && peer.tls?.applicationProtocol == "h3")
                let body = try await peer.expectBody(of: request.stream)
                try await peer.respond(to: request.stream, body: Array("\(body.count) ".utf8), endStream: false)
                try await peer.hold()
                try await peer.data(request.stream, Array("end".utf8), endStream: true)
                await peer.untilClosed()
            }
            async let text: Void = session.expect(
                Request(url: server.url("/a"), method: .post, body: .data(Data(count: 500_000))), "500000 end")
            try await server.wait { $0.held == 1 }
            server.release()
            try await text
            #expect(server.frames.contains { $0.frame.kind == .settings && $0.frame.settings?.isEmpty == false })
            #expect(server.frames.contains { $0.fields?[":path"] == "/a" })
            #expect(server.frames.allSatisfy { $0.frame.kind != .data || $0.frame.payload.count <= 64 })
        }
    }

    @Test("A script that waits in vain is recorded, and its connection closed") func vain() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTP3TestServer(.init(try authority.issue())) { server in
            server.script { peer in
                try await peer.start()
                _ = try await peer.expect(.goAway, timeout: .milliseconds(10))
            }
            let client = try RawHTTP3Client(port: server.port, roots: authority.pem)
            try await client.connect()
            try await client.run { _ in false }
            #expect(client.end == .closedByPeer(.application(0x100)))
            #expect(server.failures.count == 1 && server.failures[0].contains("expected GOAWAY within"))
            #expect(server.counts.scriptsEnded == 1)
        }
    }

    @Test("A server ends with its scope, whatever its scripts, handlers and clients do", arguments: 0..<4)
    func end(_ kind: Int) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let server = try HTTP3TestServer(.init(try authority.issue()))
        server.start()
        switch kind {
        case 0: server.script { peer in try await peer.hold() }
        case 1:
            server.script { peer in
                peer.fallSilent(); await peer.untilClosed()
            }
        case 2:
            server.route("*") { _ in
                try await Task.sleep(for: .seconds(600))
                return .ok("")
            }
        default: server.route("*") { _ in .ok(.repeated(count: .max, chunked: true)) }
        }
        let client = try RawHTTP3Client(port: server.port, roots: authority.pem)
        if kind == 1 {
            try await client.run { _ in server.counts.open == 1 }
        } else {
            try await client.connect()
            client.send([0, 4, 0], oneWay: true)
            client.send(HTTP3Frame.headers(Self.get).bytes, isEnd: true)
            try await client.run { _ in server.counts.requests == 1 || server.counts.held == 1 }
        }
        await server.stop()
        #expect(server.counts.open == 0)
        if kind != 1 { try await client.run { _ in false } }
        #expect(kind == 1 || client.end == .closedByPeer(.application(0x100)), "\(String(describing: client.end))")
        // A second stop does nothing.
        await server.stop()
    }

    // MARK: Wrong clients

    private static let get: HTTP2Fields = [
        ":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": "/",
    ]

    struct Wrong: Sendable, CustomStringConvertible {
        let description: String
        let code: HTTP3Frame.ErrorCode
        var isOfStream = false
        var control: [UInt8] = [0, 4, 0]
        var oneWay: [UInt8]?
        var request: [UInt8]?
        var endsControl = false

        static let all = [
            Wrong(description: "DATA first", code: .frameUnexpected, request: HTTP3Frame.data([1]).bytes),
            Wrong(
                description: "DATA after trailers", code: .frameUnexpected,
                request: HTTP3Frame.headers(get).bytes + HTTP3Frame.headers(["a": "b"]).bytes
                    + HTTP3Frame.data([1]).bytes),
            Wrong(description: "SETTINGS on a request", code: .frameUnexpected, request: HTTP3Frame.settings().bytes),
            Wrong(description: "SETTINGS again", code: .frameUnexpected, control: [0, 4, 0, 4, 0]),
            Wrong(description: "no SETTINGS", code: .missingSettings, control: [0, 0x21, 0]),
            Wrong(description: "a setting of HTTP/2", code: .settingsError, control: [0, 4, 2, 4, 1]),
            Wrong(description: "half a setting", code: .frameError, control: [0, 4, 1, 1]),
            Wrong(description: "HEADERS on the control stream", code: .frameUnexpected, control: [0, 4, 0, 1, 0]),
            Wrong(description: "a frame of HTTP/2", code: .frameUnexpected, control: [0, 4, 0, 6, 0]),
            Wrong(description: "a second control stream", code: .streamCreationError, oneWay: [0]),
            Wrong(description: "a push stream", code: .streamCreationError, oneWay: [1]),
            Wrong(description: "the end of the control stream", code: .closedCriticalStream, endsControl: true),
            Wrong(description: "a broken section", code: .qpackDecompressionFailed, request: [1, 3, 0, 0, 0xFF]),
            Wrong(description: "a table", code: .qpackDecompressionFailed, request: [1, 3, 2, 0, 0x80]),
            Wrong(
                description: "a frame of 1 GiB", code: .excessiveLoad, request: [0x21, 0xC0, 0, 0, 0, 0x40, 0, 0, 0]),
            Wrong(description: "a cut frame", code: .frameError, request: [1, 5, 0]),
            Wrong(
                description: "no path", code: .messageError, isOfStream: true,
                request: HTTP3Frame.headers([":method": "GET", ":scheme": "https"]).bytes),
            Wrong(
                description: "a wrong length", code: .messageError, isOfStream: true,
                request: HTTP3Frame.headers(get + ["content-length": "5"]).bytes + HTTP3Frame.data([1]).bytes),
            Wrong(description: "nothing", code: .requestIncomplete, isOfStream: true, request: []),
        ]
    }

    @Test("A client that breaks a rule is told which, and the test too", arguments: Wrong.all)
    func violation(_ wrong: Wrong) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTP3TestServer(.init(try authority.issue())) { server in
            let client = try RawHTTP3Client(port: server.port, roots: authority.pem)
            try await client.connect()
            client.send(wrong.control, oneWay: true, isEnd: wrong.endsControl)
            if let bytes = wrong.oneWay { client.send(bytes, oneWay: true) }
            if let bytes = wrong.request { client.send(bytes, isEnd: true) }
            try await client.run { !$0.resets.isEmpty }
            if wrong.isOfStream {
                #expect(client.resets[0] == wrong.code.rawValue && client.end == nil)
            } else {
                #expect(client.end == .closedByPeer(.application(wrong.code.rawValue)))
            }
            #expect(server.failures.count == 1, "\(server.failures)")
            try await client.close()
        }
    }

    @Test("Random bytes end no server", arguments: 0..<4) func noise(_ part: Int) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTP3TestServer(.init(try authority.issue())) { server in
            server.route("*") { _ in .ok("ok") }
            let (descriptor, _) = try DatagramSockets.bound()
            defer { DatagramSockets.close(descriptor) }
            for seed in (part * 12)..<(part * 12 + 12) {
                var random = SeededGenerator(seed: UInt64(seed))
                func noise(_ most: Int) -> [UInt8] {
                    (0..<Int.random(in: 0...most, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random)
                    }
                }
                for _ in 0..<20 {
                    // Some look like the beginning of a connection.
                    let datagram = (Bool.random(using: &random) ? [0xC0, 0, 0, 0, 1, 8] : []) + noise(1_400)
                    DatagramSockets.send(datagram, from: descriptor, to: DatagramSockets.address(server.port))
                }
                let client = try RawHTTP3Client(port: server.port, roots: authority.pem)
                try await client.connect()
                if Bool.random(using: &random) { client.send([0, 4, 0], oneWay: true) }
                for _ in 0..<8 {
                    let isOneWay = UInt8.random(in: 0..<4, using: &random) == 0
                    var bytes = noise(200)
                    if Bool.random(using: &random) { bytes = HTTP3Frame.headers(Self.get).bytes + bytes }
                    // A client may open few streams in one direction.
                    client.send(bytes, oneWay: isOneWay, isEnd: Bool.random(using: &random))
                    var rounds = 0
                    try await client.run { _ in
                        rounds += 1
                        return rounds > 3
                    }
                }
                try await client.close()
            }
            var configuration = Configuration.ephemeral
            configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
            configuration.connections.httpVersions = .http3PriorKnowledge
            try await withSession(configuration) { try await $0.expect(server.url("/"), "ok") }
        }
    }
}

#endif

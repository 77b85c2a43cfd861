// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The origin itself: does it do what a test asks of it?
@Suite struct HTTPTestServerTests {
    @Test("the server answers by its routes and records the requests") func answersAndRecords() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/echo") { .ok(.bytes($0.body)) }
            try await withSession(.ephemeral) { session in
                let request = Request(url: origin.url("/echo?q"), method: .post, body: .data(Data("hello".utf8)))
                for _ in 1...3 {
                    let (data, response) = try await session.data(for: request)
                    #expect(String(decoding: data, as: UTF8.self) == "hello")
                    #expect(response.http?.status == .ok)
                }
                let (_, missing) = try await session.data(from: origin.url("/nothing"))
                #expect(missing.http?.status == .notFound)
            }
            #expect(
                origin.requests.map(\.description) == [
                    "POST /echo?q HTTP/1.1 on connection 1, exchange 1",
                    "POST /echo?q HTTP/1.1 on connection 1, exchange 2",
                    "POST /echo?q HTTP/1.1 on connection 1, exchange 3",
                    "GET /nothing HTTP/1.1 on connection 1, exchange 4",
                ])
            try await origin.wait { $0.open == 0 }
            #expect(origin.counts.mostOpen == 1)
        }
    }

    @Test(
        "every kind of body arrives whole, and HEAD has none",
        arguments: [
            (HTTPTestServer.Response.Body.none, 0), (.bytes([1, 2, 3]), 3),
            (.chunks(["ab", .pause(.milliseconds(1)), "c"]), 3),
            (.untilClose(["abc", "d"]), 4), (.repeated(count: 200_000), 200_000),
            (.repeated(count: 200_001, chunked: true), 200_001), (.repeated(count: -1), 0),
            (.repeated(count: -1, chunked: true), 0),
        ])
    func bodies(_ body: HTTPTestServer.Response.Body, count: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(body) }
            try await withSession(.ephemeral) { session in
                for (method, expected) in [(Method.get, count), (.head, 0), (.get, count)] {
                    let (data, _) = try await session.data(for: Request(url: origin.url(), method: method))
                    #expect(data.count == expected)
                }
            }
        }
    }

    @Test("trailers and interim responses are sent") func trailersAndInterimResponses() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .ok(.chunks(["x"], trailers: ["Sum": "1"])).after(.init(.earlyHints, headers: [.link: "<a>"]))
            }
            try await withSession(.ephemeral) { session in
                let trailers = try await session.load(Request(url: origin.url())) { _, body in
                    _ = try await body.collect(upTo: 10)
                    return body.trailers
                }
                #expect(trailers["Sum"] == "1")
            }
        }
    }

    @Test("a fault strikes at its point, and only there") func faultsHitWhereTheyShould() async throws {
        let long = [UInt8](repeating: 1, count: 1000)
        try await withHTTPTestServer { origin in
            let faults: [(HTTPTestServer.Fault, LoadError.Reason?)] = [
                (.init(.requestHead, .close), .connectionLost), (.init(.requestHead, .reset), .connectionLost),
                (.init(.responseHead(after: 5), .close), .truncated), (.init(.responseHead(), .garbage()), .notHTTP),
                (.init(.responseBody(after: 10), .cut), .truncated), (.init(.end, .close), nil),
                (.init(.responseBody(after: 10), .delay(.milliseconds(1))), nil), (.init(.idle, .close), nil),
            ]
            for (index, (fault, reason)) in faults.enumerated() {
                origin.route("/\(index)", faults: [fault]) { _ in .ok(.bytes(long)) }
                try await withSession(.ephemeral) { session in
                    let outcome = await Result { try await session.data(from: origin.url("/\(index)")).0.count }
                    switch (outcome, reason) {
                    case (.success(let count), nil): #expect(count == long.count)
                    case (.failure(let error as LoadError), let reason?): #expect(error.reason == reason, "\(fault)")
                    default: Issue.record("\(fault): \(outcome)")
                    }
                }
            }
            #expect(origin.counts.faults == faults.count)
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a server with a certificate speaks TLS") func secureOrigins() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var tls = HTTPTestServer.TLS(try authority.issue())
        tls.maximumVersion = .tls12
        try await withHTTPTestServer(.init(tls: tls)) { origin in
            origin.route("/") {
                .ok("\($0.tls?.version ?? "-") \($0.tls?.serverName ?? "-") \($0.tls?.applicationProtocol ?? "-")")
            }
            origin.route("/cut", faults: [.init(.responseBody(after: 2), .cut)]) { _ in .ok(.untilClose(["abcd"])) }
            try await withSession(
                .ephemeral.with { $0.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self)) }
            ) { session in
                let (data, _) = try await session.data(from: origin.url())
                #expect(String(decoding: data, as: UTF8.self) == "TLSv1.2 localhost http/1.1")
                let error = await #expect(throws: LoadError.self) { try await session.data(from: origin.url("/cut")) }
                #expect(error?.reason == .truncated)
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("the server listens on an IPv6 address", .enabled(if: Loopback.hasIPv6, Loopback.lacksIPv6))
    func addressOfIPv6() async throws {
        try await withHTTPTestServer(.init(address: .ipv6)) { origin in
            origin.route("/") { _ in .ok("six") }
            try await withSession(.ephemeral) { session in
                let (data, _) = try await session.data(from: origin.url())
                #expect(data == Data("six".utf8))
            }
        }
    }

    @Test("the server listens on the path of a Unix socket") func addressOfAPath() async throws {
        var configuration = HTTPTestServer.Configuration()
        let path = temporaryURL("origin")
            .path
        defer { try? FileManager.default.removeItem(atPath: path) }
        configuration.address = .unix(path)
        try await withHTTPTestServer(configuration) { origin in
            origin.route("/") { _ in .ok("path") }
            var client = Configuration.ephemeral
            client.dial = { (_, token) throws(IOFailure) in try await SocketTransport.connect(to: .unix(path), token) }
            try await withSession(client) { session in
                let (data, _) = try await session.data(from: origin.url())
                #expect(data == Data("path".utf8))
            }
        }
    }

    @Test("the server sends 100 (Continue) to a client that expects it") func continuesWhenAsked() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.bodyCount)") }
            let socket = try await SocketTransport.connect(to: .ipv4((127, 0, 0, 1), port: origin.port), StopToken())
            defer { socket.close() }
            try await write(
                "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", to: socket)
            #expect(try await read(from: socket) == "HTTP/1.1 100 Continue\r\n\r\n")
            try await write("abc", to: socket)
            #expect(try await read(from: socket) == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n3")
            // Two at once: the first is answered, the second is not.
            try await write("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", to: socket)
            #expect(try await read(from: socket) == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n0")
            try await origin.wait { $0.open == 0 }
            #expect(origin.counts.requests == 2)
        }
    }

    private func write(_ text: String, to socket: SocketTransport) async throws {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
        defer { bytes.deallocate() }
        bytes.copyBytes(from: text.utf8)
        try await socket.send(UnsafeRawBufferPointer(bytes), StopToken())
    }

    private func read(from socket: SocketTransport) async throws -> String {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 1)
        defer { bytes.deallocate() }
        return String(decoding: bytes[..<(try await socket.receive(into: bytes, StopToken()))], as: UTF8.self)
    }

    @Test("raw responses are sent as they are, and a greeting before any request") func rawAnswersAndGreetings()
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.route("/raw") { _ in
                .raw(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", .pause(.milliseconds(1)), "\r\nok"], then: .next)
            }
            try await withSession(.ephemeral) { session in
                for _ in 1...2 {
                    let (data, _) = try await session.data(from: origin.url("/raw"))
                    #expect(data == Data("ok".utf8))
                }
            }
            #expect(origin.counts.accepted == 1)
        }
        var ssh = HTTPTestServer.Configuration()
        ssh.greeting = .init(["SSH-2.0-x\r\n"], then: .stall)
        try await withHTTPTestServer(ssh) { origin in
            try await withSession(.ephemeral) { session in
                let error = await #expect(throws: LoadError.self) { try await session.data(from: origin.url()) }
                #expect(error?.reason == .notHTTP)
            }
        }
    }
}

extension Result where Failure == any Error {
    init(_ make: () async throws -> Success) async {
        do { self = .success(try await make()) } catch { self = .failure(error) }
    }
}

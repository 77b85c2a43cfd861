// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Security 46 and 16: bytes and connections that belong to another exchange.
@Suite(.timeLimit(.minutes(4)))
struct FramingSecurityRows {
    static let poison = Array("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison".utf8)

    struct Answer: Sendable, CustomTestStringConvertible {
        let bytes: [UInt8]
        var testDescription: String { "\(bytes.count) bytes" }

        init(_ text: String) { bytes = Array(text.utf8) }

        /// A response with this many bytes in total.
        init(size: Int) {
            let head = "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: "
            let count = size - head.utf8.count - "\(size)\r\n\r\n".utf8.count
            self.init(
                "\(head)\(String(repeating: "0", count: "\(size)".count - "\(count)".count))\(count)\r\n\r\n"
                    + "\(String(repeating: "x", count: count))"
            )
        }
    }

    @Test(
        "bytes after a message never answer the next request (security 46)",
        arguments: [
            Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), Answer("HTTP/1.1 204 No Content\r\n\r\n"),
            Answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
            Answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            // Sizes at the limits of the first and the second buffer, so that the bytes after the message are unread.
            Answer(size: 16 * 1024), Answer(size: 16 * 1024 + 64 * 1024), Answer(size: 16 * 1024 - 1),
            Answer(size: 16 * 1024 + 1),
        ])
    func poisoned(_ answer: Answer) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/first") { _ in .raw([.bytes(answer.bytes + Self.poison)], then: .next) }
            origin.route("/late") { _ in
                .raw([.bytes(answer.bytes), .pause(.milliseconds(1)), .bytes(Self.poison)], then: .next)
            }
            origin.route("/second") { _ in .ok("true answer") }
            for path in ["/first", "/late"] {
                try await withSession(.ephemeral) { session in
                    let before = origin.counts.answered
                    _ = try await session.data(from: origin.url(path))
                    try await origin.wait { $0.answered == before + 1 }
                    try await pollerHasRun()
                    try await session.expect(origin.url("/second"), "true answer")
                }
            }
            #expect(origin.counts.accepted == 4)
        }
    }

    @Test("bytes after a message over TLS never answer the next request (security 46)")
    func poisonedSecurely() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/first") { _ in
                .raw(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", .bytes(Self.poison)], then: .next)
            }
            origin.route("/exact") { _ in
                .raw([.bytes(Answer(size: 16 * 1024).bytes), .bytes(Self.poison)], then: .next)
            }
            origin.route("/second") { _ in .ok("true answer") }
            for path in ["/first", "/exact"] {
                try await withSession(configuration) { session in
                    _ = try await session.data(from: origin.url(path))
                    try await pollerHasRun()
                    try await session.expect(origin.url("/second"), "true answer")
                }
            }
            #expect(origin.counts.accepted == 4)
        }
    }

    @Test(
        "bytes after a response in a write of their own never answer the next request (security 46)",
        arguments: [false, true])
    func poisonedByASecondWrite(_ isSecure: Bool) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue()
        let context = try TLSServerContext(
            .init(certificateChain: identity.certificatePEM, privateKey: identity.keyPEM))
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        configuration.networks.resolver = RecordingResolver()
        let server = try PoisoningServer(isSecure ? context : nil)
        let url = try url("\(isSecure ? "https" : "http")://localhost:\(server.port)/")
        async let serving: Void = server.serve()
        for _ in 0..<(isSecure ? 50 : 200) {
            try await withSession(configuration) { session in
                try await session.expect(url, "true answer")
                // On loopback, bytes have arrived when they are written; the poller may not have been notified yet.
                try server.poison()
                try await session.expect(url, "true answer")
            }
        }
        server.stop()
        await serving
    }

    /// Answers each request, and sends unsolicited bytes when the test says so.
    private final class PoisoningServer: Sendable {
        private let listener: SocketListener
        private let tls: TLSServerContext?
        private let token = StopToken()
        private let last = Held<(any Transport)?>(nil)

        init(_ tls: TLSServerContext?) throws {
            listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
            self.tls = tls
        }

        var port: UInt16 { listener.address.port }
        func stop() { token.stop(.cancelled) }

        func serve() async {
            await withTaskGroup { group in
                while let socket = try? await listener.accept(token) { group.addTask { try? await self.serve(socket) } }
                listener.close()
            }
        }

        private func serve(_ socket: SocketTransport) async throws {
            token.attach(socket.slot)
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 1)
            var transport: any Transport = socket
            defer {
                token.detach(socket.slot)
                transport.close()
                buffer.deallocate()
            }
            if let tls {
                let secure = try TLSTransport(server: tls, over: socket)
                transport = secure
                try await secure.handshake(token)
            }
            let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\ntrue answer".utf8)
            while true {
                last.withLock { $0 = transport }
                guard try await transport.receive(into: buffer, token) > 0 else { return }
                _ = try answer.withUnsafeBytes { try transport.write($0) }
            }
        }

        /// Sends bytes after the latest response.
        func poison() throws {
            let transport = last.withLock { $0 }
            _ = try FramingSecurityRows.poison.withUnsafeBytes { try transport?.write($0) }
        }
    }

    @Test("an unsolicited response is not used (security 46)")
    func unasked() async throws {
        try await withHTTPTestServer(answering: "true answer") { origin in
            origin.inject(.init(.idle, .send(Self.poison)), onConnection: 1)
            try await withSession(.ephemeral) { session in
                try await session.expect(origin.url(), "true answer")
                try await origin.wait { $0.faults == 1 }
                try await pollerHasRun()
                try await session.expect(origin.url(), "true answer")
            }
            #expect(origin.counts.accepted == 2)
        }
    }

    @Test(
        "the response to HEAD has no body regardless of its fields, and later bytes do not belong to it (security 46)")
    func head() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/lying") { _ in .raw(["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"], then: .next) }
            origin.route("/") { _ in .ok("body") }
            try await withSession(.ephemeral) { session in
                for path in ["/", "/lying", "/"] {
                    let (data, response) = try await session.data(for: Request(url: origin.url(path), method: .head))
                    #expect(data.isEmpty)
                    #expect(response.http?.headers[.contentLength] == "4")
                }
                try await session.expect(origin.url(), "body")
            }
            #expect(origin.counts.accepted == 2)
        }
    }

    @Test("a plain connection never serves https, and vice versa (security 16)")
    func clearAndSecure() async throws {
        try await withHTTPTestServer(answering: "clear") { origin in
            try await withSession(.ephemeral) { session in
                let clear = try url("http://127.0.0.1:\(origin.port)/")
                let secure = try url("https://127.0.0.1:\(origin.port)/")
                try await session.expect(clear, "clear")
                await expectFailure(.secureConnectionFailed, .remote, .securing) {
                    try await session.data(from: secure)
                }
                try await session.expect(clear, "clear")
            }
            #expect(origin.requests.count == 2)
        }
        try await withSecureOrigin { origin, configuration in
            origin.route("/") { _ in .ok("secure") }
            try await withSession(configuration) { session in
                try await session.expect(origin.url(), "secure")
                let clear = try url("http://localhost:\(origin.port)/")
                let error = await #expect(throws: LoadError.self) { try await session.data(from: clear) }
                #expect(error?.party == .remote)
                try await session.expect(origin.url(), "secure")
            }
            #expect(origin.requests.count == 2)
            #expect(origin.requests.allSatisfy { $0.tls != nil })
        }
    }

    @Test("one host under two names or ports counts as two servers")
    func routes() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok($0.headers[.host] ?? "-") }
            try await withSession(.ephemeral) { session in
                for host in ["127.0.0.1", "localhost", "127.0.0.1", "LOCALHOST", "a.localhost"] {
                    try await session.expect(
                        url("http://\(host):\(origin.port)/"), "\(host.lowercased()):\(origin.port)")
                }
            }
            #expect(origin.requests.map(\.connection) == [1, 2, 1, 2, 3])
        }
    }
}

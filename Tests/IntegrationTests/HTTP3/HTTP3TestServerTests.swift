// SPDX-License-Identifier: Apache-2.0

// The HTTP/3 server of URLLoadingTesting with clients that share no code with it, where they are installed.

#if HTTP3

import Foundation
import Glibc
import Testing
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@Suite(.timeLimit(.minutes(4)))
struct HTTP3TestServerTests {
    /// Whether curl is built with HTTP/3. The one of Debian 13 is, over QUIC of OpenSSL.
    private static let hasCurl: Bool = {
        guard access("/usr/bin/curl", X_OK) == 0, let pipe = popen("/usr/bin/curl --version", "r") else { return false }
        defer { pclose(pipe) }
        var buffer = [CChar](repeating: 0, count: 4_096)
        while fgets(&buffer, Int32(buffer.count), pipe) != nil {
            if strstr(buffer, "Features:") != nil { return strstr(buffer, "HTTP3") != nil }
        }
        return false
    }()

    /// Runs a server with routes of all kinds, and passes a file with the certificate of its authority.
    private func with(_ use: (HTTP3TestServer, String) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let roots = folder.path + "/roots.pem"
        try Data(authority.pem).write(to: URL(fileURLWithPath: roots))
        var configuration = HTTP3TestServer.Configuration(try authority.issue())
        configuration.recordedBodySize = 4 << 20
        try await withHTTP3TestServer(configuration) { server in
            server.route("/hello") { _ in .ok("hello", headers: ["X-A": "b"]) }
            server.route("/big") { _ in .ok(.repeated(count: 3_000_000)) }
            server.route("/echo") { request in .ok(.bytes(request.body)) }
            server.route("/trailers") { _ in
                .ok(.chunks(["one", .pause(.milliseconds(5)), "two"], trailers: ["sum": "2"]))
                    .after(.init(.earlyHints, headers: ["link": "</x>"]))
            }
            try await use(server, roots)
            #expect(server.failures.isEmpty, "\(server.failures)")
        }
    }

    // MARK: curl

    @Test("curl loads each kind of route", .enabled(if: hasCurl)) func curl() async throws {
        try await with { server, roots in
            for (path, results) in [
                ("/hello", ["3 200 5"]), ("/big", ["3 200 3000000"]), ("/nowhere", ["3 404 0"]),
                // curl 8.14 counts the bytes of trailers too, curl 8.21 does not.
                ("/trailers", ["3 200 6", "3 200 14"]),
            ] {
                let got = try await curl(
                    server, roots, path, ["-o", "/dev/null", "-w", "%{http_version} %{response_code} %{size_download}"])
                #expect(results.contains(got.text), "\(path): \(got.text) \(got.errors)")
            }
            let body = String(repeating: "0123456789", count: 100_000)
            let echo = try await curl(server, roots, "/echo", ["--data-binary", "@-"], input: body)
            #expect(echo.text == body, "\(echo.errors)")
            #expect(server.counts.accepted >= 5 && server.counts.requests == 5)
        }
    }

    @Test("curl sees each ending as what it is", .enabled(if: hasCurl)) func curlFaults() async throws {
        try await with { server, roots in
            // The exit codes of curl(1): 95 is HTTP/3, 56 a failure to receive, 28 a time-out.
            for (name, codes) in [
                ("trailers", [0]), ("interim responses", [0]), ("unknown frames", [0]), ("byte by byte", [0]),
                ("GOAWAY before the answer", [0]), ("H3_INTERNAL_ERROR", [56, 95]),
                ("H3_REQUEST_CANCELLED in the body", [56, 95, 18]), ("a length of more than there is", [18, 56, 95]),
                ("an upper-case name", [56, 95]), ("closed in the body", [18, 56, 95]), ("never an answer", [28]),
                ("silent in the body", [28]), ("an entry beyond the static table", [56, 95]),
                ("SETTINGS again", [56, 95]),
            ] {
                server.removeScripts()
                server.inject(try #require(HTTP3Fault.named(name)))
                let got = try await curl(
                    server, roots, "/", ["-o", "/dev/null", "--max-time", codes == [28] ? "3" : "60"])
                #expect(codes.contains(Int(got.code)), "\(name): \(got.code) \(got.errors)")
            }
        }
    }

    private func curl(
        _ server: HTTP3TestServer, _ roots: String, _ path: String, _ options: [String], input: String = ""
    ) async throws -> Running.Result {
        let arguments =
            ["-sS", "--http3-only", "--cacert", roots, "--resolve", "localhost:\(server.port):127.0.0.1"] + options
            + [server.url(path).absoluteString]
        while true {
            let got = try await Running.command("/usr/bin/curl", arguments, input: input)
            // A handshake that took more than curl's ten seconds, on a busy machine.
            guard got.code == 55, got.errors.contains("after 1000") else { return got }
        }
    }

    // MARK: urlload

    @Test("--tls-earlydata sends a GET early on a later connection, and -v says so", arguments: [true, false])
    func earlyData(isAllowed: Bool) async throws {
        try await with { server, roots in
            server.acceptsEarlyData = true
            // The first connection takes two requests, after which the client knows the tickets and the settings.
            server.script { peer in
                try await peer.start()
                for number in 1...(peer.connection == 1 ? 2 : 1) {
                    let request = try await peer.expectRequest()
                    if number == 2 { try await peer.send(.goAway(from: 8), on: peer.control()) }
                    try await peer.respond(to: request.stream, .ok, body: Array("hello".utf8))
                }
            }
            let words =
                ["-sS", "-v", "--http3-only", "--cacert", roots, "--resolve", "localhost:\(server.port):127.0.0.1"]
                + (isAllowed ? ["--tls-earlydata"] : [])
            let result = try await Running.urlload(words + ["/1", "/2", "/3"].map { server.url($0).absoluteString })
            #expect(result.code == 0 && result.text == "hellohellohello", "\(result.errors)")
            #expect(result.errors.contains("early data accepted") == isAllowed, "\(result.errors)")
            #expect(server.counts.accepted == 2)
        }
    }

    // MARK: aioquic

    @Test("aioquic loads many requests over one connection", .enabled(if: QUICServer.isHere)) func aioquic()
        async throws
    {
        try await with { server, roots in
            let got = try await aioquic(server, roots, (0..<50).map { $0.isMultiple(of: 2) ? "/hello" : "/trailers" })
            let lines = got.text.split(separator: "\n")
            #expect(lines.count == 50, "\(got.text)\(got.errors)")
            for (index, line) in lines.enumerated() {
                #expect(line == (index.isMultiple(of: 2) ? "200 5 -" : "200 6 2"), "\(index)")
            }
            #expect(server.counts.accepted == 1 && server.counts.mostOpenStreams > 1)
        }
    }

    @Test("aioquic sees each fault as the error that it is", .enabled(if: QUICServer.isHere)) func aioquicFaults()
        async throws
    {
        try await with { server, roots in
            for (name, said) in [
                ("trailers", "200 2 221"), ("unknown frames", "200 2 -"), ("numbers in eight bytes", "200 2 -"),
                ("a table that is filled before the head", "200 2 -"), ("a head that waits for the table", "200 2 -"),
                ("H3_REQUEST_REJECTED", "reset 267"), ("H3_INTERNAL_ERROR", "reset 258"),
                ("the largest error code", "reset 4611686018427387903"),
                ("closed with H3_INTERNAL_ERROR", "closed 258"), ("closed with an error of QUIC", "closed 10"),
                ("an upper-case name", "closed 270"), ("a length of more than there is", "closed 270"),
                ("SETTINGS again", "closed 261"), ("DATA on the control stream", "closed 261"),
                ("GOAWAY before SETTINGS", "closed 266"), ("an entry beyond the static table", "closed 512"),
                ("a duplicate of nothing", "closed 513"), ("a second control stream", "closed 259"),
                ("the end of the control stream", "closed 260"),
            ] {
                server.removeScripts()
                server.inject(try #require(HTTP3Fault.named(name)))
                let got = try await aioquic(server, roots, ["/"])
                #expect(got.text == said + "\n", "\(name): \(got.text)\(got.errors)")
            }
        }
    }

    private func aioquic(_ server: HTTP3TestServer, _ roots: String, _ paths: [String]) async throws -> Running.Result {
        try await Running.command(
            "/usr/bin/python3",
            ["-I", QUICServer.package + "/Tests/Servers/quicclient.py", QUICServer.modules, roots, "\(server.port)"]
                + paths)
    }
}

#endif

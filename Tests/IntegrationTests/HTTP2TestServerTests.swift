// SPDX-License-Identifier: Apache-2.0

// The HTTP/2 server of URLLoadingTesting with other clients, where they are installed.

import Foundation
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HTTP2TestServerTests {
    static func has(_ tool: String) -> Bool { access("/usr/bin/" + tool, X_OK) == 0 }

    static let format = "%{http_version} %{response_code} %{size_download}"

    static func routes(_ server: HTTP2TestServer) {
        server.route("/hello") { _ in .ok("hello", headers: ["X-A": "b"]) }
        server.route("/big") { _ in .ok(.repeated(count: 3_000_000)) }
        server.route("/echo") { request in .ok(.bytes(request.body)) }
        server.route("/trailers") { _ in
            .ok(.chunks(["one", "two"], trailers: ["sum": "2"])).after(.init(.earlyHints, headers: ["link": "</x>"]))
        }
    }

    @Test("curl loads with prior knowledge", .enabled(if: has("curl")))
    func curl() async throws {
        try await withHTTP2TestServer { server in
            Self.routes(server)
            // curl 7.88 fails the second request of such a connection, also with other servers.
            for (path, result) in [
                ("/hello", "2 200 5"), ("/big", "2 200 3000000"), ("/trailers", "2 200 6"), ("/nowhere", "2 404 0"),
            ] {
                let arguments = ["--http2-prior-knowledge", "-o", "/dev/null", server.url(path).absoluteString]
                let got = try await Running.command("/usr/bin/curl", ["-sS", "-w", Self.format] + arguments)
                #expect(got.text == result, "\(got.errors)")
            }
            let body = String(repeating: "0123456789", count: 5_000)
            let echo = try await Running.command(
                "/usr/bin/curl",
                ["-sS", "--http2-prior-knowledge", "--data-binary", "@-", server.url("/echo").absoluteString],
                input: body)
            #expect(echo.text == body, "\(echo.errors)")
            #expect(server.failures.isEmpty && server.counts.accepted == 5)
        }
    }

    @Test("curl selects HTTP/2 by ALPN", .enabled(if: has("curl")))
    func secureCurl() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTP2TestServer(.init(try authority.issue())) { server in
            Self.routes(server)
            let urls = ["/big", "/hello", "/trailers"].flatMap { ["-o", "/dev/null", server.url($0).absoluteString] }
            let got = try await Running.command("/usr/bin/curl", ["-sSk", "-w", Self.format + "\n"] + urls)
            #expect(got.text == "2 200 3000000\n2 200 5\n2 200 6\n", "\(got.errors)")
            #expect(server.counts.accepted == 1)
            #expect(server.requests.first?.tls?.applicationProtocol == "h2" && server.failures.isEmpty)
        }
    }

    @Test("nghttp shows the frames", .enabled(if: has("nghttp")))
    func nghttp() async throws {
        try await withHTTP2TestServer { server in
            Self.routes(server)
            let got = try await Running.command("/usr/bin/nghttp", ["-nv", server.url("/trailers").absoluteString])
            #expect(
                got.text.contains(":status: 103") && got.text.contains(":status: 200") && got.text.contains("sum: 2"),
                "\(got.text)")
            #expect(server.failures.isEmpty)
        }
    }

    @Test("h2load uses many connections and streams", .enabled(if: has("h2load")))
    func h2load() async throws {
        try await withHTTP2TestServer { server in
            Self.routes(server)
            let got = try await Running.command(
                "/usr/bin/h2load", ["-n", "1000", "-c", "5", "-m", "20", server.url("/hello").absoluteString])
            #expect(got.text.contains("1000 succeeded, 0 failed"), "\(got.text)")
            try await server.wait { $0.answered == 1_000 }
            #expect(server.failures.isEmpty && server.counts.mostOpenStreams > 1)
        }
    }
}

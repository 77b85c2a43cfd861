// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct HTTPTests {
    @Test("An http URL is loaded (checklist 119)", arguments: ["NGINX", "APACHE"])
    func get(_ server: String) async throws {
        try await withSession(Servers.configuration) { session in
            let (data, response) = try await session.data(from: Servers.url(server, "/1k.txt"))
            #expect(response.http?.status == .ok && response.http?.version == .http11)
            #expect(response.mediaType.map { "\($0)".hasPrefix("text/plain") } == true)
            #expect(data == Servers.numbers(128))
        }
    }

    @Test("HEAD has no body", arguments: ["NGINX", "APACHE"])
    func headHasNoBody(_ server: String) async throws {
        try await withSession(Servers.configuration) { session in
            let request = Request(url: try Servers.url(server, "/1m.bin"), method: .head)
            let (data, response) = try await session.data(for: request)
            #expect(response.http?.headers[.contentLength] == "1000000")
            #expect(data.isEmpty)
            // The connection must remain usable.
            let (after, _) = try await session.data(from: Servers.url(server, "/1k.txt"))
            #expect(after.count == 1024)
        }
    }

    @Test(
        "4xx and 5xx are responses and no errors (checklist 160)",
        arguments: [("/nope", 404), ("/500", 500), ("/204", 204), ("/empty.bin", 200)])
    func anyStatusIsSuccess(_ path: String, _ code: Int) async throws {
        try await withSession(Servers.configuration) { session in
            let (data, response) = try await session.data(from: Servers.url("NGINX", path))
            #expect(response.http?.status.code == code)
            #expect(data.isEmpty == (code == 204 || code == 200))
        }
    }

    @Test(
        "gzip and deflate are decoded",
        arguments: [("NGINX", "/1m.txt", "gzip"), ("APACHE", "/1m.txt", "gzip"), ("ORIGIN", "/deflate", "deflate")])
    func codings(_ server: String, _ path: String, _ coding: String) async throws {
        try await withSession(Servers.configuration) { session in
            let (data, response) = try await session.data(from: Servers.url(server, path))
            #expect(response.http?.headers[.contentEncoding] == coding)
            #expect(
                data
                    == (coding == "gzip"
                        ? Servers.numbers(125_000) : Data(String(repeating: "deflated ", count: 1000).utf8)))
        }
    }

    @Test("A caller that sets Accept-Encoding gets the coded body") func aCallerThatSetsAcceptEncodingGetsTheCodedBody()
        async throws
    {
        try await withSession(Servers.configuration) { session in
            var request = Request(url: try Servers.url("NGINX", "/1k.txt"))
            request.headers[.acceptEncoding] = "gzip"
            let (data, _) = try await session.data(for: request)
            #expect(data.prefix(2) == Data([0x1F, 0x8B]))
        }
    }

    @Test("Chunks and trailers are read") func chunksAndTrailers() async throws {
        try await withSession(Servers.configuration) { session in
            let request = Request(url: try Servers.url("ORIGIN", "/trailers"))
            let (data, trailers) = try await session.load(request) { response, body in
                #expect(response.expectedLength == nil)
                var data = Data()
                for try await chunk in body { data.append(chunk) }
                return (data, body.trailers)
            }
            #expect(data == Data("first second third".utf8))
            #expect(trailers["X-Checksum"] == "12345" && trailers["X-Done"] == "yes")
        }
    }

    @Test("Interim responses are skipped") func interimResponsesArePassedOver() async throws {
        try await withSession(Servers.configuration) { session in
            let (data, response) = try await session.data(from: Servers.url("ORIGIN", "/interim"))
            #expect(response.http?.status == .ok)
            #expect(data == Data("done".utf8))
        }
    }

    @Test("A body may end with its connection") func aBodyMayEndWithItsConnection() async throws {
        try await withSession(Servers.configuration) { session in
            let (data, _) = try await session.data(from: Servers.url("ORIGIN", "/close"))
            #expect(data == Data("until the end".utf8))
        }
    }

    @Test("Bodies arrive as they were sent", arguments: [1, 1000, 65536, 65537, 5_000_000])
    func bodiesArriveAsSent(_ size: Int) async throws {
        try await withSession(Servers.configuration) { session in
            let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            let request = Request(url: try Servers.url("ORIGIN", "/echo"), method: .post, body: .data(bytes))
            let (data, response) = try await session.data(for: request)
            #expect(response.http?.headers["X-Method"] == "POST")
            #expect(data == bytes)
        }
    }

    @Test("1 GiB is streamed in chunks of at most 512 KiB") func oneGiBStreams() async throws {
        try await withSession(Servers.configuration) { session in
            let request = Request(url: try Servers.url("NGINX", "/1g.bin"))
            let (count, largest) = try await session.load(request) { response, body in
                #expect(response.expectedLength == 1 << 30)
                var (count, largest) = (0, 0)
                for try await chunk in body {
                    count += chunk.count
                    largest = max(largest, chunk.count)
                    // A load that never waits never yields its thread, which other tests need.
                    await Task.yield()
                }
                return (count, largest)
            }
            #expect(count == 1 << 30)
            #expect(largest <= 512 * 1024)
        }
    }

    @Test("A server is reached over IPv6") func overIPv6() async throws {
        guard let url = try Servers.overIPv6("NGINX", "/1k.txt") else { return }
        try await withSession(Servers.configuration) { session in
            let (data, _) = try await session.data(from: url)
            #expect(data.count == 1024)
        }
    }
}

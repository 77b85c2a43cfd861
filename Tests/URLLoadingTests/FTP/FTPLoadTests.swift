// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

/// Files over ftp through the ordinary load API.
@Suite struct FTPLoadTests {
    @Test("a file has its length, type and date; the login is anonymous; the second load reuses the connection")
    func file() async throws {
        try await withFTPTestServer { server in
            server.put("pub/a b.txt", Data("hello".utf8), modified: "20260102030405.5")
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: server.url("/pub/a%20b.txt"))
                #expect(String(decoding: data, as: UTF8.self) == "hello")
                #expect(
                    response.expectedLength == 5 && response.http == nil
                        && response.mediaType?.description == "text/plain")
                #expect(response.lastModified?.description == "Fri, 02 Jan 2026 03:04:05 GMT")
                #expect(
                    server.commands == [
                        "USER anonymous", "PASS urlload@", "FEAT", "OPTS UTF8 ON", "TYPE I", "SIZE pub/a b.txt",
                        "MDTM pub/a b.txt", "EPSV",
                        "RETR pub/a b.txt",
                    ])
                try await session.expect(server.url("/pub/a%20b.txt"), "hello")
                #expect(server.counts.accepted == 1 && server.counts.transfers == 2)
                #expect(session.connectionsDescription.contains("1 idle"))
            }
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
        }
    }

    @Test(
        "the body is read on demand only; a handle delivers the same pieces", arguments: Verb.allCases
    )
    func large(verb: Verb) async throws {
        try await withFTPTestServer { server in
            server.put("large", Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }))
            let session = Session(.ephemeral)
            let count = try await verb.run(session, Request(url: server.url("/large")))
            #expect(count == 3_000_000)
            await expectEmpty(session)
        }
    }

    @Test(
        "without SIZE, the size in the 150 reply is the expected length; the body may differ",
        arguments: [false, true])
    func announcedSize(_ isShort: Bool) async throws {
        var configuration = FTPTestServer.Configuration()
        (configuration.features, configuration.announcesSize) = (["EPSV"], true)
        try await withFTPTestServer(configuration) { server in
            server.put("a", Data("hello".utf8))
            if isShort { server.inject(.shortData(3)) }
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: server.url("/a"))
                #expect(
                    String(decoding: data, as: UTF8.self) == (isShort ? "hel" : "hello") && response.expectedLength == 5
                )
                let (text, listed) = try await session.data(from: server.url("/a;type=a"))
                #expect(!text.isEmpty && listed.expectedLength == nil)
                #expect(!server.commands.contains { $0.hasPrefix("SIZE") })
            }
        }
    }

    @Test("a folder is listed with MLSD if the server supports it")
    func listing() async throws {
        try await withFTPTestServer { server in
            server.put("pub/a", Data("1".utf8))
            server.put("pub/sub/b", Data("2".utf8))
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: server.url("/pub/"))
                #expect(
                    String(decoding: data, as: UTF8.self)
                        == "type=file;size=1;modify=20260102030405; a\r\ntype=dir; sub\r\n")
                #expect(response.ftpListing == .facts && response.mediaType?.description == "text/plain")
                #expect(server.commands.last == "MLSD pub")
                _ = try await session.data(from: server.url("/"))
                #expect(server.commands.last == "MLSD")
            }
        }
        var old = FTPTestServer.Configuration()
        old.features = nil
        try await withFTPTestServer(old) { server in
            server.put("a", Data("1".utf8))
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: server.url("/"))
                #expect(String(decoding: data, as: UTF8.self).hasSuffix(" a\r\n") && response.ftpListing == .text)
                #expect(server.commands.last == "LIST")
            }
        }
    }

    @Test("a folder whose LIST is answered 450 has no files")
    func emptyListing() async throws {
        var old = FTPTestServer.Configuration()
        old.features = nil
        try await withFTPTestServer(old) { server in
            server.put("a", Data("1".utf8))
            server.inject(.reply(to: "LIST", "450 No files found\r\n"))
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: server.url("/empty/"))
                #expect(data.isEmpty && response.ftpListing == .text)
                try await session.expect(server.url("/a"), "1")
                #expect(server.counts.accepted == 1)
            }
        }
    }

    @Test(
        "HEAD has size and date; text loses its CRs; over IPv4 and IPv6",
        arguments: [HTTPTestServer.Configuration.Address.ipv4, .ipv6])
    func others(_ address: HTTPTestServer.Configuration.Address) async throws {
        guard address == .ipv4 || Loopback.hasIPv6 else { return }
        var configuration = FTPTestServer.Configuration()
        configuration.address = address
        try await withFTPTestServer(configuration) { server in
            server.put("a.html", Data("one\r\ntwo\r\r\nthree\r".utf8))
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(for: Request(url: server.url("/a.html"), method: .head))
                #expect(data.isEmpty && response.expectedLength == 17 && response.lastModified != nil)
                #expect(response.mediaType?.description == "text/html")
                try await session.expect(server.url("/a.html;type=a"), "one\ntwo\r\nthree\r")
                #expect(server.counts.accepted == 1)
            }
        }
    }

    @Test("a range of a file is loaded; a missing range is an error")
    func ranges() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            try await withSession(.ephemeral) { session in
                var request = Request(url: server.url("/a"), headers: ["Range": "bytes=7-"])
                let (data, response) = try await session.data(for: request)
                #expect(
                    String(decoding: data, as: UTF8.self) == "789" && response.fileRange == 7..<10
                        && response.expectedLength == 3)
                request.headers["Range"] = "bytes=2-4"
                try await session.expect(request, "234")
                request.headers["Range"] = "bytes=-2"
                try await session.expect(request, "89")
                request.headers["Range"] = "bytes=10-"
                await expectFailure(.rangeNotSatisfiable) { try await session.data(for: request) }
            }
        }
    }

    @Test("a missing file leaves the connection usable")
    func missing() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            try await withSession(.ephemeral) { session in
                await expectFailure(.fileNotFound, .remote) { try await session.data(from: server.url("/b")) }
                try await session.expect(server.url("/a"), "hello")
                #expect(server.counts.accepted == 1)
            }
        }
    }

    @Test(
        "an unsupported request is refused before anything is sent",
        arguments: [
            ("ftp://127.0.0.1/a%0d%0aDELE%20b", Method.get, LoadError.Reason.invalidFTPArgument),
            ("ftp://a%0d%0aDELE@127.0.0.1/b", .get, .badURL), ("ftp://127.0.0.1/a", .delete, .badRequest),
            ("ftp://127.0.0.1/a/", .head, .badRequest), ("ftp://127.0.0.1/a;type=x", .get, .invalidFTPArgument),
        ])
    func refused(text: String, method: Method, reason: LoadError.Reason) async throws {
        try await withSession(.ephemeral) { session in
            let request = Request(url: try url(text), method: method)
            await expectFailure(reason, .local, .preparing) { try await session.data(for: request) }
        }
    }

    @Test("a redirect from http to ftp is not followed (security 58)")
    func redirect() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("ftp://127.0.0.1/a") }
            try await withSession(.ephemeral) { session in
                await expectFailure(.redirectRefused) { try await session.data(from: origin.url("/")) }
            }
        }
    }
}

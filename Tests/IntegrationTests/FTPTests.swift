// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport

/// ftp with vsftpd, which requires data connections to resume the TLS session of the control connection, and with
/// pyftpdlib, with users and over IPv6.
@Suite(.enabled(if: Servers.areHere, Servers.areMissing))
struct FTPTests {
    static let anonymous = ["VSFTPD", "VSFTPD_EXPLICIT", "VSFTPD_IMPLICIT"].filter { Servers.variable($0) != nil }
    static let all = anonymous + ["PYFTPD", "PYFTPD_TLS"].filter { Servers.variable($0) != nil }
    static let areMissing: Comment = "No vsftpd and no pyftpdlib: script/setup --tests gets them"

    static func session(_ server: String, user: String? = "ada:secret") throws -> (Session, (String) throws -> URL) {
        var configuration = Servers.configuration
        if server == "VSFTPD_EXPLICIT" || server == "PYFTPD_TLS" { configuration.ftp.security = .explicit }
        let address = try Servers.text(server, "")
        let base =
            server.hasPrefix("PYFTPD") && user != nil ? address.replacing("://", with: "://\(user ?? "")@") : address
        return (Session(configuration), { try #require(URL(string: base + $0)) })
    }

    @Test(
        "Files, listings, sizes and dates are read over one connection", .enabled(if: !all.isEmpty, areMissing),
        arguments: all)
    func get(server: String) async throws {
        let (session, url) = try Self.session(server)
        for _ in 0..<3 {
            let (data, response) = try await session.data(from: url("/pub/1m.bin"))
            #expect(
                data == Servers.numbers(125_000) && response.expectedLength == 1_000_000 && response.lastModified != nil
            )
        }
        let (listing, _) = try await session.data(from: url("/pub/"))
        #expect(String(decoding: listing, as: UTF8.self).contains("1k.txt"))
        let (_, head) = try await session.data(for: Request(url: url("/pub/1k.txt"), method: .head))
        #expect(head.expectedLength == 1024)
        let (part, _) = try await session.data(
            for: Request(url: url("/pub/1m.bin"), headers: ["Range": "bytes=999992-"]))
        #expect(String(decoding: part, as: UTF8.self) == "0125000\n")
        await #expect(throws: LoadError.self) { try await session.data(from: url("/pub/none")) }
        #expect(session.connectionsDescription.contains(" 1 idle "))
    }

    @Test("A file is uploaded, and the rest of one is appended", .enabled(if: !all.isEmpty, areMissing), arguments: all)
    func put(server: String) async throws {
        let (session, url) = try Self.session(server)
        let name = "/up/\(server)-\(UInt32.random(in: 0 ... .max))"
        let content = Servers.numbers(125_000)
        _ = try await session.upload(Request(url: url(name), method: .put), from: .data(content.prefix(300_000)))
        var rest = Request(url: try url(name), method: .put)
        rest.ftpStoreOffset = 300_000
        _ = try await session.upload(rest, from: .data(content.dropFirst(300_000)))
        let (data, _) = try await session.data(from: url(name))
        #expect(data == content)
        let held = try Servers.text("FTP_FILES", name)
        unlink(held)
    }

    @Test("A cut download is resumed", .enabled(if: !all.isEmpty, areMissing), arguments: all)
    func resume(server: String) async throws {
        let (session, url) = try Self.session(server)
        let task = session.downloadTask(Request(url: try url("/pub/1m.bin"))).resumed()
        try await task.received()
        guard let token = await task.cancelProducingResumeToken() else {
            // The whole file arrived before the cut.
            _ = try await task.value
            return
        }
        let place = temporaryURL("ftp")
        defer { try? FileManager.default.removeItem(at: place) }
        try await session.download(resuming: token, request: Request(url: url("/pub/1m.bin")), to: place)
        #expect(try Data(contentsOf: place) == Servers.numbers(125_000))
    }

    @Test("A wrong password is refused", .enabled(if: Servers.variable("PYFTPD") != nil, "No pyftpdlib"))
    func wrongPassword() async throws {
        let (session, url) = try Self.session("PYFTPD", user: "ada:wrong")
        let error = await #expect(throws: LoadError.self) { try await session.data(from: url("/pub/1k.txt")) }
        #expect(error?.reason == .userAuthenticationRequired)
    }

    @Test(
        "A server that requires TLS refuses a login without it",
        .enabled(if: Servers.variable("VSFTPD_EXPLICIT") != nil, "No vsftpd"))
    func wantsTLS() async throws {
        let session = Session(Servers.configuration)
        let url = try Servers.url("VSFTPD_EXPLICIT", "/pub/1k.txt")
        let error = await #expect(throws: LoadError.self) { try await session.data(from: url) }
        #expect(error?.reason == .userAuthenticationRequired)
    }
}

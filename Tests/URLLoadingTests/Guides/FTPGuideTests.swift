// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/ftp.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct FTPGuideTests {
    @Test("files, folders, uploads")
    func files() async throws {
        try await withFTPTestServer { server in
            server.put("pub/a.txt", Data("hello".utf8))
            let session = Session(.ephemeral)
            let url = server.url("/pub/a.txt")
            let folder = server.url("/pub/")
            let place = server.url("/up.txt")

            let (data, response) = try await session.data(from: url)
            #expect(data.count == 5 && response.expectedLength == 5 && response.lastModified != nil)

            let (listing, form) = try await session.data(from: folder)
            if form.ftpListing == .facts {
                for line in String(decoding: listing, as: UTF8.self).split(separator: "\r\n") {
                    let parts = line.split(separator: " ", maxSplits: 1)
                    #expect(parts.count == 2 && parts[1] == "a.txt")
                }
            }

            let content = Data("0123456789".utf8)
            _ = try await session.upload(Request(url: place, method: .put), from: .data(content.prefix(4)))

            let (_, there) = try await session.data(for: Request(url: place, method: .head))
            var rest = Request(url: place, method: .put)
            rest.ftpStoreOffset = there.expectedLength
            _ = try await session.upload(rest, from: .data(content.dropFirst(Int(there.expectedLength ?? 0))))
            #expect(server.file("up.txt")?.content == content)
            await expectEmpty(session)
        }
    }

    @Test("the example of ftp credentials")
    func login() async throws {
        var setting = FTPTestServer.Configuration()
        setting.users = ["ada": "secret"]
        setting.allowsAnonymous = false
        try await withFTPTestServer(setting) { server in
            server.put("a", Data("hello".utf8))
            let url = server.url("/a")
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                guard challenge.protectionSpace.method == .default, challenge.previousFailureCount == 0 else {
                    return .performDefaultHandling
                }
                return .use(Credential(user: "ada", password: "secret"))
            }
            let session = Session(.ephemeral, decisions: decisions)
            try await session.expect(url, "hello")
            await expectEmpty(session)
        }
    }

    @Test("TLS")
    func security() async throws {
        var configuration = Configuration.default
        configuration.ftp.security = .explicit
        #expect(configuration.ftp.security == .explicit)
    }
}

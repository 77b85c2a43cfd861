// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Downloads over ftp, and their resumption.
@Suite(.timeLimit(.minutes(4)))
struct FTPDownloadRows {
    static let content = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    static func with(_ use: (FTPTestServer, Session, @Sendable (String) -> URL) async throws -> Void) async throws {
        let folder = try makeTemporaryFolder("ftp")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withFTPTestServer { server in
            server.put("file", Self.content)
            let session = Session(.ephemeral.with { $0.temporaryDirectory = folder })
            try await use(server, session) { folder.appending(path: $0) }
            await expectEmpty(session)
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
        }
    }

    static func cut(_ server: FTPTestServer, _ session: Session, after count: Int = 700_000) async throws -> ResumeToken
    {
        server.inject(.stallsData(after: count))
        let task = session.downloadTask(Request(url: server.url("/file"))).resumed()
        try await task.received(count)
        let token = await task.cancelProducingResumeToken()
        server.removeFaults()
        return try #require(token)
    }

    @Test(
        "a cancelled download resumes with REST, also from a stored token; one of a changed file restarts",
        arguments: [
            (false, "20260102030405"), (true, "20260102030405"), (true, "20260102030406"),
        ])
    func continues(isStored: Bool, modified: String) async throws {
        try await Self.with { server, session, place in
            var token = try await Self.cut(server, session)
            #expect(token.offset == 700_000 && token.expectedLength == 1_500_000)
            if isStored { token = try ResumeToken(token.data) }
            let isSame = modified == "20260102030405"
            server.put("file", isSame ? Self.content : Data("new".utf8), modified: modified)
            let task = session.downloadTask(resuming: token, options: DownloadOptions(destination: place("whole")))
            let events = task.events
            task.resume()
            var offset: Int64?
            for await case .resumed(let from, _) in events { offset = from }
            #expect(try await task.value.size == (isSame ? 1_500_000 : 3))
            #expect(offset == (isSame ? 700_000 : 0))
            #expect(try Data(contentsOf: place("whole")) == (isSame ? Self.content : Data("new".utf8)))
            #expect(server.commands.contains("REST 700000") == isSame)
        }
    }

    @Test("a server without REST sends the whole file again")
    func withoutREST() async throws {
        try await Self.with { server, session, place in
            let token = try await Self.cut(server, session)
            server.inject(.reply(to: "REST", "502 no\r\n"))
            try await session.download(resuming: token, to: place("whole"))
            #expect(try Data(contentsOf: place("whole")) == Self.content)
        }
    }

    @Test("an interrupted download can be resumed: after a 426, and after a short file")
    func broken() async throws {
        for fault in [FTPFault.abortsData(after: 500_000), .shortData(500_000)] {
            try await Self.with { server, session, place in
                server.inject(fault)
                let error = await failure(.truncated) {
                    try await session.download(Request(url: server.url("/file")), to: place("whole"))
                }
                server.removeFaults()
                let token = try #require(error?.resumeToken)
                #expect(token.offset == 500_000)
                try await session.download(resuming: token, to: place("whole"))
                #expect(try Data(contentsOf: place("whole")) == Self.content)
            }
        }
    }

    @Test("a data task becomes a download but no stream; a suspended one continues at its offset")
    func becomes() async throws {
        try await Self.with { server, session, place in
            var decisions = Decisions()
            let whole = place("whole")
            decisions.response = Decision { _ in .becomeDownload(DownloadOptions(destination: whole)) }
            let task = session.dataTask(Request(url: server.url("/file")), decisions: decisions)
            let events = task.events
            task.resume()
            var download: LoadTask<DownloadedFile>?
            for await case .becameDownload(let became) in events { download = became }
            download?.suspend()
            try await Task.sleep(for: .milliseconds(5))
            download?.resume()
            #expect(try await download?.value.size == 1_500_000)
            decisions.response = Decision { _ in .becomeStream }
            let stream = session.dataTask(Request(url: server.url("/file")), decisions: decisions).resumed()
            await expectFailure(.badDecision) { try await stream.value }
        }
    }

    @Test("repeated suspension and resumption makes progress")
    func suspends() async throws {
        try await Self.with { server, session, place in
            let task = session.downloadTask(
                Request(url: server.url("/file")), options: DownloadOptions(destination: place("whole")))
            task.resume()
            for _ in 0..<300 {
                task.suspend()
                task.resume()
                try await Task.sleep(for: .microseconds(200))
            }
            #expect(try await task.value.size == 1_500_000)
            #expect(try Data(contentsOf: place("whole")) == Self.content)
        }
    }
}

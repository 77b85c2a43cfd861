// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// Uploads over ftp.
@Suite(.timeLimit(.minutes(4)))
struct FTPUploadRows {
    static let content = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    @Test("a body of every kind is stored, with progress, in the order of events (checklist 45)")
    func bodies() async throws {
        try await withFTPTestServer { server in
            try await withSession(.ephemeral) { session in
                let place = temporaryURL("ftp")
                try Self.content.write(to: place)
                defer { try? FileManager.default.removeItem(at: place) }
                let bodies: [RequestBody] = [
                    .data(Self.content), .file(place), .stream { FTPPieces(content: Self.content) },
                    .stream(length: Int64(Self.content.count)) { FTPPieces(content: Self.content) }, .data(Data()),
                ]
                for (index, body) in bodies.enumerated() {
                    let task = session.uploadTask(Request(url: server.url("/up\(index)"), method: .put), from: body)
                    let events = task.events
                    task.resume()
                    var order = LoadEventOrder()
                    var sent: Int64 = 0
                    for await event in events {
                        let isLegal = order.accept(event)
                        #expect(isLegal, "\(order)")
                        if case .bodySent(let bytes) = event { sent = bytes.total }
                    }
                    _ = try await task.value
                    let expected = index == 4 ? Data() : Self.content
                    #expect(order.isComplete && sent == Int64(expected.count))
                    #expect(server.file("up\(index)")?.content == expected)
                    let metrics = try await task.metrics
                    #expect(metrics.transactions.count == 1 && metrics.transactions[0].protocolName == "ftp")
                    #expect(metrics.transactions[0].requestContentBytes == Int64(expected.count))
                    #expect(metrics.transactions[0].isReusedConnection == (index > 0))
                }
                #expect(server.counts.accepted == 1)
            }
        }
    }

    @Test("the rest of a file is appended")
    func rest() async throws {
        try await withFTPTestServer { server in
            server.put("up", Data("01234".utf8))
            try await withSession(.ephemeral) { session in
                let (_, there) = try await session.data(for: Request(url: server.url("/up"), method: .head))
                var request = Request(url: server.url("/up"), method: .put)
                request.ftpStoreOffset = there.expectedLength
                _ = try await session.upload(request, from: .data(Data("56789".utf8)))
                #expect(server.file("up")?.content == Data("0123456789".utf8) && server.commands.contains("REST 5"))
            }
        }
    }

    @Test("text gets CRLF line ends")
    func text() async throws {
        try await withFTPTestServer { server in
            try await withSession(.ephemeral) { session in
                _ = try await session.upload(
                    Request(url: server.url("/up;type=a"), method: .put), from: .data(Data("a\nb\r\nc".utf8)))
                #expect(server.file("up")?.content == Data("a\r\nb\r\nc".utf8))
            }
        }
    }

    @Test(
        "a full disk, a refusal and a failing body end the upload",
        arguments: [
            (FTPFault.refusesStore(code: 552, after: 1), LoadError.Reason.ftpStorageFull),
            (.refusesStore(code: 452, after: 300_000), .ftpStorageFull),
            (.refusesStore(code: 426, after: 1), .truncated), (.reply(to: "STOR", "553 no\r\n"), .ftpStoreRefused),
            (.reply(to: "STOR", "552 full\r\n"), .ftpStorageFull), (.close(at: "STOR"), .connectionLost),
        ])
    func refused(fault: FTPFault, reason: LoadError.Reason) async throws {
        try await withFTPTestServer { server in
            server.inject(fault)
            let session = Session(.ephemeral)
            // More than the buffers of two sockets hold.
            let request = Request(url: server.url("/up"), method: .put)
            await expectFailure(reason) { try await session.upload(request, from: .data(Data(count: 24 << 20))) }
            await expectEmpty(session)
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
        }
    }

    @Test("an upload can be cancelled while the server does not read", arguments: [Ending.task, .invalidation])
    func cancelled(_ ending: Ending) async throws {
        try await withFTPTestServer { server in
            server.inject(.stallsData(after: 1))
            let session = Session(.patient)
            let load = RunningLoad(
                session, Request(url: server.url("/up"), method: .put, body: .data(Data(count: 24 << 20))))
            try await server.wait { $0.stalled == 1 }
            ending.apply(load, session)
            #expect(await load.reason == .cancelled)
            await expectEmpty(session)
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
            #expect(server.file("up") == nil)
        }
    }
}

struct FTPPieces: AsyncSequence, Sendable {
    let content: Data
    struct Iterator: AsyncIteratorProtocol {
        var rest: Data
        mutating func next() async -> Data? {
            guard !rest.isEmpty else { return nil }
            defer { rest = rest.dropFirst(70_001) }
            return Data(rest.prefix(70_001))
        }
    }
    func makeAsyncIterator() -> Iterator { Iterator(rest: content) }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Resumable uploads over HTTP/2: draft-ietf-httpbis-resumable-upload-12.
@Suite(.timeLimit(.minutes(4)))
struct HTTP2UploadTests {
    private static let content = bytes(40_000), kept = 10_000

    /// The offer, in an interim response.
    private static func offer(_ peer: HTTP2Peer, _ stream: Int) async throws {
        let fields: Headers = [.location: "/uploads/1", .uploadInteropVersion: "9"]
        let status = try #require(Status(104))
        try await peer.headers(stream, HTTP2Fields(status, fields))
    }

    /// The question, and the rest.
    private static func letServerContinue(_ peer: HTTP2Peer, _ received: borrowing Lock<[UInt8]>) async throws {
        let question = try await peer.expectRequest()
        #expect(question.fields[":method"] == "HEAD" && question.fields[":path"] == "/uploads/1")
        try await peer.respond(
            to: question.stream, .noContent,
            [
                .uploadOffset: "\(kept)", .uploadLength: "\(content.count)", .uploadComplete: "?0",
                .uploadInteropVersion: "9",
            ])
        let part = try await peer.expectRequest()
        #expect(
            part.fields[":method"] == "PATCH" && part.fields["upload-offset"] == "\(kept)"
                && part.fields["upload-complete"] == "?1")
        let rest = try await peer.expectBody(of: part.stream)
        received.withLock { $0 = rest }
        try await peer.respond(to: part.stream, .ok, [.uploadComplete: "?1"], body: Array("done".utf8))
        _ = await peer.untilClosed()
    }

    @Test(
        "a reset stream resumes on the same connection; a lost connection on a new one",
        arguments: [true, false])
    func continues(losesConnection: Bool) async throws {
        try await withHTTP2 { server, session in
            let received = Lock<[UInt8]>([])
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                #expect(first.fields["upload-complete"] == "?1")
                try await Self.offer(peer, first.stream)
                if losesConnection {
                    _ = try await peer.expect(.data, stream: first.stream)
                    return peer.abort()
                }
                _ = try await peer.expectBody(of: first.stream)
                try await peer.reset(first.stream, .internalError)
                try await Self.letServerContinue(peer, received)
            }
            server.script(onConnection: 2) { peer in
                try await peer.start()
                try await Self.letServerContinue(peer, received)
            }
            let (data, response) = try await session.uploadResumably(
                Request(url: server.url("/files"), method: .post), from: .data(Data(Self.content)),
                options: ResumableUploadRows.eager)
            #expect(String(decoding: data, as: UTF8.self) == "done" && response.http?.version == .http2)
            let isRest = received.withLock { $0 == Array(Self.content[Self.kept...]) }
            #expect(isRest)
            #expect(server.counts.accepted == (losesConnection ? 2 : 1))
        }
    }
}

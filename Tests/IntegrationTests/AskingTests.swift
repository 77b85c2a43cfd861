// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

/// A server that requests the client certificate after the handshake (RFC 8446 §4.6.2) while the client waits for other
/// bytes (checklist 61, 66, 80).
@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct AskingTests {
    enum Answer: CaseIterable { case nobody, ada }

    private func session(_ answer: Answer) async throws -> Session {
        var configuration = Servers.configuration
        configuration.connections.httpVersions = .http1Only
        let directory = try Servers.text("PKI", "/")
        let identity = try await ClientIdentity.load(
            certificateFile: URL(filePath: directory + "client.pem"), keyFile: URL(filePath: directory + "client.key")
        ) { "sesame" }
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            guard challenge.clientCertificate != nil else { return .performDefaultHandling }
            return answer == .ada ? .present(identity) : .rejectProtectionSpace
        }
        return Session(configuration, decisions: decisions)
    }

    @Test(arguments: Answer.allCases, [false, true])
    func `A certificate is requested while the client waits for a 100, or sends without waiting`(
        _ answer: Answer, _ expects: Bool
    ) async throws {
        let session = try await session(answer)
        var request = Request(url: try Servers.url("ASKING", "/now"), method: .post, body: .data(Data("hello".utf8)))
        request.headers["X-Answers"] = "\(answer)"
        if expects { request.headers[.expect] = "100-continue" }
        for _ in 0..<2 {
            let (data, _) = try await session.data(for: request)
            #expect(String(decoding: data, as: UTF8.self) == "\(answer) 5\n")
        }
    }

    @Test(arguments: Answer.allCases) func `A certificate is requested while the client waits for a piece of the body`(
        _ answer: Answer
    ) async throws {
        let session = try await session(answer)
        let (pieces, feed) = AsyncStream<[UInt8]>.makeStream()
        feed.yield(Array("hello".utf8))
        let body = RequestBody.stream(length: 10) { pieces }
        let loads = session.dataTask(
            Request(
                url: try Servers.url("ASKING", "/now"), method: .post, headers: ["X-Answers": "\(answer)"], body: body))
        // The 102 follows the certificate request: a client that has read it has answered.
        var hasHeard = false
        let events = loads.events
        loads.resume()
        for await event in events {
            if case .informational = event {
                hasHeard = true
                break
            }
        }
        feed.yield(Array("world".utf8))
        feed.finish()
        let data = try await loads.value
        #expect(hasHeard && String(decoding: data, as: UTF8.self) == "\(answer) 10\n")
    }

    @Test(arguments: Answer.allCases) func `A certificate is requested while the connection is idle`(_ answer: Answer)
        async throws
    {
        let session = try await session(answer)
        for path in ["/idle", "/plain", "/now"] {
            let (data, _) = try await session.data(from: try Servers.url("ASKING", path))
            #expect(String(decoding: data, as: UTF8.self).hasSuffix(" 0\n"), "\(path)")
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// What a server has sent of a message is acknowledged at once where the server may hold the rest back until then.
@Suite(.timeLimit(.minutes(1))) struct AcknowledgementRows {
    private func session(_ transport: ScriptedTransport) -> Session {
        var configuration = Configuration.ephemeral
        configuration.dial = { _, _ in transport }
        return Session(configuration)
    }

    @Test("a body that the server asked for by 100 (Continue) does not delay the response to it")
    func expectation() async throws {
        let transport = ScriptedTransport([
            .takeUntil("\r\n\r\n"), .block, .give("HTTP/1.1 100 Continue\r\n\r\n"), .take(3), .block,
            .give("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), .block, .give("hello"),
        ])
        var request = Request(url: URL(string: "http://a.example/")!, method: .post, body: .data(Data("abc".utf8)))
        request.headers[.expect] = "100-continue"
        let (data, _) = try await session(transport).data(for: request)
        #expect(String(decoding: data, as: UTF8.self) == "hello")
        // The system acknowledges what follows at once, too, so that one request is enough.
        #expect(transport.acknowledgements == 1)
    }

    @Test("the first response of a connection needs no request, because the system acknowledges it at once")
    func first() async throws {
        let transport = ScriptedTransport([
            .takeUntil("\r\n\r\n"), .block, .give("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), .block,
            .give("hello"),
        ])
        let (data, _) = try await session(transport).data(from: URL(string: "http://a.example/")!)
        #expect(data.count == 5 && transport.acknowledgements == 0)
    }

    @Test("the rest of an ftp reply is not delayed")
    func reply() async throws {
        let transport = ScriptedTransport([
            .give("220 ready\r\n"), .takeUntil("\r\n"), .block, .give("331 password\r\n"), .takeUntil("\r\n"), .block,
            .give("530-That is not\r\n"), .block, .give("530 the password\r\n"), .end,
        ])
        await expectFailure(.userAuthenticationRequired, .remote) {
            try await session(transport).data(from: URL(string: "ftp://ada:wrong@a.example/file")!)
        }
        #expect(transport.acknowledgements == 1)
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

@Suite(.timeLimit(.minutes(5)))
struct HTTP2FaultTests {
    @Test("each protocol fault of a server has its outcome (security 50 to 56)", arguments: HTTP2Fault.all)
    func fault(_ fault: HTTP2Fault) async throws {
        var configuration = Configuration.http2
        // Where it must not fire it is longer than the busiest machine takes.
        configuration.strictness = .strict
        configuration.timeouts.idle = fault.outcome == .stalls ? .milliseconds(300) : .seconds(250)
        try await withHTTP2TestServer { server in
            server.route("*") { _ in .ok("ok") }
            server.inject(fault, onConnection: 1)
            try await withSession(configuration) { session in
                let outcome = await load(fault, server, session)
                switch (fault.outcome, outcome) {
                case (.succeeds, .success("ok")), (.retries, .success("ok")), (.ends, _): break
                case (.stalls, .failure(let error)): #expect(error.reason == .idleTimeout)
                case (.connectionFails(let codes), .failure(let error)):
                    #expect(error.reason != .idleTimeout, "\(error)")
                    if !codes.isEmpty {
                        let code = try await server.wait(for: .goAway, onConnection: 1).frame.errorCode
                        #expect(code.map { codes.contains($0) } == true, "\(String(describing: code))")
                    }
                // The reset that is sent depends on the order of nghttp2's checks.
                case (.streamFails, .failure(let error)): #expect(error.reason != .idleTimeout, "\(error)")
                default: Issue.record("\(fault): \(fault.outcome) but \(outcome)")
                }
                // After any fault the next load has a working connection.
                let answersAgain =
                    fault.outcome != .stalls
                    && !["REFUSED_STREAM always", "SETTINGS never acknowledged"].contains(fault.name)
                if answersAgain { try await session.expect(server.url("/after"), "ok") }
            }
        }
    }

    private func load(_ fault: HTTP2Fault, _ server: HTTP2TestServer, _ session: Session) async -> Result<
        String, LoadError
    > {
        let isUpload = fault.name.hasPrefix("a window that") || fault.name == "a window of one byte"
        let request =
            isUpload
            ? Request(url: server.url("/"), method: .post, body: .data(Data(bytes(100_000))))
            : Request(url: server.url("/"))
        do throws(LoadError) {
            return .success(String(decoding: try await session.data(for: request).0, as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }
}

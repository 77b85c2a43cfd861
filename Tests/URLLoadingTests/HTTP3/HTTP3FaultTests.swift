// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

@Suite(.timeLimit(.minutes(5)))
struct HTTP3FaultTests {
    /// Those after which a load on the same connection waits, or is rejected again.
    private static let lasting: Set = ["H3_REQUEST_REJECTED always", "an entry that never comes"]

    /// nghttp3 drops a field with a wrong name or value, where RFC 9114 §10.3 demands an error, and ignores bytes
    /// behind the number of a GOAWAY (§7.1).
    private static let tolerated: Set = [
        "a name with a blank", "a name with a colon", "a name with CR LF", "a name with NUL", "an empty name",
        "a name beyond ASCII", "a value with CR LF", "a value with CR", "a value with LF", "a value with NUL",
        "a value with a blank before it", "a value with a blank behind it", "GOAWAY with bytes behind its number",
    ]

    @Test("Each fault of an HTTP/3 server has its outcome", arguments: HTTP3Fault.all)
    func fault(_ fault: HTTP3Fault) async throws {
        func change(_ configuration: inout Configuration) {
            configuration.strictness = .strict
            // Where it must not fire it is longer than the busiest machine takes.
            configuration.timeouts.idle = fault.outcome == .stalls ? .seconds(1) : .seconds(250)
        }
        try await withHTTP3(change: change, keepsRules: false) { server, session in
            server.route("*") { _ in .ok("ok") }
            server.inject(fault, onConnection: 1)
            let outcome = await load(fault, server, session)
            switch (fault.outcome, outcome) {
            case (.succeeds, .success("ok")), (.retries, .success("ok")), (.ends, _): break
            case (_, .success("ok")) where Self.tolerated.contains(fault.name): break
            case (.stalls, .failure(let error)):
                #expect([.idleTimeout, .connectTimeout].contains(error.reason), "\(error)")
            case (.connectionFails(let codes), .failure(let error)):
                #expect(error.reason != .idleTimeout, "\(error)")
                if !codes.isEmpty {
                    let code = try await server.waitForEnding { $0.connection == 1 && $0.stream == nil }.code
                    #expect(codes.contains(code), "\(code)")
                }
            case (.streamFails(let codes), .failure(let error)):
                #expect(error.reason != .idleTimeout, "\(error)")
                // Of a stream that the server has ended, the client says nothing.
                if let ending = server.endings.first, !codes.isEmpty {
                    #expect(codes.contains(ending.code), "\(ending)")
                }
            default: Issue.record("\(fault): \(fault.outcome) but \(outcome)")
            }
            // After any fault the next load has a working connection.
            #expect(server.counts.faults == 1 || fault.outcome == .stalls)
            guard fault.outcome != .stalls, !Self.lasting.contains(fault.name) else {
                return
            }
            try await session.expect(server.url("/after"), "ok")
        }
    }

    private func load(
        _ fault: HTTP3Fault, _ server: HTTP3TestServer, _ session: Session
    ) async -> Result<String, LoadError> {
        let isUpload = fault.name.hasPrefix("a window that")
        let request =
            isUpload
            ? Request(url: server.url("/"), method: .post, body: .data(Data(count: 1_000_000)))
            : Request(url: server.url("/"))
        do throws(LoadError) {
            return .success(String(decoding: try await session.data(for: request).0, as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }

    @Test("Faults have names of their own, and are found by them") func names() {
        #expect(Set(HTTP3Fault.all.map(\.name)).count == HTTP3Fault.all.count)
        #expect(HTTP3Fault.named("H3_REQUEST_REJECTED")?.outcome == .retries && HTTP3Fault.named("none") == nil)
    }
}

#endif

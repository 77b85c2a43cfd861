import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

@Suite(.timeLimit(.minutes(2)))
struct HTTP2FaultTests {
    @Test("security 50 to 56", arguments: HTTP2Fault.all)
    func fault(_ fault: HTTP2Fault) async throws {
        var configuration = Configuration.http2
        if fault.outcome == .stalls { configuration.idleTimeout = .milliseconds(300) } else { configuration.idleTimeout = .seconds(20) }
        try await withHTTP2TestServer { server in
            server.route("*") { _ in .ok("ok") }
            server.misbehave(fault, onConnection: 1)
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
                case (.streamFails(let codes), .failure(let error)):
                    #expect(error.reason != .idleTimeout, "\(error)")
                    _ = codes
                default: Issue.record("\(fault): \(fault.outcome) but \(outcome)")
                }
                // Whatever happened, the next load has a connection that works.
                if fault.outcome != .stalls, !["REFUSED_STREAM always", "SETTINGS never acknowledged"].contains(fault.name) { try await session.expect(server.url("/after"), "ok") }
            }
        }
    }

    private func load(_ fault: HTTP2Fault, _ server: HTTP2TestServer, _ session: Session) async -> Result<String, LoadError> {
        let isUpload = fault.name.hasPrefix("a window that") || fault.name == "a window of one byte"
        let request = isUpload
            ? Request(url: server.url("/"), method: .post, body: .data(Data(bytes(100_000))))
            : Request(url: server.url("/"))
        do throws(LoadError) {
            return .success(String(decoding: try await session.data(for: request).0, as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }
}

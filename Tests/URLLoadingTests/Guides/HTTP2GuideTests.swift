// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/http2.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HTTP2GuideTests {
    @Test("the example of selecting HTTP/2") func choosing() async throws {
        var configuration = Configuration.ephemeral
        configuration.connections.httpVersions = .automatic
        configuration.connections.httpVersions = .http1Only
        configuration.connections.httpVersions = .http2PriorKnowledge
        configuration.connections.http2PingInterval = .seconds(15)
        configuration.connections.http2PingTimeout = .seconds(5)
        // The server runs beside it, on a machine that may be busy.
        configuration.connections.http2PingTimeout = .seconds(500)
        try await withHTTP2TestServer { server in
            server.route("/") { _ in .ok("two") }
            let url = server.url("/")
            try await withSession(configuration) { session in
                let (data, response) = try await session.data(from: url)
                #expect(response.http?.version == .http2 && data.count == 3)
                let task = session.dataTask(from: url)
                task.resume()
                task.prioritize(.high)
                #expect(try await task.value.count == 3)
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// Bodies over HTTP/2 at a distance: the window is not what they wait for.
@Suite struct HTTP2WindowRows {
    private static let body = bytes(24 << 20)

    /// Returns the round trips of a body of 24 MiB with 400 ms between the client and the server.
    private func roundTrips(_ change: (inout Configuration) -> Void = { _ in }) async throws -> Int {
        try await withHTTP2TestServer { server in
            server.route("/") { _ in .ok(.bytes(Self.body)) }
            var conditions = NetworkConditions(delay: .milliseconds(200), queueLimit: 64 << 20)
            conditions.seed = 1
            return try await withNetworkRelay(to: server.url(), conditions) { relay in
                try await withSession(Configuration.http2.with(change)) { session in
                    let (data, _) = try await session.data(from: relay.url())
                    #expect(data == Data(Self.body))
                }
                return relay.connections[0].roundTrips
            }
        }
    }

    // Windows of at most 4 MiB need at least eleven. The server and the client may be slow: a second is two round trips
    // and a half.
    @Test("24 MiB need the round trips of the connect, of the first window, of the second, and of the body itself")
    func theWindowFollowsTheDistance() async throws {
        let count = try await roundTrips()
        #expect(count <= 9)
    }

    @Test("a limit of the session holds") func aLimit() async throws {
        let count = try await roundTrips { $0.limits.http2StreamWindow = 4 << 20 }
        #expect(count >= 8)
    }
}

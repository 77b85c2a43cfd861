// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

extension Configuration {
    /// For servers that speak HTTP/2 in the clear.
    static var http2: Configuration {
        var configuration = Configuration.ephemeral
        configuration.connections.httpVersions = .http2PriorKnowledge
        // Their servers run beside them, and on a busy machine answer when they can.
        configuration.connections.http2PingInterval = nil
        return configuration
    }
}

/// An HTTP/2 server in the clear and a session for it; at the end the client must have kept every rule.
nonisolated(nonsending) func withHTTP2<R>(
    _ server: HTTP2TestServer.Configuration = .init(), _ client: (inout Configuration) -> Void = { _ in },
    _ use: nonisolated(nonsending) (HTTP2TestServer, Session) async throws -> R
) async throws -> R {
    var configuration = Configuration.http2
    client(&configuration)
    return try await withHTTP2TestServer(server) { server in
        let result = try await withSession(configuration) { session in try await use(server, session) }
        #expect(server.failures.isEmpty)
        return result
    }
}

/// The client's timeouts follow `clock`.
nonisolated(nonsending) func withHTTP2<R>(
    clock: ManualClock, _ client: (inout Configuration) -> Void = { _ in },
    _ use: nonisolated(nonsending) (HTTP2TestServer, Session) async throws -> R
) async throws -> R {
    func withClock(_ configuration: inout Configuration) {
        configuration.use(clock)
        client(&configuration)
    }
    return try await withHTTP2(.init(), withClock, use)
}

extension HTTP2Peer {
    /// Starts the connection, and returns its first request.
    func acceptRequest() async throws -> Request {
        try await start()
        return try await expectRequest()
    }
}

func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

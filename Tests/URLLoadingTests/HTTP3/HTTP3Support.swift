// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

/// Runs a test with a server of HTTP/3 and a session that speaks HTTP/3 only, unless `change` says otherwise. At the
/// end the client must have kept every rule, unless scripts expect something in vain.
/// - Parameters:
///   - options: the certificate.
///   - serve: changes the server's configuration, which keeps bodies of up to 16 MiB for its handlers.
nonisolated(nonsending) func withHTTP3<R>(
    _ options: TestCertificateOptions = .init(), serve: (inout HTTP3TestServer.Configuration) -> Void = { _ in },
    change: (inout Configuration) -> Void = { _ in }, keepsRules: Bool = true,
    _ use: nonisolated(nonsending) (HTTP3TestServer, Session) async throws -> R
) async throws -> R {
    let authority = try TestCertificateAuthority(commonName: "Test root")
    var own = HTTP3TestServer.Configuration(try authority.issue(options))
    own.recordedBodySize = 16 << 20
    serve(&own)
    var configuration = Configuration.ephemeral
    configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
    configuration.connections.httpVersions = .http3PriorKnowledge
    change(&configuration)
    return try await withHTTP3TestServer(own) { server in
        server.route("*") { _ in .ok("hello") }
        let result = try await withSession(configuration) { session in try await use(server, session) }
        #expect(server.failures.isEmpty || !keepsRules)
        return result
    }
}

extension HTTP3TestServer {
    /// Answers every request with its body, path or trailers.
    func echo() {
        route("*") { request in
            .ok(.chunks([.bytes(request.body)], trailers: request.trailers), headers: ["X-Path": request.path])
        }
    }
}

#endif

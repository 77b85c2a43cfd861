// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import URLLoading
import URLLoadingTesting

/// Runs a server of HTTP/2 and one of HTTP/3 with one certificate, and gives a configuration for both.
/// - Parameter names: those of the certificate, all of which the configuration resolves to the loopback address.
func withBoth(
    samePort: Bool = false, names: [String] = ["localhost"],
    _ use: (HTTP2TestServer, HTTP3TestServer, Configuration) async throws -> Void
) async throws {
    let authority = try TestCertificateAuthority(commonName: "Test root")
    let identity = try authority.issue(TestCertificateOptions(names: names))
    var tls = HTTPTestServer.TLS(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
    tls.applicationProtocols = ["h2"]
    try await withHTTP2TestServer(.init(tls: tls)) { server in
        let port = server.url("/").port.flatMap { UInt16(exactly: $0) } ?? 0
        var own = HTTP3TestServer.Configuration(identity)
        if samePort { own.port = port }
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        configuration.networks.resolver = RecordingResolver()
        configuration.connections.http2PingInterval = nil
        try await withHTTP3TestServer(own) { http3 in
            http3.route("*") { _ in .ok("hello") }
            try await use(server, http3, configuration)
        }
    }
}

#endif

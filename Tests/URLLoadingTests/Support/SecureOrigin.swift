// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

/// An https origin and the configuration of a client that trusts its authority and finds every name here.
nonisolated(nonsending) func withSecureOrigin<R>(
    _ options: TestCertificateOptions = .init(), name: String? = nil,
    through intermediate: (TestCertificateAuthority) throws -> TestCertificateAuthority = { $0 },
    server: (inout HTTPTestServer.TLS) -> Void = { _ in },
    _ use: nonisolated(nonsending) (HTTPTestServer, Configuration) async throws -> R
) async throws -> R {
    let authority = try TestCertificateAuthority(commonName: "Test root")
    let identity = try intermediate(authority).issue(options)
    var tls = HTTPTestServer.TLS(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
    server(&tls)
    var origin = HTTPTestServer.Configuration(tls: tls)
    origin.name = name
    var client = Configuration.ephemeral
    client.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
    client.networks.resolver = RecordingResolver()
    return try await withHTTPTestServer(origin) { try await use($0, client) }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO

@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct TrustTests {
    private func identity(packed: Bool) async throws -> ClientIdentity {
        let pki = try #require(Servers.variable("PKI"))
        return packed
            ? try await .load(pkcs12File: URL(filePath: pki + "/client.p12")) { "sesame" }
            : try await .load(
                certificateFile: URL(filePath: pki + "/client.pem"), keyFile: URL(filePath: pki + "/client.key")
            ) { "sesame" }
    }

    @Test("nginx and s_server receive the client certificate (checklist 80)", arguments: [true, false])
    func clients(_ packed: Bool) async throws {
        var configuration = Servers.configuration
        configuration.tls.clientIdentities = [try .init("localhost", try await identity(packed: packed))]
        try await withSession(configuration) { session in
            let (data, _) = try await session.data(from: Servers.url("NGINX_CLIENTS", "/"))
            #expect(String(decoding: data, as: UTF8.self) == "CN=ada")
            let (page, _) = try await session.data(from: Servers.url("SSERVER_CLIENTS", "/"))
            #expect(!page.isEmpty)
        }
    }

    @Test(
        "A missing client certificate is reported by a status or an alert",
        arguments: [Configuration.TLS.Version.tls12, .tls13])
    func strangers(_ version: Configuration.TLS.Version) async throws {
        var configuration = Servers.configuration
        configuration.tls.maximumVersion = version
        try await withSession(configuration) { session in
            let (_, response) = try await session.data(from: Servers.url("NGINX_CLIENTS", "/"))
            #expect(response.http?.status.code == 400)
            let error = try await failure(session, Request(url: Servers.url("SSERVER_CLIENTS", "/")))
            #expect(error.reason == .clientCertificateRequired, "\(error)")
        }
    }

    @Test("A decision sees the authorities that a server accepts (checklist 66)")
    func asked() async throws {
        let identity = try await identity(packed: false)
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            guard let request = challenge.clientCertificate else { return .performDefaultHandling }
            return request.issuers.count == 1 ? .present(identity) : .rejectProtectionSpace
        }
        try await withSession(Servers.configuration, decisions: decisions) { session in
            let (data, _) = try await session.data(from: Servers.url("NGINX_CLIENTS", "/"))
            #expect(String(decoding: data, as: UTF8.self) == "CN=ada")
            _ = try await session.data(from: Servers.url("SSERVER_CLIENTS", "/"))
        }
    }

    @Test(
        "Apache requests a certificate after the handshake: answered in TLS 1.3, not in 1.2, which has no renegotiation"
    )
    func later() async throws {
        var configuration = Servers.configuration
        let url = try Servers.url("APACHE_TLS", "/client/1k.txt")
        try await withSession(configuration) { session in
            let (_, response) = try await session.data(from: url)
            #expect(response.http?.status.code == 403)
        }
        configuration.tls.clientIdentities = [try .init("localhost", try await identity(packed: false))]
        try await withSession(configuration) { session in
            for _ in 1...2 {
                let (data, _) = try await session.data(from: url)
                #expect(data == Servers.numbers(128))
            }
        }
        configuration.tls.maximumVersion = .tls12
        try await withSession(configuration) { session in
            let (data, response) = (try? await session.data(from: url)).map { ($0.0, Optional($0.1)) } ?? (Data(), nil)
            #expect(response?.http?.status.code != 200 && data != Servers.numbers(128))
        }
    }

    @Test("A decision supplies a certificate that is requested after the handshake")
    func laterDecided() async throws {
        let identity = try await identity(packed: false)
        let asked = Lock(0)
        let url = try Servers.url("APACHE_TLS", "/client/1k.txt")
        for gives in [true, false] {
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                guard challenge.protectionSpace.method == .clientCertificate else { return .performDefaultHandling }
                asked.withLock { $0 += 1 }
                return gives ? .present(identity) : .rejectProtectionSpace
            }
            let session = Session(Servers.configuration, decisions: decisions)
            let body = RequestBody.data(Data(repeating: 0x61, count: 20_000))
            for request in [Request(url: url), Request(url: url, method: .post, body: body)] {
                if gives {
                    let (_, response) = try await session.data(for: request)
                    #expect(response.http?.status.code == 200)
                } else {
                    // Apache requires a certificate, as s_server does.
                    let error = try await failure(session, request)
                    #expect(error.reason == .clientCertificateRequired, "\(error)")
                }
            }
            session.invalidateAndCancel()
            await session.invalidated()
        }
        #expect(asked.withLock { $0 } >= 2)
    }

    @Test("Stapled statuses made by OpenSSL are verified (security 38)")
    func staples() async throws {
        var configuration = Servers.configuration
        configuration.tls.ocspStapling = .required
        try await withSession(configuration) { session in
            _ = try await session.data(from: Servers.url("SSERVER_GOOD", "/"))
            let revoked = try await failure(session, Request(url: Servers.url("SSERVER_REVOKED", "/")))
            #expect(revoked.reason == .certificateRevoked && revoked.serverTrust != nil, "\(revoked)")
            let missing = try await failure(session, Request(url: Servers.url("NGINX_TLS", "/1k.txt")))
            #expect(missing.reason == .certificateStatusMissing, "\(missing)")
        }
    }

    @Test("urlload tls draws the chain and its verification, and presents a certificate")
    func command() async throws {
        let pki = try #require(Servers.variable("PKI"))
        let host = try Servers.text("NGINX_TLS", "").replacing("https://", with: "")
        let good = try await Running.urlload(["tls", "--cacert", pki + "/ca.pem", host])
        #expect(good.code == 0 && good.text.contains("✓ trusted") && good.text.contains("CN=URLLoading test ca"))
        let bad = try await Running.urlload(["tls", "--cacert", pki + "/other-ca.pem", host])
        #expect(bad.code == 60 && bad.text.contains("✗ certificateUntrusted"))
        let client = try await Running.urlload([
            "-s", "--cacert", pki + "/ca.pem", "--cert", pki + "/client.pem", "--key", pki + "/client.key", "--pass",
            "sesame",
            try Servers.text("NGINX_CLIENTS", "/"),
        ])
        #expect(client.text == "CN=ada")
    }
}

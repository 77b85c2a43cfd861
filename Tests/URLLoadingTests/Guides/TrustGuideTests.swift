// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// The examples of docs/guides/trust.md.
@Suite(.timeLimit(.minutes(4)))
struct TrustGuideTests {
    struct Vault: Sendable { func passphrase() async throws -> String { "sesame" } }
    struct User: Sendable { func accepts(_ trust: ServerTrust) async -> Bool { !trust.certificates.isEmpty } }

    @Test("the example of TLS settings and errors") func settingsAndErrors() async throws {
        try await withTrust(.init(validity: .past)) { rig in
            let company = String(decoding: rig.authority.pem, as: UTF8.self)
            let text = "sha256//" + (try rig.leaf).publicKeySHA256.base64EncodedString()
            var configuration = rig.strict
            configuration.tls.trustRoots = .systemAnd(pem: company)
            configuration.tls.minimumVersion = .tls13
            configuration.tls.minimumStrength = .bits128
            configuration.tls.pins = [try .init("*.bank.example", [try #require(Configuration.TLS.Pin(text))])]
            let url = rig.origin.url()
            try await withSession(configuration) { session in
                do throws(LoadError) {
                    _ = try await session.data(from: url)
                    Issue.record("trusted")
                } catch {
                    let trust = try #require(error.serverTrust)
                    #expect(error.reason == .certificateExpired)
                    let end = try #require(trust.certificates.first).notAfter
                    #expect(end < .now && trust.failures.count == 1)
                }
            }
        }
    }

    @Test("the example of a trust decision") func decisions() async throws {
        try await withTrust { rig in
            let user = User()
            var decisions = Decisions()
            decisions.challenge = Decision(timeout: .seconds(30)) { challenge in
                guard let trust = challenge.serverTrust else { return .performDefaultHandling }
                if trust.isTrusted { return .performDefaultHandling }
                return await user.accepts(trust) ? .accept(trust) : .cancel
            }
            try await withSession(rig.strict, decisions: decisions) { try await $0.expect(rig.origin.url(), "full") }
        }
    }

    @Test("the example of a client identity") func identities() async throws {
        try await withTrust(server: { tls, authority, _ in tls.clientRootsPEM = authority.pem }) { rig in
            let vault = Vault()
            let me = try rig.authority.issue(.init(names: [], commonName: "ada", isForServers: false))
            let directory = try makeTemporaryFolder("me")
            defer { try? FileManager.default.removeItem(at: directory) }
            let certificateFile = directory.appending(path: "me.pem")
            let keyFile = directory.appending(path: "me.key")
            try Data(me.certificatePEM).write(to: certificateFile)
            try Data(try me.keyPEM(passphrase: "sesame")).write(to: keyFile)
            let identity = try await ClientIdentity.load(
                certificateFile: certificateFile, keyFile: keyFile
            ) {
                try await vault.passphrase()
            }
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                guard let request = challenge.clientCertificate else { return .performDefaultHandling }
                return request.issuers.isEmpty ? .rejectProtectionSpace : .present(identity)
            }
            try await withSession(rig.trusting, decisions: decisions) {
                try await $0.expect(rig.origin.url(), "CN=ada")
            }
            let session = Session(rig.trusting)
            var tls = session.configuration.tls
            tls.clientIdentities = [try .init("*", identity)]
            session.reloadTLS(tls)
            try await session.expect(rig.origin.url(), "CN=ada")
            session.invalidateAndCancel()
            await session.invalidated()
        }
    }
}

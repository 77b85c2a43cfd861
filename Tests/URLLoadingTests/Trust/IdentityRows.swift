// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Checklist 80, security 15: client certificates.
@Suite(.timeLimit(.minutes(4)))
struct IdentityRows {
    private func client(_ authority: TestCertificateAuthority, _ name: String) throws -> TestIdentity {
        try authority.issue(.init(names: [], commonName: name, isForServers: false))
    }

    private func asking(
        _ version: Configuration.TLS.Version = .tls13, requires: Bool = true,
        _ use: nonisolated(nonsending) (TrustRig) async throws -> Void
    ) async throws {
        try await withTrust(
            server: { tls, authority, _ in
                tls.clientRootsPEM = authority.pem
                tls.requiresClientCertificate = requires
                tls.maximumVersion = version
            }, use)
    }

    @Test(
        "the identity of the configuration is given to the hosts it is for (checklist 80)",
        arguments: [Configuration.TLS.Version.tls12, .tls13])
    func configured(_ version: Configuration.TLS.Version) async throws {
        try await asking(version) { rig in
            var configuration = rig.trusting
            let ada = try client(rig.authority, "ada")
            let identity = try ClientIdentity(certificatePEM: ada.certificatePEM, keyPEM: ada.keyPEM)
            for hosts in ["localhost", "*"] {
                configuration.tls.clientIdentities = [try .init("other.example", identity), try .init(hosts, identity)]
                try await withSession(configuration) { try await $0.expect(rig.origin.url(), "CN=ada") }
            }
            configuration.tls.clientIdentities = [try .init("other.example", identity)]
            try await withSession(configuration) { session in
                let error = await failure(.clientCertificateRequired, .remote) {
                    try await session.data(from: rig.origin.url())
                }
                #expect(error?.detail?.hasSuffix("tls.clientIdentities has certificates for other.example") == true)
            }
        }
    }

    @Test(
        "a server's refusal of a client certificate is an error of its own",
        arguments: [Configuration.TLS.Version.tls12, .tls13])
    func refused(_ version: Configuration.TLS.Version) async throws {
        try await asking(version) { rig in
            let stranger = try client(try TestCertificateAuthority(commonName: "Elsewhere"), "eve")
            var configuration = rig.trusting
            configuration.tls.clientIdentities = [
                try .init("*", try ClientIdentity(certificatePEM: stranger.certificatePEM, keyPEM: stranger.keyPEM))
            ]
            try await withSession(configuration) { session in
                let error = await failure(.clientCertificateRefused, .remote) {
                    try await session.data(from: rig.origin.url())
                }
                #expect(error?.detail?.hasSuffix("the server sent the alert unknown_ca (48)") == true)
            }
        }
    }

    @Test(
        "a decision provides the client certificate, and gets the issuers that the server accepts (checklist 66)",
        arguments: [true, false])
    func decided(_ requires: Bool) async throws {
        try await asking(requires: requires) { rig in
            let ada = try client(rig.authority, "ada")
            let identity = try ClientIdentity(certificatePEM: ada.certificatePEM, keyPEM: ada.keyPEM)
            let asked = Asked()
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                guard let request = challenge.clientCertificate else { return .performDefaultHandling }
                asked.add(challenge)
                return request.proposed == nil && asked.all.count == 1 ? .present(identity) : .rejectProtectionSpace
            }
            try await withSession(rig.trusting, decisions: decisions) {
                try await $0.expect(rig.origin.url(), "CN=ada")
            }
            let challenge = try #require(asked.all.first)
            #expect(
                challenge.protectionSpace.method == "ClientCertificate"
                    && challenge.clientCertificate?.issuers.count == 1)
            // No certificate.
            try await withSession(rig.trusting, decisions: decisions) { session in
                if !requires { return try await session.expect(rig.origin.url(), "full") }
                await expectFailure(.clientCertificateRequired, .remote) {
                    try await session.data(from: rig.origin.url())
                }
            }
        }
    }

    /// Returns a session with the identity of ada, and its TLS settings with the identity of bob.
    private func renewable(_ rig: TrustRig) throws -> (Session, Configuration.TLS) {
        var configuration = rig.trusting
        let identities = try ["ada", "bob"].map { try client(rig.authority, $0) }
            .map { try ClientIdentity(certificatePEM: $0.certificatePEM, keyPEM: $0.keyPEM) }
        configuration.tls.clientIdentities = [try .init("*", identities[0])]
        let session = Session(configuration)
        configuration.tls.clientIdentities = [try .init("*", identities[1])]
        return (session, configuration.tls)
    }

    @Test("a renewed identity finds no connection and no session of the other (security 15)")
    func renewed() async throws {
        try await asking { rig in
            let (session, renewed) = try renewable(rig)
            for _ in 1...2 { try await session.expect(rig.origin.url(), "CN=ada") }
            #expect(rig.origin.counts.accepted == 1)
            session.reloadTLS(renewed)
            try await session.expect(rig.origin.url(), "CN=bob")
            await expectEmpty(session)
        }
    }

    /// A connection in use while the identity is renewed keeps its identity, and is not reused afterwards.
    @Test("a renewed identity does not use a connection that was in use during the renewal (security 15)")
    func renewedMeanwhile() async throws {
        try await asking { rig in
            let (session, renewed) = try renewable(rig)
            let text = try await session.load(Request(url: rig.origin.url())) { _, body in
                session.reloadTLS(renewed)
                return String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
            }
            #expect(text == "CN=ada")
            try await session.expect(rig.origin.url(), "CN=bob")
            #expect(rig.origin.counts.accepted == 2)
            await expectEmpty(session)
        }
    }

    // MARK: Files

    @Test("an identity out of PEM and PKCS#12, with the passphrase asked for only where there is one")
    func forms() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let made = try client(authority, "ada")
        let plain = try ClientIdentity(certificatePEM: made.certificatePEM, keyPEM: made.keyPEM)
        let closed = try made.keyPEM(passphrase: "sesame")
        let packed = try made.pkcs12(passphrase: "sesame")
        let opened = try ClientIdentity(certificatePEM: made.certificatePEM, keyPEM: closed, passphrase: "sesame")
        let unpacked = try ClientIdentity(pkcs12: packed, passphrase: "sesame")
        let joined = try ClientIdentity(
            certificatePEM: made.certificatePEM + made.keyPEM, keyPEM: made.certificatePEM + made.keyPEM)
        #expect(plain == opened && plain == unpacked && plain == joined)
        #expect(plain.certificates.first?.commonName == "ada" && !"\(plain)".contains("PRIVATE"))
        for wrong in [nil, "", "other"] {
            await expectFailure(.wrongPassphrase, .local) {
                try ClientIdentity(certificatePEM: made.certificatePEM, keyPEM: closed, passphrase: wrong)
            }
            await expectFailure(.wrongPassphrase, .local) { try ClientIdentity(pkcs12: packed, passphrase: wrong) }
        }
        let other = try client(authority, "bob")
        await expectFailure(.badClientIdentity) {
            try ClientIdentity(certificatePEM: made.certificatePEM, keyPEM: other.keyPEM)
        }
        await expectFailure(.badClientIdentity) { try ClientIdentity(certificatePEM: [], keyPEM: other.keyPEM) }
        await expectFailure(.badClientIdentity) { try ClientIdentity(certificatePEM: made.certificatePEM, keyPEM: []) }
        await expectFailure(.badClientIdentity) { try ClientIdentity(pkcs12: made.keyPEM) }
    }

    struct Forgotten: Error {}

    @Test("an identity out of files")
    func files() async throws {
        let made = try client(try TestCertificateAuthority(commonName: "Test root"), "ada")
        let directory = try makeTemporaryFolder("identity")
        defer { try? FileManager.default.removeItem(at: directory) }
        func file(_ name: String, _ bytes: [UInt8]) throws -> URL {
            let path = directory.appending(path: name)
            try Data(bytes).write(to: path)
            return path
        }
        let certificate = try file("me.pem", made.certificatePEM)
        let open = try file("open.key", made.keyPEM)
        let closed = try file("closed.key", try made.keyPEM(passphrase: "sesame"))
        let packed = try file("me.p12", try made.pkcs12(passphrase: "sesame"))
        let asked = Asked.Count()
        _ = try await ClientIdentity.load(certificateFile: certificate, keyFile: open) {
            asked.count()
            return "sesame"
        }
        #expect(asked.value == 0)
        _ = try await ClientIdentity.load(certificateFile: certificate, keyFile: closed) {
            asked.count()
            return "sesame"
        }
        _ = try await ClientIdentity.load(pkcs12File: packed) {
            asked.count()
            return "sesame"
        }
        #expect(asked.value == 2)
        let error = await failure(.decisionFailed) {
            try await ClientIdentity.load(pkcs12File: packed) { throw Forgotten() }
        }
        #expect(error?.underlying is Forgotten)
        await expectFailure(.wrongPassphrase) { try await ClientIdentity.load(pkcs12File: packed) }
        let below = certificate.appending(path: "x")
        let unreadable = await failure(.badClientIdentity) { try await ClientIdentity.load(certificateFile: below) }
        let words = "\(below.path(percentEncoded: false)) cannot be read: Not a directory"
        #expect(unreadable?.detail == words)
        #expect(unreadable.map { "\($0)" } == "badClientIdentity (preparing): \(words)")
    }
}

extension Asked {
    final class Count: Sendable {
        private let number = Lock(0)
        func count() { number.withLock { $0 += 1 } }
        var value: Int { number.withLock { $0 } }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

/// Security 35, 38, 40, beside `SecureRows`: each kind of invalid certificate is refused with its reason.
@Suite(.timeLimit(.minutes(4)))
struct CertificateZooRows {
    private func expect(
        _ reason: LoadError.Reason?, _ rig: TrustRig, _ change: (inout Configuration.TLS) -> Void = { _ in }
    ) async throws {
        var configuration = rig.trusting
        change(&configuration.tls)
        try await withSession(configuration) { session in
            guard let reason else { return try await session.expect(rig.origin.url(), "full") }
            let error = await failure(reason, .remote, .securing) { try await session.data(from: rig.origin.url()) }
            #expect(
                error?.serverTrust?.failures.first?.reason == reason
                    && error?.serverTrust?.certificates.isEmpty == false)
        }
    }

    @Test("a chain without its intermediate leads nowhere")
    func missingIntermediate() async throws {
        try await withTrust(through: { try $0.intermediate(commonName: "Between") }) { try await expect(nil, $0) }
        try await withTrust(
            through: { try $0.intermediate(commonName: "Between") },
            server: { tls, _, _ in
                let text = String(decoding: tls.certificatePEM, as: UTF8.self)
                let first = try #require(text.firstRange(of: "-----END CERTIFICATE-----\n"))
                tls.certificatePEM = Array(text[..<first.upperBound].utf8)
            }
        ) { try await expect(.certificateUntrusted, $0) }
    }

    @Test("a constrained authority is valid for its names and depth only (security 35)")
    func constraints() async throws {
        try await withTrust(through: { try $0.intermediate(commonName: "Ours", permittedNames: ["localhost"]) }) {
            try await expect(nil, $0)
        }
        try await withTrust(through: { try $0.intermediate(commonName: "Others", permittedNames: ["example.org"]) }) {
            try await expect(.certificateInvalid, $0)
        }
        try await withTrust(through: {
            try $0.intermediate(commonName: "Last", pathLength: 0).intermediate(commonName: "One more")
        }) {
            try await expect(.certificateInvalid, $0)
        }
    }

    @Test("keys below the least strength are refused: the servers' and by the configuration")
    func weak() async throws {
        var options = TestCertificateOptions()
        options.key = .rsa(1024)
        try await withTrust(options, server: { tls, _, _ in tls.allowsWeakKeys = true }) {
            try await expect(.certificateWeak, $0)
        }
        options.key = .rsa(2048)
        try await withTrust(options) { rig in
            try await expect(nil, rig)
            try await expect(.certificateWeak, rig) { $0.minimumStrength = .bits128 }
        }
        try await withTrust { rig in try await expect(nil, rig) { $0.minimumStrength = .bits128 } }
    }

    @Test("a stapled status is verified if required (security 38)")
    func staples() async throws {
        try await withTrust { rig in
            try await expect(nil, rig) { $0.ocspStapling = .ifPresent }
            try await expect(.certificateStatusMissing, rig) { $0.ocspStapling = .required }
        }
        let cases: [(TestCertificateAuthority.Status, LoadError.Reason?, LoadError.Reason?)] = [
            (.good, nil, nil), (.revoked, .certificateRevoked, .certificateRevoked),
            (.outdated, nil, .certificateStatusMissing),
        ]
        for version in [Configuration.TLS.Version.tls12, .tls13] {
            for (status, heard, required) in cases {
                try await withTrust(server: { tls, authority, identity in
                    tls.stapledOCSPResponse = try authority.status(of: identity, status)
                    tls.maximumVersion = version
                }) { rig in
                    try await expect(nil, rig)
                    try await expect(heard, rig) { $0.ocspStapling = .ifPresent }
                    try await expect(required, rig) { $0.ocspStapling = .required }
                }
            }
        }
        // Signed by a foreign key: not valid.
        try await withTrust(server: { tls, _, identity in
            tls.stapledOCSPResponse = try TestCertificateAuthority(commonName: "Test root").status(
                of: identity, .revoked)
        }) { rig in
            try await expect(nil, rig) { $0.ocspStapling = .ifPresent }
            try await expect(.certificateStatusMissing, rig) { $0.ocspStapling = .required }
        }
    }

    @Test("a stapled status that does not say until when it is valid is so for a day (security 38)")
    func staplesWithoutEnd() async throws {
        for (seconds, required) in [(80_000, nil), (100_000, .certificateStatusMissing)] as [(Int, LoadError.Reason?)] {
            try await withTrust(server: { tls, authority, identity in
                tls.stapledOCSPResponse = try authority.statusWithoutEnd(of: identity, secondsAgo: seconds)
            }) { rig in
                try await expect(nil, rig) { $0.ocspStapling = .ifPresent }
                try await expect(required, rig) { $0.ocspStapling = .required }
            }
        }
    }

    /// The signer's own chain leads to the root through all of them.
    @Test("a stapled status is verified below several authorities that only the server sends (security 38)")
    func staplesBelowAuthorities() async throws {
        let cases: [(TestCertificateAuthority.Status, LoadError.Reason?)] = [
            (.good, nil), (.revoked, .certificateRevoked),
        ]
        for count in 1...3 {
            for version in [Configuration.TLS.Version.tls12, .tls13] {
                for (status, reason) in cases {
                    try await withTrust(
                        through: { root in
                            try (1...count).reduce(root) { try $0.intermediate(commonName: "Authority \($1)") }
                        },
                        server: { tls, issuer, identity in
                            tls.stapledOCSPResponse = try issuer.status(of: identity, status)
                            tls.maximumVersion = version
                        }
                    ) { rig in
                        try await expect(reason, rig) { $0.ocspStapling = .ifPresent }
                        try await expect(reason, rig) { $0.ocspStapling = .required }
                    }
                }
            }
        }
    }

    @Test("roots can be renewed: by a call, and by a new file")
    func roots() async throws {
        try await withTrust { rig in
            let path = FileManager.default.temporaryDirectory.appending(
                path: "roots-\(UInt64.random(in: 0 ... .max)).pem")
            defer { try? FileManager.default.removeItem(at: path) }
            let other = try TestCertificateAuthority(commonName: "Another root")
            try Data(other.pem).write(to: path)
            var configuration = rig.trusting
            configuration.tls.trustRoots = .file(path)
            let session = Session(configuration)
            await expectFailure(.certificateUntrusted) { try await session.data(from: rig.origin.url()) }
            // Of another size, because a change within one tick of the clock keeps the time.
            try Data(rig.authority.pem + other.pem).write(to: path)
            try await session.expect(rig.origin.url(), "full")
            // The idle connection was trusted by roots that have been replaced.
            configuration.tls.trustRoots = .pem(String(decoding: other.pem, as: UTF8.self))
            session.reloadTLS(configuration.tls)
            await expectFailure(.certificateUntrusted) { try await session.data(from: rig.origin.url()) }
            await expectEmpty(session)
        }
    }

    @Test("roots that could not be read are read again at the next load, whatever the file's size and time")
    func unreadableRoots() async throws {
        try await withTrust { rig in
            let path = FileManager.default.temporaryDirectory.appending(
                path: "roots-\(UInt64.random(in: 0 ... .max)).pem")
            defer { try? FileManager.default.removeItem(at: path) }
            func write(_ text: [UInt8]) throws {
                try Data(text).write(to: path)
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)],
                    ofItemAtPath: path.path(percentEncoded: false))
            }
            try write([UInt8](repeating: UInt8(ascii: "x"), count: rig.authority.pem.count))
            var configuration = rig.trusting
            configuration.tls.trustRoots = .file(path)
            try await withSession(configuration) { session in
                await expectFailure(.trustRootsUnavailable) { try await session.data(from: rig.origin.url()) }
                try write(rig.authority.pem)
                try await session.expect(rig.origin.url(), "full")
            }
        }
    }

    @Test("data that is not a certificate is refused, and texts in a certificate contain no control characters")
    func facts() throws {
        let authority = try TestCertificateAuthority(commonName: "Evil\u{1B}[2J\nroot")
        let certificate = try #require(Certificate(pem: authority.pem))
        #expect(certificate.isCertificateAuthority && certificate.isSelfIssued)
        #expect(!"\(certificate)".utf8.contains { $0 < 0x20 })
        let leaf = try #require(
            Certificate(
                pem: try authority.issue(
                    .init(names: ["a\0b", "*.x"], addresses: [[1, 2, 3, 4], [UInt8](repeating: 0, count: 15) + [1]])
                ).certificatePEM))
        #expect(leaf.subjectAlternativeNames == [.dns("a\0b"), .dns("*.x"), .address("1.2.3.4"), .address("::1")])
        #expect(leaf.subjectAlternativeNames.first?.description == "a\\u{0}b")
        #expect(
            Certificate(der: []) == nil && Certificate(der: [0x30, 0x00]) == nil
                && Certificate(der: Array(leaf.der) + [0]) == nil)
        #expect(Certificate(pem: "text before\n" + leaf.pem) == leaf)
        for text in [
            "", "-----BEGIN CERTIFICATE-----", String(leaf.pem.dropLast(40)), leaf.pem.replacing("M", with: "!"),
        ] {
            #expect(Certificate(pem: text) == nil)
        }
        var damaged = Array(leaf.der)
        for index in damaged.indices {
            damaged[index] ^= 0x55
            _ = Certificate(der: damaged).map { "\($0) \($0.subjectAlternativeNames) \($0.publicKey) \($0.notBefore)" }
            damaged[index] ^= 0x55
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

/// Security 20, 36, 37: pins hold everywhere, and decisions do not take them back.
@Suite(.timeLimit(.minutes(4)))
struct PinRows {
    typealias TLS = Configuration.TLS

    private static let unmatched = TLS.Pin.publicKey(sha256: Data(repeating: 7, count: 32))

    private func pinned(_ configuration: Configuration, _ hosts: String, _ pins: [TLS.Pin]) throws -> Configuration {
        var configuration = configuration
        configuration.tls.pins = [try .init(hosts, pins)]
        return configuration
    }

    @Test("a key or a certificate of the chain must match, where there are pins for the host (security 37)")
    func matching() async throws {
        try await withTrust { rig in
            let leaf = try rig.leaf
            let root = try #require(Certificate(pem: rig.authority.pem))
            let right: [TLS.Pin] = [
                leaf.pin, .publicKey(sha256: root.publicKeySHA256),
                .certificate(sha256: leaf.sha256),
            ]
            for pin in right {
                try await withSession(pinned(rig.trusting, "localhost", [Self.unmatched, pin])) {
                    try await $0.expect(rig.origin.url(), "full")
                }
            }
            for (hosts, pins) in [
                ("localhost", [Self.unmatched]), ("*", [Self.unmatched]), ("LOCALHOST", []),
                ("localhost", [.certificate(sha256: leaf.publicKeySHA256)]),
            ] {
                try await withSession(pinned(rig.trusting, hosts, pins)) { session in
                    let error = await failure(.certificatePinMismatch, .remote, .securing) {
                        try await session.data(from: rig.origin.url())
                    }
                    #expect(error?.serverTrust?.certificates.first == leaf)
                    #expect(error?.detail?.contains("the server's is \(leaf.pin)") == true, "\(error?.detail ?? "")")
                }
            }
            for hosts in ["other.example", "*.localhost", "127.0.0.1"] {
                try await withSession(pinned(rig.trusting, hosts, [Self.unmatched])) {
                    try await $0.expect(rig.origin.url(), "full")
                }
            }
            #expect(rig.origin.counts.requests == 6)
        }
    }

    @Test("a certificate outside the verified chain matches no pin (security 37)")
    func decoys() async throws {
        let decoy = try TestCertificateAuthority(commonName: "Pinned")
        let pin = TLS.Pin.publicKey(sha256: try #require(Certificate(pem: decoy.pem)).publicKeySHA256)
        try await withTrust(server: { tls, _, _ in tls.certificatePEM += decoy.pem }) { rig in
            try await withSession(pinned(rig.trusting, "*", [pin])) { session in
                await expectFailure(.certificatePinMismatch) { try await session.data(from: rig.origin.url()) }
            }
            // Nor where the chain proves nothing.
            var blind = try pinned(rig.strict, "*", [pin])
            blind.tls.unsafelySkipsVerification = true
            try await withSession(blind) { session in
                await expectFailure(.certificatePinMismatch) { try await session.data(from: rig.origin.url()) }
            }
            blind.tls.pins = [try .init("*", [.publicKey(sha256: try rig.leaf.publicKeySHA256)])]
            try await withSession(blind) { try await $0.expect(rig.origin.url(), "full") }
        }
    }

    @Test("a pin replaces no check, and no decision replaces a pin")
    func besides() async throws {
        try await withTrust { rig in
            let own = TLS.Pin.publicKey(sha256: try rig.leaf.publicKeySHA256)
            try await withSession(pinned(rig.strict, "*", [own])) { session in
                await expectFailure(.certificateUntrusted) { try await session.data(from: rig.origin.url()) }
            }
            try await withSession(pinned(rig.strict, "*", [own]), decisions: rig.accepting) {
                try await $0.expect(rig.origin.url(), "full")
            }
            try await withSession(pinned(rig.strict, "*", [Self.unmatched]), decisions: rig.accepting) { session in
                await expectFailure(.certificateUntrusted) { try await session.data(from: rig.origin.url()) }
            }
            try await withSession(pinned(rig.trusting, "*", [Self.unmatched]), decisions: rig.accepting) { session in
                await expectFailure(.certificatePinMismatch) { try await session.data(from: rig.origin.url()) }
            }
            #expect(rig.asked.all.count == 1)
        }
    }

    @Test("pins apply to resumed sessions, and a session kept under other pins is not resumed (security 20)")
    func resumed() async throws {
        try await withTrust { rig in
            var configuration = try pinned(rig.trusting, "*", [.publicKey(sha256: try rig.leaf.publicKeySHA256)])
            configuration.connections.idleLifetime = .zero
            let session = Session(configuration)
            try await session.expect(rig.origin.url(), "full")
            try await session.expect(rig.origin.url(), "resumed")
            var tls = configuration.tls
            tls.pins = [try .init("*", [Self.unmatched])]
            session.reloadTLS(tls)
            await expectFailure(.certificatePinMismatch) { try await session.data(from: rig.origin.url()) }
            session.reloadTLS(configuration.tls)
            try await session.expect(rig.origin.url(), "full")
            await expectEmpty(session)
        }
    }

    @Test("a pattern that names no host is refused")
    func patterns() throws {
        for text in ["", "*.", "a b", "http://a", "*.*.example", "a/b", "*.127.0.0.1"] {
            #expect(throws: LoadError.self, "\(text)") { try TLS.Pins(text, []) }
        }
        let same = try TLS.Pins("B\u{FC}cher.Example", [])
        let normal = try TLS.Pins("xn--bcher-kva.example", [])
        #expect(same == normal)
        #expect(TLS.Pin("sha256//" + Data(repeating: 7, count: 32).base64EncodedString()) == Self.unmatched)
        #expect(TLS.Pin("sha256//AAAA") == nil && TLS.Pin("md5//AAAA") == nil && TLS.Pin("") == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTesting

@testable import URLLoadingIO

/// Connection coalescing (RFC 9113 §9.1.1): a connection serves the other hosts of its certificate, under equal rules.
@Suite(.timeLimit(.minutes(4)))
struct TLSCoverageTests {
    private static let own = TLSPeerName.dns("own.example"), other = TLSPeerName.dns("other.example")

    /// Returns whether a connection to `own` serves both hosts, and a name that is not in its certificate.
    private func covered(
        _ set: (inout TLSConfiguration) -> Void = { _ in }
    ) async throws -> [Bool] {
        let rig = try TLSRig(.init(names: ["own.example", "other.example"]), client: set)
        let pair = try await rig.connect(Self.own)
        defer {
            pair.client.close()
            pair.server.close()
        }
        return [Self.own, Self.other, .dns("third.example")].map { pair.client.covers($0) }
    }

    @Test("A connection serves the names of its certificate, and no others") func names() async throws {
        #expect(try await covered() == [true, true, false])
    }

    @Test("A host with another client certificate is not served") func identities() async throws {
        let authority = try TestCertificateAuthority(commonName: "Clients")
        let identities = try ["ada", "ben"].map { name in
            let made = try authority.issue(.init(names: [name]))
            return try TLSIdentity(certificates: made.certificatePEM, key: made.keyPEM, passphrase: nil)
        }
        let (ada, ben) = (identities[0], identities[1])
        func rule(_ host: String, _ identity: TLSIdentity) -> TLSRule<TLSIdentity> {
            TLSRule(TLSHostPattern(host), identity)
        }
        #expect(try await covered { $0.identities = [rule("own.example", ada)] } == [true, false, false])
        #expect(try await covered { $0.identities = [rule("other.example", ada)] } == [true, false, false])
        #expect(
            try await covered { $0.identities = [rule("own.example", ada), rule("*", ben)] } == [true, false, false])
        #expect(try await covered { $0.identities = [rule("*", ada)] } == [true, true, false])
    }

    @Test("A host with other pins is not served, and none over an unverified connection") func pins() async throws {
        let wrong = TLSPin.publicKey([UInt8](repeating: 0, count: 32))
        #expect(
            try await covered { $0.pins = [TLSRule(TLSHostPattern("other.example"), [wrong])] } == [true, false, false])
        #expect(try await covered { $0.verification = .unsafeNone } == [false, false, false])
    }
}

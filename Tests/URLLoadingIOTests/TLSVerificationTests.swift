// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct TLSVerificationTests {
    private func kind(
        _ options: TestCertificateOptions, _ name: TLSPeerName = .dns("localhost"),
        through intermediate: (TestCertificateAuthority) throws -> TestCertificateAuthority = { $0 }
    ) async throws -> TLSFailure.Kind? {
        let rig = try TLSRig(options, through: intermediate)
        do {
            _ = try await rig.connect(name)
            return nil
        } catch {
            guard let kind = tlsKind(error) else { throw error }
            return kind
        }
    }

    // MARK: Each check has its own kind

    @Test func `A certificate that is right passes`() async throws {
        #expect(try await kind(.init()) == nil)
        #expect(try await kind(.init(), through: { try $0.intermediate(commonName: "Middle") }) == nil)
    }

    @Test func `Expired, not yet valid`() async throws {
        #expect(try await kind(.init(validity: .past)) == .expired)
        #expect(try await kind(.init(validity: .future)) == .notYetValid)
    }

    @Test func `Self-signed, unknown issuer, bad signature`() async throws {
        #expect(try await kind(.init(isSelfSigned: true)) == .selfSigned)
        #expect(try await kind(.init(hasBadSignature: true)) == .badSignature)
        let stranger = try TestCertificateAuthority(commonName: "Another authority")
        let rig = try TLSRig(client: { $0.roots = .pem(stranger.pem) })
        #expect(try await rig.failure().kind == .untrustedIssuer)
    }

    @Test func `A failure carries the name and the chain`() async throws {
        let rig = try TLSRig(.init(names: ["other.example"]), through: { try $0.intermediate(commonName: "Middle") })
        let failure = try await rig.failure()
        #expect(failure.kind == .nameMismatch)
        #expect(failure.name == .dns("localhost"))
        #expect(failure.chain.count == 2)
        #expect(failure.detail.contains("mismatch"))
    }

    @Test func `Only the explicit unsafe case passes what is wrong`() async throws {
        let rig = try TLSRig(
            .init(names: ["other.example"], validity: .past), client: { $0.verification = .unsafeNone })
        #expect(try await rig.connect().client.negotiated != nil)
    }

    // MARK: Names (security 31 to 34)

    @Test(arguments: [
        ("*.a.example", "x.a.example", true),
        ("*.a.example", "a.example", false),
        ("*.a.example", "x.y.a.example", false),
        ("x*.a.example", "xy.a.example", false),
        ("*y.a.example", "xy.a.example", false),
        ("xn--*.a.example", "xn--bcher-kva.a.example", false),
        ("x.*.example", "x.a.example", false),
        ("*", "localhost", false),
        ("*.example", "a.example", false),
        ("X.A.Example", "x.a.example", true),
        ("x.a.example.evil.example", "x.a.example", false),
    ])
    func `a wildcard is one whole label at the left (security 31)`(_ pattern: String, _ host: String, _ passes: Bool)
        async throws
    {
        #expect(try await kind(.init(names: [pattern]), .dns(host)) == (passes ? nil : .nameMismatch))
    }

    @Test func `a wildcard is no address (security 31)`() async throws {
        #expect(try await kind(.init(names: ["*.0.0.1", "*"]), .ip([127, 0, 0, 1])) == .nameMismatch)
    }

    @Test func `a zero byte does not end a name (security 32)`() async throws {
        #expect(try await kind(.init(names: ["good.example\0.evil.example"]), .dns("good.example")) != nil)
        #expect(try await kind(.init(names: ["evil.example"]), .dns("evil.example\0.good.example")) == .unusableName)
    }

    @Test func `an address is held against iPAddress only (security 33)`() async throws {
        let address = TLSPeerName.ip([127, 0, 0, 1])
        #expect(try await kind(.init(names: [], addresses: [[127, 0, 0, 1]]), address) == nil)
        #expect(try await kind(.init(names: ["127.0.0.1"], commonName: "127.0.0.1"), address) == .nameMismatch)
        #expect(try await kind(.init(names: [], addresses: [[127, 0, 0, 2]]), address) == .nameMismatch)
        let six = [UInt8](repeating: 0, count: 15) + [1]
        #expect(try await kind(.init(names: [], addresses: [six]), .ip(six)) == nil)
        #expect(try await kind(.init(names: ["127.0.0.1"]), .dns("127.0.0.1")) == .unusableName)
        #expect(try await kind(.init(), .ip([127, 0, 0])) == .unusableName)
    }

    @Test func `nothing beyond ASCII folds into ASCII (security 34)`() async throws {
        #expect(try await kind(.init(names: ["\u{212A}.example"]), .dns("k.example")) == .nameMismatch)
        #expect(try await kind(.init(names: ["k.example"]), .dns("\u{212A}.example")) == .unusableName)
    }

    @Test func `The common name is no name`() async throws {
        #expect(try await kind(.init(names: [], commonName: "localhost")) == .nameMismatch)
        #expect(try await kind(.init(names: ["other.example"], commonName: "localhost")) == .nameMismatch)
    }

    @Test(arguments: ["", ".example", "example.", "a b", "::1"])
    func `Names that OpenSSL would read otherwise are refused`(_ name: String) async throws {
        #expect(try await kind(.init(), .dns(name)) == .unusableName)
    }

    // MARK: Accepted issuers (security 35)

    @Test func `an issuer without CA TRUE is not trusted (security 35)`() async throws {
        #expect(
            try await kind(.init(), through: { try $0.intermediate(commonName: "No CA", isAuthority: false) })
                == .invalidChain)
    }

    @Test func `a path may be too long (security 35)`() async throws {
        #expect(
            try await kind(
                .init(),
                through: {
                    try $0.intermediate(commonName: "Last", pathLength: 0).intermediate(commonName: "One more")
                }) == .invalidChain)
    }

    @Test func `name constraints hold (security 35)`() async throws {
        let constrained: (TestCertificateAuthority) throws -> TestCertificateAuthority = {
            try $0.intermediate(commonName: "Few names", permittedNames: ["good.example"])
        }
        #expect(
            try await kind(.init(names: ["www.good.example"]), .dns("www.good.example"), through: constrained) == nil)
        #expect(try await kind(.init(), through: constrained) == .invalidChain)
    }

    @Test func `a client's certificate is no server's (security 35)`() async throws {
        #expect(try await kind(.init(isForServers: false)) == .wrongPurpose)
    }

    @Test func `an intermediate alone is no root (security 35)`() async throws {
        let root = try TestCertificateAuthority(commonName: "Root")
        let middle = try root.intermediate(commonName: "Middle")
        let identity = try middle.issue()
        var configuration = TLSConfiguration()
        configuration.roots = .pem(middle.pem)
        let context = try TLSContext(configuration)
        let server = try TLSServerContext(.init(certificateChain: identity.certificatePEM, privateKey: identity.keyPEM))
        let (near, far) = try await socketPair()
        let client = try TLSTransport(client: context, peer: TLSPeer(.dns("localhost"), port: 443), over: near)
        let answering = try TLSTransport(server: server, over: far)
        async let accepted: Void = handshakeOrClose(answering)
        let error = await #expect(throws: IOFailure.self) { try await handshake(client) }
        #expect(tlsKind(error) == .untrustedIssuer)
        await accepted
    }

    // MARK: Addresses, later connections, long chains (security 36, 40)

    @Test func `an address is verified as a name is, and not told to the server (security 36)`() async throws {
        let wrong = try TLSRig(.init(names: [], addresses: [[127, 0, 0, 1]], isSelfSigned: true))
        #expect(try await wrong.failure(.ip([127, 0, 0, 1])).kind == .selfSigned)
        let right = try TLSRig(.init(names: [], addresses: [[127, 0, 0, 1]]))
        let pair = try await right.connect(.ip([127, 0, 0, 1]))
        #expect(pair.server.negotiated?.serverName == nil)
        #expect(pair.client.description.hasPrefix("tls1.3(127.0.0.1) over "))
    }

    @Test func `the second connection of a context is verified like the first (security 36)`() async throws {
        let rig = try TLSRig(.init(names: ["localhost"]))
        _ = try await rig.connect()
        #expect(try await rig.failure(.dns("other.example")).kind == .nameMismatch)
    }

    @Test func `a chain has a bounded length (security 40)`() async throws {
        #expect(try await kind(.init(), through: { try chain(of: 8, below: $0) }) == nil)
        #expect(try await kind(.init(), through: { try chain(of: 14, below: $0) }) == .invalidChain)
    }

    @Test func `a bomb of certificates is refused by its size (security 40)`() async throws {
        let rig = try TLSRig(through: { try chain(of: 340, below: $0) })
        let failure = try await rig.failure()
        #expect(failure.detail.contains("excessive message size"))
        #expect(failure.chain.count == 0)
    }

    private func chain(of length: Int, below root: TestCertificateAuthority) throws -> TestCertificateAuthority {
        try (0..<length).reduce(root) { issuer, step in try issuer.intermediate(commonName: "Step \(step)") }
    }
}

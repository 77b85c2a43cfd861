// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingCSystem
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct TLSConcessionTests {
    private static func rule(
        _ hosts: String = "localhost", _ change: (inout TLSConcessions) -> Void
    ) -> [TLSRule<TLSConcessions>] {
        var value = TLSConcessions()
        change(&value)
        return [TLSRule(TLSHostPattern(hosts), value)]
    }

    private static func old(_ version: TLSVersion) -> (inout TLSServerContext.Configuration) -> Void {
        {
            ($0.minimumVersion, $0.maximumVersion) = (.tls10, version)
            $0.securityLevel = 0
        }
    }

    // MARK: Versions

    @Test(
        "A server of TLS 1.0 or 1.1 is refused, and the failure names the remedy",
        arguments: [TLSVersion.tls10, .tls11])
    func refused(_ version: TLSVersion) async throws {
        let failure = try await TLSRig(server: Self.old(version)).failure()
        #expect(failure.kind == .protocolVersion)
        #expect(failure.remedies == [.version])
    }

    @Test("A server of TLS 1.0 or 1.1 is accepted where it is conceded", arguments: [TLSVersion.tls10, .tls11])
    func conceded(_ version: TLSVersion) async throws {
        let rig = try TLSRig(
            server: Self.old(version), client: { $0.concessions = Self.rule { $0.minimumVersion = .tls10 } })
        let pair = try await rig.connect()
        #expect(pair.client.negotiated?.version == version)
        #expect(pair.client.negotiated?.concessions == .version)
        #expect(pair.client.description.hasPrefix(version == .tls10 ? "tls1.0(localhost)" : "tls1.1(localhost)"))
        try await send(Array("question".utf8), on: pair.client)
        #expect(try await receive(8, from: pair.server) == Array("question".utf8))
    }

    @Test("A concession holds for its hosts alone, and a version of 1.1 excludes 1.0")
    func others() async throws {
        let other = try TLSRig(
            server: Self.old(.tls10),
            client: { $0.concessions = Self.rule("camera.example") { $0.minimumVersion = .tls10 } })
        #expect(try await other.failure().kind == .protocolVersion)
        let newer = try TLSRig(
            server: Self.old(.tls10), client: { $0.concessions = Self.rule { $0.minimumVersion = .tls11 } })
        #expect(try await newer.failure().kind == .protocolVersion)
    }

    @Test("A modern server gets a modern version although an old one is conceded")
    func unused() async throws {
        let rig = try TLSRig(client: {
            $0.concessions = Self.rule {
                $0.minimumVersion = .tls10
                $0.securityLevel = 0
                $0.allowsInsecureRenegotiation = true
                $0.allowsMissingCloseNotify = true
            }
        })
        let agreed = try #require(try await rig.connect().client.negotiated)
        #expect(agreed.version == .tls13 && agreed.concessions.isEmpty)
        let older = try TLSRig(
            server: { $0.maximumVersion = .tls12 },
            client: { $0.concessions = Self.rule { $0.minimumVersion = .tls10 } })
        let second = try #require(try await older.connect().client.negotiated)
        #expect(second.version == .tls12 && second.concessions.isEmpty)
    }

    @Test("The highest version can be lowered for a host")
    func highest() async throws {
        let rig = try TLSRig(
            server: { ($0.minimumVersion, $0.securityLevel) = (.tls10, 0) },
            client: {
                $0.concessions = Self.rule { ($0.minimumVersion, $0.maximumVersion) = (.tls10, .tls11) }
            })
        #expect(try await rig.connect().client.negotiated?.version == .tls11)
    }

    @Test("Versions below 1.2 are no setting of all peers, and an empty range is refused")
    func ranges() async throws {
        var all = TLSConfiguration()
        all.minimumVersion = .tls10
        let failure = #expect(throws: TLSFailure.self) { try TLSContext(all) }
        #expect(failure?.kind == .unusableVersions && failure?.detail.contains("TLS 1.0") == true)
        let empty = try TLSRig(client: { $0.concessions = Self.rule { $0.maximumVersion = .tls11 } })
        #expect(try await empty.failure().kind == .unusableVersions)
    }

    // MARK: Strength

    @Test("A short key is refused, and accepted where it is conceded", arguments: [(1024, Int32(1)), (512, 0)])
    func keys(_ bits: Int, _ level: Int32) async throws {
        var options = TestCertificateOptions()
        options.key = .rsa(bits)
        let strict = try TLSRig(options, server: { ($0.securityLevel, $0.maximumVersion) = (0, .tls12) })
        let failure = try await strict.failure()
        #expect(failure.kind == .weakCryptography && failure.remedies == [.strength])
        let rig = try TLSRig(
            options, server: { ($0.securityLevel, $0.maximumVersion) = (0, .tls12) },
            client: { $0.concessions = Self.rule { $0.securityLevel = level } })
        #expect(try await rig.connect().client.negotiated?.concessions == .strength)
        if level == 0 {
            let less = try TLSRig(
                options, server: { ($0.securityLevel, $0.maximumVersion) = (0, .tls12) },
                client: { $0.concessions = Self.rule { $0.securityLevel = 1 } })
            #expect(try await less.failure().kind == .weakCryptography)
        }
    }

    @Test("An old version concedes no weak certificate")
    func separate() async throws {
        var options = TestCertificateOptions()
        options.key = .rsa(1024)
        let rig = try TLSRig(
            options, server: Self.old(.tls10), client: { $0.concessions = Self.rule { $0.minimumVersion = .tls10 } })
        let failure = try await rig.failure()
        #expect(failure.kind == .weakCryptography && failure.remedies == [.strength])
        let both = try TLSRig(
            options, server: Self.old(.tls10),
            client: {
                $0.concessions = Self.rule { ($0.minimumVersion, $0.securityLevel) = (.tls10, 0) }
            })
        #expect(try await both.connect().client.negotiated?.concessions == [.version, .strength])
    }

    @Test("A resumed session has used the concessions of the one that it resumes")
    func resumed() async throws {
        var options = TestCertificateOptions()
        options.key = .rsa(1024)
        let rig = try TLSRig(
            options, server: { ($0.securityLevel, $0.maximumVersion) = (0, .tls12) },
            client: { $0.concessions = Self.rule { $0.securityLevel = 0 } })
        for isResumed in [false, true] {
            let pair = try await rig.connect()
            #expect(pair.client.negotiated?.isResumed == isResumed)
            #expect(pair.client.negotiated?.concessions == .strength)
            pair.client.close()
            pair.server.close()
        }
    }

    @Test("A configuration that demands more than the default is itself the remedy, not a concession")
    func demanding() async throws {
        var options = TestCertificateOptions()
        options.key = .rsa(2048)
        let failure = try await TLSRig(options, client: { $0.securityLevel = 4 }).failure()
        #expect(failure.kind == .weakCryptography && failure.remedies.isEmpty)
        let newest = try await TLSRig(
            server: { $0.maximumVersion = .tls12 }, client: { $0.minimumVersion = .tls13 }
        ).failure()
        #expect(newest.kind == .protocolVersion && newest.remedies.isEmpty)
    }

    @Test("A connection serves another name only with the same concessions")
    func sharing() async throws {
        let rig = try TLSRig(
            .init(names: ["localhost", "a.example", "b.example"]),
            client: {
                $0.concessions =
                    Self.rule { $0.minimumVersion = .tls10 }
                    + Self.rule("b.example") {
                        $0.minimumVersion = .tls10
                    }
            })
        let pair = try await rig.connect()
        #expect(pair.client.covers(.dns("b.example")) && !pair.client.covers(.dns("a.example")))
    }

    // MARK: Renegotiation

    /// A ServerHello of TLS 1.2 without extensions, for AES128-GCM-SHA256.
    private static let plainHello: [UInt8] = {
        let body: [UInt8] = [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0x00, 0x9C, 0]
        let message: [UInt8] = [2, 0, 0, UInt8(body.count)] + body
        return [0x16, 3, 3, 0, UInt8(message.count)] + message
    }()

    @Test("A server without secure renegotiation is refused, unless that is conceded", arguments: [false, true])
    func renegotiation(_ isConceded: Bool) async throws {
        let rig = try TLSRig(client: {
            if isConceded { $0.concessions = Self.rule { $0.allowsInsecureRenegotiation = true } }
        })
        let (near, far) = try await socketPair()
        try await send(Self.plainHello, on: far)
        far.finishWriting()
        let client = try TLSTransport(client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: near)
        let error = await #expect(throws: IOFailure.self) { try await handshake(client) }
        // Where it is conceded, the client waits for the certificate.
        #expect(tlsKind(error) == (isConceded ? .handshakeEndedByPeer : .insecureRenegotiation))
        if case .tls(let failure)? = error?.code, !isConceded { #expect(failure.remedies == [.renegotiation]) }
        client.close()
    }

    // MARK: The end

    @Test("An end after a whole record is told from one within a record", arguments: [false, true])
    func ends(_ isWithin: Bool) async throws {
        let rig = try TLSRig(server: { $0.omitsCloseNotify = true })
        let pair = try await rig.connect()
        try await send(Array("last".utf8), on: pair.server)
        #expect(try await receive(4, from: pair.client) == Array("last".utf8))
        if isWithin { try await send([0x17, 3, 3, 3, 0xE8, 1, 2, 3], on: pair.far) }
        pair.far.finishWriting()
        let error = await #expect(throws: IOFailure.self) { _ = try await receive(from: pair.client) }
        #expect(tlsKind(error) == .truncated)
        #expect(pair.client.hasEndedAfterRecord == !isWithin)
    }
}

struct TLSRemedyTests {
    private func limits(
        minimum: TLSVersion = .tls12, level: Int32 = 2, _ change: (inout TLSConcessions) -> Void = { _ in }
    ) -> TLSLimits {
        var configuration = TLSConfiguration()
        (configuration.minimumVersion, configuration.securityLevel) = (minimum, level)
        var concessions = TLSConcessions()
        change(&concessions)
        return TLSLimits(configuration, concessions)
    }

    @Test("A version below 1.2 lowers the handshake's level, not the certificates'")
    func levels() {
        let plain = limits()
        #expect(plain.handshakeLevel == 2 && plain.certificateLevel == 2)
        let old = limits { $0.minimumVersion = .tls11 }
        #expect(old.handshakeLevel == 0 && old.certificateLevel == 2)
        let weak = limits { $0.securityLevel = 1 }
        #expect(weak.handshakeLevel == 1 && weak.certificateLevel == 1)
    }

    @Test("Each failure names what could cure it")
    func remedies() {
        let plain = limits()
        let rows: [(TLSFailure.Kind, Bool, [TLSRemedy])] = [
            (.protocolVersion, true, [.version]), (.alert(70), true, [.version]),
            (.alert(40), true, [.version, .strength]), (.alert(40), false, []),
            (.handshakeEndedByPeer, true, [.version, .strength]), (.handshakeEndedByPeer, false, []),
            (.weakCryptography, false, [.strength]), (.weakHandshake, false, [.strength]),
            (.insecureRenegotiation, true, [.renegotiation]), (.expired, false, []), (.notTLS, true, []),
        ]
        for (kind, isEarly, expected) in rows {
            #expect(TLSRemedy.remedies(kind, plain, isEarly: isEarly) == expected, "\(kind)")
        }
        // What is conceded already is no remedy.
        let all = limits { ($0.minimumVersion, $0.securityLevel) = (.tls10, 0) }
        #expect(TLSRemedy.remedies(.alert(40), all, isEarly: true).isEmpty)
    }
}

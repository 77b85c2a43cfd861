// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoadingCSystem
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct TLSHandshakeTests {
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A handshake agrees on a version and bytes go in both directions`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        let pair = try await rig.connect()
        let agreed = try #require(pair.client.negotiated)
        #expect(agreed.version == version)
        #expect(agreed.serverName == "localhost")
        #expect(!agreed.isResumed)
        #expect(!agreed.cipher.isEmpty)
        #expect(["x25519", "X25519MLKEM768"].contains(agreed.keyExchangeGroup))
        #expect(agreed.signatureAlgorithm == "ecdsa_sha256")
        try await send(Array("hello".utf8), on: pair.client)
        #expect(try await receive(5, from: pair.server) == Array("hello".utf8))
        try await send(Array("there".utf8), on: pair.server)
        #expect(try await receive(5, from: pair.client) == Array("there".utf8))
        #expect(pair.client.peerChain.count == 1)
        let name = version == .tls12 ? "tls1.2" : "tls1.3"
        #expect(pair.client.description.hasPrefix("\(name)(localhost) over tcp(127.0.0.1:"))
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `Delivery byte by byte changes nothing`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        let pair = try await rig.connect { ChoppingTransport($0, piece: 1, rests: true) }
        try await send([UInt8](repeating: 7, count: 20_000), on: pair.server)
        #expect(try await receive(20_000, from: pair.client) == [UInt8](repeating: 7, count: 20_000))
        try await send([UInt8](repeating: 9, count: 20_000), on: pair.client)
        #expect(try await receive(20_000, from: pair.server) == [UInt8](repeating: 9, count: 20_000))
        pair.server.close()
        #expect(try await receive(from: pair.client).isEmpty)
    }

    @Test func `TLS runs inside TLS`() async throws {
        let rig = try TLSRig()
        let outer = try await rig.connect()
        let client = try TLSTransport(
            client: rig.client, peer: TLSPeer(.dns("localhost"), port: 8443), over: outer.client)
        let server = try TLSTransport(server: rig.server, over: outer.server)
        async let accepted: Void = handshakeOrClose(server)
        try await handshake(client)
        await accepted
        let bytes = [UInt8](repeating: 3, count: 300_000)
        async let sent: Void = send(bytes, on: server)
        #expect(try await receive(bytes.count, from: client) == bytes)
        try await sent
        server.close()
        #expect(try await receive(from: client).isEmpty)
    }

    // MARK: ALPN

    @Test func `ALPN: the server's best of what both speak`() async throws {
        let rig = try TLSRig(
            server: { $0.applicationProtocols = ["h2", "http/1.1"] },
            client: { $0.applicationProtocols = ["http/1.1", "h2"] })
        #expect(try await rig.connect().client.negotiated?.applicationProtocol == "h2")
        #expect(try await rig.connect(offering: ["http/1.1"]).client.negotiated?.applicationProtocol == "http/1.1")
        #expect(try await rig.connect(offering: []).client.negotiated?.applicationProtocol == nil)
    }

    @Test func `ALPN: none where the server has none`() async throws {
        let rig = try TLSRig(client: { $0.applicationProtocols = ["h2"] })
        #expect(try await rig.connect().client.negotiated?.applicationProtocol == nil)
    }

    @Test func `no common protocol is an alert, not a guess (security 56)`() async throws {
        let rig = try TLSRig(
            server: { $0.applicationProtocols = ["h2"] }, client: { $0.applicationProtocols = ["http/1.1"] })
        #expect(try await rig.failure().kind == .alert(120))
    }

    // MARK: Versions and strangers

    @Test func `Version ranges without a common version fail as such`() async throws {
        let old = try TLSRig(server: { $0.maximumVersion = .tls12 }, client: { $0.minimumVersion = .tls13 })
        #expect(try await old.failure().kind == .protocolVersion)
        let new = try TLSRig(server: { $0.minimumVersion = .tls13 }, client: { $0.maximumVersion = .tls12 })
        #expect(try await new.failure().kind == .protocolVersion)
        var upsideDown = TLSConfiguration()
        (upsideDown.minimumVersion, upsideDown.maximumVersion) = (.tls13, .tls12)
        #expect(throws: TLSFailure.self) { try TLSContext(upsideDown) }
    }

    @Test(arguments: ["HTTP/1.1 400 Bad Request\r\n\r\n", "220 ftp.example.org ready\r\n", "SSH-2.0-x\r\n", "H"])
    func `A peer that speaks plain text is distinguished from one that fails`(_ greeting: String) async throws {
        let rig = try TLSRig()
        let (near, far) = try await socketPair()
        try await send(Array(greeting.utf8), on: far)
        far.finishWriting()
        let client = try TLSTransport(client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: near)
        let error = await #expect(throws: IOFailure.self) { try await handshake(client) }
        #expect(tlsKind(error) == .notTLS)
    }

    @Test(
        "Garbage in the place of a record is no disagreement about versions",
        arguments: [
            [0x16, 0x47, 0x45, 0x00, 0x05, 1, 2, 3, 4, 5], [0x16, 0x03, 0x03, 0x00, 0x05, 9, 9, 9, 9, 9],
            [0x16, 0x03, 0x03, 0xFF, 0xFF, 1, 2],
        ] as [[UInt8]])
    func garbage(_ record: [UInt8]) async throws {
        let rig = try TLSRig()
        let (near, far) = try await socketPair()
        try await send(record, on: far)
        far.finishWriting()
        let client = try TLSTransport(client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: near)
        let error = await #expect(throws: IOFailure.self) { try await handshake(client) }
        #expect([.other, .handshakeEndedByPeer].contains(tlsKind(error)), "\(String(describing: error))")
    }

    @Test("Garbage behind the first message of a handshake is no disagreement about versions")
    func laterGarbage() async throws {
        let rig = try TLSRig()
        let (near, far) = try await socketPair()
        let client = try TLSTransport(client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: near)
        async let outcome = #expect(throws: IOFailure.self) { try await handshake(client) }
        // A ServerHello of TLS 1.2 that chooses what every client offers.
        var hello: [UInt8] =
            [0x03, 0x03] + [UInt8](repeating: 7, count: 32) + [0, 0xC0, 0x2F, 0, 0, 5, 0xFF, 0x01, 0, 1, 0]
        hello = [2, 0, 0, UInt8(hello.count)] + hello
        try await send(
            [0x16, 0x03, 0x03, 0, UInt8(hello.count)] + hello + [0x16, 0x99, 0x99, 0, 4, 1, 2, 3, 4], on: far)
        far.finishWriting()
        let error = await outcome
        #expect(tlsKind(error) == .other, "\(String(describing: error))")
    }

    @Test func `A client that speaks plain text is distinguished too`() async throws {
        let rig = try TLSRig()
        let (near, far) = try await socketPair()
        try await send(Array("GET / HTTP/1.1\r\n\r\n".utf8), on: near)
        let server = try TLSTransport(server: rig.server, over: far)
        let error = await #expect(throws: IOFailure.self) { try await handshake(server) }
        #expect(tlsKind(error) == .notTLS)
    }

    @Test func `A peer that leaves within the handshake`() async throws {
        let rig = try TLSRig()
        let (near, far) = try await socketPair()
        let client = try TLSTransport(client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: near)
        far.finishWriting()
        let error = await #expect(throws: IOFailure.self) { try await handshake(client) }
        #expect(tlsKind(error) == .handshakeEndedByPeer)
    }

    @Test func `A reset within the handshake is the system's error`() async throws {
        let rig = try TLSRig()
        let (near, far) = try await socketPair()
        let client = try TLSTransport(client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: near)
        far.abort()
        let error = await #expect(throws: IOFailure.self) { try await handshake(client) }
        #expect([ECONNRESET, EPIPE].contains(try #require(systemError(error))))
    }

    // MARK: Every stall ends (security 83)

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `a handshake that stalls anywhere can be stopped (security 83)`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        for budget in stride(from: 0, through: 700, by: 50) {
            try await stop(rig, .cancelled) { ChoppingTransport($0, reads: budget) }
        }
        for budget in [0, 5, 100] {
            try await stop(rig, .invalidated) { ChoppingTransport($0, writes: budget) }
        }
    }

    private func stop(_ rig: TLSRig, _ reason: StopReason, _ wrap: (SocketTransport) -> ChoppingTransport) async throws
    {
        let (near, far) = try await socketPair()
        let stalling = wrap(near)
        let client = try TLSTransport(client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: stalling)
        let server = try TLSTransport(server: rig.server, over: far)
        let token = StopToken()
        async let accepted: Void = handshakeOrClose(server)
        async let stopped: Void = {
            try await stalling.hasStalled.wait()
            token.stop(reason)
        }()
        let error = await #expect(throws: IOFailure.self) { try await handshake(client, token) }
        #expect(stopReason(error) == reason)
        try await stopped
        client.close()
        await accepted
    }

    @Test func `the idle clock runs while the handshake waits (security 83)`() async throws {
        let rig = try TLSRig()
        for wrap in [{ ChoppingTransport($0, reads: 0) }, { ChoppingTransport($0, writes: 0) }]
            as [(SocketTransport) -> ChoppingTransport]
        {
            let (near, far) = try await socketPair()
            let client = try TLSTransport(
                client: rig.client, peer: TLSPeer(.dns("localhost"), port: 443), over: wrap(near))
            let token = StopToken(idleLimit: 20_000_000)
            let watch = IdleWatch(token)
            Poller.shared.schedule(watch, at: Poller.now() + 5_000_000)
            let error = await #expect(throws: IOFailure.self) { try await handshake(client, token) }
            #expect(stopReason(error) == .idle)
            far.close()
        }
    }
}

/// Acts as a load's control: ends the work when the peer was silent for too long.
private final class IdleWatch: TimerTarget {
    private let token: StopToken
    init(_ token: StopToken) { self.token = token }

    func timerFired(now: Int64) {
        if token.idleDeadline.load(ordering: .relaxed) <= now { token.stop(.idle) }
        guard token.stopReason == nil else { return }
        Poller.shared.schedule(self, at: now + 5_000_000)
    }
}

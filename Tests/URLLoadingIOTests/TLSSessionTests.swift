// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingCSystem
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct TLSSessionTests {
    /// Connects, takes in the tickets and leaves.
    private func visit(
        _ rig: TLSRig, _ name: TLSPeerName = .dns("localhost"), port: UInt16 = 443, role: TLSPeer.Role = .origin,
        offering: [String]? = nil, with context: TLSContext? = nil, zone: String? = nil
    ) async throws -> Bool {
        let pair = try await rig.connect(name, port: port, role: role, offering: offering, with: context, zone: zone)
        try await takeInTickets(pair)
        pair.client.close()
        // A server forgets the session of a connection that it did not end.
        pair.server.close()
        return try #require(pair.client.negotiated).isResumed
    }

    /// Receives one byte that the server sends after its tickets, so that the tickets have been read too.
    private func takeInTickets(_ pair: TLSRig.Pair) async throws {
        try await send([1], on: pair.server)
        #expect(try await receive(1, from: pair.client) == [1])
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A second connection resumes`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        #expect(try await visit(rig) == false)
        for _ in 0..<6 { #expect(try await visit(rig) == true) }
    }

    @Test func `A ticket of TLS 1.3 is used once`() async throws {
        let rig = try TLSRig()
        _ = try await visit(rig)
        #expect(rig.client.sessions.count == 2)
        let first = try await rig.connect()
        let second = try await rig.connect()
        let third = try await rig.connect()
        #expect(first.client.negotiated?.isResumed == true)
        #expect(second.client.negotiated?.isResumed == true)
        #expect(third.client.negotiated?.isResumed == false)
    }

    @Test func `A session of TLS 1.2 serves many`() async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = .tls12 })
        _ = try await visit(rig)
        let first = try await rig.connect()
        let second = try await rig.connect()
        #expect(first.client.negotiated?.isResumed == true)
        #expect(second.client.negotiated?.isResumed == true)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A connection that is dropped or cut leaves its sessions usable`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        for resumed in [false, true, true] {
            let pair = try await rig.connect()
            try await takeInTickets(pair)
            #expect(pair.client.negotiated?.isResumed == resumed)
            pair.far.close()
            await #expect(throws: IOFailure.self) { _ = try await receive(from: pair.client) }
        }
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A server without tickets is never resumed`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: {
            $0.maximumVersion = version
            $0.tickets = 0
        })
        for _ in 0..<3 { #expect(try await visit(rig) == false) }
    }

    @Test func `tickets without end are an error (security 83)`() async throws {
        let rig = try TLSRig(server: { $0.tickets = 2_000 })
        let pair = try await rig.connect()
        let error = await #expect(throws: IOFailure.self) { _ = try await receive(1, from: pair.client) }
        #expect(tlsKind(error) == .other)
        #expect(rig.client.sessions.count == TLSSessionCache.sessionsPerPeer)
    }

    @Test func `configurations, names, ports and protocols do not share sessions (security 15)`() async throws {
        let rig = try TLSRig(.init(names: ["localhost", "other.example"]))
        _ = try await visit(rig)
        #expect(try await visit(rig, .dns("other.example")) == false)
        #expect(try await visit(rig, port: 444) == false)
        #expect(try await visit(rig, offering: ["h2"]) == false)
        var unsafe = rig.client.configuration
        unsafe.verification = .unsafeNone
        #expect(try await visit(rig, with: TLSContext(unsafe)) == false)
        #expect(try await visit(rig, with: TLSContext(rig.client.configuration)) == false)
        #expect(try await visit(rig) == true)
    }

    @Test func `an address of one link does not share sessions with the same of another (security 18)`() async throws {
        let address = [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [1]
        let rig = try TLSRig(.init(names: [], addresses: [address]))
        var resumed: [Bool] = []
        for zone in ["a", "b", nil, "a"] { resumed.append(try await visit(rig, .ip(address), zone: zone)) }
        #expect(resumed == [false, false, false, true])
    }

    @Test func `a proxy and an origin of one name do not share sessions (security 19)`() async throws {
        let rig = try TLSRig()
        _ = try await visit(rig, role: .proxy)
        #expect(try await visit(rig, role: .origin) == false)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `a session is offered only while its certificate passes (security 20)`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        _ = try await visit(rig)
        let cache = rig.client.sessions
        let home = TLSSessionCache.Key(name: .dns("localhost"), port: 443, role: .origin, applicationProtocols: [])
        let session = try #require(cache.take(for: home, verified: true))
        // The right session under the wrong name.
        let elsewhere = TLSSessionCache.Key(
            name: .dns("other.example"), port: 443, role: .origin, applicationProtocols: [])
        cache.store(session, for: elsewhere)
        #expect(cache.take(for: elsewhere, verified: true) == nil)
        // The right name after the certificate's end. Its own lifetime would allow it: two hours.
        cache.removeAll()
        cache.store(session, for: home)
        #expect(session.isStillValid(for: .dns("localhost"), verified: true, now: now()))
        #expect(!session.isStillValid(for: .dns("localhost"), verified: true, now: now() + 8 * 86_400))
    }

    @Test func `a certificate that has ended ends its sessions (security 20)`() async throws {
        let rig = try TLSRig(.init(validity: .seconds(from: -60, until: 600)))
        _ = try await visit(rig)
        let cache = rig.client.sessions
        let home = TLSSessionCache.Key(name: .dns("localhost"), port: 443, role: .origin, applicationProtocols: [])
        #expect(cache.take(for: home, verified: true, now: now() + 601) == nil)
    }

    @Test func `no early data, though the server would take it (security 87)`() async throws {
        let rig = try TLSRig(server: { $0.earlyDataLimit = 16_384 })
        _ = try await visit(rig)
        nonisolated(unsafe) var seen: ChoppingTransport?
        let pair = try await rig.connect {
            let recording = ChoppingTransport($0)
            seen = recording
            return recording
        }
        #expect(pair.client.negotiated?.isResumed == true)
        let hello = try #require(seen)
        let extensions = try #require(ClientHello.extensions(hello.written))
        #expect(extensions.contains(41), "offers a session (pre_shared_key)")
        #expect(!extensions.contains(42), "offers no early data")
    }

    @Test func `The cache is bounded by peers and by sessions`() async throws {
        let rig = try TLSRig()
        let names = (0..<300).map {
            TLSSessionCache.Key(name: .dns("h\($0)"), port: 443, role: .origin, applicationProtocols: [])
        }
        _ = try await visit(rig)
        let home = TLSSessionCache.Key(name: .dns("localhost"), port: 443, role: .origin, applicationProtocols: [])
        let session = try #require(rig.client.sessions.take(for: home, verified: true))
        let cache = TLSSessionCache()
        for key in names { for _ in 0..<TLSSessionCache.sessionsPerPeer + 2 { cache.store(session, for: key) } }
        #expect(cache.count == TLSSessionCache.peerLimit * TLSSessionCache.sessionsPerPeer)
        #expect(cache.take(for: names[0], verified: false) == nil)
        #expect(cache.take(for: names[299], verified: false) != nil)
    }

    private func now() -> Int { Int(csys_wall_clock()) }
}

/// Just enough of RFC 8446 4.1.2 to see what a client offers.
private enum ClientHello {
    static func extensions(_ record: [UInt8]) -> [Int]? {
        // Record header 5, handshake header 4, version 2, random 32.
        var reader = Reader(bytes: record[...])
        guard reader.skip(5 + 4 + 2 + 32), reader.skipVector(1), reader.skipVector(2), reader.skipVector(1),
            reader.number(2) != nil
        else { return nil }
        var kinds: [Int] = []
        while let kind = reader.number(2) {
            guard reader.skipVector(2) else { break }
            kinds.append(kind)
            // The last extension of an offer of a session (RFC 8446 4.2.11).
            if kind == 41 { break }
        }
        return kinds
    }

    private struct Reader {
        var bytes: ArraySlice<UInt8>

        mutating func number(_ count: Int) -> Int? {
            guard bytes.count >= count else { return nil }
            defer { bytes = bytes.dropFirst(count) }
            return bytes.prefix(count).reduce(0) { $0 << 8 | Int($1) }
        }
        mutating func skip(_ count: Int) -> Bool {
            guard bytes.count >= count else { return false }
            bytes = bytes.dropFirst(count)
            return true
        }
        mutating func skipVector(_ lengthBytes: Int) -> Bool { number(lengthBytes).map { skip($0) } ?? false }
    }
}

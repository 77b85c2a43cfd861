// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingCSystem
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct ProvenChainTests {
    /// Makes a full handshake, without a ticket, and closes.
    private func visit(_ rig: TLSRig, _ name: TLSPeerName = .dns("localhost")) async throws {
        let pair = try await rig.connect(name)
        rig.client.sessions.removeAll()
        #expect(try #require(pair.client.negotiated).isResumed == false)
        pair.client.close()
        pair.server.close()
    }

    @Test func `A verified chain is not verified again on the next connection`() async throws {
        let rig = try TLSRig(through: { try $0.intermediate(commonName: "Middle") })
        try await visit(rig)
        let key = try #require(rig.client.chains.keys.first)
        let chain = try #require(rig.client.chains.chain(key))
        #expect(chain.count == 3)
        try await visit(rig)
        // The chain is the same object, so it was not verified again.
        let after = try #require(rig.client.chains.chain(key))
        #expect(rig.client.chains.keys.count == 1)
        #expect(zip(chain, after).allSatisfy { $0 === $1 })
    }

    @Test func `A failed verification is not remembered`() async throws {
        let rig = try TLSRig(.init(names: ["localhost", "other.example"]))
        #expect(try await rig.failure(.dns("third.example")).kind == .nameMismatch)
        #expect(rig.client.chains.keys.isEmpty)
    }

    @Test func `A chain is verified for each name`() async throws {
        let rig = try TLSRig(.init(names: ["localhost", "other.example"]))
        try await visit(rig)
        #expect(try await rig.failure(.dns("third.example")).kind == .nameMismatch)
        try await visit(rig, .dns("other.example"))
        #expect(rig.client.chains.keys.count == 2)
    }

    @Test func `Another certificate is verified itself`() async throws {
        let rig = try TLSRig()
        try await visit(rig)
        let stranger = try TLSRig()
        // The foreign certificate has the same names, but no issuer that this client trusts.
        await #expect(throws: IOFailure.self) { _ = try await stranger.connect(with: rig.client) }
        #expect(rig.client.chains.keys.count == 1)
    }

    @Test func `Pins are checked on chains that were verified before`() async throws {
        let pattern = TLSHostPattern("localhost")
        let rig = try TLSRig(client: { $0.pins = [TLSRule(pattern, [])] })
        for _ in 0..<2 { #expect(try await rig.failure().kind == .pinMismatch) }
        #expect(rig.client.chains.keys.count == 1)
    }

    @Test func `A verified chain expires with its lifetime, with its certificates, and when the clock is set back`()
        async throws
    {
        let rig = try TLSRig()
        let before = csys_wall_clock()
        try await visit(rig)
        let chains = rig.client.chains
        let key = try #require(chains.keys.first)
        #expect(chains.chain(key) != nil)
        #expect(chains.chain(key, now: before - 1) == nil)
        #expect(chains.chain(key, now: csys_wall_clock() + ProvenChains.life) == nil)

        let brief = try TLSRig(.init(validity: .seconds(from: -60, until: 60)))
        try await visit(brief)
        let briefly = try #require(brief.client.chains.keys.first)
        #expect(brief.client.chains.chain(briefly) != nil)
        #expect(brief.client.chains.chain(briefly, now: csys_wall_clock() + 61) == nil)
    }
}

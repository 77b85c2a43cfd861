// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
import URLLoadingCNghttp3
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Early data of the codecs over TLS, with a server of the same libraries and a network in memory.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3EarlyDataTests {
    typealias Contexts = (TLSContext, TLSServerContext)

    /// Loads something over a connection that leaves tickets, and what early data needs to know of the server.
    private func visit(
        _ contexts: Contexts, limits: QUICLimits = .forServers, accepts: Bool? = true, remembers: Bool = true,
        configure: (HTTP3MemoryServer) -> Void = { _ in }
    ) throws {
        let wire = try HTTP3Wire(
            server: limits, contexts: contexts, sendsEarlyData: true, acceptsEarlyData: accepts)
        wire.remembers = remembers
        configure(wire.server)
        try wire.connect()
        if limits.streamCount > 0 { #expect(try wire.finish(try wire.submit())) }
        #expect(try wire.run { $0.client.memory != nil && contexts.0.sessions.count > 0 })
    }

    private func again(
        _ contexts: Contexts, limits: QUICLimits = .forServers, accepts: Bool = true
    ) throws -> HTTP3Wire {
        try HTTP3Wire(server: limits, contexts: contexts, sendsEarlyData: true, acceptsEarlyData: accepts)
    }

    @Test("A request goes with the first datagrams, and is answered before the handshake is over")
    func accepted() throws {
        let contexts = try HTTP3Wire.contexts()
        try visit(contexts)
        let wire = try again(contexts)
        #expect(wire.client.earlyData == .possible)
        let stream = try wire.submit()
        #expect(try wire.finish(stream))
        #expect(wire.client.earlyData == .accepted)
        #expect(wire.packets.prefix(2).joined().contains(.early), "\(wire.packets)")
        #expect(wire.server.early == [stream])
        #expect(wire.response(stream)?.status == .ok && wire.body[stream] == Array("hello".utf8))
        #expect(wire.events.count { $0 == .ready } == 1)
        let next = try wire.submit()
        #expect(next == 4)
        #expect(try wire.finish(next))
        #expect(wire.server.requests.count == 2)
        #expect(!wire.packets.dropFirst(4).joined().contains(.early))
    }

    @Test(
        "A server that rejects early data sees nothing of it, and the streams begin anew", arguments: [true, false])
    func rejected(knowsTicket: Bool) throws {
        var contexts = try HTTP3Wire.contexts()
        try visit(contexts)
        // With other keys for its tickets, or unwilling.
        if !knowsTicket { contexts.1 = try TLSServerContext(contexts.1.configuration) }
        let wire = try again(contexts, accepts: !knowsTicket)
        let lost = try wire.submit(path: "/early")
        try wire.connect()
        #expect(wire.client.earlyData == .rejected)
        #expect(wire.packets.prefix(2).joined().contains(.early))
        #expect(try wire.clientTLS.negotiated().isResumed == knowsTicket)
        try wire.run(within: 500_000_000)
        #expect(wire.server.requests.isEmpty && wire.response(lost) == nil && wire.end == nil)
        let stream = try wire.submit(path: "/late")
        #expect(stream == lost)
        #expect(try wire.finish(stream))
        #expect(wire.body[stream] == Array("hello".utf8))
        #expect(wire.server.requests.count == 1 && wire.server.early.isEmpty)
        #expect(try wire.finish(try wire.submit("POST")))
    }

    @Test("A ticket is used for early data once") func once() throws {
        let contexts = try HTTP3Wire.contexts(tickets: 1)
        try visit(contexts)
        let first = try again(contexts)
        let second = try again(contexts)
        #expect(first.client.earlyData == .possible)
        #expect(second.client.earlyData == .none)
    }

    enum Lack: CaseIterable { case visit, memory, permission, wish, verification, identity, stream }

    @Test("Without a part of what it needs, there is no early data", arguments: Lack.allCases)
    func lack(lack: Lack) throws {
        var contexts = try HTTP3Wire.contexts()
        if lack == .verification || lack == .identity {
            var configuration = contexts.0.configuration
            if lack == .verification { configuration.verification = .unsafeNone }
            if lack == .identity {
                let own = try TestCertificateAuthority(commonName: "Clients").issue(
                    .init(names: [], commonName: "alice", isForServers: false))
                let identity = try TLSIdentity(
                    certificates: own.certificatePEM, key: own.keyPEM, passphrase: nil)
                configuration.identities = [TLSRule(TLSHostPattern("*"), identity)]
            }
            contexts.0 = try TLSContext(configuration)
        }
        var limits = QUICLimits.forServers
        if lack == .stream { limits.streamCount = 0 }
        if lack != .visit {
            try visit(contexts, limits: limits, accepts: lack == .permission ? nil : true, remembers: lack != .memory)
        }
        let wire = try HTTP3Wire(
            contexts: contexts, sendsEarlyData: lack != .wish,
            // OpenSSL keeps the sessions of other tickets at another place.
            acceptsEarlyData: lack == .permission ? nil : true)
        #expect(wire.client.earlyData == .none)
        try wire.connect()
        #expect(try wire.clientTLS.negotiated().isResumed == (lack != .visit))
        #expect(try wire.finish(try wire.submit()))
        #expect(!wire.packets.joined().contains(.early))
    }

    // MARK: What a server permits

    @Test("A request waits for the remembered window of its stream, and goes on with that of the server now")
    func window() throws {
        let contexts = try HTTP3Wire.contexts()
        var limits = QUICLimits.forServers
        limits.streamWindow = 20
        try visit(contexts, limits: limits)
        let wire = try again(contexts)
        let stream = try wire.submit(path: "/" + String(repeating: "x", count: 100))
        #expect(try wire.finish(stream))
        #expect(wire.client.earlyData == .accepted)
        #expect(wire.packets.prefix(2).joined().contains(.early))
        #expect(wire.server.early.isEmpty)
    }

    @Test("A server that accepts early data and lowers its settings breaks the rules", arguments: [true, false])
    func lowered(isTable: Bool) throws {
        let contexts = try HTTP3Wire.contexts()
        try visit(contexts)
        let wire = try again(contexts)
        wire.server.configure = {
            if isTable { $0.qpack_max_dtable_capacity = 0 } else { $0.max_field_section_size = 1_000 }
        }
        _ = try wire.submit()
        try wire.run { $0.end != nil }
        guard case .http(.failed(let violation, let code))? = wire.events.first(where: { $0.isFailure }) else {
            Issue.record("\(wire.events)")
            return
        }
        #expect(violation.code == .http3Violation && violation.party == .remote)
        #expect(code.description == (isTable ? "QPACK_DECODER_STREAM_ERROR" : "H3_SETTINGS_ERROR"))
        #expect(wire.client.memory == nil)
    }

    @Test("A server that rejects early data may lower its settings") func loweredAndRejected() throws {
        let contexts = try HTTP3Wire.contexts()
        try visit(contexts)
        let wire = try again(contexts, accepts: false)
        wire.server.configure = { ($0.qpack_max_dtable_capacity, $0.max_field_section_size) = (0, 1_000) }
        _ = try wire.submit()
        try wire.connect()
        #expect(try wire.finish(try wire.submit()))
    }

    @Test("A server that accepts early data and lowers its parameters of QUIC breaks the rules")
    func parameters() throws {
        let contexts = try HTTP3Wire.contexts()
        try visit(contexts)
        var limits = QUICLimits.forServers
        limits.streamCount = 1
        let wire = try again(contexts, limits: limits)
        _ = try wire.submit()
        try wire.run { $0.end != nil }
        guard case .violation(let violation)? = wire.end else {
            Issue.record("\(String(describing: wire.end))")
            return
        }
        #expect(violation.code == .quicViolation && violation.party == .remote)
    }

    // MARK: Faults

    @Test(
        "Each datagram of a connection with early data lost, doubled, cut or with a wrong bit changes nothing",
        arguments: HTTP3Wire.Fault.allCases, [true, false])
    func faults(fault: HTTP3Wire.Fault, accepts: Bool) async throws {
        let body = [UInt8](repeating: 9, count: 10_000)
        let contexts = try HTTP3Wire.contexts()
        try visit(contexts)
        for isClient in [true, false] {
            for number in 0..<(isClient ? 6 : 10) {
                // Other tests have a turn.
                await Task.yield()
                let wire = try HTTP3Wire(
                    contexts: contexts, sendsEarlyData: true, acceptsEarlyData: accepts
                ) { _ in HTTP3Answer(body: body) }
                wire.fault = (isClient, number, fault)
                let place = "\(isClient ? "client" : "server") \(number)"
                #expect(wire.client.earlyData == .possible, "\(place)")
                var stream = try wire.submit()
                try wire.connect()
                if wire.client.earlyData == .rejected { stream = try wire.submit() }
                #expect(try wire.finish(stream), "\(place): \(String(describing: wire.end))")
                #expect(wire.body[stream] == body, "\(place)")
                #expect(wire.server.requests.count == 1, "\(place)")
                #expect(try wire.run { $0.client.memory != nil && contexts.0.sessions.count > 0 }, "\(place)")
            }
        }
    }
}

extension HTTP3EndpointEvent {
    fileprivate var isFailure: Bool { if case .http(.failed) = self { true } else { false } }
}

#endif

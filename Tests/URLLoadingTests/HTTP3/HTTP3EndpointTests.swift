// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The client's codecs and TLS against a server of the same libraries, without sockets.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3EndpointTests {
    private static let tenMegabytes = (0..<10_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    @Test("A GET")
    func get() throws {
        let wire = try HTTP3Wire { request in
            HTTP3Answer(status: request[":path"] == "/a?b" ? 200 : 404, fields: [("server", "x")], body: [1, 2, 3])
        }
        try wire.connect()
        let stream = try wire.submit(path: "/a?b")
        #expect(try wire.finish(stream))
        #expect(wire.response(stream)?.status == .ok)
        #expect(wire.response(stream)?.version == .http3)
        #expect(wire.response(stream)?.headers["server"] == "x")
        #expect(wire.body[stream] == [1, 2, 3])
        let agreed = try wire.clientTLS.negotiated()
        #expect(agreed.applicationProtocol == "h3")
        #expect(agreed.version == .tls13)
    }

    @Test("A POST with trailers in both directions, and interim responses")
    func post() throws {
        let wire = try HTTP3Wire { request in
            HTTP3Answer(interim: [103, 102], body: request.body.reversed(), trailers: request.trailers)
        }
        try wire.connect()
        let stream = try wire.submit("POST", hasBody: true)
        var trailers = Headers()
        trailers.append("checksum", "9")
        try wire.send([1, 2, 3], on: stream, trailers: trailers)
        #expect(try wire.finish(stream))
        #expect(wire.body[stream] == [3, 2, 1])
        #expect(wire.trailers(stream) == trailers)
        let interim = wire.events.compactMap {
            if case .http(.informational(_, let head)) = $0 { head.status.code } else { nil }
        }
        #expect(interim == [103, 102])
    }

    @Test("10 MB in both directions")
    func large() throws {
        let wire = try HTTP3Wire { HTTP3Answer(body: $0.body) }
        try wire.connect()
        let stream = try wire.submit("POST", hasBody: true)
        try wire.send(Self.tenMegabytes, on: stream)
        #expect(try wire.finish(stream))
        #expect(wire.body[stream]?.elementsEqual(Self.tenMegabytes) == true)
        #expect(wire.client.held(on: stream) == 0)
    }

    @Test("Many requests at once, more than the server permits")
    func many() throws {
        let wire = try HTTP3Wire { HTTP3Answer(body: Array(($0[":path"] ?? "").utf8)) }
        try wire.connect()
        var streams: [Int64: String] = [:]
        for number in 0..<300 {
            let left = wire.client.streamsLeft
            if left == 0 { #expect(try wire.run { $0.client.streamsLeft > 0 }) }
            streams[try wire.submit(path: "/\(number)")] = "/\(number)"
        }
        for (stream, path) in streams {
            #expect(try wire.finish(stream))
            #expect(wire.body[stream] == Array(path.utf8))
        }
    }

    @Test("A body whose reader takes nothing stops at the window, and goes on when it is read")
    func window() throws {
        let wire = try HTTP3Wire { _ in HTTP3Answer(body: Self.tenMegabytes) }
        wire.consumes = false
        try wire.connect()
        let stream = try wire.submit()
        #expect(try wire.run { $0.body[stream]?.count ?? 0 > 200_000 })
        try wire.run(within: 1_000_000_000)
        let held = wire.body[stream]?.count ?? 0
        #expect(held <= QUICLimits().streamWindow)
        // The connection is not blocked: another stream is read.
        wire.consumes = true
        wire.client.consumed(held, on: stream)
        #expect(try wire.finish(stream))
        #expect(wire.body[stream]?.elementsEqual(Self.tenMegabytes) == true)
    }

    @Test("An unread body does not stop another response")
    func unread() throws {
        let wire = try HTTP3Wire { HTTP3Answer(body: $0[":path"] == "/large" ? Self.tenMegabytes : [1]) }
        wire.consumes = false
        try wire.connect()
        _ = try wire.submit(path: "/large")
        try wire.run(within: 1_000_000_000)
        let other = try wire.submit()
        #expect(try wire.finish(other))
    }

    @Test("A server that does not read holds back the body of a request")
    func slowServer() throws {
        let wire = try HTTP3Wire()
        wire.server.consumes = false
        try wire.connect()
        let stream = try wire.submit("POST", hasBody: true)
        Self.tenMegabytes.withUnsafeBytes { wire.client.send($0, on: stream) }
        try wire.run(within: 1_000_000_000)
        #expect(wire.client.queued(on: stream) > 9_000_000)
    }

    @Test("A reset of either side ends one stream")
    func resets() throws {
        let wire = try HTTP3Wire { request in
            switch request[":path"] {
            case "/rejected": HTTP3Answer(reset: .requestRejected)
            case "/broken": HTTP3Answer(body: Self.tenMegabytes, reset: .internalError)
            case "/silent": HTTP3Answer(isSilent: true)
            default: HTTP3Answer(body: [1])
            }
        }
        try wire.connect()
        let (rejected, broken) = (try wire.submit(path: "/rejected"), try wire.submit(path: "/broken"))
        let silent = try wire.submit(path: "/silent")
        #expect(try wire.run { $0.isReset(rejected) && $0.isReset(broken) })
        #expect(wire.events.contains(.http(.unprocessed(rejected))))
        #expect(wire.events.contains(.http(.reset(broken, .internalError))))
        wire.client.reset(silent, .requestCancelled)
        #expect(try wire.run { $0.server.stops[silent] == HTTP3ErrorCode.requestCancelled.rawValue })
        let after = try wire.submit()
        #expect(try wire.finish(after))
        #expect(wire.end == nil)
    }

    @Test("GOAWAY gives back requests, and completes those before it")
    func goAway() throws {
        let wire = try HTTP3Wire()
        try wire.connect()
        let first = try wire.submit()
        #expect(try wire.finish(first))
        wire.server.goAway()
        #expect(try wire.run { $0.events.contains { if case .http(.goAway) = $0 { true } else { false } } })
        #expect(wire.end == nil)
    }

    @Test("Both sides close with a reason")
    func closes() throws {
        let wire = try HTTP3Wire()
        try wire.connect()
        #expect(try wire.finish(try wire.submit()))
        wire.client.close(.noError)
        #expect(try wire.run { $0.server.end != nil })
        #expect(wire.server.end == .closedByPeer(.application(0x100)))
        #expect(wire.end == .closedHere)

        let other = try HTTP3Wire()
        try other.connect()
        #expect(try other.finish(try other.submit()))
        other.server.quic?.close(.application(0x107))
        #expect(try other.run { $0.end != nil })
        #expect(other.end == .closedByPeer(.application(0x107)))
    }

    @Test("A silent server ends the connection by its idle timeout")
    func idle() throws {
        var limits = QUICLimits()
        limits.idleTimeout = 2_000_000_000
        let wire = try HTTP3Wire(quic: limits)
        try wire.connect()
        #expect(try wire.run { $0.end != nil })
        #expect(wire.end == .idle)
    }

    @Test("A head beyond the limits and interim responses without end refuse one response")
    func limits() throws {
        var limits = HTTP3Limits()
        limits.headSize = 2_000
        let wire = try HTTP3Wire(http: limits) { request in
            request[":path"] == "/large"
                ? HTTP3Answer(fields: [("x", String(repeating: "y", count: 3_000))])
                : request[":path"] == "/interim"
                    ? HTTP3Answer(interim: [Int](repeating: 102, count: 100)) : HTTP3Answer(body: [1])
        }
        try wire.connect()
        for path in ["/large", "/interim"] {
            let stream = try wire.submit(path: path)
            #expect(try !wire.finish(stream))
            #expect(wire.isReset(stream))
        }
        let after = try wire.submit()
        #expect(try wire.finish(after))
        #expect(wire.end == nil)
    }

    @Test("Packets without effect are limited")
    func flood() throws {
        var limits = QUICLimits()
        limits.idlePacketCount = 20
        let wire = try HTTP3Wire(quic: limits)
        try wire.connect()
        #expect(try wire.finish(try wire.submit()))
        wire.server.quic?.keepAlive(after: 1_000_000)
        #expect(try wire.run { $0.end != nil })
        #expect(wire.end == .violation(WireViolation(.remote, .quicFlood, section: "RFC 9000 21.9")))
    }

    // MARK: Trust

    @Test("A certificate of an unknown authority, of another name or out of date fails the handshake with its reason")
    func trust() throws {
        let strange = try HTTP3Wire.contexts(authority: "Another root")
        let cases: [(HTTP3Wire, TLSFailure.Kind)] = [
            (try HTTP3Wire(contexts: (try HTTP3Wire.contexts().0, strange.1)), .untrustedIssuer),
            (try HTTP3Wire(name: .dns("example.org")), .nameMismatch),
            (try HTTP3Wire(.init(validity: .past)), .expired),
            (try HTTP3Wire(.init(isSelfSigned: true)), .selfSigned),
        ]
        for (wire, kind) in cases {
            #expect(try wire.run { $0.end != nil && $0.server.end != nil })
            guard case .handshakeFailed(let alert)? = wire.end else {
                Issue.record("\(kind): \(String(describing: wire.end))")
                continue
            }
            guard case .tls(let failure) = wire.clientTLS.failure(alert: alert).code else { continue }
            #expect(failure.kind == kind)
            #expect(failure.name != nil && !failure.chain.isEmpty)
            #expect(!wire.events.contains(.ready))
        }
    }

    @Test("A pin holds over QUIC")
    func pins() throws {
        let pin = TLSPin.publicKey([UInt8](repeating: 0, count: 32))
        let wire = try HTTP3Wire(pins: [TLSRule(TLSHostPattern("*"), [pin])])
        #expect(try wire.run { $0.end != nil })
        guard case .handshakeFailed(let alert)? = wire.end,
            case .tls(let failure) = wire.clientTLS.failure(alert: alert).code
        else {
            Issue.record("\(String(describing: wire.end))")
            return
        }
        #expect(failure.kind == .pinMismatch)
    }

    @Test("A peer for which decisions are to be made is refused before anything is sent")
    func decisions() throws {
        let (context, _) = try HTTP3Wire.contexts()
        var peer = TLSPeer(.dns("localhost"), port: 443, applicationProtocols: ["h3"])
        peer.asksTrust = true
        #expect(throws: IOFailure.self) { try QUICTLS(client: context, peer: peer) }
        (peer.asksTrust, peer.asksIdentity) = (false, true)
        #expect(throws: IOFailure.self) { try QUICTLS(client: context, peer: peer) }
    }

    @Test("A second connection resumes the session of the first")
    func resumption() throws {
        let contexts = try HTTP3Wire.contexts()
        let first = try HTTP3Wire(contexts: contexts)
        try first.connect()
        #expect(try first.finish(try first.submit()))
        #expect(try !first.clientTLS.negotiated().isResumed)
        let second = try HTTP3Wire(contexts: contexts)
        try second.connect()
        #expect(try second.finish(try second.submit()))
        #expect(try second.clientTLS.negotiated().isResumed)
    }

    @Test("A session is not resumed for another name")
    func sessions() throws {
        let contexts = try HTTP3Wire.contexts(.init(names: ["localhost", "other"]))
        let first = try HTTP3Wire(contexts: contexts)
        try first.connect()
        #expect(try first.finish(try first.submit()))
        let second = try HTTP3Wire(name: .dns("other"), contexts: contexts)
        try second.connect()
        #expect(try !second.clientTLS.negotiated().isResumed)
    }

    @Test("A session is not resumed where other protocols are offered, as over TCP")
    func protocols() throws {
        let contexts = try HTTP3Wire.contexts()
        for (protocols, isResumed) in [(["h3"], false), (["h3", "h2"], false), (["h3"], true)] {
            let wire = try HTTP3Wire(contexts: contexts, protocols: protocols)
            try wire.connect()
            #expect(try wire.finish(try wire.submit()))
            #expect(try wire.clientTLS.negotiated().isResumed == isResumed)
        }
    }

    // MARK: Faults

    @Test(
        "Each datagram of a connection lost, doubled, cut or with a wrong bit changes nothing",
        arguments: HTTP3Wire.Fault.allCases)
    func faults(fault: HTTP3Wire.Fault) throws {
        let body = [UInt8](repeating: 9, count: 30_000)
        // Without tickets each handshake is a full one.
        let contexts = try HTTP3Wire.contexts(tickets: 0)
        let whole = try HTTP3Wire(contexts: contexts) { _ in HTTP3Answer(body: body) }
        try whole.connect()
        #expect(try whole.finish(try whole.submit()))
        let counts = whole.sent
        #expect(counts.client > 3 && counts.server > 20)
        for isClient in [true, false] {
            for number in 0..<(isClient ? counts.client : counts.server) {
                let wire = try HTTP3Wire(contexts: contexts) { _ in HTTP3Answer(body: body) }
                wire.fault = (isClient, number, fault)
                try wire.connect()
                let stream = try wire.submit()
                #expect(try wire.finish(stream), "\(isClient ? "client" : "server") \(number)")
                #expect(wire.body[stream] == body)
            }
        }
    }

    @Test("A server that is not there fails the handshake in time")
    func absent() throws {
        var limits = QUICLimits()
        limits.handshakeTimeout = 3_000_000_000
        let wire = try HTTP3Wire(quic: limits)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
        defer { buffer.deallocate() }
        var (now, sent) = (Int64(1_000_000_000), 0)
        while wire.client.takeEvents() != [.ended(.handshakeTimedOut)] {
            while wire.client.nextDatagrams(into: buffer, now: now) != nil { sent += 1 }
            guard let deadline = wire.client.deadline else { break }
            now = max(now, deadline)
            wire.client.passDeadline(now: now)
        }
        #expect(wire.client.isOver)
        #expect(sent > 1 && sent < 20)
        #expect(now <= 4_100_000_000)
    }

    @Test("Datagrams of others change nothing")
    func others() throws {
        let wire = try HTTP3Wire()
        var bytes = [UInt8](repeating: 0x43, count: 1_200)
        for _ in 0..<2_000 {
            bytes[Int.random(in: 1..<1_200)] = .random(in: .min ... .max)
            bytes.withUnsafeBytes { wire.client.receive($0, ecn: 0, now: wire.now) }
        }
        try wire.connect()
        for _ in 0..<2_000 { bytes.withUnsafeBytes { wire.client.receive($0, ecn: 0, now: wire.now) } }
        #expect(try wire.finish(try wire.submit()))
    }
}

#endif

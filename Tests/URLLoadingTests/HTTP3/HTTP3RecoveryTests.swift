// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// What must not end a connection or a response: losses, a clock that steps back, a peer that stops reading.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3RecoveryTests {
    private static let tenMegabytes = (0..<10_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    @Test("The packets behind a lost one are not taken for a flood", arguments: [true, false])
    func loss(isUpload: Bool) throws {
        var limits = QUICLimits()
        limits.idlePacketCount = 20
        let wire = try HTTP3Wire(quic: limits) { HTTP3Answer(body: isUpload ? [1] : $0.body + Self.tenMegabytes) }
        try wire.connect()
        wire.fault = (isUpload, 4_000, .lose)
        let stream = try wire.submit(isUpload ? "POST" : "GET", hasBody: isUpload)
        if isUpload { try wire.send(Self.tenMegabytes, on: stream) }
        #expect(try wire.finish(stream), "\(String(describing: wire.end))")
        #expect(isUpload ? wire.sent.client > 4_000 : wire.sent.server > 4_000)
    }

    @Test("A response is complete whichever datagram with the compression of its fields is lost")
    func compression() throws {
        let fields = (0..<4).map { ("x-\($0)", String(repeating: "\($0)", count: 900)) }
        let contexts = try HTTP3Wire.contexts(tickets: 0)
        for number in 0..<12 {
            let wire = try HTTP3Wire(contexts: contexts) { _ in HTTP3Answer(fields: fields, body: [1]) }
            try wire.connect()
            #expect(try wire.run { $0.events.contains(.http(.settings)) })
            try wire.run(within: 500_000_000)
            wire.fault = (false, wire.sent.server + number, .lose)
            let stream = try wire.submit()
            #expect(try wire.finish(stream), "\(number): \(wire.events)")
            #expect(wire.response(stream)?.headers["x-3"] == fields[3].1)
            #expect(wire.body[stream] == [1])
        }
    }

    @Test(
        "A clock that steps back stops, and goes on once it has caught up", arguments: [-900_000_000, -5_000_000_000])
    func clock(step: Int64) throws {
        let wire = try HTTP3Wire { HTTP3Answer(body: $0.body) }
        try wire.connect()
        wire.step = step
        let stream = try wire.submit("POST", hasBody: true)
        try wire.send([1, 2, 3], on: stream)
        #expect(try wire.finish(stream))
        wire.step = 0
        #expect(try wire.finish(try wire.submit()))
    }

    @Test("A server that wants no more of a request ends its body, and the response goes on", arguments: [true, false])
    func stop(isBlocked: Bool) throws {
        let wire = try HTTP3Wire { _ in HTTP3Answer(isSilent: true) }
        wire.server.consumes = false
        try wire.connect()
        let stream = try wire.submit("POST", hasBody: true)
        if isBlocked { Self.tenMegabytes.withUnsafeBytes { wire.client.send($0, on: stream) } }
        try wire.run(within: 1_000_000_000)
        #expect(wire.client.queued(on: stream) > 9_000_000 || !isBlocked)
        wire.server.quic?.stopReceiving(stream, 0x100)
        #expect(try wire.run { $0.events.contains(.http(.sentAll(stream))) })
        #expect(wire.client.queued(on: stream) == 0)
        [UInt8(1)].withUnsafeBytes { wire.client.send($0, on: stream) }
        #expect(wire.client.queued(on: stream) == 0)
        #expect(wire.end == nil && !wire.isReset(stream))
    }

    @Test("A server that chooses no application protocol is refused before requests (RFC 9001 8.1)")
    func application() throws {
        let wire = try HTTP3Wire(contexts: HTTP3Wire.contexts(protocols: []))
        #expect(try wire.run { $0.end != nil && $0.server.end != nil })
        #expect(!wire.events.contains(.ready))
        #expect(wire.end == .handshakeFailed(alert: 120))
        #expect(wire.server.end == .closedByPeer(.transport(QUICTransportError(rawValue: 0x178))))
    }
}

#endif

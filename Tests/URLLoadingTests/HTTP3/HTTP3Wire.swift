// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// A client and a server that exchange datagrams in memory, with a clock that goes on when neither has anything to
/// send.
final class HTTP3Wire {
    let client: HTTP3Endpoint
    let clientTLS: QUICTLS
    let server: HTTP3MemoryServer
    private(set) var now: Int64 = 1_000_000_000
    private(set) var events: [HTTP3EndpointEvent] = []
    private(set) var body: [Int64: [UInt8]] = [:]
    /// The network from the client to the server.
    var up = DatagramFaults()
    /// The network from the server to the client.
    var down = DatagramFaults()
    /// The datagrams that each side has sent.
    var sent: (client: Int, server: Int) { (up.count, down.count) }
    typealias Fault = DatagramFaults.Fault
    /// What happens to the datagram of a number that a side sends.
    var fault: (isClient: Bool, number: Int, fault: Fault)? {
        didSet {
            let single = fault.map { [$0.number: $0.fault] } ?? [:]
            (up.singles, down.singles) = fault?.isClient == true ? (single, [:]) : ([:], single)
        }
    }
    /// The paths on which nothing arrives.
    var dead: Set<UInt32> = []
    /// What the numbers of the server's paths are more than those of the client's: a router between them changes
    /// addresses.
    var shift: UInt32 = 0
    /// Added to the clock of the client.
    var step: Int64 = 0
    /// The packets in each datagram of the client.
    private(set) var packets: [[QUICPacketKind]] = []
    /// Whether the client remembers the server for early data.
    var remembers = true
    /// Whether the reader of a body takes what arrives.
    var consumes = true
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)

    init(
        _ options: TestCertificateOptions = .init(), name: TLSPeerName = .dns("localhost"),
        quic: QUICLimits = QUICLimits(), http: HTTP3Limits = HTTP3Limits(), server limits: QUICLimits = .forServers,
        pins: [TLSRule<[TLSPin]>] = [], contexts: (TLSContext, TLSServerContext)? = nil,
        protocols: [String] = ["h3"], sendsEarlyData: Bool = false, acceptsEarlyData: Bool? = nil,
        answer: @escaping (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Array("hello".utf8)) }
    ) throws {
        let contexts = try contexts ?? Self.contexts(options, pins: pins)
        clientTLS = try QUICTLS(
            client: contexts.0, peer: TLSPeer(name, port: 443, applicationProtocols: protocols),
            sendsEarlyData: sendsEarlyData)
        client = try HTTP3Endpoint(
            clientTLS, quic: quic, http: http, memory: clientTLS.remembered as? HTTP3Memory, now: now)
        server = HTTP3MemoryServer(
            try QUICTLS(server: contexts.1, acceptsEarlyData: acceptsEarlyData), limits: limits, answer: answer)
    }

    deinit { buffer.deallocate() }

    static func contexts(
        _ options: TestCertificateOptions = .init(), pins: [TLSRule<[TLSPin]>] = [], tickets: Int = 2,
        authority name: String = "Test root", protocols: [String] = ["h3"]
    ) throws -> (TLSContext, TLSServerContext) {
        let authority = try TestCertificateAuthority(commonName: name)
        let identity = try authority.issue(options)
        var server = TLSServerContext.Configuration(
            certificateChain: identity.certificatePEM, privateKey: identity.keyPEM)
        server.applicationProtocols = protocols
        server.tickets = tickets
        var configuration = TLSConfiguration()
        configuration.roots = .pem(authority.pem)
        configuration.pins = pins
        return (try TLSContext(configuration), try TLSServerContext(server))
    }

    /// Moves datagrams until the condition is met. Returns false if neither side has anything to do any more, or after
    /// `most` rounds.
    /// - Parameter within: the nanoseconds that the clock goes on at once at most.
    @discardableResult
    func run(most: Int = 20_000, within: Int64 = .max, until isMet: (HTTP3Wire) -> Bool = { _ in false }) throws -> Bool
    {
        for _ in 0..<most {
            if isMet(self) { return true }
            if try move() { continue }
            if isMet(self) { return true }
            let moments = [client.deadline, server.quic?.deadline, up.next, down.next].compactMap(\.self)
            guard let next = moments.min(), next - now < within else { return false }
            now = max(now + 1, next)
            client.passDeadline(now: now + step)
            try server.passDeadline(now: now)
            take()
        }
        return false
    }

    /// Moves what both sides have to send now, and what arrives. Returns whether that was anything.
    private func move() throws -> Bool {
        var moved = false
        while let datagrams = client.nextDatagrams(into: buffer, now: now + step) {
            moved = true
            for datagram in pieces(datagrams) {
                packets.append(QUICPacketKind.all(in: datagram.dropFirst()))
                up.add(datagram, now: now)
            }
        }
        for datagram in up.arrived(now: now) {
            moved = true
            try passOn(datagram) { try server.receive($1, on: $0 + shift, now: now) }
        }
        take()
        while let datagrams = try server.nextDatagrams(into: buffer, now: now) {
            moved = true
            for datagram in pieces(datagrams) { down.add(datagram, now: now) }
        }
        for datagram in down.arrived(now: now) {
            moved = true
            passOn(datagram) { path, datagram in
                guard path >= shift else { return }
                client.receive(datagram, ecn: 0, on: path - shift, now: now + step)
            }
            take()
        }
        now += 1_000_000
        return moved
    }

    /// Returns the datagrams, each behind the number of its path.
    private func pieces(_ datagrams: QUICDatagrams) -> [[UInt8]] {
        stride(from: 0, to: datagrams.count, by: datagrams.size).map {
            [UInt8(datagrams.path)] + buffer[$0..<min(datagrams.count, $0 + datagrams.size)]
        }
    }

    private func passOn(
        _ datagram: [UInt8], _ body: (UInt32, UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        guard let path = datagram.first.map({ UInt32($0) }), !dead.contains(path) else { return }
        try datagram.withUnsafeBytes { try body(path, UnsafeRawBufferPointer(rebasing: $0[1...])) }
    }

    private func take() {
        for event in client.takeEvents() {
            switch event {
            case .http(.data(let stream, let range)):
                body[stream, default: []] += client.received[range]
                if consumes { client.consumed(range.count, on: stream) }
            case .http(.lateData(let stream, let bytes)):
                body[stream, default: []] += bytes
                if consumes { client.consumed(bytes.count, on: stream) }
            case .http(.settings):
                if remembers, let memory = client.memory { clientTLS.remember(memory) }
                events.append(event)
            default: events.append(event)
            }
        }
        client.releaseReceived()
    }

    // MARK: Requests

    func connect() throws {
        #expect(
            try run { $0.events.contains(.ready) },
            "\(String(describing: fault)) \(String(describing: end)), server \(String(describing: server.end))")
    }

    func submit(_ method: String = "GET", path: String = "/", hasBody: Bool = false) throws -> Int64 {
        let request = HTTP2Request(
            method: Method(method), scheme: "https", authority: Array("localhost".utf8), path: Array(path.utf8),
            framing: hasBody ? .chunked : .none)
        return try #require(
            try client.submit(request, hasBody: hasBody),
            "\(String(describing: end)), server \(String(describing: server.end))")
    }

    /// Sends a body as far as its stream takes it, a piece after the other.
    func send(_ bytes: [UInt8], on stream: Int64, trailers: Headers = Headers(), most: Int = 20_000) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(50_000)
            piece.withUnsafeBytes { client.send($0, on: stream) }
            rest = rest.dropFirst(piece.count)
            guard try run(most: most, until: { $0.client.queued(on: stream) == 0 }) else { break }
        }
        try client.endSending(on: stream, trailers: trailers)
    }

    func response(_ stream: Int64) -> HTTP1ResponseHead? {
        for case .http(.response(stream, let head)) in events { return head }
        return nil
    }
    func trailers(_ stream: Int64) -> Headers? {
        for case .http(.end(stream, let trailers)) in events { return trailers }
        return nil
    }
    /// Runs until the response of a stream is complete, or its stream or the connection is over.
    @discardableResult
    func finish(_ stream: Int64, most: Int = 20_000) throws -> Bool {
        try run(most: most) { wire in wire.trailers(stream) != nil || wire.end != nil || wire.isReset(stream) }
        return trailers(stream) != nil
    }
    func isReset(_ stream: Int64) -> Bool {
        events.contains {
            switch $0 {
            case .http(.reset(stream, _)), .http(.violation(stream, _)), .http(.unprocessed(stream)): true
            default: false
            }
        }
    }
    var end: QUICEnd? {
        for case .ended(let end) in events { return end }
        return nil
    }
}

#endif

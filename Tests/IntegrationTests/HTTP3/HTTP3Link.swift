// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
import URLLoadingIO
import URLLoadingWire

/// The client's codecs over a socket for datagrams, for one task.
final class HTTP3Link {
    let endpoint: HTTP3Endpoint
    let tls: QUICTLS
    private let socket: DatagramSocket
    private let received = DatagramBuffer()
    private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
    private(set) var events: [HTTP3EndpointEvent] = []
    private(set) var body: [Int64: [UInt8]] = [:]

    init(port: UInt16, roots: [UInt8]) throws {
        var configuration = TLSConfiguration()
        configuration.roots = .pem(roots)
        tls = try QUICTLS(
            client: TLSContext(configuration),
            peer: TLSPeer(.dns("localhost"), port: port, applicationProtocols: ["h3"]))
        endpoint = try HTTP3Endpoint(tls, now: Poller.now())
        socket = try DatagramSocket(to: .ipv4((127, 0, 0, 1), port: port))
    }

    deinit {
        socket.close()
        output.deallocate()
    }

    /// Exchanges datagrams until the condition is met, or the connection is over.
    func run(until isMet: (HTTP3Link) -> Bool) async throws {
        while !isMet(self), !endpoint.isOver {
            try await send()
            guard case .blocked = try socket.receive(into: received) else {
                received.forEach { endpoint.receive($0, ecn: $1, now: Poller.now()) }
                take()
                continue
            }
            // A wait of fixed length is enough for tests.
            try await Poller.shared.sleep(until: Poller.now() + 500_000, StopToken())
            endpoint.passDeadline(now: Poller.now())
            take()
        }
        try await send()
    }

    private func send() async throws {
        while let datagrams = endpoint.nextDatagrams(into: output, now: Poller.now()) {
            var start = 0
            while start < datagrams.count {
                let rest = UnsafeRawBufferPointer(rebasing: output[start..<datagrams.count])
                switch try socket.send(rest, size: datagrams.size, ecn: datagrams.ecn) {
                case .moved(let count): start += count
                default: await Poller.shared.park(socket.slot, .write, StopToken())
                }
            }
        }
        take()
    }

    private func take() {
        for event in endpoint.takeEvents() {
            switch event {
            case .http(.data(let stream, let range)):
                body[stream, default: []] += endpoint.received[range]
                endpoint.consumed(range.count, on: stream)
            case .http(.lateData(let stream, let bytes)):
                body[stream, default: []] += bytes
                endpoint.consumed(bytes.count, on: stream)
            default: events.append(event)
            }
        }
        endpoint.releaseReceived()
    }

    func connect() async throws { try await run { $0.events.contains(.ready) } }

    func submit(_ method: String, _ path: String, hasBody: Bool = false) throws -> Int64 {
        let request = HTTP2Request(
            method: Method(method), scheme: "https", authority: Array("localhost".utf8), path: Array(path.utf8),
            framing: hasBody ? .chunked : .none)
        return try #require(try endpoint.submit(request, hasBody: hasBody))
    }

    func finish(_ stream: Int64) async throws {
        try await run { link in
            link.events.contains { if case .http(.end(stream, _)) = $0 { true } else { false } }
        }
    }

    func response(_ stream: Int64) -> HTTP1ResponseHead? {
        for case .http(.response(stream, let head)) in events { return head }
        return nil
    }
}

#endif

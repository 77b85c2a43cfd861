// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// A client of QUIC that sends any bytes on its streams, for one task.
final class RawHTTP3Client {
    private let quic: QUICCodec
    private let socket: DatagramSocket
    private let received = DatagramBuffer()
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
    private var queue: [(stream: Int64, bytes: UnsafeMutableRawBufferPointer, isEnd: Bool)] = []
    private var sent: [UnsafeMutableRawBufferPointer] = []
    private(set) var end: QUICEnd?
    /// The codes with which the server has ended streams.
    private(set) var resets: [Int64: UInt64] = [:]
    /// What the server has sent.
    private(set) var bytes: [Int64: [UInt8]] = [:]
    private var isReady = false
    private var counts = (sent: 0, received: 0)

    init(port: UInt16, roots: [UInt8]) throws {
        var configuration = TLSConfiguration()
        configuration.roots = .pem(roots)
        let tls = try QUICTLS(
            client: TLSContext(configuration),
            peer: TLSPeer(.dns("localhost"), port: port, applicationProtocols: ["h3"]))
        var limits = QUICLimits()
        limits.idleTimeout = 60_000_000_000
        quic = try QUICCodec(client: tls, limits: limits, now: Poller.now())
        socket = try DatagramSocket(to: .ipv4((127, 0, 0, 1), port: port))
    }

    deinit {
        socket.close()
        buffer.deallocate()
        for bytes in sent + queue.map(\.bytes) { bytes.deallocate() }
    }

    func connect() async throws {
        try await run { $0.isReady }
        #expect(isReady, "\(String(describing: end)), datagrams sent and received: \(counts)")
    }

    /// Opens a stream and sends bytes on it; `nil` if the server permits no more streams.
    @discardableResult
    func send(_ bytes: [UInt8], oneWay: Bool = false, isEnd: Bool = false) -> Int64? {
        guard let stream = oneWay ? quic.openOutgoingStream() : quic.openStream() else { return nil }
        send(bytes, on: stream, isEnd: isEnd)
        return stream
    }

    func send(_ bytes: [UInt8], on stream: Int64, isEnd: Bool = false) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        copy.copyBytes(from: bytes)
        queue.append((stream, copy, isEnd))
    }

    func close() async throws {
        quic.close(.application(0x100))
        try await run { _ in true }
    }

    /// Exchanges datagrams until the condition is met, or the connection is over.
    func run(until isMet: (RawHTTP3Client) -> Bool) async throws {
        while true {
            while let datagrams = quic.nextDatagrams(into: buffer, from: self, now: Poller.now()) {
                let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<datagrams.count])
                _ = try? socket.send(bytes, size: datagrams.size, ecn: 0)
                counts.sent += 1
            }
            take()
            if isMet(self) || end != nil { return }
            // A server that has ended refuses datagrams.
            if case .moved = try? socket.receive(into: received) {
                received.forEach {
                    quic.receive($0, ecn: $1, now: Poller.now())
                    counts.received += 1
                }
            } else {
                // A wait of fixed length is enough for tests.
                try await Poller.shared.sleep(until: Poller.now() + 500_000, StopToken())
            }
            quic.passDeadline(now: Poller.now())
            take()
        }
    }

    private func take() {
        for event in quic.takeEvents() {
            switch event {
            case .handshakeCompleted: isReady = true
            case .data(let stream, let range, _):
                bytes[stream, default: []] += quic.received[range]
                quic.arrived(range.count)
                quic.consumed(range.count, on: stream)
            case .reset(let stream, let code): resets[stream] = code
            case .closed(let stream, let code?): resets[stream] = code
            case .ended(let end): self.end = end
            default: break
            }
        }
        quic.releaseReceived()
    }
}

extension RawHTTP3Client: QUICStreamSource {
    func nextOutput(_ pieces: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> QUICStreamOutput? {
        guard let first = queue.first else { return nil }
        pieces.initializeElement(at: 0, to: UnsafeRawBufferPointer(first.bytes))
        return QUICStreamOutput(stream: first.stream, pieces: 1, isEnd: first.isEnd)
    }

    func took(_ count: Int, on stream: Int64) {
        guard let first = queue.first, first.stream == stream else { return }
        // What was sent stays where it is; the rest is sent from a copy.
        queue.removeFirst()
        sent.append(first.bytes)
        guard count < first.bytes.count else { return }
        let rest = UnsafeMutableRawBufferPointer.allocate(byteCount: first.bytes.count - count, alignment: 1)
        rest.copyBytes(from: first.bytes[count...])
        queue.insert((stream, rest, first.isEnd), at: 0)
    }

    func isBlocked(_ stream: Int64) { isStopped(stream) }
    func isStopped(_ stream: Int64) {
        sent += queue.filter { $0.stream == stream }.map(\.bytes)
        queue.removeAll { $0.stream == stream }
    }
}

#endif

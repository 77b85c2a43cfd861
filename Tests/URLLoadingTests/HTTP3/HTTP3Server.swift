// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Glibc
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// A server of `HTTP3Peer`s on a port of the loopback address, with a thread of its own.
final class HTTP3Server: Sendable {
    let port: UInt16
    /// The certificate of its authority, in PEM.
    let roots: String
    private let descriptor: Int32
    private let state = Lock(State())

    private struct State: Sendable {
        var isStopped = false
        var orders: [@Sendable (HTTP3Peer) -> Void] = []
        var connections = 0
        var requests = 0
        var stops: [UInt64] = []
        var isSilent = false
    }

    /// - Parameter asksIdentity: whether clients must present a certificate of the server's authority.
    convenience init(
        _ options: TestCertificateOptions = .init(), asksIdentity: Bool = false,
        answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Array("hello".utf8)) }
    ) throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try self.init(try authority.issue(options), of: authority, port: 0, asksIdentity: asksIdentity, answer: answer)
    }

    /// - Parameter wanted: 0 for a port that the system chooses.
    init(
        _ identity: TestIdentity, of authority: TestCertificateAuthority, port wanted: UInt16,
        asksIdentity: Bool = false,
        answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Array("hello".utf8)) }
    ) throws {
        var server = TLSServerContext.Configuration(
            certificateChain: identity.certificatePEM, privateKey: identity.keyPEM)
        server.applicationProtocols = ["h3"]
        if asksIdentity { server.clientRoots = authority.pem }
        let context = try TLSServerContext(server)
        roots = String(decoding: authority.pem, as: UTF8.self)
        (descriptor, port) = try DatagramSockets.bound(port: wanted)
        Thread.detachNewThread { [self] in serve(context, answer) }
    }

    func stop() { state.withLock { $0.isStopped = true } }
    /// Does something to every connection.
    func order(_ body: @escaping @Sendable (HTTP3Peer) -> Void) { state.withLock { $0.orders.append(body) } }
    /// Ignores what arrives from now on.
    func fallSilent() { state.withLock { $0.isSilent = true } }
    /// The numbers of connections and requests so far.
    var connections: Int { state.withLock { $0.connections } }
    var requests: Int { state.withLock { $0.requests } }
    /// The codes of streams that the client has ended.
    var stops: [UInt64] { state.withLock { $0.stops } }

    private func serve(_ context: TLSServerContext, _ answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer) {
        var peers: [UInt16: (peer: HTTP3Peer, address: sockaddr_in)] = [:]
        var ended: [HTTP3Peer] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !state.withLock({ $0.isStopped }) {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&waiting, 1, 2)
            let now = Poller.now()
            while true {
                var from = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let count = withUnsafeMutablePointer(to: &from) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT), $0, &length)
                    }
                }
                guard count > 0 else { break }
                if state.withLock({ $0.isSilent }) { continue }
                if peers[from.sin_port] == nil, let tls = try? QUICTLS(server: context) {
                    let peer = HTTP3Peer(tls) { [self] request in
                        self.state.withLock { $0.requests += 1 }
                        return answer(request)
                    }
                    peers[from.sin_port] = (peer, from)
                    state.withLock { $0.connections += 1 }
                }
                buffer.withUnsafeBytes {
                    try? peers[from.sin_port]?.peer.receive(UnsafeRawBufferPointer(rebasing: $0[..<count]), now: now)
                }
            }
            for order in state.withLock({ state in
                defer { state.orders = [] }
                return state.orders
            }) { for (peer, _) in peers.values { order(peer) } }
            for (key, (peer, address)) in peers {
                try? peer.passDeadline(now: now)
                send(peer, to: address, &buffer, now)
                if peer.end != nil || peer.quic?.isOver == true {
                    peers[key] = nil
                    ended.append(peer)
                }
            }
            let stops = (ended + peers.values.map(\.peer)).flatMap { $0.stops.values }
            state.withLock { $0.stops = stops }
        }
        close(descriptor)
    }

    private func send(_ peer: HTTP3Peer, to address: sockaddr_in, _ buffer: inout [UInt8], _ now: Int64) {
        buffer.withUnsafeMutableBytes { buffer in
            while let datagrams = try? peer.nextDatagrams(into: buffer, now: now) {
                for start in stride(from: 0, to: datagrams.count, by: datagrams.size) {
                    let piece = buffer[start..<min(datagrams.count, start + datagrams.size)]
                    DatagramSockets.send(Array(piece), from: descriptor, to: address)
                }
            }
        }
    }
}

#endif

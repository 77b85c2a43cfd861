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

/// A server of `HTTP3MemoryServer`s on a port of the loopback address, with a thread of its own.
final class HTTP3Server: Sendable {
    let port: UInt16
    /// The certificate of its authority, in PEM.
    let roots: String
    private let descriptor: Int32
    private let state = Lock(State())

    private struct State: Sendable {
        var isStopped = false
        var orders: [@Sendable (HTTP3MemoryServer) -> Void] = []
        var connections = 0
        var requests = 0
        var stops: [UInt64] = []
        var moves = 0
        var isSilent = false
    }

    /// A client, and the addresses that it was seen at: their places are the numbers of paths.
    private struct Client {
        let peer: HTTP3MemoryServer
        var addresses: [sockaddr_in]

        /// Returns the number of the path of an address, which may be a new one.
        mutating func path(from address: sockaddr_in) -> UInt32 {
            let key = DatagramSockets.Address(address)
            if let known = addresses.firstIndex(where: { DatagramSockets.Address($0) == key }) { return UInt32(known) }
            addresses.append(address)
            return UInt32(addresses.count - 1)
        }
    }

    /// - Parameter asksIdentity: whether clients must present a certificate of the server's authority.
    convenience init(
        _ options: TestCertificateOptions = .init(), asksIdentity: Bool = false, limits: QUICLimits = .forServers,
        host: UInt32 = DatagramSockets.loopback,
        answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Array("hello".utf8)) }
    ) throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try self.init(
            try authority.issue(options), of: authority, port: 0, asksIdentity: asksIdentity, limits: limits,
            host: host, answer: answer)
    }

    /// - Parameter wanted: 0 for a port that the system chooses.
    init(
        _ identity: TestIdentity, of authority: TestCertificateAuthority, port wanted: UInt16,
        asksIdentity: Bool = false, limits: QUICLimits = .forServers, host: UInt32 = DatagramSockets.loopback,
        answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Array("hello".utf8)) }
    ) throws {
        var server = TLSServerContext.Configuration(
            certificateChain: identity.certificatePEM, privateKey: identity.keyPEM)
        server.applicationProtocols = ["h3"]
        if asksIdentity { server.clientRoots = authority.pem }
        let context = try TLSServerContext(server)
        roots = String(decoding: authority.pem, as: UTF8.self)
        (descriptor, port) = try DatagramSockets.bound(port: wanted, at: host)
        Thread.detachNewThread { [self] in serve(context, limits, answer) }
    }

    func stop() { state.withLock { $0.isStopped = true } }
    /// Does something to every connection.
    func order(_ body: @escaping @Sendable (HTTP3MemoryServer) -> Void) { state.withLock { $0.orders.append(body) } }
    /// Ignores what arrives from now on.
    func fallSilent() { state.withLock { $0.isSilent = true } }
    /// The numbers of connections and requests so far.
    var connections: Int { state.withLock { $0.connections } }
    var requests: Int { state.withLock { $0.requests } }
    /// The codes of streams that the client has ended.
    var stops: [UInt64] { state.withLock { $0.stops } }
    /// How often clients have answered at another address.
    var moves: Int { state.withLock { $0.moves } }

    private func serve(
        _ context: TLSServerContext, _ limits: QUICLimits,
        _ answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer
    ) {
        var clients: [Client] = []
        var ended: [HTTP3MemoryServer] = []
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
                buffer.withUnsafeBytes { bytes in
                    let datagram = UnsafeRawBufferPointer(rebasing: bytes[..<count])
                    // A client at another address is known by its connection id, one that begins by its address.
                    let index =
                        clients.firstIndex { $0.peer.quic?.isAddressee(of: datagram) == true }
                        ?? clients.firstIndex {
                            DatagramSockets.Address($0.addresses[0]) == DatagramSockets.Address(from)
                        }
                    if let index {
                        let path = clients[index].path(from: from)
                        try? clients[index].peer.receive(datagram, on: path, now: now)
                    } else if let tls = try? QUICTLS(server: context) {
                        let peer = HTTP3MemoryServer(tls, limits: limits) { [self] request in
                            self.state.withLock { $0.requests += 1 }
                            return answer(request)
                        }
                        clients.append(Client(peer: peer, addresses: [from]))
                        state.withLock { $0.connections += 1 }
                        try? peer.receive(datagram, now: now)
                    }
                }
            }
            for order in state.withLock({ state in
                defer { state.orders = [] }
                return state.orders
            }) { for client in clients { order(client.peer) } }
            for client in clients {
                try? client.peer.passDeadline(now: now)
                send(client, &buffer, now)
            }
            ended += clients.map(\.peer).filter(Self.isOver)
            clients.removeAll { Self.isOver($0.peer) }
            let all = ended + clients.map(\.peer)
            let (stops, moves) = (all.flatMap { $0.stops.values }, all.reduce(0) { $0 + $1.moves })
            state.withLock { ($0.stops, $0.moves) = (stops, moves) }
        }
        close(descriptor)
    }

    private static func isOver(_ peer: HTTP3MemoryServer) -> Bool { peer.end != nil || peer.quic?.isOver == true }

    private func send(_ client: Client, _ buffer: inout [UInt8], _ now: Int64) {
        buffer.withUnsafeMutableBytes { buffer in
            while let datagrams = try? client.peer.nextDatagrams(into: buffer, now: now) {
                let address = client.addresses[min(Int(datagrams.path), client.addresses.count - 1)]
                for start in stride(from: 0, to: datagrams.count, by: datagrams.size) {
                    let piece = buffer[start..<min(datagrams.count, start + datagrams.size)]
                    DatagramSockets.send(Array(piece), from: descriptor, to: address)
                }
            }
        }
    }
}

/// Runs a test with a server that follows its clients and a session that speaks HTTP/3 only, unless `change` says
/// otherwise.
func withMovingServer(
    _ options: TestCertificateOptions = .init(), limits: QUICLimits = .forServers,
    host: UInt32 = DatagramSockets.loopback, change: (inout Configuration) -> Void = { _ in },
    answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Array("hello".utf8)) },
    _ body: (HTTP3Server, Session) async throws -> Void
) async throws {
    let server = try HTTP3Server(options, limits: limits, host: host, answer: answer)
    defer { server.stop() }
    var configuration = Configuration.ephemeral
    configuration.tls.trustRoots = .pem(server.roots)
    configuration.connections.httpVersions = .http3PriorKnowledge
    change(&configuration)
    let session = Session(configuration)
    defer { session.invalidateAndCancel() }
    try await body(server, session)
}

extension HTTP3Server {
    func url(_ path: String, host: String = "localhost") -> URL {
        URL(string: "https://\(host):\(port)\(path)") ?? URL(filePath: "/")
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0

package import Glibc
import Synchronization
import URLLoadingIO

/// A network between clients and a server of datagrams, such as one of QUIC, on the loopback address, with faults in
/// both directions.
///
/// ```swift
/// var network = DatagramFaults(seed: 7)
/// network.loss = 0.05
/// let relay = try DatagramRelay(to: port, client: network, server: network)
/// defer { relay.stop() }
/// // The client sends to 127.0.0.1 at `relay.port`, and the server answers as if that were its own port.
/// ```
/// The server sees an address of its own for each client. For connections over TCP, see ``NetworkRelay``.
public final class DatagramRelay: Sendable {
    /// The port of 127.0.0.1 that clients send to.
    public let port: UInt16
    private let state: Lock<State>

    private struct State: Sendable {
        var isStopped = false
        var rebindings: [Int]
        var rebindingCount = 0
        var faultCount = 0
        var clientCount = 0
        var fromClients: [[UInt8]] = []
        /// The number of the first client whose datagrams are not lost.
        var firstHeard = 0
    }

    /// Begins to pass datagrams on, until ``stop()``.
    /// - Parameters:
    ///   - server: the port of the server on 127.0.0.1.
    ///   - client: what happens to the datagrams of each client.
    ///   - faults: what happens to the datagrams for each client.
    ///   - rebindings: the numbers of datagrams of the clients after which the server sees another address, as behind a
    ///     router that has forgotten them; in ascending order, none by default.
    /// - Throws: an error if no socket could be created.
    public init(
        to server: UInt16, client: DatagramFaults, server faults: DatagramFaults, rebindings: [Int] = []
    ) throws {
        let listener = try DatagramSockets.bound()
        port = listener.port
        state = Lock(State(rebindings: rebindings))
        BlockingThreads(limit: 1).run { [self] in relay(listener.descriptor, to: server, client, faults) }
    }

    /// Ends the relay within some milliseconds; datagrams on their way are lost.
    public func stop() { state.withLock { $0.isStopped = true } }

    /// How often the server has seen another address of a client.
    public var rebindingCount: Int { state.withLock { $0.rebindingCount } }
    /// The number of datagrams that did not arrive unchanged and in order.
    public var faultCount: Int { state.withLock { $0.faultCount } }
    /// The number of addresses from which clients have sent.
    package var clientCount: Int { state.withLock { $0.clientCount } }

    /// The first datagrams that clients have sent, whether they were passed on or not, in order of arrival.
    package var fromClients: [[UInt8]] { state.withLock { $0.fromClients } }
    private static let mostKept = 100

    /// Loses from now on what is sent from or to the addresses of the clients so far; what comes from another address
    /// arrives, unless that is lost, too.
    package func cut(alsoOthers: Bool = false) {
        state.withLock { $0.firstHeard = alsoOthers ? .max : $0.clientCount }
    }

    /// One client, and the socket that the server sees in its place.
    private struct Client {
        let address: sockaddr_in
        var descriptor: Int32
        var up: DatagramFaults
        var down: DatagramFaults
        /// The number of addresses before this one.
        let number: Int
    }

    private func relay(_ listener: Int32, to server: UInt16, _ up: DatagramFaults, _ down: DatagramFaults) {
        var clients: [DatagramSockets.Address: Client] = [:]
        while !state.withLock({ $0.isStopped }) {
            var waiting = ([listener] + clients.values.map(\.descriptor)).map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            _ = poll(&waiting, nfds_t(waiting.count), 1)
            let now = Poller.now()
            while let (datagram, from) = DatagramSockets.receive(listener) {
                let key = DatagramSockets.Address(from)
                if clients[key] == nil, let own = try? DatagramSockets.bound() {
                    let number = state.withLock { state in
                        defer { state.clientCount += 1 }
                        return state.clientCount
                    }
                    clients[key] = Client(
                        address: from, descriptor: own.descriptor, up: up, down: down, number: number)
                }
                state.withLock { if $0.fromClients.count < Self.mostKept { $0.fromClients.append(datagram) } }
                guard isHeard(clients[key]) else { continue }
                clients[key]?.up.add(datagram, now: now)
                rebind(&clients[key])
            }
            for key in clients.keys {
                guard var client = clients.removeValue(forKey: key) else { continue }
                while let (datagram, _) = DatagramSockets.receive(client.descriptor) {
                    if isHeard(client) { client.down.add(datagram, now: now) }
                }
                for datagram in client.up.arrived(now: now) {
                    DatagramSockets.send(datagram, from: client.descriptor, to: DatagramSockets.address(server))
                }
                for datagram in client.down.arrived(now: now) {
                    DatagramSockets.send(datagram, from: listener, to: client.address)
                }
                clients[key] = client
            }
            let faultCount = clients.values.reduce(0) { $0 + $1.up.faultCount + $1.down.faultCount }
            state.withLock { $0.faultCount = faultCount }
        }
        for client in clients.values { close(client.descriptor) }
        close(listener)
    }

    private func isHeard(_ client: Client?) -> Bool {
        guard let client else { return false }
        return state.withLock { client.number >= $0.firstHeard }
    }

    private func rebind(_ client: inout Client?) {
        guard let count = client?.up.count, let old = client?.descriptor else { return }
        let isDue = state.withLock { state in
            guard let next = state.rebindings.first, count >= next else { return false }
            state.rebindings.removeFirst()
            state.rebindingCount += 1
            return true
        }
        guard isDue, let own = try? DatagramSockets.bound() else { return }
        client?.descriptor = own.descriptor
        close(old)
    }
}

/// Sockets for datagrams on the loopback address.
package enum DatagramSockets {
    /// An address of IPv4 with its port.
    package struct Address: Hashable, Sendable {
        private let host: in_addr_t
        private let port: in_port_t
        package init(_ address: sockaddr_in) { (host, port) = (address.sin_addr.s_addr, address.sin_port) }

        var system: sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            (address.sin_port, address.sin_addr.s_addr) = (port, host)
            return address
        }
    }

    /// - Parameter host: the local address, 127.0.0.1 by default.
    package static func bound(port: UInt16 = 0, at host: UInt32 = loopback) throws -> (descriptor: Int32, port: UInt16)
    {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = address(port)
        address.sin_addr.s_addr = host.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard bound else {
            let error = errno
            close(descriptor)
            throw IOFailure(.system(error), .connect)
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    package static func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

    /// A port that no socket has; another process may take it.
    package static func free() throws -> UInt16 {
        let (descriptor, port) = try bound()
        close(descriptor)
        return port
    }

    package static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = loopback.bigEndian
        return address
    }
    /// 127.0.0.1.
    package static let loopback: UInt32 = 0x7F00_0001

    package static func send(_ datagram: [UInt8], from descriptor: Int32, to address: sockaddr_in) {
        datagram.withUnsafeBytes { send($0, from: descriptor, to: address, flags: 0) }
    }

    /// - Parameter flags: with `MSG_DONTWAIT`, a datagram is lost where the socket has no room for it.
    static func send(_ datagram: UnsafeRawBufferPointer, from descriptor: Int32, to address: sockaddr_in, flags: Int32)
    {
        var address = address
        _ = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor, datagram.baseAddress, datagram.count, flags, $0,
                    socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Returns the next datagram and its sender; `nil` if none has arrived.
    package static func receive(_ descriptor: Int32) -> ([UInt8], sockaddr_in)? {
        var from = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { buffer in
            let count = withUnsafeMutablePointer(to: &from) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT), $0, &length)
                }
            }
            return count < 0 ? nil : (Array(buffer[..<count]), from)
        }
    }
}

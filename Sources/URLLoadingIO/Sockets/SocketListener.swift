// SPDX-License-Identifier: Apache-2.0

// A listening socket, for test servers.

import Synchronization
import URLLoadingCSystem

package final class SocketListener: Sendable {
    private let descriptor: Int32
    /// Bound to the same port of the other loopback address; -1 if there is none.
    private let reservation: Int32
    private let slot: PollSlot
    private let isClosed = Atomic<Bool>(false)
    /// The address it listens on, with the port that the system chose if none was given.
    package let address: SocketAddress

    package init(_ address: SocketAddress, backlog: Int32 = 4096) throws(IOFailure) {
        (descriptor, self.address, reservation) = try Self.open(address, backlog)
        slot = Poller.shared.borrowSlot()
        do throws(IOFailure) { try Poller.shared.register(descriptor, slot) } catch {
            close()
            throw error
        }
    }

    /// Listens, and reserves the port at the other loopback address. `localhost` stands for both addresses, and clients
    /// try `::1` first: without the reservation they could reach another process to which the system gave the port.
    private static func open(
        _ wanted: SocketAddress, _ backlog: Int32
    ) throws(IOFailure) -> (descriptor: Int32, address: SocketAddress, reservation: Int32) {
        var attempts = wanted.port == 0 ? 32 : 1
        while true {
            attempts -= 1
            let (descriptor, address) = try listen(wanted, backlog)
            let reservation = address.otherLoopback.map(reserve) ?? -1
            if reservation == -EADDRINUSE, attempts > 0 {
                _ = csys_close(descriptor)
                continue
            }
            // Without IPv6 there is nothing to reserve.
            return (descriptor, address, max(reservation, -1))
        }
    }

    private static func listen(
        _ wanted: SocketAddress, _ backlog: Int32
    ) throws(IOFailure) -> (descriptor: Int32, address: SocketAddress) {
        let descriptor = csys_socket(wanted.systemFamily)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .listen) }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var result = wanted.withSystemAddress { csys_listen(descriptor, $0, $1, backlog) } ?? -EINVAL
        if result == 0 { result = csys_local_address(descriptor, &storage, &length) }
        guard result == 0 else {
            _ = csys_close(descriptor)
            throw IOFailure(.system(-result), .listen)
        }
        return (descriptor, SocketAddress(storage, length: length) ?? wanted)
    }

    /// Returns a descriptor, or -errno.
    private static func reserve(_ address: SocketAddress) -> Int32 {
        let descriptor = csys_socket(address.systemFamily)
        guard descriptor >= 0 else { return descriptor }
        let result = address.withSystemAddress { csys_reserve(descriptor, $0, $1) } ?? -EINVAL
        if result == 0 { return descriptor }
        _ = csys_close(descriptor)
        return result
    }

    deinit { close() }

    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = csys_close(descriptor)
        if reservation >= 0 { _ = csys_close(reservation) }
        Poller.shared.returnSlot(slot)
    }

    /// Waits for the next connection. Used by one task at a time.
    package func accept(_ token: StopToken) async throws(IOFailure) -> SocketTransport {
        token.attach(slot)
        defer { token.detach(slot) }
        while true {
            try token.check(.accept)
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            _ = slot.beginRead()
            let accepted = csys_accept(descriptor, &storage, &length)
            if accepted >= 0 {
                return try SocketTransport(descriptor: accepted, peer: SocketAddress(storage, length: length))
            }
            switch -accepted {
            case EAGAIN: await Poller.shared.park(slot, .read, token)
            case ECONNABORTED, EINTR, EPROTO: continue
            case let error: throw IOFailure(.system(error), .accept)
            }
        }
    }
}

extension SocketAddress {
    /// For `127.0.0.1` the same port of `::1`, and the reverse; `nil` for all other addresses.
    fileprivate var otherLoopback: SocketAddress? {
        switch (family, octets) {
        case (.ipv4, [127, 0, 0, 1]): .ipv6([UInt8](repeating: 0, count: 15) + [1], port: port)
        case (.ipv6, [UInt8](repeating: 0, count: 15) + [1]): .ipv4((127, 0, 0, 1), port: port)
        default: nil
        }
    }
}

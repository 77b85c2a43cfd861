// SPDX-License-Identifier: Apache-2.0

// A listening socket, for test servers.

import Synchronization
import URLLoadingCSystem

package final class SocketListener: Sendable {
    private let descriptor: Int32
    private let slot: PollSlot
    private let isClosed = Atomic<Bool>(false)
    /// The address it listens on, with the port that the system chose if none was given.
    package let address: SocketAddress

    package init(_ address: SocketAddress, backlog: Int32 = 4096) throws(IOFailure) {
        let descriptor = csys_socket(address.systemFamily)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .listen) }
        self.descriptor = descriptor
        slot = Poller.shared.borrowSlot()
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var result = address.withSystemAddress { csys_listen(descriptor, $0, $1, backlog) } ?? -EINVAL
        if result == 0 { result = csys_local_address(descriptor, &storage, &length) }
        self.address = SocketAddress(storage, length: length) ?? address
        do throws(IOFailure) {
            guard result == 0 else { throw IOFailure(.system(-result), .listen) }
            try Poller.shared.register(descriptor, slot)
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = csys_close(descriptor)
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
